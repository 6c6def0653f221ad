"""What a model is made of; the defaults are the paper's base model."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, assert_never, get_args

from pydantic import Field, model_serializer, model_validator

from pellucid.core.config import Config

Kind = Literal["transformer", "rnn", "rnn-attention"]
PositionKind = Literal[
    "sinusoidal",
    "learned",
    "one_hot",
    "joint",
    "summed",
    "relative",
    "rotary",
    "alibi",
    "none",
]
_NUMBERED: tuple[PositionKind, ...] = ("learned", "one_hot", "joint", "summed")
"""Positions with a row for each place, so that there is a last one."""

_MOST_LAYERS = 1000
_WIDEST = 1 << 16
_MOST_PLACES = 1 << 20
"""Beyond any model there is: a folder from a stranger must not make us build an absurd one."""

_BLOCK_SETTINGS = (
    "d_ff",
    "heads",
    "d_k",
    "d_v",
    "attention_dropout",
    "activation_dropout",
    "norm",
    "norm_eps",
    "norm_kind",
    "norm_affine",
    "positions",
    "max_positions",
    "start_position",
    "position_hidden",
    "relative_clip",
    "embedding",
    "start_symbol",
    "projection",
    "scale_attention",
    "activation",
    "attention_bias",
)
_OWNERS: dict[str, tuple[Kind, ...]] = {
    **dict.fromkeys(_BLOCK_SETTINGS, ("transformer",)),
    "cell": ("rnn", "rnn-attention"),
    "attention": ("rnn-attention",),
    "input_feeding": ("rnn-attention",),
}
"""The kinds that know a setting; one that is not listed is for all kinds."""

_REASONS: dict[tuple[Kind, ...], str] = {
    ("transformer",): "no other kind is made of its blocks",
    ("rnn", "rnn-attention"): "no other kind has recurrent cells",
    ("rnn-attention",): (
        "the decoder of a plain rnn has nothing to look back at,"
        " and that of a Transformer looks by scaled dot products"
    ),
}


class ModelConfig(Config):
    """The sizes and switches of a model; a setting that another kind alone knows is refused.

    The defaults are those of Vaswani et al. (2017), §3 and Table 3, row "base".
    """

    kind: Kind = "transformer"
    """Which system is built: the Transformer; ``rnn``, an encoder to one vector and a decoder
    from it (EQ-133, 2014); or ``rnn-attention``, a bidirectional encoder and a decoder that looks
    back at it (EQ-136, 2015)."""
    d_model: int = Field(512, ge=1, le=_WIDEST)
    """Width of every row that travels between the blocks (EQ-80). Embeddings and hidden states of
    recurrent kinds have it too; a bidirectional layer gives half of it to each direction."""
    d_ff: int = Field(2048, ge=1, le=_MOST_PLACES)
    """Inner width of the feed-forward network (EQ-100); ``transformer`` alone."""
    heads: int = Field(8, ge=1, le=_WIDEST)
    """How many attentions run side by side in one layer (EQ-77); ``transformer`` alone."""
    d_k: int | None = Field(None, ge=1, le=_WIDEST)
    """Width of a query or key in one head; by default d_model / heads. ``transformer`` alone."""
    d_v: int | None = Field(None, ge=1, le=_WIDEST)
    """Width of a value in one head; by default d_model / heads. ``transformer`` alone."""
    encoder_layers: int = Field(6, ge=0, le=_MOST_LAYERS)
    """How many encoder blocks follow one another (EQ-105)."""
    decoder_layers: int = Field(6, ge=1, le=_MOST_LAYERS)
    """How many decoder blocks follow one another (EQ-110). Recurrent kinds need as many as in the
    encoder: each layer begins where the one beside it ended."""
    dropout: float = Field(0.1, ge=0.0, lt=1.0)
    """Share of numbers set to zero after every sublayer and after adding positions (§5.4); in
    recurrent kinds after embeddings and layers, never from word to word."""
    attention_dropout: float = Field(0.0, ge=0.0, lt=1.0)
    """Share of attention weights set to zero; not in the paper, 0.1 in its authors' code.
    ``transformer`` alone."""
    activation_dropout: float = Field(0.0, ge=0.0, lt=1.0)
    """Share of the feed-forward network's inner numbers set to zero; not in the paper.
    ``transformer`` alone."""
    norm: Literal["post", "pre"] = "post"
    """Normalize after the residual sum, as the paper does, or before each sublayer.
    ``transformer`` alone."""
    norm_eps: float = Field(1e-6, ge=0.0)
    """Added to the variance under the root, so that a constant row stays finite (ER-49).
    ``transformer`` alone."""
    norm_kind: Literal["layer", "rms", "l2", "l2_centered"] = "layer"
    """Which norm: the paper's LayerNorm (EQ-91), RMSNorm, or seed 002's division by the length,
    plain or after centering (EQ-98, ER-33). ``transformer`` alone."""
    norm_affine: bool = True
    """Let the norm learn a gain and, for ``layer``, a bias; ``l2`` and ``l2_centered`` never do.
    ``transformer`` alone."""
    positions: PositionKind = "sinusoidal"
    """How a row learns its place: by adding a sinusoid (EQ-24) or a learned row (EQ-30); by seed
    000's ``one_hot`` (EQ-21, projected back to d_model), ``joint`` (EQ-22) and ``summed`` (EQ-23)
    networks; inside self-attention by distances (``relative``, EQ-31), rotations (``rotary``) or
    slopes (``alibi``); or not at all (EQ-20). ``transformer`` alone."""
    max_positions: int = Field(1024, ge=1, le=_MOST_PLACES)
    """The longest sequence, in tokens with the stop, that learned, one_hot, joint and summed
    positions can number. ``transformer`` alone."""
    start_position: int = Field(0, ge=0, le=1)
    """The number of the first place in a sinusoid; the seeds disagree, the paper's code says 0
    (ER-53). ``transformer`` alone."""
    position_hidden: int | None = Field(None, ge=1, le=_MOST_PLACES)
    """Inner width of the networks behind joint and summed positions and the mlp embedding; by
    default d_model. ``transformer`` alone."""
    relative_clip: int = Field(16, ge=1, le=_MOST_PLACES)
    """From how many places apart relative positions call all distances the same, in tokens
    (Shaw et al. 2018, Table 3, where 16 is as good as 256). ``transformer`` alone."""
    embedding: Literal["linear", "mlp"] = "linear"
    """What becomes of a word's row before its place is added: nothing, as in the paper, or seed
    000's small network (EQ-28, ER-51). ``transformer`` alone."""
    start_symbol: Literal["token", "zero"] = "token"
    """What the decoder reads first: the embedding of a start token, or seed 001's zero vector
    (EQ-106, ER-44). ``transformer`` alone."""
    projection: Literal["per_head", "two_stage"] = "per_head"
    """Project rows for each head at once, as the paper does, or through one narrow projection
    that all heads share, as seed 003 has it (EQ-87, ER-22). ``transformer`` alone."""
    scale_attention: bool = True
    """Divide dot products by the square root of d_k (EQ-51); False is Luong's plain dot product
    (EQ-61, ER-67). ``transformer`` alone."""
    activation: Literal["relu", "gelu", "swish"] = "relu"
    """The bend inside the feed-forward network; the paper's is relu (EQ-99). ``transformer``
    alone."""
    share_embeddings: bool = True
    """One embedding matrix for source and target, which needs a joint vocabulary (EQ-19)."""
    tie_output: bool = True
    """The matrix before the last softmax is the target embedding, transposed (§3.4)."""
    scale_embeddings: bool = True
    """Multiply embeddings by the square root of d_model (EQ-15)."""
    output_bias: bool = False
    """Add a bias to the last linear map (EQ-112; seed 001 has one, the paper none)."""
    attention_bias: bool = False
    """Add biases to the projections of attention; the paper has none, Marian has.
    ``transformer`` alone."""
    cell: Literal["lstm", "gru"] = "lstm"
    """What a recurrent layer is made of (EQ-131): Sutskever's LSTM or Cho's GRU; ``rnn`` and
    ``rnn-attention``."""
    attention: Literal["additive", "dot", "general"] = "additive"
    """How the decoder judges which source state fits (EQ-135, EQ-136): by Bahdanau's small
    network, or by Luong's dot product, plain or with a matrix between; ``rnn-attention`` alone."""
    input_feeding: bool = True
    """Let the decoder read, beside each word, what it said last (Luong et al. 2015, §3.3);
    ``rnn-attention`` alone."""

    @model_validator(mode="after")
    def _settings_fit(self) -> "ModelConfig":
        faults = self._foreign_settings()
        faults += self._transformer_faults() if self.kind == "transformer" else self._rnn_faults()
        if faults:
            raise ValueError("; ".join(faults))
        return self

    def _foreign_settings(self) -> list[str]:
        faults = []
        for owners, reason in _REASONS.items():
            foreign = [name for name in self.model_fields_set if _OWNERS.get(name) == owners]
            if foreign and self.kind not in owners:
                verb = "is" if len(foreign) == 1 else "are"
                faults.append(
                    f"{' and '.join(sorted(foreign))} {verb} for model.kind={' or '.join(owners)},"
                    f" not for {self.kind}: {reason}"
                )
        return faults

    def _transformer_faults(self) -> list[str]:
        has_free_widths = self.d_k is not None and self.d_v is not None
        if not has_free_widths and self.d_model % self.heads:
            nearest = max(1, round(self.d_model / self.heads)) * self.heads
            return [
                f"d_model must be a multiple of heads, got d_model={self.d_model} and"
                f" heads={self.heads}; the nearest that fits is {nearest}"
            ]
        faults = []
        if self.projection == "two_stage" and (self.d_k is not None or self.d_v is not None):
            faults.append(
                "d_k and d_v must be left out with projection=two_stage, whose heads share one"
                " projection to d_model / heads columns (EQ-87)"
            )
        if self.positions == "rotary" and self.key_size % 2:
            faults.append(
                "d_k must be even with positions=rotary, which turns features in pairs, got"
                f" {self.key_size}"
            )
        return faults

    def _rnn_faults(self) -> list[str]:
        faults = []
        if self.encoder_layers != self.decoder_layers:
            faults.append(
                f"encoder_layers must equal decoder_layers for model.kind={self.kind}, where each"
                " decoder layer begins in the last state of the encoder layer beside it, got"
                f" {self.encoder_layers} and {self.decoder_layers}"
            )
        if self.kind == "rnn-attention" and self.d_model % 2:
            faults.append(
                "d_model must be even for model.kind=rnn-attention, half for each direction of"
                f" the encoder, got {self.d_model}"
            )
        return faults

    @model_serializer(mode="wrap")
    def _known_settings(self, serialize: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        """What is written down is what the kind knows, so that it can be read back."""
        return known_settings(self.kind, serialize(self))

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
        is_numbered = self.kind == "transformer" and self.positions in _NUMBERED
        return self.max_positions if is_numbered else None

    def summary(self) -> str:
        """The shape of the model in a line, for its card."""
        layers = f"{self.encoder_layers} encoder and {self.decoder_layers} decoder layers"
        match self.kind:
            case "transformer":
                return (
                    f"{layers}, width {self.d_model}, feed-forward {self.d_ff},"
                    f" {self.heads} heads, {self.norm}-norm, {self.positions} positions"
                )
            case "rnn":
                return f"{layers} of {self.cell} cells, width {self.d_model}, no attention"
            case "rnn-attention":
                feeding = "with" if self.input_feeding else "without"
                return (
                    f"{layers} of {self.cell} cells, width {self.d_model}, bidirectional encoder,"
                    f" {self.attention} attention, {feeding} input feeding"
                )
            case _:
                assert_never(self.kind)


def known_settings(kind: str, table: Mapping[str, Any]) -> dict[str, Any]:
    """``table`` without the settings that only other kinds know; strange names stay."""
    return {name: value for name, value in table.items() if _knows(kind, name)}


def _knows(kind: str, name: str) -> bool:
    return kind in _OWNERS.get(name, get_args(Kind))
