"""Plain text, and strings of programs that may hold tags."""

import dataclasses
import html
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import AnyStr, Literal

from pellucid.core.errors import DataError
from pellucid.core.texts import TO_UTF_8
from pellucid.documents.containers import check_size
from pellucid.documents.html_parser import PlacedParser
from pellucid.documents.html_roles import READ_AS_WORDS, element_says
from pellucid.documents.html_rules import BLOCKS
from pellucid.documents.segments import (
    Alone,
    Close,
    Kind,
    Open,
    Piece,
    Segment,
    overlapping,
    segment_of,
)
from pellucid.documents.wrapped import Paragraph, wrapped_paragraphs
from pellucid.text.corpus.dialects import BYTE_ORDER_MARKS, byte_order_mark


def decode(data: bytes, what: str) -> tuple[str, str]:
    """The text of a file and its encoding: UTF-8, or the one of its byte order mark.

    An encoding that ends in ``-sig`` has a byte order mark. Raises DataError.
    """
    check_size(data, what)
    mark, codec = byte_order_mark(data)
    try:
        return data[len(mark) :].decode(codec), f"{codec}-sig" if mark else codec
    except UnicodeDecodeError as error:
        raise DataError(
            f"{what} must be text in UTF-8: byte {len(mark) + error.start + 1} is not",
            hint=TO_UTF_8,
        ) from None


def encode(text: str, encoding: str) -> bytes:
    """Text as ``decode`` read it."""
    codec = encoding.removesuffix("-sig")
    marks = {name: mark for mark, name in BYTE_ORDER_MARKS.items()}
    return (marks[codec] if codec != encoding else b"") + text.encode(codec)


def edited(source: AnyStr, edits: Iterable[tuple[int, int, AnyStr]]) -> AnyStr:
    """A text, or the bytes of one, with some stretches replaced."""
    parts: list[AnyStr] = []
    at = 0
    for start, stop, new in sorted(edits, key=lambda each: each[:2]):
        parts += [source[at:start], new]
        at = stop
    parts.append(source[at:])
    return source[:0].join(parts)


class TextDocument:
    """Plain text: each line with words is a segment, or each wrapped paragraph, with what is around
    it kept.
    """

    notes: Sequence[str] = ()

    def __init__(self, data: bytes, what: str) -> None:
        """Raises DataError for what is not text."""
        text, self._encoding = decode(data, what)

        self._around: list[str] = []
        """The text before, between and behind the segments."""
        self.segments: list[Segment] = []
        self._wrapped: dict[int, tuple[Paragraph, str]] = {}
        """By segment: a paragraph of several lines, and its source."""
        waiting: list[str] = []

        lines = text.splitlines(keepends=True)
        paragraphs = wrapped_paragraphs(lines)
        at = 0
        while at < len(lines):
            paragraph = paragraphs.get(at)
            first, at = at, paragraph.stop if paragraph else at + 1
            source = "".join(lines[first:at])
            words = source[paragraph.start if paragraph else 0 :].strip()
            if not words:
                waiting.append(source)
                continue

            start = source.index(words)
            self._around.append("".join([*waiting, source[:start]]))
            if paragraph:
                self._wrapped[len(self.segments)] = paragraph, words
            self.segments.append(Segment((paragraph.text if paragraph else words,)))
            waiting = [source[start + len(words) :]]

        self._around.append("".join(waiting))

    def write(self, translated: Sequence[Segment]) -> bytes:
        """The file with other lines."""
        written = self._around[:1]
        each = zip(self.segments, translated, self._around[1:], strict=True)
        for number, (before, after, around) in enumerate(each):
            text = after.text
            if number in self._wrapped:
                paragraph, source = self._wrapped[number]
                text = source if before == after else paragraph.written(text)
            written += [text, around]
        return encode("".join(written), self._encoding)


@dataclasses.dataclass(frozen=True)
class Tag:
    """A tag in a string, or what stays as a tag does."""

    start: int
    stop: int
    kind: Literal["start", "end", "alone", "time"]
    name: str = ""
    role: Kind = "format"
    """The role of its element in a sentence."""
    text: str = ""
    """How a whole element is read, such as code."""
    breaks: bool = False
    """Whether a sentence ends at it, as at a line end or at the beginning of a paragraph."""


_ENTITY = re.compile(r"&(?:[A-Za-z][A-Za-z0-9]{1,31}|#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6});")


class Entities:
    """The references of HTML in a text, such as ``&amp;``: read as characters, written as they
    were.
    """

    def __init__(self, text: str) -> None:
        self._written: dict[str, str] = {}
        """By character, the first reference to it."""
        kept: set[str] = set()
        """References to characters that the text has without one too, such as the ``&amp;`` in
        "& is &amp;": they are what the text is about, and stay as they are."""
        without = _ENTITY.sub("", text) if "&" in text else text
        for found in _ENTITY.finditer(text) if "&" in text else ():
            character = html.unescape(found[0])
            if character == found[0] or len(character) > 1:
                continue
            if character in without:
                kept.add(found[0])
            else:
                self._written.setdefault(character, found[0])

        signs = {sign: each for sign, each in _SIGNS.items() if each not in kept}
        self._table = {**dict.fromkeys(kept), **signs, **self._written}
        """The writing of each character; None for a reference that stays."""
        self._signs = re.compile("|".join(map(re.escape, self._table)))

    def __bool__(self) -> bool:
        """Whether there is one."""
        return bool(self._written)

    def read(self, text: str) -> str:
        """The text with characters for references."""
        if not self:
            return text
        return _ENTITY.sub(
            lambda found: found[0] if found[0] in self._table else html.unescape(found[0]), text
        )

    def written(self, text: str) -> str:
        """The text with references where the first one had them, and for signs of HTML."""
        if not self:
            return text
        return self._signs.sub(lambda found: self._table[found[0]] or found[0], text)


_SIGNS = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


class TaggedText:
    """A string that may hold tags, as programs and subtitles have them: ``Press <b>Start</b>``.

    One with a reference such as ``&amp;`` is HTML: it is read as its character.
    """

    def __init__(
        self, text: str, *, kept: re.Pattern[str] | None = None, has_entities: bool | None = None
    ) -> None:
        """``kept`` is what stays as a tag does; its groups may be ``br``, the end of a line, and
        ``start`` and ``end``, those of a stretch with the name that they have. ``has_entities``
        says that the text is HTML, or that it is not; without it a reference does.
        """
        self._kept = kept
        self._sources: dict[int, str] = {}
        self._closings: dict[int, str] = {}
        patterns = [_OF_FRAMEWORKS, kept or _WRITTEN]
        has_marks = "<" in text or any(pattern.search(text) for pattern in patterns)
        pieces: tuple[Piece, ...] = (text,)
        if has_marks:
            pieces = tuple(without_outer_breaks(list(self._pieces(text))))
        read = "" if has_entities is False else "".join(p for p in pieces if isinstance(p, str))
        # A text that is HTML in any case writes its signs so, also if it had none.
        self._entities = Entities(f"{read}&amp;" if has_entities else read)
        self.segment = segment_of(
            self._entities.read(p) if isinstance(p, str) else p for p in pieces
        )

    def text_with(self, translated: Segment) -> str:
        """The string with another segment; tags are written as they were."""
        written = []
        for piece in translated.pieces:
            if isinstance(piece, str):
                written.append(self._entities.written(piece))
            elif isinstance(piece, Close):
                written.append(self._closings[piece.number])
            else:
                written.append(self._sources[piece.number])
        return "".join(written)

    def _pieces(self, text: str) -> Iterator[Piece]:
        tags = _tags_with(text, self._kept or _WRITTEN)

        # Tags that have a partner are pairs; each of the others stands alone.
        partner: dict[int, int] = {}
        opened: list[int] = []
        for number, tag in enumerate(tags):
            if tag.name in BLOCKS:
                continue
            if tag.kind == "start" and len(opened) < _DEEPEST:
                opened.append(number)
            elif tag.kind == "end":
                for depth in range(1, len(opened) + 1):
                    name = tags[opened[-depth]].name
                    # In WebVTT ``<c.yellow>`` ends at ``</c>``.
                    if name == tag.name or name.startswith(f"{tag.name}."):
                        partner[opened[-depth]] = number
                        del opened[-depth:]
                        break

        closing = {end: start for start, end in partner.items()}
        at = 0
        for number, tag in enumerate(tags):
            if tag.start > at:
                yield text[at : tag.start]
            raw = text[tag.start : tag.stop]
            if number in partner:
                self._sources[number] = raw
                yield Open(number, tag.role)
            elif number in closing:
                self._closings[closing[number]] = raw
                yield Close(closing[number])
            else:
                self._sources[number] = raw
                is_timed = tag.kind == "time"
                yield Alone(number, tag.text, breaks=tag.breaks, in_order=is_timed)
            at = tag.stop
        if at < len(text):
            yield text[at:]


def _tags_with(text: str, kept: re.Pattern[str]) -> list[Tag]:
    """The tags of a text, with what stays as they do; each says whether a sentence ends at it."""
    marks = [_tag_that_stays(each) for each in kept.finditer(text)]
    tags = _without_overlaps(sorted([*_tags_of(text), *marks], key=lambda tag: tag.start))
    closed = {tag.name for tag in tags if tag.kind == "end"}
    return [
        dataclasses.replace(tag, breaks=ends_sentence(tag.name, text[tag.start : tag.stop], closed))
        for tag in tags
    ]


def _tag_that_stays(found: re.Match[str]) -> Tag:
    """The tag for what stays as one does."""
    group = found.lastgroup
    if group == "start":
        return Tag(*found.span(), "start", found["start"].lower())
    if group == "end":
        return Tag(*found.span(), "end", found["end"].lower())
    return Tag(*found.span(), "time", group or "")


def _without_overlaps(tags: Sequence[Tag]) -> list[Tag]:
    """The tags, without those that begin within another."""
    outermost: list[Tag] = []
    for tag in tags:
        if not outermost or tag.start >= outermost[-1].stop:
            outermost.append(tag)
    return outermost


_MODIFIER = r"(?:Ctrl|Control|Strg|Alt|AltGr|Shift|Cmd|Command|Meta|Super|Win|Opt|Option)"
_LINE_ENDS = r"(?:(?:\\r)?\\n)+(?:\\t)*"
_NO_LINE = (
    r"[a-z'\"`)\]}*+,;:!?]|\.(?![.\w])|\\[nrt]"
    r"|[ ](?:[a-z\u00df-\u00ff\u03ac-\u03ce\u0430-\u045f]|[,;:!?)\]}=|/*+]|\.(?![.\w])"
    r"|[B-HJ-Z](?![\w'’]))"
)
"""The beginning of what stands behind a written line end in a text about line ends, as in
"Matches a\\n or b\\n, c", and behind ``\\n`` in a path of Windows."""
_WRITTEN = re.compile(
    # A line end in a program's words, and no name in a path of Windows or in a text about it
    rf"(?P<br>(?<=[.!?…]){_LINE_ENDS}|(?<=\w\w[:;]){_LINE_ENDS}(?=[ ])"
    r"|(?:\A|(?<=[^\s\\'\"`(\[/])(?<!\b[A-Za-z]:)(?<!\\[nr])|(?<=[.!?:;][ ]))"
    rf"{_LINE_ENDS}(?!{_NO_LINE}))"
    # The keys for a command of a menu
    rf"|(?<!\t)(?<=\S)\t(?:{_MODIFIER}[ ]?[+-][ ]?|<{_MODIFIER}>|[⌃⌥⇧⌘]){{1,4}}"
    r"(?:[A-Z][A-Za-z]{1,9}|F\d{1,2}|[^\s\w]|\w)\Z"
    r"|(?<=\S)\t(?:F\d{1,2}|Del(?:ete)?|Ins(?:ert)?|Esc(?:ape)?|Enter|Backspace|PgUp|PgDn|\S)\Z"
)
"""Parts of the strings of programs that stay: ``\\n`` as two characters, and keys behind a tab."""
_OFTEN_OPEN = frozenset(("br", "hr", "p", "li", "dt", "dd", "tr", "td", "th"))
"""Tags that end a sentence without an end tag too."""
_ATTRIBUTE = re.compile(r"\s[\w:-]+\s*=")


def ends_sentence(name: str, source: str, closed: Collection[str]) -> bool:
    """Whether a sentence ends at a tag: a line end, or one of an element that begins a line.

    ``closed`` are the names of the end tags around it. A name alone may be one of a program, as in
    "move <dir> to <template>".
    """
    if name in _OFTEN_OPEN:
        return True
    return name in BLOCKS and (name in closed or _ATTRIBUTE.search(source) is not None)


def without_outer_breaks(pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces, of which none ends a sentence before the first word or behind the last one."""
    words = [
        number
        for number, piece in enumerate(pieces)
        if (piece.strip() if isinstance(piece, str) else isinstance(piece, Alone) and piece.text)
    ]
    first, last = (words[0], words[-1]) if words else (0, 0)
    return [
        dataclasses.replace(piece, breaks=False)
        if isinstance(piece, Alone) and not piece.text and not first < number < last
        else piece
        for number, piece in enumerate(pieces)
    ]


_OF_FRAMEWORKS = re.compile(
    r"<(?P<slash>/?)(?P<number>\d{1,3})[ ]?(?P<alone>/?)>|(?P<data><!\[CDATA\[.{0,1000}?\]\]>)"
    r"|\{(?:\$(?P<side>start|close)|\$?(?P<SIDE>START|CLOSE)_)(?P<name>\w{1,60})\}"
)
"""Tags of react-i18next and Lingui, ``<0>text</0>``; sections of XML, whose text stays; and in the
JSON files of Angular:
``{$startTagB}text{$closeTagB}``, ``{START_LINK}text{CLOSE_LINK}``."""
_RUBY = re.compile(r"%<\w{1,60}>[-+0# ]*\d*(?:\.\d+)?[bcdeEfgGiosuxX](?![A-Za-z])")
_OF_SPHINX = re.compile(
    r":[\w.+:-]{1,40}:`[^`]{1,300}`|(?<!`)`(?!`)[^`<>]{0,200}<[^<>`]{1,300}>`__?(?!\w)"
)
"""Roles and links of reStructuredText, whose target is no tag: ``:ref:`text <target>```."""
_OPAQUE = frozenset(("xliff:g", *READ_AS_WORDS, "rt", "rp"))
"""Around what translators must not change: the first in strings of Android, others as in HTML."""


def _tags_of(text: str) -> list[Tag]:
    """The tags of a string; an element whose text stays is one of them."""
    reader = _TagReader(text)
    reader.read()
    closed = {tag.name for tag in reader.found if tag.kind == "end"}
    targets = [each.span() for each in _OF_SPHINX.finditer(text)] if "`" in text else []
    tags = [
        tag
        for tag in reader.found
        # a placeholder such as ``%<count>d`` is never closed
        if (tag.name in closed or not (tag.start and _RUBY.match(text, tag.start - 1)))
        and not overlapping(targets, tag.start, tag.start)
    ]
    if others := [_tag_of(found) for found in _OF_FRAMEWORKS.finditer(text)]:
        tags = _without_overlaps(sorted([*others, *tags], key=lambda tag: tag.start))
    ends: dict[str, list[int]] = {}
    """By name, the ends of elements that stay, of which the nearest comes last."""
    for number, tag in reversed(list(enumerate(tags))):
        if tag.name in _OPAQUE and tag.kind == "end":
            ends.setdefault(tag.name, []).append(number)

    whole: list[Tag] = []
    at = 0
    while at < len(tags):
        tag = tags[at]
        at += 1
        if tag.name in ends and tag.kind == "start":
            waiting = ends[tag.name]
            while waiting and waiting[-1] < at:
                waiting.pop()
            if waiting:
                # Everything up to its end is part of it.
                last = tags[waiting.pop()]
                reads = "" if tag.name in ("rt", "rp") else text[tag.stop : last.start]
                reads = re.sub(r"<[^<>]*>", "", reads)
                tag = dataclasses.replace(tag, stop=last.stop, kind="alone", text=reads)
                while at < len(tags) and tags[at].start < tag.stop:
                    at += 1
        whole.append(tag)
    return whole


def _tag_of(found: re.Match[str]) -> Tag:
    """The tag of a framework."""
    is_end = found["slash"] or (found["side"] or found["SIDE"] or "").lower() == "close"
    kind: Literal["start", "end", "alone"] = (
        "alone" if found["alone"] or found["data"] else "end" if is_end else "start"
    )
    name = found["name"] or ""
    block = _OF_ANGULAR.fullmatch(name)
    if block is not None:
        # A name of a block, by which it ends a sentence, whatever block it is.
        name = "p"
    return Tag(*found.span(), kind, found["number"] or name)


_OF_ANGULAR = re.compile(
    r"(?:paragraph|heading_?level\d|(?:un)?ordered_?list|list_?item"
    r"|table_?(?:body|cell|footer|header|header_?cell|row)"
    r"|tag_?(?:div|section|article|header|footer|main|nav|table|dl|dt|dd|blockquote|pre|form))"
    r"(?:_?\d+)?",
    re.IGNORECASE,
)
"""Names of Angular for elements that begin a line: ``START_PARAGRAPH``, ``startTagDiv``."""


_DEEPEST = 60
"""Tags within each other; one within more stands alone."""


class _TagReader(PlacedParser):
    """Finds tags: where each begins and ends."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.found: list[Tag] = []

    def _add(
        self,
        kind: Literal["start", "end", "alone"],
        tag: str,
        attributes: Sequence[tuple[str, str | None]] = (),
    ) -> None:
        start = self.place
        stop = self.source.find(">", start) + 1
        raw = self.get_starttag_text()
        if kind != "end" and raw is not None:
            stop = start + len(raw)
        self.found.append(Tag(start, stop, kind, tag, element_says(tag, attributes).role))

    def parse_starttag(self, i: int) -> int:
        """Read a start tag; what is in a ``script`` has tags here as anything else."""
        end = super().parse_starttag(i)
        self.clear_cdata_mode()
        return end

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._add("start", tag, attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        self._add("alone", tag)

    def handle_endtag(self, tag: str) -> None:
        self._add("end", tag)


def divide_at_tags(text: str) -> list[tuple[str, Tag | None]]:
    """A text in parts: its tags, which are kept, and what is between them."""
    if "<" not in text and not _WRITTEN.search(text):
        return [(text, None)]
    parts: list[tuple[str, Tag | None]] = []
    at = 0
    for tag in _tags_with(text, _WRITTEN):
        parts += [(text[at : tag.start], None), (text[tag.start : tag.stop], tag)]
        at = tag.stop
    return [(part, tag) for part, tag in [*parts, (text[at:], None)] if part]
