"""The parts of an Office file by their relationships, as Office itself finds them.

No part has a name that all programs give it: Word on the web writes ``word/document2.xml``.
"""

import collections
import posixpath
import urllib.parse
from collections.abc import Iterator

from pellucid.core.errors import DataError
from pellucid.documents.containers import Archive, parse_xml

_MAIN = "officeDocument"
_TEXTS = frozenset(
    (
        *("header", "footer", "footnotes", "endnotes", "comments", "glossaryDocument"),
        *("slide", "notesSlide", "slideLayout", "slideMaster"),
        *("diagramData", "diagramDrawing", "chart", "chartEx", "chartUserShapes"),
    )
)
"""Relationships to parts with text; each is the end of an address, which differs among the two
standards and Microsoft's additions."""
_STYLES = frozenset(("styles", "numbering"))
EMBEDDED = frozenset(("package", "oleObject", "aFChunk"))
"""Relationships to documents of their own, such as the worksheet of a chart."""


def related_parts(archive: Archive, main: str, what: str) -> dict[str, str]:
    """The parts of an archive by name, with the kind of relationship that leads to each.

    The main part comes first: it is ``main`` where no relationship says which it is. Empty if there
    is none. Raises DataError for relationships that cannot be read.
    """
    names = frozenset(archive.names)
    relations = _relations(archive, "", names, what)
    first = next((name for kind, name in relations if kind == _MAIN), main)
    if first not in names:
        return {}

    found = {first: _MAIN}
    waiting = collections.deque(found)
    while waiting:
        part = waiting.popleft()
        for kind, name in _relations(archive, part, names, what):
            if name not in found and kind in _TEXTS | _STYLES | EMBEDDED:
                found[name] = kind
                if kind in _TEXTS:
                    waiting.append(name)
    return found


def has_text(kind: str) -> bool:
    """Whether a part that this relationship leads to has text to translate."""
    return kind == _MAIN or kind in _TEXTS


def _relations(
    archive: Archive, part: str, names: frozenset[str], what: str
) -> Iterator[tuple[str, str]]:
    """The kind and the part of each relationship within the archive that a part has."""
    folder, name = posixpath.split(part)
    place = posixpath.join(folder, "_rels", f"{name}.rels")
    if place not in names:
        return

    try:
        root = parse_xml(archive.read(place), f"{what}: {place}")
    except DataError:
        if not part:
            raise
        return  # Office leaves out what such a part refers to

    for each in root.iter("{*}Relationship"):
        if each.get("TargetMode") == "External":
            continue
        target = urllib.parse.unquote(each.get("Target", ""))
        full = posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
        if full in names:
            yield each.get("Type", "").rpartition("/")[2], full
