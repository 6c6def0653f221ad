"""Opens inputs as lines: packed or not, here or elsewhere, a text or a column of a table.

An input is named ``[SCHEME://]PATH[#COLUMN]``. Its suffixes say how it is packed (``.gz``,
``.zst``, ``.xz``) and whether it is a table (``.csv``, ``.tsv``, ``.jsonl``, ``.parquet``). With a
column it is that column, one cell a line; a table without one is both sides of a corpus, as lines
of JSON. ``datasets://NAME?split=train#COLUMN`` is a dataset of Hugging Face, streamed. Whatever it
is, some rows of it are in memory at a time.

Paths are ``pathlib.Path`` everywhere, which makes one slash of the two behind a scheme;
``address_of`` puts the second one back.
"""

import codecs
import contextlib
import csv
import dataclasses
import functools
import gzip
import hashlib
import io
import json
import logging
import lzma
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Literal
from urllib.parse import parse_qsl

from pellucid.core.errors import DataError, InputMissingError, MissingExtraError, PellucidError
from pellucid.core.files import KnownFiles, sha256_of
from pellucid.core.limits import parse_json
from pellucid.text.corpus.dialects import SAMPLE, dialect_of, pair_columns

Packing = Literal["", ".gz", ".zst", ".xz"]
PACKINGS: tuple[Packing, ...] = (".gz", ".zst", ".xz")
Table = Literal["", "csv", "tsv", "jsonl", "parquet", "datasets"]
ONE_LINE = str.maketrans("\n\r", "  ")
"""For ``str.translate``: makes spaces of line ends, so that a text is one line."""

ONE_PAIR = "one pair of columns (source and target, or two languages)"
"""The columns that a table of pairs must have, for messages."""
_log = logging.getLogger("pellucid")
_SCHEME = re.compile(r"([a-z][a-z0-9+]+):/{1,3}(.*)", re.DOTALL)
"""At least two letters, so that no drive of Windows is one."""
_DATASETS = "datasets"
_READ_AT_ONCE = 1 << 16
_PACKED_AT_ONCE = 1 << 10
"""Packed bytes that are unpacked together. A block of zstd takes 4 of them and unpacks to 128 KiB,
so this bounds the memory to some 32 MiB."""
_MOST_MEMORY = 1 << 28
"""Bytes that unpacking may take: xz asks for 65 MiB with its largest usual dictionary, zstd for 128
MiB. A file that asks for more is hostile."""
_OF_MEMORY = ("too much memory", "Memory usage limit")
"""Parts of the messages of zstandard and lzma about files that ask for more."""
_MOST_EXPANSION = 200
_BOMB_FROM = 1 << 24
"""The size from which an unpacked file may be a bomb, as for gzip (``pellucid.text.corpus.lines``):
text is packed 3 to 20 times smaller. A file that unpacks to more than this and 200 times the bytes
read of it does not contain sentences."""
_LONGEST_ROW = 1 << 22
"""Characters of a line of CSV; its cells have at most 2^17, so that a quote that is never closed
does not read the whole file."""
_LONGEST_LINE = 1 << 24
"""Bytes of a line of JSON, as of any line of text (``pellucid.text.corpus.lines``)."""
_ROWS_AT_ONCE = 1 << 14
"""Rows of Parquet that are unpacked together, as numbers of values."""
_LARGEST_ROW_GROUP = 1 << 30
"""Bytes of a column's part of a row group of Parquet, of which one is unpacked at a time."""
_MOST_VALUES = 1_000_000
"""The limit on values in a line of JSON, as for pairs."""
_LONGEST_URL = 2000
_DATASET_OPTIONS = ("name", "split", "data_files", "revision")


@dataclasses.dataclass(frozen=True)
class Address:
    """An input taken apart."""

    location: str
    """A path of this machine, or a URL."""
    scheme: str
    """Empty for a path."""
    column: str
    """Empty for the whole."""
    packing: Packing
    table: Table
    """Empty for plain text; TSV and JSONL count as tables only if a column is named, because the
    corpus reads lines of them itself."""

    @property
    def is_plain(self) -> bool:
        """Whether it is a file of this machine whose own bytes are the lines, or gzip of them."""
        return not self.scheme and not self.table and self.packing in ("", ".gz")


def address_of(path: Path | str) -> Address:
    """An input by its name."""
    text, _, column = str(path).partition("#")
    if "::" in text:
        return _chained(text, column)
    found = _SCHEME.fullmatch(text)
    scheme = found[1] if found else ""
    if found:
        # A path of file:// and local:// is absolute; elsewhere the first part is a host or a
        # bucket.
        text = f"{scheme}://{'/' if scheme in ('file', 'local') else ''}{found[2].lstrip('/')}"

    # The query of a URL is no part of its name.
    name = text.partition("?")[0].lower() if scheme else text.lower()
    packing: Packing = next((each for each in PACKINGS if name.endswith(each)), "")
    return Address(text, scheme, column, packing, _table_of(scheme, name, packing, column))


def _chained(text: str, column: str) -> Address:
    """An address of fsspec within another: ``zip://a.en::s3://b/c.zip``, ``simplecache::s3://a``."""
    parts = [address_of(part) for part in text.split("::")]
    # The first one that has a path names the file; before it stand caches, without one.
    named = next((each for each in parts if "/" in each.location), parts[0])
    location = "::".join(each.location for each in parts)
    scheme = parts[0].scheme or parts[0].location
    table = named.table or _table_of(scheme, named.location.lower(), named.packing, column)
    return Address(location, scheme, column, named.packing, table)


def _table_of(scheme: str, name: str, packing: Packing, column: str) -> Table:
    stem = name.removesuffix(packing)
    if scheme == _DATASETS:
        return "datasets"
    if stem.endswith(".parquet"):
        return "parquet"
    if stem.endswith(".csv"):
        return "csv"
    if column and stem.endswith(".tsv"):
        return "tsv"
    return "jsonl" if column and stem.endswith(".jsonl") else ""


def reading_of(path: Path) -> str:
    """Return the part of an input's name that decides how it is read: its suffix, and the column
    with dots."""
    column = address_of(path).column
    return f"{path.suffix}#{column}" if "." in column else path.suffix


def plain_stem(name: str) -> str:
    """The name of an input without packing; ``corpus.parquet#en`` becomes ``corpus.en``."""
    address = address_of(name)
    stem = name.partition("#")[0].partition("?")[0]
    stem = stem[: len(stem) - len(address.packing)]
    return f"{Path(stem).with_suffix('')}.{address.column}" if address.column else stem


def input_exists(path: Path | str) -> bool:
    """Whether an input is there; of a dataset it is not known before it is read.

    Raises MissingExtraError without the package for its scheme, InputMissingError if its scheme is
    unknown or the machine that holds it does not answer.
    """
    address = address_of(path)
    if not address.scheme:
        return Path(address.location).is_file()
    if address.scheme == _DATASETS:
        return True
    with _remote_errors(address.location):
        filesystem, inner = file_system_of(address.location)
        return bool(filesystem.isfile(inner))


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
    opened = open_table(path) if address.scheme == _DATASETS else open_packed(address)
    digest = hashlib.sha256()
    with opened as file:
        while content := file.read(_READ_AT_ONCE):
            digest.update(content)
    return digest.hexdigest()


@contextlib.contextmanager
def open_packed(address: Address) -> Iterator[BinaryIO]:
    """The bytes of an input as they are stored. Raises OSError, and as ``input_exists``."""
    if not address.scheme:
        with Path(address.location).open("rb") as file:
            yield file
        return

    # Only around the opening: what the caller raises inside the block is none of these errors.
    with _remote_errors(address.location):
        filesystem, inner = file_system_of(address.location)
        opened = filesystem.open(inner, "rb")
    with opened as file, io.BufferedReader(_Remote(file, address.location)) as buffered:
        yield buffered


class _Remote(io.RawIOBase):
    """A file of fsspec as one of Python's.

    Those of its file systems differ: the files of http and of object stores have a ``readline``
    that takes no size, and raise whatever their packages raise when a connection breaks.
    """

    def __init__(self, file: Any, url: str) -> None:
        self._file = file
        self._url = url

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Whether the file can seek; a server without ranges only lets it be read on."""
        return bool(self._file.seekable())

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Move, and return the position."""
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        """The position."""
        return int(self._file.tell())

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer as far as one answer reaches. Raises InputMissingError."""
        try:
            content = self._file.read(len(buffer))
        except Exception as error:
            reason = str(error) or type(error).__name__
            raise InputMissingError(f"cannot read {self._url} to its end: {reason}") from error
        buffer[: len(content)] = content
        return len(content)


@contextlib.contextmanager
def open_unpacked(address: Address) -> Iterator[BinaryIO]:
    """The unpacked bytes of an input that is packed by zstd or xz, or lies elsewhere."""
    with open_packed(address) as packed:
        match address.packing:
            case ".zst":
                yield io.BufferedReader(_Unpacked(packed, _zstd_reader(packed), address.location))
            case ".xz":
                yield io.BufferedReader(_Unpacked(packed, _xz_reader(packed), address.location))
            case ".gz":
                with gzip.GzipFile(fileobj=packed) as inner:
                    yield io.BufferedReader(_Unpacked(packed, inner, address.location))
            case _:
                yield packed


class _Unpacked(io.RawIOBase):
    """Unpacked bytes, of which there may be 200 times as many as packed ones were read."""

    def __init__(self, packed: Any, unpacked: Any, name: str) -> None:
        self._packed = packed
        self._unpacked = unpacked
        self._name = name
        self._count = 0

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer, and count. Raises DataError for damage and for what is no text."""
        try:
            content = self._unpacked.read(len(buffer))
        except (EOFError, lzma.LZMAError, OSError, RuntimeError) as error:
            raise self._error(error) from error
        except Exception as error:
            # zstandard's own error is a class of an optional package.
            if type(error).__name__ != "ZstdError":
                raise
            raise self._error(error) from error

        self._count += len(content)
        if self._count > max(_BOMB_FROM, _MOST_EXPANSION * self._packed.tell()):
            raise DataError(
                f"{self._name} must be text, and unpacks to more than {_MOST_EXPANSION} times its"
                " size",
                hint="packing makes text 3 to 20 times smaller; if it is right, unpack it first",
            )
        buffer[: len(content)] = content
        return len(content)

    def _error(self, error: Exception) -> DataError:
        if any(sign in str(error) for sign in _OF_MEMORY):
            return DataError(
                f"{self._name} needs more than {_MOST_MEMORY >> 20} MiB to unpack ({error})",
                hint="unpack it first, for example: zstd -d --long=31",
            )
        return DataError(f"{self._name} is damaged: {error}")


class _FrameReader:
    """Unpacks frames (streams of xz) that follow one another, and notices an end within one."""

    def __init__(self, packed: BinaryIO, begin: Callable[[], Any], read_at_once: int) -> None:
        self._packed = packed
        self._begin = begin
        self._read_at_once = read_at_once
        self._unpacker = begin()
        self._content = io.BytesIO()

    def read(self, size: int) -> bytes:
        """At most ``size`` bytes; none at the end. Raises EOFError, and as the unpacker."""
        while not (content := self._content.read(size)):
            if self._unpacker.eof:
                # xz pads streams to multiples of four bytes.
                packed = self._unpacker.unused_data.lstrip(b"\0")
                packed = packed or self._packed.read(self._read_at_once).lstrip(b"\0")
                if not packed:
                    return b""
                self._unpacker = self._begin()
            else:
                packed = self._packed.read(self._read_at_once)
                if not packed:
                    raise EOFError("it ends too early")
            # A slice of bytes would copy all that is left, for every part that is read.
            self._content = io.BytesIO(self._unpacker.decompress(packed))
        return content


def _xz_reader(packed: BinaryIO) -> _FrameReader:
    def begin() -> Any:
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MOST_MEMORY)

    return _FrameReader(packed, begin, _PACKED_AT_ONCE)


def _zstd_reader(packed: BinaryIO) -> _FrameReader:
    try:
        import zstandard
    except ImportError:
        raise MissingExtraError("zstandard", "data", "reading .zst") from None
    unpacker = zstandard.ZstdDecompressor(max_window_size=_MOST_MEMORY // 2)
    # Its own reader of streams takes a file that is cut short for a whole one.
    return _FrameReader(packed, unpacker.decompressobj, _PACKED_AT_ONCE)


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
                rows = _parquet_rows(file, address)
            case "datasets":
                rows = _dataset_rows(address)
            case "jsonl":
                rows = _json_rows(opened.enter_context(open_unpacked(address)), address)
            case _:
                rows = _csv_rows(opened.enter_context(open_unpacked(address)), address)
        yield io.BufferedReader(_Lines(rows))


class _Lines(io.RawIOBase):
    """The lines of an iterator as a file."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._lines = lines
        self._rest = b""

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer as far as the next line reaches."""
        if not self._rest:
            self._rest = next(self._lines, b"")
        content, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        buffer[: len(content)] = content
        return len(content)


def _cell(value: Any, place: str) -> bytes:
    """A cell as a line."""
    if value is None:
        return b"\n"
    if isinstance(value, bytes):  # Parquet of programs that do not say which bytes are text
        try:
            value = value.decode()
        except UnicodeDecodeError:
            raise DataError(f"{place}: not UTF-8") from None
    if not isinstance(value, str):
        raise DataError(f"{place}: a cell must be text, got {str(value)[:60]!a}")
    try:
        return f"{value.translate(ONE_LINE)}\n".encode()
    except UnicodeEncodeError:
        raise DataError(f"{place}: a cell must not hold a lone surrogate") from None


def _row_of(cells: Sequence[Any], address: Address, number: int) -> bytes:
    """The one cell that is named, or source and target as a line of JSON."""
    place = f"{address.location}, row {number}"
    texts = [_cell(cell, place)[:-1].decode() for cell in cells]
    if len(texts) == 1:
        return f"{texts[0]}\n".encode()
    return json.dumps(dict(zip(("source", "target"), texts, strict=True))).encode() + b"\n"


def _row(row: dict[str, Any], address: Address, number: int) -> bytes:
    """One row as a line."""
    place = f"{address.location}, row {number}"
    if not address.column:
        try:
            return json.dumps(row, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        except (TypeError, ValueError) as error:
            raise DataError(f"{place}: the cells must be text ({error})") from None

    # translation.de is the text "de" of the object "translation".
    value: Any = row
    for part in [address.column] if address.column in row else address.column.split("."):
        if not isinstance(value, dict) or part not in value:
            known = ", ".join(map(str, list(value)[:20])) if isinstance(value, dict) else "none"
            raise DataError(f"{place}: there is no column {address.column}; there are: {known}")
        value = value[part]
    return _cell(value, place)


def _csv_rows(file: BinaryIO, address: Address) -> Iterator[bytes]:
    """The rows of CSV or TSV below their header, however they were written."""
    begin = _beginning(file)
    dialect = dialect_of(
        begin,
        address.location,
        is_whole=len(begin) < SAMPLE,
        delimiter="\t" if address.table == "tsv" else "",
        is_header=lambda names: bool(_columns(names, address)),
    )
    if dialect.encoding == "cp1252":
        _say_once(
            logging.WARNING,
            f"{address.location} is not UTF-8 and is read as Windows-1252, for example"
            f" {_foreign_word(begin)}; if that is wrong, convert it: iconv -f ... -t UTF-8",
        )

    # A line of TSV ends at a line feed alone, as everywhere; csv itself looks after its line ends.
    newline = "\n" if address.table == "tsv" else ""
    whole = io.BufferedReader(_Rejoined(begin[len(dialect.mark) :], file))
    lines = io.TextIOWrapper(whole, encoding=dialect.encoding, newline=newline)
    bounded = _BoundedLines(lines, address)

    try:
        lines.read(len(dialect.first_line))  # sep=;
        rows = (
            _TsvReader(bounded)
            if address.table == "tsv"
            else csv.reader(
                bounded, delimiter=dialect.delimiter, skipinitialspace=True, strict=True
            )
        )
        header = next(rows, [])
        columns = _chosen_columns(header, address, dialect.delimiter)

        for number, row in enumerate(rows, start=1):
            bounded.taken = 0
            if not row:
                row = [""] * len(header)  # a blank line
            if len(row) != len(header):
                raise DataError(
                    f"{address.location}, row {number}: must have {len(header)} columns as the"
                    f" header has, got {len(row)}"
                )
            yield _row_of([row[column] for column in columns], address, number)

    except csv.Error as error:
        raise DataError(f"{address.location}, line {rows.line_num}: {error}") from error
    except UnicodeError as error:
        reason = getattr(error, "reason", str(error))
        raise DataError(
            f"{address.location} is not {dialect.encoding.upper()} behind line {bounded.count}:"
            f" {reason}",
            hint="a file must be in one encoding, for example: iconv -f LATIN1 -t UTF-8",
        ) from None


def _beginning(file: BinaryIO) -> bytes:
    begin = b""
    while len(begin) < SAMPLE and (more := file.read(SAMPLE - len(begin))):
        begin += more
    return begin


def _foreign_word(begin: bytes) -> str:
    """The first word of a text in Windows-1252 by which a reader sees whether it is that."""
    text = begin.decode("cp1252")
    return next((word for word in re.findall(r"\w+", text) if not word.isascii()), "")[:40]


@functools.lru_cache(maxsize=256)
def _say_once(level: int, message: str) -> None:
    """Log a message about an input; a corpus is read several times."""
    _log.log(level, "%s", message)


class _Rejoined(io.RawIOBase):
    """A file of which the beginning has been read already."""

    def __init__(self, begin: bytes, rest: BinaryIO) -> None:
        self._begin, self._rest = begin, rest

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer from the beginning, and then from the rest."""
        if self._begin:
            content, self._begin = self._begin[: len(buffer)], self._begin[len(buffer) :]
        else:
            content = self._rest.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)


class _TsvReader:
    """A reader of TSV like ``csv.reader``, which also ends a row at a lone carriage return."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = iter(lines)
        self.line_num = 0

    def __iter__(self) -> Iterator[list[str]]:
        return self

    def __next__(self) -> list[str]:
        line = next(self._lines).removesuffix("\n").removesuffix("\r")
        self.line_num += 1
        return line.split("\t") if line else []


class _BoundedLines:
    """The lines of a file; a row may have several, which together are bounded."""

    def __init__(self, lines: io.TextIOWrapper, address: Address) -> None:
        self._lines, self._address = lines, address
        self.taken = 0
        """Characters since the last row ended; whoever reads the rows sets it to 0."""
        self.count = 0
        """Lines so far."""

    def __iter__(self) -> Iterator[str]:
        while line := self._lines.readline(_LONGEST_ROW):
            self.taken += len(line)
            self.count += 1
            if self.taken >= _LONGEST_ROW:
                raise DataError(
                    f"{self._address.location}: a row must have less than {_LONGEST_ROW:,}"
                    " characters"
                )
            yield line


def _columns(names: Sequence[str], address: Address) -> tuple[int, ...]:
    """Positions of the column that is named, or of source and target; none if that is unclear."""
    plain = [name.strip() for name in names]
    if not address.column:
        return pair_columns(plain) or ()
    if plain.count(address.column) == 1:
        return (plain.index(address.column),)
    folded = [name.casefold() for name in plain]
    wanted = address.column.casefold()
    return (folded.index(wanted),) if folded.count(wanted) == 1 else ()


def _chosen_columns(names: Sequence[str], address: Address, delimiter: str) -> tuple[int, ...]:
    """Choose columns as ``_columns`` does, and log a choice that is a guess. Raises DataError where
    the names are unclear."""
    found = _columns(names, address)
    if not found:
        shown = ", ".join(name.strip()[:40] for name in names[:20])
        wanted = f"the column {address.column} once" if address.column else ONE_PAIR
        hint = "name a column as in pairs.csv#en"
        if not address.column and len(names) == 2:
            hint = (
                "if that is the first pair already, write source"
                f"{delimiter.replace(chr(9), '(tab)')}target on a line above it; or name columns as"
                " in pairs.csv#en"
            )
        raise DataError(
            f"{address.location} must have {wanted}, named in its first line, which has: {shown}",
            hint=hint,
        )
    if len(found) == 2:
        say_pair(address.location, *(names[column].strip() for column in found))
    return found


def say_pair(name: str, source: str, target: str) -> None:
    """Log once which columns of a table are source and target, unless they are called so."""
    if (source.casefold(), target.casefold()) != ("source", "target"):
        _say_once(
            logging.INFO, f"{name}: the column {source!r} is the source, {target!r} the target"
        )


def _json_rows(file: BinaryIO, address: Address) -> Iterator[bytes]:
    number = 0
    while line := file.readline(_LONGEST_LINE + 1):
        number += 1
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        if len(line) > _LONGEST_LINE:
            raise DataError(
                f"{address.location}, line {number}: a line must have at most"
                f" {_LONGEST_LINE:,} bytes"
            )
        if not line.strip():
            yield b"\n"
            continue
        try:
            row = parse_json(line, _MOST_VALUES)
        except ValueError as error:
            raise DataError(f"{address.location}, line {number}: not JSON ({error})") from None
        if not isinstance(row, dict):
            raise DataError(f"{address.location}, line {number}: must be an object")
        yield _row(row, address, number)


def _parquet_rows(file: BinaryIO, address: Address) -> Iterator[bytes]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("pyarrow", "data", "reading .parquet") from None

    number = 0
    # For metadata that a stranger wrote.
    limits = {
        "thrift_string_size_limit": _MOST_MEMORY,
        "thrift_container_size_limit": 1_000_000,
        "arrow_extensions_enabled": False,
    }
    try:
        schema = pyarrow.parquet.ParquetFile(file, **limits)
        paths = _parquet_paths(schema.schema_arrow, address)
        leaves = [".".join(path) for path in paths]
        _refuse_large_groups(schema.metadata, leaves, address)
        size = file.seek(0, io.SEEK_END)

        # As numbers of values that are stored once: a file of 95 kB can have a value of a million
        # characters and 200,000 rows that point at it.
        table = pyarrow.parquet.ParquetFile(file, read_dictionary=leaves, **limits)
        unpacked = 0
        for batch in table.iter_batches(_ROWS_AT_ONCE, columns=leaves, use_threads=False):
            sides = [_arrow_column(batch, path) for path in paths]
            for row in zip(*(_arrow_cells(side) for side in sides), strict=True):
                number += 1
                line = _row_of(row, address, number)
                unpacked += len(line)
                if unpacked > max(_BOMB_FROM, _MOST_EXPANSION * size):
                    raise DataError(
                        f"{address.location} must be text, and unpacks to more than"
                        f" {_MOST_EXPANSION} times its size",
                        hint="packing makes text 3 to 20 times smaller; if it is right, write it"
                        " as lines of text first",
                    )
                yield line
            unpacked += sum(len(getattr(side, "dictionary", ())) for side in sides)
    except (pyarrow.ArrowException, OSError, ValueError, KeyError) as error:
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"{address.location}, row {number + 1}: {reason}") from error


def _parquet_paths(schema: Any, address: Address) -> list[tuple[str, ...]]:
    """The columns to read, each as names from the outermost struct to the text.

    Raises DataError for a column that is missing or holds no text.
    """
    import pyarrow

    names = list(schema.names)
    paths: list[tuple[str, ...]]
    if address.column and address.column in names:
        paths = [(address.column,)]
    elif address.column:
        paths = [tuple(address.column.split("."))]
    elif found := pair_columns(names):
        paths = [(names[column],) for column in found]
        say_pair(address.location, *(names[column] for column in found))
    else:
        is_struct = "translation" in names and pyarrow.types.is_struct(
            schema.field("translation").type
        )
        inner = [each.name for each in schema.field("translation").type] if is_struct else []
        if len(inner) != 2:
            shown = ", ".join(names[:20])
            raise DataError(
                f"{address.location} must have {ONE_PAIR}, has: {shown}",
                hint="name a column as in pairs.parquet#en",
            )
        paths = [("translation", name) for name in inner]

    for path in paths:
        kind: Any = None
        known = names
        for name in path:
            if name not in known:
                shown = ", ".join(known[:20]) or "none"
                raise DataError(
                    f"{address.location}: there is no column {'.'.join(path)}; there are: {shown}"
                )
            kind = schema.field(name).type if kind is None else kind.field(name).type
            known = [each.name for each in kind] if pyarrow.types.is_struct(kind) else []
        if pyarrow.types.is_dictionary(kind):
            kind = kind.value_type
        if kind not in (
            *(pyarrow.string(), pyarrow.large_string(), pyarrow.string_view()),
            *(pyarrow.binary(), pyarrow.large_binary(), pyarrow.null()),
        ):
            raise DataError(
                f"{address.location}: the column {'.'.join(path)} must be text, is {kind}"[:300]
            )
    return paths


def _refuse_large_groups(about: Any, leaves: Sequence[str], address: Address) -> None:
    for group in range(about.num_row_groups):
        columns = [about.row_group(group).column(n) for n in range(about.num_columns)]
        size = sum(
            each.total_uncompressed_size for each in columns if each.path_in_schema in leaves
        )
        if size > _LARGEST_ROW_GROUP:
            raise DataError(
                f"{address.location}: a row group must have at most {_LARGEST_ROW_GROUP:,} bytes in"
                f" the columns that are read, row group {group + 1} has {size:,}",
                hint="write it again with smaller row groups",
            )


def _arrow_column(batch: Any, path: tuple[str, ...]) -> Any:
    column = batch.column(batch.schema.get_field_index(path[0]))
    for name in path[1:]:
        # ``flatten`` makes a field null where its struct is.
        column = column.flatten()[column.type.get_field_index(name)]
    return column


def _arrow_cells(column: Any) -> Iterator[Any]:
    """The values of a column; each value that is stored once is converted once."""
    if not hasattr(column, "dictionary"):
        yield from column.to_pylist()
        return
    used = column.indices.unique().drop_null()
    values = dict(zip(used.to_pylist(), column.dictionary.take(used).to_pylist(), strict=True))
    for index in column.indices.to_pylist():
        yield None if index is None else values[index]


def _dataset_rows(address: Address) -> Iterator[bytes]:
    """The rows of ``datasets://NAME?name=CONFIG&split=train``, streamed."""
    try:
        import datasets
    except ImportError:
        raise MissingExtraError("datasets", "datasets", "reading a dataset") from None

    place, _, query = address.location.removeprefix(f"{_DATASETS}://").partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True)) if len(query) < _LONGEST_URL else {}
    unknown = sorted(options.keys() - set(_DATASET_OPTIONS))
    if unknown or "split" not in options:
        raise DataError(
            f"{address.location}: a dataset is named datasets://NAME?split=train, and may have"
            f" {', '.join(_DATASET_OPTIONS)}; got {', '.join(options) or 'none'}"
        )
    number = 0
    try:
        rows = datasets.load_dataset(
            place,
            name=options.get("name"),
            split=options["split"],
            data_files=options.get("data_files"),
            revision=options.get("revision"),
            streaming=True,
        )
        for row in rows:
            number += 1
            yield _row(dict(row), address, number)
    except DataError:
        raise
    except Exception as error:  # each builder raises errors of its own
        reason = str(error).split("\n", 1)[0][:200]
        raise DataError(f"cannot read {address.location}, row {number + 1}: {reason}") from error


def file_system_of(url: str) -> tuple[Any, str]:
    """The file system of a URL and the path in it, by fsspec. Raises what fsspec does."""
    try:
        import fsspec
    except ImportError:
        raise MissingExtraError("fsspec", "data", f"reading {url}") from None
    filesystem, inner = fsspec.core.url_to_fs(url)
    return filesystem, str(inner)


@contextlib.contextmanager
def _remote_errors(url: str) -> Iterator[None]:
    """Turn what fsspec raises into errors of our own."""
    try:
        yield
    except ImportError as error:
        # s3fs, gcsfs and others are packages of their own, which fsspec names.
        raise InputMissingError(f"cannot read {url}: {error}") from error
    except PellucidError:
        raise
    except FileNotFoundError as error:
        # That of http repeats the address, also where nothing answers.
        reason = error.strerror or "no such file, or no answer"
        raise InputMissingError(f"cannot read {url}: {reason}") from error
    except Exception as error:
        # A file system raises what its package raises, of which not all is an OSError.
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise InputMissingError(f"cannot read {url}: {reason}") from error
