"""OpenDocument text (odt): paragraphs and headings of the body, of headers and of footers."""

import re
from collections.abc import Iterator, Sequence

from pellucid.core.errors import DataError
from pellucid.documents.containers import Archive, Element, local_name, parse_xml, write_xml
from pellucid.documents.mixed import MixedText, Role, read_mixed
from pellucid.documents.opendocument_language import say_language
from pellucid.documents.segments import Alone, Kind, Languages, Piece, Range, Segment

_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_STYLE = "{urn:oasis:names:tc:opendocument:xmlns:style:1.0}"
_PARTS = ("content.xml", "styles.xml")
_PAIRS = frozenset(("span", "a", "meta", "ruby-base"))
_BREAKS = frozenset(("line-break", "tab"))


class OpenDocument:
    """An odt file."""

    def __init__(self, data: bytes, what: str, languages: Languages | None = None) -> None:
        """``languages``: the file says that it is in the second one where it says the first.

        Raises DataError for a file that is none, is damaged, has a password or macros.
        """
        self._languages = languages or Languages()
        self._archive = Archive(data, what)
        names = self._archive.names
        if "content.xml" not in names:
            raise DataError(f"{what} must hold content.xml, which it does not")
        manifest = "META-INF/manifest.xml"
        if manifest in names and b"encryption-data" in self._archive.read(manifest):
            raise DataError(
                f"{what} has a password", hint="open it, remove the password and save it"
            )
        if any(name.startswith(("Basic/", "Scripts/")) for name in names):
            raise DataError(f"{what} holds macros, which are programs", hint="save it without them")

        self._roots: dict[str, Element] = {}
        self._texts: list[MixedText] = []
        for name in names:
            if name in _PARTS:
                self._roots[name] = parse_xml(self._archive.read(name), f"{what}: {name}")
        scripts = frozenset(
            each for root in self._roots.values() for each in _styles_of_scripts(root)
        )

        def kind_of(element: Element) -> Kind:
            return "script" if element.get(f"{_TEXT}style-name") in scripts else "format"

        for root in self._roots.values():
            for element in root.iter(f"{_TEXT}p", f"{_TEXT}h"):
                if any(local_name(each) == "deletion" for each in element.iterancestors()):
                    continue  # what a tracked change took out
                text = read_mixed(element, _role_of, range_of=_range_of, kind_of=kind_of)
                if text.segment.has_words:
                    self._texts.append(text)
        self.segments = [_spaced(text) for text in self._texts]

    def write(self, translated: Sequence[Segment]) -> bytes:
        """The file with other segments."""
        if len(translated) != len(self.segments):
            raise ValueError(f"{len(self.segments)} segments are needed, got {len(translated)}")
        changed = set()
        for text, before, after in zip(self._texts, self.segments, translated, strict=True):
            if before != after:
                text.write(after)
                changed.add(text.element.getroottree().getroot())
        if changed:
            changed |= {
                root for root in self._roots.values() if say_language(root, self._languages)
            }
        parts = {name: write_xml(root) for name, root in self._roots.items() if root in changed}
        return self._archive.written(parts)


def _styles_of_scripts(root: Element) -> Iterator[str]:
    """The names of the styles that raise or lower a text."""
    for style in root.iter(f"{_STYLE}style"):
        for properties in style.iter(f"{_STYLE}text-properties"):
            # Such as "super 58%" or "-33% 58%"; "0% 100%" is neither, and "3% 100%" hardly.
            position = properties.get(f"{_STYLE}text-position", "")
            if re.match(r"super|sub|-?[1-9]\d", position):
                yield style.get(f"{_STYLE}name", "")


def _role_of(element: Element) -> Role:
    name = local_name(element)
    if name in _BREAKS:
        return "break"
    return "pair" if name in _PAIRS else "alone"


def _range_of(element: Element) -> Range | None:
    """The bookmark, tracked change, comment or entry of an index that it begins or ends."""
    kind, _, side = local_name(element).rpartition("-")
    if local_name(element) == "annotation":
        kind, side = "annotation", "start"
    if side not in ("start", "end"):
        return None
    ids = [v for k, v in element.attrib.items() if k.endswith(("}name", "}change-id", "}id"))]
    return (kind, ids[0], side == "end") if ids else None


def _spaced(text: MixedText) -> Segment:
    """White space as the format defines it: a line end in the file is a space. Behind an element
    that stands for spaces between two words is one that is read.
    """
    pieces: list[Piece] = []
    for piece in text.segment.pieces:
        if isinstance(piece, str):
            piece = " ".join(piece.replace("\n", " ").replace("\r", " ").split("\t"))
            if _stand_for_spaces(text, pieces[-2:]) and not piece.startswith(" "):
                piece = f" {piece}"
        pieces.append(piece)
    return Segment(tuple(pieces))


def _stand_for_spaces(text: MixedText, last: Sequence[Piece]) -> bool:
    """Whether the last pieces are a word and, without a space, an element that stands for some."""
    if len(last) < 2 or not isinstance(last[0], str) or not isinstance(last[1], Alone):
        return False
    element = text.elements.get(last[1].number)
    return element is not None and local_name(element) == "s" and not last[0].endswith(" ")
