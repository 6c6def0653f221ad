"""Scans one side of a corpus: length, hash, traits and problems of each line.

NumPy works on whole blocks of bytes, never Python on single characters, so that millions of lines
take seconds. ``scan`` gives a ``SideScan`` with a few bytes for each line; ``find_marks`` finds
suspicious characters and ``repaired`` mends them; ``Column`` holds one number for each line.
"""

import contextlib
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, Generic, Literal, TypeVar, cast, get_args

import numpy as np
import numpy.typing as npt

from pellucid.core.files import write_errors
from pellucid.text.check.forms import line_forms, line_scripts
from pellucid.text.check.markup import has_markup, maybe_markup
from pellucid.text.check.mojibake import is_mojibake, maybe_mojibake, read_again
from pellucid.text.corpus.lines import (
    BYTE_ORDER_MARK,
    invalid_lines,
    iterate_blocks,
    refuse_foreign,
)
from pellucid.text.corpus.rows import RowSet
from pellucid.text.look_alikes import C1_IN_WINDOWS

Number = TypeVar("Number", np.int32, np.int64, np.uint16)

_IN_MEMORY = 1 << 20
"""Numbers; more are kept in a file without a name, which disappears when it is closed."""


class Column(Generic[Number]):
    """Numbers of one type that are appended in blocks and then read as one array."""

    def __init__(self, data_type: type[Number]) -> None:
        self._type: type[Number] = data_type
        self._parts: list[npt.NDArray[Number]] = []
        self._count = 0
        self._file: BinaryIO | None = None

    def append(self, numbers: npt.NDArray[Number]) -> None:
        """Append numbers. Raises WriteError if the temporary folder is full."""
        self._parts.append(numbers)
        self._count += len(numbers)

        # Above the limit each block goes to the file at once; below it no file is ever opened.
        if self._count > _IN_MEMORY:
            with write_errors(Path(tempfile.gettempdir())):
                if self._file is None:
                    self._file = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115
                for part in self._parts:
                    self._file.write(part.tobytes())
            self._parts = []

    def read(self) -> npt.NDArray[Number]:
        """All numbers; none may be appended afterwards."""
        if self._file is None:
            return np.concatenate([np.empty(0, self._type), *self._parts])

        with write_errors(Path(tempfile.gettempdir())):
            self._file.flush()

        # Mapped: the kernel keeps of it what fits into memory, and drops the rest under pressure.
        numbers: npt.NDArray[Number] = np.memmap(self._file, self._type, "r")
        return numbers

    def close(self) -> None:
        """Close the file; an array that was read from it stays valid, as it is mapped."""
        if self._file is not None:
            with contextlib.suppress(OSError):  # a full disk has been reported by ``append``
                self._file.close()


Mark = Literal["nul", "carriage_return", "odd_separator", "windows_1252", "control", "unusual"]
MARKS: tuple[Mark, ...] = get_args(Mark)

_PATTERNS: dict[Mark, bytes] = {
    "nul": rb"\x00",
    "carriage_return": rb"\r",
    # VT, FF, FS, GS, RS, U+2028, U+2029: where str.splitlines cuts and \n does not
    "odd_separator": rb"[\x0b\x0c\x1c-\x1e]|\xe2\x80[\xa8\xa9]",
    # C1 controls that are punctuation or letters in Windows-1252; in UTF-8 they end as they begin
    "windows_1252": rb"\xc2[%b]" % bytes(C1_IN_WINDOWS),
    "control": rb"[\x01-\x08\x0e-\x1b\x1f\x7f]|\xc2[\x81\x8d\x8f\x90\x9d]",
    # private use; non-characters; interlinear marks, object, replacement character
    "unusual": rb"\xee[\x80-\xbf]|\xef[\x80-\xa3]|\xef\xb7[\x90-\xaf]|\xef\xbf[\xb9-\xbf]"
    rb"|\xf3[\xb0-\xbf]|\xf4"
    # question marks in the place of letters that an encoding lacks, and not in an address
    rb"|(?<=[A-Za-z])\?(?=[a-z])(?![\w.%-]*=)|\?{2,} \?{2,}",
}
_SUBWORDS = re.compile(rb"\xe2\x96\x81|@@(?<=[^\s@]@@)(?=\s)")
"""The marks of sentencepiece (U+2581) and subword-nmt (``wo@@ rd``), which a text has that was cut
into pieces already."""
_ANY = re.compile(b"|".join(b"(%b)" % _PATTERNS[mark] for mark in MARKS))
_SPACES = re.compile(b"|".join(_PATTERNS[mark] for mark in ("carriage_return", "odd_separator")))
_C1_RUN = re.compile("[\x80-\x9f]+")
_NOTHING = re.compile(b"|".join((_PATTERNS["nul"], _PATTERNS["control"], rb"\xef\xbb\xbf")))


def find_marks(text: bytes) -> dict[Mark, list[int]]:
    """The positions of each kind of mark in ``text``, in bytes; absent kinds are left out."""
    found: dict[Mark, list[int]] = {}
    for place in _suspicious_places(np.frombuffer(text, np.uint8)):
        # The tables only say where a mark may begin; the expression decides, and says which.
        match = _ANY.match(text, place)
        if match is not None:
            assert match.lastindex is not None
            found.setdefault(MARKS[match.lastindex - 1], []).append(place)
    return found


def repaired(line: str) -> str:
    """A line with spaces for odd separators, without NUL, control characters and byte order marks.

    Windows-1252 that was read as Latin-1, and UTF-8 that was read as either, is read again. What
    may be intended stays, such as characters for private use and soft hyphens.
    """
    if not line.isascii():
        line = _C1_RUN.sub(lambda found: found[0].translate(C1_IN_WINDOWS), read_again(line))
    return _NOTHING.sub(b"", _SPACES.sub(b" ", line.encode())).decode()


def _suspicious_places(text: npt.NDArray[np.uint8]) -> list[int]:
    """Positions where a mark may begin, for the regular expression to check.

    Table lookups read a megabyte in the time that the expression takes for ten lines.
    """
    leads = np.flatnonzero(_LEADS[text])

    following = np.append(text, (0, 0))  # the last character may be cut
    leads = leads[_SECONDS[_LEADS[text[leads]], following[leads + 1]]]

    # Typographic quotes and dashes are frequent and share two bytes with the line separators.
    is_quote = (text[leads] == 0xE2) & _QUOTES[following[leads + 2]]
    places: list[int] = leads[~is_quote].tolist()
    return places


def _mark_tables() -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_]]:
    """For each byte that may begin a mark a row number, and in that row the bytes that may follow.

    Row 0 is for bytes that begin no mark, row 1 for those that any byte may follow.
    """
    leads = np.zeros(256, dtype=np.uint8)

    # C0 controls and DEL; the others begin private use areas of three and four bytes and planes
    # beyond U+100000.
    leads[[*range(0x20), 0x7F, 0xEE, 0xF3, 0xF4]] = 1
    leads[[ord("\t"), ord("\n")]] = 0

    seconds = np.zeros((6, 256), dtype=np.bool_)
    seconds[1] = True

    # The lead bytes of UTF-8 with the second bytes of the characters in ``_PATTERNS``.
    following = {
        0xC2: [*range(0x80, 0xA0)],
        0xE2: [0x80],
        0xEF: [*range(0x80, 0xA4), 0xB7, 0xBF],
        ord("?"): [ord("?"), *range(ord("a"), ord("z") + 1)],
    }

    for row, (lead, bytes_) in enumerate(following.items(), start=2):
        leads[lead] = row
        seconds[row, bytes_] = True
    return leads, seconds


_LEADS, _SECONDS = _mark_tables()
_QUOTES = np.zeros(256, dtype=np.bool_)
_QUOTES[[*range(0x90, 0xA0), 0xA6]] = True  # dashes, quotation marks, the ellipsis

LineProblem = Literal[
    "empty",
    "invalid_utf8",
    "crlf",
    "too_long",
    Mark,
    "mojibake",
    "markup",
    "tab",
    "subwords",
    "not_nfc",
    "invisible",
]
LINE_PROBLEMS: tuple[LineProblem, ...] = get_args(LineProblem)
TRAITS: dict[str, tuple[int, int]] = {
    "digits": (0, 4),
    "end": (4, 4),
    "capitals": (8, 3),
    "signs": (11, 3),
    "commas": (14, 2),
}
"""Traits that a translation shares with its source, as (first bit, number of bits) in
``SideScan.traits``."""
LONGEST_LINE = 1000
"""Characters: ten times a usual sentence, and about as many as 256 tokens, the default of
``data.max_length``, can represent."""

_Rows = npt.NDArray[np.int64]
_Bytes = npt.NDArray[np.uint8]
_NEWLINE = ord("\n")
_FIELD = 12
"""Bits of a count in ``_COUNTED``; in a line of over 4,000 commas they run into the next count."""
_DIGITS, _COMMAS, _CAPITALS, _SIGNS = (np.uint64(place * _FIELD) for place in (3, 0, 1, 2))


def _counting_table() -> npt.NDArray[np.uint64]:
    """Return, for each byte, the numbers to add to the four counts of its line, packed into one.

    Digits add their value plus one: equal numbers on both sides give equal sums.
    """
    table = np.zeros(256, dtype=np.uint64)
    table[ord("0") : ord("9") + 1] = np.arange(1, 11, dtype=np.uint64) << _DIGITS
    table[ord(",")] = np.uint64(1) << _COMMAS
    table[ord("A") : ord("Z") + 1] = np.uint64(1) << _CAPITALS
    table[list(b"\"-()';:")] = np.uint64(1) << _SIGNS
    return table


def _end_table() -> npt.NDArray[np.uint16]:
    """A code for the last byte of a line: 0, or one of a few signs, or a digit."""
    table = np.zeros(256, dtype=np.uint16)
    for code, sign in enumerate(b".?!:\"',)", start=1):
        table[sign] = code
    table[ord("0") : ord("9") + 1] = 9
    return table


def _ascii_table() -> dict[bytes, dict[bytes, bytes]]:
    """The marks and digits of other scripts in UTF-8 with those of ASCII, by their first bytes."""
    marks = dict(zip("。．｡।॥۔።။។།！？؟，、،၊：；؛（）", "..........!??,,,,:;;()", strict=True))
    digits = {
        chr(zero + value): str(value)
        # Arabic, Persian, the scripts of India, Thai, Lao, Tibetan, Burmese, Khmer, full-width
        for zero in (
            *(0x660, 0x6F0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66),
            *(0xE50, 0xED0, 0xF20, 0x1040, 0x17E0, 0xFF10),
        )
        for value in range(10)
    }
    table: dict[bytes, dict[bytes, bytes]] = {}
    for other, own in {**marks, **digits}.items():
        table.setdefault(other.encode()[:2], {})[other.encode()] = own.encode()
    return table


_COUNTED, _ENDS, _ASCII_OF = _counting_table(), _end_table(), _ascii_table()


@dataclass(frozen=True)
class SideScan:
    """The results of a scan, for each line of a file."""

    path: Path
    lengths: npt.NDArray[np.int32]
    """Characters of each line without its end."""
    hashes: npt.NDArray[np.int64]
    """Hash of each line as normalization makes it, comparable within this process only."""
    traits: npt.NDArray[np.uint16]
    """See ``TRAITS``."""
    problems: dict[LineProblem, RowSet]
    """The lines with each problem."""
    has_byte_order_mark: bool
    has_composed: bool = False
    """Whether a line has a letter that could be written apart from its accent."""
    scripts: dict[int, RowSet] = field(default_factory=dict)
    """The lines of each script, by its index in ``SCRIPTS``."""
    in_quotes: RowSet = field(default_factory=RowSet)
    """The lines in double quotation marks as CSV writes them, whose own ones are doubled."""
    doubled_quotes: int = 0
    """How many of these have own ones, which only CSV doubles."""

    @property
    def line_count(self) -> int:
        """How many lines the file has."""
        return len(self.lengths)

    def cut(self, line_count: int) -> "SideScan":
        """The scan of the first ``line_count`` lines."""
        return replace(
            self,
            lengths=self.lengths[:line_count],
            hashes=self.hashes[:line_count],
            traits=self.traits[:line_count],
            problems={problem: rows.below(line_count) for problem, rows in self.problems.items()},
            scripts={script: rows.below(line_count) for script, rows in self.scripts.items()},
            in_quotes=self.in_quotes.below(line_count),
        )

    def rows(self, rows: npt.NDArray[np.intp]) -> "SideScan":
        """The lengths and traits of these lines, in this order."""
        return replace(self, lengths=self.lengths[rows], traits=self.traits[rows])


def scan(path: Path, most_lines: int | None = None) -> SideScan:
    """Scan every line of a file (``.gz`` is unpacked), or the first ``most_lines`` or so.

    Raises InputMissingError if it cannot be read, DataError if it is damaged gzip or UTF-16,
    WriteError if the file is long and the temporary folder full.
    """
    lengths, hashes, traits = Column(np.int32), Column(np.int64), Column(np.uint16)
    problems: dict[LineProblem, RowSet] = {problem: RowSet() for problem in LINE_PROBLEMS}
    scripts: dict[int, RowSet] = {}
    in_quotes = RowSet()
    row = doubled = 0
    has_mark = has_composed = False

    with contextlib.ExitStack() as opened:
        for column in (lengths, hashes, traits):
            opened.callback(column.close)

        blocks = opened.enter_context(contextlib.closing(iterate_blocks(path)))
        for block in blocks:
            if row == 0:
                refuse_foreign(block.partition(b"\n")[0], str(path))

            # A mark at the very beginning is legal; inside a line it is ``invisible``.
            if row == 0 and block.startswith(BYTE_ORDER_MARK):
                has_mark = True

            part = scan_block(block.removeprefix(BYTE_ORDER_MARK) if row == 0 else block)
            for problem, rows in part.problems.items():
                problems[problem].add(rows + row)
            lengths.append(part.lengths)
            hashes.append(part.hashes)
            traits.append(part.traits)
            has_composed |= part.has_composed
            in_quotes.add(part.in_quotes + row)
            doubled += part.doubled_quotes
            of_lines = line_scripts(block)
            for script in np.unique(of_lines[of_lines > 0]).tolist():
                of_script = np.flatnonzero(of_lines == script)
                scripts.setdefault(script, RowSet()).add(of_script + row)
            row += len(part.lengths)

            if most_lines is not None and row >= most_lines:
                break

        numbers = lengths.read(), hashes.read(), traits.read()
        return SideScan(
            path,
            *numbers,
            problems,
            has_mark,
            has_composed,
            scripts,
            in_quotes,
            doubled,
        )


@dataclass(frozen=True)
class BlockScan:
    """Like ``SideScan``, for the lines of one block; rows are counted from its first line."""

    lengths: npt.NDArray[np.int32]
    hashes: npt.NDArray[np.int64]
    traits: npt.NDArray[np.uint16]
    problems: dict[LineProblem, _Rows]
    has_composed: bool
    in_quotes: _Rows
    doubled_quotes: int


def scan_block(block: bytes) -> BlockScan:
    """Scan whole lines; the last may lack its end. An empty block is one empty line."""
    problems: dict[LineProblem, _Rows] = {}

    # Windows line ends are found first and then replaced, so that a carriage return that is left
    # is a problem inside a line, also at the end of a last one without an end.
    problems["crlf"] = np.empty(0, np.int64)
    if b"\r\n" in block:
        bytes_ = np.frombuffer(block, np.uint8)
        ends = np.flatnonzero(bytes_ == _NEWLINE)
        problems["crlf"] = np.flatnonzero(bytes_[np.maximum(ends - 1, 0)] == ord("\r"))
        block = block.replace(b"\r\n", b"\n")

    text = block if block.endswith(b"\n") else block + b"\n"
    bytes_ = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(bytes_ == _NEWLINE)
    starts = np.concatenate((np.zeros(1, np.int64), ends[:-1] + 1))

    # Python's lines are needed for hashes and for the rare checks by line; all else is counted on
    # the array.
    lines = text.split(b"\n")
    lines.pop()
    lengths = _character_counts(bytes_, starts)

    marks = find_marks(text)
    for mark in MARKS:
        places = np.asarray(marks.get(mark, ()), dtype=np.int64)
        problems[mark] = np.unique(np.searchsorted(ends, places))  # position to row

    problems["mojibake"] = _rows_that(is_mojibake, lines, ends, maybe_mojibake(bytes_))
    problems["markup"] = _rows_that(has_markup, lines, ends, maybe_markup(bytes_))
    problems["invalid_utf8"] = np.array(invalid_lines(text), np.int64)
    problems["too_long"] = np.flatnonzero(lengths > LONGEST_LINE)

    forms = line_forms(text)
    problems["not_nfc"] = np.array(forms.not_nfc, np.int64)
    problems["invisible"] = np.array(forms.invisible, np.int64)
    # Empty, or once normalized: a line of white space or of zero-width spaces.
    blank = [row for row, line in forms.normalized.items() if not line]
    problems["empty"] = np.union1d(np.flatnonzero(starts == ends), np.array(blank, np.int64))

    # A table that was taken for text has columns; text that was tokenized already has pieces.
    tabs = np.searchsorted(ends, np.flatnonzero(bytes_ == ord("\t")))
    problems["tab"] = np.setdiff1d(tabs, problems["empty"])
    pieces = [found.start() for found in _SUBWORDS.finditer(text)]
    problems["subwords"] = np.unique(np.searchsorted(ends, np.array(pieces, np.int64)))

    is_quote = bytes_ == ord('"')
    candidates = np.flatnonzero(is_quote[starts] & is_quote[ends - 1] & (ends - starts > 1))
    inner = {row: lines[row][1:-1].count(b'""') for row in candidates.tolist()}
    in_quotes = [row for row, pairs in inner.items() if lines[row].count(b'"') == 2 + 2 * pairs]
    doubled = sum(inner[row] > 0 for row in in_quotes)

    # Equal once they are normalized: a duplicate is one in whatever form it is written.
    hashes = np.fromiter(map(hash, lines), np.int64, len(lines))
    for row, line in forms.normalized.items():
        hashes[row] = hash(line)
    if not text.isascii():
        text = _in_ascii(text)
        bytes_ = np.frombuffer(text, np.uint8)
        ends = np.flatnonzero(bytes_ == _NEWLINE)
        starts = np.concatenate((np.zeros(1, np.int64), ends[:-1] + 1))
    traits = _traits(bytes_, starts, ends)
    quotes = np.array(in_quotes, np.int64), doubled
    return BlockScan(lengths, hashes, traits, problems, forms.has_composed, *quotes)


def _in_ascii(text: bytes) -> bytes:
    """The text with the marks and digits of ASCII in the place of those of other scripts."""
    for lead, others in _ASCII_OF.items():
        if lead[:1] in text and lead in text:  # of most texts one or two
            for other, own in others.items():
                text = text.replace(other, own)
    return text


def _rows_that(
    holds: Callable[[str], bool], lines: Sequence[bytes], ends: _Rows, places: _Rows
) -> _Rows:
    """The rows with any of ``places`` in them for which the function is true."""
    rows = np.unique(np.searchsorted(ends, places)).tolist()
    found = [row for row in rows if holds(lines[row].decode("utf-8", "replace"))]
    return np.array(found, np.int64)


def _character_counts(text: _Bytes, starts: _Rows) -> npt.NDArray[np.int32]:
    begins_character = (text & 0xC0) != 0x80  # all but UTF-8's continuation bytes

    # ``reduceat`` sums from each start to the next one, which is line by line.
    counts = np.add.reduceat(begins_character.view(np.uint8), starts, dtype=np.int32)
    return np.subtract(counts, 1, dtype=np.int32)  # the line's end


def _traits(text: _Bytes, starts: _Rows, ends: _Rows) -> npt.NDArray[np.uint16]:
    # One look-up and one sum for four counts: they lie side by side in a number of 64 bits.
    counts = np.add.reduceat(_COUNTED[text], starts)
    count = {
        shift: (counts >> shift & np.uint64((1 << _FIELD) - 1)).astype(np.uint16)
        for shift in (_COMMAS, _CAPITALS, _SIGNS)
    }

    # The sum of digits modulo 15, so that it fits into four bits; 0 means that there are none.
    digits = counts >> _DIGITS
    values = {
        "digits": np.where(digits > 0, digits % np.uint64(15) + np.uint64(1), np.uint64(0)),
        "end": _ENDS[text[np.maximum(ends - 1, 0)]],
        "capitals": count[_CAPITALS],
        "signs": count[_SIGNS],
        "commas": count[_COMMAS],
    }

    # A count that does not fit into its bits stays at the largest value, on both sides alike.
    packed = np.zeros(len(starts), dtype=np.uint16)
    for name, (first_bit, bits) in TRAITS.items():
        packed |= np.minimum(values[name], (1 << bits) - 1).astype(np.uint16) << first_bit
    return packed
