"""Catalogs of translators: XLIFF 1.2 and 2.

What has a translation keeps it. In XLIFF the new ones are marked as made by a machine where the
format has a mark for that.
"""

import html
import re
from collections.abc import Iterator, Sequence

from pellucid.core.errors import DataError
from pellucid.documents.containers import (
    Element,
    local_name,
    new_element,
    parse_xml,
    write_xml,
    written_element,
)
from pellucid.documents.mixed import MixedText, Role, read_mixed
from pellucid.documents.plain import divide_at_tags
from pellucid.documents.segments import Alone, Close, Kind, Open, Range, Segment
from pellucid.documents.xml_places import (
    ElementPlace,
    edited,
    element_places,
    keeps_tags,
    with_attributes,
)

_PAIRS = frozenset(("g", "mrk", "pc"))
_OLD_STATES = frozenset(("", "new", "needs-translation", "initial"))
"""States in which what stands in a target is no translation yet."""


class XliffDocument:
    """An XLIFF file, version 1.2 or 2."""

    def __init__(self, data: bytes, what: str) -> None:
        """Raises DataError for what is not XLIFF."""
        self._data, self._root = data, parse_xml(data, what)
        if local_name(self._root) != "xliff":
            raise DataError(
                f"{what} must begin with <xliff>, begins with <{local_name(self._root)}>"
            )

        self._is_new = self._root.get("version", "1.2").startswith("2")
        self._texts: list[tuple[Element, MixedText]] = []

        for unit in self._root.iter():
            if local_name(unit) != ("segment" if self._is_new else "trans-unit"):
                continue
            source = _child(unit, "source")
            if source is not None and self._is_open(unit):
                self._texts.append(
                    (unit, read_mixed(source, _role_of, divide_at_tags, _range_of, _kind_of))
                )

        self.segments = [text.segment for _, text in self._texts]
        self._codec = self._root.getroottree().docinfo.encoding or "utf-8"

    def write(self, translated: Sequence[Segment]) -> bytes:
        """The file with targets; every other byte stays, in the encodings that allow it."""
        if len(translated) != len(self.segments):
            raise ValueError(f"{len(self.segments)} segments are needed, got {len(translated)}")
        places = self._places()
        if places is None:
            return self._written_by_lxml(translated)

        edits: list[tuple[int, int, bytes]] = []
        for (unit, text), segment in zip(self._texts, translated, strict=True):
            source, target = places[text.element], _child(unit, "target")
            states = {"state": "needs-review-translation", "state-qualifier": "leveraged-mt"}
            if self._is_new:
                states = {}
                start, stop = places[unit].start, places[unit].inner_start
                tag = with_attributes(self._text_of(start, stop), {"state": "translated"})
                edits.append((start, stop, self._bytes_of(tag)))

            if target is not None:
                place = places[target]
                name, start, stop = place.name, place.start, place.end
                tag = self._text_of(start, place.inner_start)
                blank = b""
            else:
                before = _child(unit, "seg-source")
                start = stop = places[text.element if before is None else before].end
                name = source.name.removesuffix("source") + "target"
                tag = f"<{name}>"
                # With the white space that comes after the one before it.
                rest = self._data[start : places[unit].inner_end]
                blank = rest[: len(rest) - len(rest.lstrip(b" \t\r\n"))]
            content = b"".join(self._content(text, segment, places))
            opening = self._bytes_of(with_attributes(tag, states))
            edits.append((start, stop, blank + opening + content + self._bytes_of(f"</{name}>")))
        return edited(self._data, edits)

    def _places(self) -> dict[Element, ElementPlace] | None:
        """Where each element stands; None for an encoding in which that cannot be said."""
        if not keeps_tags(self._codec):
            return None
        elements = [each for each in self._root.iter() if local_name(each)]
        places = element_places(self._data)
        names = [place.name.rpartition(":")[2] for place in places]
        if [local_name(each) for each in elements] != names:
            return None
        return dict(zip(elements, places, strict=True))

    def _content(
        self, text: MixedText, segment: Segment, places: dict[Element, ElementPlace]
    ) -> Iterator[bytes]:
        """A segment with the inline elements of the source as they are written."""
        for piece in segment.pieces:
            translation = (
                text.entities.written(piece)
                if isinstance(piece, str)
                else text.texts.get(piece.number)
            )
            if translation is not None:
                yield self._bytes_of(html.escape(translation, quote=False).replace("\r", "&#13;"))
                continue

            assert isinstance(piece, Open | Close | Alone)
            element = text.elements[piece.number]
            if element not in places:  # a comment or an instruction
                yield self._bytes_of(written_element(element))
                continue

            # A mark of a pair is one tag; a mark that stands alone is the whole element.
            place = places[element]
            start = place.inner_end if isinstance(piece, Close) else place.start
            yield self._data[start : place.inner_start if isinstance(piece, Open) else place.end]

    def _text_of(self, start: int, stop: int) -> str:
        return self._data[start:stop].decode(self._codec)

    def _bytes_of(self, text: str) -> bytes:
        return text.encode(self._codec, "xmlcharrefreplace")

    def _written_by_lxml(self, translated: Sequence[Segment]) -> bytes:
        for (unit, text), segment in zip(self._texts, translated, strict=True):
            target = _child(unit, "target")
            if target is None:
                namespace = text.element.tag[: -len("source")]
                target = new_element(unit, f"{namespace}target")
                before = _child(unit, "seg-source")
                anchor = text.element if before is None else before
                # Between the two, with the white space that was after the first.
                tail, anchor.tail = anchor.tail, anchor.tail
                anchor.addnext(target)
                target.tail = tail

            text.write(segment, target)

            # The state tells translators that a machine wrote this.
            if self._is_new:
                unit.set("state", "translated")
            else:
                target.set("state", "needs-review-translation")
                target.set("state-qualifier", "leveraged-mt")

        return write_xml(self._root)

    def _is_open(self, unit: Element) -> bool:
        """Whether it waits for a translation, and may have one."""
        holders = [unit, *unit.iterancestors()]
        answer = next((each.get("translate") for each in holders if each.get("translate")), "yes")
        target = _child(unit, "target")
        is_empty = target is None or not "".join(target.itertext()).strip()
        state = (
            unit.get("state")
            if self._is_new
            else (target.get("state") if target is not None else "")
        )
        is_approved = unit.get("approved") == "yes"
        has_state = state is not None and state != ""
        waits = is_empty or (has_state and state in _OLD_STATES)
        return answer != "no" and not is_approved and waits


def _child(unit: Element, name: str) -> Element | None:
    return next((each for each in unit if local_name(each) == name), None)


_BEGINS = {"bpt": "ept", "bx": "ex", "sc": "ec", "sm": "em"}
_ENDS = {end: begin for begin, end in _BEGINS.items()}
_ANGULAR = re.compile(r"(START|CLOSE)_([A-Z0-9_]*?)(?:_\d+)?")
"""Marks of Angular for the tags around a text. Of ``START_LINK`` and ``START_LINK_1`` the end is
``CLOSE_LINK``."""
_SCRIPTS = frozenset(("superscript", "subscript", "x-sup", "x-sub", "x-html-sup", "x-html-sub"))
_LABELS = frozenset(("link", "x-a", "x-html-a", "x-button"))
_BOXES = re.compile(
    r"link|button|paragraph|heading_level\d|(?:un)?ordered_list|list_item|table.*|tag_(?:div|li|td)"
)
"""Tags of Angular with a text of their own."""


def _range_of(element: Element) -> Range | None:
    """Return the range that an element without text begins or ends: a code, a marker, a tag of
    Angular."""
    name = local_name(element)
    ids = element.get("rid") or element.get("startRef") or element.get("id") or ""
    if name in _BEGINS:
        return name, ids, False
    if name in _ENDS:
        return _ENDS[name], ids, True
    angular = _ANGULAR.fullmatch(element.get("id") or element.get("equiv") or "")
    if name in ("x", "ph") and angular:
        return "angular", angular[2], angular[1] == "CLOSE"
    return None


def _kind_of(element: Element) -> Kind:
    """Return the kind of an element in a sentence, as far as its attributes tell."""
    names = {element.get("ctype", ""), element.get("type", ""), element.get("subType", "")}
    tag = re.sub(r"^START_|_\d+$", "", element.get("id") or "").lower()
    if names & _SCRIPTS or tag.removeprefix("tag_") in (
        *("sup", "sub", "superscript", "subscript"),
    ):
        return "script"
    if names & _LABELS or _BOXES.fullmatch(tag):
        return "label"
    return "format"


def _role_of(element: Element) -> Role:
    is_kept = element.get("mtype") == "protected" or element.get("translate") == "no"
    return "pair" if local_name(element) in _PAIRS and not is_kept else "alone"
