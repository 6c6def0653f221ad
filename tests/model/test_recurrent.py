"""Recurrent translators: what reaches the decoder, both directions, dropout, first numbers."""

import math

import pytest
import torch

from pellucid.model.build import build_model
from pellucid.model.config import parse_model_config
from pellucid.model.recurrent_parts import RecurrentLayer
from pellucid.model.seq2seq import Seq2Seq
from pellucid.model.trace import Trace

SIZES = {"d_model": 8, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0}
SOURCE = torch.tensor([[4, 5, 6, 7, 3]])


def model(kind: str = "rnn-attention", **settings: object) -> Seq2Seq:
    config = parse_model_config({"kind": kind, **SIZES, **settings})
    return build_model(config, 20, 20).eval()


@pytest.mark.by_hand
@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_a_plain_rnn_remembers_one_vector_whatever_the_length_of_the_source(cell: str):
    """EQ-133: the last state of each layer, and not one row to look back at."""
    network = model("rnn", cell=cell)
    for length in (1, 5, 9):
        memory = network.encode(torch.full((3, length), 4))
        assert memory.states.shape == (3, 0, 8)
        assert memory.may_attend.shape == (3, 0)
        assert [layer.hidden.shape for layer in memory.last] == [(3, 8), (3, 8)]
        assert [layer.cell is None for layer in memory.last] == [cell == "gru"] * 2
    assert network.start(memory).sentence_count == 3
    assert network.max_length is None


@pytest.mark.property
def test_a_source_read_backwards_by_exchanged_directions_gives_mirrored_rows():
    """EQ-134: rows reversed, halves swapped."""
    torch.manual_seed(0)
    layer = RecurrentLayer("lstm", 3, 8, bidirectional=True)
    exchanged = RecurrentLayer("lstm", 3, 8, bidirectional=True)
    forwards, backwards = layer.network._flat_weights[:4], layer.network._flat_weights[4:]
    with torch.no_grad():
        for slot, value in zip(
            exchanged.network._flat_weights, [*backwards, *forwards], strict=True
        ):
            slot.copy_(value)
    x, length = torch.randn(1, 5, 3), torch.tensor([5])
    rows, last = layer.read(x, length)
    mirrored, mirrored_last = exchanged.read(x.flip(1), length)
    torch.testing.assert_close(mirrored.flip(1).roll(4, dims=-1), rows)
    torch.testing.assert_close(mirrored_last.hidden.roll(4, dims=-1), last.hidden)
    torch.testing.assert_close(last.hidden, torch.cat([rows[:, -1, :4], rows[:, 0, 4:]], -1))


@pytest.mark.parametrize("kind", ["rnn", "rnn-attention"])
def test_dropout_comes_from_the_model_s_own_source_and_only_in_training(kind: str):
    network = model(kind, dropout=0.5)
    source, target = SOURCE, torch.tensor([[2, 5, 6]])
    calm = network(source, target)
    network.train()
    before = torch.get_rng_state()
    network.dropout_source.seed(1)
    first = network(source, target)
    second = network(source, target)
    network.dropout_source.seed(1)
    assert torch.equal(network(source, target), first)
    assert not torch.equal(first, second)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(network.eval()(source, target), calm)


def test_dropout_stands_after_embeddings_and_layers_and_never_between_words(
    monkeypatch: pytest.MonkeyPatch,
):
    """Zaremba et al. (2014): two embeddings, two encoder layers, one between, one at the end."""
    shapes = []
    network = model("rnn", dropout=0.5).train()
    draw = network.dropout_source.keep_mask

    def note(shape: torch.Size, rate: float) -> torch.Tensor:
        shapes.append(tuple(shape))
        return draw(shape, rate)

    monkeypatch.setattr(network.dropout_source, "keep_mask", note)
    network(SOURCE, torch.tensor([[2, 5, 6]]))
    assert shapes == [(1, 5, 8)] * 3 + [(1, 3, 8)] * 3


def test_gates_start_as_matrices_of_their_own_and_forget_gates_open():
    network = model("rnn", d_model=64, encoder_layers=1, decoder_layers=1).encoder.layers[0].network
    bound = math.sqrt(6 / (64 + 64))
    for gate in torch.split(network.weight_ih_l0.data, 64):
        assert 0.98 * bound < gate.abs().max() <= bound
    for gate in torch.split(network.weight_hh_l0.data, 64):
        torch.testing.assert_close(gate @ gate.T, torch.eye(64), rtol=0, atol=1e-5)
    expected = torch.zeros(256)
    expected[64:128] = 1
    assert torch.equal(network.bias_ih_l0, expected)
    assert torch.equal(network.bias_hh_l0, torch.zeros(256))


def test_a_gru_starts_with_biases_of_zero():
    network = model(cell="gru").decoder.layers[1].network
    assert torch.equal(network.bias_ih_l0, torch.zeros(24))
    assert torch.equal(network.bias_hh_l0, torch.zeros(24))


@pytest.mark.parametrize("attention", ["additive", "dot", "general"])
def test_the_seed_decides_every_first_number(attention: str):
    def build(seed: int) -> Seq2Seq:
        config = parse_model_config({"kind": "rnn-attention", **SIZES, "attention": attention})
        return build_model(config, 20, 20, seed=seed)

    first, second, other = build(0), build(0), build(1)
    for name, parameter in first.named_parameters():
        assert parameter.isfinite().all()
        assert torch.equal(parameter, second.get_parameter(name))
        if "bias" not in name:
            assert not torch.equal(parameter, other.get_parameter(name)), name


@pytest.mark.parametrize(
    ("attention", "count"), [("dot", 0), ("general", 8 * 8), ("additive", 2 * 8 * 8 + 8)]
)
def test_each_way_of_judging_has_its_own_parameters(attention: str, count: int):
    """Besides W_c, twice as high as wide."""
    parts = model(attention=attention).decoder.cross_attention.parameters()
    assert sum(part.numel() for part in parts) == count + 2 * 8 * 8


def test_input_feeding_widens_the_first_layer_alone():
    for feeding, sizes in ((True, [16, 8]), (False, [8, 8])):
        layers = model(input_feeding=feeding).decoder.layers
        assert [layer.network.input_size for layer in layers] == sizes
    for settings, sizes in (({}, [8, 8]), ({"feed_summary": True}, [16, 8])):
        layers = model("rnn", **settings).decoder.layers
        assert [layer.network.input_size for layer in layers] == sizes


def test_a_source_read_backwards_is_captured_in_the_order_of_its_words():
    """Row i of every layer is about word i; the words are turned around, the stop is not."""
    backwards = model("rnn", reverse_source=True, encoder_layers=1, decoder_layers=1)
    forwards = model("rnn", encoder_layers=1, decoder_layers=1)
    forwards.load_state_dict(backwards.state_dict())
    source, turned = (
        torch.tensor([[4, 5, 6, 3, 0], [7, 8, 9, 10, 3]]),
        torch.tensor([[6, 5, 4, 3, 0], [10, 9, 8, 7, 3]]),
    )
    traces = Trace("encoder.layers.0.hidden"), Trace("encoder.layers.0.hidden")
    read = backwards.encode(source, traces[0]), forwards.encode(turned, traces[1])
    torch.testing.assert_close(read[0].last[0].hidden, read[1].last[0].hidden)
    ours, theirs = (trace.values["encoder.layers.0.hidden"] for trace in traces)
    for row, count in ((0, 3), (1, 4)):
        torch.testing.assert_close(ours[row, :count].flip(0), theirs[row, :count])
        torch.testing.assert_close(ours[row, count], theirs[row, count])


def test_with_input_feeding_a_trace_holds_a_state_for_each_word():
    trace = Trace("decoder.layers.*.hidden")
    model()(SOURCE, torch.tensor([[2, 4, 5]]), trace)
    assert [each.shape for each in trace.values.values()] == [(1, 3, 8), (1, 3, 8)]
