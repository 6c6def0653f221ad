"""Texts with some parts replaced, and where each character of the new text was."""

import bisect
import re
from collections.abc import Callable
from typing import NamedTuple

Offsets = list[tuple[int, int]]
"""(position in the new text, how far the old text from there on is moved against it)."""


class Edited(NamedTuple):
    """A text with some parts replaced."""

    text: str
    offsets: Offsets
    """How far the characters of the old text are moved; empty if none is."""


def edited(pattern: re.Pattern[str], change: Callable[[re.Match[str]], str], text: str) -> Edited:
    """The text with ``change`` of each match of ``pattern`` in its place."""
    parts: list[str] = []
    offsets: Offsets = []
    done = size = shift = 0
    for found in pattern.finditer(text):
        old, new = found[0], change(found)
        parts += [text[done : found.start()], new]
        begin = size + found.start() - done
        size, done = begin + len(new), found.end()

        if len(new) > len(old):
            # The additional characters belong to the last one of the old part.
            for extra in range(1, len(new) - len(old) + 1):
                offsets.append((begin + len(old) - 1 + extra, shift - extra))
        elif len(new) < len(old):
            # The last character of the new part reaches to the end of the old one.
            offsets.append((max(begin, size - 1), shift + len(old) - len(new)))
        shift += len(old) - len(new)
    return Edited("".join([*parts, text[done:]]), offsets)


def moved(position: int, offsets: Offsets) -> int:
    """The position in the old text of one in the new text."""
    # the last offset that begins at the position or before it
    index = bisect.bisect_right(offsets, position, key=lambda offset: offset[0])
    return position + (offsets[index - 1][1] if index else 0)


def composed(first: Offsets, second: Offsets, length: int) -> Offsets:
    """The offsets of two edits, ``second`` made after ``first``, for a text of this length."""
    if not first or not second:
        return first or second
    return [(at, moved(moved(at, second), first) - at) for at in range(length + 1)]
