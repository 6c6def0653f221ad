"""Where the elements of an XML file begin and end, so that a few can be replaced in its bytes."""

import codecs
import dataclasses
import re
import xml.parsers.expat

from pellucid.documents.attributes import attributes_of
from pellucid.documents.containers import Element, local_name, parse_xml, write_xml

_CODECS = frozenset(("utf-8", "ascii", "iso8859-1"))
"""Encodings that expat reads by itself and that keep the bytes of tags."""
_TAG = re.compile(rb"(?:[^>\"']+|\"[^\"]*\"|'[^']*')*+>")
"""A tag; a sign in an attribute does not end it."""


@dataclasses.dataclass
class ElementPlace:
    """The bytes of one element."""

    name: str
    """With its prefix."""
    start: int
    inner_start: int
    """Where its content begins, after the start tag."""
    inner_end: int = 0
    """Where its end tag begins."""
    end: int = 0


class PlacedXml:
    """An XML file with the places of its elements, so that all other bytes of it stay.

    In an encoding in which these cannot be found it is written again, in UTF-8.
    """

    def __init__(self, data: bytes, what: str) -> None:
        """Raises DataError for what is not XML, or has entities of its own."""
        self.root = parse_xml(data, what)
        self._codec = self.root.getroottree().docinfo.encoding or "utf-8"
        if not _keeps_tags(self._codec):
            data, self._codec = write_xml(self.root), "utf-8"
            self.root = parse_xml(data, what)
        self.data = data
        elements = (each for each in self.root.iter() if local_name(each))
        self.places: dict[Element, ElementPlace]
        self.places = dict(zip(elements, _element_places(data), strict=True))

    def text(self, start: int, stop: int) -> str:
        """A stretch of the file as text."""
        return self.data[start:stop].decode(self._codec)

    def encoded(self, text: str) -> bytes:
        """Text as it stands in the file."""
        return text.encode(self._codec, "xmlcharrefreplace")


def _keeps_tags(encoding: str) -> bool:
    """Whether expat reads an encoding, and its tags are those of ASCII."""
    try:
        return codecs.lookup(encoding).name in _CODECS
    except LookupError:
        return False


def _element_places(data: bytes) -> list[ElementPlace]:
    """The places of all elements of XML without entities of its own, as they begin."""
    parser = xml.parsers.expat.ParserCreate()
    places: list[ElementPlace] = []
    opened: list[ElementPlace] = []

    def begin(name: str, _attributes: dict[str, str]) -> None:
        start = parser.CurrentByteIndex
        tag = _TAG.match(data, start)
        assert tag is not None
        place = ElementPlace(name, start, tag.end())
        places.append(place)
        opened.append(place)

    def end(_name: str) -> None:
        place = opened.pop()
        if data[place.inner_start - 2 : place.inner_start] == b"/>":
            place.inner_end = place.end = place.inner_start
        else:
            place.inner_end = parser.CurrentByteIndex
            place.end = data.index(b">", place.inner_end) + 1

    parser.StartElementHandler = begin
    parser.EndElementHandler = end
    parser.Parse(data, True)
    return places


def with_attributes(tag: str, values: dict[str, str]) -> str:
    """A start tag, not ended, with other values of some attributes; missing ones come last."""
    found = attributes_of(tag)
    for each in reversed(found):
        if each.name in values:
            tag = tag[: each.start] + values[each.name] + tag[each.end :]
    present = {each.name for each in found}
    added = "".join(f' {name}="{value}"' for name, value in values.items() if name not in present)
    body = tag.removesuffix(">").removesuffix("/").rstrip()
    return f"{body}{added}>"
