"""Elements of XML with text and inline elements between: read as pieces, and written again."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Literal

from pellucid.documents.containers import Element, local_name
from pellucid.documents.html_rules import BLOCKS
from pellucid.documents.plain import Entities, Tag, without_outer_breaks
from pellucid.documents.segments import Alone, Close, Kind, Open, Piece, Range, Ranges, Segment

Role = Literal["pair", "block", "alone", "break"]
"""The role of an inline element: text to translate inside, also such as begins and ends a line,
none, or the end of a line."""


@dataclasses.dataclass
class MixedText:
    """The content of an element, and the inline elements behind its marks."""

    element: Element
    segment: Segment
    elements: dict[int, Element]
    texts: dict[int, str]
    """Marks that are text in the file: tags that a program wrote as text."""
    entities: Entities
    """References that a program wrote as text."""

    def text_of(self, piece: Piece) -> str | None:
        """A text, or a mark that is one, as the file has it; None for an element."""
        if isinstance(piece, str):
            return self.entities.written(piece)
        return self.texts.get(piece.number)

    def write(self, segment: Segment) -> None:
        """Write another segment into the element."""
        tail = self.element.tail
        for child in list(self.element):
            self.element.remove(child)
        self.element.text, self.element.tail = None, tail

        holders = [self.element]
        for piece in segment.pieces:
            if isinstance(piece, Close):
                holders.pop()
                continue
            if (text := self.text_of(piece)) is not None:
                _add_text(holders[-1], text)
                continue
            assert isinstance(piece, Open | Alone)
            element = self.elements[piece.number]
            element.tail = None
            if isinstance(piece, Open):
                for child in list(element):
                    element.remove(child)
                element.text = None
                holders[-1].append(element)
                holders.append(element)
            else:
                holders[-1].append(element)


def _add_text(element: Element, text: str) -> None:
    """Add text at the end of an element's content."""
    if len(element):
        element[-1].tail = (element[-1].tail or "") + text
    else:
        element.text = (element.text or "") + text


def read_mixed(
    element: Element,
    role_of: Callable[[Element], Role],
    split_text: Callable[[str], Sequence[tuple[str, Tag | None]]] | None = None,
    range_of: Callable[[Element], Range | None] = lambda _: None,
    kind_of: Callable[[Element], Kind] = lambda _: "format",
    read_as: Callable[[Element], str] = lambda _: "",
) -> MixedText:
    """The content of an element. Comments and instructions stand alone.

    ``split_text`` divides a text at the tags in it, which are kept as they are. ``range_of`` tells
    the range that an element begins or ends, ``kind_of`` what an element is in a sentence, and
    ``read_as`` the word that an element without text to translate stands for.
    """
    elements: dict[int, Element] = {}
    texts: dict[int, str] = {}
    pieces: list[Piece] = []
    ranges = Ranges()
    divide = split_text or (lambda text: [(text, None)])
    parts = divide("".join(element.itertext())) if split_text else []
    entities = Entities("".join(part for part, tag in parts if tag is None))

    def add(text: str | None) -> None:
        """Add the pieces of a text, with the tags in it."""
        for part, tag in divide(text or ""):
            if tag is not None:
                number = len(elements) + len(texts)
                texts[number] = part
                is_alone = tag.kind == "alone" or tag.name in BLOCKS
                range_ = None if is_alone else ("tag", tag.name, tag.kind == "end")
                ends = ranges.ended_by(number, range_)
                pieces.append(Alone(number, tag.text, tag.breaks, ends=ends, kind=tag.role))
            elif part:
                pieces.append(entities.read(part))

    def ends_line(role: Role) -> None:
        """Add a line end of which nothing is written, beside a block."""
        if role == "block":
            number = len(elements) + len(texts)
            texts[number] = ""
            pieces.append(Alone(number, breaks=True))

    def walk(holder: Element) -> None:
        """Add the pieces of what an element holds."""
        add(holder.text)
        for child in holder:
            number = len(elements) + len(texts)
            elements[number] = child

            role = role_of(child) if local_name(child) else "alone"
            if role in ("pair", "block"):
                ends_line(role)
                pieces.append(Open(number, kind_of(child)))
                walk(child)
                pieces.append(Close(number))
                ends_line(role)
            else:
                is_element = bool(local_name(child))
                breaks = role == "break"
                has_range = is_element and not breaks
                ends = ranges.ended_by(number, range_of(child) if has_range else None)
                kind = kind_of(child) if is_element else "format"
                reads = read_as(child) if is_element and not breaks else ""
                pieces.append(Alone(number, reads, breaks, ends=ends, kind=kind))

            add(child.tail)

    walk(element)
    segment = Segment(tuple(without_outer_breaks(pieces) if split_text else pieces))
    return MixedText(element, segment, elements, texts, entities)
