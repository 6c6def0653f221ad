"""Where the elements of an XML file begin and end, so that a few can be replaced in its bytes."""

import codecs
import dataclasses
import re
import xml.parsers.expat

from pellucid.core.errors import DataError
from pellucid.core.texts import codec_of
from pellucid.documents.attributes import attributes_of
from pellucid.documents.containers import Element, local_name, parse_xml, write_xml

_ENCODINGS = {"utf-8": "UTF-8", "ascii": "US-ASCII", "iso8859-1": "ISO-8859-1"}
"""Encodings that keep the bytes of tags, by the names that Python and expat have for them."""
_OTHER_MARKS = codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE
"""The beginnings of UTF-16, which lxml calls UTF-8 in a file without a declaration."""
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
        self._codec = codec_of(self.root.getroottree().docinfo.encoding or "utf-8")
        if self._codec not in _ENCODINGS or data.startswith(_OTHER_MARKS):
            data, self._codec = write_xml(self.root), "utf-8"
        self.data = data
        try:
            places = _element_places(data, _ENCODINGS[self._codec])
        except xml.parsers.expat.ExpatError as error:
            # lxml takes names of XML 1.0 that came with its fifth edition, which expat does not.
            raise DataError(f"{what} is not XML that expat reads: {error}") from None
        elements = (each for each in self.root.iter() if local_name(each))
        self.places: dict[Element, ElementPlace] = dict(zip(elements, places, strict=True))

    def text(self, start: int, stop: int) -> str:
        """A stretch of the file as text."""
        return self.data[start:stop].decode(self._codec)

    def encoded(self, text: str) -> bytes:
        """Text as it stands in the file."""
        return text.encode(self._codec, "xmlcharrefreplace")


def _element_places(data: bytes, encoding: str) -> list[ElementPlace]:
    """The places of all elements of XML without entities of its own, as they begin."""
    # expat does not know UTF8, say, by which lxml calls an encoding too.
    parser = xml.parsers.expat.ParserCreate(encoding)
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
