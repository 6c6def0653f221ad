"""Law: the tokenizers and samplers cut words as the equations say, and draw as often."""

import math
import random
from collections import Counter

import numpy as np
import pytest

from pellucid.equations.subwords import (
    apply_merges,
    dropout_probabilities,
    learn_merges,
    likeliest_segmentation,
    merge_pair,
    unigram_probabilities,
)
from pellucid.equations.word2vec import interleave_pair
from pellucid.text.config import TokenizerConfig
from pellucid.text.corpus.rows import IdRows
from pellucid.text.tokenizers.bpe_dropout import DroppedMergesSampler
from pellucid.text.tokenizers.segmentations import Pieces, SegmentationSampler
from pellucid.text.tokenizers.sentencepiece_tokenizer import train_sentencepiece
from pellucid.text.tokenizers.unigram_sampling import UnigramSampler
from pellucid.text.tokenizers.wordpiece import CONTINUATION, learn_pieces
from pellucid.training.pair_vectors import interleave

DRAWS = 20_000
BYTES = range(256)
TEXTS = ["low lower lowest slow slower", "new newer newest", "wide wider widest", "low wide new"]


def continued(left: str, right: str) -> str:
    """How WordPiece writes a merge: a piece that goes on has the mark once."""
    return left + right.removeprefix(CONTINUATION)


@pytest.mark.parametrize("seed", range(5))
def test_wordpiece_learns_the_merges_of_the_page(seed: int):
    """Its heap of counts, updated with each merge, against counting everything again."""
    draw = random.Random(seed)
    counts = Counter("".join(draw.choices("abc", k=draw.randint(1, 6))) for _ in range(30))
    words = {
        (word[0], *(CONTINUATION + letter for letter in word[1:])): count
        for word, count in counts.items()
    }
    characters = {symbol for word in words for symbol in word}
    merges = learn_merges(words, 12, continued)
    pieces = learn_pieces(counts, len(characters) + len({continued(*pair) for pair in merges}))
    assert set(pieces) == characters | {continued(*pair) for pair in merges}


def frequencies(
    sampler: SegmentationSampler, pieces: Pieces, word: str
) -> Counter[tuple[str, ...]]:
    ids = [[pieces.ids[letter] for letter in word]] * DRAWS
    drawn = sampler.draw(IdRows.of(ids), np.arange(DRAWS, dtype=np.uint64))
    rows = np.split(drawn.ids, np.cumsum(drawn.lengths)[:-1])
    return Counter(tuple(pieces.tokens[id_] for id_ in row) for row in rows)


def assert_drawn_from(found: Counter[tuple[str, ...]], expected: dict[tuple[str, ...], float]):
    """Six standard deviations: once in 10^9."""
    assert found.keys() <= expected.keys()
    for cut, probability in expected.items():
        spread = math.sqrt(DRAWS * probability * (1 - probability))
        assert abs(found[cut] - DRAWS * probability) <= 6 * spread + 1, cut


def pieces_of(scores: dict[str, float]) -> Pieces:
    return Pieces([*(f"<0x{byte:02X}>" for byte in BYTES), *scores], scores, BYTES)


SCORES = {"low": -1.0, "lo": -0.5, "er": -2.0, "owe": -2.5, "we": -3.0, "lower": -3.5} | {
    letter: -4.0 - index for index, letter in enumerate("lower")
}


def ranks_of(scores: dict[str, float]) -> dict[tuple[str, str], int]:
    """Every way to make a piece of two: the better its score, the earlier."""
    order = sorted(scores, key=lambda piece: -scores[piece])
    return {
        (piece[:cut], piece[cut:]): rank
        for rank, piece in enumerate(order)
        for cut in range(1, len(piece))
    }


@pytest.mark.parametrize("probability", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("word", ["low", "lower", "lowlow"])
def test_merges_are_dropped_as_often_as_the_page_says(word: str, probability: float):
    pieces, ranks = pieces_of(SCORES), ranks_of(SCORES)
    found = frequencies(DroppedMergesSampler(pieces, probability), pieces, word)
    assert_drawn_from(found, dropout_probabilities(tuple(word), ranks, probability))
    if probability == 0:
        assert list(found) == [apply_merges(tuple(word), ranks)]


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_segmentations_are_drawn_as_often_as_the_page_says(alpha: float):
    pieces = pieces_of(SCORES)
    found = frequencies(UnigramSampler(pieces, alpha), pieces, "lower")
    assert_drawn_from(found, unigram_probabilities("lower", SCORES, alpha))


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_sentencepiece_cuts_words_as_the_page_does(kind: str):
    size = 300 if kind == "bpe" else 290
    tokenizer = train_sentencepiece(TEXTS * 20, TokenizerConfig(kind=kind, vocabulary_size=size))
    scores = tokenizer.matching.scores
    for word in dict.fromkeys(" ".join(TEXTS).split()):
        marked = "\u2581" + word
        if kind == "bpe":
            cut = apply_merges(tuple(marked), ranks_of(scores))
        else:
            cut = likeliest_segmentation(marked, scores)
        assert tuple(tokenizer.tokens(tokenizer.encode(word)))[: len(cut)] == cut, word


@pytest.mark.parametrize(("source", "target"), [(1, 1), (2, 3), (5, 2), (4, 4), (3, 0)])
def test_pairs_are_interleaved_as_the_page_does(source: int, target: int):
    left, right = [*range(10, 10 + source)], [*range(20, 20 + target)]
    rows = [(np.array(ids), np.array([len(ids)])) for ids in (left, right)]
    ids, lengths = interleave(*rows)
    assert ids.tolist() == interleave_pair(left, right)
    assert lengths.tolist() == [source + target]


def test_a_merge_of_the_page_changes_only_the_pair():
    assert merge_pair(("a", "##b", "##b"), ("a", "##b"), continued) == ("ab", "##b")
