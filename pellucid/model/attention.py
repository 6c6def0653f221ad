"""Multi-head attention that owns its projections: watched in the open, else in one kernel."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from pellucid.equations import (
    attention_scores,
    attention_weights,
    causal_mask,
    merge_heads,
    split_heads,
)
from pellucid.equations.fused import fused_attention
from pellucid.model.config import ModelConfig
from pellucid.model.dropout import Dropout, DropoutSource
from pellucid.model.trace import UNWATCHED, Trace


class MultiHeadAttention(nn.Module):
    """Concat(head₁, …, headₕ) W^O with headᵢ = Attention(Q Wᵢ^Q, K Wᵢ^K, V Wᵢ^V).

    EQ: 77, 78, 82, 83, 89.  Source: Vaswani et al. (2017), §3.2.2.
    ``w_qkv`` stacks all heads' W^Q, then W^K, then W^V, transposed: one product serves
    self-attention, and a slice of rows serves each side of cross-attention.
    """

    def __init__(self, config: ModelConfig, source: DropoutSource) -> None:
        super().__init__()
        self.heads = config.heads
        self.query_width = config.heads * config.key_size
        self.value_width = config.heads * config.value_size
        packed_width = 2 * self.query_width + self.value_width
        self.w_qkv = nn.Parameter(torch.empty(packed_width, config.d_model))
        self.w_o = nn.Parameter(torch.empty(config.d_model, self.value_width))
        self.b_qkv = nn.Parameter(torch.zeros(packed_width)) if config.attention_bias else None
        self.b_o = nn.Parameter(torch.zeros(config.d_model)) if config.attention_bias else None
        self.weights_dropout = Dropout(config.attention_dropout, source)

    def forward(
        self,
        x: Float[Tensor, "sentence query d_model"],
        may_attend: Bool[Tensor, "sentence 1 1 query"] | None = None,
        *,
        causal: bool = False,
        trace: Trace = UNWATCHED,
    ) -> Float[Tensor, "sentence query d_model"]:
        """Self-attention: every row looks at the rows it may attend to."""
        query, key, value = self.project_all(x)
        return self.attend(query, key, value, may_attend, causal=causal, trace=trace)

    def project_all(
        self, x: Float[Tensor, "row length d_model"]
    ) -> tuple[
        Float[Tensor, "row heads length key_size"],
        Float[Tensor, "row heads length key_size"],
        Float[Tensor, "row heads length value_size"],
    ]:
        """Queries, keys and values of the same rows, split into heads."""
        packed = functional.linear(x, self.w_qkv, self.b_qkv)
        widths = [self.query_width, self.query_width, self.value_width]
        query, key, value = (
            split_heads(part, self.heads) for part in torch.split(packed, widths, -1)
        )
        return query, key, value

    def project_query(
        self, x: Float[Tensor, "row length d_model"]
    ) -> Float[Tensor, "row heads length key_size"]:
        """Queries alone, split into heads."""
        bias = None if self.b_qkv is None else self.b_qkv[: self.query_width]
        return split_heads(functional.linear(x, self.w_qkv[: self.query_width], bias), self.heads)

    def project_memory(
        self, memory: Float[Tensor, "sentence source d_model"]
    ) -> tuple[
        Float[Tensor, "sentence heads source key_size"],
        Float[Tensor, "sentence heads source value_size"],
    ]:
        """Keys and values alone, split into heads; computed once for a sentence (EQ-90)."""
        bias = None if self.b_qkv is None else self.b_qkv[self.query_width :]
        packed = functional.linear(memory, self.w_qkv[self.query_width :], bias)
        key, value = torch.split(packed, [self.query_width, self.value_width], -1)
        return split_heads(key, self.heads), split_heads(value, self.heads)

    def attend(
        self,
        query: Float[Tensor, "row heads query key_size"],
        key: Float[Tensor, "row heads key key_size"],
        value: Float[Tensor, "row heads key value_size"],
        may_attend: Bool[Tensor, "row 1 #query key"] | None = None,
        *,
        causal: bool = False,
        trace: Trace = UNWATCHED,
    ) -> Float[Tensor, "row query d_model"]:
        """Every head's attention, merged and projected."""
        trace.keep("query", query)
        trace.keep("key", key)
        trace.keep("value", value)
        drops_weights = self.training and self.weights_dropout.rate > 0.0
        if drops_weights or trace.wants("scores", "weights"):
            if causal:
                square = causal_mask(query.shape[-2]).to(query.device)
                may_attend = square if may_attend is None else may_attend & square
            trace.keep("scores", attention_scores(query, key))
            weights = attention_weights(query, key, may_attend)
            trace.keep("weights", weights)
            heads = self.weights_dropout(weights) @ value
        else:
            heads = fused_attention(query, key, value, may_attend, causal=causal)
        trace.keep("heads", heads)
        output = functional.linear(merge_heads(heads), self.w_o, self.b_o)
        trace.keep("output", output)
        return output
