"""Characters that text of one sentence a line should not hold, found in bytes."""

import re
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

Mark = Literal["nul", "carriage_return", "odd_separator", "control", "unusual", "mojibake"]
MARKS: tuple[Mark, ...] = get_args(Mark)

_PATTERNS: dict[Mark, bytes] = {
    "nul": rb"\x00",
    "carriage_return": rb"\r",
    # VT, FF, FS, GS, RS, U+0085, U+2028, U+2029: where str.splitlines cuts and \n does not
    "odd_separator": rb"[\x0b\x0c\x1c-\x1e]|\xc2\x85|\xe2\x80[\xa8\xa9]",
    "control": rb"[\x01-\x08\x0e-\x1b\x1f\x7f]|\xc2[\x80-\x84\x86-\x9f]",
    # soft hyphen; zero-width space, direction marks; word joiner and the like; private use;
    # byte order mark inside; interlinear marks, object, replacement character, non-characters
    "unusual": rb"\xc2\xad|\xe2\x80[\x8b\x8e\x8f\xaa-\xae]|\xe2\x81[\xa0-\xaf]|\xee[\x80-\xbf]"
    rb"|\xef[\x80-\xa3]|\xef\xbb\xbf|\xef\xbf[\xb9-\xbf]|\xf3[\xb0-\xbf]|\xf4",
    # UTF-8 read as Latin-1 and written as UTF-8 again: two or three accented letters for one
    "mojibake": rb"\xc3[\x82\x83]\xc2[\x80-\xbf]|\xc3\xa2\xe2\x82\xac",
}
_ANY = re.compile(b"|".join(b"(%b)" % _PATTERNS[mark] for mark in MARKS))
_SPACES = re.compile(b"|".join(_PATTERNS[mark] for mark in ("carriage_return", "odd_separator")))
_NOTHING = re.compile(b"|".join((_PATTERNS["nul"], _PATTERNS["control"], rb"\xef\xbb\xbf")))


def find_marks(text: bytes) -> dict[Mark, list[int]]:
    """Where in ``text`` each kind stands, in bytes from 0; kinds that do not occur are absent."""
    found: dict[Mark, list[int]] = {}
    for place in _suspicious_places(np.frombuffer(text, np.uint8)):
        match = _ANY.match(text, place)
        if match is not None:
            assert match.lastindex is not None
            found.setdefault(MARKS[match.lastindex - 1], []).append(place)
    return found


def without_marks(line: bytes) -> bytes:
    """A line with spaces for the separators in it, and without NUL, controls and inner marks.

    What is unusual but may be meant stays: direction marks, private use, soft hyphens.
    """
    return _NOTHING.sub(b"", _SPACES.sub(b" ", line))


def _suspicious_places(text: npt.NDArray[np.uint8]) -> list[int]:
    """The places worth a look: tables read a megabyte in the time a pattern reads ten lines."""
    leads = np.flatnonzero(_LEADS[text])
    following = np.append(text, (0, 0))  # the last character may be cut
    leads = leads[_SECONDS[_LEADS[text[leads]], following[leads + 1]]]
    is_quote = (text[leads] == 0xE2) & _QUOTES[following[leads + 2]]
    places: list[int] = leads[~is_quote].tolist()
    return places


def _mark_tables() -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_]]:
    """A row number for each byte that may begin a mark, and in that row the bytes that follow."""
    leads = np.zeros(256, dtype=np.uint8)
    leads[[*range(0x20), 0x7F, 0xEE, 0xF3, 0xF4]] = 1
    leads[[ord("\t"), ord("\n")]] = 0
    seconds = np.zeros((6, 256), dtype=np.bool_)
    seconds[1] = True
    following = {
        0xC2: [*range(0x80, 0xA0), 0xAD],
        0xC3: [0x82, 0x83, 0xA2],
        0xE2: [0x80, 0x81],
        0xEF: [*range(0x80, 0xA4), 0xBB, 0xBF],
    }
    for row, (lead, bytes_) in enumerate(following.items(), start=2):
        leads[lead] = row
        seconds[row, bytes_] = True
    return leads, seconds


_LEADS, _SECONDS = _mark_tables()
_QUOTES = np.zeros(256, dtype=np.bool_)
_QUOTES[[*range(0x90, 0xA0), 0xA6]] = True  # dashes, quotation marks, the ellipsis
