"""Learning rates as functions of the step, which counts from 1."""

import math

from pellucid.core.errors import ConfigError
from pellucid.equations.shapes import Number


def transformer_learning_rate(step: int, d_model: int, warmup_steps: int) -> float:
    """Rise in a straight line for ``warmup_steps``, then fall with the root of the step.

        d_model^(-1/2) · min(step^(-1/2), step · warmup_steps^(-3/2))

    EQ: none.  Source: Vaswani et al. (2017), §5.3, eq. (3).
    Symbols: as in the paper. The peak, at step = warmup_steps, is (d_model · warmup_steps)^(-1/2).
    Raises: ConfigError if the step is less than 1.
    """
    _require_step(step)
    return float(d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5))


def inverse_root_learning_rate(step: int, peak: Number, warmup_steps: int) -> float:
    """The same shape with a peak of one's own.

        peak · min(step / warmup_steps, √(warmup_steps / step))

    EQ: none.  Source: Vaswani et al. (2017), §5.3, eq. (3), with its factor set free.
    Symbols: peak = the rate at step = warmup_steps; without warm-up it falls from step 1 on.
    Raises: ConfigError if the step is less than 1.
    """
    _require_step(step)
    warmup = max(1, warmup_steps)
    return float(peak * min(step / warmup, math.sqrt(warmup / step)))


def linear_learning_rate(step: int, peak: Number, warmup_steps: int, total_steps: int) -> float:
    """Rise in a straight line, then fall in a straight line to zero at ``total_steps``.

        peak · min(step / warmup_steps, (total_steps - step) / (total_steps - warmup_steps))

    EQ: none.  Source: Devlin et al. (2019), Appendix A.2.
    Symbols: peak = the rate at step = warmup_steps.
    Raises: ConfigError if the step is less than 1.
    """
    _require_step(step)
    if step < warmup_steps:
        return peak * step / warmup_steps
    return peak * (1 - _progress(step, warmup_steps, total_steps))


def cosine_learning_rate(
    step: int, peak: Number, warmup_steps: int, total_steps: int, final: Number = 0.0
) -> float:
    """Rise in a straight line, then fall along half a cosine to ``final`` at ``total_steps``.

        final + (peak - final) · (1 + cos(π t)) / 2,   t = share of the fall that is done

    EQ: none.  Source: Loshchilov and Hutter (2017), eq. (5).
    Symbols: peak = the rate at step = warmup_steps, final = the rate from total_steps on.
    Raises: ConfigError if the step is less than 1.
    """
    _require_step(step)
    if step < warmup_steps:
        return peak * step / warmup_steps
    fall = (1 + math.cos(math.pi * _progress(step, warmup_steps, total_steps))) / 2
    return final + (peak - final) * fall


def _progress(step: int, warmup_steps: int, total_steps: int) -> float:
    """The share of the way from the peak to the end, between 0 and 1."""
    if step >= total_steps:
        return 1.0
    return (step - warmup_steps) / (total_steps - warmup_steps)


def _require_step(step: int) -> None:
    if step < 1:
        raise ConfigError(f"the step must be at least 1, got {step}")
