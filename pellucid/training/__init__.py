"""From a config and two text files to a model: the loop, its memory and its journal."""

from typing import Literal

LoggerName = Literal["tensorboard", "trackio", "wandb", "mlflow"]
"""The other programs that may get the figures of a run."""
