"""Warnings of translations: what they are, and how those of many lines are said.

Nothing here knows a model, so that a process that only reads documents starts without one.
"""

import dataclasses
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, Protocol, get_args

WarningKind = Literal[
    "empty",
    "language_code",
    "unknown",
    "unseen",
    "truncated",
    "short",
    "long",
    "loop",
    "digits",
    "literals",
    "unsure",
]
KINDS: tuple[WarningKind, ...] = get_args(WarningKind)


@dataclasses.dataclass(frozen=True)
class TranslationWarning:
    """Why a translation should not be trusted."""

    kind: WarningKind
    message: str
    """A sentence that goes on after the place of the text: ``the translation repeats itself``."""

    def __str__(self) -> str:
        """The message."""
        return self.message


Warnings = tuple[TranslationWarning, ...]


def merged(warnings: Iterable[Warnings]) -> Warnings:
    """The warnings of several sentences, each once."""
    return tuple(dict.fromkeys(each for some in warnings for each in some))


def kinds_of(warnings: Iterable[TranslationWarning]) -> set[WarningKind]:
    """The different kinds of warnings."""
    return {each.kind for each in warnings}


class Judged(Protocol):
    """A translation, as far as its warnings go."""

    @property
    def warnings(self) -> Warnings:
        """The warnings; of a split source, those of its sentences."""
        ...

    @property
    def sentences(self) -> "Sequence[Judged]":
        """The translation of each sentence, if the source was split."""
        ...


class WarningLog:
    """Says the warnings of lines: the first few of each kind, and at the end how many more."""

    _SHOWN = 5

    def __init__(self, say: Callable[[str], object] | None = None) -> None:
        """``say`` takes each sentence; by default they are logged."""
        self._say = say or logging.getLogger("pellucid").warning
        self.counts: Counter[WarningKind] = Counter()
        """Lines with a warning of each kind."""
        self._not_shown: Counter[WarningKind] = Counter()

    def look(self, number: int, translation: Judged) -> None:
        """Say the warnings of line ``number``, from 1."""
        # The sentences of a line that was split are judged one by one.
        several = translation.sentences
        self.note(
            translation.warnings,
            [
                (f"line {number}, sentence {index}" if several else f"line {number}", each.warnings)
                for index, each in enumerate(several or (translation,), start=1)
            ],
        )

    def note(self, warnings: Warnings, parts: Iterable[tuple[str, Warnings]]) -> None:
        """Count ``warnings`` once, and say them with the places that have them."""
        if not warnings:
            return
        kinds = kinds_of(warnings)
        shown = {kind for kind in kinds if self.counts[kind] < self._SHOWN}
        self.counts.update(kinds)
        self._not_shown.update(kinds - shown)
        for where, own in parts:
            for warning in own:
                if warning.kind in shown:
                    self._say(f"{where}: {warning.message}")

    def end(self) -> None:
        """Say how many warnings were not shown, and of which kinds."""
        if self._not_shown:
            self._say(f"more such warnings: {in_words(self._not_shown)}")


def in_words(counts: Mapping[WarningKind, int]) -> str:
    """Counts of warnings in a line: ``loop 12, short 3``."""
    return ", ".join(f"{kind} {counts[kind]:,}" for kind in KINDS if counts.get(kind))
