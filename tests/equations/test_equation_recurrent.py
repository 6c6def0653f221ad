import math

import pytest
import torch
from equation_checks import close

from pellucid.core.errors import ShapeError
from pellucid.equations.embedding import output_logits
from pellucid.equations.notation.elman import rnn, rnn_cell
from pellucid.equations.recurrent import (
    concatenate_directions,
    gated_recurrence,
    gru,
    gru_cell,
    lstm,
    lstm_cell,
    recurrence_shares,
    reverse_sequences,
    ssru,
    unroll,
)
from pellucid.equations.softmax import softmax


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


@pytest.mark.by_hand
def test_plain_cell_by_hand():
    """EQ-131: tanh(2·3 + .1 + .5·(-4) + .2) for one unit."""
    x, hidden = torch.tensor([3.0]), torch.tensor([-4.0])
    parameters = [torch.tensor(v) for v in ([[2.0]], [[0.5]], [0.1], [0.2])]
    close(rnn_cell(x, hidden, *parameters), [math.tanh(2 * 3 + 0.1 - 0.5 * 4 + 0.2)])


@pytest.mark.by_hand
def test_lstm_cell_by_hand():
    """EQ-131: gates i, f, g, o in this order, each x·w + h·u + b + b'."""
    x, hidden, cell = torch.tensor([1.0]), torch.tensor([0.5]), torch.tensor([-2.0])
    w_ih, w_hh = torch.tensor([[1.0], [2], [3], [4]]), torch.tensor([[0.2], [0.4], [0.6], [0.8]])
    b_ih, b_hh = torch.tensor([0.1, 0.2, 0.3, 0.4]), torch.tensor([0.0, 0.1, 0, 0.1])
    i, f, g, o = 1 + 0.1 + 0.1, 2 + 0.2 + 0.3, 3 + 0.3 + 0.3, 4 + 0.4 + 0.5
    new_cell = sigmoid(f) * -2 + sigmoid(i) * math.tanh(g)
    new_hidden, returned = lstm_cell(x, hidden, cell, w_ih, w_hh, b_ih, b_hh)
    close(returned, [new_cell])
    close(new_hidden, [sigmoid(o) * math.tanh(new_cell)])


@pytest.mark.by_hand
def test_gru_cell_by_hand():
    """EQ-131: the reset gate works on the finished W_hh h + b_hh."""
    x, hidden = torch.tensor([1.0]), torch.tensor([0.5])
    w_ih, w_hh = torch.tensor([[1.0], [2], [3]]), torch.tensor([[0.2], [0.4], [0.6]])
    b_ih, b_hh = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0.0, 0.1, 0.7])
    reset, update = sigmoid(1 + 0.1 + 0.1), sigmoid(2 + 0.2 + 0.2 + 0.1)
    new = math.tanh(3 + 0.3 + reset * (0.3 + 0.7))
    close(gru_cell(x, hidden, w_ih, w_hh, b_ih, b_hh), [(1 - update) * new + update * 0.5])


@pytest.mark.referee
@pytest.mark.parametrize(
    ("ours", "theirs", "states"),
    [(rnn, torch.nn.RNN, 1), (lstm, torch.nn.LSTM, 2), (gru, torch.nn.GRU, 1)],
)
def test_layers_are_torchs(ours, theirs, states):
    """EQ-131: values of every state and gradients of every parameter, with a given start."""
    layer = theirs(3, 6, batch_first=True)
    x, start = torch.randn(2, 5, 3), [torch.randn(2, 6) for _ in range(states)]
    first = [state.unsqueeze(0) for state in start]
    expected, final = layer(x, tuple(first) if states == 2 else first[0])
    mine = ours(x, *start, *layer._flat_weights)
    outputs = mine if states == 2 else (mine,)
    close(outputs[0], expected)
    for output, last in zip(outputs, final if states == 2 else (final,), strict=True):
        close(output[:, -1], last[0])
    direction = torch.randn(2, 5, 6)
    gradients = torch.autograd.grad((outputs[0] * direction).sum(), layer._flat_weights)
    referee = torch.autograd.grad((expected * direction).sum(), layer._flat_weights)
    for a, b in zip(gradients, referee, strict=True):
        close(a, b)


@pytest.mark.referee
@pytest.mark.property
@pytest.mark.parametrize(
    ("ours", "theirs"), [(rnn_cell, torch.nn.RNNCell), (gru_cell, torch.nn.GRUCell)]
)
def test_cells_are_torchs(ours, theirs):
    """EQ-131: one step, any batch."""
    cell = theirs(3, 4)
    x, hidden = torch.randn(2, 3), torch.randn(2, 4)
    parameters = cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh
    close(ours(x, hidden, *parameters), cell(x, hidden))
    close(ours(x[0], hidden[0], *parameters), cell(x, hidden)[0])


@pytest.mark.by_hand
def test_a_sequence_is_read_from_left_to_right():
    """EQ-131, EQ-132: n + 1 inputs, n + 1 outputs, and the state after the last."""

    def step(x: torch.Tensor, state: float) -> tuple[torch.Tensor, float]:
        return x * state, 10 * state

    outputs, state = unroll(step, torch.tensor([[1.0], [2], [3]]), 1.0)
    close(outputs, [[1.0], [20], [300]])
    assert state == 1000


@pytest.mark.property
def test_the_decoder_says_a_distribution_at_every_step():
    """EQ-132, EQ-133: started from the encoder's last state alone, one vector for any length."""
    parameters = [torch.randn(4, 3), torch.randn(4, 4), torch.randn(4), torch.randn(4)]
    for length in (2, 7):
        memory = rnn(torch.randn(length, 3), torch.zeros(4), *parameters)[-1]
        assert memory.shape == (4,)
        states = rnn(torch.randn(5, 3), memory, *parameters)
        close(softmax(output_logits(states, torch.randn(4, 6))).sum(-1), torch.ones(5))


@pytest.mark.by_hand
def test_sequences_turn_around_within_their_own_length():
    """EQ-134: padding stays at the end; twice is nothing."""
    x = torch.tensor([[1.0, 2, 3, 4], [5, 6, 8, 9], [7, 0, 0, 0]]).unsqueeze(-1)
    lengths = torch.tensor([4, 2, 1])
    turned = reverse_sequences(x, lengths)
    assert turned.squeeze(-1).tolist() == [[4, 3, 2, 1], [6, 5, 8, 9], [7, 0, 0, 0]]
    assert reverse_sequences(turned, lengths).equal(x)
    assert reverse_sequences(x[0], torch.tensor(4)).equal(x[0].flip(0))


@pytest.mark.referee
def test_a_bidirectional_encoder_is_torchs():
    """EQ-134: referee a packed bidirectional LSTM over sentences of unequal length."""
    layer = torch.nn.LSTM(3, 4, batch_first=True, bidirectional=True)
    x, lengths = torch.randn(2, 5, 3), torch.tensor([5, 3])
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
    expected, _ = torch.nn.utils.rnn.pad_packed_sequence(layer(packed)[0], batch_first=True)
    zero, names = torch.zeros(2, 4), ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    onwards = [getattr(layer, f"{name}_l0") for name in names]
    backwards = [getattr(layer, f"{name}_l0_reverse") for name in names]
    forward, _ = lstm(x, zero, zero, *onwards)
    backward, _ = lstm(reverse_sequences(x, lengths), zero, zero, *backwards)
    states = concatenate_directions(forward, reverse_sequences(backward, lengths))
    close(states[0], expected[0])
    close(states[1, :3], expected[1, :3])


@pytest.mark.property
def test_reversing_the_source_and_swapping_the_networks_reverses_everything():
    """EQ-134: the rows are reversed, and their halves swapped."""
    one, two = (
        [torch.randn(4, 3), torch.randn(4, 4), torch.randn(4), torch.randn(4)] for _ in "12"
    )
    x, zero = torch.randn(5, 3), torch.zeros(4)

    def encode(x: torch.Tensor, onwards: list, backwards: list) -> torch.Tensor:
        return concatenate_directions(
            rnn(x, zero, *onwards), rnn(x.flip(0), zero, *backwards).flip(0)
        )

    there, back = encode(x, one, two), encode(x.flip(0), two, one)
    assert there.shape == (5, 8)
    close(back.flip(0), torch.cat((there[:, 4:], there[:, :4]), dim=-1))


@pytest.mark.usefixtures("unchecked_shapes")
def test_directions_of_unequal_length_are_named():
    """EQ-134: one state of each direction per word."""
    with pytest.raises(ShapeError) as caught:
        concatenate_directions(torch.zeros(5, 4), torch.zeros(6, 4))
    assert str(caught.value) == (
        "forward and backward must have the same length (axis -2 of forward, axis -2 of backward),"
        " got shapes (5, 4) and (6, 4)"
    )


@pytest.mark.by_hand
def test_gated_recurrence_by_hand():
    """From 8: a quarter of 8 and three quarters of 4 are 5; half of it and half of -1 are 2."""
    inputs, gates = torch.tensor([[4.0], [-1.0]]), torch.tensor([[0.25], [0.5]])
    close(gated_recurrence(inputs, gates, torch.tensor([8.0])), [[5.0], [2.0]])


@pytest.mark.by_hand
def test_ssru_by_hand():
    """One unit, w = 2, w_f = 1, b_f = -1: the gates of 1 and -3 are σ(0) = ½ and σ(-4)."""
    x = torch.tensor([[1.0], [-3.0]])
    w, w_f, b_f = torch.tensor([[2.0]]), torch.tensor([[1.0]]), torch.tensor([-1.0])
    first = 0.5 * 0 + 0.5 * 2
    second = sigmoid(-4) * first + (1 - sigmoid(-4)) * -6
    assert second < 0
    close(ssru(x, w, w_f, b_f), [[first], [0.0]])
    # the cell is negative there and goes on so: ReLU is of the output alone
    third = 0.5 * second + 0.5 * 2
    close(
        ssru(torch.tensor([[1.0], [-3.0], [1.0]]), w, w_f, b_f), [[first], [0.0], [max(0, third)]]
    )


@pytest.mark.by_hand
def test_recurrence_shares_by_hand():
    """Gates ¾, ½, ¼: the third cell is ¼ · ½ · ¼ of the first input, ½ · ¼ of the second."""
    gates = torch.tensor([[0.75], [0.5], [0.25]])
    close(recurrence_shares(gates), [[0.25 * 0.5 * 0.25], [0.5 * 0.25], [0.75]])


@pytest.mark.property
@pytest.mark.parametrize("seed", range(5))
def test_cells_are_means_of_what_came_before(seed: int):
    """The weights of the inputs and of the first cell, (1 − fᵢ) Πⱼ₍ⱼ₎ fⱼ, sum to one."""
    torch.manual_seed(seed)
    inputs, gates, cell = torch.randn(6, 4), torch.rand(6, 4), torch.randn(4)
    cells = gated_recurrence(inputs, gates, cell)
    for time in range(6):
        kept = [gates[i + 1 : time + 1].prod(dim=0) for i in range(-1, time + 1)]
        shares = [kept[0], *((1 - gates[i]) * kept[i + 1] for i in range(time + 1))]
        close(recurrence_shares(gates[: time + 1]), torch.stack(shares[1:]))
        close(sum(shares), torch.ones(4), 1e-6)
        mean = shares[0] * cell + sum(shares[i + 1] * inputs[i] for i in range(time + 1))
        close(cells[time], mean, 1e-5)


@pytest.mark.referee
def test_an_ssru_is_a_gru_that_does_not_read_its_state():
    """PyTorch's GRU with W_hh = 0 has these gates, but for tanh of the candidate."""
    torch.manual_seed(1)
    x, w, w_f, b_f = 0.01 * torch.randn(5, 3), torch.randn(3, 3), torch.randn(3, 3), torch.randn(3)
    network = torch.nn.GRU(3, 3, batch_first=True).requires_grad_(False)
    for parameter in network.parameters():
        parameter.zero_()
    network.weight_ih_l0[3:6], network.bias_ih_l0[3:6] = w_f.T, b_f
    # tanh(1e-4 z) is 1e-4 z to within 1e-12
    network.weight_ih_l0[6:] = 1e-4 * w.T
    cells = network(x.unsqueeze(0))[0][0]
    close(ssru(x, w, w_f, b_f), 1e4 * cells.relu(), 1e-6)
