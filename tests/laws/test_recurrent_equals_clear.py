"""Law: recurrent layers = the written cells, and whole models = their equations, in the open."""

import pytest
import torch
from tiny_models import RECURRENT, sources, targets, tiny_model
from torch import Tensor

from pellucid.core.special import PAD_ID
from pellucid.equations import (
    additive_attention,
    attentional_state,
    concatenate_directions,
    dot_product_attention,
    general_attention,
    gru,
    lstm,
    reverse_sequences,
)
from pellucid.model.recurrent_layer import LayerState, RecurrentLayer

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


@pytest.mark.parametrize("variant", RECURRENT)
def test_a_whole_model_is_its_equations_one_after_the_other(variant: str):
    """EQ-131 to EQ-136, with nothing of the model but its parameters."""
    model = tiny_model(variant)
    source, target = sources(5, 3), targets(2, 4)
    lengths = (source != PAD_ID).sum(1)
    read_ids = source.clone()
    if model.config.reverse_source:
        for row, length in enumerate(lengths.tolist()):  # the words, not the stop
            read_ids[row, : length - 1] = source[row, : length - 1].flip(0)
    x = model.source_embedding.weight[read_ids] * model.source_embedding.scale
    layers = []
    for layer in model.encoder.layers:
        x, last = read(layer, x, lengths)
        layers.append(last)
    words = model.target_embedding.weight[target] * model.target_embedding.scale
    attention, said, spoken = model.decoder.cross_attention, torch.zeros(2, 8).double(), []
    summary = layers[-1].hidden
    for word in words.unbind(1):
        row = torch.cat([word, said], -1) if model.decoder.input_feeding else word
        row = torch.cat([word, summary], -1) if model.config.feed_summary else row
        for index, layer in enumerate(model.decoder.layers):
            states = [each[:, -1] for each in unroll(layer, row.unsqueeze(1), layers[index])]
            layers[index] = LayerState(states[0], states[1] if len(states) > 1 else None)
            row = states[0]
        if attention is not None:
            query, mask = row.unsqueeze(1), (source != PAD_ID).unsqueeze(1)
            match attention.scoring:
                case "additive":
                    w, u, v = attention.w_query, attention.w_key, attention.v
                    context = additive_attention(query, x, x, w, u, v, mask)
                case "general":
                    context = general_attention(query, x, x, attention.w_query, mask)
                case "dot":
                    context = dot_product_attention(query, x, x, mask)
            row = attentional_state(context.squeeze(1), row, attention.w_output)
        said = row
        spoken.append(row @ model.output_weight.T)
    expected = torch.stack(spoken, 1)
    if model.output_bias is not None:
        expected = expected + model.output_bias
    got = model(source, target)
    torch.testing.assert_close(got, expected, **EXACT)
    parameters = [each for each in model.parameters() if each.requires_grad]
    direction = torch.randn(got.shape, dtype=got.dtype, generator=torch.Generator().manual_seed(3))
    ours, theirs = (torch.autograd.grad(each, parameters, direction) for each in (got, expected))
    for name, left, right in zip(dict(model.named_parameters()), ours, theirs, strict=True):
        torch.testing.assert_close(left, right, rtol=1e-11, atol=1e-11, msg=name)
