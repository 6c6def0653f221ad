"""Recurrent networks: one state, passed from word to word.

Weights of LSTM and GRU are as in torch.nn; those of the SSRU multiply from the right, as on the
page of the Transformer, whose decoder may have it in place of self-attention.
"""

from collections.abc import Callable
from typing import TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pellucid.equations.feed_forward import relu
from pellucid.equations.shapes import require_same_size

State = TypeVar("State")


def lstm_cell(
    x: Float[Tensor, "*batch inputs"],
    hidden: Float[Tensor, "*batch hidden"],
    cell: Float[Tensor, "*batch hidden"],
    w_ih: Float[Tensor, "4*hidden inputs"],
    w_hh: Float[Tensor, "4*hidden hidden"],
    b_ih: Float[Tensor, " 4*hidden"],
    b_hh: Float[Tensor, " 4*hidden"],
) -> tuple[Float[Tensor, "*batch hidden"], Float[Tensor, "*batch hidden"]]:
    """One step of an LSTM, whose gates decide what to store, what to forget and what to output.

        (i, f, g, o) = W_ih x + b_ih + W_hh h + b_hh,  cut in four
        c' = σ(f) ⊙ c + σ(i) ⊙ tanh(g)
        h' = σ(o) ⊙ tanh(c')

    EQ: 131.  Source: Hochreiter and Schmidhuber (1997), with the forget gate of Gers et al. (2000).
    Symbols: x = x, hidden = h, cell = c; results = (h', c'); as torch.nn.LSTMCell.
    """
    # (*batch, 4 · hidden), in PyTorch's order
    gates = linear(x, w_ih, b_ih) + linear(hidden, w_hh, b_hh)
    input_gate, forget_gate, candidate, output_gate = gates.chunk(4, dim=-1)

    # the cell is a sum and no product of matrices, so gradients reach far back
    cell = forget_gate.sigmoid() * cell + input_gate.sigmoid() * candidate.tanh()
    return output_gate.sigmoid() * cell.tanh(), cell


def gru_cell(
    x: Float[Tensor, "*batch inputs"],
    hidden: Float[Tensor, "*batch hidden"],
    w_ih: Float[Tensor, "3*hidden inputs"],
    w_hh: Float[Tensor, "3*hidden hidden"],
    b_ih: Float[Tensor, " 3*hidden"],
    b_hh: Float[Tensor, " 3*hidden"],
) -> Float[Tensor, "*batch hidden"]:
    """One step of a GRU, which has two gates and no separate cell.

        (r, z, n)  = W_ih x + b_ih,   (r', z', n') = W_hh h + b_hh,  each cut in three
        ñ  = tanh(n + σ(r + r') ⊙ n')
        h' = (1 - σ(z + z')) ⊙ ñ + σ(z + z') ⊙ h

    EQ: 131.  Source: Cho et al. (2014), eq. (5) to (8).
    Symbols: x = x, hidden = h, result = h'; as torch.nn.GRUCell.
    Differs: Cho et al. apply the reset gate before W_hh; torch and this do so after it.
    """
    # (*batch, 3 · hidden), in PyTorch's order: reset, update, new
    reset_x, update_x, new_x = linear(x, w_ih, b_ih).chunk(3, dim=-1)
    reset_h, update_h, new_h = linear(hidden, w_hh, b_hh).chunk(3, dim=-1)
    update = (update_x + update_h).sigmoid()
    new = (new_x + (reset_x + reset_h).sigmoid() * new_h).tanh()
    # a mean of the old and the new state: an update gate near 1 keeps the state for many words
    return (1 - update) * new + update * hidden


def unroll(
    step: Callable[[Tensor, State], tuple[Tensor, State]],
    inputs: Float[Tensor, "*batch time inputs"],
    state: State,
) -> tuple[Float[Tensor, "*batch time outputs"], State]:
    """Apply one step after the other to a sequence.

        RNN(xₜ, hₜ) → (oₜ, hₜ₊₁),   t = 0 … n

    EQ: 131, 132.  Source: Lee, Before Transformers.
    Symbols: step = RNN, inputs = x₀ … xₙ, state = h₀; results = (o₀ … oₙ, hₙ₊₁).
    """
    outputs = []
    # one after the other: step t needs the state of step t - 1, which is what the Transformer did
    # away with
    for x in inputs.unbind(dim=-2):
        output, state = step(x, state)
        outputs.append(output)
    return torch.stack(outputs, dim=-2), state


def lstm(
    inputs: Float[Tensor, "*batch time inputs"],
    hidden: Float[Tensor, "*batch hidden"],
    cell: Float[Tensor, "*batch hidden"],
    w_ih: Float[Tensor, "4*hidden inputs"],
    w_hh: Float[Tensor, "4*hidden hidden"],
    b_ih: Float[Tensor, " 4*hidden"],
    b_hh: Float[Tensor, " 4*hidden"],
) -> tuple[Float[Tensor, "*batch time hidden"], Float[Tensor, "*batch time hidden"]]:
    """The hidden and cell states of an LSTM after each element.

        (hₜ₊₁, cₜ₊₁) = lstm_cell(xₜ, hₜ, cₜ)

    EQ: 131.  Source: Hochreiter and Schmidhuber (1997); Sutskever et al. (2014), §2.
    Symbols: inputs = x₀ … xₙ, (hidden, cell) = (h₀, c₀); as torch.nn.LSTM.
    """

    def step(x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        state = lstm_cell(x, state[0], state[1], w_ih, w_hh, b_ih, b_hh)
        # h and c side by side, as ``unroll`` collects one output for each step
        return torch.cat(state, dim=-1), state

    both = unroll(step, inputs, (hidden, cell))[0]
    states, cells = both.chunk(2, dim=-1)
    return states, cells


def gru(
    inputs: Float[Tensor, "*batch time inputs"],
    hidden: Float[Tensor, "*batch hidden"],
    w_ih: Float[Tensor, "3*hidden inputs"],
    w_hh: Float[Tensor, "3*hidden hidden"],
    b_ih: Float[Tensor, " 3*hidden"],
    b_hh: Float[Tensor, " 3*hidden"],
) -> Float[Tensor, "*batch time hidden"]:
    """The states of a GRU after each element.

        hₜ₊₁ = gru_cell(xₜ, hₜ)

    EQ: 131.  Source: Cho et al. (2014), §2.3.
    Symbols: inputs = x₀ … xₙ, hidden = h₀, result = h₁ … hₙ₊₁; as torch.nn.GRU.
    """

    def step(x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        state = gru_cell(x, state, w_ih, w_hh, b_ih, b_hh)
        return state, state

    return unroll(step, inputs, hidden)[0]


def gated_recurrence(
    inputs: Float[Tensor, "*batch time size"],
    gates: Float[Tensor, "*batch time size"],
    cell: Float[Tensor, "*batch size"],
) -> Float[Tensor, "*batch time size"]:
    """The cells of a linear recurrence: means of the old cell and the new input, by a gate each.

        cₜ = fₜ ⊙ cₜ₋₁ + (1 − fₜ) ⊙ xₜ

    EQ: none.  Source: Lei et al. (2018), Simple Recurrent Units, §3, eq. (2).
    Symbols: inputs = x, gates = f, from 0 to 1, cell = c₀; the result is c₁ … cₙ.

    Nothing but this mean passes from word to word: inputs and gates do not depend on the cell, so
    they are computed for all words at once.
    """
    require_same_size("length", ("inputs", inputs, -2), ("gates", gates, -2))

    def step(both: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        x, gate = both.chunk(2, dim=-1)
        cell = gate * cell + (1 - gate) * x
        return cell, cell

    return unroll(step, torch.cat((inputs, gates), dim=-1), cell)[0]


def recurrence_shares(
    gates: Float[Tensor, "*batch time size"],
) -> Float[Tensor, "*batch time size"]:
    """The share of every input in the last cell of a linear recurrence, feature by feature.

        aᵢ = (1 − fᵢ) ⊙ fᵢ₊₁ ⊙ … ⊙ fₙ,   cₙ = Σᵢ aᵢ ⊙ xᵢ + (f₁ ⊙ … ⊙ fₙ) ⊙ c₀

    EQ: none.  Source: Lei et al. (2018), §3, written out.
    Symbols: gates = f.

    As attention weights do, the shares say which word a cell is made of, here for each feature.
    """
    # (*batch, time, size): the products of the gates after each position, 1 for the last
    kept = gates.flip(-2).cumprod(dim=-2).flip(-2)
    kept = torch.cat((kept[..., 1:, :], torch.ones_like(kept[..., :1, :])), dim=-2)
    return (1 - gates) * kept


def ssru(
    x: Float[Tensor, "*batch time d_model"],
    w: Float[Tensor, "d_model d_model"],
    w_f: Float[Tensor, "d_model d_model"],
    b_f: Float[Tensor, " d_model"],
) -> Float[Tensor, "*batch time d_model"]:
    """A simpler simple recurrent unit: ReLU of a running mean, whose gate reads the input alone.

        fₜ = σ(xₜ W_f + b_f),   cₜ = fₜ ⊙ cₜ₋₁ + (1 − fₜ) ⊙ xₜ W,   hₜ = ReLU(cₜ),   c₀ = 0

    EQ: none.  Source: Kim et al. (2019), From Research to Production and Back, §3.1; Lei et al.
    (2018) for the recurrence.
    Symbols: x = x, w = W, w_f = W_f, b_f = b_f; the result is h.

    In a decoder it stands where self-attention does. The state of a translation is one vector a
    layer, however long it grows, and a word costs two products with matrices.
    """
    gates = (x @ w_f + b_f).sigmoid()
    return relu(gated_recurrence(x @ w, gates, torch.zeros_like(x[..., 0, :])))


def reverse_sequences(
    x: Float[Tensor, "*batch time size"], lengths: Int[Tensor, "*#batch"]
) -> Float[Tensor, "*batch time size"]:
    """Reverse each sequence within its own length; padding stays at the end.

        x'[t] = x[n - 1 - t] for t < n,   x'[t] = x[t] otherwise

    EQ: 134.  Source: Lee, Before Transformers ("runs in reverse"); padding is ours.
    Symbols: lengths = n.
    """
    times = torch.arange(x.shape[-2], device=x.device)
    mirrored = lengths.unsqueeze(-1) - 1 - times
    # position t takes n - 1 - t; padding, where that is negative, takes itself
    sources = torch.where(mirrored >= 0, mirrored, times)
    return x.take_along_dim(sources.unsqueeze(-1), dim=-2)


def concatenate_directions(
    forward: Float[Tensor, "*batch time hidden"], backward: Float[Tensor, "*batch time hidden"]
) -> Float[Tensor, "*batch time 2*hidden"]:
    """The hidden states of both directions side by side, for each word.

        H = ([→hₜ ; ←hₜ])ₜ

    EQ: 134.  Source: Lee, Before Transformers; Bahdanau et al. (2015), §3.2.
    Symbols: forward = →h, backward = ←h, both in the order of the words.
    Raises: ShapeError if the two are not equally long.
    """
    require_same_size("length", ("forward", forward, -2), ("backward", backward, -2))
    # (*batch, time, hidden) twice → (*batch, time, 2 · hidden)
    return torch.cat((forward, backward), dim=-1)


def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """x Wᵀ + b, with the matrix as torch.nn keeps it."""
    return x @ weight.transpose(0, 1) + bias
