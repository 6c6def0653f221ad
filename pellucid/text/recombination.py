"""New sentences, or words, from parts of given ones: text for a teacher to translate.

``recombined`` makes them. They need no further text and no model, and most read like those they are
made of.
"""

import collections
import re
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

Unit = Literal["word", "character"]
_SEPARATORS: dict[Unit, str] = {"word": " ", "character": ""}
_MOST_TRIES = 10_000
"""After so many in a row without anything new, none is expected any more."""
_WORD = re.compile(r"[\S\u00a0\u2007\u202f]+")
"""No-break spaces hold together: ``10 000`` and ``Bonjour !`` of French are one word each."""


def recombined(
    lines: Sequence[str], seed: int, *, unit: Unit = "word", overlap: int = 2
) -> Iterator[str]:
    """Sentences that begin as one of ``lines`` and end as another, until nothing new is found.

    The two share ``overlap`` units in a row, where the sentence goes over from one to the other. So
    any ``overlap + 1`` units in a row are in the text somewhere. No sentence is one of ``lines``,
    comes twice, is longer than the longest of them, or has the same ``overlap`` units in a row
    twice. Words are what spaces separate; no-break spaces do not. The same ``seed`` draws the same
    sentences.

    Source: the idea of recombining fragments that occur in the same surroundings is that of Andreas
    (2020), arXiv:1904.09545, where both sides of a pair are recombined; here a teacher translates.
    """
    known = {_units(line, unit) for line in lines}
    longest = max(map(len, known), default=0)
    texts = sorted(known)
    places = _places(texts, overlap)
    # How each may begin: up to units that come twice, or that have none behind them.
    fronts = [
        (units, min(len(units) - 1, _longest_front(units, overlap)) - overlap) for units in texts
    ]
    fronts = [(units, most) for units, most in fronts if most >= 1]
    random = np.random.default_rng(seed)

    tries = 0
    while places and fronts and tries < _MOST_TRIES:
        tries += 1
        first, most = fronts[random.integers(len(fronts))]
        at = int(random.integers(1, most + 1))
        shared = places.get(first[at : at + overlap])
        if shared is None:
            continue
        row, after = shared[random.integers(len(shared))]
        end = texts[row]
        if (end is first and at == after) or at + len(end) - after > longest:
            continue

        new = first[:at] + end[after:]
        if new in known or _longest_front(new, overlap) < len(new):
            continue
        known.add(new)
        tries = 0
        yield _SEPARATORS[unit].join(new)


def _units(line: str, unit: Unit) -> tuple[str, ...]:
    return tuple(_WORD.findall(line) if unit == "word" else line.strip())


def _places(
    texts: Sequence[tuple[str, ...]], overlap: int
) -> dict[tuple[str, ...], list[tuple[int, int]]]:
    """Where units stand side by side with another unit before and another after them: the row
    and the position of each place. From there to the end of the row no such units come twice."""
    places = collections.defaultdict(list)
    for row, units in enumerate(texts):
        first = max(1, len(units) - _longest_front(units[::-1], overlap))
        for at in range(first, len(units) - overlap):
            places[units[at : at + overlap]].append((row, at))
    return places


def _longest_front(units: tuple[str, ...], overlap: int) -> int:
    """How many units from the front have none in a row twice, as "a man in a hat in a hat" has."""
    seen: set[tuple[str, ...]] = set()
    for at in range(len(units) - overlap + 1):
        row = units[at : at + overlap]
        if row in seen:
            return at + overlap - 1
        seen.add(row)
    return len(units)
