"""The names of the parts of a run folder."""

import re
from pathlib import Path

CONFIG_FILE = "config.toml"
"""The complete, resolved config."""
RECIPE_FILE = "recipe.toml"
"""The settings chosen for given text files, with reasons; absent where a config was named."""
JOURNAL_FILE = "journal.jsonl"
"""One event of the run in each line."""
LOCK_FILE = ".lock"
"""Locked by the process that works here."""
STATE_FILE = "state.json"
"""In a checkpoint: all that is no tensor."""
BUNDLES_FOLDER = "bundles"
"""Models to translate with."""
CHECKPOINTS_FOLDER = "checkpoints"
"""States to resume from."""
FILM_FOLDER = "film"
"""The model as it was at some updates, if asked for."""
DATA_FOLDER = "data"
"""Tokenized training text."""
BOARD_FOLDER, WANDB_FOLDER = "tensorboard", "wandb"
"""Files of TensorBoard and of Weights & Biases, if asked for."""
TOKENIZER_FOLDER = "tokenizer"
"""The tokenizers."""
_STEP = re.compile(r"step-(\d+)", re.ASCII)


def step_name(step: int) -> str:
    """The name of what a run saves after the update ``step``."""
    return f"step-{step:08d}"


def steps_in(folder: Path) -> list[tuple[int, Path]]:
    """What a run has saved in a folder by its update, the earliest first.

    A copy that a user has made there (``step-00000005-mine``) is none of them.
    """
    paths = folder.iterdir() if folder.is_dir() else ()
    found = ((_STEP.fullmatch(path.name), path) for path in paths)
    return sorted((int(name[1]), path) for name, path in found if name and path.is_dir())
