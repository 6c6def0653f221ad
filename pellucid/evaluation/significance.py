"""Tests of whether the difference between two systems is significant.

The statistics of each sentence come from sacrebleu. The samples are drawn here, because
sacrebleu's own tests are seeded by an environment variable, copy every sentence's statistics for
every sample, call systems with equal output significantly different (p = 1 / (samples + 1)), and
bootstrap a p-value of one direction only.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from pellucid.core.errors import ConfigError
from pellucid.core.texts import lines_of
from pellucid.evaluation.metrics import COMPARED_BY, METRICS, Output, check_lines
from pellucid.evaluation.tokenizers import DEFAULT_TOKENIZER, TokenizerName

_Array = NDArray[np.float64]
_DRAWS_AT_A_TIME = 2**24
"""Random numbers in memory at once: 128 MB."""


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A system against a baseline on the same sentences."""

    baseline: float
    """The baseline's score over all sentences."""
    system: float
    """The system's score over all sentences."""
    p_value: float
    """Probability of a difference at least as large, in either direction, by chance alone."""
    interval: tuple[float, float] | None
    """Range of system minus baseline in 95% of resampled test sets; None without resampling."""
    signature: str
    """The metric's signature with the test, its samples and its seed."""

    @property
    def difference(self) -> float:
        """System minus baseline."""
        return self.system - self.baseline


@dataclasses.dataclass(frozen=True)
class PairedScores:
    """Two systems on the same sentences: the statistics that their scores are sums of."""

    baseline: _Array
    """(sentence, statistic)"""
    system: _Array
    """(sentence, statistic)"""
    score: Callable[[_Array], float]
    """The score of a sum of rows."""
    signature: str

    @classmethod
    def of(
        cls,
        baseline: Sequence[str],
        system: Sequence[str],
        references: Sequence[str],
        *,
        metric: str = "bleu",
        language: str | None = None,
        tokenize: TokenizerName = DEFAULT_TOKENIZER,
    ) -> Self:
        """Count the lines of both once; every sample then adds up rows.

        Raises DataError, and ConfigError for a metric that cannot be compared.
        """
        baseline = lines_of(baseline, "baseline lines")
        system = lines_of(system, "system lines")
        references = lines_of(references, "references")
        check_lines({"baseline lines": baseline, "system lines": system, "references": references})
        count = METRICS[metric].statistics if metric in METRICS else None
        if count is None:
            known = ", ".join(COMPARED_BY)
            raise ConfigError(f"systems are compared by one of {known}, got {metric!r}")

        one, other = (
            count(Output(lines, references, language, tokenize)) for lines in (baseline, system)
        )

        def score(total: _Array) -> float:
            return one.score(total.tolist())

        return cls(np.array(one.rows, float), np.array(other.rows, float), score, one.signature)

    @property
    def difference(self) -> float:
        """System minus baseline."""
        return self.score(self.system.sum(0)) - self.score(self.baseline.sum(0))

    def bootstrap(self, samples: int = 1000, seed: int = 12345) -> Comparison:
        """Score both on test sets drawn from this one with replacement, the same for both.

            p = (1 + #{ |δₛ − δ| ≥ |δ| }) / (1 + samples)

        Source: Koehn (2004), EMNLP; Riezler and Maxwell (2005), figure 2.  Differs: theirs and
        sacrebleu's |δₛ| − mean |δₛ| sees one of the two directions where all δₛ have one sign, and
        gives half of this p. If all δₛ are equal, as those of a single sentence, p is 1: they tell
        nothing of chance. Of a few sentences believe ``randomization``.
        The same arguments give the same answer. Raises ConfigError if samples < 1.
        """
        generator = _generator(samples, seed)
        count = len(self.baseline)
        differences = np.empty(samples)
        done = 0

        for rows in _parts(samples, count):
            # With replacement: a sample of as many sentences, some of them several times (Koehn,
            # 2004).
            for drawn in generator.choice(count, size=(rows, count), replace=True):
                # A score is a function of sums over sentences, so no text is scored again.
                one, other = self.baseline[drawn].sum(0), self.system[drawn].sum(0)
                differences[done] = self.score(other) - self.score(one)
                done += 1

        # Resampled differences center on the observed one, not on zero as chance would have it: so
        # it is taken from them.
        low, high = np.percentile(differences, (2.5, 97.5))
        as_large = np.abs(differences - self.difference) >= abs(self.difference)
        as_large |= differences.min() == differences.max()
        return self._compared(as_large, (float(low), float(high)), f"bs:{samples}|seed:{seed}")

    def randomization(self, samples: int = 10_000, seed: int = 12345) -> Comparison:
        """Exchange both outputs in a random half of the lines, ``samples`` times.

            p = (1 + #{ |δₛ| ≥ |δ| }) / (1 + samples)

        Source: Noreen (1989); Riezler and Maxwell (2005).  Differs: sacrebleu counts ``>``.
        The same arguments give the same answer. Raises ConfigError if samples < 1.
        """
        generator = _generator(samples, seed)
        # What one shuffled system does not have, the other has: only one sum is computed.
        both = self.baseline.sum(0) + self.system.sum(0)
        sizes = np.empty(samples)
        done = 0

        for rows in _parts(samples, len(self.baseline)):
            for kept in generator.integers(2, size=(rows, len(self.baseline)), dtype=bool):
                mixed = self.baseline[kept].sum(0) + self.system[~kept].sum(0)
                sizes[done] = abs(self.score(mixed) - self.score(both - mixed))
                done += 1

        return self._compared(sizes >= abs(self.difference), None, f"ar:{samples}|seed:{seed}")

    def _compared(
        self, as_large: NDArray[np.bool_], interval: tuple[float, float] | None, signature: str
    ) -> Comparison:
        """Both scores with the p-value.

        ``as_large`` says of each random sample whether its difference was at least as large as the
        observed one; ``signature`` names the test.
        """
        return Comparison(
            baseline=self.score(self.baseline.sum(0)),
            system=self.score(self.system.sum(0)),
            # The observed difference is one of the samples: so p is never 0 (Davison and Hinkley,
            # 1997, §4.2).
            p_value=(1 + int(as_large.sum())) / (1 + len(as_large)),
            interval=interval,
            signature=f"{self.signature}|{signature}",
        )


def _generator(samples: int, seed: int) -> np.random.Generator:
    if samples < 1:
        raise ConfigError(f"samples must be at least 1, got {samples}")
    if seed < 0:
        raise ConfigError(f"seed must be at least 0, got {seed}")

    # A generator of its own: global random state would make the answer depend on the caller.
    return np.random.default_rng(seed)


def _parts(samples: int, sentences: int) -> list[int]:
    """``samples`` divided into parts whose random numbers fit into memory."""
    most = max(1, _DRAWS_AT_A_TIME // sentences)
    return [min(most, samples - first) for first in range(0, samples, most)]
