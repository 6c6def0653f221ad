"""What self-attention itself knows about places: distances, rotations, slopes."""

from typing import assert_never

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from pellucid.equations.attention import attention_scores
from pellucid.equations.fused import (
    fused_alibi_attention,
    fused_attention,
    fused_relative_attention,
    fused_rotary_positions,
)
from pellucid.equations.relative import (
    alibi_bias,
    relative_scores,
    relative_values,
    rotary_positions,
)
from pellucid.model.config import ModelConfig


class AttentionPositions(nn.Module):
    """Scores and values of one self-attention, with whatever the config says about places.

    EQ: 31.  Source: Shaw et al. (2018); Su et al. (2021), rotary; Press et al. (2022), ALiBi.
    Wherever queries are fewer than keys they are the last of them, as with a cache. The tables of
    distances serve all heads of a layer, as in Shaw et al.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.kind = config.positions
        rows = 2 * config.relative_clip + 1
        is_relative = self.kind == "relative"
        self.keys = nn.Parameter(torch.empty(rows, config.key_size)) if is_relative else None
        self.values = nn.Parameter(torch.empty(rows, config.value_size)) if is_relative else None

    def turn(
        self, x: Float[Tensor, "row heads length size"], start: int
    ) -> Float[Tensor, "row heads length size"]:
        """Queries or keys, of which the first stands at ``start``, turned if they are rotary.

        In training by the fast twin; otherwise in real numbers, which every exported format knows.
        """
        if self.kind != "rotary":
            return x
        return fused_rotary_positions(x, start) if self.training else rotary_positions(x, start)

    def scores(
        self,
        query: Float[Tensor, "row heads query key_size"],
        key: Float[Tensor, "row heads key key_size"],
    ) -> Float[Tensor, "row heads query key"]:
        """How well they match, in the open."""
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
        """The values, weighted, in the open."""
        if self.values is None:
            return weights @ value
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
        """Both at once, by the fast twin."""
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
            case "sinusoidal" | "learned" | "one_hot" | "joint" | "summed" | "rotary" | "none":
                return fused_attention(query, key, value, may_attend, causal=causal)
            case _:
                assert_never(self.kind)
