"""New sentences, or words, from parts of given ones: text for a teacher to translate.

``recombined`` makes them. They need no further text and no model, and most read like those they are
made of.
"""

import collections
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

Unit = Literal["word", "character"]
_SEPARATORS: dict[Unit, str] = {"word": " ", "character": ""}
_MOST_TRIES = 10_000
"""After so many in a row without anything new, none is expected any more."""


def recombined(
    lines: Sequence[str], seed: int, *, unit: Unit = "word", overlap: int = 2
) -> Iterator[str]:
    """Sentences that begin as one of ``lines`` and end as another, until nothing new is found.

    The two share ``overlap`` units in a row, where the sentence goes over from one to the other. So
    any ``overlap + 1`` units in a row are in the text somewhere. No sentence is one of ``lines``,
    comes twice, is longer than the longest of them, or has the same ``overlap`` units in a row
    twice. Words are what spaces separate. The same ``seed`` draws the same sentences.

    Source: the idea of recombining fragments that occur in the same surroundings is that of Andreas
    (2020), arXiv:1904.09545, where both sides of a pair are recombined; here a teacher translates.
    """
    texts = sorted({_units(line, unit) for line in lines})
    longest = max(map(len, texts), default=0)
    places = _places(texts, overlap)
    random = np.random.default_rng(seed)
    known = set(texts)

    tries = 0
    while places and tries < _MOST_TRIES:
        tries += 1
        first = texts[random.integers(len(texts))]
        if len(first) < overlap + 2:
            continue
        at = int(random.integers(1, len(first) - overlap))
        shared = places[first[at : at + overlap]]
        row, after = shared[random.integers(len(shared))]

        new = first[:at] + texts[row][after:]
        if new in known or len(new) > longest or _repeats(new, overlap):
            continue
        known.add(new)
        tries = 0
        yield _SEPARATORS[unit].join(new)


def _units(line: str, unit: Unit) -> tuple[str, ...]:
    return tuple(line.split() if unit == "word" else line.strip())


def _places(
    texts: Sequence[tuple[str, ...]], overlap: int
) -> dict[tuple[str, ...], list[tuple[int, int]]]:
    """Where units stand side by side with another unit before and another after them: the row
    and the position of each place."""
    places = collections.defaultdict(list)
    for row, units in enumerate(texts):
        for at in range(1, len(units) - overlap):
            places[units[at : at + overlap]].append((row, at))
    return places


def _repeats(units: tuple[str, ...], overlap: int) -> bool:
    """Whether some units in a row occur twice, as in "a man in a hat in a hat"."""
    rows = [units[at : at + overlap] for at in range(len(units) - overlap + 1)]
    return len(set(rows)) < len(rows)
