"""The parameters of a model for a report, transposed as in the formulas: row times matrix."""

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor, nn

from pellucid.inspection.report.matrices import Axis, Matrix
from pellucid.model.attention import MultiHeadAttention
from pellucid.model.blocks import Block
from pellucid.model.layers import FeedForward, Norm
from pellucid.model.seq2seq import PredictsTokens, SequenceModel
from pellucid.model.ssru import Ssru
from pellucid.model.text_models import DecoderOnly, EncoderOnly
from pellucid.model.transformer import Transformer

_IN = Axis("feature", "weight")
_KEY = Axis("key feature", "weight")
_VALUE = Axis("value feature", "weight")
_HIDDEN = Axis("hidden unit", "weight")
_MIXED = Axis("head and feature", "weight")
_ONE = Axis("learned", "single")

_Named = Iterator[tuple[str, Matrix]]
"""Matrices with their names in the report."""


def parameter_matrices(model: SequenceModel) -> dict[str, Matrix]:
    """The parameters of all blocks by their names in the report; empty for recurrent models."""
    named: list[tuple[str, Matrix]] = []
    match model:
        case Transformer():
            named += _stack("encoder", model.encoder.layers, model.encoder.last_norm)
            named += _stack("decoder", model.decoder.layers, model.decoder.last_norm)
        case EncoderOnly():
            named += _stack("encoder", model.encoder.layers, model.encoder.last_norm)
        case DecoderOnly():
            named += _stack("decoder", model.layers, model.last_norm)
        case _:  # what is inside a recurrent cell is not shown
            pass
    return {f"parameters.{name}": matrix for name, matrix in named}


def output_parameters(
    model: PredictsTokens | EncoderOnly, ids: list[int] | slice
) -> dict[str, Matrix]:
    """The columns of the output layer for these words."""
    weight, bias = model.output_weight, model.output_bias
    columns = Axis("candidates", "vocabulary")
    # (words, d_model) → (d_model, words)
    found = {"parameters.output_weight": Matrix(weight[ids].T, _IN, columns)}
    if bias is not None:
        found["parameters.output_bias"] = _row(bias[ids], columns)
    return found


def _stack(side: str, layers: Iterable[nn.Module], last_norm: nn.Module) -> _Named:
    for index, layer in enumerate(layers):
        assert isinstance(layer, Block)
        for sublayer in layer.sublayers:
            place = f"{side}.layers.{index}.{sublayer.name}"
            match sublayer.module:
                case MultiHeadAttention() as attention:
                    yield from _attention(place, attention)
                case FeedForward() as network:
                    yield from _feed_forward(place, network)
                case Ssru() as unit:
                    yield f"{place}.gate", Matrix(unit.gate.weight.T, _IN, _IN)
                    yield f"{place}.gate_bias", _row(unit.gate.bias, _IN)
                    yield f"{place}.candidate", Matrix(unit.candidate.weight.T, _IN, _IN)
                case _:  # a kind of sublayer whose parameters a report does not show
                    pass
            yield from _norm(f"{place}.norm", sublayer.around.norm)

    yield from _norm(f"{side}.norm", last_norm)


def _attention(place: str, attention: MultiHeadAttention) -> _Named:
    # PyTorch stores (output, input): the rows of W^Q, W^K and W^V of all heads are stacked.
    widths = [attention.query_width, attention.query_width, attention.value_width]
    # three tensors (heads · size, d_model), and three (heads · size)
    weights = torch.split(attention.packed_weight, widths)
    packed_bias = attention.b_qkv
    biases = (None, None, None) if packed_bias is None else torch.split(packed_bias, widths)
    axes = {"query": _KEY, "key": _KEY, "value": _VALUE}

    for (part, axis), weight, bias in zip(axes.items(), weights, biases, strict=True):
        # the rows of a head lie together, the first head first
        for head, rows in enumerate(weight.chunk(attention.heads)):
            yield f"{place}.heads.{head}.{part}", Matrix(rows.T, _IN, axis)
        if bias is not None:
            for head, numbers in enumerate(bias.chunk(attention.heads)):
                yield f"{place}.heads.{head}.{part}_bias", _row(numbers, axis)

    yield f"{place}.output", Matrix(attention.w_o.T, _MIXED, _IN)
    if attention.b_o is not None:
        yield f"{place}.output_bias", _row(attention.b_o, _IN)


def _norm(place: str, norm: nn.Module) -> _Named:
    # a post-norm stack ends with nn.Identity
    if not isinstance(norm, Norm):
        return
    if norm.gain is not None:
        yield f"{place}_gain", _row(norm.gain, _IN)
    if norm.bias is not None:
        yield f"{place}_bias", _row(norm.bias, _IN)


def _feed_forward(place: str, network: FeedForward) -> _Named:
    yield f"{place}.weight_1", Matrix(network.inner.weight.T, _IN, _HIDDEN)
    yield f"{place}.bias_1", _row(network.inner.bias, _HIDDEN)
    yield f"{place}.weight_2", Matrix(network.outer.weight.T, _HIDDEN, _IN)
    yield f"{place}.bias_2", _row(network.outer.bias, _IN)


def _row(numbers: Tensor, axis: Axis) -> Matrix:
    return Matrix(numbers.unsqueeze(0), _ONE, axis)
