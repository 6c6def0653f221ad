"""Files of sentence pairs become a token store, once; the next run finds it again."""

import contextlib
import hashlib
import itertools
import json
import logging
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from pellucid.core.errors import CorruptError, DataError, InputMissingError
from pellucid.core.files import sha256_of, write_file, write_folder
from pellucid.text.checks import slipped_stretch
from pellucid.text.config import file_format
from pellucid.text.interface import Tokenizer
from pellucid.text.pairs import PairFiles, is_blank_pair, iterate_pairs
from pellucid.text.store import (
    ID_TYPES,
    OFFSET_TYPE,
    STORE_NAME,
    StoreReport,
    TokenStore,
    describe_store,
)

_log = logging.getLogger("pellucid")
_VERSION = 1
_CHUNK = 16_384
"""Pairs held in memory at a time; enough to keep all cores of the tokenizer busy."""


def build_store(
    cache: Path,
    files: PairFiles,
    source_tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
    max_length: int,
) -> TokenStore:
    """The store of these files, from ``cache`` if it is there unchanged, else made now.

    It lies in a folder named by a hash over the files' bytes, the tokenizers and ``max_length``,
    so nothing outdated is ever found. Memory does not grow with the corpus, save for 8 bytes
    for each pair dropped. Pairs with a blank side and pairs with more than ``max_length``
    tokens on a side are dropped, counted and reported by a logged warning, as is a stretch of
    lines whose lengths look shifted.

    Raises as ``iterate_pairs`` does, DataError if no pair is left, WriteError.
    """
    recipe = _Recipe(files, source_tokenizer, target_tokenizer, max_length)
    fingerprint = recipe.fingerprint()
    folder = cache / f"store-{fingerprint[:32]}"
    try:
        store = TokenStore.open(folder)
        _log.info("reusing the tokenized corpus in %s", folder)
    except InputMissingError:
        write_folder(folder, recipe.fill, details={"fingerprint": fingerprint})
        store = TokenStore.open(folder)
    except CorruptError as error:
        _log.warning("%s; tokenizing again", error)
        write_folder(folder, recipe.fill, details={"fingerprint": fingerprint})
        store = TokenStore.open(folder)
    _warn(store.report, files, max_length)
    return store


@dataclass(frozen=True)
class _Recipe:
    files: PairFiles
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    max_length: int

    def fingerprint(self) -> str:
        """SHA-256 over all that decides the content of the store."""
        for path in self.files.all:
            if not path.is_file():
                raise InputMissingError(f"cannot read {path}: not a file")
        try:
            sources, targets = (
                [[path.suffix, sha256_of(path)] for path in paths]
                for paths in (self.files.sources, self.files.targets)
            )
        except OSError as error:
            raise InputMissingError(f"cannot read {error.filename}: {error.strerror}") from error
        recipe: dict[str, object] = {
            "version": _VERSION,
            "sources": sources,
            "targets": targets,
            "formats": [file_format(path.name, self.files.format) for path in self.files.sources],
            "tokenizers": [self.source_tokenizer.fingerprint, self.target_tokenizer.fingerprint],
            "max_length": self.max_length,
        }
        if self.files.is_text:
            recipe["is_text"] = True
        return hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()

    def fill(self, folder: Path) -> None:
        """Tokenize everything into ``folder``, chunk by chunk."""
        read = empty = kept = 0
        dropped = array("q")  # line numbers from 0, rising
        with (
            _RowWriter(folder, "source", self.source_tokenizer) as sources,
            _RowWriter(folder, "target", self.target_tokenizer) as targets,
            contextlib.closing(iterate_pairs(self.files)) as pairs_read,
        ):
            for chunk in _chunks(pairs_read):
                lines = [i for i, pair in enumerate(chunk, start=read) if not is_blank_pair(*pair)]
                pairs = [chunk[line - read] for line in lines]
                source_rows = self.source_tokenizer.encode_batch([pair[0] for pair in pairs])
                target_rows = self.target_tokenizer.encode_batch([pair[1] for pair in pairs])
                fits = [
                    0 < len(source) <= self.max_length and 0 < len(target) <= self.max_length
                    for source, target in zip(source_rows, target_rows, strict=True)
                ]
                sources.append(list(itertools.compress(source_rows, fits)))
                targets.append(list(itertools.compress(target_rows, fits)))
                staying = set(itertools.compress(lines, fits))
                dropped.extend(i for i in range(read, read + len(chunk)) if i not in staying)
                read += len(chunk)
                empty += len(chunk) - len(lines)
                kept += len(staying)
        if not kept:
            raise DataError(
                f"none of the {read} pairs in {self.files.sources[0]} can be used:"
                f" {empty} have a blank side, {read - empty} have more than"
                f" {self.max_length} tokens (data.max_length)"
            )
        slipped = _as_lines(slipped_stretch(sources.lengths(), targets.lengths()), dropped)
        report = StoreReport(read, kept, empty, read - empty - kept, slipped)
        about = describe_store(sources.id_type, targets.id_type, report)
        write_file(folder / STORE_NAME, about)


class _RowWriter:
    """Appends rows of ids to one side's two files."""

    def __init__(self, folder: Path, name: str, tokenizer: Tokenizer) -> None:
        self.id_type = ID_TYPES[0] if tokenizer.vocabulary_size <= 1 << 16 else ID_TYPES[1]
        self._offsets_path = folder / f"{name}.offsets"
        self._ids = (folder / f"{name}.ids").open("xb")
        self._offsets = self._offsets_path.open("xb")
        self._end = 0
        self._offsets.write(np.zeros(1, dtype=OFFSET_TYPE).tobytes())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ids.close()
        self._offsets.close()

    def append(self, rows: list[list[int]]) -> None:
        """Add rows at the end."""
        ends = np.cumsum([len(row) for row in rows], dtype=OFFSET_TYPE) + self._end
        ids = np.fromiter(itertools.chain.from_iterable(rows), dtype=self.id_type)
        self._ids.write(ids.tobytes())
        self._offsets.write(ends.astype(OFFSET_TYPE).tobytes())
        self._end += len(ids)

    def lengths(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """The length of every row written; after closing."""
        return np.diff(np.fromfile(self._offsets_path, dtype=OFFSET_TYPE))


def _chunks(pairs: Iterator[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    while chunk := list(itertools.islice(pairs, _CHUNK)):
        yield chunk


def _as_lines(stretch: tuple[int, int] | None, dropped: "array[int]") -> tuple[int, int] | None:
    """Row numbers of the store, from 1, as line numbers of the files."""
    if stretch is None:
        return None
    rows_before = np.asarray(dropped) - np.arange(len(dropped))  # rows kept before each drop
    first, last = (
        row + int(np.searchsorted(rows_before, row - 1, side="right")) for row in stretch
    )
    return first, last


def _warn(report: StoreReport, files: PairFiles, max_length: int) -> None:
    name = files.sources[0]
    if report.empty:
        _log.warning(
            "%s: %d of %d pairs have a blank side and are left out",
            name,
            report.empty,
            report.read,
        )
    if report.too_long:
        _log.warning(
            "%s: %d of %d pairs have more than %d tokens on a side and are left out"
            " (data.max_length)",
            name,
            report.too_long,
            report.read,
            max_length,
        )
    if report.slipped:
        _log.warning(
            "%s: from pair %d to %d the two sides look shifted against each other;"
            " compare them there",
            name,
            *report.slipped,
        )
