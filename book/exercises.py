"""The exercises of the book, three for each chapter, and whether an answer is right."""

import dataclasses
import math
import tomllib
from pathlib import Path

from pellucid.core.errors import ConfigError
from pellucid.core.near_names import did_you_mean

PAGES = Path(__file__).parent / "pages"
_TOLERANCE = 5e-3
"""An answer may be rounded to three digits."""


@dataclasses.dataclass(frozen=True)
class Exercise:
    """A question of a chapter with its answer, a number or a word."""

    number: int
    """From 1 on."""
    question: str
    answer: float | str
    solution: str
    """Python, whose last line prints the answer."""

    def is_answered_by(self, text: str) -> bool:
        """Whether ``text`` is the answer: the same word, or a number up to three digits."""
        text = text.strip().strip("'\"")
        if isinstance(self.answer, str):
            return text.casefold() == self.answer.casefold()
        plain = "".join(text.split()).replace("−", "-")
        # a comma is that of 1,632 or that of 0,88
        readings = (_number(plain.replace(",", each)) for each in ("", "."))
        return any(
            math.isclose(number, self.answer, rel_tol=_TOLERANCE, abs_tol=1e-6)
            for number in readings
        )


def _number(text: str) -> float:
    """The number that ``text`` is; NaN, which is close to none, if it is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def exercises(chapter: str) -> tuple[Exercise, ...]:
    """The exercises of a chapter. Raises ConfigError if there is no such chapter."""
    path = PAGES / f"{chapter}.toml"
    if not path.is_file():
        known = sorted(each.stem for each in PAGES.glob("*.toml"))
        meant = did_you_mean(chapter, known, " ({})")
        raise ConfigError(f"there is no chapter {chapter!r}{meant}", hint=f"one of {known}")
    found = tomllib.loads(path.read_text("utf-8")).get("exercise", [])
    return tuple(Exercise(number, **facts) for number, facts in enumerate(found, start=1))


def exercise(chapter: str, number: int) -> Exercise:
    """One exercise. Raises ConfigError if there is none of this number."""
    found = exercises(chapter)
    if not 1 <= number <= len(found):
        raise ConfigError(f"the chapter {chapter} has {len(found)} exercises, got number {number}")
    return found[number - 1]
