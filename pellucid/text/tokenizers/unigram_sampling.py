"""Segmentations sampled from a unigram model.

Source: Kudo (2018), §3.2.
"""

import itertools
import math
from collections.abc import Sequence
from typing import final

import numpy as np

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

    def __init__(self, pieces: Pieces, alpha: float, most_kept: int = MOST_KEPT) -> None:
        super().__init__(pieces, most_kept)
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
        self._last_nodes = Column(np.int64)  # (word)
        self._first_edges = Column(np.int64)  # (node)
        self._bounds = Column(np.uint64)  # (edge): cumulative probability at its node, times 2^32
        self._nodes_before = Column(np.int64)  # (edge); -1 at the beginning of a word
        self._edge_rows = Column(np.int64)  # (edge): the row of its ids
        self._rows = Rows()
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

            # Only lengths that some piece has; in rising order, so that the first one too long ends
            # the loop.
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

        # Every word starts at its end and takes one piece in each round, so that the number of
        # rounds is the number of pieces of the longest word.
        nodes = self._last_nodes.values[numbers]
        active = np.arange(len(numbers))
        drawn: list[tuple[Indices, Indices]] = []  # words, and the row of the piece of each

        while active.size:
            # A number of 32 bits for each word; then the first edge whose bound is above it.
            chance = mixed(keys, turn=np.uint64(len(drawn) + 1)) >> np.uint64(32)
            edges = first_edges[nodes]
            beyond = np.flatnonzero(chance >= bounds[edges])
            while beyond.size:
                edges[beyond] += 1
                beyond = beyond[chance[beyond] >= bounds[edges[beyond]]]
            drawn.append((active, edge_rows[edges]))

            # -1: the beginning of the word is reached.
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

        # A piece is one id, or several where a character is spelled in bytes.
        ids, lengths = self._rows.gather(rows)
        return ids, sums(lengths, piece_counts)
