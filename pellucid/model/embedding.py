"""From ids to the rows that enter the first block."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from pellucid.core.errors import ShapeError
from pellucid.core.special import PAD_ID
from pellucid.equations import sinusoidal_positions
from pellucid.model.config import ModelConfig
from pellucid.model.dropout import Dropout, DropoutSource
from pellucid.model.trace import UNWATCHED, Trace

_TABLE_LENGTH = 512
"""Sinusoids of this many places are kept at hand; later ones are computed when asked for."""


class Positions(nn.Module):
    """What is added to a row so that it knows its place.

    EQ: 24, 29, 30.  Source: Vaswani et al. (2017), §3.5.
    """

    sinusoids: Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.d_model = config.d_model
        self.learned = (
            nn.Parameter(torch.empty(config.max_positions, config.d_model))
            if config.positions == "learned"
            else None
        )
        table = sinusoidal_positions(_TABLE_LENGTH, config.d_model)
        self.register_buffer("sinusoids", table, persistent=False)

    def forward(self, start: int, length: int) -> Float[Tensor, "length d_model"]:
        """Rows for places ``start`` to ``start + length - 1``, counted from 0.

        Raises ShapeError if learned positions do not reach that far.
        """
        end = start + length
        if self.learned is not None:
            if end > self.learned.shape[0]:
                raise ShapeError(
                    f"learned positions number {self.learned.shape[0]} places, got length {end}",
                    hint="train with a larger model.max_positions or use sinusoidal positions",
                )
            return self.learned[start:end]
        if end > self.sinusoids.shape[0]:
            return sinusoidal_positions(length, self.d_model, start=start).to(self.sinusoids)
        return self.sinusoids[start:end]


class Embedding(nn.Module):
    """√d_model · W[id], plus the row of its place.

    EQ: 14, 15, 29, 107.  Source: Vaswani et al. (2017), §3.4, §3.5.
    """

    def __init__(
        self, config: ModelConfig, vocabulary_size: int, positions: Positions, source: DropoutSource
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocabulary_size, config.d_model))
        self.scale = math.sqrt(config.d_model) if config.scale_embeddings else 1.0
        self.positions = positions
        self.dropout = Dropout(config.dropout, source)

    def forward(
        self, ids: Int[Tensor, "row length"], *, start: int = 0, trace: Trace = UNWATCHED
    ) -> Float[Tensor, "row length d_model"]:
        """Rows for ``ids``, of which the first stands at place ``start``."""
        tokens = functional.embedding(ids, self.weight, padding_idx=PAD_ID) * self.scale
        trace.keep("tokens", tokens)
        positions = self.positions(start, ids.shape[1])
        trace.keep("positions", positions)
        summed = tokens + positions
        trace.keep("sum", summed)
        output: Tensor = self.dropout(summed)
        return output
