"""The types that a format and the translation share: segments of text, marks for inline elements.

A format reads a document into segments, one for each paragraph, cell, title or subtitle, and
writes translated segments back into the document that it read. A mark is only a number: the format
knows which element, run or tag it stands for, the translation knows only where it stands.
"""

import bisect
import dataclasses
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, Protocol

Span = tuple[int, int]
"""From a character up to another, not included."""
Kind = Literal["format", "span", "label", "badge", "script", "reference"]
"""The kind of an inline element: a format such as bold; a span, whose meaning only a style sheet
knows; a thing that has a text of its own, such as a link or a button; a badge, which stands beside
a text and is no part of it; a text that is raised or lowered; or a reference to a note or to a page
of the printed book, which is never translated."""


def overlapping(spans: Sequence[Span], start: int, end: int) -> Sequence[Span]:
    """The spans that overlap with characters of a text, or hold a place within them if ``start`` is
    ``end``; the spans are in order and do not overlap with each other.
    """
    first = bisect.bisect_right(spans, start, key=lambda span: span[1])
    return spans[first : bisect.bisect_left(spans, end, key=lambda span: span[0])]


@dataclasses.dataclass(frozen=True)
class Open:
    """An inline element begins: bold, a link, a run with a format of its own."""

    number: int
    kind: Kind = dataclasses.field(default="format", compare=False)


@dataclasses.dataclass(frozen=True)
class Close:
    """The inline element of this number ends."""

    number: int


@dataclasses.dataclass(frozen=True)
class Alone:
    """An inline element without text to translate: an image, a note's number, code."""

    number: int
    text: str = ""
    """How it is read where it stands for a word, such as ``{name}`` or a file name in code."""
    breaks: bool = False
    """Whether it ends a line, so that no sentence goes across it."""
    ends: int | None = None
    """The number of the mark whose range it ends, such as that of a bookmark or a comment."""
    kind: Kind = dataclasses.field(default="format", compare=False)
    """The kind of the range that the mark begins."""
    in_order: bool = False
    """Whether marks like it stay in their order, such as the times in a subtitle."""


Piece = str | Open | Close | Alone


def joined(pieces: Iterable[Piece]) -> list[Piece]:
    """The pieces, with texts beside each other as one and none that is empty.

    Each is copied once: a text that grows by one piece at a time takes quadratic time.
    """
    found: list[Piece] = []
    for is_text, group in itertools.groupby(pieces, lambda piece: isinstance(piece, str)):
        if not is_text:
            found += group
        elif text := "".join(piece for piece in group if isinstance(piece, str)):
            found.append(text)
    return found


_LAYOUT = re.compile(r"(?<=\S)[ \t]*\r?\n(?:[ \t]{2,}|\t)(?=\S)")
"""The end of a line before an indented one: how a text lies in its file, and not what it says."""


@dataclasses.dataclass(frozen=True)
class Segment:
    """A text to translate, with marks in it; every ``Open`` has its ``Close``, well nested."""

    pieces: tuple[Piece, ...]

    @property
    def text(self) -> str:
        """The text without marks; those that stand for words are not in it."""
        return "".join(piece for piece in self.pieces if isinstance(piece, str))

    @property
    def has_words(self) -> bool:
        """Whether there is a letter to translate; a number or a sign alone is left as it is."""
        return any(map(str.isalpha, self.text))

    @property
    def marks(self) -> tuple[Open | Close | Alone, ...]:
        """The marks, in order."""
        return tuple(piece for piece in self.pieces if not isinstance(piece, str))


@dataclasses.dataclass(frozen=True)
class Languages:
    """The codes of the languages of a document and of its translation; empty if not known."""

    source: str = ""
    target: str = ""


NOT_KNOWN = Languages()


def segment_of(pieces: Iterable[Piece]) -> Segment:
    """A segment of pieces, without texts that are empty."""
    return Segment(tuple(piece for piece in pieces if piece != ""))


def in_one_line(segment: Segment) -> Segment:
    """The segment with a space for each line end before an indented line, but at its own ends."""
    found = list(segment.pieces)
    for number, piece in enumerate(found):
        if isinstance(piece, str) and "\n" in piece:
            # Beside a mark a line can end too.
            before = "x" if number else ""
            after = "x" if number + 1 < len(found) else ""
            line = _LAYOUT.sub(" ", f"{before}{piece}{after}")
            found[number] = line[len(before) : len(line) - len(after)]
    return Segment(tuple(found))


Range = tuple[str, str, bool]
"""The range that an element without text begins or ends: its kind, its id, and whether it ends."""


class Ranges:
    """The ranges of a segment, such as bookmarks, by the marks that begin them."""

    def __init__(self) -> None:
        self._begun: dict[tuple[str, str], list[int]] = {}

    def ended_by(self, number: int, range_: Range | None) -> int | None:
        """Note a mark; the number of the one that began its range, if it ends one."""
        if range_ is None:
            return None
        kind, name, is_end = range_
        begun = self._begun.setdefault((kind, name), [])
        if is_end:
            # Of ranges with one name within each other the innermost ends first.
            return begun.pop() if begun else None
        begun.append(number)
        return None


class Document(Protocol):
    """A document that was read, as its format keeps it until it is written."""

    @property
    def segments(self) -> Sequence[Segment]:
        """The segments to translate, in the order of reading."""
        ...

    @property
    def notes(self) -> Sequence[str]:
        """Notes for a reader, such as text that stayed as it was, a plain line each; all of them
        are there once the document is written.
        """
        ...

    def write(self, translated: Sequence[Segment]) -> bytes:
        """The document with other segments, each with the marks of the one it replaces.

        Raises ValueError unless there are as many as were read. To be called once: a format may
        write into the tree that it read.
        """
        ...


def check_count(translated: Sequence[Segment], segments: Sequence[Segment]) -> None:
    """Raise ValueError unless there are as many translated segments as were read."""
    if len(translated) != len(segments):
        raise ValueError(f"{len(segments)} segments are needed, got {len(translated)}")


@dataclasses.dataclass
class Node:
    """A mark and what is inside it; the outermost one holds the whole segment."""

    number: int
    parent: "Node | None"
    start: int
    """Where it begins, in characters of the text."""
    end: int
    """Where it ends; where it begins, for a mark without text."""
    mark: Alone | None = None
    """The mark itself if it is ``Alone``."""
    children: list["Node"] = dataclasses.field(default_factory=list)


OUTERMOST = -1
"""The number of the node that holds a whole segment."""
STANDS_FOR_ALL = "\ufffc"
"""The object replacement character: read for code and addresses that no model would copy."""
_LONGEST_READ = 80
"""Characters of a mark that is read as a word."""


def read_tree(pieces: Iterable[Piece]) -> tuple[str, Node]:
    """The text of pieces and their marks as a tree.

    A break is a line end in the text, and a mark that is read as a word is that word: sentences are
    cut as a reader would cut them, and each such mark is found again by its characters.
    """
    root = node = Node(OUTERMOST, None, 0, 0)
    text: list[str] = []
    length = 0

    for piece in pieces:
        if isinstance(piece, Open):
            child = Node(piece.number, node, length, length)
            node.children.append(child)
            node = child
            continue
        if isinstance(piece, Close):
            assert node.number == piece.number, "marks must be nested"
            assert node.parent is not None, "marks must be opened"
            node.end = length
            node = node.parent
            continue

        reads = piece
        if isinstance(piece, Alone):
            reads = "\n" if piece.breaks else " ".join(piece.text.split())
            if len(reads) > _LONGEST_READ:
                reads = STANDS_FOR_ALL
            node.children.append(Node(piece.number, node, length, length + len(reads), piece))
        assert isinstance(reads, str)
        text.append(reads)
        length += len(reads)

    assert node is root, "marks must be closed"
    root.end = length
    return "".join(text), root


def all_nodes(node: Node) -> Iterator[Node]:
    """Every node below ``node``, outer ones first."""
    waiting = node.children[::-1]
    while waiting:
        child = waiting.pop()
        yield child
        waiting += reversed(child.children)
