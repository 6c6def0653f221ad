"""The learning rate of an update."""

from typing import assert_never

from pellucid.equations.schedules import (
    constant_learning_rate,
    cosine_learning_rate,
    inverse_root_learning_rate,
    linear_learning_rate,
    plateau_learning_rate,
    transformer_learning_rate,
)
from pellucid.training.config import TrainingConfig


def peak_rate(config: TrainingConfig, d_model: int) -> float:
    """The rate at the end of the warm-up: as set, or what the paper's eq. (3) gives there."""
    return config.learning_rate or (d_model * config.warmup_steps) ** -0.5


def learning_rate(
    config: TrainingConfig, d_model: int, step: int, progress: float, reductions: int = 0
) -> float:
    """The rate of update ``step``, counted from 1, by the equation that the config names.

    EQ: section 5 of the catalogue.  Source: Vaswani et al. (2017), §5.3, eq. (3).
    ``progress`` is the share of the run that lies behind, 0 to 1, at whose end ``linear`` and
    ``cosine`` reach zero; ``reductions`` is how often validation had stopped getting better.
    """
    peak, warmup = peak_rate(config, d_model), config.warmup_steps
    match config.schedule:
        case "paper":
            return transformer_learning_rate(step, d_model, warmup)
        case "inverse_root":
            return inverse_root_learning_rate(step, peak, warmup)
        case "linear":
            return linear_learning_rate(step, peak, warmup, progress)
        case "cosine":
            return cosine_learning_rate(step, peak, warmup, progress)
        case "plateau":
            return plateau_learning_rate(step, peak, warmup, config.plateau_factor, reductions)
        case "constant":
            return constant_learning_rate(step, peak, warmup)
        case _:
            assert_never(config.schedule)
