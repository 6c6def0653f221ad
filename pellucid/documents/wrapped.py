"""Paragraphs of plain text that a program wrapped at some column, as those of e-mails are.

The end of such a line ends no sentence. A line is taken for wrapped if the first word of the next
one had no place in it.
"""

import dataclasses
import itertools
import re
from collections.abc import Iterator, Sequence

from pellucid.core.texts import words_in

_HEAD = re.compile(r"((?:[ \t]*>)*[ \t]*)((?:[-–*+•]|\d{1,3}[.)])[ \t]+)?")
"""The marks of quotes, the indent, and the mark of an item of a list."""
_WIDTHS = range(55, 101)
"""Columns at which programs wrap; lines that are all shorter may be a poem."""
_COLUMNS = re.compile(r"\S(?:\t|[ ]{3,})\S")
_CONJUNCTIONS = words_in("und oder bzw. bis sowie en of och eller og and or to")
"""Words behind a hyphen that stands for a part of a later word: "Vor- und Nachteile"."""
_FULL_LINES = 1 / 8
"""The least share of a block's lines, but its last one, that the next word had no place in. Of
16,728 commands of SCAN, one a line, 5% are so by chance; of 6,593 wrapped paragraphs in manuals,
all but 10 are in blocks with more."""
_ENDS_SENTENCE = frozenset('.!?:;…"”»)。！？')


@dataclasses.dataclass
class Paragraph:
    """Lines that are one text."""

    stop: int
    """The number of the line behind it."""
    start: int
    """The character of its first line where its text begins."""
    text: str
    joint: str
    """The characters between the words of two lines: a line end, and the marks of quotes."""
    width: int

    def written(self, text: str) -> str:
        """Another text in lines of the same width."""
        lines: list[str] = []
        for word in text.split(" "):
            if lines and len(lines[-1]) + 1 + len(word) <= self.width:
                lines[-1] += f" {word}"
            else:
                lines.append(word)
        return self.joint.join(lines)


def wrapped_paragraphs(lines: Sequence[str]) -> dict[int, Paragraph]:
    """The paragraphs of more than one line, by the number of the first one; ``lines`` have their
    ends.
    """
    found: dict[int, Paragraph] = {}
    longest = max((len(line.rstrip()) for line in lines), default=0)
    first = 0
    while first < len(lines):
        stop = _block_end(lines, first)
        width = max(len(line.rstrip()) for line in lines[first:stop])
        width = longest if longest in _WIDTHS else width
        if width in _WIDTHS:
            found |= dict(_paragraphs(lines, first, stop, width))
        first = stop
    return found


def _block_end(lines: Sequence[str], first: int) -> int:
    """Where lines with one margin end: that of the text behind the mark of a list."""
    head = _HEAD.match(lines[first])
    assert head is not None
    margin = head[1] + " " * len(head[2] or "")
    stop = first + 1
    while stop < len(lines) and lines[stop - 1].strip(" \t>\r\n"):
        found = _HEAD.match(lines[stop])
        if found is None or found[2] or found[1] != margin or not lines[stop].strip(" \t>\r\n"):
            break
        stop += 1
    return stop


def _paragraphs(
    lines: Sequence[str], first: int, stop: int, width: int
) -> Iterator[tuple[int, Paragraph]]:
    head = _HEAD.match(lines[first])
    assert head is not None
    margin = len(head[0])
    texts = [line[margin:].rstrip() for line in lines[first:stop]]
    if any(map(_COLUMNS.search, texts)):
        return

    # whether the first word of the next line had no place in a line
    full = [
        margin + len(text) + 1 + len(following.split(" ", 1)[0]) > width
        for text, following in itertools.pairwise(texts)
    ]
    full.append(False)
    if sum(full) < _FULL_LINES * (len(full) - 1):
        return

    # a paragraph ends with the first line that has place for another word
    start = 0
    for number, is_full in enumerate(full):
        if is_full:
            continue
        own = texts[start : number + 1]
        if any(
            line[-1:] not in _ENDS_SENTENCE and following[:1].islower()
            for line, following in itertools.pairwise(own)
        ):
            line = lines[first + start]
            joint = line[margin + len(own[0]) :] + lines[first + start + 1][:margin]
            end = first + number + 1
            yield first + start, Paragraph(end, margin, _joined(own), joint, width - margin)
        start = number + 1


def _joined(texts: Sequence[str]) -> str:
    """The lines as one; a word with a hyphen at the end of a line keeps it."""
    parts = [texts[0]]
    for before, text in itertools.pairwise(texts):
        is_cut = before[-1:] == "-" and before[-2:-1].isalpha() and text[:1].islower()
        is_of_later_word = text.split(" ", 1)[0] in _CONJUNCTIONS
        parts.append(text if is_cut and not is_of_later_word else f" {text}")
    return "".join(parts)
