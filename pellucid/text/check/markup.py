"""Markup in the lines of a corpus: tags and entities of HTML, and escapes of JSON, that were never
turned into text.

A model that learns ``&quot;``, ``<p>`` or ``\\u00fc`` writes it, too.
"""

import html.entities
import re

import numpy as np
import numpy.typing as npt

_ELEMENTS = (
    "a|abbr|acronym|address|article|aside|audio|b|big|blockquote|body|br|button|caption|center|cite"
    "|code|col|dd|del|details|dfn|div|dl|dt|em|figcaption|figure|font|footer|form|h[1-6]|head"
    "|header|hr|html|i|iframe|img|input|ins|kbd|label|li|link|main|mark|meta|nav|nobr|ol|option|p"
    "|param|pre|q|rp|rt|ruby|samp|script|section|select|small|span|strike|strong|style|sub|summary"
    "|sup|table|tbody|td|textarea|tfoot|th|thead|time|title|tr|tt|u|ul|var|video|wbr"
)
"""Names of HTML. Any other word in angle brackets may be text, such as ``<laughs>`` and ``<unk>``,
unless it has attributes or a slash."""
_TAG = re.compile(
    rf"</?(?:{_ELEMENTS})\s*/?>"
    r"|</[a-z][\w:.-]*\s*>"
    r"|<[a-z][\w:.-]*\s*/>"
    r"|<[a-z][\w:.-]*(?:\s+[a-z][\w:.-]*\s*=\s*(?:\"[^\"<>]*\"|'[^'<>]*'|[^\s\"'<>=]+))+\s*/?>"
    r"|<!--|<!\[CDATA\[|<!doctype\b",
    re.IGNORECASE,
)
_ENTITY = re.compile(
    # Tokenizing puts spaces around the marks: "& quot ;". Without its semicolon a name ends where
    # no address goes on: "?a=1&lt=2".
    r"&\s?#\s?(?:[0-9]{1,7}|[xX]\s?[0-9a-fA-F]{1,6})\s?;"
    r"|&\s?(?P<name>[A-Za-z][A-Za-z0-9]{1,31})\s?;"
    r"|&(?:amp|quot|nbsp|lt|gt|apos)(?![\w=])"
)
_ESCAPE = re.compile(r"\\u[0-9a-fA-F]{4}")


def has_markup(line: str) -> bool:
    """Whether a tag, an entity or an escape stands in the line."""
    if "\\" in line and _ESCAPE.search(line):
        return True
    if "<" in line and _TAG.search(line):
        return True
    return "&" in line and any(map(_is_entity, _ENTITY.finditer(line)))


def _is_entity(match: re.Match[str]) -> bool:
    """Whether the name is one of HTML: ``R&D;`` is text."""
    name = match["name"]
    return name is None or f"{name};" in html.entities.html5


def maybe_markup(text: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Positions where a tag, an entity or an escape may begin."""
    is_place = (text == ord("<")) | (text == ord("&")) | (text == ord("\\"))
    places: npt.NDArray[np.int64] = np.flatnonzero(is_place)
    return places
