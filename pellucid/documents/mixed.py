"""Elements of XML with text and inline elements between: read as pieces, and written again."""

import copy
import dataclasses
from collections.abc import Callable, Sequence
from typing import Literal

from pellucid.documents.containers import Element, local_name
from pellucid.documents.segments import Alone, Close, Open, Piece, Range, Ranges, Segment

Role = Literal["pair", "alone", "break"]
"""What an inline element is: text to translate inside, none, or the end of a line."""


@dataclasses.dataclass
class MixedText:
    """The content of an element, and the inline elements behind its marks."""

    element: Element
    segment: Segment
    elements: dict[int, Element]
    texts: dict[int, str]
    """Marks that are text in the file: tags that a program wrote as text."""

    def write(self, segment: Segment, target: Element | None = None) -> None:
        """Write another segment into the element, or with copies into ``target``."""
        into = self.element if target is None else target
        is_copy = target is not None
        tail = into.tail
        for child in list(into):
            into.remove(child)
        into.text, into.tail = None, tail

        holders = [into]
        for piece in segment.pieces:
            if isinstance(piece, Close):
                holders.pop()
                continue
            text = piece if isinstance(piece, str) else self.texts.get(piece.number)
            if text is not None:
                _add_text(holders[-1], text)
                continue
            assert isinstance(piece, Open | Alone)
            element = self.elements[piece.number]
            if is_copy:
                element = copy.deepcopy(element)
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
    split_text: Callable[[str], Sequence[tuple[str, bool]]] | None = None,
    range_of: Callable[[Element], Range | None] = lambda _: None,
) -> MixedText:
    """The content of an element. Comments and instructions stand alone.

    ``split_text`` divides a text into parts, each with whether it is kept as it is. ``range_of``
    tells the range that an element begins or ends.
    """
    elements: dict[int, Element] = {}
    texts: dict[int, str] = {}
    pieces: list[Piece] = []
    ranges = Ranges()

    def add(text: str | None) -> None:
        for part, is_kept in split_text(text) if text and split_text else [(text or "", False)]:
            if is_kept:
                number = len(elements) + len(texts)
                texts[number] = part
                pieces.append(Alone(number))
            elif part:
                pieces.append(part)

    def walk(holder: Element) -> None:
        add(holder.text)
        for child in holder:
            number = len(elements) + len(texts)
            elements[number] = child
            role = role_of(child) if local_name(child) else "alone"
            if role == "pair":
                pieces.append(Open(number))
                walk(child)
                pieces.append(Close(number))
            else:
                ends = ranges.ended_by(number, range_of(child) if local_name(child) else None)
                pieces.append(Alone(number, breaks=role == "break", ends=ends))
            add(child.tail)

    walk(element)
    return MixedText(element, Segment(tuple(pieces)), elements, texts)
