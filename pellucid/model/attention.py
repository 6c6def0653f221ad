"""Multi-head attention: projections, padding masks, and positions inside self-attention."""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from pellucid.equations.attention import attention_scores
from pellucid.equations.fused import (
    for_attention,
    fused_alibi_attention,
    fused_attention,
    fused_relative_attention,
    fused_rotary_positions,
)
from pellucid.equations.heads import merge_heads, split_heads, two_stage_weights
from pellucid.equations.masks import causal_mask, masked_softmax
from pellucid.equations.relative import (
    alibi_bias,
    relative_scores,
    relative_values,
    rotary_positions,
)
from pellucid.model.config import BlockSettings
from pellucid.model.dropout import Dropout, DropoutSource
from pellucid.model.layers import linear
from pellucid.model.trace import UNWATCHED, Trace


class AttentionPositions(nn.Module):
    """Scores and values of one self-attention, with the positions that the config names.

    EQ: 31.  Source: Shaw et al. (2018); Su et al. (2021), rotary; Press et al. (2022), ALiBi.
    Where queries are fewer than keys, they are the last positions, as with a KV cache. All heads of
    a layer share the tables of distances, as in Shaw et al.
    """

    def __init__(self, config: BlockSettings) -> None:
        super().__init__()
        self.kind = config.positions
        # distances from -clip to clip; Shaw et al., §3.2
        rows = 2 * config.relative_clip + 1
        is_relative = self.kind == "relative"
        self.keys = nn.Parameter(torch.empty(rows, config.key_size)) if is_relative else None
        self.values = nn.Parameter(torch.empty(rows, config.value_size)) if is_relative else None

    def turn(
        self, x: Float[Tensor, "row heads length size"], start: int
    ) -> Float[Tensor, "row heads length size"]:
        """Rotate queries or keys, the first at position ``start``, if positions are rotary.

        Training uses the fast twin. Everything else uses the equation in real numbers, which every
        export format supports.
        """
        if self.kind != "rotary":
            return x
        return fused_rotary_positions(x, start) if self.training else rotary_positions(x, start)

    def scores(
        self,
        query: Float[Tensor, "row heads query key_size"],
        key: Float[Tensor, "row heads key key_size"],
    ) -> Float[Tensor, "row heads query key"]:
        """The attention scores, with positions, as a tensor of their own."""
        scores = attention_scores(query, key)

        heads, query_count, key_count = scores.shape[-3:]
        offset = key_count - query_count

        match self.kind:
            case "relative":
                assert self.keys is not None
                return relative_scores(query, key, self.keys, offset)
            case "alibi":
                bias = alibi_bias(
                    heads, query_count, key_count, offset, scores.dtype, scores.device
                )
                return scores + bias
            case _:
                return scores

    def mix(
        self,
        weights: Float[Tensor, "row heads query key"],
        value: Float[Tensor, "row heads key value_size"],
    ) -> Float[Tensor, "row heads query value_size"]:
        """The weighted sum of the values, with positions where they act on values."""
        if self.values is None:
            return weights @ value

        # with a KV cache the queries are the last positions, so the first has so many keys before
        # it
        offset = weights.shape[-1] - weights.shape[-2]
        return relative_values(weights, value, self.values, offset)

    def attend(
        self,
        query: Float[Tensor, "row heads query key_size"],
        key: Float[Tensor, "row heads key key_size"],
        value: Float[Tensor, "row heads key value_size"],
        may_attend: Bool[Tensor, "row 1 #query key"] | None,
        *,
        causal: bool,
    ) -> Float[Tensor, "row heads query value_size"]:
        """Attention from queries to values by the fast twin, which returns no weights."""
        match self.kind:
            case "relative":
                assert self.keys is not None
                assert self.values is not None
                tables = (self.keys, self.values)
                return fused_relative_attention(
                    query, key, value, tables, may_attend, causal=causal
                )
            case "alibi":
                return fused_alibi_attention(query, key, value, may_attend, causal=causal)
            case _:
                return fused_attention(query, key, value, may_attend, causal=causal)


class MultiHeadAttention(nn.Module):
    """Concat(head₁, …, headₕ) W^O with headᵢ = Attention(Q Wᵢ^Q, K Wᵢ^K, V Wᵢ^V).

    EQ: 77, 78, 82, 83, 89.  Source: Vaswani et al. (2017), §3.2.2.
    ``w_qkv`` stacks all heads' W^Q, then W^K, then W^V, transposed: one product serves
    self-attention, and a slice of rows serves each side of cross-attention.
    """

    def __init__(
        self,
        config: BlockSettings,
        source: DropoutSource,
        positions: AttentionPositions | None = None,
    ) -> None:
        """``positions`` is for self-attention, whose queries and keys are of one sequence."""
        super().__init__()

        self.heads = config.heads
        self.query_width = config.heads * config.key_size
        self.value_width = config.heads * config.value_size

        packed_width = 2 * self.query_width + self.value_width
        is_two_stage = config.projection == "two_stage"
        self.two_stage = TwoStageProjection(config) if is_two_stage else None
        self.w_qkv = (
            None if is_two_stage else nn.Parameter(torch.empty(packed_width, config.d_model))
        )

        # the kernels always divide scores by √dₖ; without scaling (Luong's dot product) the
        # query is multiplied by it first
        self.undo_scale = 1.0 if config.scale_attention else math.sqrt(config.key_size)
        self.positions = positions

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
        """Self-attention: every position attends to the positions that the mask allows."""
        query, key, value = self.project_all(x)
        return self.attend(query, key, value, may_attend, causal=causal, trace=trace)

    @property
    def needs_order(self) -> bool:
        """Whether positions act by the order of the keys, so that they must be given in order."""
        return self.positions is not None and self.positions.kind in ("relative", "alibi")

    @property
    def packed_weight(self) -> Float[Tensor, "packed d_model"]:
        """All heads' W^Q, then W^K, then W^V, transposed."""
        # the product of two small matrices, made again for each pass: both of them learn
        if self.two_stage is not None:
            composite: Tensor = self.two_stage()
            return composite
        assert self.w_qkv is not None
        return self.w_qkv

    def project_all(
        self, x: Float[Tensor, "row length d_model"], start: int = 0
    ) -> tuple[
        Float[Tensor, "row heads length key_size"],
        Float[Tensor, "row heads length key_size"],
        Float[Tensor, "row heads length value_size"],
    ]:
        """Queries, keys and values of one sequence from position ``start``, split into heads."""
        # cast here, before the split: one cast of contiguous rows is cheaper than three of heads
        packed = for_attention(linear(x, self.packed_weight, self.b_qkv))
        widths = [self.query_width, self.query_width, self.value_width]
        # (row, length, heads · size) → (row, heads, length, size)
        query, key, value = (
            split_heads(part, self.heads) for part in torch.split(packed, widths, -1)
        )

        # the cache holds rotated keys: each is rotated once, by its own position
        if self.positions is not None:
            query, key = self.positions.turn(query, start), self.positions.turn(key, start)

        return query, key, value

    def project_query(
        self, x: Float[Tensor, "row length d_model"]
    ) -> Float[Tensor, "row heads length key_size"]:
        """Queries alone, split into heads."""
        # the first rows of the packed matrix are W^Q, the others W^K and W^V
        bias = None if self.b_qkv is None else self.b_qkv[: self.query_width]
        weight = self.packed_weight[: self.query_width]
        return split_heads(for_attention(linear(x, weight, bias)), self.heads)

    def project_memory(
        self, memory: Float[Tensor, "sentence source d_model"]
    ) -> tuple[
        Float[Tensor, "sentence heads source key_size"],
        Float[Tensor, "sentence heads source value_size"],
    ]:
        """Keys and values alone, split into heads; computed once for a sentence (EQ-90)."""
        bias = None if self.b_qkv is None else self.b_qkv[self.query_width :]

        # keys and values in one product, as both read the same states
        packed = for_attention(linear(memory, self.packed_weight[self.query_width :], bias))
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
        """Attend with every head, concatenate the heads and project them with W^O."""
        query = trace.keep("query", query)
        key = trace.keep("key", key)
        value = trace.keep("value", value)

        drops_weights = self.training and self.weights_dropout.rate > 0.0
        positions = self.positions
        scaled = query * self.undo_scale if self.undo_scale != 1.0 else query

        # the fused kernels return no weights; only dropout on them and a trace need them
        if drops_weights or trace.wants("scores", "masked_scores", "weights"):
            weights = self._weights_in_the_open(scaled, key, may_attend, causal, trace)
            weights = self.weights_dropout(weights)
            heads = weights @ value if positions is None else positions.mix(weights, value)
        elif positions is None:
            heads = fused_attention(scaled, key, value, may_attend, causal=causal)
        else:
            heads = positions.attend(scaled, key, value, may_attend, causal=causal)

        heads = trace.keep("heads", heads)
        # (row, heads, query, value_size) → (row, query, heads · value_size)
        merged = trace.keep("concatenation", merge_heads(heads))
        return trace.keep("output", linear(merged, self.w_o, self.b_o))

    def _weights_in_the_open(
        self,
        query: Float[Tensor, "row heads query key_size"],
        key: Float[Tensor, "row heads key key_size"],
        may_attend: Bool[Tensor, "row 1 #query key"] | None,
        causal: bool,
        trace: Trace,
    ) -> Float[Tensor, "row heads query key"]:
        """The attention weights (EQ-52, EQ-72); the trace may keep each step."""
        # only whole prefixes are causal here, so queries and keys are equally many
        if causal:
            square = causal_mask(query.shape[-2]).to(query.device)
            may_attend = square if may_attend is None else may_attend & square

        scores = (
            attention_scores(query, key)
            if self.positions is None
            else self.positions.scores(query, key)
        )
        scores = trace.keep("scores", scores)

        masked = scores if may_attend is None else scores.masked_fill(~may_attend, -math.inf)
        masked = trace.keep("masked_scores", masked)
        return trace.keep("weights", masked_softmax(masked, may_attend))


class TwoStageProjection(nn.Module):
    """W_q W_q⁽ⁱ⁾ for every head, and the same for keys and values.

    EQ: 87.  Source: Transformers report, §1.4, (6); the joint rank of all heads is that of one
    (ER-22).
    """

    def __init__(self, config: BlockSettings) -> None:
        super().__init__()
        sizes = {"query": config.key_size, "key": config.key_size, "value": config.value_size}
        self.shared = nn.ParameterDict(
            {name: nn.Parameter(torch.empty(config.d_model, size)) for name, size in sizes.items()}
        )
        self.per_head = nn.ParameterDict(
            {
                name: nn.Parameter(torch.empty(config.heads, size, size))
                for name, size in sizes.items()
            }
        )

    def forward(self) -> Float[Tensor, "packed d_model"]:
        """The composite matrices, stacked like ``MultiHeadAttention.w_qkv``."""
        each = (
            two_stage_weights(self.shared[name], self.per_head[name])  # (heads, d_model, size)
            for name in ("query", "key", "value")
        )
        # (heads · size, d_model) each, as a linear map's weight is (outputs, inputs)
        return torch.cat([part.transpose(1, 2).flatten(0, 1) for part in each])


def mask_for_heads(
    may_attend: Bool[Tensor, "sentence source"],
) -> Bool[Tensor, "sentence 1 1 source"] | None:
    """One mask for all heads and queries; None on a CPU if nothing is masked.

    Attention without a mask is faster. On an accelerator the check itself would cost more: the host
    would have to wait for its result.
    """
    if may_attend.device.type == "cpu" and bool(may_attend.all()):
        return None
    return may_attend[:, None, None, :]
