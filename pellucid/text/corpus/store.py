"""Tokenized sentence pairs, in memory or on disk.

A store is a folder: ``source.ids`` and ``target.ids`` hold all tokens one after the other (little
endian, 16 bits if the vocabulary allows, else 32), ``*.lengths`` how many each sentence has
(16 bits if ``max_length`` allows), ``*.begins`` where every sixteenth sentence begins (64 bits),
``store.json`` the counts, ``manifest.json`` the hashes.
"""

import json
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from pellucid.core.errors import CorruptError, DataError
from pellucid.core.files import read_manifest, sha256_of, verify_files
from pellucid.text.corpus.rows import FileIds, IdRows, Ids, Indices


class Verification:
    """Compares files with their SHA-256 in a background thread.

    ``raise_if_damaged`` reports what has been found so far; ``wait`` waits for all of it.
    """

    def __init__(self, expected: dict[Path, str]) -> None:
        self._expected = expected
        self._damage: str | None = None
        self._thread = threading.Thread(
            target=self._compare, name="pellucid-verification", daemon=True
        )
        self._thread.start()

    def raise_if_damaged(self) -> None:
        """Raise CorruptError if damage has been found so far."""
        if self._damage is not None:
            raise CorruptError(
                self._damage,
                hint="nothing learned from it was saved; delete its folder and --resume",
            )

    def wait(self) -> None:
        """Wait until all files are compared. Raises CorruptError if one is damaged."""
        self._thread.join()
        self.raise_if_damaged()

    def _compare(self) -> None:
        # An exception in a thread would be lost: damage is noted, and raised at the next call.
        for path, expected in self._expected.items():
            try:
                digest = sha256_of(path)
            except OSError as error:
                self._damage = f"cannot read {path}: {error.strerror or error}"
                return
            if digest != expected:
                self._damage = f"{path} should have SHA-256 {expected}, has {digest}"
                return


STORE_NAME = "store.json"
SMALL, LARGE = "<u2", "<u4"
"""NumPy types of ids and lengths."""
BEGIN_TYPE = "<i8"
_SIDES = ("source", "target")
_VERIFIED_AT_ONCE = 1 << 28
"""Up to so many bytes of ids are hashed when a store is opened, in a fraction of a second."""
_IN_MEMORY = 1 << 25
"""Up to so many bytes of a side's ids are held in memory, 16 million tokens of most vocabularies:
gathering a batch there is several times as fast as reading each of its rows from the file."""


@dataclass(frozen=True)
class StoreReport:
    """How many pairs were read, kept and dropped."""

    read: int
    """Pairs in the files."""
    kept: int
    """Pairs in the store."""
    empty: int
    """Pairs dropped because a side was blank."""
    too_long: int
    """Pairs dropped because a side had more than ``max_length`` tokens."""


@dataclass(frozen=True)
class StoreLayout:
    """The content of ``store.json`` besides the report."""

    source_type: str
    target_type: str
    length_type: str
    parts: tuple[int, ...] = ()
    """Pairs kept of each source file, in the order of the store."""


@dataclass(frozen=True)
class TokenStore:
    """Sentence pairs as ids, without BOS and EOS."""

    source: IdRows
    target: IdRows
    report: StoreReport
    parts: tuple[int, ...]
    """Pairs of each source file, in order."""
    folder: Path | None = None
    verification: Verification | None = None
    """The check of the ids, if they are too many to be hashed when the store is opened."""

    @classmethod
    def from_pairs(cls, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> Self:
        """A store in memory. Raises DataError unless there are as many sources as targets."""
        if len(sources) != len(targets):
            raise DataError(
                f"there must be as many sources as targets, got {len(sources)} and {len(targets)}"
            )
        report = StoreReport(read=len(sources), kept=len(sources), empty=0, too_long=0)
        return cls(IdRows.of(sources), IdRows.of(targets), report, (len(sources),))

    @classmethod
    def open(
        cls,
        folder: Path,
        verified_at_once: int = _VERIFIED_AT_ONCE,
        in_memory: int = _IN_MEMORY,
    ) -> Self:
        """Open a store on disk; more than ``in_memory`` bytes of ids are read when they are needed.

        The sizes of all files are checked, and the hashes of all but the ids. The ids' hashes are
        checked before this returns if they have at most ``verified_at_once`` bytes, else in the
        background: ``confirm`` waits for that. Raises InputMissingError if there is no store,
        CorruptError naming the file that differs.
        """
        # Lengths and begins are always hashed: they decide which bytes of the ids are read as which
        # sentence.
        files = read_manifest(folder)["files"]
        ids = [f"{side}.ids" for side in _SIDES]
        others = [f"{side}.{suffix}" for side in _SIDES for suffix in ("lengths", "begins")]
        for name in (STORE_NAME, *ids, *others):
            if name not in files:
                raise CorruptError(
                    f"{folder / name} cannot be trusted: the manifest does not list it"
                )
        is_large = sum(files[name]["size"] for name in ids if name in files) > verified_at_once
        verify_files(folder, files, hashed=files.keys() - ids if is_large else files.keys())

        layout, report = _read_description(folder / STORE_NAME)
        types = layout.source_type, layout.target_type
        # Plain text is on both sides: equal files are read once.
        is_text = layout.source_type == layout.target_type and all(
            files[f"source.{suffix}"]["sha256"] == files[f"target.{suffix}"]["sha256"]
            for suffix in ("ids", "lengths", "begins")
        )
        sides = {
            side: _open_rows(folder, side, id_type, layout, report.kept, in_memory)
            for side, id_type in zip(_SIDES, types, strict=True)
            if not (is_text and side == "target")
        }
        source = sides["source"]
        target = sides.get("target", source)

        # Training begins meanwhile; nothing learned is saved before ``confirm`` returns.
        later = {folder / name: files[name]["sha256"] for name in ids}
        verification = Verification(later) if is_large else None
        return cls(source, target, report, layout.parts, folder, verification)

    def __len__(self) -> int:
        return len(self.source)

    @property
    def source_lengths(self) -> Ids:
        """Tokens of each source sentence."""
        return self.source.lengths

    @property
    def target_lengths(self) -> Ids:
        """Tokens of each target sentence."""
        return self.target.lengths

    @property
    def longer_lengths(self) -> Ids:
        """Tokens of the longer side of each pair."""
        return np.maximum(self.source_lengths, self.target_lengths)

    def pair(self, index: int) -> tuple[Ids, Ids]:
        """Source and target ids of one pair, as views."""
        return self.source.row(index), self.target.row(index)

    def some(self, rows: Indices) -> "TokenStore":
        """The pairs at these rows as a store in memory."""
        source, target = (
            IdRows.in_order(*side.gather(rows)) for side in (self.source, self.target)
        )
        report = StoreReport(read=len(rows), kept=len(rows), empty=0, too_long=0)
        return TokenStore(source, target, report, (len(rows),))

    def check_files(self) -> None:
        """Check that the files still have their sizes; a store in memory has no files.

        Called before each epoch. Raises CorruptError naming the file.
        """
        if self.folder is None:
            return

        for name, rows in zip(_SIDES, (self.source, self.target), strict=True):
            arrays = {"ids": rows.ids, "lengths": rows.lengths, "begins": rows.begins}
            for suffix, array in arrays.items():
                path = self.folder / f"{name}.{suffix}"
                size = path.stat().st_size if path.is_file() else 0
                if size != array.nbytes:
                    raise CorruptError(
                        f"{path} should have {array.nbytes} bytes, has {size}",
                        hint="something changed the cache of a running job; start it again",
                    )

    def raise_if_damaged(self) -> None:
        """Raise CorruptError if damage has been found by now."""
        if self.verification is not None:
            self.verification.raise_if_damaged()

    def confirm(self) -> None:
        """Wait until every byte has been compared with the manifest.

        Called before anything learned is saved. Raises CorruptError naming the file that differs.
        """
        if self.verification is not None:
            self.verification.wait()


def describe_store(layout: StoreLayout, report: StoreReport) -> bytes:
    """The content of ``store.json``."""
    return json.dumps({**asdict(layout), "report": asdict(report)}, indent=2).encode()


def _read_description(path: Path) -> tuple[StoreLayout, StoreReport]:
    try:
        about = json.loads(path.read_bytes())
        report = StoreReport(**about.pop("report"))
        return StoreLayout(**{**about, "parts": tuple(about["parts"])}), report
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptError(f"{path} is damaged: {error!r}") from error


def _open_rows(
    folder: Path, name: str, id_type: str, layout: StoreLayout, count: int, in_memory: int
) -> IdRows:
    """The rows of one side. Planning needs all lengths, so they are read; of ids only a few are."""
    path = folder / f"{name}.ids"
    try:
        _check_size(path, id_type)
        is_small = path.stat().st_size <= in_memory
        rows = IdRows(
            _read_numbers(path, id_type) if is_small else FileIds(path, id_type),
            _read_numbers(folder / f"{name}.lengths", layout.length_type),
            _read_numbers(folder / f"{name}.begins", BEGIN_TYPE),
        )
    except OSError as error:
        raise CorruptError(f"cannot read {error.filename}: {error.strerror}") from error

    # Else a wrong length would shift every sentence behind it by some tokens, without any error.
    if len(rows) != count or not rows.fit_together():
        raise CorruptError(f"{folder / name}.lengths does not fit {name}.ids and {STORE_NAME}")
    return rows


def _read_numbers(path: Path, data_type: str) -> Any:
    _check_size(path, data_type)

    # Into memory: planning batches looks at every length in every epoch.
    return np.fromfile(path, dtype=data_type)


def _check_size(path: Path, data_type: str) -> None:
    size = path.stat().st_size if path.is_file() else 0
    if size == 0 or size % np.dtype(data_type).itemsize:
        raise CorruptError(f"{path} should hold numbers of type {data_type}, has {size} bytes")
