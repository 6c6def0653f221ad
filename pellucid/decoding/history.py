"""The tree that a search grows, from which finished hypotheses are read back."""

import dataclasses

from jaxtyping import Float, Int
from torch import Tensor

from pellucid.core.special import STOP_ID
from pellucid.decoding.result import Hypothesis, Penalty, make_hypothesis


@dataclasses.dataclass(frozen=True)
class Step:
    """What every live hypothesis said at one step; a row is ``sentence · beam_count + beam``."""

    ids: Int[Tensor, " row"]
    log_probs: Float[Tensor, " row"]
    """log p(token | prefix, source)."""
    parents: Int[Tensor, " row"]
    """The row of the step before that each hypothesis grew from."""


@dataclasses.dataclass(frozen=True)
class Finish:
    """Where in the tree a hypothesis stopped."""

    step: int
    """It said this many tokens before it stopped."""
    row: int
    """Its row in the last of those steps."""
    log_prob: float
    """log p(stop | prefix, source)."""


class History:
    """The steps of one search, in order."""

    def __init__(self) -> None:
        self._steps: list[Step] = []
        self._lists: list[tuple[list[int], list[float], list[int]]] = []

    def append(self, step: Step) -> None:
        """Add the next step."""
        self._steps.append(step)

    def read(self, finish: Finish, penalty: Penalty) -> Hypothesis:
        """The hypothesis that stopped at ``finish``. Raises PellucidError if it is not finite."""
        for step in self._steps[len(self._lists) :]:
            self._lists.append((step.ids.tolist(), step.log_probs.tolist(), step.parents.tolist()))
        ids, log_probs = [STOP_ID], [finish.log_prob]
        row = finish.row
        for step_ids, step_log_probs, parents in reversed(self._lists[: finish.step]):
            ids.append(step_ids[row])
            log_probs.append(step_log_probs[row])
            row = parents[row]
        return make_hypothesis(ids[::-1], log_probs[::-1], penalty)
