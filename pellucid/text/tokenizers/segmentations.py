"""Random segmentations for subword regularization: what unigram sampling and BPE-dropout share.

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
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pellucid.core.errors import DataError
from pellucid.text.corpus.rows import IdRows, Ids, Indices, positions_of
from pellucid.text.shuffling import mixed

Keys = npt.NDArray[np.uint64]
"""The state of a generator for each of several words."""

SPACE_MARK = "\u2581"
"""The mark that sentencepiece writes for a space."""
_WRITTEN_MARK = "\ud800"
"""Represents a U+2581 of the text itself. It is a lone surrogate, which no text can contain."""
MOST_KEPT = 1 << 22
"""Edges or characters that are kept, under 200 MB; when there are more, all are dropped."""


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
        """Return a mask of the ids that begin a word, which is a part of a text whose ends no piece
        crosses."""
        # An imported model may have pieces of several words: then a text is one word.
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
            # Bytes of one or several characters; what is no UTF-8 becomes U+FFFD, which is a
            # character too.
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

    def __init__(self, pieces: Pieces, most_kept: int) -> None:
        self._pieces = pieces
        self._most_kept = most_kept
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

        # The first piece of a text begins a word even without a mark; empty texts have none.
        begins_word[(ends - lengths)[lengths > 0]] = True
        begins = np.flatnonzero(begins_word)
        first_words = np.searchsorted(begins, np.append(ends - lengths, len(ids)))  # (text + 1)

        # SplitMix64 twice: a stream of keys for each text, a stream of numbers for each word.
        word_counts = np.diff(first_words)
        positions = np.arange(1, len(begins) + 1) - np.repeat(first_words[:-1], word_counts)
        keys = mixed(np.repeat(seeds, word_counts), turn=positions.astype(np.uint64))

        with self._lock:
            numbers = self._numbers_of(ids, np.append(begins, len(ids)))
            drawn, drawn_lengths = self._drawn(numbers, keys)
        return IdRows.in_order(drawn, sums(drawn_lengths, word_counts))

    def _numbers_of(self, ids: Ids, bounds: Indices) -> Indices:
        """The number of each word; new words are learned."""
        if self.kept_count > self._most_kept:
            self._forget()
            self._numbers = {}

        # A word is looked up by the bytes of its ids, 4 for each: slices of one bytes object.
        text = ids.astype(np.int32).tobytes()
        words = [text[start:end] for start, end in itertools.pairwise((4 * bounds).tolist())]

        known = self._numbers
        new = [word for word in dict.fromkeys(words) if word not in known]

        # Numbered before they are learned, in the order in which ``_learn`` gets them.
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


def sums(values: Indices, counts: Indices) -> Indices:
    """The sums of consecutive groups of values; ``counts`` are their sizes."""
    # ``reduceat`` would be shorter, but gives an element instead of 0 for an empty group.
    ends = np.concatenate(([0], np.cumsum(values)))
    return np.diff(ends[np.concatenate(([0], np.cumsum(counts)))])


class Column:
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

        # Doubling: n appended values are copied n times in all.
        if count > len(self._store):
            larger = np.empty(2 * count, self._store.dtype)
            larger[: self._count] = self.values
            self._store = larger
        self._store[self._count : count] = values
        self._count = count


class Rows:
    """Rows of numbers that are added at the end."""

    def __init__(self) -> None:
        self._flat, self._begins, self._lengths = (Column(np.int64) for _ in range(3))

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
        """Return the values of the given rows one after the other, and the length of each row."""
        lengths = self.lengths(rows)
        return self._flat.values[positions_of(self._begins.values[rows], lengths)], lengths
