"""Signs that are written in several ways, for a vocabulary that knows only one of them.

A word processor writes ’ “ ” and – where a corpus has ' " and -, or the other way round. A
tokenizer spells a sign that its text never had in bytes, or has no token for it, and a model reads
that as noise: of the lines of Multi30k's test text 23 have ' or ", and with the curly signs in
their place they lost 6 BLEU. Such a sign is read as the nearest one that the vocabulary has.

What the vocabulary has is never replaced.
"""

import dataclasses
import functools
import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import Self

from pellucid.core.texts import words_in
from pellucid.text.edits import Edited, edited

SINGLE = "'’‘‚‛ʼʻʹ′׳՚`´‹›"
"""Apostrophes and single quotation marks."""
DOUBLE = '"“”„‟«»″〝〞״'
"""Double quotation marks."""
_ALIKE = {
    **dict.fromkeys(SINGLE, ("'", "’")),
    "–": ("-", "—"),
    "—": ("–", "-"),
    "‒": ("–", "-"),
    "―": ("—", "–", "-"),
    "−": ("-", "–"),
    "-": ("–",),
    "。": (".",),
    "、": (",",),
    "〜": ("~",),
    "‥": ("..",),
    # letters of Romanian with a comma below, and of Persian, which older keyboards lack
    **{"ș": ("ş",), "ț": ("ţ",), "Ș": ("Ş",), "Ț": ("Ţ",)},
    **{"ş": ("ș",), "ţ": ("ț",), "Ş": ("Ș",), "Ţ": ("Ț",)},
    **{"ي": ("ی",), "ك": ("ک",), "ی": ("ي",), "ک": ("ك",), "ى": ("ی", "ي")},
}
"""For each sign the signs that may stand for it, the nearest first."""
_OPENING, _CLOSING = ('"', "„", "“", "«"), ('"', "”", "“", "»")
"""Signs that may stand for a double quotation mark that opens, or closes, a quotation."""
_OPENS_BEHIND = re.compile(r"[\s(\[{—–-]")

C1_IN_WINDOWS = {
    code: meant for code in range(0x80, 0xA0) if (meant := bytes([code]).decode("cp1252", "ignore"))
}
"""The C1 controls, by their numbers, that are signs of Windows-1252 in truth, as browsers read
them: ’ for U+0092. Five are not."""
_OF_WINDOWS = {chr(code): meant for code, meant in C1_IN_WINDOWS.items() if code != 0x85}
"""The same by themselves, without a line end."""

_SAME = words_in("<wide> <narrow> <compat> <font> <square> <isolated> <initial> <medial> <final>")
"""Compatibility decompositions that are only another form. ², ½ and ① mean something else."""
_ASCII = frozenset(map(chr, range(0x21, 0x7F)))
VOICED = "\uff9e\uff9f"
"""Marks of half-width Japanese, which belong to the letter before them."""


@dataclasses.dataclass(frozen=True)
class LookAlikes:
    """The signs that a vocabulary does not have, with what is read in their place."""

    signs: dict[str, tuple[str, str]]
    """For each sign what stands for it where it opens a quotation, and elsewhere."""
    pattern: re.Pattern[str]
    """Matches one of them."""

    def __call__(self, text: str) -> Edited:
        """The text with what stands for its signs, and how far its characters are moved by it."""
        return edited(self.pattern, functools.partial(self._replaced, text), text)

    @classmethod
    def of(cls, known: frozenset[str], read: Callable[[str], str], *, has_bytes: bool) -> Self:
        """The signs that are not among the ``known`` characters of a vocabulary.

        ``read`` is the normalization of its tokenizer. With ``has_bytes`` it spells any other
        character in bytes: one of ASCII is then one token, which may have been learned.
        """
        spelled = known | _ASCII if has_bytes else known
        signs = {}
        for sign, meant, texts in _all_signs():
            if sign in known:
                continue
            also = known if sign.isascii() else spelled
            found = [meant]
            if meant not in known:
                found = [_first_of(each, known) or _first_of(each, also) or meant for each in texts]
            # a sign that normalization replaces is read as what it becomes
            if (found[0], found[-1]) != (sign, sign) and read(meant) == meant:
                signs[sign] = (found[0], found[-1])
        listed = "".join(map(re.escape, signs))
        return cls(signs, re.compile(f"[{listed}][{VOICED}]?" if signs else "(?!)"))

    def _replaced(self, text: str, found: re.Match[str]) -> str:
        sign, mark = found[0][0], found[0][1:]
        if mark:
            return unicodedata.normalize("NFKC", found[0])
        before = text[: found.start()][-1:]
        opens = not before or _OPENS_BEHIND.match(before) is not None
        return self.signs[sign][0 if opens else 1]


_Texts = tuple[str, ...]
"""The texts that may stand for a sign, the nearest first."""


def _first_of(texts: _Texts, known: frozenset[str]) -> str | None:
    """The first text of which each character is known."""
    for text in texts:
        if known.issuperset(text):
            return text
    return None


def _candidates(sign: str) -> tuple[_Texts, ...]:
    """The texts that may stand for a sign; where it opens a quotation, and elsewhere, if others."""
    if sign in DOUBLE:
        return _OPENING, _CLOSING
    if sign in _ALIKE:
        return (_ALIKE[sign],)
    if sign.isascii():
        return ((chr(ord(sign) + 0xFEE0),),)
    if sign.isdecimal():
        return ((str(unicodedata.decimal(sign)),),)
    return ((unicodedata.normalize("NFKC", sign),),)


@functools.cache
def _all_signs() -> list[tuple[str, str, tuple[_Texts, ...]]]:
    """Every sign that something may stand for, what it means, and what may stand for that."""
    meant = {sign: _OF_WINDOWS.get(sign, sign) for sign in _enumerate_signs()}
    return [(sign, each, _candidates(each)) for sign, each in meant.items()]


def _enumerate_signs() -> Iterator[str]:
    yield from DOUBLE
    yield from _ALIKE
    yield from _OF_WINDOWS
    yield from "!(),:;?"  # beside wide characters they are wide
    for code in range(0xA0, 0x20000):
        sign = chr(code)
        form = unicodedata.decomposition(sign)
        is_other_form = form != "" and form.split(" ")[0] in _SAME
        # a form with a space in it is an accent that stands alone
        if sign.isdecimal() or (is_other_form and " " not in unicodedata.normalize("NFKC", sign)):
            yield sign
