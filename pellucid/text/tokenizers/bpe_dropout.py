"""BPE that drops merges at random (BPE-dropout).

Source: Provilkov et al. (2020), §3.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import final

import numpy as np
import numpy.typing as npt

from pellucid.text.corpus.rows import Indices
from pellucid.text.shuffling import mixed
from pellucid.text.tokenizers.segmentations import (
    MOST_KEPT,
    Column,
    Keys,
    Pieces,
    Rows,
    SegmentationSampler,
    sums,
)

_CELLS_AT_ONCE = 1 << 20
"""Characters of words that are merged together, to bound memory."""
_MOST_PLACES = 1 << 24
"""Characters of a word, at most."""
_NO_MERGE = np.iinfo(np.int64).max


@final
class DroppedMergesSampler(SegmentationSampler):
    """BPE that drops each merge with probability p (BPE-dropout).

    The possible merges are considered from the best to the worst, each once; each is made with
    probability 1 - p. So the number of merges before the first drop has a geometric distribution,
    P(at least m) = (1 - p)^m, and a word with fewer merges keeps its usual segmentation. The other
    words are merged again, all at once; each step makes one merge of every word.

    Differs: Provilkov et al. (2020), algorithm 1, consider a dropped merge again after the next
    merge was made; sentencepiece does not, and neither does this.
    """

    def __init__(
        self,
        pieces: Pieces,
        probability: float,
        most_kept: int = MOST_KEPT,
        cells_at_once: int = _CELLS_AT_ONCE,
    ) -> None:
        super().__init__(pieces, most_kept)
        self._probability = probability
        self._cells_at_once = cells_at_once
        self._merges = _Merges(pieces)
        self._forget()

    @property
    def kept_count(self) -> int:
        """The characters of all words."""
        return self._characters.value_count

    def _forget(self) -> None:
        self._characters = Rows()  # (word): its symbols before any merge
        self._usual = Rows()  # (word): its symbols without drops
        self._merge_counts = Column(np.int64)  # (word): merges without drops

    def _learn(self, words: Sequence[str]) -> None:
        if not words:
            return

        first = len(self._merge_counts)
        for word in words:
            self._characters.add([self._merges.symbol(character) for character in word])

        # Merged once without drops: probability 0, and no merge has the number -1.
        keys = np.zeros(len(words), np.uint64)
        numbers = np.arange(first, first + len(words))
        symbols, lengths = self._merged(numbers, keys, np.full(len(words), -1), 0.0)
        self._usual.add_all(symbols, lengths)
        self._merge_counts.extend(self._characters.lengths(numbers) - lengths)

    def _drawn(self, numbers: Indices, keys: Keys) -> tuple[Indices, Indices]:
        # With p = 0.1 most words have no drop at all: their usual segmentation is looked up, and
        # only the others are merged again.
        made = self._made_before_drop(keys)
        dropping = np.flatnonzero(made < self._merge_counts.values[numbers])

        # The usual segmentations of all words, then the new ones of words with a drop.
        rows = Rows()
        rows.add_all(*self._usual.gather(numbers))
        rows.add_all(
            *self._merged(numbers[dropping], keys[dropping], made[dropping], self._probability)
        )

        chosen = np.arange(len(numbers))
        chosen[dropping] = len(numbers) + np.arange(len(dropping))

        symbols, symbol_counts = rows.gather(chosen)
        ids, lengths = self._merges.rows.gather(symbols)
        return ids, sums(lengths, symbol_counts)

    def _made_before_drop(self, keys: Keys) -> Indices:
        """How many merges are made before the first drop, at most one more than any word has."""
        most = int(self._merge_counts.values.max(initial=0)) + 1
        falling = (1.0 - self._probability) ** np.arange(1.0, most + 1)  # P(at least m)

        # The distribution function inverted: one random number for each word.
        chance = _fractions(mixed(keys, turn=np.uint64(1)))

        # Negated, because ``searchsorted`` needs rising values.
        return np.searchsorted(-falling, -chance)

    def _merged(
        self, numbers: Indices, keys: Keys, first_drops: Indices, probability: float
    ) -> tuple[Indices, Indices]:
        """The symbols of words whose first dropped merge has the number ``first_drops``.

        Words of similar length are merged together.
        """
        rows, order = Rows(), np.empty(len(numbers), np.int64)
        done = 0

        # The table of a group is as wide as its longest word.
        for chosen in _of_like_length(self._characters.lengths(numbers), self._cells_at_once):
            characters, lengths = self._characters.gather(numbers[chosen])
            merged = self._merges.apply(
                characters, lengths, keys[chosen], first_drops[chosen], probability
            )
            rows.add_all(*merged)
            order[chosen] = np.arange(done, done + len(chosen))
            done += len(chosen)

        return rows.gather(order)


class _Merges:
    """The merges of a vocabulary and their order. A symbol is a piece or a single character."""

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self._symbols: dict[str, int] = {}
        self.rows = Rows()
        """The ids of each symbol."""
        for piece in itertools.chain(pieces.scores, *pieces.scores):
            self.symbol(piece)

        # The best score has rank 0; of equal scores the merge further to the left comes first.
        ranks = {
            score: rank for rank, score in enumerate(sorted(set(pieces.scores.values()))[::-1])
        }

        # A merge is two symbols in one number, sorted, so that it is found by bisection.
        known = self._symbols
        found = sorted(
            (known[piece[:cut]] << 32 | known[piece[cut:]], ranks[score], known[piece])
            for piece, score in pieces.scores.items()
            for cut in range(1, len(piece))
            if piece[:cut] in known and piece[cut:] in known
        )
        table = np.array([*found, (_NO_MERGE, 0, 0)], np.int64)
        self._pairs, self._ranks, self._results = np.ascontiguousarray(table.T)
        self._symbol_count = len(known)

    def symbol(self, text: str) -> int:
        """The number of a piece or character."""
        number = self._symbols.get(text)
        if number is None:
            number = self._symbols[text] = self.rows.add(self._pieces.spelled(text))
        return number

    def apply(
        self,
        symbols: Indices,
        lengths: Indices,
        keys: Keys,
        first_drops: Indices,
        probability: float,
    ) -> tuple[Indices, Indices]:
        """Merge words, given as the concatenated symbols of all and the number of each.

        The merge with the number ``first_drops`` of a word is dropped, none before it, and each
        after it with the given probability.
        """
        # Positions down, words across: the minimum over positions, which every round takes, then
        # runs along whole rows of memory.
        shape = int(lengths.max()), len(lengths)  # (position, word)
        words = np.repeat(np.arange(len(lengths)), lengths)
        places = np.arange(len(symbols)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        table = np.full(shape, -1)
        table[places, words] = symbols

        # Linked lists of the symbols of each word, as row numbers; -1 is the end.
        rows = np.arange(shape[0])[:, None]
        after = np.where(rows + 1 < lengths, rows + 1, -1)
        before = np.broadcast_to(rows - 1, shape).copy()
        merges = np.full(shape, _NO_MERGE)  # of a symbol and the one after it
        merges[:-1] = self._merge_of(table[:-1], table[1:], rows[:-1])

        result = table
        origin = np.arange(shape[1])  # which word a column is
        for number in itertools.count():
            # The best merge of each word; it is the lowest number, see _merge_of.
            best = merges.min(axis=0)
            active = np.flatnonzero(best < _NO_MERGE)

            if 4 * active.size < 3 * best.size:  # leave out the words that are done
                result[:, origin] = table
                table, after, before, merges = (
                    each[:, active] for each in (table, after, before, merges)
                )
                best, origin, first_drops = (each[active] for each in (best, origin, first_drops))
                keys = keys[active]
                active = np.arange(len(active))
            if not active.size:
                break

            # A dropped merge is out for good; the word may have another in the next step.
            chance = _fractions(mixed(keys[active], turn=np.uint64(number + 2)))
            is_dropped = (first_drops[active] < number) & (chance < probability)
            is_dropped |= first_drops[active] == number

            # The number of a merge, taken apart: rank, position of the left symbol, resulting
            # symbol.
            left = best[active] // self._symbol_count % _MOST_PLACES
            merges[left[is_dropped], active[is_dropped]] = _NO_MERGE

            # A merge keeps the result at the left symbol and unlinks the right one.
            left, here = left[~is_dropped], active[~is_dropped]
            merged = best[here] % self._symbol_count
            right = after[left, here]
            beyond = after[right, here]
            table[left, here], table[right, here] = merged, -1
            after[left, here] = beyond
            merges[left, here] = merges[right, here] = _NO_MERGE

            # The new symbol has new merges, with the symbol after it and the one before it.
            inner = beyond >= 0
            at, column, other = left[inner], here[inner], beyond[inner]
            before[other, column] = at
            merges[at, column] = self._merge_of(merged[inner], table[other, column], at)

            behind = before[left, here]
            inner = behind >= 0
            at, column = behind[inner], here[inner]
            merges[at, column] = self._merge_of(table[at, column], merged[inner], at)

        result[:, origin] = table
        by_word = result.T
        is_symbol = by_word >= 0
        return by_word[is_symbol], is_symbol.sum(axis=1)

    def _merge_of(self, left: Indices, right: Indices, places: Indices) -> Indices:
        """The merges of neighbors as numbers: the lowest is made first.

        A number holds the rank, the position of the left symbol, and the symbol that results.
        """
        pairs = left << 32 | right  # negative if there is no symbol
        found = np.searchsorted(self._pairs, pairs)

        # In int64: 2^24 positions and 2^16 symbols leave 2^23 ranks.
        order = (self._ranks[found] * _MOST_PLACES + places) * self._symbol_count
        return np.where(self._pairs[found] == pairs, order + self._results[found], _NO_MERGE)


def _of_like_length(lengths: Indices, cells_at_once: int) -> Iterator[Indices]:
    """Groups of word numbers of similar length, with a bounded number of characters in each."""
    order = np.argsort(lengths, kind="stable")
    ordered = lengths[order]
    start = 0
    while start < len(order):
        widest = 2 * max(8, int(ordered[start]))

        # Words of up to twice the shortest one's length, so that at most half of a table is empty.
        end = int(np.searchsorted(ordered, widest, side="right"))
        end = min(end, start + max(1, cells_at_once // widest))
        yield order[start:end]
        start = end


def _fractions(words: Keys) -> npt.NDArray[np.float64]:
    """Random bits as numbers in [0, 1): the 53 bits that a float64 can represent."""
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
