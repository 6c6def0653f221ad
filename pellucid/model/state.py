"""Keys and values of the tokens already read, kept as values (EQ-130)."""

import dataclasses
import threading

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

_ROOM = 8
"""A cache grows by this many slots per beam. Of 4, 8, 16 and 32, 8 was fastest, measured
when beams were still copied at every step."""


@dataclasses.dataclass(frozen=True)
class LayerCache:
    """The KV cache of one decoder layer.

    The beams of a sentence share the keys and values of its source, and the slots for target
    tokens: a slot is filled once, and each hypothesis knows which slots are its own. So nothing
    is copied when a search reorders or replaces the beams.
    """

    memory_keys: Float[Tensor, "sentence heads source key_size"]
    memory_values: Float[Tensor, "sentence heads source value_size"]
    keys: Float[Tensor, "sentence slot heads key_size"]
    values: Float[Tensor, "sentence slot heads value_size"]

    def with_room(self, taken: int, slots: int) -> "LayerCache":
        """A copy with room for ``slots`` tokens, of which the first ``taken`` are filled."""
        keys, values = (_with_room(each, taken, slots) for each in (self.keys, self.values))
        return LayerCache(self.memory_keys, self.memory_values, keys, values)

    def write(
        self,
        first: int,
        key: Float[Tensor, "row heads 1 key_size"],
        value: Float[Tensor, "row heads 1 value_size"],
    ) -> None:
        """Fill a slot for each beam of a sentence, from the ``first`` on."""
        sentences = self.keys.shape[0]
        end = first + key.shape[0] // sentences

        # (sentence · beam, heads, 1, size) → (sentence, beam, heads, size): a slot for each beam
        self.keys[:, first:end] = key.view(sentences, -1, *key.shape[1::2])
        self.values[:, first:end] = value.view(sentences, -1, *value.shape[1::2])


@dataclasses.dataclass(frozen=True)
class Ancestry:
    """The slots that the newest tokens fill, and the slots they may attend to."""

    first_slot: int
    slots: Int[Tensor, "sentence beam length"]
    """The slots of the tokens of each hypothesis, in order, the newest last."""
    may_attend: Bool[Tensor, "sentence 1 beam slot"] | None
    """The same as a mask; None if there is one beam, to which all slots belong."""

    @property
    def end(self) -> int:
        """The number of filled slots after this step."""
        return self.first_slot + self.slots.shape[1]

    @property
    def position(self) -> int:
        """The position of the newest tokens in their sentences, from 0."""
        return self.slots.shape[2] - 1

    def in_order(
        self, cached: Float[Tensor, "sentence slot heads size"]
    ) -> Float[Tensor, "row heads length size"]:
        """The keys or values of each hypothesis alone, copied in the order of its tokens."""
        # (sentence, 1, 1): with ``slots`` it indexes each sentence's own cache
        sentences = torch.arange(cached.shape[0], device=cached.device)[:, None, None]
        # (sentence, beam, length, heads, size) → (sentence · beam, heads, length, size)
        return cached[sentences, self.slots].flatten(0, 1).transpose(1, 2)


class FilledSlots:
    """How many slots of a cache's tensors are filled, so that states may share the tensors.

    A state reads only the slots that were filled when it was made. The first step from it writes
    the next slots in place. A second step from the same state, and any step while gradients are
    recorded, gets copies.
    """

    def __init__(self, taken: int) -> None:
        # -1 matches no state: a write in place would spoil what autograd saved
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
class TransformerState:
    """The state of a stack of decoder blocks; a row is ``sentence · beam_count + beam``.

    A model of plain text has no source: its memory has the length 0.
    """

    layers: tuple[LayerCache, ...]
    filled: FilledSlots
    memory_may_attend: Bool[Tensor, "sentence source"]
    slots: Int[Tensor, "sentence beam length"]
    """The slots of the tokens of each hypothesis in the caches, in order."""
    taken: int
    """How many slots of the caches are filled, those of dropped hypotheses included."""

    @property
    def sentence_count(self) -> int:
        """How many source sentences are being translated."""
        return self.slots.shape[0]

    @property
    def beam_count(self) -> int:
        """How many hypotheses each of them has."""
        return self.slots.shape[1]

    @property
    def length(self) -> int:
        """How many tokens have been fed so far."""
        return self.slots.shape[2]

    def writable(self) -> tuple[tuple[LayerCache, ...], FilledSlots]:
        """Caches whose next slots, one for each beam, only the caller may write."""
        count = self.beam_count
        if not self.layers:
            return (), FilledSlots(self.taken + count)
        if self.taken + count <= self.layers[0].keys.shape[1] and self.filled.take(
            self.taken, count
        ):
            return self.layers, self.filled

        # room for several steps, so that most steps copy nothing
        room = self.taken + _ROOM * count
        layers = tuple(layer.with_room(self.taken, room) for layer in self.layers)
        return layers, FilledSlots(self.taken + count)

    def ancestry(self) -> Ancestry:
        """The ancestry after one more token for every hypothesis."""
        end = self.taken + self.beam_count
        newest = torch.arange(self.taken, end, device=self.slots.device)[None, :, None]

        # one slot for each beam: beam b of every sentence fills slot taken + b
        slots = torch.cat([self.slots, newest.expand(self.sentence_count, -1, -1)], dim=-1)

        # every slot belongs to the one hypothesis, so there is nothing to mask
        if slots.shape[2] == end:
            return Ancestry(self.taken, slots, None)

        # (sentence, 1, beam, slot): True at the slots of each hypothesis, for all heads
        nothing = torch.zeros((*slots.shape[:2], end), dtype=torch.bool, device=slots.device)
        return Ancestry(self.taken, slots, nothing.scatter(2, slots, True)[:, None])

    def after(
        self, layers: tuple[LayerCache, ...], filled: FilledSlots, ancestry: Ancestry
    ) -> "TransformerState":
        """The state after a step that filled the slots of ``ancestry`` in ``layers``."""
        return dataclasses.replace(
            self, layers=layers, filled=filled, slots=ancestry.slots, taken=ancestry.end
        )

    def without_sentences(self) -> "TransformerState":
        """The state after a step that no sentence took: only the length grows."""
        newest = self.slots.new_empty(0, self.beam_count, 1)
        slots = torch.cat([self.slots, newest], dim=-1)
        return dataclasses.replace(self, slots=slots, taken=self.taken + self.beam_count)

    def select(self, rows: Int[Tensor, "sentence beam"]) -> "TransformerState":
        """Keep these rows; the beams of a new sentence must all come from one old sentence."""
        slots = self.slots.flatten(0, 1)[rows]

        # the first beam tells: all of them come from one sentence
        sentences = rows[:, 0] // self.beam_count

        # the usual step: every sentence goes on, so only the slots of its beams change
        if rows.shape[0] == self.sentence_count and torch.equal(
            sentences, torch.arange(self.sentence_count, device=rows.device)
        ):
            return dataclasses.replace(self, slots=slots)

        layers = tuple(
            LayerCache(
                memory_keys=layer.memory_keys[sentences],
                memory_values=layer.memory_values[sentences],
                keys=layer.keys.index_select(0, sentences),
                values=layer.values.index_select(0, sentences),
            )
            for layer in self.layers
        )
        may_attend = self.memory_may_attend[sentences]

        # the copied tensors are this state's own, so their free slots may be filled in place
        return TransformerState(layers, FilledSlots(self.taken), may_attend, slots, self.taken)


def _with_room(
    old: Float[Tensor, "sentence slot heads size"], taken: int, slots: int
) -> Float[Tensor, "sentence more heads size"]:
    sentences, _, heads, size = old.shape
    new = old.new_empty((sentences, slots, heads, size))
    new[:, :taken] = old[:, :taken]
    return new
