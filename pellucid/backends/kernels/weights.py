"""The weights of a bundle as the kernels and their equation take them, rounded or not.

A matrix W (outputs, inputs) is rounded to whole numbers of 8 bits with a scale for each output:

    sⱼ = maxᵢ |Wⱼᵢ| / 127,    Qⱼᵢ = round(Wⱼᵢ / sⱼ),    W ≈ s ⊙ Q

Norms, biases and positions stay as they are. This module does not import torch.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np
import numpy.typing as npt

from pellucid.bundle import Bundle, StoredModel
from pellucid.core.errors import BundleError
from pellucid.model.config import TransformerConfig

Numbers = npt.NDArray[np.float32]
Tensors = Mapping[str, npt.NDArray[np.generic]]

MOST_POSITIONS = 2048
"""Rows of the table of sinusoids; a longer line needs another engine."""


@dataclasses.dataclass(frozen=True)
class Rounded:
    """A matrix in 8 bits: scale ⊙ whole, with a bias or without."""

    whole: npt.NDArray[np.int8]
    """(outputs, inputs), from -127 to 127."""
    scale: Numbers
    bias: Numbers | None = None


@dataclasses.dataclass(frozen=True)
class Exact:
    """A matrix as the bundle has it, for comparison with the rounded one.

    It is read whenever it is needed and not kept: all matrices together take four times the memory
    of the rounded ones.
    """

    read: Callable[[], Numbers]
    """The weight (outputs, inputs)."""
    bias: Numbers | None = None

    @property
    def weight(self) -> Numbers:
        """The weight, read now."""
        return self.read()


Matrix = Rounded | Exact


@dataclasses.dataclass(frozen=True)
class Shortlist:
    """A guess of all logits from a state on few axes: first (turn h), both with a bias."""

    turn: Rounded
    """(axes, d_model)."""
    first: Rounded
    """(words, axes)."""

    @property
    def axes(self) -> int:
        """How many there are."""
        return len(self.turn.whole)


_ROWS_AT_ONCE = 1024
"""Rows of a matrix that are rounded at once, each step of which takes memory."""


def rounded(weight: Numbers, bias: Numbers | None = None) -> Rounded:
    """The matrix in 8 bits. An output whose weights are all zero has the scale 0."""
    whole, scale = np.empty(weight.shape, np.int8), np.empty(len(weight), np.float32)
    for first in range(0, len(weight), _ROWS_AT_ONCE):
        rows = slice(first, first + _ROWS_AT_ONCE)
        largest = np.abs(weight[rows]).max(axis=1).astype(np.float32)
        with np.errstate(divide="ignore", invalid="ignore"):
            inverse = np.where(largest > 0, np.float32(127) / largest, np.float32(0))
            multiples = np.rint(weight[rows] * inverse[:, None])
        # a weight that is NaN or infinite makes its scale so too, and the search refuses the result
        clean = np.nan_to_num(multiples, nan=0.0, posinf=127.0, neginf=-127.0)
        whole[rows] = clean.clip(-127, 127)
        scale[rows] = largest / np.float32(127)
    return Rounded(whole, scale, bias)


@dataclasses.dataclass(frozen=True)
class Norm:
    """Gain and bias of a LayerNorm."""

    gain: Numbers
    bias: Numbers


@dataclasses.dataclass(frozen=True)
class SelfAttention:
    """W^Q, W^K and W^V of all heads in one matrix, and W^O."""

    packed: Matrix
    out: Matrix


@dataclasses.dataclass(frozen=True)
class Ssru:
    """W and, with its bias, W_f in one matrix (Kim et al., 2019)."""

    both: Matrix


@dataclasses.dataclass(frozen=True)
class CrossAttention:
    """W^Q; W^K and W^V in one matrix, which the source passes once; W^O."""

    query: Matrix
    memory: Matrix
    out: Matrix


@dataclasses.dataclass(frozen=True)
class Layer:
    """A block: what reads the positions before, in a decoder cross-attention, feed-forward."""

    reading: SelfAttention | Ssru
    reading_norm: Norm
    cross: CrossAttention | None
    cross_norm: Norm | None
    inner: Matrix
    outer: Matrix
    feed_norm: Norm


@dataclasses.dataclass(frozen=True)
class Weights:
    """An encoder-decoder as the kernels take it."""

    heads: int
    key_size: int
    value_size: int
    d_ff: int
    norm: Literal["post", "pre"]
    norm_eps: float
    activation: Literal["relu", "swish"]
    embedding_scale: float
    positions: Literal["none", "added", "rotary"]
    table: Numbers | None
    """The vectors that are added to embeddings (position, d_model), or the sinusoids by which the
    heads' features turn (position, key_size)."""
    source: Matrix
    target: Matrix
    """The matrix of the source, if they are shared; looked up without the bias that it may have."""
    output: Matrix
    """The matrix of the target, if they are tied."""
    start_is_zero: bool
    """Whether the decoder reads a vector of zeros in place of BOS."""
    encoder: tuple[Layer, ...]
    decoder: tuple[Layer, ...]
    encoder_norm: Norm | None
    decoder_norm: Norm | None

    @property
    def position_count(self) -> int | None:
        """How many positions it can number; None is no limit."""
        return None if self.table is None else len(self.table)


def arrays_of(bundle: Bundle) -> Tensors:
    """The parameters, from the file if the model was not read yet: torch is not needed for it."""
    if isinstance(bundle.held, StoredModel):
        tensors = bundle.held.tensors()
        if tensors is not None:
            return tensors
    # float32 first, whatever the bundle stores, and each under all of its names: a shared parameter
    # may be asked for by any
    named = bundle.model.named_parameters(remove_duplicate=False)
    return {name: each.detach().cpu().float().numpy() for name, each in named}


def read_weights(
    tensors: Tensors, config: TransformerConfig, *, are_exact: bool = False
) -> Weights:
    """The weights from a bundle's ``tensors``, by their names there; rounded, or as they are.

    Raises BundleError for a tensor that is missing, and for a weight and a bias that do not fit;
    ``Library.open`` holds the sizes to those of the config.
    """
    reader = _Reader(tensors, config, are_exact)
    names = ["target_embedding.weight"]
    if config.tie_output:
        names.append("output_weight")
    if config.share_embeddings:
        names.append("source_embedding.weight")
    bias = "output_bias" if config.output_bias else None
    # an embedding has no bias, so one matrix serves as all three
    source = target = output = reader.matrix(tuple(names), bias if config.tie_output else None)
    if not config.share_embeddings:
        source = reader.matrix(("source_embedding.weight",))
    if not config.tie_output:
        output = reader.matrix(("output_weight",), bias)

    is_pre = config.norm == "pre"
    positions: Literal["none", "added", "rotary"] = "added"
    if config.positions in ("rotary", "none"):
        positions = config.positions
    assert config.activation in ("relu", "swish"), "the table of capabilities refuses others"
    return Weights(
        heads=config.heads,
        key_size=config.key_size,
        value_size=config.value_size,
        d_ff=config.d_ff,
        norm=config.norm,
        norm_eps=config.norm_eps,
        activation=config.activation,
        embedding_scale=math.sqrt(config.d_model) if config.scale_embeddings else 1.0,
        positions=positions,
        table=_table(config, reader),
        source=source,
        target=target,
        output=output,
        start_is_zero=config.start_symbol == "zero",
        encoder=tuple(reader.layer("encoder", index) for index in range(config.encoder_layers)),
        decoder=tuple(reader.layer("decoder", index) for index in range(config.decoder_layers)),
        encoder_norm=reader.norm("encoder.last_norm") if is_pre else None,
        decoder_norm=reader.norm("decoder.last_norm") if is_pre else None,
    )


def sinusoids(length: int, width: int, divisor: float | None = None) -> Numbers:
    """The table of EQ-24, sines at even places and cosines beside them, from position 0.

    ``divisor`` divides the number of a pair in the exponent: width / 2 if it is left out.
    """
    pair = np.arange(width) // 2
    exponents = pair / (width / 2 if divisor is None else divisor)
    angles = np.arange(length, dtype=np.float64)[:, None] / 10000.0**exponents
    return np.where(np.arange(width) % 2 == 0, np.sin(angles), np.cos(angles)).astype(np.float32)


def t2t_sinusoids(length: int, width: int) -> Numbers:
    """The same with the divisor of Tensor2Tensor and Marian."""
    return sinusoids(length, width, max(width // 2 - 1, 1))


def _table(config: TransformerConfig, reader: "_Reader") -> Numbers | None:
    match config.positions:
        case "sinusoidal":
            return sinusoids(MOST_POSITIONS, config.d_model)
        case "sinusoidal_t2t":
            return t2t_sinusoids(MOST_POSITIONS, config.d_model)
        case "learned":
            names = ("target_embedding.positions.learned", "source_embedding.positions.learned")
            return reader.numbers(*names)
        case "rotary":
            return sinusoids(MOST_POSITIONS, config.key_size)
        case _:
            return None


@dataclasses.dataclass(frozen=True)
class _Reader:
    tensors: Tensors
    config: TransformerConfig
    are_exact: bool

    def numbers(self, *names: str) -> Numbers:
        """A tensor by the first of its names; a shared parameter is stored under one of them."""
        for name in names:
            if name in self.tensors:
                return np.ascontiguousarray(self.tensors[name], dtype=np.float32)
        raise BundleError(f"the model has no tensor {' or '.join(names)}")

    def matrix(self, names: tuple[str, ...], bias: str | None = None) -> Matrix:
        return self.made(lambda: self.numbers(*names), None if bias is None else self.numbers(bias))

    def made(self, read: Callable[[], Numbers], bias: Numbers | None) -> Matrix:
        """A matrix of the weight (outputs, inputs) that ``read`` gives and a bias (outputs)."""

        def checked() -> Numbers:
            weight = read()
            if weight.ndim != 2 or (bias is not None and bias.shape != weight.shape[:1]):
                raise BundleError("a weight of the model and its bias do not fit together")
            return weight

        return Exact(checked, bias) if self.are_exact else rounded(checked(), bias)

    def norm(self, name: str) -> Norm:
        return Norm(self.numbers(f"{name}.gain"), self.numbers(f"{name}.bias"))

    def layer(self, side: str, index: int) -> Layer:
        """The weights of one layer of a side, ``encoder`` or ``decoder``."""
        name = f"{side}.layers.{index}"
        is_decoder = side == "decoder"
        kind: str = self.config.sublayers("decoder" if is_decoder else "encoder")[0].name
        return Layer(
            reading=self._ssru(f"{name}.ssru") if kind == "ssru" else self._attention(name),
            reading_norm=self.norm(f"{name}.{kind}_norm.norm"),
            cross=self._cross(f"{name}.cross_attention") if is_decoder else None,
            cross_norm=self.norm(f"{name}.cross_attention_norm.norm") if is_decoder else None,
            inner=self.matrix(
                (f"{name}.feed_forward.inner.weight",), f"{name}.feed_forward.inner.bias"
            ),
            outer=self.matrix(
                (f"{name}.feed_forward.outer.weight",), f"{name}.feed_forward.outer.bias"
            ),
            feed_norm=self.norm(f"{name}.feed_forward_norm.norm"),
        )

    def _attention(self, name: str) -> SelfAttention:
        name = f"{name}.self_attention"
        return SelfAttention(self._part(name, "qkv"), self._part(name, "o"))

    def _cross(self, name: str) -> CrossAttention:
        keys = self.config.heads * self.config.key_size
        return CrossAttention(
            self._part(name, "qkv", slice(0, keys)),
            self._part(name, "qkv", slice(keys, None)),
            self._part(name, "o"),
        )

    def _part(self, name: str, part: str, rows: slice = slice(None)) -> Matrix:
        has_bias = self.config.attention_bias
        bias = self.numbers(f"{name}.b_{part}")[rows] if has_bias else None
        return self.made(lambda: self.numbers(f"{name}.w_{part}")[rows], bias)

    def _ssru(self, name: str) -> Ssru:
        bias = self.numbers(f"{name}.gate.bias")

        def both() -> Numbers:
            parts = (f"{name}.candidate.weight", f"{name}.gate.weight")
            return np.concatenate([self.numbers(part) for part in parts])

        return Ssru(self.made(both, np.concatenate([np.zeros_like(bias), bias])))
