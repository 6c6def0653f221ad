"""The reactions of a run to wrong numbers: skip an update, report a spike, return to a checkpoint.

All decisions depend on the loss and the gradient norm of an update, and on what a checkpoint holds.
So a resumed run decides as an unbroken one does, and all processes of a run decide alike.
"""

import dataclasses
import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pellucid.core.errors import DivergedError
from pellucid.core.files import write_errors
from pellucid.core.run_names import CHECKPOINTS_FOLDER, steps_in
from pellucid.model.seq2seq import SequenceModel
from pellucid.text.batching import Indices
from pellucid.training.checkpoint import (
    broken_tensors,
    is_intact,
    load_checkpoint,
    remove_newer,
    save_checkpoint,
)
from pellucid.training.data import TrainingData
from pellucid.training.distributed import whole_model
from pellucid.training.journal import end_last_line, finite
from pellucid.training.run import Run
from pellucid.training.step import StepReport

MOST_SKIPPED_IN_A_ROW = 10
"""After so many updates in a row that are not finite the run goes back (reliability N2)."""
MOST_ROLLBACKS = 3
"""How often a run goes back before it counts as diverged (reliability N2)."""
RATE_PER_ROLLBACK = 0.5
"""Each rollback multiplies the learning rate by this (reliability N2)."""
_WAY_OUT = (
    "lower training.learning_rate or training.clip_norm, or raise training.warmup_steps,"
    " then --resume"
)
_NEVER_TURNED_BACK = ("seconds", "skipped_steps", "spikes")
"""Counts of what really happened; a rollback keeps them."""

SPIKES_FILE = "spikes.jsonl"
_SUSPECTS = 5
"""Pairs of a spike that are written out as text."""
_MOST_MEASURED = 500
"""Pairs of a batch that are measured one by one, at some milliseconds each."""

_log = logging.getLogger("pellucid")


@dataclasses.dataclass(frozen=True)
class Drawn:
    """One batch of an update, as a position in the order of the data."""

    epoch: int
    position: int
    """The number of the batch within the epoch, from 0."""
    indices: Indices
    """The pairs, as positions in ``TrainingData.rows``."""


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
    # A single one may be bad data or an overflow; a row of them means that the parameters are lost.
    if run.progress.skipped_in_a_row >= MOST_SKIPPED_IN_A_ROW:
        return f"loss or gradient was not finite for {MOST_SKIPPED_IN_A_ROW} updates in a row"

    if look_inside:
        # With a sharded model each process sees only its own part of the tensors.
        here = broken_tensors(run.model, run.optimizer, run.average)
        gathered = run.process_group.world.gather_values(here)
        broken = list(dict.fromkeys(name for each in gathered for name in each))
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

    # Each return halves the rate: after three of them the rate is not the cause.
    if returns > MOST_ROLLBACKS:
        why = f"after {MOST_ROLLBACKS} returns to a checkpoint"
        raise DivergedError(f"{reason}, up to step {step}, {why}", hint=_WAY_OUT)
    folder = _last_good(run)
    if folder is None:
        why = "with no checkpoint to go back to"
        raise DivergedError(f"{reason}, up to step {step}, {why}", hint=_WAY_OUT)

    # Noted before the checkpoint's own counts replace them.
    kept = {name: getattr(progress, name) for name in _NEVER_TURNED_BACK}
    factor = progress.rate_factor * RATE_PER_ROLLBACK
    overflowed = None if run.loss_scale is None else run.loss_scale.value

    world = run.process_group.world
    of_run = run.model, run.optimizer, run.average
    run.restore(world.together(lambda: load_checkpoint(folder, *of_run, run.process_group)))

    progress.restore({**progress.state(), **kept, "rollbacks": returns, "rate_factor": factor})
    if run.loss_scale is not None and overflowed is not None:
        run.loss_scale.value = overflowed  # the checkpoint's larger scale would overflow again

    # The checkpoint is written again with the number of rollbacks, and then later ones are removed:
    # a run that is killed at any moment either remembers this rollback or repeats it.
    save_checkpoint(folder, *of_run, run.state(), run.process_group)
    world.by_first(lambda: remove_newer(folder))
    # models of updates that are taken back would be judged by scores that are forgotten
    world.by_first(lambda: run.folder.remove_models_after(progress.step))

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
        contents = _describe_spike(model, run.data, drawn)
        entry = json.dumps(finite({**figures, **contents}), ensure_ascii=False, allow_nan=False)
        path = run.folder.path / SPIKES_FILE
        with write_errors(path):
            end_last_line(path)
            with path.open("a", encoding="utf-8") as file:
                file.write(entry + "\n")
        run.journal.write("spike", {**figures, "suspects": contents["suspects"][:1]})

    run.process_group.world.by_first(record)


def _describe_spike(
    model: SequenceModel, data: TrainingData, drawn: Sequence[Drawn]
) -> dict[str, Any]:
    """The batches behind a spike, and the pairs in them with the largest cross-entropy.

    ``pair`` numbers a pair in the token store, from 0; ``lines`` are the first and last line of the
    training files (all files through, from 1) where it can stand, the same if none was dropped.
    """
    batches = [
        {"epoch": each.epoch, "position": each.position, "pairs": data.rows[each.indices].tolist()}
        for each in drawn
    ]

    # Each pair is measured by itself: the batch's gradient does not say whose it was.
    ranked = sorted(
        (
            (_cross_entropy(model, data, index, each.epoch), int(row))
            for each in drawn
            for index, row in zip(
                each.indices[:_MOST_MEASURED].tolist(),
                data.rows[each.indices[:_MOST_MEASURED]],
                strict=True,
            )
        ),
        reverse=True,
    )

    dropped = data.store.report.empty + data.store.report.too_long
    suspects = [
        {
            "pair": row,
            # Pairs may have been dropped before it, all of them or none.
            "lines": [row + 1, row + 1 + dropped] if data.store.folder else None,
            "nats_per_token": nats,
            "source": data.source_tokenizer.decode(data.store.pair(row)[0].tolist()),
            "target": data.target_tokenizer.decode(data.store.pair(row)[1].tolist()),
        }
        for nats, row in ranked[:_SUSPECTS]
    ]
    return {"batches": batches, "suspects": suspects}


def _cross_entropy(model: SequenceModel, data: TrainingData, index: int, epoch: int) -> float:
    """Nats per target token of one pair, without dropout, so that no random number is used."""
    batch = data.batch(np.array([index]), epoch).to(next(model.parameters()).device)
    model.eval()  # the next update calls train() again
    with torch.no_grad():
        sums = model.loss(batch.source, batch.target_input, batch.labels, 0.0)
    return sums.negative_log_likelihood.item() / max(1, sums.token_count)


def _last_good(run: Run) -> Path | None:
    """The checkpoint of the last regular save, or the next older one that is intact."""
    folder, good_step = run.folder.path / CHECKPOINTS_FOLDER, run.progress.good_step
    older = (path for step, path in reversed(steps_in(folder)) if step <= good_step)

    # The first process looks for all of them, as on a network's disk they may see different files.
    world = run.process_group.world
    found = world.by_first(lambda: next((each.name for each in older if is_intact(each)), None))
    name = world.from_first(found)
    return None if name is None else folder / name
