"""The learning rate of an update."""

import math
from typing import assert_never

from pellucid.equations import transformer_learning_rate
from pellucid.training.config import TrainingConfig


def peak_rate(config: TrainingConfig, d_model: int) -> float:
    """The rate at the end of the warm-up: as set, or what the paper's eq. (3) gives there."""
    return config.learning_rate or (d_model * config.warmup_steps) ** -0.5


def learning_rate(
    config: TrainingConfig, d_model: int, step: int, progress: float, reductions: int = 0
) -> float:
    """The rate of update ``step``, counted from 1.

        paper:         d_model^(-1/2) · min(step^(-1/2), step · warmup^(-3/2))
        inverse_root:  peak · min(step / warmup, √(warmup / step))
        linear:        peak · min(step / warmup, 1 - progress)
        cosine:        peak · min(step / warmup, (1 + cos(π · progress)) / 2)
        plateau:       peak · min(step / warmup, 1) · factor^reductions
        constant:      peak · min(step / warmup, 1)

    EQ: section 5 of the catalogue.  Source: Vaswani et al. (2017), §5.3, eq. (3).
    ``progress`` is the share of the run that lies behind, 0 to 1, at whose end ``linear`` and
    ``cosine`` reach zero; ``reductions`` is how often validation had stopped getting better.
    """
    warm = min(1.0, step / config.warmup_steps)
    shape: float
    match config.schedule:
        case "paper":
            return transformer_learning_rate(step, d_model, config.warmup_steps)
        case "inverse_root":
            shape = min(warm, math.sqrt(config.warmup_steps / step))
        case "linear":
            shape = min(warm, 1.0 - progress)
        case "cosine":
            shape = min(warm, 0.5 + 0.5 * math.cos(math.pi * min(1.0, progress)))
        case "plateau":
            shape = warm * config.plateau_factor**reductions
        case "constant":
            shape = warm
        case _:
            assert_never(config.schedule)
    return peak_rate(config, d_model) * max(0.0, shape)
