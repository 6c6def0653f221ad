"""Random orders of any number of pairs, computed instead of stored, and mixtures of corpora."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from pellucid.core.errors import ConfigError

Indices = npt.NDArray[np.int64]
_Words = npt.NDArray[np.uint64]

_ROUNDS = 8
"""Rounds of the Feistel network, four for each half. Four in all make a pseudorandom permutation
(Luby and Rackoff 1988); the others are for small domains."""
WEYL = np.uint64(0x9E3779B97F4A7C15)
"""2^64 divided by the golden ratio, the increment of SplitMix64 (Steele et al. 2014)."""
_MIXERS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
"""The multipliers of SplitMix64."""
_NOTHING = np.uint64(0)


@dataclass(frozen=True)
class Shuffle:
    """A pseudorandom permutation of the numbers below ``count``; any part of it can be computed.

    A number is written as (left, right), the row and column in a rectangle with at least ``count``
    cells. In each round one half is moved, modulo its size, by an amount that depends on the other
    half and the key (a generalized Feistel network). A number that ends outside of ``count`` is
    moved again.

    Source: Black and Rogaway (2002), §3.3 and §3.1 (cycle walking).
    """

    count: int
    keys: tuple[int, ...]
    """A key of 64 bits for each round."""

    @classmethod
    def of(cls, count: int, *key: int) -> Self:
        """The permutation of a key, which is any few numbers that are not negative."""
        words = np.random.SeedSequence(key).generate_state(_ROUNDS, np.uint64)
        return cls(count, tuple(int(word) for word in words))

    def at(self, places: Indices, turns: Indices | int = 0) -> Indices:
        """The numbers at these positions; each turn is another permutation."""
        turn = np.asarray(turns).astype(np.uint64)
        numbers = self._moved(places.astype(np.uint64), turn)

        # Cycle walking ends, because every cycle of a permutation comes back to its start, and
        # keeps the result a permutation.
        while (outside := np.flatnonzero(numbers >= np.uint64(self.count))).size:
            turn_there = turn[outside] if turn.ndim else turn
            numbers[outside] = self._moved(numbers[outside], turn_there)

        return numbers.astype(np.int64)

    def _moved(self, numbers: _Words, turn: _Words) -> _Words:
        # Nearly a square: the rectangle has at most a few more cells than numbers, so that hardly
        # any number walks twice.
        width = math.isqrt(self.count - 1) + 1
        sizes = np.uint64(-(-self.count // width)), np.uint64(width)
        halves = list(np.divmod(numbers, sizes[1]))

        for number, key in enumerate(self.keys):
            # Even rounds move the left half, odd rounds the right one. A round can be undone,
            # whatever the hash is, so that every round is a permutation and so are all of them
            # together.
            side = number % 2
            moved_by = mixed(halves[1 - side], np.uint64(key), turn)
            halves[side] = (halves[side] + moved_by % sizes[side]) % sizes[side]

        moved: _Words = halves[0] * sizes[1] + halves[1]
        return moved


def mixed(words: _Words, key: np.uint64 = _NOTHING, turn: _Words | np.uint64 = _NOTHING) -> _Words:
    """Hash words with a key and a turn into words that look random.

    Source: SplitMix64's finalizer, Steele et al. (2014).
    """
    with np.errstate(over="ignore"):  # arithmetic modulo 2^64 is meant
        # The shifts and multipliers are those of the reference: each is a bijection of 64 bits, and
        # together they let every bit of the input change about half of the bits of the result.
        result: _Words = (words ^ key) + turn * WEYL
        result = (result ^ (result >> np.uint64(30))) * _MIXERS[0]
        result = (result ^ (result >> np.uint64(27))) * _MIXERS[1]
        result ^= result >> np.uint64(31)
        return result


@dataclass(frozen=True)
class Mixture:
    """The pairs of an epoch when several corpora are drawn with given shares.

    Each corpus is an endless stream: all its pairs in a random order, then all of them in another.
    An epoch takes ``draws`` pairs of each stream, from where the last epoch stopped. So the pairs
    of a corpus with a large share repeat evenly, and with a small share every pair still occurs in
    some epoch.
    """

    sizes: tuple[int, ...]
    """Pairs of each corpus; the corpora are numbered one after the other."""
    draws: tuple[int, ...]
    """Pairs of each corpus in an epoch."""
    seed: int

    @classmethod
    def by_weights(cls, sizes: Sequence[int], weights: Sequence[float], seed: int) -> Self:
        """Shares in proportion to ``weights``; an epoch is as long as all corpora together.

        Raises ConfigError unless there is one weight for each corpus.
        """
        if len(sizes) != len(weights):
            raise ConfigError(
                f"there must be one weight for each corpus, got {len(weights)} for {len(sizes)}"
            )

        # Largest remainders: the rounded numbers of draws add up to exactly one epoch.
        exact = np.asarray(weights, np.float64) / sum(weights) * sum(sizes)
        draws = np.floor(exact).astype(np.int64)
        by_remainder = np.argsort(draws - exact, kind="stable")
        draws[by_remainder[: sum(sizes) - int(draws.sum())]] += 1
        return cls(tuple(sizes), tuple(max(1, int(each)) for each in draws), seed)

    @classmethod
    def by_temperature(cls, sizes: Sequence[int], temperature: float, seed: int) -> Self:
        """Shares in proportion to size^(1/temperature): 1 keeps them, larger values even them out.

        Source: Arivazhagan et al. (2019), §4.1; they used 5.
        """
        return cls.by_weights(sizes, [size ** (1 / temperature) for size in sizes], seed)

    def __len__(self) -> int:
        """How many pairs an epoch has."""
        return sum(self.draws)

    def at(self, epoch: int, places: Indices) -> Indices:
        """The pair numbers at these positions of an epoch, from 0; not in random order."""
        # In an epoch the draws of the first corpus come first; ``BatchSampler`` shuffles their
        # positions.
        ends = np.cumsum(self.draws)
        corpora = np.searchsorted(ends, places, side="right")
        numbers = np.empty_like(places)

        first = 0  # number of the corpus's first pair
        for corpus, (size, drawn) in enumerate(zip(self.sizes, self.draws, strict=True)):
            here = np.flatnonzero(corpora == corpus)
            # The position in the corpus's stream, of which each pass is a turn of the shuffle.
            drawn_before = epoch * drawn + places[here] - (ends[corpus] - drawn)
            turns, within = np.divmod(drawn_before, size)
            numbers[here] = first + Shuffle.of(size, self.seed, corpus).at(within, turns)
            first += size

        return numbers
