"""Forms of Unicode and scripts of the lines of a block: what the eye does not see or count.

Two lines may look alike and differ in every byte (``pellucid.text.normalization``), and a line in
another script than its file was probably never translated.
"""

import unicodedata
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from pellucid.text.normalization import hidden_characters, is_normal, normalize

SCRIPTS = (
    "",  # no letters, or of several scripts
    "Latin",
    "Greek",
    "Cyrillic",
    "Armenian",
    "Hebrew",
    "Arabic",
    "Syriac",
    "Thaana",
    "N'Ko",
    "Devanagari",
    "Bengali",
    "Gurmukhi",
    "Gujarati",
    "Odia",
    "Tamil",
    "Telugu",
    "Kannada",
    "Malayalam",
    "Sinhala",
    "Thai",
    "Lao",
    "Tibetan",
    "Myanmar",
    "Georgian",
    "Hangul",
    "Ethiopic",
    "Khmer",
    "Mongolian",
    "Chinese or Japanese",
)
_LATIN = SCRIPTS.index("Latin")
_TOGETHER = 64
"""Lines that are looked at in one go; most are in the usual form."""
_LEAST_LETTERS = 3
"""Fewer do not decide about the script of a line."""


def _script_table() -> npt.NDArray[np.uint8]:
    """For the first two bytes of a letter in UTF-8 the index of its script."""
    table = np.zeros((256, 256), np.uint8)

    def mark(script: str, *leads: int, seconds: tuple[int, int] = (0x80, 0xBF)) -> None:
        for lead in leads:
            table[lead, seconds[0] : seconds[1] + 1] = SCRIPTS.index(script)

    mark("Latin", *range(0xC3, 0xCB))
    mark("Greek", 0xCE, 0xCF)
    mark("Cyrillic", *range(0xD0, 0xD4))
    mark("Cyrillic", 0xD4, seconds=(0x80, 0xAF))
    mark("Armenian", 0xD4, seconds=(0xB0, 0xBF))
    mark("Armenian", 0xD5)
    mark("Armenian", 0xD6, seconds=(0x80, 0x8F))
    mark("Hebrew", 0xD6, seconds=(0x90, 0xBF))
    mark("Hebrew", 0xD7)
    mark("Arabic", *range(0xD8, 0xDC))
    mark("Syriac", 0xDC)
    mark("Thaana", 0xDE)
    mark("N'Ko", 0xDF)

    # U+0900 to U+0FFF: each script has 128 characters, two second bytes of E0.
    indic = SCRIPTS[SCRIPTS.index("Devanagari") : SCRIPTS.index("Tibetan")]
    for place, script in enumerate(indic):
        mark(script, 0xE0, seconds=(0xA4 + 2 * place, 0xA5 + 2 * place))
    mark("Tibetan", 0xE0, seconds=(0xBC, 0xBF))
    mark("Myanmar", 0xE1, seconds=(0x80, 0x81))
    mark("Georgian", 0xE1, seconds=(0x83, 0x83))
    mark("Georgian", 0xE1, seconds=(0xB2, 0xB2))
    mark("Hangul", 0xE1, seconds=(0x84, 0x87))
    mark("Ethiopic", 0xE1, seconds=(0x88, 0x8D))
    mark("Khmer", 0xE1, seconds=(0x9E, 0x9F))
    mark("Mongolian", 0xE1, seconds=(0xA0, 0xA2))
    mark("Latin", 0xE1, seconds=(0xB8, 0xBB))
    mark("Greek", 0xE1, seconds=(0xBC, 0xBF))
    mark("Chinese or Japanese", 0xE3, seconds=(0x81, 0x83))
    mark("Chinese or Japanese", 0xE3, seconds=(0x90, 0xBF))
    mark("Chinese or Japanese", *range(0xE4, 0xEA))
    mark("Hangul", 0xEA, seconds=(0xB0, 0xBF))
    mark("Hangul", 0xEB, 0xEC)
    mark("Hangul", 0xED, seconds=(0x80, 0x9E))
    mark("Arabic", 0xEF, seconds=(0xAD, 0xB7))
    mark("Chinese or Japanese", 0xF0, seconds=(0xA0, 0xB3))
    return table


_SCRIPT_OF = _script_table()
_IS_ASCII_LETTER = np.zeros(256, np.uint8)
_IS_ASCII_LETTER[[*b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"]] = 1


def line_scripts(block: bytes) -> npt.NDArray[np.uint8]:
    """The script of each line, as an index of ``SCRIPTS``; 0 if it has few letters, or of several.

    The last line may lack its end. One letter in ten may be of another script, but a name does not
    make a line one of its script.
    """
    text = np.frombuffer(block if block.endswith(b"\n") else block + b"\n", np.uint8)
    starts = np.concatenate((np.zeros(1, np.int64), np.flatnonzero(text == ord("\n"))[:-1] + 1))
    latin = np.add.reduceat(_IS_ASCII_LETTER[text], starts, dtype=np.int64)
    leads = np.flatnonzero(text >= 0xC3)
    scripts = _SCRIPT_OF[text[leads], text[np.minimum(leads + 1, len(text) - 1)]]
    rows = np.searchsorted(starts, leads, side="right") - 1
    latin += np.bincount(rows[scripts == _LATIN], minlength=len(starts))
    found = np.where(latin >= _LEAST_LETTERS, _LATIN, 0).astype(np.uint8)

    # Only of lines with letters of other scripts is anything else counted.
    is_other = scripts > _LATIN
    others, of_others = np.unique(rows[is_other], return_inverse=True)
    if not len(others):
        return found
    size = len(SCRIPTS)
    counts = np.bincount(of_others * size + scripts[is_other], minlength=len(others) * size)
    counts = counts.reshape(len(others), size)
    counts[:, _LATIN] = latin[others]

    most = counts.max(axis=1)
    is_clear = (most >= _LEAST_LETTERS) & (10 * most >= 9 * counts.sum(axis=1))
    found[others] = np.where(is_clear, counts.argmax(axis=1), 0)
    return found


@dataclass
class Forms:
    """The lines of a block that are not in the usual form, by row."""

    normalized: dict[int, bytes] = field(default_factory=dict)
    """Lines that normalization changes, as they are then."""
    not_nfc: list[int] = field(default_factory=list)
    """Lines with accents apart from their letters."""
    invisible: list[int] = field(default_factory=list)
    """Lines with invisible characters that normalization removes."""
    has_composed: bool = False
    """Whether any line has a letter that could be written apart from its accent."""


def line_forms(block: bytes) -> Forms:
    """The forms of whole lines, each with its end; bytes that are not UTF-8 count as U+FFFD."""
    lines = block.decode("utf-8", "replace").split("\n")
    forms = Forms()
    for first in range(0, len(lines), _TOGETHER):
        some = lines[first : first + _TOGETHER]
        joined = "~".join(some)
        if not forms.has_composed and not joined.isascii():
            forms.has_composed = not unicodedata.is_normalized("NFD", joined)
        if is_normal(joined) and " ~" not in joined and "~ " not in joined:
            continue

        for row, line in enumerate(some, start=first):
            made = normalize(line)
            if made == line:
                continue
            forms.normalized[row] = made.encode()
            if not unicodedata.is_normalized("NFC", line):
                forms.not_nfc.append(row)
            if hidden_characters(line):
                forms.invisible.append(row)
    return forms
