"""The pieces of a segment as the runs of a paragraph."""

import copy

from pellucid.documents.containers import Element, new_element
from pellucid.documents.office_paragraphs import (
    ElementNames,
    Field,
    Paragraph,
    Part,
    Runs,
    content_of,
    is_property,
)
from pellucid.documents.segments import OUTERMOST, Alone, Close, Segment

_SPACE = "{http://www.w3.org/XML/1998/namespace}space"


class ParagraphWriter:
    """Writes the pieces of a segment into a paragraph, whose properties stay."""

    def __init__(self, paragraph: Paragraph) -> None:
        self._paragraph, self._names = paragraph, paragraph.names
        self._runs = Runs(paragraph.names)

    def write(self, segment: Segment) -> None:
        """Replace what the paragraph holds."""
        paragraph = self._paragraph
        root = paragraph.element
        _clear(root, self._names)
        # Where to add, with the run whose formatting texts have there, and the parts to end with.
        holders: list[tuple[Element, Element | None, tuple[Part, ...]]]
        holders = [(root, paragraph.bases[OUTERMOST], ())]

        for piece in segment.pieces:
            holder, run, tail = holders[-1]
            if isinstance(piece, str):
                self._add_text(holder, piece, run)
            elif isinstance(piece, Alone):
                for part in paragraph.alone[piece.number]:
                    self._add_part(holder, part)
            elif isinstance(piece, Close):
                for part in tail:
                    self._add_part(holder, part)
                holders.pop()
            else:
                opened = paragraph.opened[piece.number]
                base = paragraph.bases.get(piece.number)
                if isinstance(opened, Field):
                    for part in opened.head:
                        self._add_part(holder, part)
                    holders.append((holder, base, opened.tail))
                elif opened.tag == f"{self._names.namespace}r":
                    holders.append((holder, opened, ()))
                else:
                    holder.append(opened)
                    inner = content_of(opened, self._names)
                    _clear(inner, self._names)
                    holders.append((inner, base, ()))

        # In slides the properties of the paragraph's end have to be last.
        for end in root.findall(f"{self._names.namespace}endParaRPr"):
            root.append(end)

    def _add_part(self, holder: Element, part: Part) -> None:
        """Add what is no text; a part of a run in a run of its own."""
        if part.run is None:
            holder.append(part.element)
            return
        added = self._new_run(holder, part.run)
        # Moved and not copied: a copy of a picture would have the same id.
        added.append(part.element)

    def _new_run(self, holder: Element, run: Element | None) -> Element:
        """A new run with the properties of another one."""
        added = new_element(holder, f"{self._names.namespace}r")
        properties = None if run is None else self._runs.properties_of(run)
        if properties is not None:
            added.append(copy.deepcopy(properties))
        return added

    def _add_text(self, holder: Element, text: str, run: Element | None) -> None:
        added = self._new_run(holder, run)
        element = new_element(added, f"{self._names.namespace}t")
        element.text = text
        if self._names.marks_spaces:
            element.set(_SPACE, "preserve")


def _clear(element: Element, names: ElementNames) -> None:
    """Take out the content; what describes the element itself stays."""
    for child in list(element):
        if not is_property(child, names):
            element.remove(child)
