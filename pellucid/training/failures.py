"""What a run does when numbers go wrong: skip an update, report a spike, go back to a checkpoint.

All decisions depend on the loss and the gradient norm of an update and on what a checkpoint holds,
and on nothing else. So a resumed run decides as an unbroken one does, and all processes of a run
decide alike.
"""

import logging
from pathlib import Path

from pellucid.core.errors import DivergedError
from pellucid.training.checkpoint import (
    broken_tensors,
    checkpoints_of,
    is_intact,
    load_checkpoint,
    remove_newer,
    save_checkpoint,
)
from pellucid.training.distributed import whole_model
from pellucid.training.run import Run
from pellucid.training.spikes import Drawn, describe_spike, write_spike
from pellucid.training.step import StepReport

MOST_SKIPPED_IN_A_ROW = 10
"""After so many updates in a row that are not finite the run goes back (reliability N2)."""
MOST_ROLLBACKS = 3
"""How often a run goes back before it counts as diverged (reliability N2)."""
RATE_PER_ROLLBACK = 0.5
"""Each rollback multiplies the learning rate by this (reliability N2)."""
_NEVER_TURNED_BACK = ("seconds", "skipped_steps", "spikes")
"""Counts of what really happened; a rollback keeps them."""

_log = logging.getLogger("pellucid")


def may_apply(run: Run, report: StepReport) -> bool:
    """Whether the update may be applied: it is finite and not a spike that is to be skipped."""
    return report.is_finite and not (run.config.training.skip_spikes and _is_spike(run, report))


def note_update(run: Run, report: StepReport, drawn: list[Drawn]) -> None:
    """Count an update; record one that was left out or whose gradient was a spike."""
    progress = run.progress

    if not report.is_finite:
        progress.skipped_steps += 1
        progress.skipped_in_a_row += 1
        norm = str(report.gradient_norm)  # JSON has no NaN and no infinity
        run.journal.write("skipped", {"step": progress.step, "gradient_norm": norm})
        return

    progress.skipped_in_a_row = 0
    if _is_spike(run, report):
        progress.spikes += 1
        progress.skipped_steps += not report.applied
        _record_spike(run, report, drawn)

    # Only now, or the spike would raise the limit that it is compared with.
    run.spikes.note(report.gradient_norm)


def why_to_go_back(run: Run, *, look_inside: bool) -> str | None:
    """The reason to go back, if there is one; ``look_inside`` searches every tensor for NaN."""
    if run.progress.skipped_in_a_row >= MOST_SKIPPED_IN_A_ROW:
        return f"loss or gradient was not finite for {MOST_SKIPPED_IN_A_ROW} updates in a row"

    if look_inside:
        # With a sharded model each process sees only its own part of the tensors.
        here = broken_tensors(run.model, run.optimizer, run.average)
        told = run.process_group.world.gather_values(here)
        broken = list(dict.fromkeys(name for each in told for name in each))
        if broken:
            more = f" and {len(broken) - 1} more" if len(broken) > 1 else ""
            return f"{broken[0]}{more} are no longer finite"

    return None


def go_back(run: Run, reason: str) -> None:
    """Return to the last good checkpoint with half the learning rate.

    Raises DivergedError after three rollbacks, or if there is no checkpoint to return to.
    """
    progress = run.progress
    step, returns = progress.step, progress.rollbacks + 1

    if returns > MOST_ROLLBACKS:
        raise _diverged(
            f"{reason}, up to step {step}, after {MOST_ROLLBACKS} returns to a checkpoint"
        )
    folder = _last_good(run)
    if folder is None:
        raise _diverged(f"{reason}, up to step {step}, with no checkpoint to go back to")

    kept = {name: getattr(progress, name) for name in _NEVER_TURNED_BACK}
    factor = progress.rate_factor * RATE_PER_ROLLBACK
    overflowed = None if run.loss_scale is None else run.loss_scale.value

    world = run.process_group.world
    run.restore(
        world.together(
            lambda: load_checkpoint(
                folder, run.model, run.optimizer, run.average, run.process_group
            )
        )
    )

    progress.restore({**progress.state(), **kept, "rollbacks": returns, "rate_factor": factor})
    if run.loss_scale is not None and overflowed is not None:
        run.loss_scale.value = overflowed  # the checkpoint's larger scale would overflow again

    # The checkpoint is written again with the number of rollbacks, and then later ones are removed:
    # a run that is killed at any moment either remembers this rollback or repeats it.
    save_checkpoint(folder, run.model, run.optimizer, run.average, run.state(), run.process_group)
    world.by_first(lambda: remove_newer(folder))

    figures = {"step": step, "to_step": progress.step, "reason": reason, "rollbacks": returns}
    run.journal.write("rollback", {**figures, "rate_factor": factor})


def restart_rate(run: Run) -> None:
    """Forget earlier rollbacks: resuming with another learning rate deals with their cause."""
    if run.progress.rollbacks:
        _log.warning(
            "the learning rate is as set: the halvings of %s returns to a checkpoint are forgotten",
            run.progress.rollbacks,
        )
    run.progress.rollbacks, run.progress.rate_factor = 0, 1.0


def _is_spike(run: Run, report: StepReport) -> bool:
    return report.gradient_norm > run.spikes.limit


def _record_spike(run: Run, report: StepReport, drawn: list[Drawn]) -> None:
    figures = {
        "step": run.progress.step,
        "gradient_norm": report.gradient_norm,
        "usual_norm": run.spikes.usual,
        "limit": run.spikes.limit,
        "skipped": not report.applied,
    }

    model = whole_model(run.model, run.process_group)  # collective, so outside of ``record``

    def record() -> None:
        contents = describe_spike(model, run.data, drawn)
        write_spike(run.folder.path, {**figures, **contents})
        run.journal.write("spike", {**figures, "suspects": contents["suspects"][:1]})

    run.process_group.world.by_first(record)


def _last_good(run: Run) -> Path | None:
    """The checkpoint of the last regular save, or the next older one that is intact."""
    wanted = run.folder.checkpoint_path(run.progress.good_step)
    older = (each for each in checkpoints_of(run.folder.path) if each.name <= wanted.name)

    # The first process looks for all of them, as on a network's disk they may see different files.
    world = run.process_group.world
    found = world.by_first(lambda: next((each.name for each in older if is_intact(each)), None))
    name = world.from_first(found)
    return None if name is None else wanted.with_name(name)


def _diverged(message: str) -> DivergedError:
    return DivergedError(
        message,
        hint="lower training.learning_rate or training.clip_norm, or raise training.warmup_steps,"
        " then --resume",
    )
