"""Tokenized sentence pairs, in memory or mapped from disk.

A store is a folder: ``source.ids`` and ``target.ids`` hold all tokens one after the other (little
endian, 16 bits if the vocabulary allows, else 32), ``*.offsets`` where each sentence begins
(64 bits, one more than there are pairs), ``store.json`` the counts, ``manifest.json`` the hashes.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from pellucid.core.errors import CorruptError, DataError
from pellucid.core.files import verify_folder

Ids = npt.NDArray[np.integer[Any]]
Offsets = npt.NDArray[np.int64]

STORE_NAME = "store.json"
ID_TYPES = ("<u2", "<u4")
OFFSET_TYPE = "<i8"


@dataclass(frozen=True)
class StoreReport:
    """What became of the pairs that were read."""

    read: int
    """Pairs in the files."""
    kept: int
    """Pairs in the store."""
    empty: int
    """Pairs dropped because a side was blank."""
    too_long: int
    """Pairs dropped because a side had more than ``max_length`` tokens."""
    slipped: tuple[int, int] | None = None
    """First and last pair of a stretch whose lengths look shifted, as numbered in the files (all
    files through, from 1); None if there is none."""


@dataclass(frozen=True)
class IdRows:
    """Rows of ids laid out one after the other; row i is ``ids[offsets[i]:offsets[i + 1]]``."""

    ids: Ids
    offsets: Offsets

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> Self:
        """Lay out rows that are in memory."""
        offsets = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum([len(row) for row in rows], out=offsets[1:])
        ids = np.fromiter((id_ for row in rows for id_ in row), dtype=np.int64, count=offsets[-1])
        return cls(ids, offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Offsets:
        """How many ids each row has."""
        return np.diff(self.offsets)

    def row(self, index: int) -> Ids:
        """The ids of one row, a view."""
        return self.ids[self.offsets[index] : self.offsets[index + 1]]

    def gather(self, indices: npt.ArrayLike) -> tuple[Offsets, Offsets]:
        """The ids of several rows, int64, one after the other, and the length of each row."""
        rows = np.asarray(indices, dtype=np.int64)
        begins = self.offsets[rows]
        lengths = self.offsets[rows + 1] - begins
        ends = np.cumsum(lengths)
        places = np.arange(ends[-1] if len(ends) else 0)
        places += np.repeat(begins - (ends - lengths), lengths)
        return self.ids[places].astype(np.int64), lengths


@dataclass(frozen=True)
class TokenStore:
    """Sentence pairs as ids, without START and STOP."""

    source: IdRows
    target: IdRows
    report: StoreReport
    folder: Path | None = None

    @classmethod
    def from_pairs(cls, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> Self:
        """A store in memory. Raises DataError unless there are as many sources as targets."""
        if len(sources) != len(targets):
            raise DataError(
                f"there must be as many sources as targets, got {len(sources)} and {len(targets)}"
            )
        report = StoreReport(read=len(sources), kept=len(sources), empty=0, too_long=0)
        return cls(IdRows.of(sources), IdRows.of(targets), report)

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Map a store from disk, after every byte was checked against its manifest.

        Raises InputMissingError if there is none, CorruptError naming the file that differs.
        """
        verify_folder(folder)
        path = folder / STORE_NAME
        try:
            about = json.loads(path.read_bytes())
            source_type, target_type = about["source_type"], about["target_type"]
            report = StoreReport(**{**about["report"], "slipped": _as_stretch(about["report"])})
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CorruptError(f"{path} is damaged: {error!r}") from error
        source = _map_rows(folder, "source", source_type, report.kept)
        target = _map_rows(folder, "target", target_type, report.kept)
        return cls(source, target, report, folder)

    def __len__(self) -> int:
        return len(self.source)

    @property
    def source_lengths(self) -> Offsets:
        """Tokens of each source sentence."""
        return self.source.lengths

    @property
    def target_lengths(self) -> Offsets:
        """Tokens of each target sentence."""
        return self.target.lengths

    def pair(self, index: int) -> tuple[Ids, Ids]:
        """Source and target ids of one pair, as views."""
        return self.source.row(index), self.target.row(index)

    def check_files(self) -> None:
        """See that the mapped files still have their sizes; a store in memory has none.

        Reading a mapped file that was cut short kills the process, so this is asked before
        each epoch. Raises CorruptError naming the file.
        """
        if self.folder is None:
            return
        for name, rows in (("source", self.source), ("target", self.target)):
            for array, suffix in ((rows.ids, "ids"), (rows.offsets, "offsets")):
                path = self.folder / f"{name}.{suffix}"
                size = path.stat().st_size if path.is_file() else 0
                if size != array.nbytes:
                    raise CorruptError(
                        f"{path} should have {array.nbytes} bytes, has {size}",
                        hint="something changed the cache of a running job; start it again",
                    )


def describe_store(source_type: str, target_type: str, report: StoreReport) -> bytes:
    """The content of ``store.json``."""
    about = {"source_type": source_type, "target_type": target_type, "report": asdict(report)}
    return json.dumps(about, indent=2).encode()


def _as_stretch(report: dict[str, Any]) -> tuple[int, int] | None:
    if report["slipped"] is None:
        return None
    first, last = report["slipped"]
    return int(first), int(last)


def _map_rows(folder: Path, name: str, id_type: str, count: int) -> IdRows:
    if id_type not in ID_TYPES:
        raise CorruptError(
            f"{folder / STORE_NAME} is damaged: ids must be of type"
            f" {' or '.join(ID_TYPES)}, got {id_type!r}"
        )
    ids = _map_file(folder / f"{name}.ids", id_type)
    offsets = _map_file(folder / f"{name}.offsets", OFFSET_TYPE)
    fits = (
        len(offsets) == count + 1
        and offsets[0] == 0
        and offsets[-1] == len(ids)
        and bool(np.all(np.diff(offsets) > 0))
    )
    if not fits:
        raise CorruptError(f"{folder / name}.offsets does not fit {name}.ids and {STORE_NAME}")
    return IdRows(ids, offsets)


def _map_file(path: Path, data_type: str) -> Any:
    size = path.stat().st_size if path.is_file() else 0
    if size == 0 or size % np.dtype(data_type).itemsize:
        raise CorruptError(f"{path} should hold numbers of type {data_type}, has {size} bytes")
    return np.memmap(path, dtype=data_type, mode="r")
