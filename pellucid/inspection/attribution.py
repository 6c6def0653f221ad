"""A prediction of a trained model split into its parts, by the equations of attribution.

``logit_parts`` walks down the residual stream of one position, from the last norm to the embedding,
and gives what each part adds to the difference of two logits. ``contributions_of`` follows all
words up through the layers, and gives how much of each last hidden state they are.
"""

import dataclasses
import math
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn

from pellucid.equations.attribution import (
    attended_parts,
    decoder_contributions,
    direct_logit_attribution,
    direction_before_norm,
    normalize_part,
    token_contributions,
)
from pellucid.equations.recurrent import recurrence_shares
from pellucid.equations.relative import relative_distances
from pellucid.model.attention import MultiHeadAttention
from pellucid.model.blocks import Block, Sublayer
from pellucid.model.layers import AddAndNorm, FeedForward, Norm
from pellucid.model.ssru import Ssru
from pellucid.model.sublayers import Side, SublayerKind
from pellucid.model.text_models import DecoderOnly, EncoderOnly
from pellucid.model.trace import Trace
from pellucid.model.transformer import Transformer

Attributable = Transformer | DecoderOnly | EncoderOnly
"""The models with a residual stream."""

_Values = Mapping[str, Tensor]
"""The intermediates that attribution reads, by their names."""

_MOST_VALUES = 1 << 22
"""Values of the parts of one sublayer that are held at once, 32 MB in float64."""


@dataclasses.dataclass(frozen=True)
class LogitPart:
    """The direct addition of one part of a model to the difference of two logits."""

    name: str
    """The intermediate, as a capture names it, or the parameter if it is a bias."""
    kind: str
    """``embedding``, ``positions``, ``bias``, or the kind of sublayer (``SublayerKind.label``)."""
    value: float
    """In logits; positive speaks for the first word, negative for the second."""
    attended: tuple[float, ...] = ()
    """For a head: what each position that it attends to adds. They sum to ``value``."""
    reads_source: bool = False
    """Whether ``attended`` are positions of the source."""


@dataclasses.dataclass(frozen=True)
class Contributions:
    """How much each word makes up the last hidden state of every position, by ALTI+."""

    source: Tensor
    """(position, source token); no columns if the model reads no source."""
    prefix: Tensor
    """(position, input token). Together the rows of both sum to one."""


def wanted_names(model: Attributable) -> Trace:
    """A trace that keeps everything which attribution reads."""
    names = ["embedding", "positions", "input", "*.weights", "*.value", "*.residual", "*.norm"]
    names += ["*.ssru.gate", "*.ssru.candidate", "*.ssru.cell"]

    sides: tuple[Side, ...] = (_side(model),)
    if isinstance(model, Transformer):
        sides = ("encoder", "decoder")

    return Trace(
        *(f"{side}.{name}" for side in sides for name in names),
        # heads are split further, by the positions that they attend to
        *(
            f"{side}.layers.*.{kind.name}.output"
            for side in sides
            for kind in model.config.sublayers(side)
            if not kind.has_heads
        ),
    )


def logit_parts(
    model: Attributable, values: _Values, row: int, word: int, rival: int
) -> tuple[LogitPart, ...]:
    """The difference of two words' logits at position ``row``, split exactly into parts.

    ``values`` are those of ``kept_values``; ``word`` and ``rival`` are ids. The parts come in the
    order of computation: embedding, positions, for each attention its heads, the feed-forward
    sublayers, and the bias of each. A head's values include their bias.
    """
    parts: list[LogitPart] = []

    weight = _double(model.output_weight)
    direction = weight[word] - weight[rival]
    if model.output_bias is not None:
        bias = _double(model.output_bias)
        parts.append(LogitPart("output_bias", "bias", float(bias[word] - bias[rival])))

    # Down the stream, because what follows a part decides how it reaches the logits. The norms
    # after a part are linear once their deviations are held, so the direction goes through them.
    sublayers, last_norm, name = _stream(model)
    stream_end = sublayers[-1].stream if sublayers else f"{_side(model)}.input"
    if isinstance(last_norm, Norm):
        x = values[stream_end][row]
        direction = _through(last_norm, x, direction, f"{name}.bias", parts)

    for sublayer in reversed(sublayers):
        if sublayer.around.placement == "post":
            x = values[f"{sublayer.name}.residual"][row]
            name = f"{sublayer.owner}.{sublayer.kind.norm_name}.norm.bias"
            direction = _through(sublayer.around.norm, x, direction, name, parts)
        parts += reversed(list(_sublayer_parts(sublayer, values, row, direction)))

    parts += reversed(list(_input_parts(_side(model), values, row, direction)))
    return tuple(reversed(parts))


def contributions_of(model: Attributable, values: _Values) -> Contributions | None:
    """The contributions of source and prefix words to the last hidden states (ALTI, ALTI+).

    Feed-forward sublayers and biases mix no words. A model of plain text has a prefix only: for an
    encoder that is the whole text. None if a sublayer mixes words in another way than attention
    and an SSRU do, whose weights say how much of each.
    """
    source = torch.zeros(0, 0, dtype=torch.float64)
    if isinstance(model, Transformer):
        count = len(values["encoder.input"])
        source = torch.eye(count, dtype=torch.float64)
        for sublayer in _placed(model.encoder.layers, "encoder", "encoder"):
            if not sublayer.kind.mixes_positions:
                continue
            if not _has_shares(sublayer):
                return None
            source = _own_contributions(sublayer, values) @ source

    prefix = torch.eye(len(values[f"{_side(model)}.input"]), dtype=torch.float64)
    read = torch.zeros(len(prefix), len(source), dtype=torch.float64)
    attended = prefix
    for sublayer in _stream(model)[0]:
        if not sublayer.kind.mixes_positions:
            continue
        if not _has_shares(sublayer):
            return None
        if sublayer.kind.reads_source:
            crossed = _crossed_contributions(sublayer, values)
            prefix, read = decoder_contributions(prefix, read, attended, crossed, source)
            continue
        attended = _own_contributions(sublayer, values)
        if not isinstance(model, Transformer):
            prefix = attended @ prefix
    return Contributions(read, prefix)


def _has_shares(sublayer: "_Placed") -> bool:
    return isinstance(sublayer.sublayer.module, MultiHeadAttention | Ssru)


@dataclasses.dataclass(frozen=True)
class _Placed:
    """One sublayer on the residual stream that leads to the logits."""

    sublayer: Sublayer
    block: str
    """The name of its block in a capture, such as ``decoder.layers.0``."""
    owner: str
    """The name of the block's parameters."""
    before: str
    """The intermediate that it reads, and that the residual connection adds."""

    @property
    def kind(self) -> SublayerKind:
        """The kind of the sublayer."""
        return self.sublayer.kind

    @property
    def around(self) -> AddAndNorm:
        """The residual connection and norm."""
        return self.sublayer.around

    @property
    def name(self) -> str:
        """The name in a capture, such as ``decoder.layers.0.cross_attention``."""
        return f"{self.block}.{self.sublayer.name}"

    @property
    def stream(self) -> str:
        """The intermediate that it leaves on the stream."""
        return f"{self.name}.{'norm' if self.around.placement == 'post' else 'residual'}"


def kept_values(trace: Trace) -> dict[str, Tensor]:
    """The values that a trace of ``wanted_names`` kept of one sentence, in float64 on the CPU."""
    # Positions have no batch axis; everything else has one of a single sentence.
    return {
        name: _double(value if name.endswith(".positions") else value[0])
        for name, value in trace.values.items()
    }


def _double(tensor: Tensor) -> Tensor:
    return tensor.detach().cpu().double()


def _side(model: Attributable) -> Side:
    return "encoder" if isinstance(model, EncoderOnly) else "decoder"


def _stream(model: Attributable) -> tuple[list[_Placed], nn.Module, str]:
    """The sublayers on the stream of the logits, in the order of computation, and the norm behind
    them with the name of its parameters."""
    match model:
        case EncoderOnly():
            layers, norm, owner = model.encoder.layers, model.encoder.last_norm, "encoder"
        case DecoderOnly():
            # Its parameters have no name of a side: it has only one.
            layers, norm, owner = model.layers, model.last_norm, ""
        case _:
            layers, norm, owner = model.decoder.layers, model.decoder.last_norm, "decoder"
    placed = list(_placed(layers, _side(model), owner))
    return placed, norm, f"{owner}.last_norm".removeprefix(".")


def _placed(layers: nn.ModuleList, side: Side, owner: str) -> Iterator[_Placed]:
    before = f"{side}.input"
    for index, layer in enumerate(layers):
        assert isinstance(layer, Block)
        owned = f"{owner}.layers.{index}".removeprefix(".")
        for sublayer in layer.sublayers:
            placed = _Placed(sublayer, f"{side}.layers.{index}", owned, before)
            before = placed.stream
            yield placed


def _through(
    norm: Norm, x: Tensor, direction: Tensor, bias_name: str, parts: list[LogitPart]
) -> Tensor:
    """The direction before ``norm``; the norm's own bias is added to the parts."""
    if norm.bias is not None:
        value = direct_logit_attribution(_double(norm.bias), direction)
        parts.append(LogitPart(bias_name, "bias", float(value)))
    gain = None if norm.gain is None else _double(norm.gain)
    return direction_before_norm(direction, x, norm.kind, gain, norm.eps)


def _sublayer_parts(
    sublayer: _Placed, values: _Values, row: int, direction: Tensor
) -> Iterator[LogitPart]:
    label, reads_source = sublayer.kind.label, sublayer.kind.reads_source
    match sublayer.sublayer.module:
        case MultiHeadAttention() as attention:
            [parts] = _parts_by_key(
                attention, sublayer.name, values, [row]
            )  # (heads, key, d_model)
            for head, attended in enumerate(direct_logit_attribution(parts, direction)):
                name, value = f"{sublayer.name}.heads.{head}.output", float(attended.sum())
                yield LogitPart(name, label, value, tuple(attended.tolist()), reads_source)
            bias, bias_name = attention.b_o, "b_o"
        case Ssru():
            [parts] = _ssru_parts_by_key(sublayer.name, values, [row])  # (1, key, d_model)
            [attended] = direct_logit_attribution(parts, direction).tolist()
            name, value = f"{sublayer.name}.output", math.fsum(attended)
            yield LogitPart(name, label, value, tuple(attended))
            bias, bias_name = None, ""
        case module:
            output = values[f"{sublayer.name}.output"][row]
            bias, bias_name = None, ""
            if isinstance(module, FeedForward):
                bias, bias_name = module.outer.bias, "outer.bias"
                output = output - _double(bias)
            value = float(direct_logit_attribution(output, direction))
            yield LogitPart(f"{sublayer.name}.output", label, value)

    if bias is not None:
        value = float(direct_logit_attribution(_double(bias), direction))
        yield LogitPart(f"{sublayer.owner}.{sublayer.kind.name}.{bias_name}", "bias", value)


def _input_parts(side: str, values: _Values, row: int, direction: Tensor) -> Iterator[LogitPart]:
    embedding = values[f"{side}.embedding"][row]
    value = float(direct_logit_attribution(embedding, direction))
    whole = float(direct_logit_attribution(values[f"{side}.input"][row], direction))

    if f"{side}.positions" in values:
        yield LogitPart(f"{side}.embedding", "embedding", value)
        yield LogitPart(f"{side}.positions", "positions", whole - value)
    else:
        # Positions act elsewhere, or a network has mixed them with the embedding.
        yield LogitPart(f"{side}.input", "embedding", whole)


def _parts_by_key(
    attention: MultiHeadAttention, name: str, values: _Values, queries: list[int]
) -> Tensor:
    """Return the contribution of each position to the output of each head, (query, heads, key,
    d_model)."""
    weights = values[f"{name}.weights"][:, queries]  # (heads, query, key)
    value = values[f"{name}.value"].unsqueeze(1)  # (heads, 1, key, value_size)

    positions = attention.positions
    if positions is not None and positions.values is not None:
        table = _double(positions.values)
        length = value.shape[-2]
        distances = relative_distances(length, length, len(table) // 2)[queries]
        value = value + table[distances]  # (heads, query, key, value_size)

    return attended_parts(weights, value, _double(attention.w_o).T).transpose(0, 1)


def _ssru_parts_by_key(name: str, values: _Values, queries: list[int]) -> Tensor:
    """Return the contribution of each position to the output of an SSRU, (query, 1, key, d_model).

    The cell of a position is a weighted sum of what it and those before it added, each feature with
    weights of its own; where it is below zero, nothing passes ReLU.
    """
    gates, candidates, cells = (values[f"{name}.{part}"] for part in ("gate", "candidate", "cell"))
    parts = torch.zeros(len(queries), *gates.shape, dtype=torch.float64)
    for row, query in enumerate(queries):
        read = slice(query + 1)  # positions after the query have no part
        passed = cells[query] > 0
        parts[row, read] = recurrence_shares(gates[read]) * candidates[read] * passed
    return parts.unsqueeze(1)


def _mixed(sublayer: _Placed, values: _Values) -> Iterator[tuple[int, Tensor, Tensor, Tensor]]:
    """For each position: its number, the parts of all keys, of the stream, and the hidden state.

    In a post-norm model all are taken behind the norm, whose deviation is held.
    """
    module = sublayer.sublayer.module
    assert isinstance(module, MultiHeadAttention | Ssru)
    before, after = values[sublayer.before], values[sublayer.stream]
    residual = values[f"{sublayer.name}.residual"]
    if isinstance(module, Ssru):
        keys, heads = len(before), 1
    else:
        keys, heads = values[f"{sublayer.name}.value"].shape[-2], module.heads
    at_once = max(1, _MOST_VALUES // (heads * keys * before.shape[-1]))

    norm = sublayer.around.norm
    gain = None if norm.gain is None else _double(norm.gain)
    for queries in torch.split(torch.arange(len(before)), at_once):
        if isinstance(module, Ssru):
            parts = _ssru_parts_by_key(sublayer.name, values, queries.tolist()).sum(1)
        else:
            parts = _parts_by_key(module, sublayer.name, values, queries.tolist()).sum(1)
        for row, by_key in zip(queries.tolist(), parts, strict=True):
            stream = before[row]
            if sublayer.around.placement == "post":
                x = residual[row]
                by_key = normalize_part(by_key, x, norm.kind, gain, norm.eps)
                stream = normalize_part(stream, x, norm.kind, gain, norm.eps)
            yield row, by_key, stream, after[row]


def _own_contributions(sublayer: _Placed, values: _Values) -> Tensor:
    """Return the contribution of each position to each in self-attention; the stream is the
    position's own."""
    rows = []
    for row, by_key, stream, whole in _mixed(sublayer, values):
        by_key[row] += stream
        rows.append(token_contributions(by_key, whole))
    return torch.stack(rows)


def _crossed_contributions(sublayer: _Placed, values: _Values) -> Tensor:
    """Return the contribution of each state of the encoder in cross-attention, and in the last
    column that of the stream."""
    return torch.stack(
        [
            token_contributions(torch.cat((by_key, stream[None])), whole)
            for _, by_key, stream, whole in _mixed(sublayer, values)
        ]
    )
