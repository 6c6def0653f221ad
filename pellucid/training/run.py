"""The state of a training run: ``Run`` holds all of it, ``Progress`` its counts and best scores."""

import dataclasses
import functools
import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from pellucid.core.errors import CorruptError
from pellucid.evaluation.scoring import Decider
from pellucid.model.seq2seq import SequenceModel
from pellucid.text.batching import BatchSampler
from pellucid.text.corpus.facts import PairSample, corpus_facts
from pellucid.training.averaging import Average
from pellucid.training.checkpoint import FileStamps
from pellucid.training.config import RunConfig, TrainingConfig
from pellucid.training.data import TrainingData
from pellucid.training.distributed import ALONE, ProcessGroup, restore_stream
from pellucid.training.folder import RunFolder
from pellucid.training.journal import Journal
from pellucid.training.objective import Objective
from pellucid.training.precision import LossScale, Precision
from pellucid.training.recipe import expected_quality
from pellucid.training.step import SpikeWatch
from pellucid.training.verdict import FINE_TUNED, Verdict, verdict

_log = logging.getLogger("pellucid")


@dataclasses.dataclass
class Progress:
    """Counts and best scores of a run; saved in every checkpoint."""

    step: int = 0
    """Updates attempted, skipped ones included."""
    seconds: float = 0.0
    """Time spent in this run, all resumed parts together."""
    target_tokens: int = 0
    """Target tokens learned from, EOS included, padding not."""
    skipped_steps: int = 0
    """Updates left out because something was not finite, or as spikes."""
    skipped_in_a_row: int = 0
    """The number of updates, up to the last one, that were left out because something was not
    finite."""
    spikes: int = 0
    """Updates whose gradient was far longer than recent ones."""
    rollbacks: int = 0
    """How often the run went back to a checkpoint because it had become NaN or infinite."""
    rate_factor: float = 1.0
    """The product of the factors by which rollbacks change the learning rate: each halves it."""
    good_step: int = 0
    """The step of the checkpoint that the run would go back to."""
    best_score: float | None = None
    """The best validation figure so far; higher is better, a loss counts negative."""
    best_ties: list[float] = dataclasses.field(default_factory=list)
    """The figures that decided beside an equal score, higher is better."""
    best_step: int = 0
    best_regular_score: float | None = None
    """The best of the regular validations, by which patience and plateaus count."""
    best_regular_ties: list[float] = dataclasses.field(default_factory=list)
    ranking: str = ""
    """By what and on which text models were ranked so far: only such scores are compared."""
    validations_since_best: int = 0
    validated_step: int = 0
    """The step of the last validation."""
    rate_reductions: int = 0
    """How often the schedule ``plateau`` has lowered the rate."""
    validations_at_this_rate: int = 0
    """Validations in a row without a new best since the rate was last lowered."""

    def state(self) -> dict[str, Any]:
        """Return the progress as plain values."""
        return dataclasses.asdict(self)

    def figures(self) -> dict[str, Any]:
        """The same for the journal, whose clock counts milliseconds in every line."""
        return {**self.state(), "seconds": round(self.seconds, 3)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over ``state`` in place, because other objects hold a reference to this one."""
        for field in dataclasses.fields(self):
            setattr(self, field.name, state[field.name])

    def rank_by(self, ranking: str) -> bool:
        """Compare scores of this ranking from now on; False if the earlier ones were of another.

        Those are then forgotten: a figure of other text, or another figure, is no bar to pass.
        """
        goes_on = self.ranking in ("", ranking)
        if not goes_on:
            self.best_score = self.best_regular_score = None
            self.best_ties, self.best_regular_ties, self.best_step = [], [], 0
            self.validations_since_best = self.validations_at_this_rate = 0
        self.ranking = ranking
        return goes_on

    def note_score(
        self, score: float, ties: Sequence[float] = (), *, is_regular: bool = True
    ) -> bool:
        """Record a validation figure; True if it is the best so far, which NaN never is.

        ``ties`` decide between equal scores. Only regular validations count for patience and
        plateaus, and only beside each other: a run that is prolonged decides as one that did not
        end between two of them. A model that has nothing wrong cannot get better, so what ties
        decide among such is no progress.
        """
        self.validated_step = self.step

        is_best = _is_above(score, ties, self.best_score, self.best_ties)
        if is_best:
            self.best_score, self.best_ties, self.best_step = score, [*ties], self.step

        if is_regular:
            before = self.best_regular_score
            is_above = _is_above(score, ties, before, self.best_regular_ties)
            if is_above:
                self.best_regular_score, self.best_regular_ties = score, [*ties]
            is_above = is_above and (before is None or before < _PERFECT)
            self.validations_since_best = 0 if is_above else self.validations_since_best + 1
            self.validations_at_this_rate = 0 if is_above else self.validations_at_this_rate + 1

        return is_best

    def note_plateau(self, config: TrainingConfig) -> bool:
        """Lower the learning rate if the schedule ``plateau`` requires it; True if it does."""
        if config.schedule != "plateau":
            return False
        if self.validations_at_this_rate < config.plateau_patience:
            return False

        self.rate_reductions += 1
        self.validations_at_this_rate = 0
        return True

    def reason_to_stop(self, config: TrainingConfig, epoch: int) -> str | None:
        """Return the limit that has been reached, if any."""
        # In the order of LIMITS: where several are reached at once, the journal names the first.
        if config.max_steps is not None and self.step >= config.max_steps:
            return "max_steps"
        if config.max_epochs is not None and epoch >= config.max_epochs:
            return "max_epochs"
        if config.max_minutes is not None and self.seconds >= 60.0 * config.max_minutes:
            return "max_minutes"
        if config.patience is not None and self.validations_since_best >= config.patience:
            return "patience"
        return None

    def share_done(self, config: TrainingConfig, epochs: float = 0.0) -> float:
        """How much of the run is done, 0 to 1, by whichever limit is nearest.

        ``epochs`` is the number of passes over the text so far.
        """
        shares = [0.0]
        if config.max_epochs is not None:
            shares.append(epochs / config.max_epochs)
        if config.max_steps is not None:
            shares.append(self.step / config.max_steps)
        if config.max_minutes is not None:
            shares.append(self.seconds / (60.0 * config.max_minutes))
        return min(1.0, max(shares))


_PERFECT = 99.999
"""Percent; a score of 100 that was computed in floating point."""


def _is_above(
    score: float, ties: Sequence[float], best: float | None, best_ties: Sequence[float]
) -> bool:
    # Every comparison with NaN is false, so that NaN is never the best.
    if best is None or score != best:
        return score > (-math.inf if best is None else best)
    return tuple(ties) > tuple(best_ties)


@dataclasses.dataclass
class Run:
    """Everything that changes during training, and where it is recorded."""

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
    process_group: ProcessGroup = ALONE
    spikes: SpikeWatch = dataclasses.field(default_factory=SpikeWatch)
    loss_scale: LossScale | None = None
    """Used with float16 only."""
    intact: set[FileStamps] = dataclasses.field(default_factory=set)
    """Stamps of checkpoints that were found intact, so that a save need not hash them again."""

    @functools.cached_property
    def decider(self) -> Decider:
        """The validation figure that decides what is best."""
        if not self.config.model.translates:
            return Decider("loss")
        return self.data.decider(self.config.training.best_by)

    @functools.cached_property
    def ranking(self) -> str:
        """Names the figure that decides, how it is counted and on which text."""
        name = self.decider.name
        words = f" tok:{self.data.scoring.tokenize}" if name == "bleu" else ""
        return f"{name}{words} valid:{self.data.valid_hash}"

    def verdict(self) -> Verdict | None:
        """How good the best model so far is; None if none was validated by translations."""
        best, pairs = self.progress.best_score, len(self.data.rows)
        return verdict(self.decider.name, best, self.passes, pairs)

    def expected(self) -> str | None:
        """The quality to expect of the run; None for the phrasebook and for plain text."""
        config, pairs = self.config, len(self.data.rows)
        if not config.model.translates or not config.data.source:
            return None
        if config.training.init is not None:
            return FINE_TUNED

        batches = self.sampler.epoch_batch_count
        limits = [math.inf]
        if config.training.max_steps is not None:
            limits.append(config.training.max_steps * config.training.accumulate)
        if config.training.max_epochs is not None:
            limits.append(config.training.max_epochs * batches)
        mean_tokens = float(self.data.store.target_lengths.mean())
        # the kind of text is that of the validation text, whose lines are at hand
        sample = PairSample(pairs, self.data.valid_sources, self.data.valid_references)
        tokens = min(limits) / max(batches, 1) * mean_tokens * pairs
        return str(expected_quality(corpus_facts(sample), tokens))

    @property
    def passes(self) -> float:
        """How often the text has been read."""
        # With several blocks the number of batches is an estimate, which may make this jump a
        # little.
        return self.sampler.epoch + self.sampler.position / max(1, self.sampler.epoch_batch_count)

    def rank_validations(self) -> None:
        """Compare the scores of validations with those of this figure and this text alone."""
        if not self.progress.rank_by(self.ranking):
            _log.warning(
                "this run was validated on other text or by another figure until now: what is best"
                " is decided again from here"
            )

    @property
    def pace(self) -> list[float | None]:
        """The settings that may be changed to resume a diverged run, as they are now."""
        config = self.config.training
        return [config.learning_rate, config.warmup_steps, config.clip_norm]

    @property
    def share_done(self) -> float:
        """How much of the run is done, 0 to 1."""
        return self.progress.share_done(self.config.training, self.passes)

    def state(self) -> dict[str, Any]:
        """Return the content of a checkpoint besides tensors."""
        return {
            "step": self.progress.step,
            "progress": self.progress.state(),
            "sampler": self.sampler.state(),
            "dropout": self.model.dropout_source.state(),
            "gradient_norms": self.spikes.state(),
            "data": self.data.fingerprints(),
            "pace": self.pace,
            "precision": self.precision,
            "loss_scale": None if self.loss_scale is None else self.loss_scale.state(),
            "threads": torch.get_num_threads(),
            "torch": torch.__version__,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to where ``state`` was taken; tensors are put back by ``load_checkpoint``.

        Raises CorruptError if it is of another version, ConfigError if it is of other text.
        """
        try:
            # Before the position in the data is restored: with other text it would mean other
            # pairs.
            self.data.refuse_other(state["data"])

            self.progress.restore(state["progress"])
            self.rank_validations()
            self.sampler.restore(state["sampler"])
            restore_stream(self.model, state, self.config.training.seed, self.process_group.world)
            self.spikes.restore(state["gradient_norms"])
            self.precision = state["precision"]
            if self.loss_scale is not None:
                self.loss_scale.restore(state["loss_scale"])
        except (KeyError, TypeError) as error:
            raise CorruptError(
                f"the state of the checkpoint must be of this version, and {error} is not as it is"
                " here",
                hint="finish the run with the version it began with, or start another",
            ) from error
