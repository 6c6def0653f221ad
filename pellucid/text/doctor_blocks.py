"""Files as large blocks of whole lines."""

import bisect
import contextlib
import gzip
import zlib
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import BinaryIO

from pellucid.core.errors import DataError, InputMissingError

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BLOCK = 1 << 20
"""Bytes read at a time: the arrays made of them stay in the processor's cache."""


def iterate_blocks(path: Path) -> Generator[bytes, None, None]:
    """The bytes of a file (``.gz`` is unpacked), cut after a line's end only.

    The last block may lack its line's end. Who stops early calls ``close()``, as on a file.
    Raises InputMissingError if it cannot be read, DataError if it is damaged gzip.
    """
    try:
        with _open(path) as file:
            while block := file.read(_BLOCK):
                yield block if block.endswith(b"\n") else block + file.readline()
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(
            f"{path} is not whole gzip data: {error}", hint="unpack it by hand to see how far"
        ) from error
    except OSError as error:
        raise InputMissingError(f"cannot read {path}: {error.strerror or error}") from error


def iterate_raw_lines(path: Path) -> Generator[bytes, None, None]:
    """The lines of a file as bytes, valid UTF-8 or not, without their ends or the first mark.

    Who stops early calls ``close()``, as on a file. Raises as ``iterate_blocks`` does.
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
    wanted = sorted(set(rows))
    found: dict[int, bytes] = {}
    first = 0
    with contextlib.closing(iterate_blocks(path)) as blocks:
        for block in blocks:
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
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix(b"\r") for line in lines] if b"\r" in block else lines


def _open(path: Path) -> BinaryIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rb")  # type: ignore[return-value]  # a BinaryIO in all but name
    return path.open("rb")
