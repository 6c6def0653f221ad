"""Mojibake: UTF-8 that was read in an encoding of one byte a character, such as Windows-1252.

Each character beyond ASCII then stands as two to four others: the first shows a lead byte of UTF-8,
the others its continuation bytes. Right text has such a sequence by chance, as in ``CAFÉ”``. A line
is therefore called mojibake only if a sequence is one that no orthography writes (``Ã¶``, ``zÄ™``),
or if every letter beyond ASCII is part of a sequence and sequences stand beside each other.
"""

import dataclasses
import functools
import itertools
import re
import unicodedata
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from pellucid.text.look_alikes import C1_IN_WINDOWS

_CONTINUATION = bytes(range(0x80, 0xC0))
_LEADS = {2: bytes(range(0xC2, 0xE0)), 3: bytes(range(0xE0, 0xF0)), 4: bytes(range(0xF0, 0xF5))}
"""The bytes that begin a character of UTF-8, by its length."""
_LEAST_SEQUENCES = 3
"""Sequences of two characters in a line that has no certain one."""
_MOST_READINGS = 4
"""Times that text is read again: of text that was read wrongly twice, one time is not enough."""


@dataclasses.dataclass(frozen=True)
class _Page:
    """An encoding that UTF-8 is read in by mistake."""

    codec: str
    certain: str
    """An expression of ``re`` for the sequences that right text does not have; C1 controls stand
    there as in Windows-1252, and {C} for any continuation byte."""

    @functools.cached_property
    def bytes_of(self) -> dict[str, int]:
        """The byte of each character beyond ASCII; a C1 control stands for its own byte."""
        table = {chr(code): code for code in range(0x80, 0xA0)}
        for code in range(0x80, 0x100):
            character = bytes([code]).decode(self.codec, "ignore")
            table |= {character: code} if character else {}
        return table

    def shown(self, codes: bytes) -> str:
        """The characters of these bytes, as they stand in a class of ``re``."""
        return re.escape("".join(each for each, code in self.bytes_of.items() if code in codes))

    @functools.cached_property
    def sequences(self) -> re.Pattern[str]:
        """A lead byte and its continuation bytes."""
        following = f"[{self.shown(_CONTINUATION)}]"
        return re.compile(
            "|".join(
                f"[{self.shown(leads)}]{following}{{{length - 1}}}"
                for length, leads in _LEADS.items()
            )
        )

    @functools.cached_property
    def certain_ones(self) -> re.Pattern[str]:
        """The expression ``certain`` with its classes filled in."""
        return re.compile(self.certain.replace("{C}", f"[{self.shown(_CONTINUATION)}]"))

    def read(self, sequence: str) -> str | None:
        """The character that a sequence is in UTF-8; None if it is none."""
        try:
            made = bytes(map(self.bytes_of.__getitem__, sequence)).decode()
        except UnicodeDecodeError:
            return None
        # No text has letters of Windows-1252 as controls, only punctuation.
        is_letter = C1_IN_WINDOWS.get(ord(made), "").isalpha()
        return None if is_letter or unicodedata.category(made) == "Cn" else made


_SIGNS = "\x81\x8d\x8f\x90\x9d¡¢£¤¥¦¨ª¬¯µ¶¸º¼½¾¿€ƒˆ˜‰ŒœŸ‚„±"
"""Characters of Windows-1252 that do not stand directly behind a capital letter with an accent. A
closing mark, a dash, a no-break space, a footnote's dagger and the letters of Czech do."""
_BEHIND_SMALL = "".join(sorted(set(_SIGNS) - set("¡¿£¥€±")))
"""The same behind a small letter, where Spanish has its marks (``sé…¿``) and French a price."""
_BEFORE_SIGN = "\xa0–—…“‘«"
"""Marks behind a letter that a price or a fraction may follow."""
_CLOSING = "\xa0–—…“”‘’«»‹›™©®°²³¹·•†‡"

_MARKS = "–—…“”‘’«»‹›®±"
"""Continuation bytes that are marks behind a letter, or a sign, in right text; © and ° are none, as
``Ã©`` is é, a word of Portuguese, and ``20Â°`` is 20°."""

_WINDOWS_1252 = _Page(
    "cp1252",
    # Â ends no word, and Ã only words of Portuguese; Ø and × also stand with numbers.
    rf"Â[\x80-¿]|Ã[{_SIGNS}§©­®°-³´·¹]|(?<![A-ZÀ-Þ])Ã{{C}}|Ã[–“”‘](?=[A-Za-z])"
    rf"|[Ä-ÖÙ-ß][{_SIGNS}](?!\d)|Ø[\x81\x8d\x8f\x90\x9d¡¢¤¥¦¨ª¬¯µ¶¸º¿ƒˆ˜‰ŒœŸ‚„]"
    # A capital letter behind a small one, or a sign between a capital and a small letter.
    r"|(?<=[a-zß-ÿ])[Ä-ÖØ-Þ]{C}|[Â-ÖÙ-Þ][™›‡†²³°®©·¹´§•](?=[a-z])"
    r"|[ÃÅÂÐÑØÎÏÕÞ][šžŠŽ]|â€{C}?|á»[^\xa0–—…](?=[a-z])"
    rf"|[à-ï][{_BEHIND_SMALL}]{{C}}|[à-ï](?![{_BEFORE_SIGN}]){{C}}[{_BEHIND_SMALL}]"
    rf"|[ð-ô][{_BEHIND_SMALL}]{{C}}{{2}}",
)
_CENTRAL = (
    # Ă is Romanian and Ĺ Slovak, and neither language has the letters that follow.
    # In capitals Romanian has Ş behind Ă.
    rf"(?<=[a-z])[ÄÖĂĹĆÇČÉĘËĚÍÎĎĐŃŇÓÔŐŘŮÚŰÜÝŢ]{{C}}|Ă(?![{_CLOSING}]|Ş[A-Z]){{C}}|Ă[–“”‘](?=[A-Za-z])"
    r"|Ĺ[‚„ˇ¸ľżźĽ](?![A-Z])|[ĹÄ][™›](?=[a-z])|â€{C}?"
)
_CYRILLIC = (
    # A Cyrillic capital letter and a sign beside Latin letters, or twice Р or С with one; в and Ђ
    # are of two languages.
    rf"вЂ{{C}}?|(?<=[a-z])[В-Я]{{C}}|[В-Я](?![{_CLOSING}]){{C}}(?=[a-z])"
    r"|[РС](?![а-я]){C}(?=[РС][°±µёѕЅЃЏђќћџ‚ѓ„†‡€‰Љ‹ЊЌЋљ›њЎўЈ¤Ґ¦§Ё©Є¬®Їґ¶№єјї])"
)
_PAGES = (
    _WINDOWS_1252,
    _Page("cp1250", _CENTRAL),
    _Page("iso8859_2", _CENTRAL),
    _Page("cp1251", _CYRILLIC),
    _Page("mac_roman", r"√[©®°¢£§•¶ß´¨¥µºªæø\u00c0-\u00ff](?!\d)|‚Ä{C}|¬[†©®´ª∞]"),
    _Page("cp850", r"[├┬╨╤](?![│┤░▒▓]){C}|ÔÇ{C}"),
    _Page("cp437", r"[├┬╨╤](?![│┤░▒▓]){C}|ΓÇ{C}"),
)

_CUT = re.compile("(?:â€|вЂ)")
"""Two of the three characters of a quotation mark or dash; the third is often lost."""


_MAYBE = re.compile(f"[\u00c2-\u00f4][{_WINDOWS_1252.shown(_CONTINUATION)}]")
"""A lead byte and a continuation byte, which is searched faster than whole sequences."""


def is_mojibake(line: str) -> bool:
    """Whether a line, or a part of it, is UTF-8 that was read in another encoding."""
    if line.isascii():
        return False
    return _CUT.search(line) is not None or any(_mojibake(line, page) for page in _PAGES)


def read_again(line: str) -> str:
    """The line with its mojibake in the letters that were written; other text stays.

    Only what was read as Windows-1252 or Latin-1: other encodings have two readings of a line, as
    ``ź`` is one byte in Windows-1250 and another one in ISO 8859-2.
    """
    for _ in range(_MOST_READINGS):
        found = _mojibake(line, _WINDOWS_1252) if _MAYBE.search(line) else []
        if not found or any(_explains_as_much(line, page, found) for page in _PAGES[1:]):
            break
        parts, end = [], 0
        for start, stop, made in found:
            parts += [line[end:start], made]
            end = stop
        line = "".join((*parts, line[end:]))
    return line


def _explains_as_much(line: str, page: _Page, found: "list[_Found]") -> bool:
    """Whether a page has another reading of the line that is as likely as ``found``."""
    other = _mojibake(line, page)
    if other == found:
        return False
    is_certain = any(_are_certain(line, page, other))
    return _covered(other) > _covered(found) - is_certain


def _covered(found: "list[_Found]") -> int:
    return sum(stop - start for start, stop, _ in found)


_Found = tuple[int, int, str]
"""Where a sequence begins and ends, and the character that it is."""


def _mojibake(line: str, page: _Page) -> list[_Found]:
    found = list(_sequences(line, page))
    if not any(_is_likely(line, each) for each in found):
        return []

    certain = _are_certain(line, page, found)
    is_whole = not _has_other_letters(line, found)
    if any(certain):
        leads = {line[start] for (start, _, _), sure in zip(found, certain, strict=True) if sure}
        return found if is_whole else [each for each in found if line[each[0]] in leads]

    beside = [one for one, other in itertools.pairwise(found) if one[1] == other[0]]
    enough = len(found) >= _LEAST_SEQUENCES or any(stop - start > 2 for start, stop, _ in beside)
    return found if is_whole and beside and enough else []


def _is_likely(line: str, found: _Found) -> bool:
    """Whether a sequence is no letter with a mark behind it, as in ``“Ã”`` and ``1,5 Å± 0,1``.

    In a word it is none, but a small letter behind a capital is none of the same word: ``IRMÃ®``.
    """
    start, stop, made = found
    if stop - start > 2 or not line[start].isalpha() or line[start + 1] not in _MARKS:
        return True
    before, behind = line[start - 1 : start], line[stop : stop + 1]
    is_of_capitals = before.isupper() and (made.isupper() or made == "ß")
    return behind.isalpha() or before.islower() or is_of_capitals


def _are_certain(line: str, page: _Page, found: list[_Found]) -> list[bool]:
    shown = line.translate(C1_IN_WINDOWS)
    return [page.certain_ones.match(shown, start) is not None for start, _, _ in found]


def _sequences(line: str, page: _Page) -> Iterator[_Found]:
    for match in page.sequences.finditer(line):
        made = page.read(match[0])
        if made is not None:
            yield match.start(), match.end(), made


def _has_other_letters(line: str, found: list[_Found]) -> bool:
    """Whether a letter beyond ASCII is in no sequence; a lead byte that lost its space is none."""
    ends = [0, *(stop for _, stop, _ in found)]
    starts = [*(start for start, _, _ in found), len(line)]
    rest = "\0".join(line[end:start] for end, start in zip(ends, starts, strict=True))
    return any(
        each.isalpha() and not each.isascii() and following not in " \0"
        for each, following in zip(rest, f"{rest[1:]} ", strict=True)
    )


def maybe_mojibake(text: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Positions in UTF-8 where a lead byte and a continuation byte may stand as characters."""
    leads = np.flatnonzero(_FIRST_BYTES[text])
    following = np.append(text, np.zeros(4, np.uint8))
    pairs = following[leads].astype(np.uint16) << 8 | following[leads + 1]
    lengths = _LEAD_LENGTHS[pairs]
    leads, lengths = leads[lengths > 0], lengths[lengths > 0]
    seconds = following[leads + lengths].astype(np.uint16) << 8 | following[leads + lengths + 1]
    places: npt.NDArray[np.int64] = leads[_CONTINUES[seconds]]
    return places


def _pair(character: str) -> int:
    return int.from_bytes(character.encode()[:2])


def _tables() -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.uint8], npt.NDArray[np.bool_]]:
    """Return the first bytes of characters that show a lead byte, by its first two bytes how many
    bytes such a character has, and which two bytes begin one that shows a continuation byte."""
    first = np.zeros(256, np.bool_)
    lengths = np.zeros(1 << 16, np.uint8)
    continues = np.zeros(1 << 16, np.bool_)
    for page in _PAGES:
        for character, code in page.bytes_of.items():
            if code in _CONTINUATION:
                continues[_pair(character)] = True
            elif code >= _LEADS[2][0]:
                encoded = character.encode()
                first[encoded[0]] = True
                lengths[_pair(character)] = len(encoded)
    return first, lengths, continues


_FIRST_BYTES, _LEAD_LENGTHS, _CONTINUES = _tables()
