"""WordPiece: known words are one token, others are cut into known pieces, ``##`` continues one."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush
from pathlib import Path
from typing import Literal, final

from pellucid.core.errors import DataError
from pellucid.core.special import SPECIAL_COUNT
from pellucid.text.config import TokenizerConfig
from pellucid.text.normalization import Normalization, check_text, normalize_all
from pellucid.text.tokenizers.interface import SILENT_IDS
from pellucid.text.tokenizers.vocabulary import (
    SPECIAL_TOKENS,
    Vocabulary,
    VocabularyFile,
    VocabularyTokenizer,
)
from pellucid.text.tokenizers.word_tokenizers import MARKS, join_words, split_punctuation

CONTINUATION = "##"
"""The prefix of a piece that continues a word."""

_LONGEST_PIECE = 256
"""Characters. Without a limit the time is cubic in the length of a word, and both the vocabulary
and the text may come from a stranger."""

Pair = tuple[str, str]


def longest_match(
    word: str, vocabulary: Vocabulary, longest: int, continuation: str = CONTINUATION
) -> list[str]:
    """Cut the longest known piece off the front of a word until nothing is left.

    EQ: 09, 10.  Source: Agarwal, §2.1; Devlin et al. (2019) for the algorithm.
    Symbols: longest = the length of the longest token, ``continuation`` included.

    A character with which no piece begins becomes ``[UNK]``.
    Differs: in BERT the whole word becomes unknown.
    """
    pieces = []
    start = 0

    while start < len(word):
        prefix = continuation if start else ""

        # From the longest candidate to the shortest: the first that is known is the longest.
        for end in range(min(len(word), start + longest), start, -1):
            if prefix + word[start:end] in vocabulary:
                pieces.append(prefix + word[start:end])
                break
        else:
            end = start + 1
            pieces.append(SPECIAL_TOKENS[1])
        start = end

    return pieces


def learn_pieces(word_counts: Mapping[str, int], size: int) -> list[str]:
    """The ``size`` pieces found by repeatedly merging the most frequent pair of neighbors.

    EQ: 09.  Source: Sennrich et al. (2016), algorithm 1, with ``##`` on inner pieces.

    All characters come first, so that every word of the same alphabet can be spelled; of equally
    frequent pairs the alphabetically first is merged.
    """
    # Each different word once, with its count: the text itself is far longer.
    words = [[word[0], *(CONTINUATION + c for c in word[1:])] for word in word_counts]
    counts = list(word_counts.values())
    frequency: Counter[str] = Counter()
    for word, count in zip(words, counts, strict=True):
        for piece in word:
            frequency[piece] += count

    # A dict as an ordered set: two merges may give the same piece.
    pieces = dict.fromkeys(sorted(frequency, key=lambda piece: (-frequency[piece], piece)))
    pairs = _PairCounts(words, counts)
    while len(pieces) < size:
        best = pairs.most_frequent()

        # Every word is one piece: a small corpus has fewer pieces than were wanted.
        if best is None:
            break
        pieces[pairs.merge(best)] = None
    return list(pieces)[:size]


class _PairCounts:
    """Counts of neighboring pieces, updated with every merge.

    A merge changes only words that contain the pair, so an index from pairs to words and a heap of
    counts replace counting everything again.
    """

    def __init__(self, words: list[list[str]], counts: list[int]) -> None:
        self._words = words
        self._word_counts = counts
        self._counts: Counter[Pair] = Counter()
        self._where: defaultdict[Pair, set[int]] = defaultdict(set)
        for index in range(len(words)):
            self._add(index, sign=1)
        self._heap = [(-count, pair) for pair, count in self._counts.items()]
        heapify(self._heap)

    def most_frequent(self) -> Pair | None:
        """The pair to merge next, or None if every word is one piece."""
        while self._heap:
            negative_count, pair = self._heap[0]

            # The heap keeps outdated counts, as its entries cannot be changed; whether one is
            # outdated shows when it comes to the top.
            if self._counts[pair] == -negative_count > 0:
                return pair
            heappop(self._heap)  # outdated: the true count was pushed when it changed
        return None

    def merge(self, pair: Pair) -> str:
        """Merge the pair in every word; return the new piece."""
        merged = pair[0] + pair[1].removeprefix(CONTINUATION)

        # The words' pairs are counted down before the merge and up after it.
        changed: set[Pair] = set()

        # A copy, because merging changes the set; sorted, because the order of a set of numbers is
        # no promise.
        for index in sorted(self._where[pair]):
            changed |= self._add(index, sign=-1)
            self._words[index] = _merge_in(self._words[index], pair, merged)
            changed |= self._add(index, sign=1)

        # Pushed once for each pair, whatever the number of words that it changed in.
        for other in changed:
            if self._counts[other] > 0:
                heappush(self._heap, (-self._counts[other], other))
        return merged

    def _add(self, index: int, sign: int) -> set[Pair]:
        word = self._words[index]
        pairs = list(itertools.pairwise(word))
        for pair in pairs:
            self._counts[pair] += sign * self._word_counts[index]
            if sign > 0:
                self._where[pair].add(index)
            else:
                self._where[pair].discard(index)
        return set(pairs)


def _merge_in(word: list[str], pair: Pair, merged: str) -> list[str]:
    result: list[str] = []
    index = 0
    while index < len(word):
        if tuple(word[index : index + 2]) == pair:
            result.append(merged)
            index += 2
        else:
            result.append(word[index])
            index += 1
    return result


@final
class WordPieceTokenizer(VocabularyTokenizer):
    """Words and marks, then ``longest_match`` within each.

    EQ: 01, 09, 10.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        lowercase: bool = False,
        normalization: Normalization = "none",
        marks: bool = False,
    ) -> None:
        options = {"lowercase": lowercase, **({MARKS: True} if marks else {})}
        super().__init__(VocabularyFile("wordpiece", options, vocabulary, normalization))
        self._lowercase = lowercase
        self._marks = marks

        # No candidate longer than the longest token needs to be looked up.
        longest = max((len(token) for token in vocabulary.tokens[SPECIAL_COUNT:]), default=0)
        self._longest = min(longest, _LONGEST_PIECE)

    @property
    def kind(self) -> Literal["wordpiece"]:
        """``wordpiece``."""
        return "wordpiece"

    @property
    def fingerprint(self) -> str:
        """SHA-256 over kind, options and vocabulary, in hexadecimal."""
        return self._file.fingerprint

    def split(self, text: str) -> list[str]:
        """The pieces of ``text``, as it is read, ``[UNK]`` for unknown characters."""
        return [
            piece
            for word in self._words(text)
            for piece in longest_match(word, self._vocabulary, self._longest)
        ]

    def _words(self, text: str) -> list[str]:
        return _words_of(text, self._lowercase, self._marks)

    def unknown_characters(self, text: str) -> list[str]:
        """The characters of ``text`` that become ``[UNK]``, in order."""
        unknown = []
        text = self.read(text)
        for word in self._words(text):
            start = 0
            for piece in longest_match(word, self._vocabulary, self._longest):
                # an unknown one is one character, and no piece of a vocabulary
                if piece not in self._vocabulary:
                    unknown.append(word[start])
                    start += 1
                else:
                    start += len(piece) - (len(CONTINUATION) if start else 0)
        return unknown

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ``ids``, without PAD, BOS and EOS; spaces are guessed at marks.

        Raises DataError for an unknown id.
        """
        words: list[str] = []
        for id_ in map(int, ids):
            if id_ in SILENT_IDS:
                continue
            [piece] = self._vocabulary.decode([id_])

            if words and piece.startswith(CONTINUATION) and piece != CONTINUATION:
                words[-1] += piece.removeprefix(CONTINUATION)
            else:
                words.append(piece)
        return join_words(words)

    def normalize(self, text: str) -> str:
        """The text as its words give it back. Raises DataError for a lone surrogate."""
        check_text(text)
        return join_words(self._words(self.read(text)))

    def save(self, folder: Path, name: str) -> None:
        """Write ``NAME.vocab.json``."""
        self._file.write(folder, name)


def train_wordpiece(texts: Iterable[str], config: TokenizerConfig) -> WordPieceTokenizer:
    """Learn pieces from words and their counts.

    EQ: 09.  Raises DataError if there is no text.
    """
    counts: Counter[str] = Counter()
    for text in normalize_all(texts, config.normalization):
        check_text(text)

        # Words and their counts are all that learning needs; the text itself is not kept.
        counts.update(_words_of(text, config.lowercase, marks=True))
    if not counts:
        raise DataError("a vocabulary must be learned from text, got none but blank lines")
    pieces = learn_pieces(counts, config.vocabulary_size - SPECIAL_COUNT)
    vocabulary = Vocabulary.of(pieces)
    return WordPieceTokenizer(vocabulary, config.lowercase, config.normalization, marks=True)


def _words_of(text: str, lowercase: bool, marks: bool) -> list[str]:
    """The words and marks of a text; ``marks`` keeps combining marks in them."""
    if lowercase:
        text = text.lower()
        # Python's small letter of the Turkish İ is two characters, of which one is a dot above.
        text = text.replace("i\u0307", "i") if marks else text
    return split_punctuation(text, marks)
