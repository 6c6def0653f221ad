"""The loop: update, look, save, until a limit is reached or someone asks to stop."""

import dataclasses
import logging
import resource
import time
from collections.abc import Callable
from typing import Any

import torch

from pellucid.bundle import Bundle, save_bundle
from pellucid.core.errors import DivergedError
from pellucid.model import SequenceModel
from pellucid.text.batching import Batch, BatchSampler
from pellucid.training.averaging import Average
from pellucid.training.bundles import remove_worse
from pellucid.training.card import model_card
from pellucid.training.checkpoint import remove_old, save_checkpoint
from pellucid.training.config import RunConfig
from pellucid.training.data import TrainingData
from pellucid.training.folder import RunFolder
from pellucid.training.journal import Journal
from pellucid.training.noise import NoiseMeter
from pellucid.training.norms import parameter_norm, update_norm
from pellucid.training.objective import Objective
from pellucid.training.precision import Precision
from pellucid.training.progress import Progress
from pellucid.training.schedule import learning_rate
from pellucid.training.step import StepReport, update
from pellucid.training.validation import Validation, validate

MOST_SKIPPED_IN_A_ROW = 10
"""So many updates in a row that are not finite end the run (reliability N2)."""

StopRequest = Callable[[], str | None]
"""Says why to stop after the present update, or None to go on."""

_log = logging.getLogger("pellucid")


@dataclasses.dataclass
class Run:
    """All that changes while a model learns, and where it is recorded."""

    config: RunConfig
    folder: RunFolder
    journal: Journal
    data: TrainingData
    model: SequenceModel
    optimizer: torch.optim.Optimizer
    average: Average
    sampler: BatchSampler
    objective: Objective
    progress: Progress
    precision: Precision

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps besides tensors."""
        return {
            "step": self.progress.step,
            "progress": self.progress.state(),
            "sampler": self.sampler.state(),
            "data": self.data.fingerprints(),
            "dropout": self.model.dropout_source.state(),
            "precision": self.precision,
            "threads": torch.get_num_threads(),
            "torch": torch.__version__,
        }


def learn(run: Run, should_stop: StopRequest) -> str:
    """Train until a limit of the config is reached or ``should_stop`` says so; the reason.

    Whatever the reason, the last update is validated (unless asked to stop) and saved.
    Raises DivergedError after ten updates in a row that were not finite; the last good
    checkpoint stays as it is.
    """
    config = run.config.training
    meter = _Meter(run.progress)
    while True:
        asked = should_stop()
        reason = asked or run.progress.reason_to_stop(config, run.sampler.epoch)
        if reason is not None:
            break
        report, rate = _one_update(run)
        meter.add(report)
        step = run.progress.step
        if step % config.log_every == 0:
            run.journal.write("train", meter.figures(run, report, rate))
        if step % config.validate_every == 0:
            _validate_and_keep(run, meter)
        if step % config.save_every == 0:
            _save(run, meter)
    if asked is None and run.progress.validated_step != run.progress.step:
        _validate_and_keep(run, meter)
    _save(run, meter)
    return reason


def _one_update(run: Run) -> tuple[StepReport, float]:
    config, progress = run.config.training, run.progress
    progress.step += 1
    share_done = progress.share_done(config)
    width, lowered = run.config.model.d_model, progress.rate_reductions
    rate = learning_rate(config, width, progress.step, share_done, lowered)
    batches = _next_batches(run)
    report = update(run.model, run.optimizer, batches, run.objective, config, rate, run.precision)
    progress.target_tokens += report.token_count
    if report.applied:
        progress.skipped_in_a_row = 0
        run.average.after_update()
        return report, rate
    progress.skipped_steps += 1
    progress.skipped_in_a_row += 1
    skipped = {"step": progress.step, "gradient_norm": str(report.gradient_norm)}
    run.journal.write("skipped", skipped)
    if progress.skipped_in_a_row >= MOST_SKIPPED_IN_A_ROW:
        raise DivergedError(
            f"loss or gradient was not finite for {MOST_SKIPPED_IN_A_ROW} updates in a row,"
            f" up to step {progress.step}",
            hint="lower training.learning_rate or raise training.warmup_steps, then --resume",
        )
    return report, rate


def _next_batches(run: Run) -> list[Batch]:
    device = next(run.model.parameters()).device
    batches = []
    for _ in range(run.config.training.accumulate):
        epoch = run.sampler.epoch
        if run.sampler.position == 0:
            run.data.store.check_files()  # a mapped file cut short would kill the process
        batches.append(run.data.batch(next(run.sampler), epoch).to(device))
    return batches


def _validate_and_keep(run: Run, meter: "_Meter") -> None:
    """Validate the averaged parameters and write them as a bundle."""
    meter.tick()
    run.data.store.confirm()  # nothing learned from damaged data is kept
    run.average.before_validation()
    with run.average.applied():
        validation = validate(run.model, run.data, run.config, run.progress.step)
        score = validation.score(run.config.training.best_by)
        is_best = run.progress.note_score(score)
        lowered = run.progress.note_plateau(run.config.training)
        _keep_bundle(run, validation, score)
    meter.tick()
    figures = {
        "step": run.progress.step,
        "seconds": round(run.progress.seconds, 3),
        "validation_seconds": round(validation.seconds, 3),
        "is_best": is_best,
        "rate_lowered": lowered,
        **validation.figures(),
    }
    run.journal.write("validation", figures)


def _keep_bundle(run: Run, validation: Validation, score: float) -> None:
    tokenizers = run.data.source_tokenizer, run.data.target_tokenizer
    bundle = Bundle[SequenceModel](run.model, *tokenizers, run.config.to_table(), {})
    step = run.progress.step
    save_bundle(
        run.folder.bundle_path(step),
        bundle,
        card=model_card(run.config, run.data, validation, run.progress),
        details={"step": step, "score": score, "score_by": run.config.training.best_by},
    )
    remove_worse(run.folder.path, run.config.training.keep_bundles)


def _save(run: Run, meter: "_Meter") -> None:
    meter.tick()
    run.data.store.confirm()
    path = run.folder.checkpoint_path(run.progress.step)
    save_checkpoint(path, run.model, run.optimizer, run.average, run.state())
    remove_old(run.folder.path, run.config.training.keep_checkpoints)


class _Meter:
    """Clock and counters between two lines of the journal."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._last_tick = time.perf_counter()
        self._tokens = 0
        self._loss = 0.0
        self._likelihood = 0.0
        self._since = progress.seconds
        self._noise = NoiseMeter()

    def tick(self) -> None:
        """Bring the run's clock up to now."""
        now = time.perf_counter()
        self._progress.seconds += now - self._last_tick
        self._last_tick = now

    def add(self, report: StepReport) -> None:
        """Count one update."""
        self.tick()
        if report.applied:
            self._tokens += report.token_count
            self._loss += report.loss * report.token_count
            self._likelihood += report.negative_log_likelihood * report.token_count
            self._noise.add(report.two_sizes)

    def figures(self, run: Run, report: StepReport, rate: float) -> dict[str, Any]:
        """Means since the last call; then counting starts anew."""
        progress, tokens = self._progress, max(1, self._tokens)
        elapsed = max(1e-9, progress.seconds - self._since)
        figures = {
            "step": progress.step,
            "epoch": run.sampler.epoch,
            "seconds": round(progress.seconds, 3),
            "loss": self._loss / tokens,
            "negative_log_likelihood": self._likelihood / tokens,
            "learning_rate": rate,
            "gradient_norm": report.gradient_norm,
            "gradient_noise_scale": self._noise.scale(),
            "parameter_norm": parameter_norm(run.optimizer),
            "update_norm": update_norm(run.optimizer) if report.applied else 0.0,
            "target_tokens": progress.target_tokens,
            "tokens_per_second": round(self._tokens / elapsed, 1),
            "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            "share_done": round(progress.share_done(run.config.training), 4),
        }
        self._tokens, self._loss, self._likelihood = 0, 0.0, 0.0
        self._since = progress.seconds
        return figures
