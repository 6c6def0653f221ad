"""The settings of a model, and the kinds that each belongs to."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal, assert_never, get_args

from pydantic import Field, model_serializer, model_validator

from pellucid.core.config import Config
from pellucid.equations.choices import (
    Activation,
    Cell,
    NormKind,
    NormPlacement,
    PositionKind,
    RecurrentAttention,
    StartSymbol,
)

Kind = Literal["transformer", "rnn", "rnn-attention", "encoder", "decoder", "skipgram"]
PAIR_KINDS: tuple[Kind, ...] = ("transformer", "rnn", "rnn-attention")
"""Learn from sentence pairs, and translate."""
TEXT_KINDS: tuple[Kind, ...] = ("encoder", "decoder", "skipgram")
"""Learn from plain text."""

_BLOCKS: tuple[Kind, ...] = ("transformer", "encoder", "decoder")
_NETWORKS: tuple[Kind, ...] = (*PAIR_KINDS, "encoder", "decoder")
_BLOCK_SETTINGS = (
    "d_ff",
    "heads",
    "d_k",
    "d_v",
    "attention_dropout",
    "activation_dropout",
    "layer_drop",
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
    "projection",
    "scale_attention",
    "activation",
    "attention_bias",
)
_OWNERS: dict[str, tuple[Kind, ...]] = {
    **dict.fromkeys(_BLOCK_SETTINGS, _BLOCKS),
    "start_symbol": ("transformer", "decoder"),
    "encoder_layers": (*PAIR_KINDS, "encoder"),
    "decoder_layers": (*PAIR_KINDS, "decoder"),
    "share_embeddings": PAIR_KINDS,
    "dropout": _NETWORKS,
    "tie_output": _NETWORKS,
    "scale_embeddings": _NETWORKS,
    "output_bias": _NETWORKS,
    "cell": ("rnn", "rnn-attention"),
    "attention": ("rnn-attention",),
    "input_feeding": ("rnn-attention",),
    "reverse_source": ("rnn",),
    "feed_summary": ("rnn",),
    "mask_rate": ("encoder",),
    "window": ("skipgram",),
    "negatives": ("skipgram",),
    "subsample": ("skipgram",),
}
"""The kinds that know a setting; one that is not listed is for all kinds."""

_REASONS: dict[tuple[Kind, ...], str] = {
    _BLOCKS: "no other kind is made of its blocks",
    ("transformer", "decoder"): "no other kind has a decoder of blocks",
    (*PAIR_KINDS, "encoder"): "no other kind has an encoder",
    (*PAIR_KINDS, "decoder"): "no other kind has a decoder",
    PAIR_KINDS: "no other kind has two sides",
    _NETWORKS: "skipgram is two matrices and nothing else",
    ("rnn", "rnn-attention"): "no other kind has recurrent cells",
    ("rnn-attention",): (
        "the decoder of a plain rnn has nothing to look back at,"
        " and that of a Transformer looks by scaled dot products"
    ),
    ("rnn",): "no other kind has to put a whole sentence into one vector",
    ("encoder",): "no other kind learns by filling masks",
    ("skipgram",): "no other kind learns from neighbors alone",
}


def foreign_settings(kind: Kind, names: Collection[str]) -> list[str]:
    """A fault for each group of settings among ``names`` that other kinds alone know."""
    faults = []
    for owners, reason in _REASONS.items():
        foreign = sorted(name for name in names if _OWNERS.get(name) == owners)
        if foreign and kind not in owners:
            verb = "is" if len(foreign) == 1 else "are"
            faults.append(
                f"{' and '.join(foreign)} {verb} for model.kind={' or '.join(owners)},"
                f" not for {kind}: {reason}"
            )
    return faults


def known_settings(kind: str, table: Mapping[str, Any]) -> dict[str, Any]:
    """``table`` without the settings that only other kinds have; unknown names stay."""
    return {name: value for name, value in table.items() if _knows(kind, name)}


def _knows(kind: str, name: str) -> bool:
    return kind in _OWNERS.get(name, get_args(Kind))


_NUMBERED: tuple[PositionKind, ...] = ("learned", "one_hot", "joint", "summed")
"""Kinds with a row for each position, which end at the last row."""

_MOST_LAYERS = 1000
_WIDEST = 1 << 16
_MOST_PLACES = 1 << 20
"""Limits beyond any real model, as a folder from a stranger must not cause an absurd allocation."""


class ModelConfig(Config):
    """The sizes and switches of a model; a setting that only other kinds have is refused.

    The defaults are those of Vaswani et al. (2017), §3 and Table 3, row "base".
    """

    kind: Kind = "transformer"
    """Which system is built: the Transformer; ``rnn``, an encoder to one vector and a decoder
    from it (EQ-133, 2014); ``rnn-attention``, a bidirectional encoder and a decoder that attends
    to it (EQ-136, 2015). Or, on plain text: ``encoder``, blocks that fill masks (EQ-137, the
    road to BERT); ``decoder``, blocks that continue a text (EQ-138, the road to GPT); and
    ``skipgram``, word vectors from neighbors (EQ-17, Word2Vec)."""
    d_model: int = Field(512, ge=1, le=_WIDEST)
    """Width of embeddings and of the hidden states between blocks (EQ-80), in recurrent kinds too;
    a bidirectional layer gives half of it to each direction."""
    d_ff: int = Field(2048, ge=1, le=_MOST_PLACES)
    """Inner width of the feed-forward network (EQ-100). Not for recurrent kinds."""
    heads: int = Field(8, ge=1, le=_WIDEST)
    """The number of attention heads in a layer (EQ-77). Not for recurrent kinds."""
    d_k: int | None = Field(None, ge=1, le=_WIDEST)
    """Width of a query or key in one head; by default d_model / heads. Not for recurrent kinds."""
    d_v: int | None = Field(None, ge=1, le=_WIDEST)
    """Width of a value in one head; by default d_model / heads. Not for recurrent kinds."""
    encoder_layers: int = Field(6, ge=0, le=_MOST_LAYERS)
    """The number of encoder blocks (EQ-105)."""
    decoder_layers: int = Field(6, ge=1, le=_MOST_LAYERS)
    """The number of decoder blocks (EQ-110). Recurrent kinds need as many as in the encoder: each
    layer starts from the final state of the encoder layer of the same number."""
    dropout: float = Field(0.1, ge=0.0, lt=1.0)
    """Share of numbers set to zero after every sublayer and after adding positions (§5.4); in
    recurrent kinds after embeddings and layers, never from word to word."""
    attention_dropout: float = Field(0.0, ge=0.0, lt=1.0)
    """Share of attention weights set to zero; not in the paper, 0.1 in its authors' code.
    Not for recurrent kinds."""
    activation_dropout: float = Field(0.0, ge=0.0, lt=1.0)
    """Share of the feed-forward network's inner numbers set to zero; not in the paper.
    Not for recurrent kinds."""
    layer_drop: float = Field(0.0, ge=0.0, lt=1.0)
    """Probability that training skips a block, drawn in every update (Fan et al. 2020,
    LayerDrop); not in the paper. Not for recurrent kinds."""
    norm: NormPlacement = "post"
    """Normalize after the residual sum, as the paper does, or before each sublayer.
    Not for recurrent kinds."""
    norm_eps: float = Field(1e-6, ge=0.0, le=1.0)
    """Added to the variance under the root, so that a constant row stays finite (ER-49).
    Not for recurrent kinds."""
    norm_kind: NormKind = "layer"
    """Which norm: the paper's LayerNorm (EQ-91), RMSNorm, or Bayesuvius's division by the length,
    plain or after centering (EQ-98, ER-33). Not for recurrent kinds."""
    norm_affine: bool = True
    """Let the norm learn a gain and, for ``layer``, a bias; ``l2`` and ``l2_centered`` never do.
    Not for recurrent kinds."""
    positions: PositionKind = "sinusoidal"
    """How positions are encoded: by adding sinusoids (EQ-24) or learned vectors (EQ-30); by
    Agarwal's ``one_hot`` (EQ-21, projected back to d_model), ``joint`` (EQ-22) and ``summed``
    (EQ-23) networks; inside self-attention by distances (``relative``, EQ-31), rotations
    (``rotary``) or slopes (``alibi``); or not at all (EQ-20). Not for recurrent kinds."""
    max_positions: int = Field(1024, ge=1, le=_MOST_PLACES)
    """The longest sequence, in tokens with the stop, that learned, one_hot, joint and summed
    positions can number. Not for recurrent kinds."""
    start_position: int = Field(0, ge=0, le=1)
    """The number of the first position in a sinusoid; the sources disagree, the paper's code says 0
    (ER-53). Not for recurrent kinds."""
    position_hidden: int | None = Field(None, ge=1, le=_MOST_PLACES)
    """Inner width of the networks behind joint and summed positions and the mlp embedding; by
    default d_model. Not for recurrent kinds."""
    relative_clip: int = Field(16, ge=1, le=_MOST_PLACES)
    """The distance, in tokens, from which relative positions treat all distances alike
    (Shaw et al. 2018, Table 3, where 16 is as good as 256). Not for recurrent kinds."""
    embedding: Literal["linear", "mlp"] = "linear"
    """The map between a word's embedding and its position: none, as in the paper, or Agarwal's
    small network (EQ-28, ER-51). Not for recurrent kinds."""
    start_symbol: StartSymbol = "token"
    """The first input of the decoder: the embedding of a start token, or the zero vector of the
    Single Page (EQ-106, ER-44). Not for recurrent kinds."""
    projection: Literal["per_head", "two_stage"] = "per_head"
    """Project rows for each head at once, as the paper does, or through one narrow projection
    that all heads share, as the Transformers report has it (EQ-87, ER-22). Not for recurrent
    kinds."""
    scale_attention: bool = True
    """Divide dot products by the square root of d_k (EQ-51); False is Luong's plain dot product
    (EQ-61, ER-67). Not for recurrent kinds."""
    activation: Activation = "relu"
    """The activation inside the feed-forward network; the paper's is relu (EQ-99). Not for
    recurrent kinds."""
    share_embeddings: bool = True
    """One embedding matrix for source and target, which needs a joint vocabulary (EQ-19)."""
    tie_output: bool = True
    """The matrix before the last softmax is the target embedding, transposed (§3.4)."""
    scale_embeddings: bool = True
    """Multiply embeddings by the square root of d_model (EQ-15)."""
    output_bias: bool = False
    """Add a bias to the last linear map (EQ-112; the Single Page has one, the paper none)."""
    attention_bias: bool = False
    """Add biases to the projections of attention; the paper has none, Marian has.
    Not for recurrent kinds."""
    cell: Cell = "lstm"
    """The cell of a recurrent layer (EQ-131): Sutskever's LSTM or Cho's GRU; ``rnn`` and
    ``rnn-attention``."""
    attention: RecurrentAttention = "additive"
    """How attention scores the states of the source (EQ-135, EQ-136): by Bahdanau's small
    network, or by Luong's dot product, plain or with a matrix between; ``rnn-attention`` alone."""
    input_feeding: bool = True
    """Let the decoder read, beside each word, its last output (Luong et al. 2015, §3.3);
    ``rnn-attention`` alone."""

    reverse_source: bool = False
    """Read the words of the source from the last to the first, so that the first are read just
    before the decoder starts (Sutskever et al. 2014, §3.3); ``rnn`` alone."""
    feed_summary: bool = False
    """Let the decoder read the encoder's last state beside every word, not only at the start (Cho
    et al. 2014, §2.2); ``rnn`` alone."""

    mask_rate: float = Field(0.15, gt=0.0, lt=1.0)
    """Share of the tokens that an ``encoder`` must predict; of those 80% are masked, 10% replaced
    and 10% unchanged (Devlin et al. 2019, §3.1)."""
    window: int = Field(5, ge=1, le=_WIDEST)
    """The number of words on either side that are neighbors (EQ-17); ``skipgram`` alone."""
    negatives: int = Field(5, ge=0, le=_WIDEST)
    """Words drawn against each true neighbor (Mikolov et al. 2013b, §2.2); 0 is the full softmax
    of EQ-17. ``skipgram`` alone."""
    subsample: float = Field(1e-3, ge=0.0, le=1.0)
    """Words with a larger share of the text than this are subsampled (Mikolov et al. 2013b, §2.3,
    and the value of word2vec.c); 0 keeps all. ``skipgram`` alone."""
    pretrained_vectors: str | None = None
    """A file in word2vec's text format, or a skipgram bundle, from which the embeddings start:
    tokens that it names take its vectors, scaled as a whole to the usual size. Read only when a
    run starts."""

    @model_validator(mode="after")
    def _settings_fit(self) -> "ModelConfig":
        faults = foreign_settings(self.kind, self.model_fields_set)
        match self.kind:
            case "transformer" | "encoder" | "decoder":
                faults += self._block_faults()
            case "rnn" | "rnn-attention":
                faults += self._rnn_faults()
            case "skipgram":
                pass
            case _:
                assert_never(self.kind)

        if faults:
            raise ValueError("; ".join(faults))
        return self

    def _block_faults(self) -> list[str]:
        # with both widths given, heads need not divide d_model (ER-72)
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
        """Serialize only the settings that the kind has, so that the result can be parsed again."""
        return known_settings(self.kind, serialize(self))

    @property
    def translates(self) -> bool:
        """True for kinds that learn from sentence pairs, False for those of plain text."""
        return self.kind in PAIR_KINDS

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
        is_numbered = "positions" in known_settings(self.kind, {"positions": None}) and (
            self.positions in _NUMBERED
        )
        return self.max_positions if is_numbered else None

    def summary(self) -> str:
        """The shape of the model in a line, for its card."""
        layers = f"{self.encoder_layers} encoder and {self.decoder_layers} decoder layers"
        blocks = (
            f"width {self.d_model}, feed-forward {self.d_ff}, {self.heads} heads,"
            f" {self.norm}-norm, {self.positions} positions"
        )

        match self.kind:
            case "transformer":
                return f"{layers}, {blocks}"
            case "encoder":
                return f"{self.encoder_layers} encoder layers, {blocks}"
            case "decoder":
                return f"{self.decoder_layers} decoder layers without cross-attention, {blocks}"
            case "skipgram":
                drawn = f"{self.negatives} negatives" if self.negatives else "full softmax"
                return f"word vectors of size {self.d_model}, window {self.window}, {drawn}"
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
