"""The dry run: every part of a run once, in small, and a forecast of its time, memory and disk.

``dry_run`` measures and ``forecast`` computes.
"""

import dataclasses
import math
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from pellucid.bundle import Bundle, load_any_bundle, save_bundle
from pellucid.core import system
from pellucid.core.errors import DivergedError
from pellucid.core.files import temporary_folder
from pellucid.decoding.translator import Translator
from pellucid.model.seq2seq import Seq2Seq, SequenceModel
from pellucid.text.batching import Batch
from pellucid.training.card import model_card
from pellucid.training.checkpoint import load_checkpoint, save_checkpoint
from pellucid.training.config import RunConfig, TrainingConfig
from pellucid.training.folder import RunFolder, refuse_if_used
from pellucid.training.journal import Journal
from pellucid.training.measure import timed_update, timed_validation
from pellucid.training.pair_vectors import seconds_of_vectors
from pellucid.training.run import Run
from pellucid.training.teacher_tokens import AskedTeachers
from pellucid.training.torch_setup import torch_for_training
from pellucid.training.train import set_up_run


@dataclasses.dataclass(frozen=True)
class Measured:
    """Seconds, bytes and counts of the parts of a run, each measured once or a few times."""

    update_seconds: float
    """For one update on ordinary batches."""
    tokens_per_update: float
    """Target tokens of such an update, padding left out."""
    validation_seconds: float
    """For all validation pairs and the bundle."""
    checkpoint_seconds: float
    batches_per_epoch: int
    peak_memory_bytes: int
    """The peak of the process, or of the accelerator if there is one."""
    parameter_bytes: int
    checkpoint_bytes: int
    bundle_bytes: int
    vector_seconds: float = 0.0
    """For word vectors of the pairs, before the first update."""
    teacher_seconds: float = 0.0
    """For the teachers' likeliest tokens in all pairs, before the first update."""


@dataclasses.dataclass(frozen=True)
class Forecast:
    """The course of a run, unless something else ends it, such as ``training.patience``."""

    updates: int
    ends_by: str
    """The setting that ends it."""
    seconds: float
    epochs: float
    tokens_per_second: float
    """Target tokens per second of updates; validations and checkpoints are left out."""
    memory_bytes: int
    disk_bytes: int
    """Checkpoints and bundles; tokenized text is not counted."""


def forecast(config: TrainingConfig, measured: Measured) -> Forecast:
    """When a run by ``config`` ends, and what it will have taken by then."""
    # Validations and checkpoints, spread over the updates between them.
    per_update = (
        measured.update_seconds
        + measured.validation_seconds / config.validate_every
        + measured.checkpoint_seconds / config.save_every
    )
    updates, ends_by = _updates(config, measured, per_update)

    validations = math.ceil(updates / config.validate_every)
    checkpoints = updates // config.save_every + 1  # the last one in any case
    # The measured peak includes one snapshot, taken by the dry run's own validation.
    snapshots = config.average_last - 1 if config.average_last > 1 else 0

    # One from before the first update too.
    frames = updates // config.film_every + 1 if config.film_every else 0

    return Forecast(
        updates=updates,
        ends_by=ends_by,
        seconds=measured.vector_seconds
        + measured.teacher_seconds
        + updates * measured.update_seconds
        + validations * measured.validation_seconds
        + checkpoints * measured.checkpoint_seconds,
        epochs=updates * config.accumulate / measured.batches_per_epoch,
        tokens_per_second=measured.tokens_per_update / measured.update_seconds,
        memory_bytes=measured.peak_memory_bytes + snapshots * measured.parameter_bytes,
        # One more of each: the next is written before the oldest is removed; the latest bundle
        # is kept besides the best.
        disk_bytes=(config.keep_checkpoints + 1) * measured.checkpoint_bytes
        + (config.keep_bundles + 2) * measured.bundle_bytes
        + frames * measured.parameter_bytes,
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

    # Tuples compare by their first entry, the number of updates.
    return min(limits)


_TIMED_UPDATES = 4
"""Updates on ordinary batches; those on the largest batches come first and warm everything up."""
_BATCHES_LOOKED_AT = 2000
"""Batches among which the largest is looked for; later ones may be a little larger."""
_VALIDATION_PAIRS = 32
"""Pairs that are translated to measure how long a validation takes."""

Say = Callable[[str], None]
"""Is called with what has been tried, as a sentence for people."""


def dry_run(config: RunConfig, out: Path, say: Say) -> Forecast:
    """Do once everything that training by ``config`` into ``out`` would do, and leave nothing.

    That is an update on each of the largest batches, a few on ordinary batches, a validation, a
    search with the run's own beam size, and a checkpoint and a bundle written and read again, all
    in a temporary folder beside ``out``. Only what ``data.cache`` names is kept. Word vectors are
    learned from some of the pairs, to time that, and thrown away; the teachers of
    ``training.teacher_top_k`` read those batches alone.

    Raises whatever ``train`` would raise; DivergedError if an update is not finite.
    """
    refuse_if_used(out)
    # Here they would be learned from all pairs; a fine-tuned run has none.
    wanted = config.training
    epochs = wanted.vector_epochs if wanted.init is None else 0
    without = wanted.model_copy(update={"vector_epochs": 0})
    config = config.model_copy(update={"training": without})

    # On the same disk as ``out``, so that a lack of space or rights shows here.
    above = next(each for each in out.absolute().parents if each.is_dir())
    with (
        temporary_folder(above, ".dry-run-") as place,
        torch_for_training(config),
        RunFolder(place / "run", config, resume=False) as folder,
    ):
        journal = Journal(folder.journal_path)
        run = set_up_run(config, folder, journal, ask_teachers=AskedTeachers)
        seconds = 0.0
        if epochs:
            seconds = seconds_of_vectors(run.model, run.data, epochs, config.training.seed)
            say(f"word vectors: about {seconds:.1f} s for {epochs} epochs over all pairs")
        measured = dataclasses.replace(_measure(run, say), vector_seconds=seconds)
        return forecast(config.training, measured)


def _measure(run: Run, say: Say) -> Measured:
    # The largest batches first: too little memory is noticed before time is spent on the rest.
    for batch in _largest_batches(run):
        alone = [batch]
        seconds, _ = _timed_update(run, alone.copy)
        pairs, width = batch.labels.shape
        say(
            f"update: {seconds:.2f} s on a largest batch, {pairs} pairs of up to"
            f" {batch.source.shape[1]} source and {width} target tokens"
        )

    update_seconds, tokens = _typical_updates(run)
    say(f"update: {update_seconds:.2f} s on batches as they come, {tokens:,.0f} target tokens")

    teacher_seconds = 0.0
    if isinstance(run.data.top_tokens, AskedTeachers):
        teacher_seconds = run.data.top_tokens.seconds_of_all()
        say(f"teachers: about {teacher_seconds:.1f} s for all pairs, once")

    validation_seconds, bundle_bytes = _validate(run)
    say(f"validation: about {validation_seconds:.1f} s, a bundle of {bundle_bytes / 1e6:,.1f} MB")

    _search(run, say)

    checkpoint_seconds, checkpoint_bytes = _save_and_load(run)
    say(f"checkpoint: {checkpoint_seconds:.2f} s, {checkpoint_bytes / 1e6:,.1f} MB")

    return Measured(
        update_seconds=update_seconds,
        tokens_per_update=tokens,
        validation_seconds=validation_seconds,
        checkpoint_seconds=checkpoint_seconds,
        batches_per_epoch=run.sampler.epoch_batch_count,
        peak_memory_bytes=_peak_memory(_device(run)),
        parameter_bytes=sum(each.numel() * each.element_size() for each in run.model.parameters()),
        checkpoint_bytes=checkpoint_bytes,
        bundle_bytes=bundle_bytes,
        teacher_seconds=teacher_seconds,
    )


def _largest_batches(run: Run) -> list[Batch]:
    """The batch with the longest sentence and the one with the most tokens, padding included."""
    # The sampler is set back afterwards: the updates that follow are timed on the first batches of
    # a run.
    place = run.sampler.state()
    text = dataclasses.replace(run.data, top_tokens=None)  # no teacher reads what is only looked at
    widest, fullest = 0, 0
    found: dict[str, npt.NDArray[np.int64]] = {}

    for _ in range(min(run.sampler.epoch_batch_count, _BATCHES_LOOKED_AT)):
        indices = next(run.sampler)
        batch = text.batch(indices, 0)

        # Attention costs the square of the width, the logits the product of both.
        copies = batch.source if batch.enciphered is None else batch.enciphered
        length = max(batch.source.shape[1], copies.shape[1])
        width = max(length, batch.labels.shape[1])
        places = len(batch.source) * length + batch.labels.numel()
        if width > widest:
            widest, found["widest"] = width, indices
        if places > fullest:
            fullest, found["fullest"] = places, indices

    run.sampler.restore(place)
    return [run.data.batch(indices, 0).to(_device(run)) for indices in found.values()]


def _typical_updates(run: Run) -> tuple[float, float]:
    """Mean seconds and target tokens of a few updates on ordinary batches."""
    device, accumulate = _device(run), run.config.training.accumulate

    def make() -> list[Batch]:
        return [run.data.batch(next(run.sampler), 0).to(device) for _ in range(accumulate)]

    # In a run the teachers have read the batches by then.
    asked = run.data.top_tokens
    read = asked.seconds if isinstance(asked, AskedTeachers) else 0.0
    made = [_timed_update(run, make) for _ in range(_TIMED_UPDATES)]
    seconds = sum(each for each, _ in made)
    if isinstance(asked, AskedTeachers):
        seconds -= asked.seconds - read
    return seconds / _TIMED_UPDATES, sum(tokens for _, tokens in made) / _TIMED_UPDATES


def _timed_update(run: Run, make_batches: Callable[[], list[Batch]]) -> tuple[float, int]:
    """One update as the loop makes it: seconds and target tokens."""
    run.progress.step += 1
    seconds, report = timed_update(
        run.model, run.optimizer, make_batches, run.objective, run.config, run.precision
    )
    began = time.perf_counter()
    run.average.after_update()
    seconds += time.perf_counter() - began

    if not report.applied:
        raise DivergedError(
            f"loss or gradient of update {run.progress.step} was not finite"
            f" (loss {report.loss}, norm of the gradient {report.gradient_norm})",
            hint="look at the text and at the model's settings; with --init, at that bundle",
        )
    return seconds, report.token_count


def _validate(run: Run) -> tuple[float, int]:
    """Seconds of a whole validation, estimated from a few pairs, and the bytes of its bundle."""
    folder = run.folder.bundle_path(run.progress.step)
    tokenizers = run.data.source_tokenizer, run.data.target_tokenizer
    bundle = Bundle[SequenceModel](run.model, *tokenizers, run.config.to_table(), {})

    run.average.before_validation()
    with run.average.applied():
        each, validation = timed_validation(run.model, run.data, run.config, _VALIDATION_PAIRS)
        began = time.perf_counter()
        card = model_card(run.config, run.data, validation, run.progress, run.decider)
        save_bundle(folder, bundle, card=card, details={"step": run.progress.step, "score": 0.0})
        keeping = time.perf_counter() - began

    # Opened again for the errors that only reading shows.
    load_any_bundle(folder)
    return each * len(run.data.valid_sources) + keeping, _size(folder)


def _search(run: Run, say: Say) -> None:
    """Translate the longest validation source with the beam size of the finished model."""
    if not isinstance(run.model, Seq2Seq):
        return

    tokenizers = run.data.source_tokenizer, run.data.target_tokenizer

    # The longest takes most memory and time.
    source = max(run.data.valid_sources, key=len)

    began = time.perf_counter()
    run.model.eval()
    bundle = Bundle(run.model, *tokenizers, {}, {})
    # Only a validation gives the scale of quality that ``below`` needs.
    settings = run.config.decoding.changed({"below": None})
    Translator(bundle, settings, logs_warnings=False).translate(source)

    say(
        f"search: {time.perf_counter() - began:.2f} s for the longest validation source,"
        f" beam {run.config.decoding.beam_size}"
    )


def _save_and_load(run: Run) -> tuple[float, int]:
    """Write a checkpoint and read it again: the seconds of writing, and its bytes."""
    folder = run.folder.checkpoint_path(run.progress.step)
    began = time.perf_counter()
    save_checkpoint(folder, run.model, run.optimizer, run.average, run.state())
    seconds = time.perf_counter() - began

    load_checkpoint(folder, run.model, run.optimizer, run.average)
    return seconds, _size(folder)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _device(run: Run) -> torch.device:
    return next(run.model.parameters()).device


def _peak_memory(device: torch.device) -> int:
    """The peak memory of tensors on the accelerator, or else of the process, in bytes."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)

    return system.peak_memory()
