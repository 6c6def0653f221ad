"""Multi-head attention, over one's own sequence and over the source, with positions inside it."""

import functools
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
from pellucid.equations.heads import (
    NO_BIASES,
    HeadBiases,
    merge_heads,
    split_heads,
    two_stage_weights,
)
from pellucid.equations.masks import causal_mask, masked_softmax
from pellucid.equations.positions import sinusoidal_positions
from pellucid.equations.relative import (
    alibi_bias,
    relative_scores,
    relative_values,
    rotary_positions,
)
from pellucid.equations.weights import AttentionWeights
from pellucid.model.cache import FilledSlots, KeyValueCache, SourceCache
from pellucid.model.config import BlockSettings
from pellucid.model.dropout import Dropout, DropoutSource
from pellucid.model.layers import SublayerModule, linear
from pellucid.model.state import Reading, Step, SublayerState
from pellucid.model.trace import UNWATCHED, Trace

_TABLE_LENGTH = 512
"""Sinusoids of this many positions are computed once; later ones each time."""


@functools.lru_cache(maxsize=8)
def _rotary_table(size: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """The sinusoids of the first positions, (position, size), for all layers and searches.

    Computing them takes some twenty small operations, for each layer of each step of a search.
    """
    # made in inference mode, a tensor could not be used where gradients are recorded
    with torch.inference_mode(False):
        return sinusoidal_positions(_TABLE_LENGTH, size, 0, dtype, device)


@functools.lru_cache(maxsize=8)
def _turn_table(size: int, dtype: torch.dtype, device: torch.device) -> list[tuple[Tensor, Tensor]]:
    """For each of the first positions, the factors of each number of a pair and of its neighbor.

    Two tensors (size / 2, 2) a position: the cosine twice, and the sine with both signs.
    """
    with torch.inference_mode(False):
        return _turns(_rotary_table(size, dtype, device))


def _turns(waves: Float[Tensor, "position size"]) -> list[tuple[Tensor, Tensor]]:
    # a sine and its cosine: (position, size / 2, 2)
    sines, cosines = torch.split(waves.view(len(waves), -1, 2), 1, -1)
    cosines = cosines.expand(-1, -1, 2).contiguous()
    sines = torch.cat([-sines, sines], dim=-1)
    # taken apart here, as an index takes as long as a product of a few numbers
    return list(zip(cosines.unbind(), sines.unbind(), strict=True))


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
        self, x: Float[Tensor, "row heads length size"]
    ) -> Float[Tensor, "row heads length size"]:
        """Rotate queries or keys from the first position on, if positions are rotary.

        Training uses the fast twin. Everything else uses the equation in real numbers, which every
        export format supports.
        """
        if self.kind != "rotary":
            return x
        if self.training:
            return fused_rotary_positions(x)
        length, size = x.shape[-2:]
        fits = length <= _TABLE_LENGTH
        waves = _rotary_table(size, x.dtype, x.device)[:length] if fits else None
        return rotary_positions(x, 0, waves)

    def turn_newest(self, x: Float[Tensor, "row width"], heads: int, position: int) -> None:
        """Rotate the queries and keys of one position in place, if positions are rotary.

        ``x`` has ``heads`` of them in each row. The same as ``turn`` in a third of its operations.
        """
        if self.kind != "rotary":
            return
        size = x.shape[1] // heads
        cosines, sines = (
            _turn_table(size, x.dtype, x.device)[position]
            if position < _TABLE_LENGTH
            else _turns(sinusoidal_positions(1, size, position, x.dtype, x.device))[0]
        )
        # (a, b) → (a cos − b sin, b cos + a sin), where ``sines`` brings its signs
        pairs = x.view(len(x), heads, -1, 2)
        swapped = pairs.flip(-1)
        pairs.mul_(cosines).addcmul_(swapped, sines)

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


class MultiHeadAttention(SublayerModule):
    """Concat(head₁, …, headₕ) W^O with headᵢ = Attention(Q Wᵢ^Q, K Wᵢ^K, V Wᵢ^V).

    EQ: 77, 78, 82, 83, 89.  Source: Vaswani et al. (2017), §3.2.2.
    ``w_qkv`` stacks all heads' W^Q, then W^K, then W^V, transposed: one product serves
    self-attention, and a slice of rows serves each side of cross-attention.
    """

    def __init__(
        self,
        config: BlockSettings,
        source: DropoutSource,
        positions: AttentionPositions | None,
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
        self, x: Float[Tensor, "row length d_model"]
    ) -> tuple[
        Float[Tensor, "row heads length key_size"],
        Float[Tensor, "row heads length key_size"],
        Float[Tensor, "row heads length value_size"],
    ]:
        """Queries, keys and values of all positions, split into heads."""
        # cast here, before the split: one cast of contiguous rows is cheaper than three of heads
        packed = for_attention(linear(x, self.packed_weight, self.b_qkv))
        widths = [2 * self.query_width, self.value_width]
        both, value = torch.split(packed, widths, -1)

        # queries and keys in one call: (row, length, 2 · heads · size) → (row, 2 · heads, length,
        # size); the cache holds rotated keys, so each is rotated once, by its own position
        both = split_heads(both, 2 * self.heads)
        if self.positions is not None:
            both = self.positions.turn(both)

        # not two slices: the backward pass would fill zeros for each and add them
        query, key = torch.split(both, self.heads, 1)
        return query, key, split_heads(value, self.heads)

    def project_query(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch width"]:
        """Queries of all heads, side by side."""
        # the first rows of the packed matrix are W^Q, the others W^K and W^V
        bias = None if self.b_qkv is None else self.b_qkv[: self.query_width]
        weight = self.packed_weight[: self.query_width]
        return for_attention(linear(x, weight, bias))

    def project_memory(
        self, memory: Float[Tensor, "sentence source d_model"]
    ) -> tuple[
        Float[Tensor, "sentence heads source key_size"],
        Float[Tensor, "sentence heads source value_size"],
    ]:
        """Keys and values alone, split into heads; computed once for a sentence (EQ-90)."""
        bias = None if self.b_qkv is None else self.b_qkv[self.query_width :]

        # keys and values in one product, as both read the same states
        return self.split_packed(
            for_attention(linear(memory, self.packed_weight[self.query_width :], bias))
        )

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

    def clear_weights(self) -> AttentionWeights:
        """The packed matrix cut into W^Q, W^K and W^V of every head."""
        widths = [self.query_width, self.query_width, self.value_width]
        if self.two_stage is not None:
            shared, per_head = self.two_stage.shared, self.two_stage.per_head
            w_q, w_k, w_v = (
                two_stage_weights(shared[name], per_head[name])
                for name in ("query", "key", "value")
            )
        else:
            assert self.w_qkv is not None
            w_q, w_k, w_v = (
                # (heads · size, d_model) -> (heads, d_model, size)
                part.reshape(self.heads, -1, part.shape[-1]).transpose(1, 2)
                for part in torch.split(self.w_qkv, widths)
            )

        biases = NO_BIASES
        if self.b_qkv is not None:
            b_q, b_k, b_v = (
                part.reshape(self.heads, 1, -1) for part in torch.split(self.b_qkv, widths)
            )
            biases = HeadBiases(b_q, b_k, b_v, self.b_o)

        positions = self.positions
        return AttentionWeights(
            w_q,
            w_k,
            w_v,
            self.w_o.T,
            biases,
            None if positions is None else positions.keys,
            None if positions is None else positions.values,
        )

    def attend_from_beams(
        self,
        query: Float[Tensor, "row width"],
        keys: Float[Tensor, "sentence heads key key_size"],
        values: Float[Tensor, "sentence heads key value_size"],
        may_attend: Bool[Tensor, "sentence 1 #beam key"] | None,
    ) -> Float[Tensor, "row d_model"]:
        """Attend from one token of each hypothesis: the beams are queries to the same keys.

        So the keys and values of a sentence are read once, and not copied for each beam.
        """
        # (sentence · beam, heads · key_size) → (sentence, heads, beam, key_size)
        query = query.view(keys.shape[0], -1, self.heads, keys.shape[-1]).transpose(1, 2)
        if self.undo_scale != 1.0:
            query = query * self.undo_scale
        attended = (
            self.positions.attend(query, keys, values, may_attend, causal=False)
            if self.needs_order and self.positions is not None
            else fused_attention(query, keys, values, may_attend)
        )

        # (sentence, heads, beam, value_size) → (sentence · beam, heads · value_size)
        merged = attended.transpose(1, 2).reshape(-1, self.value_width)
        return linear(merged, self.w_o, self.b_o)

    def split_packed(
        self, packed: Float[Tensor, "row length width"]
    ) -> tuple[
        Float[Tensor, "row heads length key_size"], Float[Tensor, "row heads length value_size"]
    ]:
        """Keys and values that lie side by side, split into heads."""
        key, value = torch.split(packed, [self.query_width, self.value_width], -1)
        return split_heads(key, self.heads), split_heads(value, self.heads)


class SelfAttention(MultiHeadAttention):
    """Attention in which every position attends to those of its own sequence.

    EQ: 83, 138.  Source: Vaswani et al. (2017), §3.2.3.
    """

    def __init__(self, config: BlockSettings, source: DropoutSource) -> None:
        super().__init__(config, source, AttentionPositions(config))

    def forward(
        self,
        x: Float[Tensor, "sentence query d_model"],
        reading: Reading,
        trace: Trace = UNWATCHED,
    ) -> Float[Tensor, "sentence query d_model"]:
        """Attend to the positions that the mask allows, if causal to no later one (EQ-138)."""
        query, key, value = self.project_all(x)
        may_attend, causal = reading.may_attend, reading.causal
        return self.attend(query, key, value, may_attend, causal=causal, trace=trace)

    def start(self, memory: Float[Tensor, "sentence source d_model"]) -> KeyValueCache:
        """The cache before the first token."""
        width = self.query_width + self.value_width
        return KeyValueCache(memory.new_empty((memory.shape[0], 0, width)), 0, FilledSlots(0))

    def step(
        self, x: Float[Tensor, "row d_model"], state: SublayerState, step: Step
    ) -> tuple[Float[Tensor, "row d_model"], KeyValueCache]:
        """Attend over the cache, with all beams of a sentence at once where order permits."""
        assert isinstance(state, KeyValueCache)
        packed = for_attention(linear(x, self.packed_weight, self.b_qkv))
        if self.positions is not None:
            both = packed[:, : 2 * self.query_width]
            self.positions.turn_newest(both, 2 * self.heads, step.position)
        query = packed[:, : self.query_width]
        # before attention: the newest token attends to itself too
        cache = state.with_newest(packed[:, self.query_width :])

        # relative positions and ALiBi go by the order of the keys, and the slots of several beams
        # are interleaved; a single beam owns all slots, and they are in order already
        if step.may_attend is not None and self.needs_order:
            own = self.split_packed(step.in_order(cache.packed))
            return self.attend_from_beams(query, *own, None), cache

        # every beam attends to all slots of its sentence, and the mask hides those of other beams:
        # softmax does not depend on the order of keys, and rotary keys were rotated before caching
        own = self.split_packed(cache.packed[:, : cache.taken])
        return self.attend_from_beams(query, *own, step.may_attend), cache


class CrossAttention(MultiHeadAttention):
    """Attention from every target position to the encoder's output.

    EQ: 89, 90.  Source: Vaswani et al. (2017), §3.2.3.
    """

    def __init__(self, config: BlockSettings, source: DropoutSource) -> None:
        super().__init__(config, source, None)

    def forward(
        self,
        x: Float[Tensor, "sentence query d_model"],
        reading: Reading,
        trace: Trace = UNWATCHED,
    ) -> Float[Tensor, "sentence query d_model"]:
        """Attend to the source; padding is masked."""
        assert reading.memory is not None
        query = split_heads(self.project_query(x), self.heads)
        key, value = self.project_memory(reading.memory)
        return self.attend(query, key, value, reading.memory_may_attend, trace=trace)

    def start(self, memory: Float[Tensor, "sentence source d_model"]) -> SourceCache:
        """The keys and values of the source."""
        keys, values = self.project_memory(memory)
        # contiguous, as every step reads them: they are views of a packed projection
        return SourceCache(keys.contiguous(), values.contiguous())

    def step(
        self, x: Float[Tensor, "row d_model"], state: SublayerState, step: Step
    ) -> tuple[Float[Tensor, "row d_model"], SourceCache]:
        """Attend to the source from the newest token alone."""
        assert isinstance(state, SourceCache)
        query = self.project_query(x)
        mask = step.memory_may_attend
        return self.attend_from_beams(query, state.keys, state.values, mask), state


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
