"""What a model is made of; the defaults are the paper's base model."""

from typing import Literal

from pydantic import Field, model_validator

from pellucid.core.config import Config


class ModelConfig(Config):
    """The sizes and switches of a model (Vaswani et al. 2017, §3 and Table 3, row "base")."""

    kind: Literal["transformer"] = "transformer"
    """Which system is built."""
    d_model: int = Field(512, ge=1)
    """Width of every row that travels between the blocks (EQ-80)."""
    d_ff: int = Field(2048, ge=1)
    """Inner width of the feed-forward network (EQ-100)."""
    heads: int = Field(8, ge=1)
    """How many attentions run side by side in one layer (EQ-77)."""
    d_k: int | None = Field(None, ge=1)
    """Width of a query or key in one head; by default d_model / heads."""
    d_v: int | None = Field(None, ge=1)
    """Width of a value in one head; by default d_model / heads."""
    encoder_layers: int = Field(6, ge=0)
    """How many encoder blocks follow one another (EQ-105)."""
    decoder_layers: int = Field(6, ge=1)
    """How many decoder blocks follow one another (EQ-110)."""
    dropout: float = Field(0.1, ge=0.0, lt=1.0)
    """Share of numbers set to zero after every sublayer and after adding positions (§5.4)."""
    attention_dropout: float = Field(0.0, ge=0.0, lt=1.0)
    """Share of attention weights set to zero; not in the paper, 0.1 in its authors' code."""
    activation_dropout: float = Field(0.0, ge=0.0, lt=1.0)
    """Share of the feed-forward network's inner numbers set to zero; not in the paper."""
    norm: Literal["post", "pre"] = "post"
    """Normalize after the residual sum, as the paper does, or before each sublayer."""
    norm_eps: float = Field(1e-6, ge=0.0)
    """Added to the variance under the root, so that a constant row stays finite (ER-49)."""
    positions: Literal["sinusoidal", "learned"] = "sinusoidal"
    """How a row learns its place (EQ-24, EQ-30)."""
    max_positions: int = Field(1024, ge=1)
    """The longest sequence that learned positions can number, in tokens with the stop."""
    activation: Literal["relu", "gelu", "swish"] = "relu"
    """The bend inside the feed-forward network; the paper's is relu (EQ-99)."""
    share_embeddings: bool = True
    """One embedding matrix for source and target, which needs a joint vocabulary (EQ-19)."""
    tie_output: bool = True
    """The matrix before the last softmax is the target embedding, transposed (§3.4)."""
    scale_embeddings: bool = True
    """Multiply embeddings by the square root of d_model (EQ-15)."""
    output_bias: bool = False
    """Add a bias to the last linear map (EQ-112; seed 001 has one, the paper none)."""
    attention_bias: bool = False
    """Add biases to the projections of attention; the paper has none, Marian has."""

    @model_validator(mode="after")
    def _widths_fit(self) -> "ModelConfig":
        if (self.d_k is None or self.d_v is None) and self.d_model % self.heads:
            nearest = max(1, round(self.d_model / self.heads)) * self.heads
            raise ValueError(
                f"d_model must be a multiple of heads, got d_model={self.d_model} and"
                f" heads={self.heads}; the nearest that fits is {nearest}"
            )
        return self

    @property
    def key_size(self) -> int:
        """Width of a query or key in one head, dₖ."""
        return self.d_k or self.d_model // self.heads

    @property
    def value_size(self) -> int:
        """Width of a value in one head, dᵥ."""
        return self.d_v or self.d_model // self.heads
