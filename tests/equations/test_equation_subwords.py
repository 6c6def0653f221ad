"""Merges, drops and lattices by hand, on "low lower lowest"."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pellucid.core.errors import ConfigError
from pellucid.equations.subwords import (
    apply_merges,
    dropout_probabilities,
    forward_log_sums,
    learn_merges,
    likeliest_segmentation,
    merge_pair,
    pair_counts,
    segmentation_log_prob,
    segmentations,
    unigram_probabilities,
)

WORDS = {tuple(word): 1 for word in ("low", "lower", "lowest")}
PIECES = {"lower": 0.05, "low": 0.2, "er": 0.1, "e": 0.1, "r": 0.1}
LOGS = {piece: math.log(p) for piece, p in PIECES.items()}


@pytest.mark.by_hand
def test_pairs_are_counted_with_their_words():
    """l o and o w three times, w e twice, and twice as often if a word stands twice."""
    counts = pair_counts(WORDS)
    assert counts == {
        ("l", "o"): 3,
        ("o", "w"): 3,
        ("w", "e"): 2,
        ("e", "r"): 1,
        ("e", "s"): 1,
        ("s", "t"): 1,
    }
    assert pair_counts({**WORDS, ("l", "o", "w"): 2})["o", "w"] == 4


@pytest.mark.by_hand
def test_low_lower_lowest():
    """lo and ow are equally frequent: lo comes first in the alphabet. Then low 3, lowe 2, and the
    rest once each, in the order of the alphabet."""
    merges = learn_merges(WORDS, most=6)
    assert ["".join(pair) for pair in merges] == ["lo", "low", "lowe", "lower", "lowes", "lowest"]
    assert merges[2] == ("low", "e")
    # after six merges every word is one symbol, and nothing is left to count
    assert learn_merges(WORDS, most=99) == merges

    three = {pair: rank for rank, pair in enumerate(merges[:3])}
    assert apply_merges(tuple("slower"), three) == ("s", "lowe", "r")
    assert apply_merges(tuple("newest"), three) == tuple("newest")


@pytest.mark.by_hand
def test_merges_go_from_left_to_right():
    assert merge_pair(("a", "a", "a"), ("a", "a")) == ("aa", "a")
    assert apply_merges(tuple("aaa"), {("a", "a"): 0}) == ("aa", "a")


@pytest.mark.by_hand
def test_dropped_merges_of_low():
    """l o made .9, then lo w made .9. If l o is dropped nothing else is known: o w is no merge."""
    ranks = {("l", "o"): 0, ("lo", "w"): 1}
    found = dropout_probabilities(tuple("low"), ranks, 0.1)
    assert found == pytest.approx({("low",): 0.81, ("lo", "w"): 0.09, ("l", "o", "w"): 0.1})
    assert dropout_probabilities(tuple("low"), ranks, 1.0) == {("l", "o", "w"): 1.0}
    with pytest.raises(ConfigError, match=r"between 0 and 1, got 1\.5"):
        dropout_probabilities(tuple("low"), ranks, 1.5)


@pytest.mark.by_hand
def test_a_dropped_merge_comes_back_with_a_new_neighbor():
    """a b dropped (p), then b c made: a bc is another merge and may be made."""
    ranks = {("a", "b"): 0, ("b", "c"): 1, ("a", "bc"): 2}
    p = 0.3
    found = dropout_probabilities(tuple("abc"), ranks, p)
    assert found == pytest.approx(
        {
            ("ab", "c"): 1 - p,
            ("abc",): p * (1 - p) ** 2,
            ("a", "bc"): p * (1 - p) * p,
            ("a", "b", "c"): p * p,
        }
    )


@pytest.mark.by_hand
def test_the_segmentations_of_lower():
    """.05, .2 · .1 and .2 · .1 · .1 of .072; with α = 0 a third each."""
    found = unigram_probabilities("lower", LOGS)
    expected = {("lower",): 0.05, ("low", "er"): 0.02, ("low", "e", "r"): 0.002}
    assert found == pytest.approx({cut: p / 0.072 for cut, p in expected.items()})
    assert math.exp(forward_log_sums("lower", LOGS)[-1]) == pytest.approx(0.072)
    assert forward_log_sums("lower", LOGS)[1] == -math.inf  # no piece is an l
    assert unigram_probabilities("lower", LOGS, alpha=0) == pytest.approx(
        dict.fromkeys(found, 1 / 3)
    )
    assert likeliest_segmentation("lower", LOGS) == ("lower",)
    for function in (unigram_probabilities, likeliest_segmentation):
        with pytest.raises(ConfigError, match="no pieces make up the word 'lows'"):
            function("lows", LOGS)


words = st.text("ab", min_size=1, max_size=6)
every = ["".join(p) for n in (1, 2, 3) for p in itertools.product("ab", repeat=n)]


@pytest.mark.property
@given(
    words,
    st.lists(st.floats(-5, 0), min_size=len(every), max_size=len(every)),
    st.floats(0, 3),
)
def test_the_forward_sum_is_the_sum_over_all_segmentations(
    word: str, numbers: list[float], alpha: float
):
    logs = dict(zip(every, numbers, strict=True))
    found = unigram_probabilities(word, logs, alpha)
    assert sum(found.values()) == pytest.approx(1.0)
    assert len(found) == len(segmentations(word, logs))
    best = likeliest_segmentation(word, logs)
    most = max(segmentation_log_prob(cut, logs) for cut in found)
    assert segmentation_log_prob(best, logs) == pytest.approx(most)


@pytest.mark.property
@given(words, st.floats(0, 1))
def test_dropout_shares_out_all_probability(word: str, p: float):
    ranks = {pair: rank for rank, pair in enumerate(itertools.product(["a", "b", "ab"], repeat=2))}
    found = dropout_probabilities(tuple(word), ranks, p)
    assert sum(found.values()) == pytest.approx(1.0)
    assert {"".join(cut) for cut in found} == {word}
