"""Law: what the equations say of operations and caches is what the program multiplies and keeps."""

import dataclasses
from collections.abc import Callable

import pytest
import torch
from tiny_models import TINY, VOCABULARY, sources, targets, tiny_model
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from pellucid.core.special import BOS_ID
from pellucid.equations.complexity import (
    cached_numbers,
    convolution_operations,
    crossing_length,
    feed_forward_operations,
    path_length,
    projection_operations,
    recurrence_operations,
    restricted_attention_operations,
    self_attention_operations,
    sequential_steps,
    token_operations,
)
from pellucid.model.trace import Trace

D, D_FF, LAYERS = TINY["d_model"], TINY["d_ff"], TINY["encoder_layers"]
SOURCE, TARGET = 7, 5


def counted(run: Callable[[], object]) -> int:
    """Multiplications of the matrix products, in float64: in float32 a kernel hides those of
    recurrent layers. Attention multiplies in the open and not in a kernel."""
    open_kernel = sdpa_kernel(SDPBackend.MATH)
    with torch.no_grad(), open_kernel, FlopCounterMode(display=False) as counter:
        run()
    return counter.get_total_flops() // 2


@pytest.mark.parametrize("variant", ["paper", "pre-norm"])
def test_a_pass_of_the_transformer_multiplies_as_often_as_its_layers(variant: str):
    model, weights = tiny_model(variant), Trace("*.weights")
    ids = sources(SOURCE), targets(1, TARGET)

    def attention(queries: int, keys: int) -> int:
        return projection_operations(queries, keys, D) + self_attention_operations(queries, keys, D)

    encoder = attention(SOURCE, SOURCE) + feed_forward_operations(SOURCE, D, D_FF)
    decoder = attention(TARGET, TARGET) + attention(TARGET, SOURCE)
    decoder += feed_forward_operations(TARGET, D, D_FF)
    output = TARGET * D * VOCABULARY
    assert counted(lambda: model(*ids, weights)) == LAYERS * (encoder + decoder) + output


@pytest.mark.parametrize(("cell", "gates"), [("lstm", 4), ("gru", 3)])
def test_a_recurrent_layer_multiplies_two_matrices_for_each_gate_and_word(cell: str, gates: int):
    layer = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}[cell](
        D, D, bias=False, batch_first=True
    ).double()
    rows = torch.randn(1, SOURCE, D)
    assert counted(lambda: layer(rows.double())) == recurrence_operations(SOURCE, D, gates)
    assert sequential_steps("recurrence", SOURCE) == SOURCE == path_length("recurrence", SOURCE) + 1


def test_attention_and_recurrence_cross_where_the_page_says():
    """Products of rows and columns in the open, at the length g d and one word to either side."""
    gates = 3
    layer = torch.nn.GRU(D, D, bias=False).double()

    def attention(length: int) -> int:
        rows = torch.randn(length, D)
        return counted(lambda: (rows @ rows.T).softmax(-1) @ rows)

    def recurrence(length: int) -> int:
        return counted(lambda: layer(torch.randn(length, D).double()))

    meeting = crossing_length(D, gates)
    differences = [attention(n) - recurrence(n) for n in (meeting - 1, meeting, meeting + 1)]
    assert differences[0] < 0 == differences[1] < differences[2]


def test_a_convolution_multiplies_its_kernel_at_every_word():
    layer = torch.nn.Conv1d(D, D, 3, padding=1, bias=False).double()
    rows = torch.randn(1, D, SOURCE).double()
    assert counted(lambda: layer(rows)) == convolution_operations(SOURCE, D, 3)


def test_attention_to_a_window_multiplies_the_window_alone():
    """Each of the words of a ring attends to r words: gathered keys, then the same products."""
    window = 3
    rows = torch.randn(SOURCE, D)
    near = (torch.arange(SOURCE)[:, None] + torch.arange(window)) % SOURCE
    keys = rows[near]  # (word, window, feature)

    def attend() -> Tensor:
        weights = torch.bmm(rows[:, None], keys.mT).softmax(-1)
        return torch.bmm(weights, keys)

    assert counted(attend) == restricted_attention_operations(SOURCE, D, window)


def test_a_step_multiplies_and_keeps_what_the_page_says():
    model = tiny_model()
    with torch.no_grad():
        state = model.start(model.encode(sources(SOURCE)))
        ids = torch.tensor([[BOS_ID]])
        for _ in range(TARGET - 1):
            _, state = model.step(ids, state)

        def step() -> None:
            nonlocal state
            _, state = model.step(ids, state)

        work = counted(step)
    wanted = token_operations(LAYERS, SOURCE, TARGET, D, D_FF, VOCABULARY)
    assert work == wanted

    kept = sum(each.numel() for layer in state.layers for each in caches(layer, TARGET))
    assert kept == cached_numbers(LAYERS, SOURCE, TARGET, D)


def caches(layer: object, taken: int) -> list[Tensor]:
    """The filled part of every tensor of keys and values."""
    found = []
    for sublayer in layer.sublayers:  # type: ignore[attr-defined]
        values = {
            field.name: getattr(sublayer, field.name) for field in dataclasses.fields(sublayer)
        }
        for name, each in values.items():
            if isinstance(each, Tensor) and each.is_floating_point():
                # slots beyond those taken are room for later words
                is_own = "slot" in str(type(sublayer).__annotations__[name])
                found.append(each[:, :taken] if is_own else each)
    return found
