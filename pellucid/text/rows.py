"""Rows of ids of different lengths, laid out one after the other, in memory or mapped from disk."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.integer[Any]]
Indices = npt.NDArray[np.int64]

STRIDE = 16
"""Rows between two that are known by their place; the others are found by adding up lengths. A row
costs 2.5 bytes that way and not 8."""
_BLOCK = 1 << 18
"""Rows looked at together, to bound memory."""


@dataclass(frozen=True)
class IdRows:
    """Rows of ids, one after the other."""

    ids: Ids
    lengths: Ids
    """How many ids each row has."""
    begins: Indices
    """Where every ``STRIDE``-th row begins in ``ids``."""

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> Self:
        """Lay out rows that are in memory."""
        lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        count = int(lengths.sum())
        ids = np.fromiter((id_ for row in rows for id_ in row), dtype=np.int64, count=count)
        return cls(ids, lengths, (np.cumsum(lengths) - lengths)[::STRIDE])

    def __len__(self) -> int:
        return len(self.lengths)

    def row(self, index: int) -> Ids:
        """The ids of one row, a view."""
        start = self._begins_of(np.array([index]))[0]
        return self.ids[start : start + self.lengths[index]]

    def gather(self, indices: npt.ArrayLike) -> tuple[Indices, Indices]:
        """The ids of several rows, int64, one after the other, and the length of each row."""
        rows = np.asarray(indices, dtype=np.int64)
        lengths = self.lengths[rows].astype(np.int64)
        ends = np.cumsum(lengths)
        places = np.arange(ends[-1] if len(ends) else 0)
        places += np.repeat(self._begins_of(rows) - (ends - lengths), lengths)
        return self.ids[places].astype(np.int64), lengths

    def fit_together(self) -> bool:
        """Whether no row is empty and each begins where the one before ends, up to the last id."""
        end = 0
        for start in range(0, len(self), _BLOCK):
            lengths = self.lengths[start : start + _BLOCK].astype(np.int64)
            begins = self.begins[start // STRIDE : (start + _BLOCK) // STRIDE]
            expected = end + (np.cumsum(lengths) - lengths)[::STRIDE]
            if lengths.min() <= 0 or not np.array_equal(begins, expected):
                return False
            end += int(lengths.sum())
        return len(self.begins) == -(-len(self) // STRIDE) and end == len(self.ids)

    def _begins_of(self, rows: Indices) -> Indices:
        groups = rows // STRIDE
        near = (groups * STRIDE)[:, None] + np.arange(STRIDE)  # (row, neighbor)
        before = near < rows[:, None]
        lengths = self.lengths[np.minimum(near, len(self) - 1)]
        begins: Indices = self.begins[groups] + (lengths * before).sum(axis=1, dtype=np.int64)
        return begins
