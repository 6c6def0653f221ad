"""Texts without formatting in Word and PowerPoint: attributes, charts, entries of an index."""

import dataclasses
import itertools
import re
from collections.abc import Iterator

from pellucid.documents.containers import Element, local_name
from pellucid.documents.segments import Alone, Piece, Segment, segment_of

_ATTRIBUTES = {
    # read aloud: of a picture, a chart or a shape, and of a table
    **dict.fromkeys(("docPr", "cNvPr"), ("descr", "title")),
    **dict.fromkeys(("tblCaption", "tblDescription"), ("val",)),
    # shown beside a link, and behind a page
    "hyperlink": ("tooltip",),
    **dict.fromkeys(("hlinkClick", "hlinkHover", "hlinkMouseOver"), ("tooltip",)),
    "textpath": ("string",),
    # forms: a list to choose from, and help
    "listItem": ("displayText",),
    **dict.fromkeys(("listEntry", "helpText", "statusText"), ("val",)),
}
"""By element, the attributes that people read."""
_OF_DRAWINGS = ("alt", "title")
"""The same, of a shape in the markup of Word before 2010."""
_VML = "{urn:schemas-microsoft-com:vml}"
_FILE_NAME = re.compile(r"\S+\.\w{2,5}|\w:\\.*|\w+:\S*")
_ENTRY = re.compile(r"\s*(?:XE|TC)\s", re.IGNORECASE)
"""A field that is an entry of an index or of a table of contents."""
_LINK = re.compile(r"\s*HYPERLINK\b", re.IGNORECASE)
_QUOTED = re.compile(r"\s*\w+\s+[\"“”„]((?:[^\"“”\\]|\\.)*)[\"“”]", re.DOTALL)
_TIP = re.compile(
    r"\s*HYPERLINK\b(?:[^\"]|\"[^\"]*\")*?\\o\s+\"((?:[^\"\\]|\\.)*)\"", re.IGNORECASE | re.DOTALL
)
"""The text that a link in Word's older way shows."""
_LEVELS = re.compile(r"(?<!\\):")
"""The sign between an entry of an index and those below it."""


@dataclasses.dataclass
class ShownString:
    """A text that an element holds, or an attribute of it."""

    element: Element
    attribute: str | None = None

    @property
    def segment(self) -> Segment:
        """The text as it is."""
        text = self.element.get(self.attribute) if self.attribute else self.element.text
        return Segment((text or "",))

    def write(self, segment: Segment) -> None:
        """Write another text."""
        if self.attribute:
            self.element.set(self.attribute, segment.text)
        else:
            self.element.text = segment.text


@dataclasses.dataclass
class IndexEntry:
    """The words of a field: of an entry of an index, whose levels are texts by themselves, or those
    that a link shows.
    """

    element: Element
    parts: list[Element]
    """The elements that hold the instruction."""
    start: int
    end: int
    """The place of the words in the instruction."""
    has_levels: bool = True

    @property
    def segment(self) -> Segment:
        """The words, with a mark for the end of each level."""
        words = "".join(part.text or "" for part in self.parts)[self.start : self.end]
        pieces: list[Piece] = []
        for number, level in enumerate(_LEVELS.split(words) if self.has_levels else [words]):
            if number:
                pieces.append(Alone(number - 1, breaks=True))
            pieces.append(re.sub(r"\\(.)", r"\1", level))
        return segment_of(pieces)

    def write(self, segment: Segment) -> None:
        """Write other words, in the element in which they begin."""
        special = r'[\\":“”]' if self.has_levels else r'[\\"]'
        words = "".join(
            re.sub(special, r"\\\g<0>", piece) if isinstance(piece, str) else ":"
            for piece in segment.pieces
        )
        at = 0
        for part in self.parts:
            text = part.text or ""
            first = min(max(self.start - at, 0), len(text))
            last = min(max(self.end - at, 0), len(text))
            is_begin = at <= self.start < at + len(text)
            part.text = text[:first] + (words if is_begin else "") + text[last:]
            at += len(text)


def strings_of(element: Element) -> Iterator[ShownString | IndexEntry]:
    """The texts without formatting that an element holds."""
    name = local_name(element)
    for attribute in _attributes_of(element, name):
        if not _FILE_NAME.fullmatch(element.get(attribute, "")):
            yield ShownString(element, attribute)
    if _is_chart_text(element):
        yield ShownString(element)
    if name == "instrText" and (
        _ENTRY.match(element.text or "") or _LINK.match(element.text or "")
    ):
        yield from _entry_of(element)


def _attributes_of(element: Element, name: str) -> Iterator[str]:
    """The attributes of an element that people read."""
    if name in _ATTRIBUTES:
        wanted = _ATTRIBUTES[name]
        yield from (key for key in element.attrib if key.rpartition("}")[2] in wanted)
    if name and element.tag.startswith(_VML):
        yield from (key for key in _OF_DRAWINGS if key in element.attrib)


def _entry_of(element: Element) -> Iterator[IndexEntry]:
    """The words of the instruction that begins in an element; Word divides it among runs."""
    parts = [element]
    for run in element.getparent().itersiblings():
        found = [each for each in run if local_name(each) in ("instrText", "fldChar")]
        if any(local_name(each) == "fldChar" for each in found):
            break
        parts += found

    instruction = "".join(part.text or "" for part in parts)
    is_entry = _ENTRY.match(element.text or "") is not None
    quoted = (_QUOTED if is_entry else _TIP).match(instruction)
    if quoted is not None:
        yield IndexEntry(element, parts, *quoted.span(1), is_entry)


def left_out_entries(root: Element) -> int:
    """How many entries of an index have words that cannot be found."""
    begun = (each for each in root.iter("{*}instrText") if _ENTRY.match(each.text or ""))
    return sum(not list(_entry_of(each)) for each in begun)


def _is_chart_text(element: Element) -> bool:
    """Whether an element holds the name of a category or of a series."""
    name = local_name(element)
    if name == "v":
        holders = [local_name(each) for each in itertools.islice(element.iterancestors(), 3)]
        is_cached = "pt" in holders[:1] and {"strCache", "strLit", "lvl"} & set(holders[1:2])
        return bool(is_cached) or holders[:1] == ["txData"]
    if name == "pt":
        return "strDim" in [
            local_name(each) for each in itertools.islice(element.iterancestors(), 2)
        ]
    return False
