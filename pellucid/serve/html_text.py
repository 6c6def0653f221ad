"""Extracts text from HTML for translation, and puts the translations between the same tags."""

import dataclasses
import html
import re
from collections.abc import Sequence
from html.parser import HTMLParser

_BLANKS = " \t\r\n\f"
"""White space as HTML defines it; a no-break space is text."""
_LINE_END = re.compile(rf"[{_BLANKS}]*[\r\n][{_BLANKS}]*")
_KEPT = frozenset(("script", "style", "code"))
"""Elements whose content is not translated."""
_KEEPS_LINES = frozenset(("pre", "textarea"))
_VOID = frozenset(
    (
        *("area", "base", "br", "col", "embed", "hr", "img"),
        *("input", "link", "meta", "param", "source", "track", "wbr"),
    )
)
"""Elements without content and end tag."""


@dataclasses.dataclass(frozen=True)
class HtmlText:
    """A document or part of one: markup and texts alternate, starting and ending with markup."""

    markup: tuple[str, ...]
    """As it was written: tags, comments, and white space around texts."""
    texts: tuple[str, ...]
    """The visible texts with entities resolved; one fewer than ``markup``."""

    def with_texts(self, texts: Sequence[str]) -> str:
        """The same markup around other texts, which are escaped."""
        pieces = [self.markup[0]]
        for text, after in zip(texts, self.markup[1:], strict=True):
            pieces += [html.escape(text, quote=False), after]
        return "".join(pieces)


def read_html(source: str) -> HtmlText:
    """Split HTML into markup and texts. Every tag begins a new text.

    Text inside script, style and code and below ``translate="no"`` belongs to the markup, and so
    does text without a letter or digit. As in a browser, a line end is a space unless it is inside
    pre or textarea. A tag that never ends is text.
    """
    reader = _Reader()
    reader.feed(source)
    reader.finish()
    return HtmlText((*reader.markup, reader.open_markup), tuple(reader.texts))


class _Reader(HTMLParser):
    """The parser of the standard library, with each tag kept as written."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.markup: list[str] = []
        self.texts: list[str] = []
        self.open_markup = ""
        """The markup after the last text."""
        self._text = ""
        """The text since the last tag; the parser reports it in parts."""
        self._kept: list[str] = []
        """Open elements, from the outermost one that is not translated."""
        self._lines: list[str] = []
        """Open elements that keep line ends."""

    def finish(self) -> None:
        """Handle the rest of a document that may end inside a tag.

        Replaces ``HTMLParser.close``, which tries each ``<`` in the rest as the start of a tag and
        takes quadratic time.
        """
        left, self.rawdata = self.rawdata, ""
        self.handle_data(left if self.cdata_elem else html.unescape(left))
        self._add_markup("")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._add_markup(self.get_starttag_text() or "")
        if tag in _VOID:
            return
        # HTML's own attribute for text that must not be translated.
        says_no = any(
            name == "translate" and (value or "").lower() == "no" for name, value in attrs
        )
        # Inside a kept element every tag is counted, or an inner end tag would end it too early.
        if self._kept or tag in _KEPT or says_no:
            self._kept.append(tag)
        if tag in _KEEPS_LINES:
            self._lines.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        self._add_markup(self.get_starttag_text() or "")

    def handle_endtag(self, tag: str) -> None:
        self._add_markup(f"</{tag}>")
        for opened in (self._kept, self._lines):
            if tag in opened:  # it also ends the elements inside that were never closed
                del opened[len(opened) - 1 - opened[::-1].index(tag) :]

    def handle_data(self, data: str) -> None:
        if self.cdata_elem is None:
            self._text += data
        else:  # script and style have no entities
            self._add_markup(data)

    def handle_comment(self, data: str) -> None:
        self._add_markup(f"<!--{data}-->")

    def handle_decl(self, decl: str) -> None:
        self._add_markup(f"<!{decl}>")

    def unknown_decl(self, data: str) -> None:
        end = "]]>" if data.startswith("CDATA[") else "]>"
        self._add_markup(f"<![{data}{end}")

    def handle_pi(self, data: str) -> None:
        self._add_markup(f"<?{data}>")

    def _add_markup(self, markup: str) -> None:
        """Finish the text before this markup, and keep both."""
        text, self._text = self._text, ""
        words = text.strip(_BLANKS)
        if self._kept or not any(map(str.isalnum, words)):
            self.open_markup += html.escape(text, quote=False) + markup
            return

        # White space around the text belongs to the markup: the model would drop it.
        start = text.index(words)
        self.markup.append(self.open_markup + text[:start])
        self.texts.append(words if self._lines else _LINE_END.sub(" ", words))
        self.open_markup = text[start + len(words) :] + markup
