"""One recurrent layer: torch's kernels, as fast twins of the written cells."""

import dataclasses
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


@dataclasses.dataclass(frozen=True)
class LayerState:
    """What a layer hands on from word to word, one row for each sequence."""

    hidden: Float[Tensor, "row d_model"]
    cell: Float[Tensor, "row d_model"] | None
    """None for a GRU, which has no cell apart."""

    def select(self, rows: Int[Tensor, " chosen"]) -> "LayerState":
        """These rows alone."""
        return LayerState(self.hidden[rows], None if self.cell is None else self.cell[rows])


class RecurrentLayer(nn.Module):
    """(xₜ, hₜ) → hₜ₊₁ along a sequence; bidirectional: [→hₜ ; ←hₜ] for each of its words.

    EQ: 131, 132, 134.  Source: Sutskever et al. (2014), §2 (LSTM); Cho et al. (2014), §2.3 (GRU).
    A bidirectional layer gives half of ``d_model`` to each direction.
    Law: tests/laws/test_recurrent_equals_clear.py, with ``lstm`` and ``gru`` of the equations.
    """

    def __init__(
        self, cell: Literal["lstm", "gru"], input_size: int, d_model: int, *, bidirectional: bool
    ) -> None:
        super().__init__()
        build = nn.LSTM if cell == "lstm" else nn.GRU
        self.network: nn.LSTM | nn.GRU = build(
            input_size,
            d_model // 2 if bidirectional else d_model,
            batch_first=True,
            bidirectional=bidirectional,
        )

    def forward(
        self, x: Float[Tensor, "row time inputs"], state: LayerState
    ) -> tuple[Float[Tensor, "row time d_model"], LayerState]:
        """Go on forwards from ``state``: the hidden state after each element, and the new state."""
        if (
            x.numel() == 0
        ):  # torch's kernels refuse a sequence without words and a batch without rows
            return x.new_zeros(*x.shape[:2], self.network.hidden_size), state
        hidden = state.hidden.unsqueeze(0)
        if state.cell is None:
            outputs, last = self.network(x, hidden)
            return outputs.to(x.dtype), LayerState(last.squeeze(0).to(x.dtype), None)
        outputs, (last, cell) = self.network(x, (hidden, state.cell.unsqueeze(0)))
        new_state = LayerState(last.squeeze(0).to(x.dtype), cell.squeeze(0).to(x.dtype))
        return outputs.to(x.dtype), new_state  # under autocast the kernel may answer in bfloat16

    def read(
        self, x: Float[Tensor, "row time inputs"], lengths: Int[Tensor, " row"]
    ) -> tuple[Float[Tensor, "row time d_model"], LayerState]:
        """Whole sequences from a state of zeros, each within its own length (on the CPU, above 0).

        Rows past the end are zero. Each direction ends where its own reading ends: the state is
        [→h after the last word ; ←h after the first].
        """
        if len(x) == 0:
            none = x.new_zeros(
                0, self.network.hidden_size * (2 if self.network.bidirectional else 1)
            )
            cell = none if isinstance(self.network, nn.LSTM) else None
            return none.new_zeros(0, x.shape[1], none.shape[1]), LayerState(none, cell)
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        packed_outputs, last = self.network(packed)
        outputs, _ = pad_packed_sequence(packed_outputs, batch_first=True, total_length=x.shape[1])
        outputs = outputs.to(x.dtype)
        if isinstance(last, Tensor):
            return outputs, LayerState(_side_by_side(last).to(x.dtype), None)
        hidden, cell = (_side_by_side(each).to(x.dtype) for each in last)
        return outputs, LayerState(hidden, cell)


def _side_by_side(
    last: Float[Tensor, "direction row hidden"],
) -> Float[Tensor, "row direction*hidden"]:
    return torch.cat(last.unbind(0), dim=-1)
