"""The likely translations of each word, learned from pairs of sentences."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_ROUNDS = 5
"""Rounds of expectation and maximization; the best translations of a word hardly change later."""
_MOST_LINKS = 1 << 23
"""Links of a source and a target word of one pair that are kept at once: some 400 MB."""
_EMPTY = -1
"""The source word that stands for no word: it explains target words that nothing else does."""

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Lexicon:
    """The probability of a target word as the translation of a source word.

    One entry for each two words that occurred in one pair, by source word, the likeliest first.
    """

    sources: Ids
    targets: Ids
    probabilities: npt.NDArray[np.float64]
    """The sum over the targets of one source word is 1."""

    def best(self, source: int, count: int) -> Ids:
        """At most ``count`` target words of a source word, the likeliest first."""
        first, end = np.searchsorted(self.sources, (source, source + 1))
        return self.targets[first : min(end, first + count)]


def learn_lexicon(pairs: Iterable[tuple[Sequence[int], Sequence[int]]]) -> Lexicon:
    """Learn the translations of words from pairs of sentences, as ids.

        t(f | e)  ←  c(f, e) / Σ_f' c(f', e)
        c(f, e)  =  Σ over pairs of  t(f | e) / Σ_e' t(f | e')

    where f is each target word of a pair and e each different source word of it, the empty word
    among them. Of a text with too many links evenly spaced pairs are taken.

    Source: IBM Model 1, Brown et al. (1993), The Mathematics of Statistical Machine Translation.
    """
    sources, targets, sizes = _links(pairs)
    if not len(sources):
        nothing = np.zeros(0, np.int64)
        return Lexicon(nothing, nothing, np.zeros(0))

    width = int(targets.max()) + 1
    # each two words that meet are one entry, which their links name by its number
    entries, entry_of_link = np.unique((sources - _EMPTY) * width + targets, return_inverse=True)
    words = entries // width
    starts = np.cumsum(sizes) - sizes

    probabilities = np.ones(len(entries))
    for _ in range(_ROUNDS):
        shares = probabilities[entry_of_link]
        shares /= np.repeat(np.add.reduceat(shares, starts), sizes)
        counts = np.bincount(entry_of_link, shares, len(entries))
        # a count may vanish: 0 / 0 has no translation
        totals = np.bincount(words, counts)[words]
        probabilities = np.divide(counts, totals, out=np.zeros_like(counts), where=totals > 0.0)

    order = np.lexsort((-probabilities, words))
    order = order[words[order] + _EMPTY != _EMPTY]
    return Lexicon(words[order] + _EMPTY, entries[order] % width, probabilities[order])


def _links(pairs: Iterable[tuple[Sequence[int], Sequence[int]]]) -> tuple[Ids, Ids, Ids]:
    """The source and the target word of each link, and how many links each target word has."""
    kept: list[tuple[Ids, Ids]] = []
    links, step = 0, 1
    for number, (source, target) in enumerate(pairs):
        if number % step:
            continue
        words = np.array([_EMPTY, *sorted(set(source))], np.int64)
        kept.append((words, np.array(target, np.int64)))
        links += len(words) * len(target)
        while links > _MOST_LINKS and len(kept) > 1:  # every second pair, here and from here on
            kept, step = kept[::2], step * 2
            links = sum(len(words) * len(target) for words, target in kept)

    if not kept:
        nothing = np.zeros(0, np.int64)
        return nothing, nothing, nothing
    return (
        np.concatenate([np.tile(words, len(target)) for words, target in kept]),
        np.concatenate([np.repeat(target, len(words)) for words, target in kept]),
        np.concatenate([np.full(len(target), len(words)) for words, target in kept]),
    )
