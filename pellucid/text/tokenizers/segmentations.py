"""Random segmentations for subword regularization: unigram sampling and BPE-dropout.

sentencepiece has both, but its random generator differs from process to process, whatever seed it
is given, so that a run could be neither repeated nor resumed. Here segmentations are drawn over its
pieces and scores with a counter-based generator: a number depends on the seed of its text, the
position of its word in the text and how many numbers were drawn for that word before. So it does
not depend on the other texts of a batch, their order, the thread or the process.

A text is given by the ids of its usual segmentation, so it was normalized by sentencepiece itself.
No piece of our vocabularies crosses a space; so the words of a text are independent, and what was
computed for a word is kept until the word occurs again. That affects the speed only.

Source: Kudo (2018), §3.2; Provilkov et al. (2020), §3.
"""

import dataclasses
import functools
import itertools
import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, final

import numpy as np
import numpy.typing as npt

from pellucid.core.errors import DataError
from pellucid.text.corpus.rows import IdRows, Ids, Indices
from pellucid.text.shuffling import mixed

Keys = npt.NDArray[np.uint64]
"""The state of a generator for each of several words."""

SPACE_MARK = "\u2581"
"""What sentencepiece writes for a space."""
_WRITTEN_MARK = "\ud800"
"""Represents a U+2581 of the text itself. It is a lone surrogate, which no text can contain."""
_MOST_KEPT = 1 << 22
"""Edges or characters that are kept, under 200 MB; when there are more, all are dropped."""
_CELLS_AT_ONCE = 1 << 20
"""Characters of words that are merged together, to bound memory."""
_MOST_PLACES = 1 << 24
"""Characters of a word, at most."""
_NO_MERGE = np.iinfo(np.int64).max
_NO_KEY = np.uint64(0)


@dataclasses.dataclass(frozen=True)
class Pieces:
    """The pieces of a sentencepiece model that text can be cut into."""

    tokens: Sequence[str]
    """The token of each id, special ids and bytes included."""
    scores: Mapping[str, float]
    """Scores of the pieces that match text: log-probabilities in a unigram model; in a BPE model
    the first merge has the highest score."""
    byte_ids: Sequence[int]
    """The id of each byte, for characters that have no piece."""

    @functools.cached_property
    def ids(self) -> dict[str, int]:
        """The id of each piece that matches text."""
        return {token: id_ for id_, token in enumerate(self.tokens) if token in self.scores}

    @functools.cached_property
    def begin_words(self) -> npt.NDArray[np.bool_]:
        """Which ids begin a word, that is a part of a text whose ends no piece crosses."""
        crosses = any(SPACE_MARK in piece[1:] for piece in self.scores)
        begins = [not crosses and token.startswith(SPACE_MARK) for token in self.tokens]
        return np.array(begins, np.bool_)

    @functools.cached_property
    def _bytes_of(self) -> dict[int, int]:
        return {id_: byte for byte, id_ in enumerate(self.byte_ids)}

    def text(self, ids: Sequence[int]) -> str:
        """The text of these ids, with the marks of spaces."""
        parts = []
        for is_spelled, group in itertools.groupby(ids, self._bytes_of.__contains__):
            if is_spelled:
                spelled = bytes(self._bytes_of[id_] for id_ in group).decode(errors="replace")
                parts.append(spelled.replace(SPACE_MARK, _WRITTEN_MARK))
            else:
                parts += [self.tokens[id_] for id_ in group]
        return "".join(parts)

    def spelled(self, piece: str) -> list[int]:
        """The id of a piece; for a character that is no piece, the ids of its bytes."""
        if piece in self.ids:
            return [self.ids[piece]]
        character = SPACE_MARK if piece == _WRITTEN_MARK else piece
        return [self.byte_ids[byte] for byte in character.encode()]


class SegmentationSampler(ABC):
    """Draws segmentations. Any number of threads may use it; a lock lets one in at a time."""

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self._lock = threading.Lock()
        self._numbers: dict[bytes, int] = {}

    def draw(self, rows: IdRows, seeds: Keys) -> IdRows:
        """Draw a segmentation of each text in ``rows``, with its own seed.

        Raises DataError for an id outside the vocabulary.
        """
        ids, lengths = rows.all_ids(), rows.lengths
        size = len(self._pieces.tokens)
        if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < size:
            raise DataError(
                f"an id must be from 0 to {size - 1}, got ids from {ids.min()} to {ids.max()}"
            )

        # All words of all texts at once: where each begins, and each text's first word.
        ends = np.cumsum(lengths)
        begins_word = self._pieces.begin_words[ids]
        begins_word[(ends - lengths)[lengths > 0]] = True
        begins = np.flatnonzero(begins_word)
        first_words = np.searchsorted(begins, np.append(ends - lengths, len(ids)))  # (text + 1)

        # SplitMix64 twice: a stream of keys for each text, a stream of numbers for each word.
        word_counts = np.diff(first_words)
        positions = np.arange(1, len(begins) + 1) - np.repeat(first_words[:-1], word_counts)
        keys = mixed(np.repeat(seeds, word_counts), _NO_KEY, positions.astype(np.uint64))

        with self._lock:
            numbers = self._numbers_of(ids, np.append(begins, len(ids)))
            drawn, drawn_lengths = self._drawn(numbers, keys)
        return IdRows.in_order(drawn, _sums(drawn_lengths, word_counts))

    def _numbers_of(self, ids: Ids, bounds: Indices) -> Indices:
        """The number of each word; new words are learned."""
        if self.kept_count > _MOST_KEPT:
            self._forget()
            self._numbers = {}

        # A word is looked up by the bytes of its ids, 4 for each: slices of one bytes object.
        text = ids.astype(np.int32).tobytes()
        words = [text[start:end] for start, end in itertools.pairwise((4 * bounds).tolist())]

        known = self._numbers
        new = [word for word in dict.fromkeys(words) if word not in known]
        known.update(zip(new, itertools.count(len(known)), strict=False))
        self._learn([self._pieces.text(np.frombuffer(word, np.int32).tolist()) for word in new])
        return np.fromiter(map(known.__getitem__, words), np.int64, len(words))

    @property
    @abstractmethod
    def kept_count(self) -> int:
        """The amount that is kept of the words seen so far."""

    @abstractmethod
    def _forget(self) -> None:
        """Drop all words; the next one has the number 0."""

    @abstractmethod
    def _learn(self, words: Sequence[str]) -> None:
        """Prepare new words; their numbers continue those of the words learned before."""

    @abstractmethod
    def _drawn(self, numbers: Indices, keys: Keys) -> tuple[Indices, Indices]:
        """The ids of these words, concatenated, and the number of ids of each word."""


@final
class UnigramSampler(SegmentationSampler):
    """Segmentations x of a word, drawn with probability in proportion to P(x)^α.

        P(x) = Π p(xᵢ),   Z(j) = Σ Z(i) p(w[i:j])^α over all pieces w[i:j] that end at j,   Z(0) = 1

    Forward filtering computes Z once for each word. Backward sampling starts at the end of the
    word: the piece that ends at j is w[i:j] with probability Z(i) p(w[i:j])^α / Z(j), and so on
    from i. A character without a piece is spelled in bytes, with a score of 10 below the lowest,
    as in sentencepiece.

    Source: Kudo (2018), §3.2, with all segmentations (l = ∞).  Symbols: alpha = α.
    """

    _UNKNOWN_PENALTY = 10.0

    def __init__(self, pieces: Pieces, alpha: float) -> None:
        super().__init__(pieces)
        self._alpha = alpha
        self._lengths = sorted({len(piece) for piece in pieces.scores})
        self._unknown = min(pieces.scores.values(), default=0.0) - self._UNKNOWN_PENALTY
        self._forget()

    @property
    def kept_count(self) -> int:
        """The edges of all lattices."""
        return len(self._bounds)

    def _forget(self) -> None:
        # A node is a position of a word where a piece can end; an edge is a piece that ends there.
        self._last_nodes = _Column(np.int64)  # (word)
        self._first_edges = _Column(np.int64)  # (node)
        self._bounds = _Column(np.uint64)  # (edge): cumulative probability at its node, times 2^32
        self._nodes_before = _Column(np.int64)  # (edge); -1 at the beginning of a word
        self._edge_rows = _Column(np.int64)  # (edge): the row of its ids
        self._rows = _Rows()
        self._row_of: dict[str, int] = {}

    def _learn(self, words: Sequence[str]) -> None:
        """Forward filtering: the lattice of each word, with cumulative probabilities."""
        first_node, edge_count = len(self._first_edges), len(self._bounds)
        last_nodes: list[int] = []
        first_edges: list[int] = []
        bounds: list[int] = []
        nodes_before: list[int] = []
        edge_rows: list[int] = []

        for word in words:
            log_sums = [0.0]  # log Z
            for edges in self._edges(word):
                # log Z(j) as a log-sum-exp: minus the maximum, so that exp cannot overflow.
                logs = [log_sums[start] + self._alpha * score for start, score, _ in edges]
                top = max(logs)
                shares = [math.exp(log - top) for log in logs]
                total = sum(shares)
                log_sums.append(top + math.log(total))

                # The likeliest first: most draws end there.
                order = sorted(range(len(edges)), key=lambda i: -shares[i])
                cumulative = itertools.accumulate(shares[i] for i in order)
                first_edges.append(edge_count + len(bounds))
                bounds += [int(share / total * 2**32) for share in cumulative]
                bounds[-1] = 2**32  # above every random number, in spite of rounding
                nodes_before += [first_node + edges[i][0] - 1 if edges[i][0] else -1 for i in order]
                edge_rows += [edges[i][2] for i in order]
            first_node += len(word)
            last_nodes.append(first_node - 1)

        # Lists grow fast in Python's loop; arrays are read fast when sampling.
        self._last_nodes.extend(last_nodes)
        self._first_edges.extend(first_edges)
        self._bounds.extend(bounds)
        self._nodes_before.extend(nodes_before)
        self._edge_rows.extend(edge_rows)

    def _edges(self, word: str) -> list[list[tuple[int, float, int]]]:
        """For each position the pieces that end there, as start, score and row of ids."""
        scores = self._pieces.scores
        edges: list[list[tuple[int, float, int]]] = [[] for _ in word]

        for start in range(len(word)):
            is_known = False
            for length in self._lengths:
                if start + length > len(word):
                    break
                piece = word[start : start + length]
                score = scores.get(piece)
                if score is not None:
                    edges[start + length - 1].append((start, score, self._row(piece)))
                    is_known = is_known or length == 1
            if not is_known:  # the character as bytes, so that every word has a segmentation
                edges[start].append((start, self._unknown, self._row(word[start])))

        return edges

    def _row(self, piece: str) -> int:
        if piece not in self._row_of:
            self._row_of[piece] = self._rows.add(self._pieces.spelled(piece))
        return self._row_of[piece]

    def _drawn(self, numbers: Indices, keys: Keys) -> tuple[Indices, Indices]:
        """Backward sampling of all words at once; each step draws one piece of every word."""
        first_edges, bounds = self._first_edges.values, self._bounds.values
        nodes_before, edge_rows = self._nodes_before.values, self._edge_rows.values
        nodes = self._last_nodes.values[numbers]
        active = np.arange(len(numbers))
        drawn: list[tuple[Indices, Indices]] = []  # words, and the row of the piece of each

        while active.size:
            # A number of 32 bits for each word; then the first edge whose bound is above it.
            chance = mixed(keys, _NO_KEY, np.uint64(len(drawn) + 1)) >> np.uint64(32)
            edges = first_edges[nodes]
            beyond = np.flatnonzero(chance >= bounds[edges])
            while beyond.size:
                edges[beyond] += 1
                beyond = beyond[chance[beyond] >= bounds[edges[beyond]]]
            drawn.append((active, edge_rows[edges]))

            nodes = nodes_before[edges]
            goes_on = nodes >= 0
            active, nodes, keys = active[goes_on], nodes[goes_on], keys[goes_on]

        # The last piece of a word was drawn first.
        piece_counts = np.zeros(len(numbers), np.int64)
        for there, _ in drawn:
            piece_counts[there] += 1

        ends = np.cumsum(piece_counts)
        rows = np.empty(int(piece_counts.sum()), np.int64)
        for step, (there, pieces) in enumerate(drawn):
            rows[ends[there] - 1 - step] = pieces

        ids, lengths = self._rows.gather(rows)
        return ids, _sums(lengths, piece_counts)


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

    def __init__(self, pieces: Pieces, probability: float) -> None:
        super().__init__(pieces)
        self._probability = probability
        self._merges = _Merges(pieces)
        self._forget()

    @property
    def kept_count(self) -> int:
        """The characters of all words."""
        return self._characters.value_count

    def _forget(self) -> None:
        self._characters = _Rows()  # (word): its symbols before any merge
        self._usual = _Rows()  # (word): its symbols without drops
        self._merge_counts = _Column(np.int64)  # (word): merges without drops

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
        made = self._made_before_drop(keys)
        dropping = np.flatnonzero(made < self._merge_counts.values[numbers])

        # The usual segmentations of all words, then the new ones of words with a drop.
        rows = _Rows()
        rows.add_all(*self._usual.gather(numbers))
        rows.add_all(
            *self._merged(numbers[dropping], keys[dropping], made[dropping], self._probability)
        )

        chosen = np.arange(len(numbers))
        chosen[dropping] = len(numbers) + np.arange(len(dropping))

        symbols, symbol_counts = rows.gather(chosen)
        ids, lengths = self._merges.rows.gather(symbols)
        return ids, _sums(lengths, symbol_counts)

    def _made_before_drop(self, keys: Keys) -> Indices:
        """How many merges are made before the first drop, at most one more than any word has."""
        most = int(self._merge_counts.values.max(initial=0)) + 1
        falling = (1.0 - self._probability) ** np.arange(1.0, most + 1)  # P(at least m)

        # The distribution function inverted: one random number for each word.
        chance = _fractions(mixed(keys, _NO_KEY, np.uint64(1)))
        return np.searchsorted(-falling, -chance)

    def _merged(
        self, numbers: Indices, keys: Keys, first_drops: Indices, probability: float
    ) -> tuple[Indices, Indices]:
        """The symbols of words whose first dropped merge has the number ``first_drops``.

        Words of similar length are merged together.
        """
        rows, order = _Rows(), np.empty(len(numbers), np.int64)
        done = 0

        for chosen in _of_like_length(self._characters.lengths(numbers)):
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
        self.rows = _Rows()
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
            chance = _fractions(mixed(keys[active], _NO_KEY, np.uint64(number + 2)))
            is_dropped = (first_drops[active] < number) & (chance < probability)
            is_dropped |= first_drops[active] == number
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
        order = (self._ranks[found] * _MOST_PLACES + places) * self._symbol_count
        return np.where(self._pairs[found] == pairs, order + self._results[found], _NO_MERGE)


def _of_like_length(lengths: Indices) -> Iterator[Indices]:
    """Groups of word numbers of similar length, with a bounded number of characters in each."""
    order = np.argsort(lengths, kind="stable")
    ordered = lengths[order]
    start = 0
    while start < len(order):
        widest = 2 * max(8, int(ordered[start]))
        end = int(np.searchsorted(ordered, widest, side="right"))
        end = min(end, start + max(1, _CELLS_AT_ONCE // widest))
        yield order[start:end]
        start = end


def _fractions(words: Keys) -> npt.NDArray[np.float64]:
    """Random bits as numbers in [0, 1): the 53 bits that a float64 can represent."""
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _sums(values: Indices, counts: Indices) -> Indices:
    """The sums of consecutive groups of values; ``counts`` are their sizes."""
    ends = np.concatenate(([0], np.cumsum(values)))
    return np.diff(ends[np.concatenate(([0], np.cumsum(counts)))])


class _Column:
    """A numpy array that grows at its end."""

    def __init__(self, kind: type[np.generic]) -> None:
        self._store: npt.NDArray[Any] = np.empty(1024, kind)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def values(self) -> npt.NDArray[Any]:
        """The values as a view."""
        return self._store[: self._count]

    def extend(self, values: Sequence[int] | Indices) -> None:
        """Add values at the end."""
        count = self._count + len(values)
        if count > len(self._store):
            larger = np.empty(2 * count, self._store.dtype)
            larger[: self._count] = self.values
            self._store = larger
        self._store[self._count : count] = values
        self._count = count


class _Rows:
    """Rows of numbers that are added at the end."""

    def __init__(self) -> None:
        self._flat, self._begins, self._lengths = (_Column(np.int64) for _ in range(3))

    @property
    def value_count(self) -> int:
        """How many numbers all rows have together."""
        return len(self._flat)

    def add(self, row: Sequence[int]) -> int:
        """Add a row; its number."""
        self._begins.extend([len(self._flat)])
        self._lengths.extend([len(row)])
        self._flat.extend(row)
        return len(self._begins) - 1

    def add_all(self, flat: Indices, lengths: Indices) -> None:
        """Add rows that stand one after the other."""
        self._begins.extend(len(self._flat) + np.cumsum(lengths) - lengths)
        self._lengths.extend(lengths)
        self._flat.extend(flat)

    def lengths(self, rows: Indices) -> Indices:
        """The length of each of these rows."""
        lengths: Indices = self._lengths.values[rows]
        return lengths

    def gather(self, rows: Indices) -> tuple[Indices, Indices]:
        """These rows one after the other, and the length of each."""
        lengths = self.lengths(rows)
        ends = np.cumsum(lengths)
        places = np.arange(ends[-1] if len(ends) else 0)
        places += np.repeat(self._begins.values[rows] - (ends - lengths), lengths)
        return self._flat.values[places], lengths
