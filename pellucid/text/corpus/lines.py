"""Lines of text, one by one or in blocks of whole lines: a line ends at ``\\n`` and only there.

``str.splitlines`` and text-mode files also cut at U+2028, U+0085, form feeds and lone carriage
returns; on two parallel files that shifts one side against the other.
"""

import bisect
import contextlib
import io
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from pellucid.core.errors import DataError, InputMissingError
from pellucid.core.texts import TO_UTF_8, counted
from pellucid.text.corpus.addresses import address_of
from pellucid.text.corpus.readers import open_table
from pellucid.text.corpus.unpacking import open_unpacked

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_GZIP_SIGN = b"\x1f\x8b"
_LONGEST_LINE = 1 << 24
"""Bytes. A line is a sentence or a paragraph; a file without line ends would fill the memory."""
_STREAM = "<stdin>"
_UTF_16 = "convert the file, for example: iconv -f UTF-16 -t UTF-8"
_FOREIGN: dict[bytes, tuple[str, str]] = {
    b"PK\x03\x04": ("a zip archive, such as .docx, .odt and .xlsx are", "save it as plain text"),
    b"\xd0\xcf\x11\xe0": ("an old Word or Excel file", "save it as plain text"),
    b"%PDF-": ("a PDF file", "extract its text, for example: pdftotext"),
    # Before UTF-16, whose mark begins that of UTF-32.
    b"\xff\xfe\0\0": ("UTF-32", "convert the file, for example: iconv -f UTF-32 -t UTF-8"),
    b"\xff\xfe": ("UTF-16", _UTF_16),
    b"\xfe\xff": ("UTF-16", _UTF_16),
    b"\x28\xb5\x2f\xfd": ("packed by zstd", "unpack it first: zstd -d"),
    b"\xfd7zXZ\x00": ("packed by xz", "unpack it first: xz -d"),
    b"BZh": ("packed by bzip2", "unpack it first: bzip2 -d"),
    _GZIP_SIGN: ("packed by gzip", "unpack it first: gzip -d"),
}
"""Formats that are often given instead of text, by their first bytes."""
_MOST_NULS = 3
"""UTF-16 without a mark is valid UTF-8 in which every second byte is a NUL, not every third."""
_LONGEST_SIGN = max(map(len, _FOREIGN))


def read_lines(path: Path) -> list[str]:
    """All lines of a UTF-8 file (``.gz`` is unpacked). Raises as ``iterate_lines`` does."""
    return list(iterate_lines(path))


def iterate_lines(source: Path | BinaryIO, name: str = _STREAM) -> Generator[str, None, None]:
    """The lines of a text in UTF-8 or of a binary stream, one at a time, without their ends.

    A carriage return before ``\\n`` belongs to the line's end; a byte order mark at the start
    of the file is dropped; a last line without ``\\n`` counts. ``name`` is the name of a stream in
    messages. A caller that stops early must call ``close()``, as on a file.

    Raises InputMissingError if it cannot be read, DataError naming file, line and byte where it
    is not UTF-8 or a line has more than 16 MiB, or naming the file if it is damaged gzip, not
    text, or a table of which no column is named.
    """
    if not isinstance(source, Path):
        yield from decode_lines(source, name)
        return
    address = address_of(source)
    if address.table and not address.column:
        # its lines would be objects of JSON
        raise DataError(
            f"{source} is a table, and a text was expected",
            hint=f"name the column with the text, as in {source}#en",
        )
    with open_lines(source) as file:
        yield from decode_lines(file, str(source))


@contextlib.contextmanager
def open_lines(source: Path) -> Iterator[BinaryIO]:
    """The bytes of an input (``pellucid.text.corpus.readers``), unpacked; a table as its lines.

    Raises InputMissingError if it cannot be read, DataError if it is damaged, there and while the
    block lasts.
    """
    address = address_of(source)
    opened: contextlib.AbstractContextManager[BinaryIO]
    try:
        if address.table:
            opened = open_table(source)
        elif address.scheme or address.packing:
            opened = open_unpacked(address)
        else:
            opened = _open(source)
        with opened as file:
            yield file
    except OSError as error:
        raise InputMissingError(f"cannot read {source}: {error.strerror or error}") from error


def _open(path: Path) -> BinaryIO:
    # A pipe cannot be rewound, so only what is seekable is checked.
    file = path.open("rb")
    try:
        if file.seekable():
            begin = file.read(_LONGEST_SIGN)
            file.seek(0)

            # Compressed bytes are rarely UTF-8, so reading would fail, but with a message about an
            # encoding.
            if begin.startswith(_GZIP_SIGN):
                raise DataError(
                    f"{path} is gzip data", hint="give its name the ending .gz, and it is unpacked"
                )
            _refuse_signs(begin, str(path))
    except BaseException:
        file.close()
        raise
    return file


def refuse_foreign(first_line: bytes, name: str) -> None:
    """Raise DataError if a file that begins with this line is not text in UTF-8, but known."""
    _refuse_signs(first_line, name)
    if _MOST_NULS * first_line.count(0) > len(first_line):
        raise DataError(f"{name} must be plain text in UTF-8, is UTF-16", hint=_UTF_16)


def _refuse_signs(begin: bytes, name: str) -> None:
    for sign, (what, hint) in _FOREIGN.items():
        if begin.startswith(sign):
            raise DataError(f"{name} must be plain text in UTF-8, is {what}", hint=hint)


def open_raw_lines(source: Path) -> Generator[bytes, None, None]:
    """The lines of an input with their ends. Raises as ``open_lines`` and ``raw_lines`` do.

    A caller that stops early must call ``close()``, as on a file.
    """
    with open_lines(source) as file:
        yield from raw_lines(file, str(source))


def raw_lines(file: BinaryIO, name: str, first: int = 1) -> Iterator[bytes]:
    """The lines of a binary stream with their ends; the first has the number ``first``.

    Raises DataError naming a line of more than 16 MiB, or a file whose lines end otherwise.
    """
    number = first
    only = b""  # the first line, as long as there is no other
    # One byte beyond the limit, to tell a line of exactly that length from a longer one.
    while raw := file.readline(_LONGEST_LINE + 1):
        if len(raw) > _LONGEST_LINE:
            raise _too_long(name, number)

        only = raw if number == 1 else b""
        yield raw
        number += 1

    # What a program pipes into another may well be one line with a carriage return in it.
    if name != _STREAM:
        _refuse_carriage_returns(only, name)


def _refuse_carriage_returns(only: bytes, name: str) -> None:
    """Raise DataError if the only line of a file is several, as old Macs ended lines."""
    count = only.rstrip(b"\r\n").count(b"\r")
    if count:
        raise DataError(
            f"{name} must have lines that end with a line feed, has one line with"
            f" {counted(count, 'carriage return')} in it, as old Macs ended lines",
            hint="convert the file, for example: tr '\\r' '\\n' < OLD > NEW",
        )


def _too_long(name: str, number: int) -> DataError:
    return DataError(
        f"{name}, line {number}: a line must have at most {_LONGEST_LINE:,} bytes",
        hint="one sentence or paragraph a line; only a line feed ends a line",
    )


def decode_block(block: bytes, name: str, first: int) -> list[str]:
    """The lines of a block of whole lines in UTF-8; the first has the number ``first``.

    Gives what ``decode_lines`` gives, faster, and raises as ``iterate_lines`` does.
    """
    # NUL is valid UTF-8, so that decoding the block as a whole would notice nothing.
    if first == 1 and block[:_LONGEST_SIGN].count(0):
        return list(decode_lines(io.BytesIO(block), name, first))  # perhaps UTF-16
    try:
        # One call for the whole block; only a block that fails is decoded line by line.
        text = (block.removeprefix(BYTE_ORDER_MARK) if first == 1 else block).decode("utf-8")
    except UnicodeDecodeError:
        return list(decode_lines(io.BytesIO(block), name, first))  # raises, and says where

    lines = text.split("\n")

    # ``split`` gives an empty string behind the last line feed, which is not a line.
    if not lines[-1] and block.endswith(b"\n"):
        lines.pop()
        ended = len(lines)
    else:
        ended = len(lines) - 1  # the last line has no end

    # A carriage return is part of a line's end only where a line feed follows it.
    if "\r" in text:
        lines[:ended] = [line.removesuffix("\r") for line in lines[:ended]]

    return lines


def invalid_lines(block: bytes) -> list[int]:
    """Rows of a block of whole lines, from 0, that are not UTF-8."""
    return (
        []
        if _is_utf8(block)
        else [row for row, line in enumerate(block.split(b"\n")) if not _is_utf8(line)]
    )


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def decode_lines(file: BinaryIO, name: str, first: int = 1) -> Iterator[str]:
    """The lines of a binary stream; the first has the number ``first``.

    Raises as ``iterate_lines`` does.
    """
    for number, raw in enumerate(raw_lines(file, name, first), start=first):
        line = raw

        # Only where a file begins: the same bytes inside a text are text.
        if number == 1:
            refuse_foreign(raw, name)
            line = line.removeprefix(BYTE_ORDER_MARK)

        # ``splitlines`` would also cut at a carriage return inside a line.
        if line.endswith(b"\n"):
            line = line[:-1].removesuffix(b"\r")

        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            # Counted from the beginning of the file's line, where an editor counts too.
            skipped = len(BYTE_ORDER_MARK) if number == 1 and raw[:3] == BYTE_ORDER_MARK else 0
            raise DataError(
                f"{name}, line {number}, byte {error.start + skipped + 1}:"
                f" not UTF-8 (0x{line[error.start]:02x}, {error.reason})",
                hint=f"{TO_UTF_8}; pellucid check --fix drops single lines",
            ) from None

        yield text


_BLOCK_BYTES = 1 << 20
"""Bytes read at a time, few enough that arrays made of them stay in the processor's cache."""


def iterate_blocks(path: Path) -> Generator[bytes, None, None]:
    """The bytes of a file (``.gz`` is unpacked) in blocks that end with a line's end.

    The last block may lack it. A caller that stops early must call ``close()``, as on a file.
    Raises as ``open_lines`` does, and DataError naming the line if one has more than 16 MiB, or for
    a file whose lines end otherwise.
    """
    number = 1  # of the block's first line
    only = b""

    with open_lines(path) as file:
        while block := file.read(_BLOCK_BYTES):
            if not block.endswith(b"\n"):
                begun = len(block) - block.rfind(b"\n") - 1  # bytes of the last line read so far
                rest = file.readline(_LONGEST_LINE - begun + 1)
                if begun + len(rest) > _LONGEST_LINE:
                    raise _too_long(str(path), number + block.count(b"\n"))
                block += rest

            # A file with the line ends of old Macs looks like a single line.
            only = block if number == 1 and block.find(b"\n") in (-1, len(block) - 1) else b""
            yield block
            number += block.count(b"\n")
    _refuse_carriage_returns(only, str(path))


def iterate_raw_lines(path: Path) -> Generator[bytes, None, None]:
    """The lines of a file as bytes, valid UTF-8 or not, without their ends or the first mark.

    A caller that stops early must call ``close()``, as on a file. Raises as ``iterate_blocks``
    does.
    """
    is_first = True
    with contextlib.closing(iterate_blocks(path)) as blocks:
        for block in blocks:
            if is_first:
                block = block.removeprefix(BYTE_ORDER_MARK)  # the same block
                is_first = False
            yield from _lines_of(block)


def fetch_lines(path: Path, rows: Iterable[int]) -> dict[int, bytes]:
    """The lines at these rows, from 0. Raises as ``iterate_blocks`` does."""
    # In rising order each block is asked for the rows that it holds, and the file is read once.
    wanted = sorted(set(rows))
    found: dict[int, bytes] = {}
    first = 0  # row of the block's first line

    with contextlib.closing(iterate_blocks(path)) as blocks:
        for block in blocks:
            # Nothing beyond the last row is read, which may save most of the file.
            if len(found) == len(wanted):
                break
            count = block.count(b"\n") + (not block.endswith(b"\n"))
            here = wanted[len(found) : bisect.bisect_left(wanted, first + count)]
            if here:
                lines = _lines_of(block.removeprefix(BYTE_ORDER_MARK) if first == 0 else block)
                found |= {row: lines[row - first] for row in here}
            first += count

    return found


def _lines_of(block: bytes) -> list[bytes]:
    lines = block.split(b"\n")
    # As in ``decode_block``: the last part is no line, or one without an end.
    if b"\r" in block:
        lines[:-1] = [line.removesuffix(b"\r") for line in lines[:-1]]
    if block.endswith(b"\n"):
        lines.pop()
    return lines
