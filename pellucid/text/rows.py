"""Rows of ids of different lengths, laid out one after the other, in memory or in a file."""

import os
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from pellucid.core.errors import CorruptError

Ids = npt.NDArray[np.integer[Any]]
Indices = npt.NDArray[np.int64]

STRIDE = 16
"""Rows between two that are known by their place; the others are found by adding up lengths. A row
costs 2.5 bytes that way and not 8."""
_BLOCK = 1 << 18
"""Rows looked at together, to bound memory."""


class FileIds:
    """The ids in a file, of which a row at a time is read.

    The file is not mapped: reading a mapped file that somebody has cut short kills the process by a
    signal, and here it raises CorruptError. The file stays open, so another one that takes its
    name changes nothing. Any number of threads may read.
    """

    def __init__(self, path: Path, data_type: str) -> None:
        """Open the file. Raises OSError if that cannot be done."""
        self._path = path
        self.dtype = np.dtype(data_type)
        self._file = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._file)
        self.nbytes = os.fstat(self._file).st_size

    def __len__(self) -> int:
        return self.nbytes // self.dtype.itemsize

    def read(self, begin: int, count: int) -> Ids:
        """So many ids from position ``begin``."""
        size = count * self.dtype.itemsize
        content = os.pread(self._file, size, begin * self.dtype.itemsize)
        if len(content) != size:
            raise CorruptError(
                f"{self._path} should have {self.nbytes} bytes, has {os.fstat(self._file).st_size}",
                hint="something changed the cache of a running job; start it again",
            )
        return np.frombuffer(content, self.dtype)


@dataclass(frozen=True)
class IdRows:
    """Rows of ids, one after the other."""

    ids: Ids | FileIds
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
        return cls.in_order(ids, lengths)

    @classmethod
    def in_order(cls, ids: Ids, lengths: Ids) -> Self:
        """Rows that stand one after the other in ``ids``."""
        return cls(ids, lengths, (np.cumsum(lengths) - lengths)[::STRIDE])

    def __len__(self) -> int:
        return len(self.lengths)

    def all_ids(self) -> Ids:
        """The ids of all rows; those of a file are read. Raises CorruptError as ``gather``."""
        return self.ids.read(0, len(self.ids)) if isinstance(self.ids, FileIds) else self.ids

    def row(self, index: int) -> Ids:
        """The ids of one row, a view if they are in memory. Raises CorruptError as ``gather``."""
        start, length = int(self._begins_of(np.array([index]))[0]), int(self.lengths[index])
        if isinstance(self.ids, FileIds):
            return self.ids.read(start, length)
        return self.ids[start : start + length]

    def gather(self, indices: npt.ArrayLike) -> tuple[Indices, Indices]:
        """The ids of several rows, int64, one after the other, and the length of each row.

        Raises CorruptError if the file that holds them was cut short since it was opened.
        """
        rows = np.asarray(indices, dtype=np.int64)
        lengths = self.lengths[rows].astype(np.int64)
        if isinstance(self.ids, FileIds):
            begins = self._begins_of(rows).tolist()
            read = map(self.ids.read, begins, lengths.tolist())
            return np.concatenate([np.empty(0, np.int64), *read], dtype=np.int64), lengths
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
