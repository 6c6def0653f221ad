"""The settings of a model: one class for each kind, made of the groups that kinds share.

Code that needs a group (blocks, an encoder, two sides) takes the group, and so serves every kind
that has it; code of one kind takes that kind's class. ``ModelConfig`` is any of them.
"""

import functools
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

import pydantic
from pydantic import BeforeValidator, Field, ModelWrapValidatorHandler, model_validator

from pellucid.core.config import Config, parse_union
from pellucid.equations.choices import (
    Activation,
    Cell,
    DecoderReading,
    NormKind,
    NormPlacement,
    PositionKind,
    RecurrentAttention,
    StartSymbol,
)
from pellucid.model.sublayers import (
    CROSS_ATTENTION,
    FEED_FORWARD,
    SELF_ATTENTION,
    SSRU,
    Side,
    SublayerKind,
)

_NUMBERED: tuple[PositionKind, ...] = ("learned", "one_hot", "joint", "summed")
"""Kinds with a row for each position, which end at the last row."""

_MOST_LAYERS = 1000
_WIDEST = 1 << 16
_MOST_POSITIONS = 1 << 20
"""Limits beyond any real model, as a folder from a stranger must not cause an absurd allocation."""


class ModelSettings(Config, ABC):
    """Settings of every model. The defaults are those of Vaswani et al. (2017), row "base"."""

    translates: ClassVar[bool]
    """True for kinds that learn from sentence pairs, False for those of plain text."""
    predicts_tokens: ClassVar[bool]
    """True for kinds that predict every next token of a known text at once."""
    command: ClassVar[str]
    """The command of ``pellucid`` that such a model is for."""
    reason: ClassVar[str]
    """Why a kind that lacks a group of settings has no use for them."""

    kind: str
    d_model: int = Field(512, ge=1, le=_WIDEST)
    """Width of embeddings and of the hidden states between blocks or layers (EQ-80); a
    bidirectional layer gives half of it to each direction."""
    pretrained_vectors: str | None = None
    """A file in word2vec's text format, or a skipgram bundle, from which the embeddings start:
    tokens that it names take its vectors, scaled as a whole to the usual size. Read only when a
    run starts."""

    @property
    @abstractmethod
    def max_length(self) -> int | None:
        """The longest sequence that can be numbered, in tokens with the stop; None is no limit."""

    @abstractmethod
    def summary(self) -> str:
        """The shape of the model in a line, for its card."""

    @abstractmethod
    def problems(self) -> list[str]:
        """Return the problems between settings that are right one by one."""

    @model_validator(mode="wrap")
    @classmethod
    def _settings_fit(cls, table: Any, build: ModelWrapValidatorHandler[Self]) -> Self:
        foreign: list[str] = []
        if isinstance(table, Mapping):
            foreign = foreign_settings(cls, table)
            table = own_settings(cls, table)

        config = build(table)
        problems = foreign + config.problems()
        if problems:
            raise ValueError("; ".join(problems))
        return config


class EncoderSettings(ModelSettings):
    """Settings of every kind with an encoder."""

    reason = "no other kind has an encoder"

    encoder_layers: int = Field(6, ge=0, le=_MOST_LAYERS)
    """The number of encoder blocks (EQ-105) or recurrent layers."""


class DecoderSettings(ModelSettings):
    """Settings of every kind with a decoder."""

    reason = "no other kind has a decoder"

    decoder_layers: int = Field(6, ge=1, le=_MOST_LAYERS)
    """The number of decoder blocks (EQ-110). Recurrent kinds need as many as in the encoder: each
    layer starts from the final state of the encoder layer of the same number."""


class TranslatorSettings(ModelSettings):
    """Settings of every kind that learns from sentence pairs, and translates."""

    translates = True
    predicts_tokens = True
    command = "translate"
    reason = "no other kind has two sides"

    title: ClassVar[str]
    """The name of such a model, with its year."""

    share_embeddings: bool = True
    """One embedding matrix for source and target, which needs a joint vocabulary (EQ-19)."""

    @property
    @abstractmethod
    def cross_attentions(self) -> tuple[str, ...]:
        """The parts that attend to the source, in the order of computation; none without."""


class NetworkSettings(ModelSettings):
    """Settings of every kind that is more than two matrices."""

    reason = "skipgram is two matrices and nothing else"

    dropout: float = Field(0.1, ge=0.0, lt=1.0)
    """Share of numbers set to zero after every sublayer and after adding positions (§5.4); in
    recurrent kinds after embeddings and layers, never from word to word."""
    tie_output: bool = True
    """The matrix before the last softmax is the target embedding, transposed (§3.4)."""
    scale_embeddings: bool = True
    """Multiply embeddings by the square root of d_model (EQ-15)."""
    output_bias: bool = False
    """Add a bias to the last linear map (EQ-112; the Single Page has one, the paper none)."""


class BlockSettings(NetworkSettings):
    """Settings of every kind made of the Transformer's blocks."""

    reason = "no other kind is made of its blocks"

    d_ff: int = Field(2048, ge=1, le=_MOST_POSITIONS)
    """Inner width of the feed-forward network (EQ-100)."""
    heads: int = Field(8, ge=1, le=_WIDEST)
    """The number of attention heads in a layer (EQ-77)."""
    d_k: int | None = Field(None, ge=1, le=_WIDEST)
    """Width of a query or key in one head; by default d_model / heads."""
    d_v: int | None = Field(None, ge=1, le=_WIDEST)
    """Width of a value in one head; by default d_model / heads."""
    attention_dropout: float = Field(0.0, ge=0.0, lt=1.0)
    """Share of attention weights set to zero; not in the paper, 0.1 in its authors' code."""
    activation_dropout: float = Field(0.0, ge=0.0, lt=1.0)
    """Share of the feed-forward network's inner numbers set to zero; not in the paper."""
    layer_drop: float = Field(0.0, ge=0.0, lt=1.0)
    """Probability that training skips a block, drawn in every update (Fan et al. 2020,
    LayerDrop); not in the paper."""
    norm: NormPlacement = "post"
    """Normalize after the residual sum, as the paper does, or before each sublayer."""
    norm_eps: float = Field(1e-6, gt=0.0, le=1.0)
    """Added to the variance under the root, so that a constant row stays finite (ER-49)."""
    norm_kind: NormKind = "layer"
    """The norm: the paper's LayerNorm (EQ-91), RMSNorm, or Bayesuvius's division by the length,
    plain or after centering (EQ-98, ER-33)."""
    norm_affine: bool = True
    """Let the norm learn a gain and, for ``layer``, a bias; ``l2`` and ``l2_centered`` never do."""
    positions: PositionKind = "sinusoidal"
    """How positions are encoded: by adding sinusoids (EQ-24), those of Tensor2Tensor and Marian
    (``sinusoidal_t2t``) or learned vectors (EQ-30); by
    Agarwal's ``one_hot`` (EQ-21, projected back to d_model), ``joint`` (EQ-22) and ``summed``
    (EQ-23) networks; inside self-attention by distances (``relative``, EQ-31), rotations
    (``rotary``) or slopes (``alibi``); or not at all (EQ-20)."""
    max_positions: int = Field(1024, ge=1, le=_MOST_POSITIONS)
    """The longest sequence, in tokens with the stop, that learned, one_hot, joint and summed
    positions can number."""
    start_position: int = Field(0, ge=0, le=1)
    """The number of the first position in a sinusoid; the sources disagree, the paper's code says 0
    (ER-53)."""
    position_hidden: int | None = Field(None, ge=1, le=_MOST_POSITIONS)
    """Inner width of the networks behind joint and summed positions and the mlp embedding; by
    default d_model."""
    relative_clip: int = Field(16, ge=1, le=_MOST_POSITIONS)
    """The distance, in tokens, from which relative positions treat all distances alike
    (Shaw et al. 2018, Table 3, where 16 is as good as 256)."""
    embedding: Literal["linear", "mlp"] = "linear"
    """The map between a word's embedding and its position: none, as in the paper, or Agarwal's
    small network (EQ-28, ER-51)."""
    projection: Literal["per_head", "two_stage"] = "per_head"
    """Project rows for each head at once, as the paper does, or through one narrow projection
    that all heads share, as the Transformers report has it (EQ-87, ER-22)."""
    scale_attention: bool = True
    """Divide dot products by the square root of d_k (EQ-51); False is Luong's plain dot product
    (EQ-61, ER-67)."""
    activation: Activation = "relu"
    """The activation inside the feed-forward network; the paper's is relu (EQ-99)."""
    attention_bias: bool = False
    """Add biases to the projections of attention; the paper has none, Marian has."""

    @abstractmethod
    def sublayers(self, side: Side) -> tuple[SublayerKind, ...]:
        """The kinds of sublayers of a block on this side, in the order of computation."""

    @property
    def key_size(self) -> int:
        """Width of a query or key in one head, dₖ."""
        return self.d_k or self.d_model // self.heads

    @property
    def value_size(self) -> int:
        """Width of a value in one head, dᵥ."""
        return self.d_v or self.d_model // self.heads

    @property
    def max_length(self) -> int | None:
        """The longest sequence that can be numbered, in tokens with the stop; None is no limit."""
        return self.max_positions if self.positions in _NUMBERED else None

    def shape(self) -> str:
        """The sizes of its blocks, for a summary."""
        return (
            f"width {self.d_model}, feed-forward {self.d_ff}, {self.heads} heads,"
            f" {self.norm}-norm, {self.positions} positions"
        )

    def problems(self) -> list[str]:
        """Widths that do not fit together."""
        # with both widths given, heads need not divide d_model (ER-72)
        has_free_widths = self.d_k is not None and self.d_v is not None
        if not has_free_widths and self.d_model % self.heads:
            nearest = max(1, round(self.d_model / self.heads)) * self.heads
            return [
                f"d_model must be a multiple of heads, got d_model={self.d_model} and"
                f" heads={self.heads}; the nearest that fits is {nearest}"
            ]

        problems = []
        if self.projection == "two_stage" and (self.d_k is not None or self.d_v is not None):
            problems.append(
                "d_k and d_v must be left out with projection=two_stage, whose heads share one"
                " projection to d_model / heads columns (EQ-87)"
            )
        if self.positions == "rotary" and self.key_size % 2:
            problems.append(
                "d_k must be even with positions=rotary, which turns features in pairs, got"
                f" {self.key_size}"
            )

        return problems


class StartSettings(ModelSettings):
    """Settings of every kind with a decoder of blocks."""

    reason = "no other kind has a decoder of blocks"

    start_symbol: StartSymbol = "token"
    """The first input of the decoder: the embedding of a start token, or the zero vector of the
    Single Page (EQ-106, ER-44)."""


class RecurrentSettings(TranslatorSettings, DecoderSettings, EncoderSettings, NetworkSettings):
    """Settings of every recurrent kind."""

    reason = "no other kind has recurrent cells"

    cell: Cell = "lstm"
    """The cell of a recurrent layer (EQ-131): Sutskever's LSTM or Cho's GRU."""

    @property
    def max_length(self) -> int | None:
        """A network that reads word by word numbers no positions."""
        return None

    def shape(self) -> str:
        """A summary of the layers."""
        return (
            f"{self.encoder_layers} encoder and {self.decoder_layers} decoder layers of"
            f" {self.cell} cells, width {self.d_model}"
        )

    def layer_problems(self) -> list[str]:
        """Layers that have nothing to start from."""
        if self.encoder_layers == self.decoder_layers:
            return []
        return [
            f"encoder_layers must equal decoder_layers for model.kind={self.kind}, where each"
            " decoder layer begins in the last state of the encoder layer beside it, got"
            f" {self.encoder_layers} and {self.decoder_layers}"
        ]


class TransformerConfig(
    StartSettings, BlockSettings, TranslatorSettings, DecoderSettings, EncoderSettings
):
    """The settings of the Transformer."""

    title = "Transformer (2017)"
    reason = "no other kind has a decoder whose first sublayer is chosen"

    kind: Literal["transformer"] = "transformer"
    """An encoder and a decoder of attention blocks (EQ-115)."""
    decoder: DecoderReading = "self-attention"
    """How a decoder position reads those before it: by self-attention, as in the paper, or by an
    SSRU, a gated running mean that is faster to translate with (Kim et al. 2019)."""

    def sublayers(self, side: Side) -> tuple[SublayerKind, ...]:
        """The decoder has cross-attention between the two sublayers of the encoder."""
        if side == "encoder":
            return (SELF_ATTENTION, FEED_FORWARD)
        before = {"self-attention": SELF_ATTENTION, "ssru": SSRU}
        return (before[self.decoder], CROSS_ATTENTION, FEED_FORWARD)

    @property
    def cross_attentions(self) -> tuple[str, ...]:
        """The cross-attention of each decoder block."""
        names = [kind.name for kind in self.sublayers("decoder") if kind.reads_source]
        layers = range(self.decoder_layers)
        return tuple(f"decoder.layers.{index}.{name}" for index in layers for name in names)

    def summary(self) -> str:
        """The shape of the model in a line, for its card."""
        layers = f"{self.encoder_layers} encoder and {self.decoder_layers} decoder layers"
        first = self.sublayers("decoder")[0]
        decoder = "" if first is SELF_ATTENTION else f", {first.label} decoder"
        return f"{layers}, {self.shape()}{decoder}"


class RnnConfig(RecurrentSettings):
    """The settings of a recurrent translator without attention."""

    title = "recurrent encoder-decoder (2014)"
    reason = "no other kind has to put a whole sentence into one vector"

    kind: Literal["rnn"] = "rnn"
    """An encoder to one vector and a decoder from it (EQ-133, 2014)."""
    reverse_source: bool = False
    """Read the words of the source from the last to the first, so that the first are read just
    before the decoder starts (Sutskever et al. 2014, §3.3)."""
    feed_summary: bool = False
    """Let the decoder read the encoder's last state beside every word, not only at the start (Cho
    et al. 2014, §2.2)."""

    @property
    def cross_attentions(self) -> tuple[str, ...]:
        """None: the decoder reads the encoder's last state alone."""
        return ()

    def summary(self) -> str:
        """The shape of the model in a line, for its card."""
        return f"{self.shape()}, no attention"

    def problems(self) -> list[str]:
        """Layers that have nothing to start from."""
        return self.layer_problems()


class RnnAttentionConfig(RecurrentSettings):
    """The settings of a recurrent translator with attention."""

    title = "recurrent encoder-decoder with attention (2015)"
    reason = (
        "the decoder of a plain rnn has nothing to look back at, and that of a Transformer looks"
        " by scaled dot products"
    )

    kind: Literal["rnn-attention"] = "rnn-attention"
    """A bidirectional encoder and a decoder that attends to it (EQ-136, 2015)."""
    attention: RecurrentAttention = "additive"
    """How attention scores the states of the source (EQ-135, EQ-136): by Bahdanau's small
    network, or by Luong's dot product, plain or with a matrix between."""
    input_feeding: bool = True
    """Let the decoder read, beside each word, its last output (Luong et al. 2015, §3.3)."""

    @property
    def cross_attentions(self) -> tuple[str, ...]:
        """One, after the last layer."""
        return ("decoder.cross_attention",)

    def summary(self) -> str:
        """The shape of the model in a line, for its card."""
        feeding = "with" if self.input_feeding else "without"
        return (
            f"{self.shape()}, bidirectional encoder, {self.attention} attention, {feeding} input"
            " feeding"
        )

    def problems(self) -> list[str]:
        """Layers that have nothing to start from, and a width that has no half."""
        problems = self.layer_problems()
        if self.d_model % 2:
            problems.append(
                "d_model must be even for model.kind=rnn-attention, half for each direction of"
                f" the encoder, got {self.d_model}"
            )
        return problems


class EncoderConfig(BlockSettings, EncoderSettings):
    """The settings of an encoder of plain text."""

    translates = False
    predicts_tokens = False
    command = "fill"
    reason = "no other kind learns by filling masks"

    kind: Literal["encoder"] = "encoder"
    """On plain text: blocks that fill masks (EQ-137, the road to BERT)."""
    mask_rate: float = Field(0.15, gt=0.0, lt=1.0)
    """Share of the tokens that must be predicted; of those 80% are masked, 10% replaced and 10%
    unchanged (Devlin et al. 2019, §3.1)."""

    def sublayers(self, side: Side) -> tuple[SublayerKind, ...]:  # noqa: ARG002  # there is one
        """The sublayers of the Transformer's encoder."""
        return (SELF_ATTENTION, FEED_FORWARD)

    def summary(self) -> str:
        """The shape of the model in a line, for its card."""
        return f"{self.encoder_layers} encoder layers, {self.shape()}"


class DecoderConfig(StartSettings, BlockSettings, DecoderSettings):
    """The settings of a decoder of plain text."""

    translates = False
    predicts_tokens = True
    command = "continue"

    kind: Literal["decoder"] = "decoder"
    """On plain text: blocks that continue a text (EQ-138, the road to GPT)."""

    def sublayers(self, side: Side) -> tuple[SublayerKind, ...]:  # noqa: ARG002  # there is one
        """The sublayers of the Transformer's decoder but for cross-attention."""
        return (SELF_ATTENTION, FEED_FORWARD)

    def summary(self) -> str:
        """The shape of the model in a line, for its card."""
        return f"{self.decoder_layers} decoder layers without cross-attention, {self.shape()}"


class SkipGramConfig(ModelSettings):
    """The settings of word vectors."""

    translates = False
    predicts_tokens = False
    command = "vectors"
    reason = "no other kind learns from neighbors alone"

    kind: Literal["skipgram"] = "skipgram"
    """On plain text: word vectors from neighbors (EQ-17, Word2Vec)."""
    window: int = Field(5, ge=1, le=_WIDEST)
    """The number of words on either side that are neighbors (EQ-17)."""
    negatives: int = Field(5, ge=0, le=_WIDEST)
    """Words drawn against each true neighbor (Mikolov et al. 2013b, §2.2); 0 is the full softmax
    of EQ-17."""
    subsample: float = Field(1e-3, ge=0.0, le=1.0)
    """Words with a larger share of the text than this are subsampled (Mikolov et al. 2013b, §2.3,
    and the value of word2vec.c); 0 keeps all."""

    @property
    def max_length(self) -> int | None:
        """Neighbors have distances, not positions."""
        return None

    def summary(self) -> str:
        """The shape of the model in a line, for its card."""
        drawn = f"{self.negatives} negatives" if self.negatives else "full softmax"
        return f"word vectors of size {self.d_model}, window {self.window}, {drawn}"

    def problems(self) -> list[str]:
        """None: each setting is right by itself."""
        return []


TranslatorConfig = TransformerConfig | RnnConfig | RnnAttentionConfig
"""A config of a model that learns from sentence pairs, and translates."""
ModelConfig = TranslatorConfig | EncoderConfig | DecoderConfig | SkipGramConfig
"""The config of any model; ``kind`` says which."""


KINDS: Mapping[str, type[ModelSettings]] = {
    each.model_fields["kind"].default: each for each in get_args(ModelConfig)
}
"""The class of every kind by its name."""
_DEFAULT_KIND = "transformer"


def _name_the_kind(table: Any) -> Any:
    """A table without a kind is a Transformer's."""
    if isinstance(table, Mapping) and "kind" not in table:
        return {"kind": _DEFAULT_KIND, **table}
    return table


ModelSection = Annotated[ModelConfig, Field(discriminator="kind"), BeforeValidator(_name_the_kind)]
"""The config of any model as a section of a larger config."""
_ADAPTER: pydantic.TypeAdapter[ModelConfig] = pydantic.TypeAdapter(ModelSection)


def parse_model_config(table: Mapping[str, Any], origin: str = "config") -> ModelConfig:
    """Build from a table read from ``origin``; without a ``kind`` it is a Transformer's.

    Raises ConfigError naming the problems with their paths and the nearest valid names.
    """
    return parse_union(_ADAPTER, get_args(ModelConfig), table, origin)


def kind_of(table: Mapping[str, Any]) -> type[ModelSettings] | None:
    """The class of the kind that a table names; None if there is no such kind."""
    kind = table.get("kind", _DEFAULT_KIND)
    return KINDS.get(kind) if isinstance(kind, str) else None


def own_settings(config: type[ModelSettings], table: Mapping[str, Any]) -> dict[str, Any]:
    """``table`` without the settings that only other kinds have; unknown names stay."""
    foreign = _all_settings() - config.model_fields.keys()
    return {name: value for name, value in table.items() if name not in foreign}


def foreign_settings(config: type[ModelSettings], names: Collection[str]) -> list[str]:
    """A problem for each group of settings among ``names`` that only other kinds have."""
    problems = []
    for group, settings in _groups().items():
        foreign = sorted(settings.intersection(names))
        if not foreign or issubclass(config, group):
            continue

        owners = [name for name, each in KINDS.items() if issubclass(each, group)]
        verb = "is" if len(foreign) == 1 else "are"
        problems.append(
            f"{' and '.join(foreign)} {verb} for model.kind={' or '.join(owners)},"
            f" not for {config.model_fields['kind'].default}: {group.reason}"
        )
    return problems


@functools.cache
def _groups() -> dict[type[ModelSettings], frozenset[str]]:
    """The settings that each class adds to those of its bases, without those of every kind."""
    groups = {}
    for config in KINDS.values():
        for group in reversed(config.__mro__):
            if issubclass(group, ModelSettings) and group is not ModelSettings:
                of_bases = set[str]().union(
                    *(each.model_fields for each in group.__bases__ if issubclass(each, Config))
                )
                groups[group] = frozenset(group.model_fields.keys() - of_bases)
    return groups


@functools.cache
def _all_settings() -> frozenset[str]:
    return frozenset().union(*(each.model_fields for each in KINDS.values()))
