"""HTML and XHTML: every byte stays but the text between tags.

The source is read as tokens with their places (``html_tokens``), so that what is not translated is
copied and not written again; ``html_groups`` divides them into sentences. The encoding is what the
file names in its first bytes, as browsers read that.
"""

import dataclasses
import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from pellucid.core.errors import DataError
from pellucid.core.texts import codec_of, words_in
from pellucid.documents.containers import check_size
from pellucid.documents.html_groups import groups, with_opaque
from pellucid.documents.html_listings import mark_listings
from pellucid.documents.html_parser import PlacedParser
from pellucid.documents.html_rules import DEEPEST, PAGE, TagRules
from pellucid.documents.html_templates import SourceLiterals
from pellucid.documents.html_tokens import Token, tokens_of
from pellucid.documents.segments import (
    Alone,
    Close,
    Languages,
    Open,
    Piece,
    Segment,
    check_count,
    joined,
)
from pellucid.text.corpus.dialects import byte_order_mark

_CODECS = words_in(
    "ascii utf-8 iso8859-2 iso8859-3 iso8859-4 iso8859-5 iso8859-6 iso8859-7 iso8859-8 iso8859-10"
    " iso8859-13 iso8859-14 iso8859-15 iso8859-16 koi8-r koi8-u mac-roman mac-cyrillic cp866 cp874"
    " cp1250 cp1251 cp1252 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258 gbk gb18030 big5hkscs euc_jp"
    " iso2022_jp cp932 cp949"
)
"""Encodings of WHATWG's Encoding Standard, which keep the bytes of ASCII, so that a file can be
read before it is decoded. Others of Python, such as UTF-7, are not safe to read from strangers."""
_READ_AS = {
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    **dict.fromkeys(("iso8859-11", "tis-620"), "cp874"),
    "gb2312": "gbk",
    "big5": "big5hkscs",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    # A file that could be read as far as this name is not in UTF-16.
    **dict.fromkeys(("utf-16", "utf-16-le", "utf-16-be"), "utf-8"),
}
"""The encoding that browsers use in place of a named one, by the same standard."""
_LABEL = re.compile(r"[A-Za-z0-9][\w.:+-]{0,39}", re.ASCII)
_IN_CONTENT = re.compile(r"""charset\s*=\s*["']?([^\s"';]+)""", re.IGNORECASE)
_XML_ENCODING = re.compile(r"""<\?xml\s[^>]{0,200}?\sencoding\s*=\s*["']([^"'<>]{0,40})["']""")
_CONVERT = "iconv -f {} -t UTF-8 converts it; then change its <meta charset> to utf-8"
"""The hint for an encoding that cannot be used."""


def _encoding_of(data: bytes, what: str) -> str:
    """The encoding that a file names in its first bytes, as HTML's standard looks for it; UTF-8 if
    it names none.

    Raises DataError for one that is not supported: in UTF-8 its text might be read as something
    else.
    """
    head = data[:1024].decode("latin-1")
    found = _MetaReader(head)
    found.read()
    in_xml = _XML_ENCODING.match(head)
    label = (found.charset or (in_xml[1] if in_xml else "")).strip()
    if not _LABEL.fullmatch(label):
        return "utf-8"  # none, or the variable of a template

    name = codec_of(label)
    name = _READ_AS.get(name, name)
    if name not in _CODECS:
        raise DataError(
            f"{what} is in the encoding {label}, which is not supported",
            hint=_CONVERT.format(label),
        )
    return name


class _MetaReader(PlacedParser):
    """Finds ``<meta charset>`` and its older form."""

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self.charset = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "meta" and not self.charset:
            values = {name: value or "" for name, value in attrs}
            named = _IN_CONTENT.search(values.get("content", ""))
            self.charset = values.get("charset", "") or (named[1] if named else "")


_BLANKS = " \t\r\n\f"
"""White space as HTML defines it; a no-break space is text."""
_BLANK_RUN = re.compile(f"[{_BLANKS}]+")
"""White space that a browser shows as one space."""
_LAYOUT = re.compile(
    r"(?:[ \t\r\n\f\u00a0\u00ad\u034f\u2007\u200b-\u200d\u2060\ufeff]"
    r"|&(?:nbsp|shy|zwnj|zwj|numsp|ZeroWidthSpace|#0*(?:160|173|847|8199|820[345]|65279)"
    r"|#[xX]0*(?:A0|a0|AD|ad|34[Ff]|2007|200[B-Db-d]|FEFF|feff));)+"
)
"""Signs that show nothing, of which the first line of an advertisement has hundreds."""


_Source: TypeAlias = "tuple[str | int | _Place, ...]"
"""The output: text, the numbers of the segments that are attributes in it, and other ones."""


@dataclasses.dataclass
class _Place:
    """Where a segment stands: its number, and the sources of its marks."""

    number: int
    raw: _Source
    sources: dict[int, tuple[_Source, _Source]]
    """By mark: what opens and what closes it; what stands alone has the first only."""
    texts: tuple[str, ...]
    """The texts of it in the source."""


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
        tokens = list(tokens_of(source, rules))
        if rules.finds_outline:
            _mark_outline(tokens)
        if not rules.is_xml:
            mark_listings(tokens)
        self._add_all(iter(tokens), 0)

    def text_with(self, translated: Sequence[Segment]) -> str:
        """The source with other segments."""
        check_count(translated, self.segments)
        return "".join(self._source_with(tuple(self._parts), translated))

    def _text_at(self, place: _Place, translated: Sequence[Segment]) -> str:
        """The source of a translated segment."""
        if translated[place.number] == self.segments[place.number]:
            return "".join(self._source_with(place.raw, translated))
        written: list[str] = []
        literals = SourceLiterals(place.texts)
        for piece in translated[place.number].pieces:
            if isinstance(piece, str):
                written.append(literals.escaped(piece))
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
                value = SourceLiterals((raw,)).escaped(translated[part].text, quote=True)
                raw = value if is_quoted else f'"{value}"'
            yield raw

    def _source_of(self, token: Token) -> _Source:
        """A token as it is written; its attributes, and texts in it, become segments."""
        if token.inner:
            parts: list[str | int | _Place] = []
            for inner in token.inner:
                parts += self._source_of(inner) if isinstance(inner, Token) else self._nested(inner)
            return tuple(parts)

        source: list[str | int | _Place] = []
        at = 0
        for each in sorted((*token.attributes, *token.own), key=lambda found: found.start):
            source.append(token.raw[at : each.start])
            at = each.end
            if each in token.own:
                source.append(token.own[each])
                continue
            number = len(self.segments)
            self.segments.append(Segment((each.value,)))
            self._attributes[number] = (token.raw[each.start : at], each.is_quoted)
            source.append(number)
        return (*source, token.raw[at:])

    def _nested(self, tokens: Sequence[Token]) -> list[str | int | _Place]:
        """The parts for tokens within a mark."""
        outer, self._parts = self._parts, []
        self._add_all(iter(tokens), self._depth + 1)
        inner, self._parts = self._parts, outer
        return inner

    def _add_all(self, tokens: Iterator[Token], depth: int) -> None:
        outer, self._depth = self._depth, depth
        for group in groups(list(with_opaque(tokens, self._rules, depth))):
            self._add(group)
        self._depth = outer

    def _add(self, group: Sequence[Token]) -> None:
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
            found = _LAYOUT.match(tokens[0].raw)
            blank = found[0] if found else ""
            head += blank
            tokens[0] = tokens[0].part(len(blank))
        if tokens[-1].kind == "text":
            raw = tokens[-1].raw
            runs = [found.start() for found in _LAYOUT.finditer(raw) if found.end() == len(raw)]
            length = len(raw) - min(runs, default=len(raw))
            tail = raw[len(raw) - length :] + tail
            tokens[-1] = tokens[-1].part(0, len(raw) - length)

        written = [self._source_of(token) for token in tokens]
        pieces, sources = _read(tokens, written)
        inner = tuple(part for source in written for part in source)
        texts = tuple(token.raw for token in tokens if token.kind == "text")
        place = _Place(len(self.segments), inner, sources, texts)
        self.segments.append(Segment(tuple(pieces)))
        self._parts += [head, place, tail]


def _read(
    tokens: Sequence[Token], written: Sequence[_Source]
) -> tuple[list[Piece], dict[int, tuple[_Source, _Source]]]:
    """The pieces of a segment and the sources of its marks; every tag has its partner here."""
    pieces: list[Piece] = []
    sources: dict[int, tuple[_Source, _Source]] = {}
    opened: list[int] = []
    number = 0
    before = ("", "")

    for token, source in zip(tokens, written, strict=True):
        # "<del>old</del><ins>new</ins>": two words.
        follows_deleted = before in (("end", "del"), ("end", "s"), ("end", "strike"))
        before = token.kind, token.name
        if token.kind == "text":
            pieces.append(token.text if token.keeps_lines else _BLANK_RUN.sub(" ", token.text))
        elif token.kind == "end":
            closed = opened.pop()
            sources[closed] = (sources[closed][0], source)
            pieces.append(Close(closed))
        else:
            sources[number] = (source, ())
            if token.kind == "start" and token.name in ("ins", "u") and follows_deleted:
                pieces.append(" ")
            if token.kind == "start":
                opened.append(number)
                pieces.append(Open(number, token.role))
            else:
                pieces.append(Alone(number, token.text, token.breaks))
            number += 1

    # Texts beside each other, as entities divide them, are one.
    return joined(pieces), sources


class HtmlFile:
    """An HTML file, in UTF-8 or in the encoding that it names."""

    notes: Sequence[str] = ()

    def __init__(self, data: bytes, what: str, languages: Languages) -> None:
        """``languages``: the page says that it is in the second one, and the direction of its text;
        an element in it says so where it says the first.

        Raises DataError for what is not text, or in an encoding that is not supported.
        """
        check_size(data, what)

        self._mark, self._encoding = byte_order_mark(data)
        if not self._mark:
            self._encoding = _encoding_of(data, what)
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
                hint=_CONVERT.format(self._encoding),
            )

        rules = dataclasses.replace(PAGE, languages=languages)
        self._document = HtmlDocument(source, rules)
        self.segments = self._document.segments

    def write(self, translated: Sequence[Segment]) -> bytes:
        """The file with other segments, in the same encoding."""
        text = self._document.text_with(translated)
        return self._mark + text.encode(self._encoding, "xmlcharrefreplace")


def _mark_outline(tokens: Sequence[Token]) -> None:
    """Mark the tags that end a sentence because they divide a document into its parts."""
    # For each open element, that of the whole first: the numbers of its tags, and of the tags of
    # each element in it.
    own_tags: list[list[int]] = [[]]
    inner_tags: list[list[list[int]]] = [[]]
    has_text = [False]
    names: list[str] = []

    def close() -> None:
        own, children = own_tags.pop(), inner_tags.pop()
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
            inner_tags[-1].append(tags)
            own_tags.append(tags)
            inner_tags.append([])
            has_text.append(False)
            names.append(token.name)
        elif token.kind == "end" and token.name in names[-DEEPEST:]:
            # What was not closed inside it ends with it.
            while names.pop() != token.name:
                close()
            own_tags[-1].append(number)
            close()
    while own_tags:
        close()
