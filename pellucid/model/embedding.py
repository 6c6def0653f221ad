"""From ids to the rows that enter the first block."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from pellucid.core.special import PAD_ID, START_ID
from pellucid.equations.positions import network_embedding
from pellucid.model.config import ModelConfig
from pellucid.model.dropout import Dropout, DropoutSource
from pellucid.model.positions import Positions
from pellucid.model.precision import stream_dtype
from pellucid.model.trace import UNWATCHED, Trace


class Embedding(nn.Module):
    """√d_model · W[id], plus the row of its place.

    EQ: 14, 15, 28, 29, 106, 107.  Source: Vaswani et al. (2017), §3.4, §3.5; Agarwal, §6.3, for
    the small network that may stand between; Single Page for a decoder that starts from zeros.
    """

    def __init__(
        self, config: ModelConfig, vocabulary_size: int, positions: Positions, source: DropoutSource
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocabulary_size, config.d_model))
        self.scale = math.sqrt(config.d_model) if config.scale_embeddings else 1.0
        hidden = config.position_hidden or config.d_model
        is_network = config.embedding == "mlp"
        self.w_x = nn.Parameter(torch.empty(config.d_model, hidden)) if is_network else None
        self.w_zx = nn.Parameter(torch.empty(hidden, config.d_model)) if is_network else None
        self.starts_from_zero = config.start_symbol == "zero"
        self.positions = positions
        self.dropout = Dropout(config.dropout, source)

    def forward(
        self, ids: Int[Tensor, "row length"], *, start: int = 0, trace: Trace = UNWATCHED
    ) -> Float[Tensor, "row length d_model"]:
        """Rows for ``ids``, of which the first stands at place ``start``."""
        rows = functional.embedding(ids, self.weight, padding_idx=PAD_ID)
        rows = trace.keep("lookup", rows) * self.scale
        if self.starts_from_zero:
            rows = rows.masked_fill((ids == START_ID).unsqueeze(-1), 0.0)
        if self.w_x is not None and self.w_zx is not None:
            rows = network_embedding(rows, self.w_x, self.w_zx)
        rows = trace.keep("embedding", rows)
        placed = trace.keep("input", self.positions(rows, start, trace))
        output: Tensor = self.dropout(placed.to(stream_dtype(placed)))
        return output
