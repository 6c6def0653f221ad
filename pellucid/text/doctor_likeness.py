"""How much two lines look like translations of each other, learned from the corpus itself."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from pellucid.text.doctor_scan import TRAITS, SideScan

Scores = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]

_CODES = 16
"""Values of a trait."""
_DOUBT = 3.0
"""Pairs that must be seen before a resemblance counts half."""
_LARGEST_MISFIT = 3.0
"""Standard deviations; one free translation must not outweigh many lines."""
_LARGEST_CORRELATION = 0.99
_SAMPLE = 200_000
"""Pairs from which scores are learned, spread over the corpus."""


@dataclass(frozen=True)
class Likeness:
    """The score of a source and a target line, positive for translations:

        sum over traits of log p(source trait, target trait) / (p(source trait) p(target trait))

    where the traits are the length, whose logarithm is taken to be normally distributed, the
    digits, the last sign, capitals, signs and commas, which are counted.
    """

    source: SideScan
    target: SideScan
    centers: tuple[float, float]
    """Median log length of each side."""
    deviations: tuple[float, float]
    correlation: float
    """Of the log lengths."""
    tables: list[npt.NDArray[np.float32]]
    """(source code, target code) for each counted trait"""

    @classmethod
    def learn(cls, source: SideScan, target: SideScan, partners: Rows) -> Self:
        """Learn from the source row that belongs to each target row, from the first on."""
        rows = np.arange(0, len(partners), len(partners) // _SAMPLE + 1)
        partners = partners[rows] % source.line_count
        logs = np.log1p(source.lengths[partners]), np.log1p(target.lengths[rows])
        centers = float(np.median(logs[0])), float(np.median(logs[1]))
        deviations = float(logs[0].std()) + 1e-3, float(logs[1].std()) + 1e-3
        products = (logs[0] - logs[0].mean()) * (logs[1] - logs[1].mean())
        correlation = float(products.mean()) / (deviations[0] * deviations[1])
        codes = zip(_codes(source, partners), _codes(target, rows), strict=True)
        tables = [_table(one, other) for one, other in codes]
        correlation = min(max(correlation, 0.0), _LARGEST_CORRELATION)
        return cls(source, target, centers, deviations, correlation, tables)

    def of(self, slip: int, start: int, stop: int) -> Scores:
        """The scores of target rows ``start`` to ``stop``, each with the source row ``slip`` on."""
        rows = np.arange(start, stop)
        partners = (rows + slip) % self.source.line_count
        scores = self._of_lengths(self.source.lengths[partners], self.target.lengths[rows])
        codes = _codes(self.source, partners), _codes(self.target, rows)
        for table, source, target in zip(self.tables, *codes, strict=True):
            scores += table[source, target]
        return scores

    def _of_lengths(self, *lengths: npt.NDArray[np.int32]) -> Scores:
        """log p(x, y) / (p(x) p(y)) of the bivariate normal distribution."""
        x, y = (
            np.clip((np.log1p(each) - center) / deviation, -_LARGEST_MISFIT, _LARGEST_MISFIT)
            for each, center, deviation in zip(lengths, self.centers, self.deviations, strict=True)
        )
        r = self.correlation
        rest = 1 - r * r
        scores = (2 * r * x * y - r * r * (x * x + y * y)) / (2 * rest) - np.log(rest) / 2
        floored: Scores = np.maximum(scores, -(_LARGEST_MISFIT**2) / 2).astype(np.float32)
        return floored


def _codes(side: SideScan, rows: Rows) -> list[npt.NDArray[np.uint8]]:
    traits = side.traits[rows]
    return [
        (traits >> first_bit & (1 << bits) - 1).astype(np.uint8)
        for first_bit, bits in TRAITS.values()
    ]


def _table(source: npt.NDArray[np.uint8], target: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    """What each pair of codes of one trait says, in nats, less where few were seen."""
    cells = source.astype(np.int64) * _CODES + target
    joint = np.bincount(cells, minlength=_CODES * _CODES).reshape(_CODES, _CODES)
    by_chance = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True) / len(cells)
    trust = np.maximum(joint, by_chance) / (np.maximum(joint, by_chance) + _DOUBT)
    table: npt.NDArray[np.float32] = (
        trust * np.log((joint + 0.5) / (by_chance + 0.5))  # half a pair seen: no log of nothing
    ).astype(np.float32)
    return table
