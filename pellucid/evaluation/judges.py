"""Metrics that are models: what ``evaluate`` asks of them, and what it is answered."""

import dataclasses
from collections.abc import Sequence
from typing import Protocol


@dataclasses.dataclass(frozen=True)
class Judged:
    """The scores of a test set by a model, in its own unit."""

    score: float
    """The mean of all lines."""
    by_sentence: list[float]
    signature: str
    """The version of the model, and the hash of its parameters."""


class Judge(Protocol):
    """A model that scores translations."""

    def judge(
        self, sources: Sequence[str], hypotheses: Sequence[str], references: Sequence[str]
    ) -> Judged:
        """The scores of these lines; a line has one reference."""
