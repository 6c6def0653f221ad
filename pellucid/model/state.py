"""Keys and values of the tokens already read, kept as values (EQ-130)."""

import dataclasses

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclasses.dataclass(frozen=True)
class LayerCache:
    """What one decoder layer need not compute again.

    The beams of a sentence share the keys and values of its source.
    """

    memory_keys: Float[Tensor, "sentence heads source key_size"]
    memory_values: Float[Tensor, "sentence heads source value_size"]
    keys: Float[Tensor, "row heads length key_size"]
    values: Float[Tensor, "row heads length value_size"]


@dataclasses.dataclass(frozen=True)
class TransformerState:
    """A Transformer decoder in mid-sentence; a row is ``sentence · beam_count + beam``."""

    layers: tuple[LayerCache, ...]
    memory_may_attend: Bool[Tensor, "sentence source"]
    beam_count: int
    length: int

    @property
    def sentence_count(self) -> int:
        """How many source sentences are being translated."""
        return self.memory_may_attend.shape[0]

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
            memory_may_attend=self.memory_may_attend[sentences],
            beam_count=rows.shape[1],
            length=self.length,
        )
