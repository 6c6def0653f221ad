"""Some rows of a store, without a list of them."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from pellucid.text.rows import Ids, Indices


@dataclass(frozen=True, eq=False)
class Selection:
    """All rows of a store but a few; a row's place counts those before it that are not left out."""

    row_count: int
    """Of the store."""
    left_out: Indices
    """Rising."""

    @classmethod
    def of_all(cls, row_count: int) -> Self:
        """No row is left out."""
        return cls(row_count, np.empty(0, dtype=np.int64))

    def __len__(self) -> int:
        return self.row_count - len(self.left_out)

    def __getitem__(self, places: Indices) -> Indices:
        """The rows at these places."""
        places_before = self.left_out - np.arange(len(self.left_out))
        return places + np.searchsorted(places_before, places, side="right")

    def tolist(self) -> list[int]:
        """Every row."""
        rows: list[int] = self[np.arange(len(self))].tolist()
        return rows

    def sizes_of(self, parts: tuple[int, ...]) -> list[int]:
        """How many rows are left of each part of the store."""
        ends = np.cumsum(parts)
        left_out = np.searchsorted(ends, self.left_out, side="right")
        sizes: list[int] = (parts - np.bincount(left_out, minlength=len(parts))).tolist()
        return sizes


@dataclass(frozen=True)
class SelectedLengths:
    """Lengths by place in a selection, the same in every epoch; what ``BatchSampler`` asks."""

    lengths: Ids
    selection: Selection

    def __len__(self) -> int:
        return len(self.selection)

    def in_epoch(self, _epoch: int, places: Indices, /) -> npt.NDArray[np.integer[Any]]:
        """The lengths of the rows at these places."""
        return self.lengths[self.selection[places]]
