"""Keys and values of the tokens already read, kept as values (EQ-130)."""

import dataclasses
import threading

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

_PLACES = 8
"""Room is made for so many tokens at a time; of 4, 8, 16 and 32, 8 was fastest when beams were
still copied at every step."""


@dataclasses.dataclass(frozen=True)
class LayerCache:
    """What one decoder layer need not compute again.

    The beams of a sentence share the keys and values of its source, and the slots for target
    tokens: a slot is filled once, and each hypothesis knows which slots are its own. So nothing
    is copied when beams change places.
    """

    memory_keys: Float[Tensor, "sentence heads source key_size"]
    memory_values: Float[Tensor, "sentence heads source value_size"]
    keys: Float[Tensor, "sentence slot heads key_size"]
    values: Float[Tensor, "sentence slot heads value_size"]

    def with_room(self, taken: int, slots: int) -> "LayerCache":
        """The same in tensors of its own, with as many ``slots`` of which some are ``taken``."""
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
        self.keys[:, first:end] = key.view(sentences, -1, *key.shape[1::2])
        self.values[:, first:end] = value.view(sentences, -1, *value.shape[1::2])


@dataclasses.dataclass(frozen=True)
class Ancestry:
    """Which slots the newest tokens take, and which ones they may look at."""

    first_slot: int
    slots: Int[Tensor, "sentence beam length"]
    """Where the tokens of each hypothesis stand, in order, the newest last."""
    may_attend: Bool[Tensor, "sentence 1 beam slot"] | None
    """The same as a mask; None if there is one beam, to which all slots belong."""

    @property
    def end(self) -> int:
        """How many slots are taken."""
        return self.first_slot + self.slots.shape[1]

    @property
    def place(self) -> int:
        """Where the newest tokens stand in their sentences."""
        return self.slots.shape[2] - 1

    def in_order(
        self, cached: Float[Tensor, "sentence slot heads size"]
    ) -> Float[Tensor, "row heads length size"]:
        """Each hypothesis's own keys or values, copied together."""
        sentences = torch.arange(cached.shape[0], device=cached.device)[:, None, None]
        return cached[sentences, self.slots].flatten(0, 1).transpose(1, 2)


class Places:
    """Which slots of a cache's tensors are taken, so that states may share the tensors.

    A state sees the first slots only. Whoever goes on from it first writes the next ones;
    whoever comes second, or while gradients are recorded, gets tensors of its own.
    """

    def __init__(self, taken: int) -> None:
        self._taken = taken if torch.is_inference_mode_enabled() else -1
        self._lock = threading.Lock()

    def take(self, first: int, count: int) -> bool:
        """Whether ``count`` slots may be written by the caller, the only one to be told so."""
        with self._lock:
            if self._taken != first or not torch.is_inference_mode_enabled():
                return False
            self._taken += count
            return True


@dataclasses.dataclass(frozen=True)
class TransformerState:
    """A Transformer decoder in mid-sentence; a row is ``sentence · beam_count + beam``."""

    layers: tuple[LayerCache, ...]
    places: Places
    memory_may_attend: Bool[Tensor, "sentence source"]
    slots: Int[Tensor, "sentence beam length"]
    """Where the tokens of each hypothesis stand in the caches, in order."""
    taken: int
    """How many slots the caches have filled, for whatever hypotheses."""

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

    def writable(self) -> tuple[tuple[LayerCache, ...], Places]:
        """Caches whose next slots, one for each beam, are free and the caller's alone."""
        count = self.beam_count
        if self.taken + count <= self.layers[0].keys.shape[1] and self.places.take(
            self.taken, count
        ):
            return self.layers, self.places
        room = self.taken + _PLACES * count
        layers = tuple(layer.with_room(self.taken, room) for layer in self.layers)
        return layers, Places(self.taken + count)

    def ancestry(self) -> Ancestry:
        """That of one token more for every hypothesis."""
        end = self.taken + self.beam_count
        newest = torch.arange(self.taken, end, device=self.slots.device)[None, :, None]
        slots = torch.cat([self.slots, newest.expand(self.sentence_count, -1, -1)], dim=-1)
        if slots.shape[2] == end:
            return Ancestry(self.taken, slots, None)
        nothing = torch.zeros((*slots.shape[:2], end), dtype=torch.bool, device=slots.device)
        return Ancestry(self.taken, slots, nothing.scatter(2, slots, True)[:, None])

    def select(self, rows: Int[Tensor, "sentence beam"]) -> "TransformerState":
        """Go on with these rows alone; those of one new sentence come from one old one."""
        slots = self.slots.flatten(0, 1)[rows]
        sentences = rows[:, 0] // self.beam_count
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
        return TransformerState(layers, Places(self.taken), may_attend, slots, self.taken)


def _with_room(
    old: Float[Tensor, "sentence slot heads size"], taken: int, slots: int
) -> Float[Tensor, "sentence more heads size"]:
    sentences, _, heads, size = old.shape
    new = old.new_empty((sentences, slots, heads, size))
    new[:, :taken] = old[:, :taken]
    return new
