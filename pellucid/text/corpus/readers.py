"""Opens inputs as lines: packed or not, here or elsewhere, a text or a column of a table.

An input is named as ``pellucid.text.corpus.addresses`` says. Whatever it is, some rows of it are in
memory at a time.
"""

import contextlib
import hashlib
import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from pellucid.core.errors import InputMissingError
from pellucid.core.files import sha256_of
from pellucid.core.known_files import KnownFiles
from pellucid.text.corpus.addresses import DATASETS, address_of, reading_of
from pellucid.text.corpus.text_tables import csv_rows, json_rows
from pellucid.text.corpus.typed_tables import dataset_rows, parquet_rows
from pellucid.text.corpus.unpacking import (
    ReadBy,
    file_system_of,
    open_packed,
    open_unpacked,
    remote_errors,
)

_READ_AT_ONCE = 1 << 16


def input_exists(path: Path | str) -> bool:
    """Whether an input is there; of a dataset it is not known before it is read.

    Raises MissingExtraError without the package for its scheme, InputMissingError if its scheme is
    unknown or the machine that holds it does not answer.
    """
    address = address_of(path)
    if not address.scheme:
        return Path(address.location).is_file()
    if address.scheme == DATASETS:
        return True
    with remote_errors(address.location):
        filesystem, inner = file_system_of(address.location)
        return bool(filesystem.isfile(inner))


def refuse_pipe(path: Path | str) -> None:
    """Raise InputMissingError for what can be read only once, such as a pipe."""
    address = address_of(path)
    if not address.scheme and Path(address.location).exists() and not input_exists(path):
        raise InputMissingError(
            f"cannot read {path}: must be a file, because it is read several times"
        )


def hashes_of_inputs(paths: Iterable[Path], known: KnownFiles | None = None) -> list[list[str]]:
    """For each input how its name says that it is read (``reading_of``), and its SHA-256.

    Of a name nothing else counts: an input that was moved or renamed has the same entry. Files that
    ``known`` remembers are not read. Raises InputMissingError if an input is not there.
    """
    found = []
    for path in paths:
        if not input_exists(path):
            raise InputMissingError(f"cannot read {path}: not a file")
        try:
            found.append([reading_of(path), hash_of_input(path, known)])
        except OSError as error:
            raise InputMissingError(f"cannot read {path}: {error.strerror or error}") from error
    return found


def hash_of_input(path: Path | str, known: KnownFiles | None = None) -> str:
    """SHA-256 of an input: of a file its bytes, of a dataset its lines. Raises as opening it."""
    address = address_of(path)
    if not address.scheme:
        local = Path(address.location)
        return known.sha256_of(local) if known is not None else sha256_of(local)
    opened = open_table(path) if address.scheme == DATASETS else open_packed(address)
    digest = hashlib.sha256()
    with opened as file:
        while content := file.read(_READ_AT_ONCE):
            digest.update(content)
    return digest.hexdigest()


@contextlib.contextmanager
def open_table(path: Path | str) -> Iterator[BinaryIO]:
    """The rows of a table as lines: the cells of the column, or objects of JSON with all columns.

    Line ends within a cell become spaces, and an empty cell an empty line. Raises DataError for
    what is no such table, naming the columns that there are if the one named is not among them;
    and as ``open_packed``.
    """
    address = address_of(path)
    with contextlib.ExitStack() as opened:
        match address.table:
            case "parquet":
                file = opened.enter_context(open_packed(address))
                rows = parquet_rows(file, address)
            case "datasets":
                rows = dataset_rows(address)
            case "jsonl":
                rows = json_rows(opened.enter_context(open_unpacked(address)), address)
            case _:
                rows = csv_rows(opened.enter_context(open_unpacked(address)), address)
        rest = b""

        def read(size: int) -> bytes:
            """The rest of a row, or the next one, as far as it reaches."""
            nonlocal rest
            row = rest or next(rows, b"")
            rest = row[size:]
            return row[:size]

        yield io.BufferedReader(ReadBy(read))
