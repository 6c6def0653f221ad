"""Law: recurrent layers = the written cells, and whole models = their equations, in the open."""

import pytest
import torch
from tiny_models import RECURRENT, sources, targets, tiny_model
from torch import Tensor

from pellucid.core.special import BOS_ID, EOS_ID, PAD_ID
from pellucid.equations import recurrent_translator
from pellucid.equations.embedding import shift_right
from pellucid.equations.recurrent import concatenate_directions, gru, lstm, reverse_sequences
from pellucid.model.clear import clear_recurrent
from pellucid.model.recurrent_parts import LayerState, RecurrentLayer

EXACT = {"rtol": 1e-12, "atol": 1e-12}
LENGTHS = torch.tensor([3, 5, 1])


def unroll(layer: RecurrentLayer, x: Tensor, start: LayerState, way: int = 0) -> list[Tensor]:
    """All states of one direction, by the written cells: [hidden] or [hidden, cell]."""
    weights = layer.network._flat_weights[4 * way : 4 * way + 4]
    if start.cell is None:
        return [gru(x, start.hidden, *weights)]
    return list(lstm(x, start.hidden, start.cell, *weights))


def zeros(layer: RecurrentLayer, rows: int) -> LayerState:
    state = torch.zeros(rows, layer.network.hidden_size, dtype=torch.float64)
    return LayerState(state, state if isinstance(layer.network, torch.nn.LSTM) else None)


def read(layer: RecurrentLayer, x: Tensor, lengths: Tensor) -> tuple[Tensor, LayerState]:
    """What ``RecurrentLayer.read`` promises, by the equations."""
    start, rows = zeros(layer, len(x)), torch.arange(len(x))
    ways = [unroll(layer, x, start)]
    if layer.network.bidirectional:
        ways.append(unroll(layer, reverse_sequences(x, lengths), start, way=1))
    last = [torch.cat([way[i][rows, lengths - 1] for way in ways], -1) for i in range(len(ways[0]))]
    outputs = ways[0][0]
    if layer.network.bidirectional:
        outputs = concatenate_directions(outputs, reverse_sequences(ways[1][0], lengths))
    within = torch.arange(x.shape[1]) < lengths[:, None]
    return outputs * within[:, :, None], LayerState(last[0], last[1] if len(last) > 1 else None)


def assert_same(
    ours: tuple[Tensor, LayerState], theirs: tuple[Tensor, LayerState], inputs: list[Tensor]
) -> None:
    """Equal outputs and states, and equal gradients of a random projection of them all."""
    pairs = [(ours[0], theirs[0]), (ours[1].hidden, theirs[1].hidden)]
    if ours[1].cell is not None:
        pairs.append((ours[1].cell, theirs[1].cell))
    for left, right in pairs:
        torch.testing.assert_close(left, right, **EXACT)
    generator = torch.Generator().manual_seed(9)
    directions = [torch.randn(a.shape, dtype=a.dtype, generator=generator) for a, _ in pairs]
    gradients = [
        torch.autograd.grad([pair[side] for pair in pairs], inputs, directions) for side in (0, 1)
    ]
    for left, right in zip(*gradients, strict=True):
        torch.testing.assert_close(left, right, **EXACT)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_reading_within_lengths_is_the_written_cells_word_by_word(cell: str, bidirectional: bool):
    torch.manual_seed(1)
    layer = RecurrentLayer(cell, 4, 6, bidirectional=bidirectional).double()
    x = torch.randn(3, 5, 4, dtype=torch.float64, requires_grad=True)
    fast, clear = layer.read(x, LENGTHS), read(layer, x, LENGTHS)
    assert_same(fast, clear, [x, *layer.parameters()])


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_going_on_from_a_state_is_the_written_cells_word_by_word(cell: str):
    torch.manual_seed(2)
    layer = RecurrentLayer(cell, 4, 6, bidirectional=False).double()
    x, hidden, start = (
        torch.randn(*shape, dtype=torch.float64, requires_grad=True)
        for shape in ((3, 5, 4), (3, 6), (3, 6))
    )
    state = LayerState(hidden, start if cell == "lstm" else None)
    outputs = unroll(layer, x, state)
    last = LayerState(outputs[0][:, -1], outputs[1][:, -1] if cell == "lstm" else None)
    inputs = [x, hidden, *([start] if cell == "lstm" else []), *layer.parameters()]
    assert_same(layer(x, state), (outputs[0], last), inputs)


@pytest.mark.property
@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluation"])
@pytest.mark.parametrize("variant", RECURRENT)
def test_a_whole_model_is_its_page_of_equations(variant: str, training: bool):
    """EQ-131 to EQ-136: logits, loss and gradients, in training with the same dropout."""
    model = tiny_model(variant, dropout=0.3).train(training)
    source, labels = sources(5, 3, 1), targets(3, 4)
    labels[1, 2:] = torch.tensor([EOS_ID, PAD_ID])
    target_input = shift_right(labels, BOS_ID)

    model.dropout_source.seed(7)
    got = model(source, target_input)
    model.dropout_source.seed(7)
    expected = recurrent_translator.logits(clear_recurrent(model), source, target_input)
    torch.testing.assert_close(got, expected, **EXACT)

    model.dropout_source.seed(7)
    fast = model.loss(source, target_input, labels, 0.1).loss
    model.dropout_source.seed(7)
    clear = recurrent_translator.loss(clear_recurrent(model), source, labels, 0.1)
    torch.testing.assert_close(fast, clear, **EXACT)
    named = {name: each for name, each in model.named_parameters() if each.requires_grad}
    ours, theirs = (torch.autograd.grad(each, list(named.values())) for each in (fast, clear))
    for name, left, right in zip(named, ours, theirs, strict=True):
        torch.testing.assert_close(left, right, rtol=1e-11, atol=1e-11, msg=name)
