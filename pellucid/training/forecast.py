"""What a run will take, reckoned from what a rehearsal measured."""

import dataclasses
import math

from pellucid.training.config import TrainingConfig


@dataclasses.dataclass(frozen=True)
class Measured:
    """Seconds, bytes and counts of the parts of a run, each made once or a few times."""

    update_seconds: float
    """For one update on batches as they come."""
    tokens_per_update: float
    """Real target tokens of such an update."""
    validation_seconds: float
    """For all validation pairs and the bundle."""
    checkpoint_seconds: float
    batches_per_epoch: int
    peak_memory_bytes: int
    """Of the process, or of the accelerator if there is one."""
    parameter_bytes: int
    checkpoint_bytes: int
    bundle_bytes: int


@dataclasses.dataclass(frozen=True)
class Forecast:
    """How a run will go unless something else ends it, such as ``training.patience``."""

    updates: int
    ends_by: str
    """The setting that ends it."""
    seconds: float
    epochs: float
    tokens_per_second: float
    """Target tokens while it updates, validations and checkpoints left out."""
    memory_bytes: int
    disk_bytes: int
    """Checkpoints and bundles; tokenized text is not counted."""


def forecast(config: TrainingConfig, measured: Measured) -> Forecast:
    """When a run by ``config`` ends, and what it will have taken by then."""
    per_update = (
        measured.update_seconds
        + measured.validation_seconds / config.validate_every
        + measured.checkpoint_seconds / config.save_every
    )
    updates, ends_by = _updates(config, measured, per_update)
    validations = math.ceil(updates / config.validate_every)
    checkpoints = updates // config.save_every + 1  # the last one in any case
    snapshots = config.average_last - 1 if config.average_last > 1 else 0
    return Forecast(
        updates=updates,
        ends_by=ends_by,
        seconds=updates * measured.update_seconds
        + validations * measured.validation_seconds
        + checkpoints * measured.checkpoint_seconds,
        epochs=updates * config.accumulate / measured.batches_per_epoch,
        tokens_per_second=measured.tokens_per_update / measured.update_seconds,
        memory_bytes=measured.peak_memory_bytes + snapshots * measured.parameter_bytes,
        # One more of each: the next is written before the oldest is removed; the latest bundle
        # is kept besides the best.
        disk_bytes=(config.keep_checkpoints + 1) * measured.checkpoint_bytes
        + (config.keep_bundles + 2) * measured.bundle_bytes,
    )


def _updates(config: TrainingConfig, measured: Measured, per_update: float) -> tuple[int, str]:
    """The fewest updates that any limit allows, and the name of that limit."""
    limits = []
    if config.max_steps is not None:
        limits.append((config.max_steps, "max_steps"))
    if config.max_epochs is not None:
        batches = config.max_epochs * measured.batches_per_epoch
        limits.append((math.ceil(batches / config.accumulate), "max_epochs"))
    if config.max_minutes is not None:
        limits.append((math.ceil(60.0 * config.max_minutes / per_update), "max_minutes"))
    return min(limits)
