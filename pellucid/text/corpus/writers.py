"""Opens outputs for lines: packed or not, on this machine or elsewhere, a text or a table.

An output is named as an input is (``pellucid.text.corpus.addresses``): ``out.de.zst``,
``s3://bucket/out.de``, ``out.parquet#translation``, ``out.csv#translation``. A table has the one
column that is named. An output appears when it is complete.
"""

import contextlib
import csv
import gzip
import io
import lzma
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO

from pellucid.core.errors import ConfigError, MissingExtraError, WriteError
from pellucid.core.files import TEMPORARY_PREFIX, open_user_file
from pellucid.text.corpus.addresses import address_of
from pellucid.text.corpus.unpacking import file_system_of

_ROWS_AT_ONCE = 4096


def is_plain_output(name: str) -> bool:
    """Whether an output is a file of this machine with the lines as they are."""
    address = address_of(name)
    return not (address.scheme or address.table or address.packing)


def check_output(name: str) -> None:
    """Raise ConfigError for a name that cannot be written to, MissingExtraError without a package.

    For those who write long after they were given the name.
    """
    address = address_of(name)
    if address.table in ("datasets", "jsonl", "tsv") or (address.table and not address.column):
        raise ConfigError(
            f"an output must be a text, or a table and a column, got {name}",
            hint="for example out.de, out.de.zst, out.csv#translation, out.parquet#translation",
        )
    if address.scheme in ("http", "https"):
        raise ConfigError(f"nothing can be written to {address.scheme}://, got {name}")
    if address.table == "parquet" and address.packing:
        raise ConfigError(f"Parquet is packed inside, got {name}", hint="leave out the suffix")

    if address.scheme:
        file_system_of(address.location)
    if address.packing == ".zst":
        _zstd_writer(io.BytesIO())
    if address.table == "parquet":
        _pyarrow()


@contextlib.contextmanager
def open_output(name: str) -> Iterator[IO[bytes]]:
    """A file for the lines of the output of this name, which appears when the block ends.

    Raises as ``check_output``, and WriteError.
    """
    check_output(name)
    address = address_of(name)
    stored = (
        _open_remote(address.location) if address.scheme else open_user_file(Path(address.location))
    )

    with stored as file, contextlib.ExitStack() as opened:
        lines: Any = file

        match address.packing:
            case ".gz":
                # Without a time, so that equal lines give equal bytes.
                lines = opened.enter_context(gzip.GzipFile("", "wb", fileobj=file, mtime=0))
            case ".xz":
                lines = opened.enter_context(lzma.open(file, "wb"))
            case ".zst":
                lines = opened.enter_context(_zstd_writer(file))
            case _:
                pass

        if address.table == "csv":
            lines = opened.enter_context(_csv_column(lines, address.column))
        elif address.table == "parquet":
            lines = opened.enter_context(_parquet_column(lines, address.column))
        yield lines


@contextlib.contextmanager
def _open_remote(url: str) -> Iterator[BinaryIO]:
    """A file elsewhere, written under another name and moved when it is complete."""
    filesystem, inner = file_system_of(url)
    folder, _, name = inner.rpartition("/")
    temporary = f"{folder}/{TEMPORARY_PREFIX}{uuid.uuid4().hex}-{name}"

    try:
        try:
            with filesystem.open(temporary, "wb") as file:
                yield file
            filesystem.mv(temporary, inner)
        except BaseException:
            with contextlib.suppress(Exception):  # the error that ended the block is raised
                filesystem.rm(temporary)
            raise
    except (OSError, ValueError, NotImplementedError) as error:
        # fsspec's file systems that can only be read raise the last one.
        raise WriteError(f"cannot write {url}: {str(error) or type(error).__name__}") from error


def _zstd_writer(file: BinaryIO) -> Any:
    try:
        import zstandard
    except ImportError:
        raise MissingExtraError("zstandard", "data", "writing .zst") from None
    return zstandard.ZstdCompressor().stream_writer(file, closefd=False)


class _Cells(io.RawIOBase):
    """Takes bytes; ``write_cells`` gets their whole lines, some thousands at a time."""

    def __init__(self, write_cells: Callable[[list[str]], object]) -> None:
        self._write_cells = write_cells
        self._rest = b""
        self._cells: list[str] = []

    def writable(self) -> bool:
        """Always."""
        return True

    def write(self, data: Any) -> int:
        """Take bytes."""
        *lines, self._rest = (self._rest + bytes(data)).split(b"\n")
        self._cells += [line.decode() for line in lines]
        if len(self._cells) >= _ROWS_AT_ONCE:
            self.finish()
        return memoryview(data).nbytes

    def finish(self) -> None:
        """Write the cells so far."""
        if self._cells:
            self._write_cells(self._cells)
            self._cells = []


@contextlib.contextmanager
def _csv_column(file: Any, column: str) -> Iterator[_Cells]:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text)
    writer.writerow([column])
    cells = _Cells(lambda some: writer.writerows([cell] for cell in some))
    yield cells
    cells.finish()
    text.detach()  # the file below is not ours to close


@contextlib.contextmanager
def _parquet_column(file: Any, column: str) -> Iterator[_Cells]:
    pyarrow = _pyarrow()
    schema = pyarrow.schema([(column, pyarrow.string())])
    with pyarrow.parquet.ParquetWriter(file, schema) as writer:
        cells = _Cells(
            lambda some: writer.write_batch(
                pyarrow.record_batch([pyarrow.array(some, pyarrow.string())], schema=schema)
            )
        )
        yield cells
        cells.finish()


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("pyarrow", "data", "writing .parquet") from None
    return pyarrow
