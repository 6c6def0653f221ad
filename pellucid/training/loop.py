"""The training loop: update, validate, save, until a limit is reached or a stop is requested."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from pellucid.bundle import (
    LONGEST_KEY,
    MODEL_FILE,
    QUALITY_KEY,
    UNSURE_KEY,
    VALIDATION_KEY,
    Bundle,
    save_bundle,
)
from pellucid.core import system
from pellucid.core.errors import DivergedError
from pellucid.core.files import write_folder
from pellucid.core.phases import begin_phase
from pellucid.core.tensors import save_tensors
from pellucid.core.version import __version__
from pellucid.decoding.sentences import SHARE_KEY
from pellucid.decoding.suspicious import USUAL_KEY
from pellucid.evaluation.metrics import Score
from pellucid.evaluation.signature import lines_hash, search_signature
from pellucid.model.seq2seq import SequenceModel
from pellucid.model.stored import model_tensors
from pellucid.text.batching import Batch
from pellucid.training.card import model_card
from pellucid.training.checkpoint import remove_old, save_checkpoint, stamps_of
from pellucid.training.config import validation_search
from pellucid.training.distributed import whole_model
from pellucid.training.failures import Drawn, go_back, may_apply, note_update, why_to_go_back
from pellucid.training.folder import remove_worse
from pellucid.training.run import Progress, Run
from pellucid.training.step import (
    GradientNoiseMeter,
    StepReport,
    apply_gradient,
    find_gradient,
    learning_rate,
    parameter_norm,
    update_norm,
)
from pellucid.training.validation import Validation, validate

StopRequest = Callable[[], str | None]
"""Returns why to stop after the current update, or None to continue."""


def learn(run: Run, should_stop: StopRequest) -> str:
    """Train until a limit of the config is reached or ``should_stop`` gives a reason; return it.

    A new run saves before its first update. A disk that cannot take a checkpoint is so noticed at
    once, and there is always a checkpoint to go back to. At the end the last update is saved, and
    validated too unless the run was asked to stop; then it leaves a bundle if there is none yet.

    Raises DivergedError if the run stays NaN or infinite; its last good checkpoint is kept.
    """
    meter = _Meter(run.progress)

    if run.progress.step == 0:
        begin_phase("saving the first checkpoint")
        _save(run, meter, is_regular=True)
        if run.config.training.film_every:
            _keep_frame(run, meter)

    begin_phase("training")

    while True:
        # All processes must leave the loop at the same update, or the others would wait for ever
        # in the next all-reduce: so they agree on the request and on the clock.
        asked, run.progress.seconds = run.process_group.agree(should_stop(), run.progress.seconds)
        reason = asked or run.progress.reason_to_stop(run.config.training, run.sampler.epoch)

        if reason is None:
            _advance(run, meter)
        elif _went_back(run, meter, look_inside=True):
            # The run ended in NaN: it has gone back, and trains again from there unless it was
            # asked to stop. The checkpoint that it went back to is on the disk already.
            if asked is not None:
                break
        elif (
            asked is not None
            or run.progress.validated_step == run.progress.step
            or _validate_and_keep(run, meter, is_regular=False)
        ):
            break

    _save(run, meter, is_regular=False)
    if run.progress.validated_step == 0 < run.progress.step:
        _keep_unvalidated(run)
    return reason


def _advance(run: Run, meter: "_Meter") -> None:
    """Make one update, then log, validate and save where they are due."""
    config = run.config.training

    report, rate = _one_update(run)
    meter.add(report)

    step = run.progress.step
    if step % config.log_every == 0:
        run.journal.write("train", meter.figures(run, report, rate))

    # Before anything is kept, every tensor is searched for NaN, not only loss and gradient.
    validates, saves = step % config.validate_every == 0, step % config.save_every == 0
    films = bool(config.film_every) and step % config.film_every == 0
    if _went_back(run, meter, look_inside=validates or saves or films):
        return

    if films:
        _keep_frame(run, meter)

    # While updates are left out the run may be about to go back: its good checkpoint must stay, and
    # a validation would count.
    is_well = run.progress.skipped_in_a_row == 0
    if is_well and validates and not _validate_and_keep(run, meter, is_regular=True):
        return
    if is_well and saves:
        _save(run, meter, is_regular=True)


def _one_update(run: Run) -> tuple[StepReport, float]:
    config, progress = run.config.training, run.progress
    progress.step += 1

    share_done = run.share_done
    width, lowered = run.config.model.d_model, progress.rate_reductions
    rate = learning_rate(config, width, progress.step, share_done, lowered)

    # A half for each rollback.
    rate *= progress.rate_factor

    drawn, batches = _next_batches(run)
    report = find_gradient(
        run.model, run.optimizer, batches, run.objective, config, run.precision, run.process_group
    )

    # Before the decision to skip: an overflow is expected now and then, and only halves the scale.
    if run.loss_scale is not None:
        run.loss_scale.note(is_finite=report.is_finite)

    if may_apply(run, report):
        report = apply_gradient(run.optimizer, report, rate, run.precision)
        run.average.after_update()

    if report.applied:
        progress.target_tokens += report.token_count
    note_update(run, report, drawn)
    return report, rate


def _next_batches(run: Run) -> tuple[list[Drawn], list[Batch]]:
    """The batches of the next update, of all processes, and this process's share as tensors."""
    device = next(run.model.parameters()).device

    # Every process draws all the batches of the update and then takes its share: the order stays
    # that of a single process, whatever their number.
    drawn = []
    for _ in range(run.config.training.accumulate):
        epoch, position = run.sampler.epoch, run.sampler.position
        if position == 0:
            run.data.store.check_files()  # once an epoch
        drawn.append(Drawn(epoch, position, next(run.sampler)))

    shares = run.process_group.share([each.indices for each in drawn])
    return drawn, [
        share.taught(run.data.batch(share.indices, drawn[share.place].epoch)).to(device)
        for share in shares
    ]


def _went_back(run: Run, meter: "_Meter", *, look_inside: bool) -> bool:
    """Go back to the last good checkpoint if the run has become NaN or infinite; True if it did."""
    return _turned_back(run, meter, why_to_go_back(run, look_inside=look_inside))


def _turned_back(run: Run, meter: "_Meter", why: str | None) -> bool:
    if why is None:
        return False
    meter.tick()
    go_back(run, why)
    meter.restart()
    return True


def _validate_and_keep(run: Run, meter: "_Meter", *, is_regular: bool) -> bool:
    """Let the first process validate the averaged parameters and write them as a bundle.

    If the loss is not finite, nothing is written and the run goes back; False then.

    A validation that is not regular, at the end of a run between two regular ones, affects no
    decision: if the run is prolonged, it continues as if it had not ended there.
    """
    meter.tick()
    run.data.store.confirm()  # nothing learned from damaged data is kept
    if is_regular:
        run.average.before_validation()

    # Gathering a sharded model needs all processes; validating it needs only the first.
    world = run.process_group.world
    with run.average.applied(with_present=not is_regular):
        model = whole_model(run.model, run.process_group)
        problem = world.by_first(lambda: _validate(run, meter, model, is_regular=is_regular))

    # All processes go back together, after the averaged parameters have given way to the run's own.
    if _turned_back(run, meter, world.from_first(problem)):
        return False

    # The others take over the first's scores: patience and plateau must decide alike everywhere.
    run.progress.restore(world.from_first(run.progress.state()))
    return True


def _validate(run: Run, meter: "_Meter", model: SequenceModel, *, is_regular: bool) -> str | None:
    """Why the run must go back, if the loss is not finite; else the bundle is kept."""
    begin_phase("validating")
    try:
        validation = validate(model, run.data, run.config, run.progress.step)
    except DivergedError as error:
        return str(error)

    score, *ties = validation.rank(run.decider.name)
    is_best = run.progress.note_score(score, ties, is_regular=is_regular)
    lowered = is_regular and run.progress.note_plateau(run.config.training)

    _keep_bundle(run, model, validation)
    meter.tick()

    figures = {
        "step": run.progress.step,
        "seconds": round(run.progress.seconds, 3),
        "cpu_seconds": round(time.process_time(), 3),
        "validation_seconds": round(validation.seconds, 3),
        "is_best": is_best,
        "decided_by": run.decider.name,
        "ranking": run.ranking,
        "rate_lowered": lowered,
        **validation.figures(),
    }
    run.journal.write("validation", figures)
    return None


def _keep_unvalidated(run: Run) -> None:
    """Write the model as a bundle without a score, so that a run stopped early leaves a model.

    It is not validated: a model that has learned little translates slowly, and the user who
    stopped the run is waiting.
    """
    begin_phase("saving the model")
    world = run.process_group.world
    with run.average.applied(with_present=True):
        model = whole_model(run.model, run.process_group)
        world.by_first(lambda: _keep_bundle(run, model, None))


def _keep_bundle(run: Run, model: SequenceModel, validation: Validation | None) -> None:
    tokenizers = run.data.source_tokenizer, run.data.target_tokenizer
    bundle = Bundle[SequenceModel](
        model, *tokenizers, run.config.to_table(), {}, seen_words=run.data.seen_words
    )

    step = run.progress.step
    details: dict[str, Any] = {"step": step}
    if validation is None:
        details["validated"] = False
    else:
        score, *ties = validation.rank(run.decider.name)
        details |= {"score": score, "ties": ties}
        details |= {"score_by": run.decider.name, "ranking": run.ranking}
    if run.config.model.translates:
        details[SHARE_KEY] = run.data.several_sentences
        details[USUAL_KEY] = run.data.usual_warnings
        if run.config.training.init is None:
            details[LONGEST_KEY] = run.data.longest_source
    if validation is not None and validation.translations is not None:
        if validation.unsure_below is not None:
            details[UNSURE_KEY] = validation.unsure_below
        if validation.quality_points is not None:
            details[QUALITY_KEY] = validation.quality_points
        details[VALIDATION_KEY] = _signed(run, validation.translations)

    save_bundle(
        run.folder.bundle_path(step),
        bundle,
        card=model_card(run.config, run.data, validation, run.progress, run.decider),
        details=details,
    )
    remove_worse(run.folder.path, run.config.training.keep_bundles)


def _signed(run: Run, scores: Mapping[str, Score]) -> dict[str, tuple[float, str]]:
    """Each score with what is needed to repeat it: metric, search, text and program."""
    origin = (
        f"search:{search_signature(validation_search(run.config))}"
        f"|source:{lines_hash(run.data.valid_sources)}"
        f"|reference:{lines_hash(run.data.valid_references)}|pellucid:{__version__}"
    )
    return {name: (each.score, f"{each.signature}|{origin}") for name, each in scores.items()}


def _keep_frame(run: Run, meter: "_Meter") -> None:
    """Write the parameters as they are now, not averaged, for a film of the run."""
    meter.tick()
    run.data.store.confirm()
    model = whole_model(run.model, run.process_group)
    step = run.progress.step

    run.process_group.world.by_first(
        lambda: write_folder(
            run.folder.frame_path(step),
            lambda folder: save_tensors(folder / MODEL_FILE, model_tensors(model)),
            details={"kind": "frame", "step": step},
        )
    )


def _save(run: Run, meter: "_Meter", *, is_regular: bool) -> None:
    """Write a checkpoint. The run may later go back to a regular one, even after it was stopped.

    The checkpoint at which a run happens to be stopped is not regular: a run that goes back must
    find the same checkpoint as one that was never stopped.
    """
    meter.tick()
    if run.progress.step > 0:  # before the first update nothing has been learned from the data
        run.data.store.confirm()
    if is_regular:
        run.progress.good_step = run.progress.step

    path = run.folder.checkpoint_path(run.progress.step)
    run.process_group.require_equal(run.model)
    save_checkpoint(path, run.model, run.optimizer, run.average, run.state(), run.process_group)

    # Old checkpoints are removed only now that the new one is whole on the disk.
    good = run.folder.checkpoint_path(run.progress.good_step)
    keep = run.config.training.keep_checkpoints

    def remove() -> None:
        run.intact.add(stamps_of(path))  # its files were hashed when they were written
        remove_old(run.folder.path, keep, needed=good, seen=run.intact)

    run.process_group.world.by_first(remove)


class _Meter:
    """The run's clock, and sums over the updates between two lines of the journal."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._last_tick = time.perf_counter()
        self._noise = GradientNoiseMeter()
        self.restart()

    def restart(self) -> None:
        """Start counting again."""
        self._tokens, self._loss, self._likelihood = 0, 0.0, 0.0
        self._since = self._progress.seconds

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
        """Means since the last call, None if no update was applied; then counting starts again."""
        progress, tokens = self._progress, self._tokens
        elapsed = max(1e-9, progress.seconds - self._since)  # a coarse clock may not have moved

        figures = {
            "step": progress.step,
            "epoch": run.sampler.epoch,
            "seconds": round(progress.seconds, 3),
            "cpu_seconds": round(time.process_time(), 3),
            "loss": self._loss / tokens if tokens else None,
            "negative_log_likelihood": self._likelihood / tokens if tokens else None,
            "learning_rate": rate,
            "gradient_norm": report.gradient_norm,
            "gradient_noise_scale": self._noise.scale(),
            "parameter_norm": parameter_norm(run.optimizer, run.process_group),
            "update_norm": update_norm(run.optimizer, run.process_group) if report.applied else 0.0,
            "target_tokens": progress.target_tokens,
            "tokens_per_second": round(tokens / elapsed, 1),
            "peak_memory_mb": system.peak_memory() >> 20,
            "share_done": round(run.share_done, 4),
        }

        self.restart()
        return figures
