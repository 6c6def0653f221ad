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

    keys: Float[Tensor, "sentence slot heads key_size"]
    values: Float[Tensor, "sentence slot heads value_size"]
    taken: int
    """How many slots are filled; there may be room for more."""
    filled: FilledSlots

    def with_newest(
        self,
        key: Float[Tensor, "row heads 1 key_size"],
        value: Float[Tensor, "row heads 1 value_size"],
    ) -> "KeyValueCache":
        """The cache with one more filled slot for each beam of a sentence."""
        sentences = self.keys.shape[0]
        count = key.shape[0] // sentences
        end = self.taken + count

        keys, values, filled = self.keys, self.values, self.filled
        if end > keys.shape[1] or not filled.take(self.taken, count):
            # room for several steps, so that most steps copy nothing
            room = self.taken + _ROOM * count
            keys = _with_room(keys, key, self.taken, room)
            values = _with_room(values, value, self.taken, room)
            filled = FilledSlots(end)

        # (sentence · beam, heads, 1, size) → (sentence, beam, heads, size): a slot for each beam
        keys[:, self.taken : end] = key.view(sentences, -1, *key.shape[1::2])
        values[:, self.taken : end] = value.view(sentences, -1, *value.shape[1::2])
        return KeyValueCache(keys, values, end, filled)

    def select(self, kept: Kept) -> "KeyValueCache":
        """Keep these sentences; which beam has which slots is not known here."""
        if kept.sentences is None:
            return self
        return KeyValueCache(
            self.keys.index_select(0, kept.sentences),
            self.values.index_select(0, kept.sentences),
            self.taken,
            # the copied tensors are this cache's own, so their free slots may be filled in place
            FilledSlots(self.taken),
        )


def _with_room(
    old: Float[Tensor, "sentence slot heads size"],
    newest: Float[Tensor, "row heads 1 size"],
    taken: int,
    slots: int,
) -> Float[Tensor, "sentence more heads size"]:
    sentences, _, heads, size = old.shape
    # in the dtype of what is computed: an empty cache does not know it yet
    new = newest.new_empty((sentences, slots, heads, size))
    new[:, :taken] = old[:, :taken]
    return new


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
