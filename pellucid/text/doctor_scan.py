"""One side of a corpus in a few bytes a line: lengths, hashes, and what is wrong with it.

Works on blocks of bytes, never on single characters, so that millions of lines are seconds.
"""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from pellucid.text.doctor_blocks import BYTE_ORDER_MARK, iterate_blocks
from pellucid.text.doctor_columns import Column
from pellucid.text.doctor_marks import MARKS, Mark, find_marks
from pellucid.text.row_set import RowSet

LineFault = Literal[Mark, "empty", "invalid_utf8", "crlf", "too_long"]
LINE_FAULTS: tuple[LineFault, ...] = ("empty", "invalid_utf8", "crlf", "too_long", *MARKS)
TRAITS: dict[str, tuple[int, int]] = {
    "digits": (0, 4),
    "end": (4, 4),
    "capitals": (8, 3),
    "signs": (11, 3),
    "commas": (14, 2),
}
"""What a translation shares with its source: first bit and bits of each, in ``SideScan.traits``."""
LONGEST_LINE = 1000
"""Characters: ten times a usual sentence, and about as many as 256 tokens, the default of
``data.max_length``, can hold."""

_Rows = npt.NDArray[np.int64]
_Bytes = npt.NDArray[np.uint8]
_NEWLINE = ord("\n")
_FIELD = 12
"""Bits of a count in ``_COUNTED``; a line of over 4,000 commas may blur its other counts."""
_DIGITS, _COMMAS, _CAPITALS, _SIGNS = (np.uint64(place * _FIELD) for place in (3, 0, 1, 2))


def _counting_table() -> npt.NDArray[np.uint64]:
    """What each byte adds to the four counts of its line."""
    table = np.zeros(256, dtype=np.uint64)
    table[ord("0") : ord("9") + 1] = np.arange(1, 11, dtype=np.uint64) << _DIGITS
    table[ord(",")] = np.uint64(1) << _COMMAS
    table[ord("A") : ord("Z") + 1] = np.uint64(1) << _CAPITALS
    table[list(b"\"-()';:")] = np.uint64(1) << _SIGNS
    return table


def _end_table() -> npt.NDArray[np.uint16]:
    """What a line ends in: nothing of note, one of a few signs, a digit."""
    table = np.zeros(256, dtype=np.uint16)
    for code, sign in enumerate(b".?!:\"',)", start=1):
        table[sign] = code
    table[ord("0") : ord("9") + 1] = 9
    return table


def _blank_table() -> npt.NDArray[np.bool_]:
    """Which bytes a line of nothing but Unicode white space can begin with."""
    table = np.zeros(256, dtype=np.bool_)
    table[list(range(0x09, 0x0E)) + list(range(0x1C, 0x21)) + [0xC2, 0xE1, 0xE2, 0xE3]] = True
    return table


_MAY_BE_BLANK = _blank_table()
_COUNTED, _ENDS = _counting_table(), _end_table()


@dataclass(frozen=True)
class SideScan:
    """What is known of each line of a file."""

    path: Path
    lengths: npt.NDArray[np.int32]
    """Characters of each line, its end left out."""
    hashes: npt.NDArray[np.int64]
    """One of each line's bytes: equal, within this process, if the lines are."""
    traits: npt.NDArray[np.uint16]
    """See ``TRAITS``."""
    faults: dict[LineFault, RowSet]
    """The lines with each fault."""
    has_byte_order_mark: bool

    @property
    def line_count(self) -> int:
        """How many lines the file has."""
        return len(self.lengths)

    def cut(self, line_count: int) -> "SideScan":
        """The first ``line_count`` lines alone."""
        return SideScan(
            self.path,
            self.lengths[:line_count],
            self.hashes[:line_count],
            self.traits[:line_count],
            {fault: rows.below(line_count) for fault, rows in self.faults.items()},
            self.has_byte_order_mark,
        )


def scan(path: Path, most_lines: int | None = None) -> SideScan:
    """Look at every line of a file (``.gz`` is unpacked), or at the first ``most_lines`` or so.

    Raises InputMissingError if it cannot be read, DataError if it is damaged gzip, WriteError if
    the file is long and the temporary folder full.
    """
    lengths, hashes, traits = Column(np.int32), Column(np.int64), Column(np.uint16)
    faults: dict[LineFault, RowSet] = {fault: RowSet() for fault in LINE_FAULTS}
    row = 0
    has_mark = False
    with contextlib.ExitStack() as opened:
        for column in (lengths, hashes, traits):
            opened.callback(column.close)
        blocks = opened.enter_context(contextlib.closing(iterate_blocks(path)))
        for block in blocks:
            if row == 0 and block.startswith(BYTE_ORDER_MARK):
                has_mark = True
            part = _scan_block(block.removeprefix(BYTE_ORDER_MARK) if row == 0 else block)
            for fault, rows in part.faults.items():
                faults[fault].add(rows + row)
            lengths.append(part.lengths)
            hashes.append(part.hashes)
            traits.append(part.traits)
            row += len(part.lengths)
            if most_lines is not None and row >= most_lines:
                break
        return SideScan(path, lengths.read(), hashes.read(), traits.read(), faults, has_mark)


@dataclass(frozen=True)
class _BlockScan:
    """As ``SideScan``, of some lines, whose rows are counted from the first of them."""

    lengths: npt.NDArray[np.int32]
    hashes: npt.NDArray[np.int64]
    traits: npt.NDArray[np.uint16]
    faults: dict[LineFault, _Rows]


def _scan_block(block: bytes) -> _BlockScan:
    text = block if block.endswith(b"\n") else block + b"\n"
    bytes_ = np.frombuffer(text, np.uint8)
    faults: dict[LineFault, _Rows] = {}
    faults["crlf"] = np.empty(0, np.int64)
    if b"\r\n" in text:
        ends = np.flatnonzero(bytes_ == _NEWLINE)
        faults["crlf"] = np.flatnonzero(bytes_[np.maximum(ends - 1, 0)] == ord("\r"))
        text = text.replace(b"\r\n", b"\n")
        bytes_ = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(bytes_ == _NEWLINE)
    starts = np.concatenate((np.zeros(1, np.int64), ends[:-1] + 1))
    lines = text.split(b"\n")
    lines.pop()
    lengths = _character_counts(bytes_, starts)
    marks = find_marks(text)
    for mark in MARKS:
        places = np.asarray(marks.get(mark, ()), dtype=np.int64)
        faults[mark] = np.unique(np.searchsorted(ends, places))
    faults["invalid_utf8"] = _invalid_rows(text, lines)
    faults["empty"] = _blank_rows(lines, bytes_[starts])
    faults["too_long"] = np.flatnonzero(lengths > LONGEST_LINE)
    hashes = np.fromiter(map(hash, lines), np.int64, len(lines))
    return _BlockScan(lengths, hashes, _traits(bytes_, starts, ends), faults)


def _character_counts(text: _Bytes, starts: _Rows) -> npt.NDArray[np.int32]:
    begins_character = (text & 0xC0) != 0x80
    counts = np.add.reduceat(begins_character.view(np.uint8), starts, dtype=np.int32)
    return np.subtract(counts, 1, dtype=np.int32)  # the line's end


def _traits(text: _Bytes, starts: _Rows, ends: _Rows) -> npt.NDArray[np.uint16]:
    counts = np.add.reduceat(_COUNTED[text], starts)
    count = {
        shift: (counts >> shift & np.uint64((1 << _FIELD) - 1)).astype(np.uint16)
        for shift in (_COMMAS, _CAPITALS, _SIGNS)
    }
    digits = counts >> _DIGITS
    values = {
        "digits": np.where(digits > 0, digits % np.uint64(15) + np.uint64(1), np.uint64(0)),
        "end": _ENDS[text[np.maximum(ends - 1, 0)]],
        "capitals": count[_CAPITALS],
        "signs": count[_SIGNS],
        "commas": count[_COMMAS],
    }
    packed = np.zeros(len(starts), dtype=np.uint16)
    for name, (first_bit, bits) in TRAITS.items():
        packed |= np.minimum(values[name], (1 << bits) - 1).astype(np.uint16) << first_bit
    return packed


def _blank_rows(lines: Sequence[bytes], first_bytes: _Bytes) -> _Rows:
    """Lines that ``str.strip`` leaves nothing of; those that begin otherwise need no look."""
    rows = np.flatnonzero(_MAY_BE_BLANK[first_bytes]).tolist()
    blank = [row for row in rows if not lines[row].decode("utf-8", "replace").strip()]
    return np.array(blank, dtype=np.int64)


def _invalid_rows(text: bytes, lines: Sequence[bytes]) -> _Rows:
    if _is_utf8(text):
        return np.empty(0, np.int64)
    invalid = [row for row, line in enumerate(lines) if not _is_utf8(line)]
    return np.array(invalid, dtype=np.int64)


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
