"""Keys and values of the tokens already read, kept as values (EQ-130)."""

import dataclasses
import threading

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

_PLACES = 8
"""Room is made for so many tokens at a time; of 4, 8, 16 and 32, 8 was fastest for beams of 5."""


@dataclasses.dataclass(frozen=True)
class LayerCache:
    """What one decoder layer need not compute again.

    The beams of a sentence share the keys and values of its source. Of the places for target
    tokens, the state's ``length`` first are filled.
    """

    memory_keys: Float[Tensor, "sentence heads source key_size"]
    memory_values: Float[Tensor, "sentence heads source value_size"]
    keys: Float[Tensor, "row place heads key_size"]
    values: Float[Tensor, "row place heads value_size"]

    def with_room(self, length: int) -> "LayerCache":
        """The same in tensors of its own, with places free after the first ``length``."""
        keys, values = (_with_room(each, length) for each in (self.keys, self.values))
        return LayerCache(self.memory_keys, self.memory_values, keys, values)

    def write(
        self,
        place: int,
        key: Float[Tensor, "row heads 1 key_size"],
        value: Float[Tensor, "row heads 1 value_size"],
    ) -> tuple[
        Float[Tensor, "row heads length key_size"], Float[Tensor, "row heads length value_size"]
    ]:
        """Fill ``place``; the keys and values up to it, as attention wants them."""
        self.keys[:, place] = key.squeeze(2)
        self.values[:, place] = value.squeeze(2)
        keys, values = self.keys[:, : place + 1], self.values[:, : place + 1]
        return keys.transpose(1, 2), values.transpose(1, 2)


class Places:
    """Which places of a cache's tensors are taken, so that states may share the tensors.

    A state sees the first places only. Whoever goes on from it first writes the next place;
    whoever comes second, or while gradients are recorded, gets tensors of its own.
    """

    def __init__(self, taken: int) -> None:
        self._taken = taken if torch.is_inference_mode_enabled() else -1
        self._lock = threading.Lock()

    def take(self, place: int) -> bool:
        """Whether ``place`` may be written by the caller, who is the only one to be told so."""
        with self._lock:
            if self._taken != place or not torch.is_inference_mode_enabled():
                return False
            self._taken += 1
            return True


@dataclasses.dataclass(frozen=True)
class TransformerState:
    """A Transformer decoder in mid-sentence; a row is ``sentence · beam_count + beam``."""

    layers: tuple[LayerCache, ...]
    places: Places
    memory_may_attend: Bool[Tensor, "sentence source"]
    beam_count: int
    length: int

    @property
    def sentence_count(self) -> int:
        """How many source sentences are being translated."""
        return self.memory_may_attend.shape[0]

    def writable(self) -> tuple[tuple[LayerCache, ...], Places]:
        """Caches whose place ``length`` is free and the caller's alone."""
        if self.length < self.layers[0].keys.shape[1] and self.places.take(self.length):
            return self.layers, self.places
        layers = tuple(layer.with_room(self.length) for layer in self.layers)
        return layers, Places(self.length + 1)

    def select(self, rows: Int[Tensor, "sentence beam"]) -> "TransformerState":
        """Go on with these rows alone; those of one new sentence come from one old one."""
        flat = rows.flatten()
        sentences = rows[:, 0] // self.beam_count
        same_sentences = rows.shape[0] == self.sentence_count and torch.equal(
            sentences, torch.arange(self.sentence_count, device=rows.device)
        )
        layers = tuple(
            LayerCache(
                memory_keys=layer.memory_keys if same_sentences else layer.memory_keys[sentences],
                memory_values=(
                    layer.memory_values if same_sentences else layer.memory_values[sentences]
                ),
                keys=layer.keys.index_select(0, flat),
                values=layer.values.index_select(0, flat),
            )
            for layer in self.layers
        )
        return TransformerState(
            layers=layers,
            places=Places(self.length),
            memory_may_attend=self.memory_may_attend[sentences],
            beam_count=rows.shape[1],
            length=self.length,
        )


def _with_room(
    old: Float[Tensor, "row place heads size"], length: int
) -> Float[Tensor, "row more heads size"]:
    rows, _, heads, size = old.shape
    new = old.new_empty((rows, (length // _PLACES + 1) * _PLACES, heads, size))
    new[:, :length] = old[:, :length]
    return new
