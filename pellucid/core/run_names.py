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


def step_of(path: Path) -> int | None:
    """The update after which a run saved this, by its name; None for what no run has named."""
    found = _STEP.fullmatch(path.name)
    return int(found[1]) if found else None


def steps_in(folder: Path) -> list[tuple[int, Path]]:
    """The entries that a run saved in a folder, with their updates, the earliest first.

    A copy that a user made there (``step-00000005-mine``) is not among them.
    """
    paths = folder.iterdir() if folder.is_dir() else ()
    found = ((step_of(path), path) for path in paths)
    return sorted((step, path) for step, path in found if step is not None and path.is_dir())
