"""Books (epub): every chapter, and the titles in the table of contents."""

import posixpath
import urllib.parse
from collections.abc import Sequence

from pellucid.core.errors import DataError
from pellucid.documents.containers import Archive, Element, parse_xml, write_xml
from pellucid.documents.html_files import HtmlDocument
from pellucid.documents.mixed import MixedText, read_mixed
from pellucid.documents.segments import Segment

_NCX = "{http://www.daisy.org/z3986/2005/ncx/}text"
_CHAPTERS = (".xhtml", ".html", ".htm")
_CHAPTER_TYPES = frozenset(("application/xhtml+xml", "text/html"))
_CONTENTS_TYPE = "application/x-dtbncx+xml"
_CONTAINER = "META-INF/container.xml"


class BookDocument:
    """An epub file; pictures, fonts, styles and the package stay to the byte."""

    def __init__(self, data: bytes, what: str) -> None:
        """Raises DataError for a file that is none, is damaged or is locked by a seller."""
        self._archive = Archive(data, what)
        names = self._archive.names
        if _CONTAINER not in names:
            raise DataError(f"{what} must hold {_CONTAINER}, which it does not")
        if "META-INF/rights.xml" in names or "META-INF/sinf.xml" in names:
            raise DataError(f"{what} is locked by its seller (DRM), and cannot be read")

        self.segments: list[Segment] = []
        self._chapters: dict[str, tuple[HtmlDocument, int]] = {}
        self._contents: list[tuple[str, Element, list[MixedText], int]] = []
        types = _media_types(self._archive)
        for name in names:
            if name.lower().endswith(_CHAPTERS) or types.get(name) in _CHAPTER_TYPES:
                chapter = HtmlDocument(_decoded(self._archive.read(name), f"{what}: {name}"))
                self._chapters[name] = (chapter, len(self.segments))
                self.segments += chapter.segments
            elif name.lower().endswith(".ncx") or types.get(name) == _CONTENTS_TYPE:
                root = parse_xml(self._archive.read(name), f"{what}: {name}")
                texts = [read_mixed(each, lambda _: "alone") for each in root.iter(_NCX)]
                self._contents.append((name, root, texts, len(self.segments)))
                self.segments += [text.segment for text in texts]

    def write(self, translated: Sequence[Segment]) -> bytes:
        """The book with other segments."""
        if len(translated) != len(self.segments):
            raise ValueError(f"{len(self.segments)} segments are needed, got {len(translated)}")
        changed: dict[str, bytes] = {}
        for name, (chapter, first) in self._chapters.items():
            own = translated[first : first + len(chapter.segments)]
            changed[name] = chapter.text_with(own).encode()
        for name, root, texts, first in self._contents:
            own = translated[first : first + len(texts)]
            if own == self.segments[first : first + len(texts)]:
                continue
            for text, segment in zip(texts, own, strict=True):
                text.write(segment)
            changed[name] = write_xml(root)
        return self._archive.written(changed)


def _media_types(archive: Archive) -> dict[str, str]:
    """The media types of the parts that the packages of a book list, by name.

    What cannot be read there is left out: chapters are then known by how their names end.
    """
    try:
        container = parse_xml(archive.read(_CONTAINER), _CONTAINER)
    except DataError:
        return {}
    packages = {each.get("full-path") for each in container.iter("{*}rootfile")}

    types: dict[str, str] = {}
    for package in packages.intersection(archive.names):
        try:
            root = parse_xml(archive.read(package), package)
        except DataError:
            continue
        for item in root.iter("{*}item"):
            # An address from the folder of the package.
            place = urllib.parse.unquote(item.get("href", ""))
            name = posixpath.normpath(posixpath.join(posixpath.dirname(package), place))
            types[name] = item.get("media-type", "")
    return types


def _decoded(data: bytes, what: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise DataError(f"{what} must be in UTF-8, as epub requires") from None
