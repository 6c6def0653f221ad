"""Segmentations are drawn from the right distribution: by hand, enumerated, by sentencepiece."""

import itertools
import math
import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import sentencepiece

from pellucid import phrasebook
from pellucid.text.config import TokenizerConfig
from pellucid.text.corpus.rows import IdRows
from pellucid.text.tokenizers.bpe_dropout import DroppedMergesSampler
from pellucid.text.tokenizers.segmentations import Pieces, SegmentationSampler
from pellucid.text.tokenizers.sentencepiece_tokenizer import (
    SentencePieceTokenizer,
    train_sentencepiece,
)
from pellucid.text.tokenizers.unigram_sampling import UnigramSampler

DRAWS = 20_000
TEXTS = [text for pair in phrasebook.split(800, 20, 7).train for text in (pair.source, pair.target)]
BYTE_IDS = range(256)
"""The tokens made by hand have the bytes as their first ids."""


def pieces_of(scores: dict[str, float]) -> Pieces:
    return Pieces([*(f"<0x{byte:02X}>" for byte in BYTE_IDS), *scores], scores, BYTE_IDS)


def frequencies(
    sampler: SegmentationSampler, tokens: list[str], ids: list[int]
) -> Counter[tuple[str, ...]]:
    """How often which pieces come out, over many seeds."""
    drawn = sampler.draw(IdRows.of([ids] * DRAWS), np.arange(DRAWS, dtype=np.uint64))
    rows = np.split(drawn.ids, np.cumsum(drawn.lengths)[:-1])
    return Counter(tuple(tokens[id_] for id_ in row) for row in rows)


def assert_drawn_from(found: Counter[tuple[str, ...]], expected: dict[tuple[str, ...], float]):
    """Six standard deviations: once in 10^9."""
    assert sum(expected.values()) == pytest.approx(1.0)
    assert found.keys() <= expected.keys()
    for cut, probability in expected.items():
        spread = math.sqrt(DRAWS * probability * (1 - probability))
        assert abs(found[cut] - DRAWS * probability) <= 6 * spread + 1, cut


def test_a_lattice_of_three_pieces_by_hand():
    """p(a) = 1/2, p(b) = 1/4, p(ab) = 1/4: P(a b) = 1/8 and P(ab) = 1/4.

    With α = 1 that is 1 to 2. With α = 1/2 it is √(1/8) to √(1/4), 1 to √2.
    """
    pieces = pieces_of({"a": math.log(1 / 2), "b": math.log(1 / 4), "ab": math.log(1 / 4)})
    ids = [pieces.ids["ab"]]
    for alpha, odds in ((1.0, 2.0), (0.5, math.sqrt(2.0))):
        found = frequencies(UnigramSampler(pieces, alpha), pieces.tokens, ids)
        assert_drawn_from(found, {("a", "b"): 1 / (1 + odds), ("ab",): odds / (1 + odds)})


def test_a_lattice_with_an_unknown_character_and_several_words_by_enumeration():
    """Every segmentation of ▁aba▁bżb; ż is no piece: it stands alone, in bytes, at 10 below -5."""
    scores = {"▁": -3.0, "a": -2.0, "b": -1.5, "ab": -2.5, "ba": -4.0, "▁a": -2.2, "▁ab": -5.0}
    pieces = pieces_of(scores)
    words = ["▁aba", "▁bżb"]
    alpha = 0.4
    expected = {}
    for cuts in itertools.product(*(itertools.product([0, 1], repeat=3) for _ in words)):
        found, score = [], 0.0
        for word, cut in zip(words, cuts, strict=True):
            text = "".join(
                char + ("|" if place < 3 and cut[place] else "") for place, char in enumerate(word)
            )
            found += text.split("|")
        score = sum(-15.0 if piece == "ż" else scores.get(piece, -math.inf) for piece in found)
        spelled = [each for p in found for each in (["<0xC5>", "<0xBC>"] if p == "ż" else [p])]
        if score > -math.inf:
            expected[tuple(spelled)] = math.exp(alpha * score)
    assert len(expected) == 6  # of ▁aba; ▁bżb has one
    total = sum(expected.values())
    spelling = [*pieces.spelled("▁"), *pieces.spelled("a"), *pieces.spelled("ba")]
    spelling += [id_ for char in "▁bżb" for id_ in pieces.spelled(char)]
    assert_drawn_from(
        frequencies(UnigramSampler(pieces, alpha), pieces.tokens, spelling),
        {cut: share / total for cut, share in expected.items()},
    )


def test_dropped_merges_by_hand():
    """Pieces ab (first), bc, abc and p = 0.3, for the word abc.

    "a b" is considered first. It is made with 0.7; then "ab c" is made with 0.7. It is dropped
    with 0.3; then "b c" is made with 0.7, and then "a bc" with 0.7.
    """
    pieces = pieces_of({"ab": 0.0, "bc": -1.0, "abc": -2.0, "a": -3.0, "b": -4.0, "c": -5.0})
    expected = {
        ("abc",): 0.7 * 0.7 + 0.3 * 0.7 * 0.7,
        ("ab", "c"): 0.7 * 0.3,
        ("a", "bc"): 0.3 * 0.7 * 0.3,
        ("a", "b", "c"): 0.3 * 0.3,
    }
    sampler = DroppedMergesSampler(pieces, 0.3)
    assert_drawn_from(frequencies(sampler, pieces.tokens, [pieces.ids["abc"]]), expected)


def test_of_equal_merges_the_first_is_made():
    """In aaa the merge of a and a is possible at two positions: the left one comes first."""
    pieces = pieces_of({"aa": 0.0, "a": -1.0})
    sampler = DroppedMergesSampler(pieces, 0.2)
    expected = {("aa", "a"): 0.8, ("a", "aa"): 0.2 * 0.8, ("a", "a", "a"): 0.2 * 0.2}
    ids = [pieces.ids["a"]] * 3
    assert_drawn_from(frequencies(sampler, pieces.tokens, ids), expected)


def test_all_merges_dropped_leaves_characters():
    pieces = pieces_of({"ab": 0.0, "a": -1.0, "b": -2.0})
    found = frequencies(DroppedMergesSampler(pieces, 1.0), pieces.tokens, [pieces.ids["ab"]])
    assert found == {("a", "b"): DRAWS}


def without_chance(tokenizer: SentencePieceTokenizer) -> SegmentationSampler:
    """Draws what is likeliest, or drops nothing."""
    if tokenizer.kind == "unigram":
        return UnigramSampler(tokenizer.matching, 1e6)
    return DroppedMergesSampler(tokenizer.matching, 0.0)


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def tokenizer(request: pytest.FixtureRequest) -> SentencePieceTokenizer:
    return train_sentencepiece(TEXTS, TokenizerConfig(kind=request.param, vocabulary_size=500))


def test_without_chance_it_is_sentencepiece_s_own_segmentation(tokenizer: SentencePieceTokenizer):
    texts = [*TEXTS, "", " ", "  a\u2581b  ", "le chat 🙂 dort" * 40, "\0\t</s>"]
    rows = IdRows.of(tokenizer.encode_batch(texts))
    drawn = without_chance(tokenizer).draw(rows, np.arange(len(rows), dtype=np.uint64))
    assert drawn.lengths.tolist() == rows.lengths.tolist()
    assert drawn.ids.tolist() == rows.ids.tolist()


@pytest.mark.parametrize("name", ["multi30k/train.de", "tatoeba_de_en/train.en"])
def test_on_real_text_too(name: str, tokenizer: SentencePieceTokenizer):
    """With PELLUCID_CORPORA, the folder of the corpora."""
    folder = os.environ.get("PELLUCID_CORPORA")
    if folder is None:
        pytest.skip("PELLUCID_CORPORA names no folder of corpora")
    lines = (Path(folder) / name).read_text(encoding="utf-8").split("\n")[:20_000]
    config = TokenizerConfig(kind=tokenizer.kind, vocabulary_size=4000)
    trained = train_sentencepiece(lines, config)
    rows = IdRows.of(trained.encode_batch(lines))
    drawn = without_chance(trained).draw(rows, np.arange(len(rows), dtype=np.uint64))
    assert drawn.ids.tolist() == rows.ids.tolist()


@pytest.mark.parametrize("alpha", [0.1, 0.5])
def test_it_draws_as_often_as_sentencepiece(alpha: float, tokenizer: SentencePieceTokenizer):
    """Both samples vary: six standard deviations of a difference."""
    text = "les étudiantes 🙂"
    ids = tokenizer.encode(text)
    ours = frequencies(tokenizer.sampler(alpha), tokenizer.tokens(range(500)), ids)
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model)
    theirs = Counter(
        tuple(processor.sample_encode_as_pieces(text, -1, alpha)) for _ in range(DRAWS)
    )
    assert len(ours) >= 10
    for cut in ours | theirs:
        share = (ours[cut] + theirs[cut]) / (2 * DRAWS)
        spread = math.sqrt(2 * DRAWS * share * (1 - share))
        assert abs(ours[cut] - theirs[cut]) <= 6 * spread + 1, cut


def test_what_is_kept_is_bounded_and_changes_nothing(tokenizer: SentencePieceTokenizer):
    rows = IdRows.of(tokenizer.encode_batch(TEXTS[:200]))
    seeds = np.arange(len(rows), dtype=np.uint64)
    expected = tokenizer.resegment(rows, 0.2, seeds)
    sampler: SegmentationSampler
    if tokenizer.kind == "unigram":
        sampler = UnigramSampler(tokenizer.matching, 0.2, most_kept=50)
    else:
        sampler = DroppedMergesSampler(tokenizer.matching, 0.2, most_kept=50, cells_at_once=100)
    for _ in range(2):
        for index in range(0, len(rows), 10):
            some = np.arange(index, index + 10)
            few = IdRows.in_order(*rows.gather(some))
            drawn = sampler.draw(few, seeds[some])
            assert drawn.ids.tolist() == expected.gather(some)[0].tolist()
    assert sampler.kept_count < 1000
