"""Templates in HTML: their statements are read as text and written with the signs they have."""

import array
import html
import re
from collections.abc import Iterator, Sequence

from pellucid.documents.protected import literals_in
from pellucid.documents.segments import Span

_OPENING = re.compile(r"<%|<\?(?:php\b|=)|\{\{|\{%")
_CLOSING = {"<%": "%>", "<?": "?>", "{{": "}}", "{%": "%}"}
_ENDS_COMMENT = re.compile("-->")
_OF_HTML = re.compile(r"-->|<[/!?A-Za-z]|[\"']\s*/?>")
"""The signs of tags, which are no part of a statement between braces."""
_LONGEST = {"<": 2000, "{": 300}
"""Characters of a statement, by its first one."""
_SIGNS = re.compile(r"[<>&\"']")
_BLANKS = re.compile(r"[ \t\r\n\f]+")
_PRIVATE_USE = range(0xE000, 0xF900)
_REFERENCE = re.compile(r"&(?:#[0-9]+;?|#[xX][0-9a-fA-F]+;?|[A-Za-z][A-Za-z0-9]{0,31};?)")


def without_signs(source: str) -> str:
    """The source with letters for the signs of HTML in the statements of templates, so that each
    is text, or a part of a tag; every place stays.
    """
    if not any(sign in source for sign in ("<%", "<?", "{{", "{%")):
        return source
    used = set(source)
    letter = next((chr(code) for code in _PRIVATE_USE if chr(code) not in used), "")
    if not letter:
        return source

    parts: list[str] = []
    at = 0
    for start, end in _statements(source):
        parts += [source[at:start], _SIGNS.sub(letter, source[start:end])]
        at = end
    return "".join([*parts, source[at:]])


def _statements(source: str) -> Iterator[Span]:
    """Where the statements of templates begin and end; of PHP, within its instruction."""
    closings: dict[str, int] = {}
    at = 0
    while found := _OPENING.search(source, at):
        sign, at = found[0][:2], found.end()
        if closings.get(sign, 0) < at:
            place = source.find(_CLOSING[sign], at)
            closings[sign] = place if place >= 0 else len(source) + max(_LONGEST.values())
        end = closings[sign]
        never = _ENDS_COMMENT if sign[0] == "<" else _OF_HTML
        if end - at >= _LONGEST[sign[0]] or never.search(source, at, end):
            continue
        is_php = sign == "<?"
        yield (found.start() + 2, end + 1) if is_php else (found.start(), end + 2)
        at = end + 1 if is_php else end + 2


class SourceLiterals:
    """The stretches of a text of HTML that are not translated, as its source has them."""

    def __init__(self, sources: Sequence[str]) -> None:
        """``sources`` are the texts with their references, such as ``&amp;``."""
        self._written: dict[str, list[str]] = {}
        """By stretch, the ways in which the source has it, in order."""
        for source in sources:
            if _SIGNS.search(source):
                for text, raw in _literals_of(source):
                    self._written.setdefault(text, []).append(raw)
        longest_first = sorted(self._written, key=len, reverse=True)
        self._pattern = re.compile(f"({'|'.join(map(re.escape, longest_first))})")

    def escaped(self, text: str, *, quote: bool = False) -> str:
        """A text of a translation as HTML: references for signs, but for those stretches."""
        if not self._written:
            return html.escape(text, quote=quote)
        parts = self._pattern.split(text)
        for number, part in enumerate(parts):
            parts[number] = self._next(part) if number % 2 else html.escape(part, quote=quote)
        return "".join(parts)

    def _next(self, literal: str) -> str:
        """A stretch in the next of the ways in which the source has it."""
        ways = self._written[literal]
        return ways.pop(0) if len(ways) > 1 else ways[0]


def _literals_of(source: str) -> Iterator[tuple[str, str]]:
    """Each stretch that is not translated, as it is read and as the source has it."""
    shown = html.unescape(source)
    # White space is read as a browser shows it, or with the ends of its lines.
    one_line = _BLANKS.sub(" ", shown)
    for text in (one_line, shown) if "\n" in shown else (one_line,):
        literals = literals_in(text)
        places = _places(source) if literals else array.array("q")
        if len(places) != len(shown) + 1:
            continue

        at = 0
        for start, end in literals:
            words = r"[ \t\r\n\f]+".join(map(re.escape, _BLANKS.split(text[start:end])))
            found = re.compile(words).search(shown, at)
            if found is not None:
                at = found.end()
                yield text[start:end], source[places[found.start()] : places[at]]


def _places(source: str) -> "array.array[int]":
    """The place of each character that a source shows, and of its end."""
    places = array.array("q")
    at = 0
    for found in _REFERENCE.finditer(source):
        places.extend(range(at, found.start()))
        places.extend([found.start()] * len(html.unescape(found[0])))
        at = found.end()
    places.extend(range(at, len(source) + 1))
    return places
