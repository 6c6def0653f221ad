"""What a beam search holds between two steps, with a shape beside every field."""

import dataclasses
import math

from jaxtyping import Float, Int
from torch import Tensor

from pellucid.decoding.history import Finish
from pellucid.model.seq2seq import State


@dataclasses.dataclass(frozen=True)
class Live:
    """The hypotheses that go on, best first."""

    ids: Int[Tensor, "sentence beam length"]
    """What they said, START left out."""
    log_prob: Float[Tensor, "sentence beam"]
    """Summed; -inf where there is no hypothesis."""

    def take(self, rows: Int[Tensor, " kept"]) -> "Live":
        """Those of these sentences alone."""
        return Live(self.ids[rows], self.log_prob[rows])


@dataclasses.dataclass(frozen=True)
class Finished:
    """The hypotheses that stopped, best first, and where the tree holds them."""

    score: Float[Tensor, "sentence kept"]
    """Summed log-probability over the length penalty; -inf where there is no hypothesis."""
    step: Int[Tensor, "sentence kept"]
    row: Int[Tensor, "sentence kept"]
    stop_log_prob: Float[Tensor, "sentence kept"]
    count: Int[Tensor, " sentence"]
    """How many stopped so far, kept or not."""

    def take(self, rows: Int[Tensor, " kept"]) -> "Finished":
        """Those of these sentences alone."""
        return Finished(
            score=self.score[rows],
            step=self.step[rows],
            row=self.row[rows],
            stop_log_prob=self.stop_log_prob[rows],
            count=self.count[rows],
        )

    def finishes(self, index: int) -> list[Finish]:
        """The hypotheses of one sentence as plain values, best first."""
        places = zip(
            self.score[index].tolist(),
            self.step[index].tolist(),
            self.row[index].tolist(),
            self.stop_log_prob[index].tolist(),
            strict=True,
        )
        return [
            Finish(step, row, log_prob)
            for score, step, row, log_prob in places
            if score != -math.inf
        ]


@dataclasses.dataclass(frozen=True)
class SearchState:
    """All that changes from step to step; sentences that are done are no longer in it."""

    sentences: tuple[int, ...]
    """Which sentence of the input each row of the tensors is about."""
    model_state: State
    """sentence_count = len(sentences), beam_count = that of ``live``."""
    live: Live
    finished: Finished


@dataclasses.dataclass(frozen=True)
class Candidates:
    """The best continuations of a sentence's live hypotheses, best first.

    Twice as many as beams: at most one continuation of each hypothesis is a stop, so enough
    go on even if all beams stop at once.
    """

    total: Float[Tensor, "sentence candidate"]
    """Summed log-probability; -inf where there is no candidate."""
    id: Int[Tensor, "sentence candidate"]
    log_prob: Float[Tensor, "sentence candidate"]
    """log p(id | prefix, source)."""
    row: Int[Tensor, "sentence candidate"]
    """The live row it continues, ``sentence · beam_count + beam``."""
