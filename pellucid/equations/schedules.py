"""Learning rates as functions of the step, which counts from 1."""

import math

from pellucid.core.errors import ConfigError
from pellucid.equations.shapes import Number


def transformer_learning_rate(step: int, d_model: int, warmup_steps: int) -> float:
    """Rise in a straight line for ``warmup_steps``, then fall with the root of the step.

        d_model^(-1/2) · min(step^(-1/2), step · warmup_steps^(-3/2))

    EQ: none.  Source: Vaswani et al. (2017), §5.3, eq. (3).
    Symbols: as in the paper. The highest rate, at the end of the warm-up, is
    (d_model · warmup_steps)^(-1/2).
    Raises: ConfigError if the step is less than 1.
    """
    _require_step(step)
    # the two meet at step = warmup_steps, where both are warmup_steps^(-1/2)
    return float(d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5))


def inverse_root_learning_rate(step: int, peak: Number, warmup_steps: int) -> float:
    """The same shape as the paper's rate, with a peak that you choose.

        peak · min(step / warmup_steps, √(warmup_steps / step))

    EQ: none.  Source: Vaswani et al. (2017), §5.3, eq. (3), with its factor set free.
    Symbols: peak = the rate at step = warmup_steps; without warm-up it falls from step 1 on.
    Raises: ConfigError if the step is less than 1.
    """
    _require_step(step)
    # without warm-up, as if it were one step
    warmup = max(1, warmup_steps)
    return float(peak * min(step / warmup, math.sqrt(warmup / step)))


def linear_learning_rate(step: int, peak: Number, warmup_steps: int, progress: Number) -> float:
    """Rise in a straight line, and fall in another to zero at the end of the run.

        peak · min(step / warmup_steps, 1 - progress)

    EQ: none.  Source: Devlin et al. (2019), Appendix A.2, for the shape.
    Symbols: progress = share of the run that is done, 0 to 1, by updates, epochs or minutes.
    Raises: ConfigError if the step is less than 1.
    Differs: BERT's line falls from the end of the warm-up; this one falls from the beginning of
    the run, so that a run which ends by the clock needs not know how long its warm-up takes. With
    a warm-up of a fifth of the run the rate at its end is 0.8 · peak; the highest, 0.83 · peak,
    comes a little earlier.
    """
    # a run that overshoots its share has the rate 0, not a negative one
    return peak * min(_warm(step, warmup_steps), max(0.0, 1.0 - progress))


def cosine_learning_rate(step: int, peak: Number, warmup_steps: int, progress: Number) -> float:
    """Rise in a straight line, and fall along half a cosine to zero at the end of the run.

        peak · min(step / warmup_steps, (1 + cos(π · progress)) / 2)

    EQ: none.  Source: Loshchilov and Hutter (2017), eq. (5), without restarts.
    Symbols: progress = share of the run that is done, 0 to 1, by updates, epochs or minutes.
    Raises: ConfigError if the step is less than 1.
    Differs: as ``linear_learning_rate``, it falls from the beginning of the run; with a warm-up of
    a fifth of the run the rate at its end is 0.905 · peak, and the highest 0.92 · peak.
    """
    # 1 at the start and 0 at the end; clipped, as the cosine would rise again
    fall = (1 + math.cos(math.pi * min(1.0, progress))) / 2
    return peak * min(_warm(step, warmup_steps), fall)


def constant_learning_rate(step: int, peak: Number, warmup_steps: int) -> float:
    """Rise in a straight line, and stay there.

        peak · min(step / warmup_steps, 1)

    EQ: none.  Source: Goyal et al. (2017), §2.2, for the warm-up.
    Raises: ConfigError if the step is less than 1.
    """
    return peak * _warm(step, warmup_steps)


def wsd_learning_rate(
    step: int, peak: Number, warmup_steps: int, progress: Number, decay_share: Number
) -> float:
    """Rise in a straight line, stay there, and fall in another to zero in the last part of the run.

        peak · min(step / warmup_steps, 1, (1 - progress) / decay_share)

    EQ: none.  Source: Zhai et al. (2022), Scaling Vision Transformers, §3.5; Hu et al. (2024),
    arXiv:2404.06395, §4, who call it warm-up, stable, decay (WSD).
    Symbols: progress = share of the run that is done, 0 to 1, by updates, epochs or minutes;
    decay_share = the part of the run in which it falls, above 0.
    Raises: ConfigError if the step is less than 1.

    Until it falls the rate does not depend on how long the run will be.
    """
    return peak * min(_warm(step, warmup_steps), max(0.0, 1.0 - progress) / decay_share)


def plateau_learning_rate(
    step: int, peak: Number, warmup_steps: int, factor: Number, reductions: int
) -> float:
    """Rise in a straight line, and fall by a factor whenever validation stops improving.

        peak · min(step / warmup_steps, 1) · factor^reductions

    EQ: none.  Source: the usual rule, as torch.optim.lr_scheduler.ReduceLROnPlateau has it.
    Symbols: reductions = how often validation has stopped getting better.
    Raises: ConfigError if the step is less than 1.
    """
    return float(constant_learning_rate(step, peak, warmup_steps) * factor**reductions)


def _warm(step: int, warmup_steps: int) -> float:
    """How much of the warm-up is done, between 0 and 1; all of it where there is none."""
    _require_step(step)
    return min(1.0, step / max(1, warmup_steps))


def _require_step(step: int) -> None:
    if step < 1:
        raise ConfigError(f"the step must be at least 1, got {step}")
