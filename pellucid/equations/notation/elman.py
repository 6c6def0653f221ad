"""The plainest recurrent network, from which LSTM and GRU came; no model here is made of it."""

import torch
from jaxtyping import Float
from torch import Tensor

from pellucid.equations.recurrent import linear, unroll


def rnn_cell(
    x: Float[Tensor, "*batch inputs"],
    hidden: Float[Tensor, "*batch hidden"],
    w_ih: Float[Tensor, "hidden inputs"],
    w_hh: Float[Tensor, "hidden hidden"],
    b_ih: Float[Tensor, " hidden"],
    b_hh: Float[Tensor, " hidden"],
) -> Float[Tensor, "*batch hidden"]:
    """One step of the simplest recurrent network.

        h' = tanh(W_ih x + b_ih + W_hh h + b_hh)

    EQ: 131.  Source: Elman (1990); Lee, Before Transformers, leaves the cell open.
    Symbols: x = x, hidden = h, result = h'; as torch.nn.RNNCell.
    """
    return torch.tanh(linear(x, w_ih, b_ih) + linear(hidden, w_hh, b_hh))


def rnn(
    inputs: Float[Tensor, "*batch time inputs"],
    hidden: Float[Tensor, "*batch hidden"],
    w_ih: Float[Tensor, "hidden inputs"],
    w_hh: Float[Tensor, "hidden hidden"],
    b_ih: Float[Tensor, " hidden"],
    b_hh: Float[Tensor, " hidden"],
) -> Float[Tensor, "*batch time hidden"]:
    """The states of a plain recurrent network after each element; the last one sums up all.

        hₜ₊₁ = rnn_cell(xₜ, hₜ)

    EQ: 131.  Source: Lee, Before Transformers.
    Symbols: inputs = x₀ … xₙ, hidden = h₀, result = h₁ … hₙ₊₁; as torch.nn.RNN.
    """

    def step(x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        state = rnn_cell(x, state, w_ih, w_hh, b_ih, b_hh)
        return state, state

    return unroll(step, inputs, hidden)[0]
