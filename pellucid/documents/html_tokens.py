"""Tags, texts and comments of HTML, as they are written.

Read with the parser of the standard library, which says where each tag begins.
"""

import dataclasses
import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from pellucid.documents.attributes import Attribute, readable_attributes
from pellucid.documents.html_parser import PlacedParser
from pellucid.documents.html_roles import READ_AS_WORDS, element_says
from pellucid.documents.html_rules import TagRules
from pellucid.documents.html_templates import without_signs
from pellucid.documents.page_language import SAY_LANGUAGE, is_foreign, own_attributes
from pellucid.documents.segments import Kind

_TEXT_ONLY = frozenset(("title", "textarea"))
"""Elements with text and no tags. Since 3.11.14, 3.12.12 and 3.13.6 Python's parser reads them so
too, by the same means as a ``script``."""

_XHTML = re.compile(r"\A\s*<\?xml\s|<html\s[^>]*http://www\.w3\.org/1999/xhtml", re.IGNORECASE)
"""The sign of a page in XML, where the slash of a tag ends its element."""
_HEAD = 2048
"""Characters in which that is looked for."""

_LABELED = READ_AS_WORDS | {"iframe", "object", "svg"}
"""Elements whose content stays, and whose own attributes are read."""
_WRITES = re.compile(r"(?:=|php\s+(?:echo|print|_e|(?:esc|the)_\w+)\b)[^;]*;?\s*\?\Z")
"""An instruction of PHP that writes a word."""
_NAME_LANGUAGE = ("data-lang", "data-language", "lang")
_Kind = Literal["text", "start", "end", "alone", "other"]


@dataclasses.dataclass
class Token:
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
    own: Mapping[Attribute, str] = dataclasses.field(default_factory=dict)
    """The attributes that say the language and direction of the text, and what they will say."""
    translates: bool | None = None
    """Whether a start tag has its element translated; None if it does not say."""
    role: Kind = "format"
    """The role of its element in a sentence."""
    classes: frozenset[str] = frozenset()
    """The classes of a start tag, in lower case."""
    code_language: str = ""
    """The language that a start tag names, which may be one of programs."""
    inner: "Sequence[Token | Sequence[Token]]" = ()
    """The tokens of an element that is one mark; in those that are lists, texts are translated."""

    def part(self, start: int, stop: int | None = None) -> "Token":
        """A text from a character of its source up to another."""
        raw = self.raw[start:stop]
        return dataclasses.replace(self, raw=raw, text=html.unescape(raw))

    def divided(self, marks: "Iterable[tuple[re.Match[str], Token]]") -> "Iterator[Token]":
        """A text as texts and the tokens between them; ``marks`` has each with its place."""
        at = 0
        for found, mark in marks:
            if found.start() > at:
                yield self.part(at, found.start())
            yield mark
            at = found.end()
        if at < len(self.raw):
            yield self.part(at) if at else self


def tokens_of(source: str, rules: TagRules) -> Iterator[Token]:
    """The tokens of a text, in order."""
    reader = _Reader(source, rules)
    reader.read()
    return reader.finish()


class _Reader(PlacedParser):
    """Collects the tokens of a text."""

    def __init__(self, source: str, rules: TagRules) -> None:
        super().__init__(source, read_as=without_signs(source))
        self._rules = rules
        self._found: list[tuple[int, Token]] = []
        self._is_xml = rules.is_xml or bool(_XHTML.search(source, 0, _HEAD))
        lower = source.lower()
        self._last_ends = {tag: lower.rfind(f"</{tag}") for tag in self.CDATA_CONTENT_ELEMENTS}

    def parse_starttag(self, i: int) -> int:
        """Read a start tag; in XML what is in a ``script`` is read as anything else."""
        end = super().parse_starttag(i)
        if self._rules.is_xml:
            self.clear_cdata_mode()
        return end

    def finish(self) -> Iterator[Token]:
        """The tokens. What the parser did not end, such as a tag that never closes, is no text."""
        if self.unread:
            # An entity that the end cut off is text.
            kind: _Kind = "text" if self.rawdata.startswith("&") else "other"
            self._found.append((len(self.source) - self.unread, Token(kind, "")))
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
            elif token.name == "?":
                token.text = token.raw
            if token.raw:
                yield token

    def _add(self, token: Token) -> None:
        self._found.append((self.place, token))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._add_start("alone" if self._rules.is_void(tag) else "start", tag, attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        # In HTML the slash of <script/> means nothing, so what follows is its program. A slash in
        # other elements is believed, as placeholders of one tag are common.
        if not self._is_xml and self._last_ends.get(tag, -1) > self.place:
            self._add_start("start", tag, attrs)
            self.set_cdata_mode(tag)
            return
        self._add_start("alone", tag, attrs)

    def _add_start(self, kind: _Kind, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attrs = [(name, value and self.as_written(value)) for name, value in attrs]
        says = element_says(tag, attrs)
        languages = self._rules.languages
        if says.translates is None and is_foreign(tag, attrs, languages):
            says = dataclasses.replace(says, translates=False)
        start = self.as_written(self.get_starttag_text() or "")

        read: list[Attribute] = []
        if (
            self._rules.with_attributes
            and says.translates is not False
            and (tag in _LABELED or not self._rules.is_opaque(tag))
        ):
            read = [self._as_in_source(each) for each in readable_attributes(tag, start, attrs)]

        values = {name: (value or "").lower() for name, value in reversed(attrs)}
        token = Token(
            kind,
            "",
            tag,
            attributes=read,
            translates=says.translates,
            role=says.role,
            classes=frozenset(values.get("class", "").split()),
            code_language=next((values[name] for name in _NAME_LANGUAGE if values.get(name)), ""),
        )
        if languages.target and (tag == "html" or any(name in SAY_LANGUAGE for name, _ in attrs)):
            token.own = own_attributes(tag, start, languages)
        self._add(token)

    def _as_in_source(self, attribute: Attribute) -> Attribute:
        """The attribute with its value as the source has it, with the statements of templates."""
        start, end = self.place + attribute.start, self.place + attribute.end
        return dataclasses.replace(attribute, value=html.unescape(self.source[start:end]))

    def handle_endtag(self, tag: str) -> None:
        self._add(Token("end", "", tag))

    def handle_data(self, data: str) -> None:  # noqa: ARG002
        is_text = self.cdata_elem is None or self.cdata_elem in _TEXT_ONLY
        self._add(Token("text" if is_text else "other", ""))

    def handle_entityref(self, name: str) -> None:  # noqa: ARG002
        self._add(Token("text", ""))

    handle_charref = handle_entityref

    def handle_comment(self, data: str) -> None:  # noqa: ARG002
        self._add(Token("alone", "", "!"))

    def handle_decl(self, decl: str) -> None:  # noqa: ARG002
        self._add(Token("other", ""))

    def unknown_decl(self, data: str) -> None:  # noqa: ARG002
        self._add(Token("other", ""))

    def handle_pi(self, data: str) -> None:
        # What PHP puts into a text is a word of it; other programs stand between texts.
        self._add(Token("alone", "", "?") if _WRITES.match(data) else Token("other", ""))
