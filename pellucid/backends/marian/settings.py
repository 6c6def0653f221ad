"""The settings in the ``config.json`` of a Marian model that determine its computation."""

from typing import Any, Literal, Self

import pydantic
from pydantic import Field

from pellucid.core.config import Config
from pellucid.model.config import TransformerConfig

_MOST_LAYERS = 1000
_WIDEST = 1 << 16
_MOST_PLACES = 1 << 20
_MOST_PIECES = 1 << 24
"""Bounds beyond any real model: an absurd number in a file must not allocate its tensors."""

MARIAN_NORM_EPS = 1e-5
"""The default of torch.nn.LayerNorm; MarianConfig has no setting for it."""


class MarianSettings(Config):
    """``MarianConfig`` with the names and defaults of transformers; other entries are ignored."""

    model_config = pydantic.ConfigDict(extra="ignore")

    model_type: Literal["marian"]
    """Another architecture has other tensors."""
    is_encoder_decoder: Literal[True] = True
    """A decoder alone does not translate."""
    vocab_size: int = Field(ge=1, le=_MOST_PIECES)
    """Rows of the encoder's embedding."""
    decoder_vocab_size: int | None = Field(None, ge=1, le=_MOST_PIECES)
    """Rows of the decoder's embedding; by default ``vocab_size``."""
    d_model: int = Field(ge=1, le=_WIDEST)
    """Width."""
    encoder_layers: int = Field(ge=0, le=_MOST_LAYERS)
    """Encoder blocks."""
    decoder_layers: int = Field(ge=1, le=_MOST_LAYERS)
    """Decoder blocks."""
    encoder_attention_heads: int = Field(ge=1, le=_WIDEST)
    """Heads in the encoder."""
    decoder_attention_heads: int = Field(ge=1, le=_WIDEST)
    """Heads in the decoder."""
    encoder_ffn_dim: int = Field(ge=1, le=_MOST_PLACES)
    """Inner width of the encoder's feed-forward network."""
    decoder_ffn_dim: int = Field(ge=1, le=_MOST_PLACES)
    """Inner width of the decoder's feed-forward network."""
    activation_function: Literal["relu", "gelu", "swish", "silu"] = "gelu"
    """The activation inside the feed-forward network; silu is swish."""
    dropout: float = 0.1
    """The dropout of TransformerConfig."""
    attention_dropout: float = 0.0
    """The attention dropout of TransformerConfig."""
    activation_dropout: float = 0.0
    """The activation dropout of TransformerConfig."""
    scale_embedding: bool = False
    """Multiply embeddings by the square root of d_model."""
    share_encoder_decoder_embeddings: bool = True
    """One embedding for both sides."""
    tie_word_embeddings: bool = True
    """The output matrix is the decoder's embedding."""
    max_position_embeddings: int = Field(1024, ge=2, le=_MOST_PLACES)
    """The longest sequence that transformers numbers."""
    pad_token_id: int = Field(58100, ge=0)
    """Fills up, and in Marian starts."""
    eos_token_id: int = Field(0, ge=0)
    """Ends a sentence."""
    decoder_start_token_id: int = Field(58100, ge=0)
    """The token that the decoder reads first."""
    normalize_before: Literal[False] = False
    """Pre-norm, which old converters could write."""
    normalize_embedding: Literal[False] = False
    """A norm after the embedding."""
    add_final_layer_norm: Literal[False] = False
    """A norm after the last block."""
    static_position_embeddings: Literal[True] = True
    """Sinusoids; others are learned."""

    @pydantic.model_validator(mode="after")
    def _fits_one_config(self) -> Self:
        # MarianConfig has these sizes for each side, our config has one for both.
        problems = [
            f"encoder_{name} and decoder_{name} must be equal, got {ours} and {theirs}"
            for name, ours, theirs in (
                ("attention_heads", self.encoder_attention_heads, self.decoder_attention_heads),
                ("ffn_dim", self.encoder_ffn_dim, self.decoder_ffn_dim),
            )
            if ours != theirs
        ]

        if self.share_encoder_decoder_embeddings and self.target_size != self.vocab_size:
            problems.append(
                "a shared embedding needs vocab_size and decoder_vocab_size to be equal, got"
                f" {self.vocab_size} and {self.target_size}"
            )

        if self.d_model % self.encoder_attention_heads:
            problems.append(
                f"d_model must be a multiple of encoder_attention_heads, got {self.d_model} and"
                f" {self.encoder_attention_heads}"
            )

        # Checked here, because an id is later used as an index into the tensors of the file.
        problems += [
            f"{name} must be below {self.target_size}, the size of the vocabulary, got {value}"
            for name, value in (
                ("pad_token_id", self.pad_token_id),
                ("eos_token_id", self.eos_token_id),
                ("decoder_start_token_id", self.decoder_start_token_id),
            )
            if value >= self.target_size
        ]

        if problems:
            raise ValueError("; ".join(problems))
        return self

    @property
    def target_size(self) -> int:
        """Rows of the decoder's embedding."""
        return self.decoder_vocab_size or self.vocab_size

    def to_model_config(self) -> TransformerConfig:
        """The same model as a TransformerConfig. Raises ConfigError for a dropout out of range."""
        activation = self.activation_function
        table: dict[str, Any] = {
            "d_model": self.d_model,
            "d_ff": self.encoder_ffn_dim,
            "heads": self.encoder_attention_heads,
            "encoder_layers": self.encoder_layers,
            "decoder_layers": self.decoder_layers,
            "dropout": self.dropout,
            "attention_dropout": self.attention_dropout,
            "activation_dropout": self.activation_dropout,
            "norm": "post",
            "norm_eps": MARIAN_NORM_EPS,
            "positions": "sinusoidal",
            "max_positions": self.max_position_embeddings,
            "activation": "swish" if activation == "silu" else activation,
            "share_embeddings": self.share_encoder_decoder_embeddings,
            "tie_output": self.tie_word_embeddings,
            "scale_embeddings": self.scale_embedding,
            "output_bias": True,
            "attention_bias": True,
        }

        return TransformerConfig.parse(table, "config.json")
