"""The learning rate of an update."""

import math
from typing import assert_never

from pellucid.training.config import TrainingConfig


def peak_rate(config: TrainingConfig, d_model: int) -> float:
    """The rate at the end of the warm-up: as set, or what the paper's eq. (3) gives there."""
    return config.learning_rate or (d_model * config.warmup_steps) ** -0.5


def learning_rate(config: TrainingConfig, d_model: int, step: int, progress: float) -> float:
    """The rate of update ``step``, counted from 1.

        inverse_root:  peak · min(step / warmup, √(warmup / step))

    EQ: section 5 of the catalogue.  Source: Vaswani et al. (2017), §5.3, eq. (3).
    ``progress`` is the share of the run that lies behind, 0 to 1; it decides ``linear`` and
    ``cosine``, which reach zero at its end.
    """
    warm = min(1.0, step / config.warmup_steps)
    shape: float
    match config.schedule:
        case "inverse_root":
            shape = min(warm, math.sqrt(config.warmup_steps / step))
        case "linear":
            shape = min(warm, 1.0 - progress)
        case "cosine":
            shape = min(warm, 0.5 + 0.5 * math.cos(math.pi * min(1.0, progress)))
        case "constant":
            shape = warm
        case _:
            assert_never(config.schedule)
    return peak_rate(config, d_model) * max(0.0, shape)
