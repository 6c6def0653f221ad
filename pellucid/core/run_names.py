"""The names of the parts of a run folder."""

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


def step_name(step: int) -> str:
    """The name of a checkpoint, a bundle or a frame that was made after update ``step``."""
    return f"step-{step:08d}"


def step_order(folder: Path) -> tuple[int, str]:
    """The key that sorts such folders by their steps, which may have more than eight digits."""
    return len(folder.name), folder.name
