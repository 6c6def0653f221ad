"""The signs before the letters that choose a command by its key, ``E&xit`` and ``_Save``: a text is
read without its sign, and the translation gets it again.
"""

import dataclasses
import re
from collections import Counter
from collections.abc import Sequence

from pellucid.documents.protected import literals_in
from pellucid.documents.segments import Document, Segment, check_count, overlapping, segment_of

_LETTER = r"[^\W\d_]"
_KEY = re.compile(
    r"[ ]?\((?P<own>[&_])(?P<alone>[A-Za-z])\)"
    rf"|(?<![^\s(\[\"'“«/-])(?P<before>{_LETTER}*)(?P<sign>[&_])"
    rf"(?P<letter>{_LETTER})(?=(?P<rest>{_LETTER}*)(?:[^\w;=/@&]|\Z))"
)
"""``&Open``, ``E&xit``, and the ``(&O)`` of Chinese, Japanese and Korean."""
_FEWEST = {"&": 1, "_": 2}
"""By sign, the texts of a file that begin a name with it, from which on it is that of keys."""
_SHORTEST_WORD = 4
"""Letters on both sides of a sign between two words."""
_LONGEST = 100
"""Characters of the text of a command."""
_END = re.compile(r"\s*(?:\.{3}|[….:：])?\s*\Z")


@dataclasses.dataclass(frozen=True)
class _Key:
    """A sign with its letter, the piece of a segment that it stands in, and what is taken out."""

    sign: str
    letter: str
    piece: int
    start: int
    stop: int
    begins_name: bool
    """Whether the word that it stands in begins with it and a capital, or with ``&``."""


class AccessKeyDocument:
    """A document of strings, read without the signs of their keys."""

    def __init__(self, document: Document) -> None:
        self._document, self.notes = document, document.notes
        keys = [_key_of(segment) for segment in document.segments]
        begins = Counter(key.sign for key in keys if key and key.begins_name)
        self._keys = [
            key if key and begins[key.sign] >= _FEWEST[key.sign] else None for key in keys
        ]
        self.segments = [
            _without(segment, key) if key else segment
            for segment, key in zip(document.segments, self._keys, strict=True)
        ]

    def write(self, translated: Sequence[Segment]) -> bytes:
        """The document with other texts, each with the sign that it had."""
        check_count(translated, self.segments)
        found = zip(self._document.segments, self.segments, translated, self._keys, strict=True)
        return self._document.write(
            [
                (source if before == after else _with(after, key)) if key else after
                for source, before, after, key in found
            ]
        )


def _key_of(segment: Segment) -> _Key | None:
    """The key of a text, if it has one sign."""
    text = segment.text
    if not ("&" in text or "_" in text) or len(text) > _LONGEST:
        return None
    for number, piece in enumerate(segment.pieces):
        found = _KEY.search(piece) if isinstance(piece, str) else None
        if found is None:
            continue
        sign, letter = found["own"] or found["sign"], found["alone"] or found["letter"]
        before, rest = found["before"] or "", letter + (found["rest"] or "")
        is_of_two = bool(before) and min(len(before), len(rest)) >= _SHORTEST_WORD
        if text.count(sign) > 1 or is_of_two or (before and not letter.islower()):
            return None  # Drag&drop, AT&T
        start, stop = found.span() if found["own"] else found.span("sign")
        is_first = not before and (sign == "&" or letter.isupper())
        return _Key(sign, letter, number, start, stop, is_first)
    return None


def _without(segment: Segment, key: _Key) -> Segment:
    """A segment without the sign of its key."""
    pieces = list(segment.pieces)
    piece = pieces[key.piece]
    assert isinstance(piece, str)
    pieces[key.piece] = piece[: key.start] + piece[key.stop :]
    return segment_of(pieces)


def _with(segment: Segment, key: _Key) -> Segment:
    """A segment with the sign before the same letter, if it has that, at the beginning of a word if
    it can be, or before its first letter; behind the text in a script without capitals.
    """
    if key.sign in segment.text:
        return segment  # the model gave it one

    letter = re.escape(key.letter)
    patterns = (rf"(?<![\w'’]){letter}", letter, _LETTER)
    for pattern in (re.compile(each, re.IGNORECASE) for each in patterns):
        for number, piece in enumerate(segment.pieces):
            if not isinstance(piece, str):
                continue
            literals = literals_in(piece)
            for found in pattern.finditer(piece):
                at = found.start()
                is_cased = found[0].lower() != found[0].upper()
                if is_cased and not overlapping(literals, at, at + 1):
                    return _inserted(segment, number, at, key.sign)

    texts = [n for n, each in enumerate(segment.pieces) if isinstance(each, str) and each.strip()]
    if not texts:
        return segment
    piece = segment.pieces[texts[-1]]
    assert isinstance(piece, str)
    end = _END.search(piece)
    assert end is not None
    return _inserted(segment, texts[-1], end.start(), f"({key.sign}{key.letter.upper()})")


def _inserted(segment: Segment, number: int, at: int, text: str) -> Segment:
    """A segment with a text within one of its pieces."""
    pieces = list(segment.pieces)
    piece = pieces[number]
    assert isinstance(piece, str)
    pieces[number] = piece[:at] + text + piece[at:]
    return Segment(tuple(pieces))
