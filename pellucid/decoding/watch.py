"""Looking over a search's shoulder: to stop it, or to tell what it considered."""

import dataclasses
from typing import Protocol

from jaxtyping import Bool
from torch import Tensor

from pellucid.decoding.beam_state import Candidates


@dataclasses.dataclass(frozen=True)
class WatchedStep:
    """What one step of a search considered, finished and kept.

    A row is ``sentence · beam_count + beam``, where ``sentence`` counts the sentences that are
    still in the search. At the next step only those that are not ``done`` are left, and the k-th
    candidate of a sentence that ``goes_on`` is its beam k.
    """

    length: int
    """How many tokens every hypothesis had said before this step."""
    sentences: tuple[int, ...]
    """Which sentence of the input each row of the tensors below is about."""
    beam_count: int
    """How many hypotheses each sentence had before this step."""
    candidates: Candidates
    """Continuations, best first; in greedy search and sampling the one that was chosen."""
    finishes: Bool[Tensor, "sentence candidate"]
    """Those that stop here and are finished hypotheses."""
    goes_on: Bool[Tensor, "sentence candidate"]
    """Those that become the live hypotheses of the next step, if the sentence is not done."""
    done: tuple[bool, ...]
    """Whether each sentence leaves the search: nothing better can come, or it has enough."""


class SearchWatcher(Protocol):
    """Handed to a search, it is called at every step; whatever it raises ends the search."""

    @property
    def wants_steps(self) -> bool:
        """Whether ``saw_step`` is to be called; if not, watching costs nothing."""
        ...

    def before_step(self, length: int) -> None:
        """Called before the model reads token number ``length``, counted from 0.

        Batches that are searched side by side call it each from a thread of its own, unless
        ``wants_steps``. Raises CancelledError to end the search.
        """
        ...

    def saw_step(self, step: WatchedStep) -> None:
        """Called after each step if ``wants_steps``."""
        ...
