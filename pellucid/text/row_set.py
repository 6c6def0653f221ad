"""Sets of row numbers, one bit for each row, so that millions of faults stay a megabyte."""

from collections.abc import Iterable
from typing import Self

import numpy as np
import numpy.typing as npt

_BLOCK = 1 << 20
"""Rows that are unpacked together."""
_BITS = 8


class RowSet:
    """Some of the rows of a file, from 0."""

    def __init__(self) -> None:
        self._bits = np.zeros(0, dtype=np.uint8)

    @classmethod
    def of(cls, rows: npt.ArrayLike) -> Self:
        """These rows."""
        made = cls()
        made.add(np.asarray(rows, dtype=np.int64))
        return made

    @classmethod
    def union(cls, sets: Iterable["RowSet"]) -> Self:
        """The rows that any of them has."""
        made = cls()
        for each in sets:
            made._reach(len(each._bits))
            made._bits[: len(each._bits)] |= each._bits
        return made

    def add(self, rows: npt.NDArray[np.int64]) -> None:
        """Take up more rows."""
        if len(rows):
            self._reach(int(rows.max()) // _BITS + 1)
            marks = np.left_shift(1, rows % _BITS).astype(np.uint8)
            np.bitwise_or.at(self._bits, rows // _BITS, marks)

    def __len__(self) -> int:
        return int(np.bitwise_count(self._bits).sum(dtype=np.int64))

    def first(self, count: int) -> npt.NDArray[np.int64]:
        """The lowest rows, rising, ``count`` at most."""
        found = [np.empty(0, dtype=np.int64)]
        for start in range(0, len(self._bits) * _BITS, _BLOCK):
            found.append(np.flatnonzero(self.mask(start, start + _BLOCK)) + start)
            count -= len(found[-1])
            if count <= 0:
                break
        rows = np.concatenate(found)
        return rows[: len(rows) + min(count, 0)]

    def mask(self, start: int, stop: int) -> npt.NDArray[np.bool_]:
        """For each row from ``start`` to before ``stop`` whether it belongs to the set."""
        bits = self._bits[start // _BITS : -(-stop // _BITS)]
        unpacked = np.unpackbits(bits, bitorder="little").astype(np.bool_)
        mask = np.zeros(stop - start, dtype=np.bool_)
        known = unpacked[start % _BITS :][: stop - start]
        mask[: len(known)] = known
        return mask

    def below(self, row: int) -> "RowSet":
        """Those before ``row``."""
        made = RowSet()
        made._bits = self._bits[: -(-row // _BITS)].copy()
        if row % _BITS and len(made._bits) == row // _BITS + 1:
            made._bits[-1] &= (1 << row % _BITS) - 1
        return made

    def tolist(self) -> list[int]:
        """All of them, rising."""
        rows: list[int] = self.first(len(self)).tolist()
        return rows

    def _reach(self, size: int) -> None:
        if size > len(self._bits):
            longer = np.zeros(max(size, 2 * len(self._bits)), dtype=np.uint8)
            longer[: len(self._bits)] = self._bits
            self._bits = longer
