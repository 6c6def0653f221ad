"""HTML and XHTML: every byte stays but the text between tags.

Read with the parser of the standard library, which says where each tag begins, so that what is not
translated is copied and not written again.
"""

import dataclasses
import html
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from pellucid.core.errors import DataError
from pellucid.documents.attributes import Attribute, attributes_of, readable_attributes
from pellucid.documents.containers import LARGEST_TEXT
from pellucid.documents.html_encodings import CONVERT, encoding_of
from pellucid.documents.html_parser import PlacedParser
from pellucid.documents.html_roles import READ_AS_WORDS, element_says
from pellucid.documents.plain import byte_order_mark
from pellucid.documents.segments import Alone, Close, Kind, Open, Piece, Segment

_BLOCKS = frozenset(
    (
        *("html", "head", "body", "title", "base", "template", "frame", "frameset", "noframes"),
        *("address", "article", "aside", "blockquote", "center", "dd", "details", "dialog", "dir"),
        *("div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2"),
        *("h3", "h4", "h5", "h6", "header", "hgroup", "hr", "legend", "li", "listing", "main"),
        *("marquee", "menu", "nav", "ol", "optgroup", "option", "p", "plaintext", "pre", "search"),
        *("section", "summary", "ul", "xmp", "table", "caption", "colgroup", "col", "tbody"),
        *("thead", "tfoot", "tr", "td", "th"),
    )
)
"""Elements that end a sentence. Any other is within one, also one that HTML does not know, such as
a custom element: so browsers show it. Source: HTML Standard, 15.3, flow content and tables."""
_OPAQUE = frozenset(
    (
        *READ_AS_WORDS,
        *("script", "style", "svg", "math", "object"),
        *("rt", "rp", "rtc", "xmp", "iframe", "noembed", "noframes"),
    )
)
"""Elements whose content is not translated: readings say how the words of the original are spoken,
and that of the last four is no HTML for browsers."""
_TEXT_ONLY = frozenset(("title", "textarea"))
"""Elements with text and no tags. Since 3.11.14, 3.12.12 and 3.13.6 Python's parser reads them so
too, by the same means as a ``script``."""
_HELD = frozenset(("select", "datalist", "textarea", "audio", "video", "canvas"))
"""Elements that are one mark in a sentence and hold texts of their own."""
_VOID = frozenset(
    (
        *("area", "base", "br", "col", "embed", "hr", "img"),
        *("input", "link", "meta", "param", "source", "track", "wbr"),
    )
)
_NEVER = frozenset(("script", "style", "svg", "math", "object", "iframe", "xmp"))
"""Elements whose content is no text of the page, whatever they say of it."""
_DEEPEST_HELD = 8
"""Elements within each other that are one mark and hold texts to translate."""


@dataclasses.dataclass(frozen=True)
class TagRules:
    """The meaning of tags."""

    is_xml: bool = False
    """Whether a tag means nothing by its name: all are inline but those of ``divides``."""
    divides: frozenset[str] = frozenset()
    """Elements that end a sentence, in lower case, beside those that do anyway."""
    inline: frozenset[str] = frozenset()
    """Elements within a sentence, whatever else they are."""
    opaque: frozenset[str] = frozenset()
    """Elements whose content is not translated, beside those whose content never is."""
    finds_outline: bool = False
    """Whether elements that hold elements and no text of their own end a sentence, and so do those
    in them."""
    with_attributes: bool = False
    """Whether the attributes that people read are translated."""
    language: str = ""
    """The language of the translation, which a page then names as its own; none if empty."""

    def is_inline(self, name: str) -> bool:
        """Whether a sentence goes on across this tag."""
        if name in self.inline:
            return True
        return name not in self.divides and (self.is_xml or name not in _BLOCKS)

    def is_opaque(self, name: str) -> bool:
        """Whether what is in this element stays as it is."""
        return name in self.opaque or (not self.is_xml and name in _OPAQUE)

    def is_void(self, name: str) -> bool:
        """Whether this element has no end tag."""
        return not self.is_xml and name in _VOID


PAGE = TagRules(with_attributes=True)
"""The rules of a document in HTML."""
_KEEPS_LINES = frozenset(("pre", "textarea"))
_TABLE_PARTS = frozenset(("thead", "tbody", "tfoot"))
_ENDED_BY = {
    "li": frozenset(("li",)),
    **dict.fromkeys(("dt", "dd"), frozenset(("dt", "dd"))),
    "p": frozenset(
        (
            *("address", "article", "aside", "blockquote", "details", "dialog", "div", "dl"),
            *("fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5"),
            *("h6", "header", "hgroup", "hr", "main", "menu", "nav", "ol", "p", "pre", "search"),
            *("section", "table", "ul"),
        )
    ),
    **dict.fromkeys(("rt", "rp"), frozenset(("rt", "rp"))),
    "option": frozenset(("option", "optgroup", "hr")),
    "optgroup": frozenset(("optgroup", "hr")),
    **dict.fromkeys(("td", "th"), frozenset(("td", "th", "tr", *_TABLE_PARTS))),
    "tr": frozenset(("tr", *_TABLE_PARTS)),
    **dict.fromkeys(_TABLE_PARTS, _TABLE_PARTS),
}
"""Elements whose end tag may be left out, and those whose beginning ends them. Source: HTML
Standard, 13.1.2.4, optional tags."""
_BLANKS = " \t\r\n\f"
"""White space as HTML defines it; a no-break space is text."""
_DEEPEST = 60
"""Inline elements within each other; one within more ends the sentence, as a block does."""

_Kind = Literal["text", "start", "end", "alone", "other"]


@dataclasses.dataclass
class _Token:
    """A tag, a text or a comment, as it is written."""

    kind: _Kind
    raw: str
    name: str = ""
    text: str = ""
    """The text that a text or an opaque element shows."""
    keeps_lines: bool = False
    breaks: bool = False
    divides: bool = False
    """Whether it ends a sentence by the outline of the document."""
    attributes: Sequence[Attribute] = ()
    """The attributes to translate."""
    languages: Sequence[Attribute] = ()
    """The attributes that name the language of the page, and will name another."""
    translates: bool | None = None
    """Whether a start tag has its element translated; None if it does not say."""
    role: Kind = "format"
    """The role of its element in a sentence."""
    inner: "Sequence[_Token | Sequence[_Token]]" = ()
    """The tokens of an element that is one mark; in those that are lists, texts are translated."""


_Source: TypeAlias = "tuple[str | int | _Place, ...]"
"""The output: text, the numbers of the segments that are attributes in it, and other ones."""


@dataclasses.dataclass
class _Place:
    """Where a segment stands: its number, and the sources of its marks."""

    number: int
    raw: _Source
    sources: dict[int, tuple[_Source, _Source]]
    """By mark: what opens and what closes it; what stands alone has the first only."""


class HtmlDocument:
    """An HTML document, or a part of one such as a paragraph."""

    def __init__(self, source: str, rules: TagRules = PAGE) -> None:
        self._rules = rules
        self.segments: list[Segment] = []
        self._attributes: dict[int, tuple[str, bool]] = {}
        """By segment: the value as it is written, and whether it stands in quotes."""
        self._depth = 0
        """How many marks are around what is read, whose texts are translated by themselves."""
        self._parts: list[str | int | _Place] = []
        tokens = _tokens(source, rules)
        if rules.finds_outline:
            tokens = iter(_with_outline(list(tokens)))
        self._add_all(tokens, 0)

    def text_with(self, translated: Sequence[Segment]) -> str:
        """The source with other segments."""
        if len(translated) != len(self.segments):
            raise ValueError(f"{len(self.segments)} segments are needed, got {len(translated)}")

        return "".join(self._source_with(tuple(self._parts), translated))

    def _text_at(self, place: _Place, translated: Sequence[Segment]) -> str:
        """The source of a translated segment."""
        if translated[place.number] == self.segments[place.number]:
            return "".join(self._source_with(place.raw, translated))
        written: list[str] = []
        for piece in translated[place.number].pieces:
            if isinstance(piece, str):
                written.append(html.escape(piece, quote=False))
            else:
                source = place.sources[piece.number][isinstance(piece, Close)]
                written += self._source_with(source, translated)
        return "".join(written)

    def _source_with(self, source: _Source, translated: Sequence[Segment]) -> Iterator[str]:
        """Return the output, with the attributes and inner texts of a translation."""
        for part in source:
            if isinstance(part, str):
                yield part
                continue
            if isinstance(part, _Place):
                yield self._text_at(part, translated)
                continue
            raw, is_quoted = self._attributes[part]
            if translated[part] != self.segments[part]:
                value = html.escape(translated[part].text)
                raw = value if is_quoted else f'"{value}"'
            yield raw

    def _source_of(self, token: _Token) -> _Source:
        """A token as it is written; its attributes, and texts in it, become segments."""
        if token.inner:
            parts: list[str | int | _Place] = []
            for inner in token.inner:
                parts += (
                    self._source_of(inner) if isinstance(inner, _Token) else self._nested(inner)
                )
            return tuple(parts)
        source: list[str | int | _Place] = []
        at = 0
        for each in sorted((*token.attributes, *token.languages), key=lambda found: found.start):
            source.append(token.raw[at : each.start])
            at = each.end
            if each in token.languages:
                source.append(self._rules.language)
                continue
            number = len(self.segments)
            self.segments.append(Segment((each.value,)))
            self._attributes[number] = (token.raw[each.start : at], each.is_quoted)
            source.append(number)
        return (*source, token.raw[at:])

    def _nested(self, tokens: Sequence[_Token]) -> list[str | int | _Place]:
        """The parts for tokens within a mark."""
        outer, self._parts = self._parts, []
        self._add_all(iter(tokens), self._depth + 1)
        inner, self._parts = self._parts, outer
        return inner

    def _add_all(self, tokens: Iterator[_Token], depth: int) -> None:
        outer, self._depth = self._depth, depth
        for group in _groups(list(_with_opaque(tokens, self._rules, depth))):
            self._add(group)
        self._depth = outer

    def _add(self, group: Sequence[_Token]) -> None:
        """Tokens of one sentence or more: a segment if they hold a word."""
        if not any(t.kind == "text" and any(map(str.isalpha, t.text)) for t in group):
            for token in group:
                self._parts += self._source_of(token)
            return

        # White space at both ends is layout of the source.
        tokens = list(group)
        head = tail = ""
        while tokens and tokens[0].kind == "text" and not tokens[0].text.strip(_BLANKS):
            head += tokens.pop(0).raw
        while tokens and tokens[-1].kind == "text" and not tokens[-1].text.strip(_BLANKS):
            tail = tokens.pop().raw + tail
        if tokens[0].kind == "text":
            blank = tokens[0].raw[: len(tokens[0].raw) - len(tokens[0].raw.lstrip(_BLANKS))]
            head += blank
            tokens[0] = _cut(tokens[0], len(blank), 0)
        if tokens[-1].kind == "text":
            length = len(tokens[-1].raw) - len(tokens[-1].raw.rstrip(_BLANKS))
            tail = tokens[-1].raw[len(tokens[-1].raw) - length :] + tail
            tokens[-1] = _cut(tokens[-1], 0, length)

        written = [self._source_of(token) for token in tokens]
        pieces, sources = _read(tokens, written)
        inner = tuple(part for source in written for part in source)
        place = _Place(len(self.segments), inner, sources)
        self.segments.append(Segment(tuple(pieces)))
        self._parts += [head, place, tail]


def _cut(token: _Token, left: int, right: int) -> _Token:
    """A text without characters of white space at its ends."""
    raw, text = token.raw, token.text
    return dataclasses.replace(
        token, raw=raw[left : len(raw) - right], text=text[left : len(text) - right]
    )


def _read(
    tokens: Sequence[_Token], written: Sequence[_Source]
) -> tuple[list[Piece], dict[int, tuple[_Source, _Source]]]:
    """The pieces of a segment and the sources of its marks; every tag has its partner here."""
    pieces: list[Piece] = []
    sources: dict[int, tuple[_Source, _Source]] = {}
    opened: list[int] = []
    number = 0

    for token, source in zip(tokens, written, strict=True):
        if token.kind == "text":
            pieces.append(token.text if token.keeps_lines else _one_space(token.text))
        elif token.kind == "end":
            closed = opened.pop()
            sources[closed] = (sources[closed][0], source)
            pieces.append(Close(closed))
        else:
            sources[number] = (source, ())
            if token.kind == "start":
                opened.append(number)
                pieces.append(Open(number, token.role))
            else:
                pieces.append(Alone(number, token.text, token.breaks))
            number += 1

    # Texts beside each other, as entities divide them, are one.
    joined: list[Piece] = []
    for piece in pieces:
        if isinstance(piece, str) and joined and isinstance(joined[-1], str):
            joined[-1] += piece
        elif piece != "":
            joined.append(piece)
    return joined, sources


def _one_space(text: str) -> str:
    """White space as a browser shows it: one space, wherever a line of the source ends."""
    words = " ".join(part for part in text.replace("\f", " ").split(" ") if part)
    for blank in "\t\r\n":
        words = words.replace(blank, " ")
    words = " ".join(part for part in words.split(" ") if part)
    if not words:
        return " " if text else ""
    return f"{' ' * (text[0] in _BLANKS)}{words}{' ' * (text[-1] in _BLANKS)}"


def _groups(tokens: Sequence[_Token]) -> Iterator[list[_Token]]:
    """Tokens that are divided at blocks, and at inline tags without a partner."""
    group: list[_Token] = []
    for token in tokens:
        if token.kind == "other":
            yield from _paired(group)
            yield [token]
            group = []
        else:
            group.append(token)
    yield from _paired(group)


def _paired(tokens: Sequence[_Token]) -> Iterator[list[_Token]]:
    """Divide tokens at the tags that have no partner among them."""
    partners: set[int] = set()
    opened: list[int] = []
    for number, token in enumerate(tokens):
        if token.kind == "start":
            opened.append(number)
        elif token.kind == "end":
            # The innermost open element of this name; those inside it that are not closed have no
            # partner. Far ones are not looked for, which would take quadratic time.
            for depth in range(1, min(len(opened), _DEEPEST) + 1):
                if tokens[opened[-depth]].name == token.name:
                    partners |= {number, opened[-depth]}
                    del opened[-depth:]
                    break

    group: list[_Token] = []
    depth = 0
    for number, token in enumerate(tokens):
        is_tag = token.kind in ("start", "end")
        is_divided = is_tag and number not in partners
        if is_tag and not is_divided:
            if token.kind == "start":
                depth += 1
                is_divided = depth > _DEEPEST
            else:
                is_divided = depth > _DEEPEST
                depth -= 1
        if is_divided:
            yield from _whole(group)
            yield [token]
            group = []
        else:
            group.append(token)
    yield from _whole(group)


def _whole(tokens: list[_Token]) -> Iterator[list[_Token]]:
    """The tokens, divided further if a division took the partner of a tag from it."""
    if not tokens:
        return
    depth = 0
    for token in tokens:
        depth += (token.kind == "start") - (token.kind == "end")
        if depth < 0:
            break
    if depth == 0:
        yield tokens
        return

    # Rare: only where elements overlap. Each text is read by itself.
    for token in tokens:
        yield [token]


def _with_outline(tokens: list[_Token]) -> list[_Token]:
    """The tokens, with those that end a sentence because they divide a document into its parts."""
    root: list[list[int]] = [[]]
    """For each open element its tags; that of the whole comes first."""
    inner: list[list[list[int]]] = [[]]
    """For each open element the tags of the elements in it."""
    has_text = [False]
    names: list[str] = []

    def close() -> None:
        own, children = root.pop(), inner.pop()
        if has_text.pop():
            return
        for tags in (*children, own if children else []):
            for number in tags:
                tokens[number].divides = True

    for number, token in enumerate(tokens):
        if token.kind == "text":
            has_text[-1] = has_text[-1] or bool(token.text.strip())
        elif token.kind == "start":
            tags = [number]
            inner[-1].append(tags)
            root.append(tags)
            inner.append([])
            has_text.append(False)
            names.append(token.name)
        elif token.kind == "end" and token.name in names[-_DEEPEST:]:
            # What was not closed inside it ends with it.
            while names.pop() != token.name:
                close()
            root[-1].append(number)
            close()
    while root:
        close()
    return tokens


def _with_opaque(tokens: Iterator[_Token], rules: TagRules, depth: int) -> Iterator[_Token]:
    """The tokens, with each element as one that is not translated, or has texts of its own.

    ``depth`` counts the elements around them that are one.
    """
    kept: _Kept | None = None
    around: list[str] = []
    """The elements that are open around a token, outside of one that is kept."""
    lines = 0

    for token in tokens:
        if kept is not None:
            if not kept.is_ended_before(token, around):
                kept.add(token)
                if kept.is_closed:
                    yield _joined(kept.tokens, rules, depth)
                    kept = None
                continue
            # Its end tag was left out, and this token is not in it.
            yield _joined(kept.tokens, rules, depth, is_closed=False)
            kept = None

        if token.kind == "start" and _is_one(token, rules):
            none: frozenset[str] = frozenset()
            kept = _Kept(token, none if rules.is_xml else _ENDED_BY.get(token.name, none))
            continue
        if token.kind == "start":
            around.append(token.name)
        elif token.kind == "end" and token.name in around[-_DEEPEST:]:
            while around.pop() != token.name:
                pass
        if token.name in _KEEPS_LINES:
            lines = max(0, lines + (token.kind == "start") - (token.kind == "end"))
        yield _of_sentence(token, lines > 0, rules)

    if kept is not None:  # it is never closed
        one = _joined(kept.tokens, rules, depth, is_closed=False)
        yield dataclasses.replace(one, kind="other")


def _is_one(token: _Token, rules: TagRules) -> bool:
    """Whether an element is one mark, with all that is in it."""
    if token.translates is False:
        return True
    if token.translates and token.name in READ_AS_WORDS:
        return False
    return rules.is_opaque(token.name) or (not rules.is_xml and token.name in _HELD)


class _Kept:
    """The tokens of an element that is not translated, as they come."""

    def __init__(self, token: _Token, ended_by: frozenset[str]) -> None:
        self.name = token.name
        self.tokens = [token]
        self.is_closed = False
        self._ended_by = ended_by
        """Elements that end it where its end tag is left out; none if it may not be."""
        self._within: list[str] = []
        """The elements that are open in it."""

    def is_ended_before(self, token: _Token, around: Sequence[str]) -> bool:
        """Whether the element ends without an end tag: another begins, or one around it ends."""
        if not self._ended_by:
            return False
        if token.kind == "end":
            is_own = token.name == self.name or token.name in self._within[-_DEEPEST:]
            return not is_own and token.name in around[-_DEEPEST:]
        # Whatever is open in it ends with it, if its end tag may be left out or means no block.
        within = self._within
        return (
            token.name in self._ended_by
            and len(within) <= _DEEPEST
            and all(name in _ENDED_BY or name not in _BLOCKS for name in within)
        )

    def add(self, token: _Token) -> None:
        """Add a token that is in it."""
        self.tokens.append(token)
        if token.kind == "start" and (self._ended_by or token.name == self.name):
            self._within.append(token.name)
        elif token.kind == "end" and token.name in self._within[-_DEEPEST:]:
            while self._within.pop() != token.name:
                pass
        elif token.kind == "end" and token.name == self.name:
            self.is_closed = True


def _joined(
    tokens: Sequence[_Token], rules: TagRules, depth: int, *, is_closed: bool = True
) -> _Token:
    """An element as one token."""
    first = tokens[0]
    name = first.name
    raw = "".join(token.raw for token in tokens)
    for token in tokens:
        token.keeps_lines = name in _KEEPS_LINES
    is_inline = rules.is_inline(name) or name in _OPAQUE
    is_kept = first.translates is False or rules.is_opaque(name)
    is_inline = is_inline and (is_closed or name in ("rt", "rp"))

    inner: list[_Token | Sequence[_Token]] = []
    if depth < _DEEPEST_HELD:
        if not is_kept:
            inner = [first, tokens[1:]]
        elif first.translates is False and any(token.translates for token in tokens[1:]):
            inner = _with_translated(tokens)
    reads = "".join(token.text for token in tokens[1:] if token.kind == "text")
    is_read = is_kept and (name in READ_AS_WORDS or (rules.is_inline(name) and name not in _OPAQUE))
    if inner or first.role == "reference" or not is_read:
        reads = ""
    return _Token("alone" if is_inline else "other", raw, name, reads, inner=inner)


def _with_translated(tokens: Sequence[_Token]) -> list[_Token | Sequence[_Token]]:
    """The tokens of an element that is not translated, with a list for each element in it that
    says it is.
    """
    inner: list[_Token | Sequence[_Token]] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if not (token.kind == "start" and token.translates) or token.name in _NEVER:
            inner.append(dataclasses.replace(token, attributes=()))
            at += 1
            continue
        stop, depth = at, 0
        while stop < len(tokens):
            if tokens[stop].name == token.name:
                depth += (tokens[stop].kind == "start") - (tokens[stop].kind == "end")
            stop += 1
            if depth == 0:
                break
        inner.append(tokens[at:stop])
        at = stop
    return inner


def _of_sentence(token: _Token, keeps_lines: bool, rules: TagRules) -> _Token:
    """The token by what it is in a sentence."""
    if token.kind == "text":
        token.keeps_lines = token.keeps_lines or keeps_lines
        return token

    is_inline = rules.is_inline(token.name) and not (
        token.divides and token.name not in rules.inline
    )
    if token.kind == "alone" and token.name == "!":
        return token
    if token.kind == "alone" and (
        is_inline or (rules.is_void(token.name) and token.name not in (*_BLOCKS, *rules.divides))
    ):
        token.text, token.breaks = "", token.name == "br"
    elif token.kind in ("start", "end") and is_inline:
        token.text = ""
    else:
        return dataclasses.replace(token, kind="other")
    return token


def _tokens(source: str, rules: TagRules) -> Iterator[_Token]:
    reader = _Reader(source, rules)
    reader.read()
    return reader.finish()


class _Reader(PlacedParser):
    """Collects the tokens of a text."""

    def __init__(self, source: str, rules: TagRules) -> None:
        super().__init__(source)
        self._rules = rules
        self._found: list[tuple[int, _Token]] = []

    def parse_starttag(self, i: int) -> int:
        """Read a start tag; in XML what is in a ``script`` is read as anything else."""
        end = super().parse_starttag(i)
        if self._rules.is_xml:
            self.clear_cdata_mode()
        return end

    def finish(self) -> Iterator[_Token]:
        """The tokens. What the parser did not end, such as a tag that never closes, is no text."""
        if self.unread:
            # An entity that the end cut off is text.
            kind: _Kind = "text" if self.rawdata.startswith("&") else "other"
            self._found.append((len(self.source) - self.unread, _Token(kind, "")))
        if not self._found:
            return

        # Texts beside each other are one, as a reference may be divided among them.
        found = [
            (place, token)
            for number, (place, token) in enumerate(self._found)
            if token.kind != "text" or number == 0 or self._found[number - 1][1].kind != "text"
        ]

        stops = [place for place, _ in found[1:]] + [len(self.source)]
        for (start, token), stop in zip(found, stops, strict=True):
            token.raw = self.source[start:stop]
            if token.kind == "text":
                token.text = html.unescape(token.raw)
            if token.raw:
                yield token

    def _add(self, token: _Token) -> None:
        self._found.append((self.place, token))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._add_start("alone" if self._rules.is_void(tag) else "start", tag, attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._add_start("alone", tag, attrs)

    def _add_start(self, kind: _Kind, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attrs = [(name, value and self.as_written(value)) for name, value in attrs]
        says = element_says(tag, attrs)
        read: list[Attribute] = []
        if (
            self._rules.with_attributes
            and says.translates is not False
            and not self._is_opaque(tag)
        ):
            written = self.as_written(self.get_starttag_text() or "")
            read = readable_attributes(tag, written, attrs)
        token = _Token(kind, "", tag, attributes=read, translates=says.translates, role=says.role)
        if tag == "html" and self._rules.language:
            token.languages = [
                each
                for each in attributes_of(self.as_written(self.get_starttag_text() or ""))
                if each.name in ("lang", "xml:lang")
                and each.value
                and not is_same_language(each.value, self._rules.language)
            ]
        self._add(token)

    def _is_opaque(self, tag: str) -> bool:
        """Whether the attributes of an element are not read either."""
        return self._rules.is_opaque(tag) and tag not in READ_AS_WORDS

    def handle_endtag(self, tag: str) -> None:
        self._add(_Token("end", "", tag))

    def handle_data(self, data: str) -> None:  # noqa: ARG002
        is_text = self.cdata_elem is None or self.cdata_elem in _TEXT_ONLY
        self._add(_Token("text" if is_text else "other", ""))

    def handle_entityref(self, name: str) -> None:  # noqa: ARG002
        self._add(_Token("text", ""))

    def handle_charref(self, name: str) -> None:  # noqa: ARG002
        self._add(_Token("text", ""))

    def handle_comment(self, data: str) -> None:  # noqa: ARG002
        self._add(_Token("alone", "", "!"))

    def handle_decl(self, decl: str) -> None:  # noqa: ARG002
        self._add(_Token("other", ""))

    def unknown_decl(self, data: str) -> None:  # noqa: ARG002
        self._add(_Token("other", ""))

    def handle_pi(self, data: str) -> None:  # noqa: ARG002
        self._add(_Token("other", ""))


def is_same_language(one: str, other: str) -> bool:
    """Whether two codes are of one language, such as ``en-GB`` and ``en``."""
    return one.lower().partition("-")[0] == other.lower().partition("-")[0]


class HtmlFile:
    """An HTML file, in UTF-8 or in the encoding that it names."""

    def __init__(self, data: bytes, what: str, target_language: str = "") -> None:
        """``target_language``: that of the translation, which the page then says is its own.

        Raises DataError for what is not text, or in an encoding that is not supported.
        """
        if len(data) > LARGEST_TEXT:
            raise DataError(f"{what} must have at most {LARGEST_TEXT >> 20} MiB, has {len(data):,}")
        self._mark, self._encoding = byte_order_mark(data)
        if not self._mark:
            self._encoding = encoding_of(data, what)
        written = data[len(self._mark) :]
        try:
            source = written.decode(self._encoding)
        except UnicodeDecodeError:
            raise DataError(
                f"{what} must be text in {self._encoding}, and is not",
                hint="its <meta charset> may be wrong, or missing",
            ) from None
        # Some encodings of Asia have two codes for a character, and only one is written.
        if source.encode(self._encoding) != written:
            raise DataError(
                f"{what} cannot be written again in {self._encoding} to the same bytes",
                hint=CONVERT.format(self._encoding),
            )
        rules = dataclasses.replace(PAGE, language=target_language)
        self._document = HtmlDocument(source, rules)
        self.segments = self._document.segments

    def write(self, translated: Sequence[Segment]) -> bytes:
        """The file with other segments, in the same encoding."""
        text = self._document.text_with(translated)
        return self._mark + text.encode(self._encoding, "xmlcharrefreplace")
