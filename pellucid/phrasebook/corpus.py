"""Lists of different sentence pairs, and their split into training, validation and test."""

import hashlib
import random
import re
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple, assert_never

from pellucid.core.errors import ConfigError
from pellucid.phrasebook.drawing import Drawing
from pellucid.phrasebook.everyday import Everyday
from pellucid.phrasebook.inflection import join_english, join_french
from pellucid.phrasebook.lexicon import PHRASES, PLAIN
from pellucid.phrasebook.writing import typed

_PATIENCE = 100_000  # draws; even around the millionth, three in five are new
_VALID_BELOW, _TEST_BELOW = 13, 26  # of a byte's 256: a twentieth for each held-out part
_WORD = re.compile(r"[\w'’-]+")


Style = Literal["plain", "typed"]
"""``plain``: in lower case, without a full stop. ``typed``: French as people type it, with what
they say first to each other, and English as it is written."""
_SHORT = 3
"""Words of an English sentence, at most, whose pair is always trained on: "yes" has no parts that
other sentences could teach."""
_PHRASES = frozenset(
    " ".join(_WORD.findall(phrase.english)) for phrases in PHRASES.values() for phrase in phrases
)
"""The same holds for what is said as a whole."""


class Pair(NamedTuple):
    """A French sentence and its English translation."""

    source: str
    target: str


class Splits(NamedTuple):
    """Pairs for training, for validation, and for the test."""

    train: list[Pair]
    valid: list[Pair]
    test: list[Pair]


FAMOUS_PAIR = Pair("je suis étudiant", "i am a student")
"""Always the first of the test part, whatever the seed and the sizes."""
_FAMOUS: dict[Style, Pair] = {
    "plain": FAMOUS_PAIR,
    "typed": Pair("Je suis étudiant.", "I am a student."),
}


def generate(count: int, seed: int, style: Style = "plain") -> list[Pair]:
    """``count`` different pairs, the same for a seed in every version of Python.

    A shorter list of the same seed is the beginning of a longer one. Raises ConfigError if
    ``count`` or ``seed`` is negative, or if the grammar has no more pairs.
    """
    _check({"count": count, "seed": seed})
    pairs = new_pairs(_drawing(seed, style))
    return [next(pairs) for _ in range(count)]


def split(train_count: int, held_out_count: int, seed: int, style: Style = "plain") -> Splits:
    """``train_count`` pairs for training, and ``held_out_count`` each for validation and test.

    No sentence of one part occurs in another, on either side: a hash of the English sentence
    decides the part of a pair, and every French sentence has only one English one. So a pair stays
    in its part when the seed or a size is changed, and so do all ways to type it. Raises
    ConfigError if a number is negative, or if the grammar has no more pairs.
    """
    _check({"train_count": train_count, "held_out_count": held_out_count, "seed": seed})
    parts: dict[str, list[Pair]] = {"train": [], "valid": [], "test": [_FAMOUS[style]]}
    sizes = {"train": train_count, "valid": held_out_count, "test": held_out_count}

    pairs = new_pairs(_drawing(seed, style))

    # The parts fill up at different speeds: pairs of a part that is full are thrown away.
    while any(len(parts[name]) < size for name, size in sizes.items()):
        pair = next(pairs)
        name = _part(pair, style)
        if len(parts[name]) < sizes[name] and pair != _FAMOUS[style]:
            parts[name].append(pair)

    return Splits(parts["train"], parts["valid"], parts["test"][:held_out_count])


def _part(pair: Pair, style: Style) -> str:
    # Typed sentences that differ in capitals and marks alone are one: "Yes, sir!" and "Yes sir".
    said = pair.target if style == "plain" else " ".join(_WORD.findall(pair.target.lower()))
    if said == FAMOUS_PAIR.target:
        return "test"
    if style == "typed" and (said in _PHRASES or len(said.split()) <= _SHORT):
        return "train"

    # By a hash and not by drawing: the part of a sentence is the same in every list that has it.
    first_byte = hashlib.sha256(said.encode()).digest()[0]
    if first_byte < _VALID_BELOW:
        return "valid"
    return "test" if first_byte < _TEST_BELOW else "train"


def _drawing(seed: int, style: Style) -> Callable[[], Pair]:
    """A function that draws a pair.

    It uses only ``random()``, whose numbers for a seed Python promises not to change.
    """
    draw = random.Random(seed).random  # noqa: S311 - nothing secret

    plain, everyday = Drawing(PLAIN, draw), Everyday(draw)

    def draw_pair() -> Pair:
        """The next pair."""
        match style:
            case "plain":
                french, english = plain.sentence()
                return Pair(join_french(french), join_english(english))
            case "typed":
                return Pair(*typed(everyday.sentence(), draw))
            case _:
                assert_never(style)

    return draw_pair


def new_pairs(draw_pair: Callable[[], Pair]) -> Iterator[Pair]:
    """Pairs that were not drawn before. Raises ConfigError when there seem to be no more."""
    seen: set[Pair] = set()
    draws_in_vain = 0

    while draws_in_vain < _PATIENCE:
        pair = draw_pair()

        # A set of all pairs: even a million take less than a gigabyte.
        if pair in seen:
            draws_in_vain += 1
            continue

        draws_in_vain = 0
        seen.add(pair)
        yield pair

    raise ConfigError(
        f"the phrasebook gave no new pair in {_PATIENCE} draws, after {len(seen)} of them",
        hint="ask for fewer pairs",
    )


def _check(numbers: dict[str, int]) -> None:
    for name, number in numbers.items():
        if number < 0:
            raise ConfigError(f"{name} must not be negative, got {number}")
