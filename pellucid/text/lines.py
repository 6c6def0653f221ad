"""Lines of text, and nothing else: a line ends at ``\\n`` and only there.

``str.splitlines`` and text-mode files also cut at U+2028, U+0085, form feeds and lone carriage
returns; on two parallel files that shifts one side against the other.
"""

import contextlib
import gzip
import io
import zlib
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import BinaryIO

from pellucid.core.errors import DataError, InputMissingError

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_GZIP_SUFFIX = ".gz"


def read_lines(path: Path) -> list[str]:
    """All lines of a UTF-8 file (``.gz`` is unpacked). Raises as ``iterate_lines`` does."""
    return list(iterate_lines(path))


def iterate_lines(source: Path | BinaryIO, name: str = "<stdin>") -> Generator[str, None, None]:
    """The lines of a UTF-8 file or binary stream, one at a time, without their ends.

    A carriage return before ``\\n`` belongs to the line's end; a byte order mark at the start
    of the file is dropped; a last line without ``\\n`` counts. ``name`` is what to call a stream.
    Who stops early calls ``close()``, as on a file.

    Raises InputMissingError if it cannot be read, DataError naming file, line and byte where it
    is not UTF-8, or naming the file if it is damaged gzip.
    """
    if not isinstance(source, Path):
        yield from decode_lines(source, name)
        return
    with open_lines(source) as file:
        yield from decode_lines(file, str(source))


@contextlib.contextmanager
def open_lines(source: Path) -> Iterator[BinaryIO]:
    """The bytes of a file, unpacked if it is ``.gz``.

    Raises InputMissingError if it cannot be read, DataError if it is damaged gzip, there and
    while the block lasts.
    """
    try:
        with _open(source) as file:
            yield file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(
            f"{source} is not whole gzip data: {error}", hint="unpack it by hand to see how far"
        ) from error
    except OSError as error:
        raise InputMissingError(f"cannot read {source}: {error.strerror or error}") from error


def _open(path: Path) -> BinaryIO:
    if path.suffix == _GZIP_SUFFIX:
        return gzip.open(path, "rb")  # type: ignore[return-value]  # a BinaryIO in all but name
    return path.open("rb")


def decode_block(block: bytes, name: str, first: int) -> list[str]:
    """The lines of whole lines of UTF-8, numbered from ``first``. Raises as ``iterate_lines``."""
    try:
        text = (block.removeprefix(_BYTE_ORDER_MARK) if first == 1 else block).decode("utf-8")
    except UnicodeDecodeError:
        return list(decode_lines(io.BytesIO(block), name, first))  # raises, and says where
    lines = text.split("\n")
    if not lines[-1] and block.endswith(b"\n"):
        lines.pop()
        ended = len(lines)
    else:
        ended = len(lines) - 1  # the last line has no end
    if "\r" in text:
        lines[:ended] = [line.removesuffix("\r") for line in lines[:ended]]
    return lines


def decode_lines(file: BinaryIO, name: str, first: int = 1) -> Iterator[str]:
    """The lines of a binary stream, numbered from ``first``. Raises as ``iterate_lines``."""
    for number, raw in enumerate(file, start=first):
        line = raw
        if number == 1:
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if line.endswith(b"\n"):
            line = line[:-1].removesuffix(b"\r")
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            skipped = len(_BYTE_ORDER_MARK) if number == 1 and raw[:3] == _BYTE_ORDER_MARK else 0
            raise DataError(
                f"{name}, line {number}, byte {error.start + skipped + 1}:"
                f" not UTF-8 (0x{line[error.start]:02x}, {error.reason})",
                hint="convert the file, for example: iconv -f LATIN1 -t UTF-8",
            ) from None
        yield text
