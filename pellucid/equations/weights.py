"""The values a model of the pages is made of: named weights, the choices of a config, dropout.

The pages (``transformer.py``, ``text_models.py``) are functions of these values. A weight matrix
has the shape that the paper gives it, one for each head; a program may pack them as it likes.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from pellucid.equations.choices import (
    Activation,
    NormKind,
    NormPlacement,
    PositionKind,
    StartSymbol,
)
from pellucid.equations.heads import NO_BIASES, HeadBiases


@runtime_checkable
class Dropout(Protocol):
    """Says which numbers training sets to zero; where it does so is written in the equations."""

    def drop(self, x: Tensor, rate: float) -> Tensor:
        """``x`` with a share ``rate`` of its numbers set to zero and the others scaled up."""
        ...

    def skips_layer(self, rate: float) -> bool:
        """Whether the next block is left out, with probability ``rate``."""
        ...


class NoDropout:
    """Evaluation: nothing is dropped."""

    def drop(self, x: Tensor, rate: float) -> Tensor:  # noqa: ARG002  # the protocol's signature
        """``x`` itself."""
        return x

    def skips_layer(self, rate: float) -> bool:  # noqa: ARG002
        """Never."""
        return False


@dataclasses.dataclass(frozen=True)
class Settings:
    """Every choice that changes what the same weights compute; the defaults are the paper's."""

    norm: NormPlacement = "post"
    norm_kind: NormKind = "layer"
    norm_eps: float = 1e-6
    activation: Activation = "relu"
    positions: PositionKind = "sinusoidal"
    start_position: int = 0
    start_symbol: StartSymbol = "token"
    scale_embeddings: bool = True
    scale_attention: bool = True
    dropout: float = 0.1
    """Rate after every sublayer and after the positions (§5.4)."""
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    layer_drop: float = 0.0
    training: Dropout = dataclasses.field(default_factory=NoDropout)
    """The dropout to apply; the default is that of evaluation, which drops nothing at any rate."""


@dataclasses.dataclass(frozen=True)
class EmbeddingWeights:
    """W_Embedding, the network that may follow it, and what learned positions learn."""

    weight: Float[Tensor, "vocabulary d_model"]
    network: tuple[Tensor, Tensor] | None = None
    """W_x (d_model × hidden) and W_zx (hidden × d_model) of ``network_embedding``."""
    positions: Mapping[str, Tensor] = dataclasses.field(default_factory=dict)
    """The weights that ``add_positions`` takes; empty if positions learn nothing."""


@dataclasses.dataclass(frozen=True)
class AttentionWeights:
    """W^Q, W^K and W^V of every head, and W^O."""

    w_q: Float[Tensor, "heads d_model key_size"]
    w_k: Float[Tensor, "heads d_model key_size"]
    w_v: Float[Tensor, "heads d_model value_size"]
    w_o: Float[Tensor, "heads*value_size d_model"]
    biases: HeadBiases = NO_BIASES
    key_distances: Float[Tensor, "distances key_size"] | None = None
    """aᴷ of relative positions."""
    value_distances: Float[Tensor, "distances value_size"] | None = None
    """aⱽ of relative positions."""


@dataclasses.dataclass(frozen=True)
class NormWeights:
    """Gain g and bias b of a norm, as far as it learns them."""

    gain: Float[Tensor, " d_model"] | None = None
    bias: Float[Tensor, " d_model"] | None = None


@dataclasses.dataclass(frozen=True)
class FeedForwardWeights:
    """W₁, b₁, W₂ and b₂."""

    w_1: Float[Tensor, "d_model d_ff"]
    b_1: Float[Tensor, " d_ff"]
    w_2: Float[Tensor, "d_ff d_model"]
    b_2: Float[Tensor, " d_model"]


@dataclasses.dataclass(frozen=True)
class BlockWeights:
    """A block of self-attention and feed-forward: of an encoder, or of a model of plain text."""

    self_attention: AttentionWeights
    self_attention_norm: NormWeights
    feed_forward: FeedForwardWeights
    feed_forward_norm: NormWeights


@dataclasses.dataclass(frozen=True)
class SsruWeights:
    """W, W_f and b_f of a simpler simple recurrent unit."""

    w: Float[Tensor, "d_model d_model"]
    w_f: Float[Tensor, "d_model d_model"]
    b_f: Float[Tensor, " d_model"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class DecoderBlockWeights:
    """A block of masked self-attention or an SSRU, cross-attention and feed-forward."""

    self_attention: AttentionWeights | None = None
    self_attention_norm: NormWeights | None = None
    ssru: SsruWeights | None = None
    ssru_norm: NormWeights | None = None
    cross_attention: AttentionWeights
    cross_attention_norm: NormWeights
    feed_forward: FeedForwardWeights
    feed_forward_norm: NormWeights


@dataclasses.dataclass(frozen=True)
class Transformer:
    """An encoder-decoder: its settings and all its weights."""

    settings: Settings
    source_embedding: EmbeddingWeights
    target_embedding: EmbeddingWeights
    encoder: Sequence[BlockWeights]
    decoder: Sequence[DecoderBlockWeights]
    encoder_norm: NormWeights | None
    """The norm that closes a pre-norm stack; a post-norm stack has none."""
    decoder_norm: NormWeights | None
    w_s: Float[Tensor, "d_model vocabulary"]
    b_s: Float[Tensor, " vocabulary"] | None = None


@dataclasses.dataclass(frozen=True)
class TextModel:
    """Blocks over one text: an encoder-only or a decoder-only model."""

    settings: Settings
    embedding: EmbeddingWeights
    blocks: Sequence[BlockWeights]
    last_norm: NormWeights | None
    """The norm that closes a pre-norm stack; a post-norm stack has none."""
    w_s: Float[Tensor, "d_model vocabulary"]
    b_s: Float[Tensor, " vocabulary"] | None = None


def parameter_sets(weights: object, name: str = "") -> Iterator[tuple[str, Tensor]]:
    """Every weight of a model with its name, such as ``encoder.0.self_attention.w_q``.

        Θ = {W^Q, W^K, W^V, W^O, W₁, b₁, W₂, b₂ of every block} ∪ {W_Embedding, W^S, b^S}

    EQ: 85.  Source: Single Page, Variables.
    Symbols: weights = any value of this file; a shared matrix comes once for each of its names.
    """
    parts: list[tuple[str, object]] = []
    if isinstance(weights, Tensor):
        yield name, weights
    elif isinstance(weights, Mapping):
        parts = [(str(key), value) for key, value in weights.items()]
    elif isinstance(weights, tuple | list):
        parts = [(str(index), value) for index, value in enumerate(weights)]
    elif dataclasses.is_dataclass(weights):
        parts = [(each.name, getattr(weights, each.name)) for each in dataclasses.fields(weights)]

    for key, value in parts:
        yield from parameter_sets(value, f"{name}.{key}" if name else key)


def count_parameters(weights: object) -> int:
    """Count the numbers that a model learns; a matrix that is used twice counts once.

        encoder block: 2 d_model h dₖ + 2 d_model h dᵥ + 2 d_model d_ff + d_ff + d_model
        decoder block: the same with the attention part twice; each norm adds 2 d_model

    EQ: 86.  Source: derived from Single Page, Variables. The paper's
    base model with 37,000 words has 63 million.
    """
    # by address: a tied matrix stands under several names, but in one place
    return sum({each.data_ptr(): each.numel() for _, each in parameter_sets(weights)}.values())
