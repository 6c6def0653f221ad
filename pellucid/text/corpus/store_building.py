"""``build_store``: tokenize files of sentence pairs into a store, or find the one made before."""

import contextlib
import dataclasses
import hashlib
import json
import logging
from pathlib import Path
from typing import Self

import numpy as np

from pellucid.core.errors import CorruptError, DataError
from pellucid.core.files import open_or_make, read_manifest, write_file
from pellucid.core.known_files import KnownFiles
from pellucid.core.phases import begin_phase
from pellucid.core.texts import counted
from pellucid.text.config import file_format
from pellucid.text.corpus.chunks import CHUNK, InOrder, TokenizedChunk
from pellucid.text.corpus.pairs import PairFiles
from pellucid.text.corpus.readers import hashes_of_inputs
from pellucid.text.corpus.rows import STRIDE, Ids
from pellucid.text.corpus.store import (
    BEGIN_TYPE,
    LARGE,
    SMALL,
    STORE_NAME,
    StoreLayout,
    StoreReport,
    TokenStore,
    describe_store,
)
from pellucid.text.corpus.tokenizing import Tokenizing
from pellucid.text.tokenizers.interface import Tokenizer

_log = logging.getLogger("pellucid")
_FORMAT = 2
"""Version of the files of a store; a store of another version is not found, and made again."""
_RECIPE_VERSION = 1
"""Version of the rules by which pairs are kept; hashed into the fingerprint."""
_TELL_EVERY = 1_000_000
"""Pairs between two lines of progress."""


def build_store(
    cache: Path,
    files: PairFiles,
    tokenizers: tuple[Tokenizer, Tokenizer],
    max_length: int,
    *,
    workers: int | None = None,
    chunk_bytes: int = CHUNK,
    in_order: InOrder | None = None,
) -> TokenStore:
    """The store of these files: opened from ``cache`` if it is there and intact, else made.

    Its folder is named by a hash over the files' bytes, the tokenizers and ``max_length``, so an
    outdated store is never found. Pairs with a blank side and pairs with more than ``max_length``
    tokens on a side are dropped, counted and reported by a logged warning. ``workers`` processes
    tokenize (by default one for each core, none for a small corpus); the bytes do not depend on
    their number or on ``chunk_bytes``, the text that each gets at a time, nor does the memory on
    the size of the corpus. With ``in_order`` the chunks are tokenized by that instead.

    Raises as ``iterate_pairs`` does, DataError if no pair is left, WriteError.
    """
    recipe = _Recipe(files, tokenizers, max_length, workers, chunk_bytes, in_order)

    # The bytes decide, not names or times: the cache may be shared by runs and copied between
    # machines.
    fingerprint = recipe.fingerprint(KnownFiles(cache))
    folder = cache / f"store-{_FORMAT}-{fingerprint[:32]}"

    def opened() -> TokenStore:
        store = TokenStore.open(folder)
        if read_manifest(folder).get("fingerprint") != fingerprint:
            raise CorruptError(f"{folder} was made from other text")
        return store

    store = open_or_make(
        folder,
        opened,
        recipe.fill,
        {"fingerprint": fingerprint},
        what="the tokenized corpus",
        otherwise="tokenizing again",
    )
    _warn(store.report, files, max_length)
    return store


@dataclasses.dataclass(frozen=True)
class _Recipe:
    """The files and settings that a store is made from."""

    files: PairFiles
    tokenizers: tuple[Tokenizer, Tokenizer]
    max_length: int
    workers: int | None
    chunk_bytes: int
    in_order: InOrder | None

    def fingerprint(self, known: KnownFiles) -> str:
        """SHA-256 over everything that decides the content of the store."""
        # Whatever changes a token or drops a pair must be in here, and nothing else.
        recipe: dict[str, object] = {
            "version": _RECIPE_VERSION,
            "sources": hashes_of_inputs(self.files.sources, known),
            "targets": hashes_of_inputs(self.files.targets, known),
            "formats": [file_format(str(path), self.files.format) for path in self.files.sources],
            "tokenizers": [tokenizer.fingerprint for tokenizer in self.tokenizers],
            "max_length": self.max_length,
        }
        if self.files.is_text:  # not added as False: earlier stores of pairs keep their fingerprint
            recipe["is_text"] = True

        return hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()

    def fill(self, folder: Path) -> None:
        """Tokenize everything into ``folder``, chunk by chunk."""
        # The smallest types that hold every id and every length: half the memory for most
        # vocabularies.
        types = [_type_for(tokenizer.vocabulary_size - 1) for tokenizer in self.tokenizers]
        layout = StoreLayout(types[0], types[1], _type_for(self.max_length + 1))
        tokenizing = Tokenizing(
            self.files, self.tokenizers, layout, self.max_length, self.chunk_bytes
        )

        # Chunks arrive in the order of the files, however many processes tokenize, and each is
        # written before the next is taken. Closing ends the processes if writing fails.
        tally = _Tally([0] * len(self.files.sources))
        with (
            _RowWriter(folder, "source") as sources,
            _RowWriter(folder, "target") as targets,
            contextlib.closing(tokenizing.chunks(self.workers, self.in_order)) as chunks,
        ):
            for chunk in chunks:
                for writer, (ids, lengths) in zip((sources, targets), chunk.sides, strict=True):
                    writer.append(ids, lengths)
                tally.add(chunk)

        # Raised inside ``write_folder``, which then leaves nothing behind.
        if not tally.kept:
            raise DataError(
                f"none of the {tally.read} pairs in {_named(self.files)} can be used:"
                f" {tally.empty} have a blank side, {tally.read - tally.empty} have more than"
                f" {self.max_length} tokens (data.max_length)"
            )

        report = StoreReport(
            tally.read, tally.kept, tally.empty, tally.read - tally.empty - tally.kept
        )

        # Only now it is known how many pairs of each file were kept.
        layout = dataclasses.replace(layout, parts=tuple(tally.parts))
        write_file(folder / STORE_NAME, describe_store(layout, report))


@dataclasses.dataclass
class _Tally:
    """Counts of the pairs so far: read, kept and dropped."""

    parts: list[int]
    """Pairs kept of each source file."""
    read: int = 0
    empty: int = 0

    @property
    def kept(self) -> int:
        return sum(self.parts)

    def add(self, chunk: TokenizedChunk) -> None:
        """Count the pairs of a chunk, and log each million that is passed."""
        # A chunk need not end at a round number, so a line is logged where one is passed.
        if self.read // _TELL_EVERY != (self.read + len(chunk.is_kept)) // _TELL_EVERY:
            millions = (self.read + len(chunk.is_kept)) // _TELL_EVERY
            begin_phase(f"tokenizing the text: {millions} million pairs")

        self.read += len(chunk.is_kept)
        self.empty += chunk.empty
        self.parts[chunk.part] += int(chunk.is_kept.sum())


class _RowWriter:
    """Appends rows of ids to the three files of one side of a store."""

    def __init__(self, folder: Path, name: str) -> None:
        # "x": the folder is new, so that a file of this name can only be a mistake.
        self._ids = (folder / f"{name}.ids").open("xb")
        self._lengths = (folder / f"{name}.lengths").open("xb")
        self._begins = (folder / f"{name}.begins").open("xb")
        self._count = self._end = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in (self._ids, self._lengths, self._begins):
            file.close()

    def append(self, ids: Ids, lengths: Ids) -> None:
        """Add rows at the end."""
        self._ids.write(ids.tobytes())
        self._lengths.write(lengths.tobytes())

        # The place of every STRIDE-th row is kept, counted over all chunks: the slice starts at the
        # first row of this chunk whose number in the file is a multiple.
        ends = np.cumsum(lengths, dtype=BEGIN_TYPE)
        begins = self._end + ends - lengths
        self._begins.write(begins[-self._count % STRIDE :: STRIDE].astype(BEGIN_TYPE).tobytes())

        self._count += len(lengths)
        self._end += len(ids)


def _type_for(largest: int) -> str:
    return SMALL if largest < 1 << 16 else LARGE


def _named(files: PairFiles) -> str:
    """The files whose pairs are counted together."""
    first, more = str(files.sources[0]), len(files.sources) - 1
    return f"{first} and {counted(more, 'more file')}" if more else first


def _warn(report: StoreReport, files: PairFiles, max_length: int) -> None:
    name = _named(files)
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
