"""A recurrent decoder in mid-sentence, as a value, and what its encoder hands to it."""

import dataclasses

from jaxtyping import Float, Int
from torch import Tensor

from pellucid.model.recurrent_attention import AttendedMemory
from pellucid.model.recurrent_layer import LayerState
from pellucid.model.seq2seq import Memory


@dataclasses.dataclass(frozen=True)
class RecurrentMemory(Memory):
    """The last state of every encoder layer; rows to attend to only if there is attention.

    A plain encoder-decoder has ``states`` without a single row: whatever the length of the
    source, all that reaches the decoder is ``last`` (EQ-133).
    """

    last: tuple[LayerState, ...]


@dataclasses.dataclass(frozen=True)
class RecurrentState:
    """What a recurrent decoder needs to go on; a row is ``sentence · beam_count + beam``."""

    layers: tuple[LayerState, ...]
    fed: Float[Tensor, "row d_model"]
    """What it reads beside the next word: with input feeding what it said last, before the softmax,
    and zeros at the start; with ``feed_summary`` the encoder's last state, always."""
    memory: AttendedMemory
    beam_count: int
    length: int

    @property
    def sentence_count(self) -> int:
        """How many source sentences are being translated."""
        return self.memory.may_attend.shape[0]

    def select(self, rows: Int[Tensor, "sentence beam"]) -> "RecurrentState":
        """Go on with these rows alone; those of one new sentence come from one old one."""
        flat = rows.flatten()
        return RecurrentState(
            layers=tuple(layer.select(flat) for layer in self.layers),
            fed=self.fed[flat],
            memory=self.memory.select(rows[:, 0] // self.beam_count),
            beam_count=rows.shape[1],
            length=self.length,
        )
