"""KV caches: the states of self-attention and of cross-attention (EQ-130)."""

import dataclasses
import threading

import torch
from jaxtyping import Float
from torch import Tensor

from pellucid.model.state import Kept

_ROOM = 8
"""A cache grows by this many slots per beam. Of 4, 8, 16 and 32, 8 was fastest, measured
when beams were still copied at every step."""


class FilledSlots:
    """How many slots of a cache's tensors are filled, so that caches may share the tensors.

    A cache reads only the slots that were filled when it was made. The first step from it writes
    the next slots in place. A second step from the same cache, and any step while gradients are
    recorded, gets copies.
    """

    def __init__(self, taken: int) -> None:
        # -1 matches no cache: a write in place would spoil what autograd saved
        self._taken = taken if torch.is_inference_mode_enabled() else -1
        self._lock = threading.Lock()

    def take(self, first: int, count: int) -> bool:
        """Whether the caller may write ``count`` slots; true for one caller only."""
        # two threads may step from the same state; the check and the claim must be one
        with self._lock:
            if self._taken != first or not torch.is_inference_mode_enabled():
                return False
            self._taken += count
            return True


@dataclasses.dataclass(frozen=True)
class KeyValueCache:
    """Keys and values of the tokens already read, in the slots that ``Step`` numbers.

    Nothing is copied when a search reorders or replaces the beams of a sentence.
    """

    packed: Float[Tensor, "sentence slot width"]
    """The keys of all heads and then the values of all heads, as the projection gives them: one
    copy fills a slot."""
    taken: int
    """How many slots are filled; there may be room for more."""
    filled: FilledSlots

    def with_newest(self, newest: Float[Tensor, "row width"]) -> "KeyValueCache":
        """The cache with one more filled slot for each beam of a sentence."""
        packed, filled = self.packed, self.filled
        sentences, room, width = packed.shape
        count = newest.shape[0] // sentences
        end = self.taken + count

        if end > room or not filled.take(self.taken, count):
            # room for several steps, so that most steps copy nothing; in the dtype of what is
            # computed, which an empty cache does not know yet
            packed = newest.new_empty((sentences, self.taken + _ROOM * count, width))
            packed[:, : self.taken] = self.packed[:, : self.taken]
            filled = FilledSlots(end)

        # (sentence · beam, width) → (sentence, beam, width): a slot for each beam
        packed.narrow(1, self.taken, count).copy_(newest.view(sentences, count, width))
        return KeyValueCache(packed, end, filled)

    def select(self, kept: Kept) -> "KeyValueCache":
        """Keep these sentences; which beam has which slots is not known here."""
        if kept.sentences is None:
            return self
        # the copied tensor is this cache's own, so its free slots may be filled in place
        own = self.packed.index_select(0, kept.sentences)
        return KeyValueCache(own, self.taken, FilledSlots(self.taken))


@dataclasses.dataclass(frozen=True)
class SourceCache:
    """Keys and values of the source, computed once; the beams of a sentence share them."""

    keys: Float[Tensor, "sentence heads source key_size"]
    values: Float[Tensor, "sentence heads source value_size"]

    def select(self, kept: Kept) -> "SourceCache":
        """Keep these sentences."""
        if kept.sentences is None:
            return self
        return SourceCache(self.keys[kept.sentences], self.values[kept.sentences])
