"""From token ids to the vectors that enter the first block: word embeddings and positions."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from pellucid.core.errors import ShapeError
from pellucid.core.special import BOS_ID, PAD_ID
from pellucid.equations.choices import ADDED_POSITIONS, StartSymbol
from pellucid.equations.positions import (
    encode_positions,
    learned_positions,
    network_embedding,
    sinusoidal_positions,
    tensor2tensor_positions,
)
from pellucid.model.config import BlockSettings
from pellucid.model.dropout import Dropout, DropoutSource
from pellucid.model.layers import stream_dtype
from pellucid.model.trace import UNWATCHED, Trace

_TABLE_LENGTH = 512
"""Sinusoids of this many positions are precomputed; later ones are computed on demand."""


class Positions(nn.Module):
    """Adds or otherwise encodes the positions of a sequence of word embeddings.

    EQ: 21, 22, 23, 24, 29, 30.  Source: Vaswani et al. (2017), §3.5; Agarwal, §6.3.
    ``relative``, ``rotary`` and ``alibi`` act inside attention, and ``none`` nowhere: for them the
    input is returned unchanged.
    """

    sinusoids: Tensor

    def __init__(self, config: BlockSettings) -> None:
        super().__init__()
        self.kind = config.positions
        self.first = config.start_position
        self.max_length = config.max_length
        size, width = config.max_positions, config.d_model
        hidden = config.position_hidden or width
        self.learned = nn.Parameter(torch.empty(size, width)) if self.kind == "learned" else None

        shapes: dict[str, tuple[int, int]] = {}
        if self.kind == "one_hot":
            shapes = {"w": (width + size, width)}
        elif self.kind == "joint":
            shapes = {"w_x": (width, hidden), "w_e": (size, hidden), "w_z": (hidden, width)}
        elif self.kind == "summed":
            shapes = {"w_x": (width, hidden), "w_zx": (hidden, width)}
            shapes |= {"w_e": (size, hidden), "w_ze": (hidden, width)}

        self.matrices = nn.ParameterDict(
            {name: nn.Parameter(torch.empty(shape)) for name, shape in shapes.items()}
        )

        # not persistent: a function of the sizes, so no bundle needs to hold it. On the CPU also
        # where shapes alone are asked for: on the meta device its arithmetic imports the whole
        # compiler of PyTorch, which takes a second or two
        with torch.device("cpu"):
            table = self._sinusoids(_TABLE_LENGTH, width)
        self.register_buffer("sinusoids", table, persistent=False)

    def forward(
        self, x: Float[Tensor, "row length d_model"], start: int, trace: Trace = UNWATCHED
    ) -> Float[Tensor, "row length d_model"]:
        """Encode the positions of ``x``, whose first is ``start``, counted from 0.

        Raises ShapeError if the model cannot number so many positions.
        """
        length = x.shape[1]
        if self.kind in ADDED_POSITIONS:
            # a table is kept for them, and what is added is an intermediate of its own
            return x + trace.keep("positions", self.rows(start, length))
        self._require_positions(start + length)
        return encode_positions(x, self.kind, dict(self.matrices.items()), start)

    def rows(self, start: int, length: int) -> Float[Tensor, "length d_model"]:
        """The vectors that are added, one for each position. Raises as ``forward``."""
        self._require_positions(start + length)
        if self.learned is not None:
            return learned_positions(length, self.learned, start)

        # the papers count from 0 or from 1
        start += self.first
        if start + length > self.sinusoids.shape[0]:
            width = self.sinusoids.shape[1]
            return self._sinusoids(length, width, start).to(self.sinusoids)
        return self.sinusoids[start : start + length]

    def _sinusoids(self, length: int, width: int, start: int = 0) -> Tensor:
        if self.kind == "sinusoidal_t2t":
            return tensor2tensor_positions(length, width, start)
        return sinusoidal_positions(length, width, start)

    def _require_positions(self, end: int) -> None:
        if self.max_length is not None and end > self.max_length:
            name = self.kind.replace("_", "-")
            raise ShapeError(
                f"{name} positions number {self.max_length} tokens, got length {end}",
                hint="train with a larger model.max_positions or use sinusoidal positions",
            )


class Embedding(nn.Module):
    """√d_model · W[id] plus the encoding of its position.

    EQ: 14, 15, 28, 29, 106, 107.  Source: Vaswani et al. (2017), §3.4, §3.5; Agarwal, §6.3, for
    the small network that may stand between; Single Page for a decoder that starts from zeros.
    """

    def __init__(
        self,
        config: BlockSettings,
        vocabulary_size: int,
        positions: Positions,
        source: DropoutSource,
        *,
        start_symbol: StartSymbol = "token",
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocabulary_size, config.d_model))
        self.scale = math.sqrt(config.d_model) if config.scale_embeddings else 1.0

        hidden = config.position_hidden or config.d_model
        is_network = config.embedding == "mlp"
        self.w_x = nn.Parameter(torch.empty(config.d_model, hidden)) if is_network else None
        self.w_zx = nn.Parameter(torch.empty(hidden, config.d_model)) if is_network else None

        self.starts_from_zero = start_symbol == "zero"
        self.positions = positions
        self.dropout = Dropout(config.dropout, source)

    def forward(
        self, ids: Int[Tensor, "row length"], *, start: int = 0, trace: Trace = UNWATCHED
    ) -> Float[Tensor, "row length d_model"]:
        """The embeddings of ``ids``, the first at position ``start``."""
        # padding_idx: the row of PAD gets no gradient from here
        rows = functional.embedding(ids, self.weight, padding_idx=PAD_ID)
        rows = trace.keep("lookup", rows) * self.scale
        # the decoder of the Single Page starts from a zero vector
        if self.starts_from_zero:
            rows = rows.masked_fill((ids == BOS_ID).unsqueeze(-1), 0.0)

        if self.w_x is not None and self.w_zx is not None:
            rows = network_embedding(rows, self.w_x, self.w_zx)

        rows = trace.keep("embedding", rows)
        placed = trace.keep("input", self.positions(rows, start, trace))
        # cast here, once: all blocks then work in this dtype
        output: Tensor = self.dropout(placed.to(stream_dtype(placed)))
        return output
