"""Attributes of HTML that people read: which they are, and where their values stand in a tag."""

import dataclasses
import html
import re
from collections.abc import Mapping, Sequence

from pellucid.core.texts import words_in

_BLANKS = " \t\r\n\f"
_OF_ALL = words_in("title aria-label aria-description aria-placeholder aria-roledescription")
_BY_TAG: dict[str, frozenset[str]] = {
    "area": frozenset(("alt",)),
    "img": frozenset(("alt",)),
    "input": frozenset(("alt", "placeholder")),
    "optgroup": frozenset(("label",)),
    "option": frozenset(("label",)),
    "textarea": frozenset(("placeholder",)),
    "th": frozenset(("abbr",)),
    "track": frozenset(("label",)),
}
"""By element. These and ``_OF_ALL`` are the attributes that HTML's standard translates (section
3.2.6.2), and the labels of WAI-ARIA."""
_BUTTONS = frozenset(("button", "reset", "submit"))
_UNREAD = frozenset(("link", "script", "style"))
"""Elements whose titles nobody reads."""
_DESCRIPTIONS = words_in(
    "title description og:title og:description og:image:alt headline twitter:title"
    " twitter:description twitter:image:alt dc.title dc.description dcterms.title"
    " dcterms.description"
)
"""Names of what a ``meta`` says to readers of search engines and social networks."""


@dataclasses.dataclass(frozen=True)
class Attribute:
    """The value of an attribute, with its place in the source of the tag."""

    name: str
    """In lower case."""
    value: str
    """With entities resolved."""
    start: int
    end: int
    """Without the quotes."""
    is_quoted: bool


def readable_attributes(
    tag: str, source: str, attributes: Sequence[tuple[str, str | None]]
) -> list[Attribute]:
    """The attributes of a start tag that a reader reads or hears.

    ``attributes`` are what the parser read in ``source``: where the two differ, as in a tag that is
    not well formed, there is none.
    """
    values = {name: value or "" for name, value in reversed(attributes)}  # of two the first counts
    wanted = [name for name in values if _is_read(tag, name, values)]
    if not any(any(map(str.isalpha, values[name])) for name in wanted):
        return []

    # Of the others, such as addresses, versions of Python resolve "&region=" in two ways.
    found = attributes_of(source)
    ours = [(each.name, each.value if each.name in wanted else "") for each in found]
    if ours != [(name, (value or "") if name in wanted else "") for name, value in attributes]:
        return []

    read = {each.name: each for each in reversed(found)}
    return [read[name] for name in wanted if any(map(str.isalpha, read[name].value))]


def _is_read(tag: str, name: str, values: Mapping[str, str]) -> bool:
    if tag == "meta":
        about = values.get("name") or values.get("property") or values.get("itemprop", "")
        return name == "content" and about.lower() in _DESCRIPTIONS
    if tag == "input" and name == "value":
        return values.get("type", "").lower() in _BUTTONS
    return name in _BY_TAG.get(tag, ()) or (name in _OF_ALL and tag not in _UNREAD)


_TAG_NAME = re.compile(f".?[^{_BLANKS}/>]*", re.DOTALL)
_ATTRIBUTE = re.compile(
    rf"[{_BLANKS}/]*(?P<name>[^{_BLANKS}/>][^{_BLANKS}/>=]*)"
    rf"(?:[{_BLANKS}]*=[{_BLANKS}]*"
    rf"(?:(?P<quote>[\"'])(?P<quoted>.*?)(?:(?P=quote)|\Z)|(?P<bare>[^{_BLANKS}>]*)))?",
    re.DOTALL,
)
"""An equals sign at its beginning belongs to the name."""


def attributes_of(source: str) -> list[Attribute]:
    """All attributes of a start tag, as HTML's standard divides it (sections 13.2.5.32 to 40)."""
    found: list[Attribute] = []
    name = _TAG_NAME.match(source)
    at = name.end() if name else 0
    while each := _ATTRIBUTE.match(source, at):
        at = each.end()
        quoted = each["quote"] is not None
        has_value = quoted or each["bare"] is not None
        start, stop = each.span("quoted" if quoted else "bare") if has_value else (each.end(),) * 2
        value = html.unescape(source[start:stop])
        found.append(Attribute(each["name"].lower(), value, start, stop, quoted))
    return found
