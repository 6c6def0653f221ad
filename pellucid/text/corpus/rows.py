"""Rows of ids of different lengths, stored one after the other, and sets and selections of rows.

``IdRows`` holds the ids, in memory or in a file (``FileIds``); ``RowSet`` is a set of row numbers,
one bit each; ``Selection`` leaves some rows of a store out.
"""

import os
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from pellucid.core import system
from pellucid.core.errors import CorruptError

Ids = npt.NDArray[np.integer[Any]]
Indices = npt.NDArray[np.int64]

STRIDE = 16
"""The distance of rows whose position is stored; the others are found by adding up lengths. A row
takes 2.5 bytes instead of 8."""
_BLOCK = 1 << 18
"""Rows that are checked together, to bound memory."""


class FileIds:
    """The ids in a file; one row at a time is read.

    The file is not mapped into memory: reading a mapped file that was cut short kills the process
    with a signal, whereas here it raises CorruptError. The file stays open, so replacing it by
    another one has no effect. Any number of threads may read.
    """

    def __init__(self, path: Path, data_type: str) -> None:
        """Open the file. Raises OSError if that cannot be done."""
        self._path = path
        self.dtype = np.dtype(data_type)
        self._file = system.open_to_read(path, follows_links=True)
        weakref.finalize(self, os.close, self._file)
        self.nbytes = os.fstat(self._file).st_size

    def __len__(self) -> int:
        return self.nbytes // self.dtype.itemsize

    def read(self, begin: int, count: int) -> Ids:
        """``count`` ids from position ``begin``."""
        size = count * self.dtype.itemsize
        content = system.read_at(self._file, size, begin * self.dtype.itemsize)
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
        """Copy rows that are lists in memory."""
        return cls.in_order(*concatenated(rows))

    @classmethod
    def in_order(cls, ids: Ids, lengths: Ids) -> Self:
        """Rows that follow one another in ``ids``."""
        # An exclusive sum: where each row begins, not where it ends.
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
            # A read for each row: the rows of a batch lie anywhere in a file of gigabytes.
            begins = self._begins_of(rows).tolist()
            read = map(self.ids.read, begins, lengths.tolist())
            return np.concatenate([np.empty(0, np.int64), *read], dtype=np.int64), lengths

        return self.ids[positions_of(self._begins_of(rows), lengths)].astype(np.int64), lengths

    def fit_together(self) -> bool:
        """Whether no row is empty and each begins where the one before ends, up to the last id."""
        end = 0
        for start in range(0, len(self), _BLOCK):
            # int64, because sums of 16-bit lengths would wrap around.
            lengths = self.lengths[start : start + _BLOCK].astype(np.int64)
            begins = self.begins[start // STRIDE : (start + _BLOCK) // STRIDE]
            expected = end + (np.cumsum(lengths) - lengths)[::STRIDE]
            if lengths.min() <= 0 or not np.array_equal(begins, expected):
                return False
            end += int(lengths.sum())
        return len(self.begins) == -(-len(self) // STRIDE) and end == len(self.ids)

    def _begins_of(self, rows: Indices) -> Indices:
        """Where these rows begin in ``ids``."""
        # The begin of the row's group, plus the lengths of the rows of the group before it.
        groups = rows // STRIDE
        near = (groups * STRIDE)[:, None] + np.arange(STRIDE)  # (row, neighbor)
        before = near < rows[:, None]

        # The last group may be short: its missing neighbors are clipped into range, and ``before``
        # masks them out.
        lengths = self.lengths[np.minimum(near, len(self) - 1)]
        begins: Indices = self.begins[groups] + (lengths * before).sum(axis=1, dtype=np.int64)
        return begins


def concatenated(rows: Sequence[Sequence[int]]) -> tuple[Indices, Indices]:
    """The ids of rows that are lists, one row after the other, and the length of each."""
    # With their counts known beforehand both arrays are allocated once.
    lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    count = int(lengths.sum())
    return np.fromiter((id_ for row in rows for id_ in row), np.int64, count), lengths


def positions_of(begins: Indices, lengths: Indices) -> Indices:
    """The positions of several rows, one row after the other: b, b + 1, ... for each begin b."""
    # One index array for all rows at once: 0, 1, 2, ... over the result, moved for each row by the
    # difference between where it begins there and where it begins here.
    ends = np.cumsum(lengths)
    positions = np.arange(ends[-1] if len(ends) else 0)
    positions += np.repeat(begins - (ends - lengths), lengths)
    return positions


_UNPACKED_ROWS = 1 << 20
"""Rows whose bits are unpacked together, to bound memory."""
_BITS = 8


class RowSet:
    """A set of row numbers, from 0, as one bit for each."""

    def __init__(self) -> None:
        self._bits = np.zeros(0, dtype=np.uint8)

    @classmethod
    def of(cls, rows: npt.ArrayLike) -> Self:
        """Return a set of the given rows."""
        made = cls()
        made.add(np.asarray(rows, dtype=np.int64))
        return made

    @classmethod
    def union(cls, sets: Iterable["RowSet"]) -> Self:
        """The rows that any of them has."""
        made = cls()
        for each in sets:
            # The sets end at different bytes: whatever is beyond the end of one is not in it.
            made._reach(len(each._bits))
            made._bits[: len(each._bits)] |= each._bits
        return made

    def add(self, rows: npt.NDArray[np.int64]) -> None:
        """Add rows to the set."""
        if len(rows):
            self._reach(int(rows.max()) // _BITS + 1)
            # ufunc.at, because several rows may share a byte: ``bits[...] |= ...`` would keep one.
            marks = np.left_shift(1, rows % _BITS).astype(np.uint8)
            np.bitwise_or.at(self._bits, rows // _BITS, marks)

    def __len__(self) -> int:
        return int(np.bitwise_count(self._bits).sum(dtype=np.int64))

    def first(self, count: int) -> npt.NDArray[np.int64]:
        """The lowest rows in rising order, ``count`` at most."""
        found = [np.empty(0, dtype=np.int64)]
        for start in range(0, len(self._bits) * _BITS, _UNPACKED_ROWS):
            found.append(np.flatnonzero(self.mask(start, start + _UNPACKED_ROWS)) + start)
            count -= len(found[-1])
            if count <= 0:
                break

        rows = np.concatenate(found)
        return rows[: len(rows) + min(count, 0)]

    def mask(self, start: int, stop: int) -> npt.NDArray[np.bool_]:
        """For each row from ``start`` to before ``stop`` whether it belongs to the set."""
        # Whole bytes, from the one that holds ``start`` to the one that holds ``stop - 1``; the
        # bits before ``start`` are cut off below.
        bits = self._bits[start // _BITS : -(-stop // _BITS)]
        unpacked = np.unpackbits(bits, bitorder="little").astype(np.bool_)

        # Rows beyond the last byte were never added, so the rest of the mask stays False.
        mask = np.zeros(stop - start, dtype=np.bool_)
        known = unpacked[start % _BITS :][: stop - start]
        mask[: len(known)] = known
        return mask

    def below(self, row: int) -> "RowSet":
        """The rows of the set before ``row``."""
        made = RowSet()
        made._bits = self._bits[: -(-row // _BITS)].copy()

        # The last byte may also have bits of rows from ``row`` on.
        if row % _BITS and len(made._bits) == row // _BITS + 1:
            made._bits[-1] &= (1 << row % _BITS) - 1
        return made

    def tolist(self) -> list[int]:
        """All rows of the set in rising order."""
        rows: list[int] = self.first(len(self)).tolist()
        return rows

    def _reach(self, size: int) -> None:
        """Make room for ``size`` bytes, at least doubling, so that growing takes linear time."""
        if size > len(self._bits):
            longer = np.zeros(max(size, 2 * len(self._bits)), dtype=np.uint8)
            longer[: len(self._bits)] = self._bits
            self._bits = longer


@dataclass(frozen=True, eq=False)
class Selection:
    """All rows of a store but a few; positions count the rows that are not left out."""

    row_count: int
    """Rows of the store."""
    left_out: Indices
    """Row numbers in rising order."""

    @classmethod
    def of_all(cls, row_count: int) -> Self:
        """No row is left out."""
        return cls(row_count, np.empty(0, dtype=np.int64))

    def __len__(self) -> int:
        return self.row_count - len(self.left_out)

    def __getitem__(self, places: Indices) -> Indices:
        """The rows at these positions."""
        # Before the i-th left-out row there are left_out[i] - i others, so it comes before every
        # position from that number on.
        places_before = self.left_out - np.arange(len(self.left_out))
        return places + np.searchsorted(places_before, places, side="right")

    def tolist(self) -> list[int]:
        """Every row."""
        rows: list[int] = self[np.arange(len(self))].tolist()
        return rows

    def sizes_of(self, parts: tuple[int, ...]) -> list[int]:
        """How many rows are left of each part of the store."""
        ends = np.cumsum(parts)

        # To the right, so that the first row of a part counts for this part and not for the one
        # before.
        left_out = np.searchsorted(ends, self.left_out, side="right")
        sizes: list[int] = (parts - np.bincount(left_out, minlength=len(parts))).tolist()
        return sizes
