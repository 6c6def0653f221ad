"""The encoder: blocks of self-attention and feed-forward, one after another."""

from collections.abc import Callable

from jaxtyping import Bool, Float
from torch import Tensor, nn

from pellucid.model.attention import MultiHeadAttention
from pellucid.model.attention_positions import AttentionPositions
from pellucid.model.config import ModelConfig
from pellucid.model.dropout import DropoutSource, LayerDrop
from pellucid.model.feed_forward import FeedForward
from pellucid.model.normalization import Norm
from pellucid.model.sublayer import AddAndNorm
from pellucid.model.trace import UNWATCHED, Trace


class EncoderLayer(nn.Module):
    """Self-attention, Add & Norm, feed-forward, Add & Norm.

    EQ: 104.  Source: Vaswani et al. (2017), §3.1 and Figure 1, left.
    """

    def __init__(self, config: ModelConfig, source: DropoutSource) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(config, source, AttentionPositions(config))
        self.self_attention_norm = AddAndNorm(config, source)
        self.feed_forward = FeedForward(config, source)
        self.feed_forward_norm = AddAndNorm(config, source)

    def forward(
        self,
        x: Float[Tensor, "sentence source d_model"],
        may_attend: Bool[Tensor, "sentence 1 1 source"] | None,
        trace: Trace = UNWATCHED,
        *,
        causal: bool = False,
    ) -> Float[Tensor, "sentence source d_model"]:
        """The rows one block further; with ``causal`` each sees only those before it (EQ-138)."""
        inner = trace.under("self_attention")

        def attend(rows: Tensor) -> Tensor:
            return self.self_attention(rows, may_attend, causal=causal, trace=inner)  # type: ignore[no-any-return]

        return self.run(x, attend, trace)

    def run(
        self,
        x: Float[Tensor, "row length d_model"],
        attend: Callable[[Tensor], Tensor],
        trace: Trace = UNWATCHED,
    ) -> Float[Tensor, "row length d_model"]:
        """The block around any self-attention, such as one that reads a KV cache."""
        x = self.self_attention_norm(x, attend, trace.under("self_attention"))
        inner = trace.under("feed_forward")
        x = self.feed_forward_norm(x, lambda rows: self.feed_forward(rows, inner), inner)
        return trace.keep("output", x)


class Encoder(nn.Module):
    """X⁽⁰⁾ → X⁽¹⁾ → … → X⁽ᴺ⁾; with pre-norm a last norm closes the stack.

    EQ: 105.  Source: Vaswani et al. (2017), §3.1.
    """

    def __init__(self, config: ModelConfig, source: DropoutSource) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            EncoderLayer(config, source) for _ in range(config.encoder_layers)
        )
        self.layer_drop = LayerDrop(config.layer_drop, source)
        self.last_norm = Norm(config) if config.norm == "pre" else nn.Identity()

    def forward(
        self,
        x: Float[Tensor, "sentence source d_model"],
        may_attend: Bool[Tensor, "sentence 1 1 source"] | None,
        trace: Trace = UNWATCHED,
    ) -> Float[Tensor, "sentence source d_model"]:
        """All blocks, the whole sentence at once."""
        for index, layer in self.layer_drop.kept(self.layers):
            x = layer(x, may_attend, trace.under(f"layers.{index}"))
        return trace.keep("output", self.last_norm(x))
