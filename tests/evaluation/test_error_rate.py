"""Edit distances by hand, against a referee, and with several right answers."""

import functools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pellucid.evaluation.metrics import References, corpus_score, edit_distance


def rate(said: list[str], right: References, *, pronunciations: bool = False) -> float | None:
    found = corpus_score("wer", said, right, pronunciations=pronunciations)
    return None if found is None else found.score


words = st.lists(st.sampled_from("abc"), max_size=6)


@pytest.mark.parametrize(
    ("said", "right", "edits"),
    [("", "", 0), ("abc", "", 3), ("", "ab", 2), ("kitten", "sitting", 3), ("ab", "ba", 2)],
)
def test_edits_by_hand(said, right, edits):
    assert edit_distance(said, right) == edits


@given(words, words)
def test_the_table_agrees_with_the_definition(said, right):
    """The recursion as it is written down, with no table."""

    @functools.cache
    def distance(i: int, j: int) -> int:
        if i == 0 or j == 0:
            return i + j
        replaced = distance(i - 1, j - 1) + (said[i - 1] != right[j - 1])
        return min(distance(i - 1, j) + 1, distance(i, j - 1) + 1, replaced)

    assert edit_distance(said, right) == distance(len(said), len(right))


@given(words, words, words)
def test_edits_are_a_distance(one, other, third):
    assert edit_distance(one, other) == edit_distance(other, one)
    assert (edit_distance(one, other) == 0) == (one == other)
    assert edit_distance(one, third) <= edit_distance(one, other) + edit_distance(other, third)


def test_word_error_rate_by_hand():
    """One replaced of three words, one missing of two: 2 edits, 5 words."""
    assert rate(["a x c", "d"], [["a b c"], ["d e"]]) == pytest.approx(40)


def test_the_nearest_alternative_counts():
    """'a b' is right; 'd' lacks one of two words, not three of four: 1 edit, 4 words."""
    references = [["x y", "a b"], ["d e f g", "d e"]]
    assert rate(["a b", "d"], references) == pytest.approx(25)


@pytest.mark.parametrize("references", [[["a", "a b c"]], [["a b c", "a"]]])
def test_of_alternatives_equally_near_the_longest_counts(references):
    """'a b' is one edit from either: one of three, in whatever order they stand."""
    assert rate(["a b"], references) == pytest.approx(100 / 3)


def test_more_words_than_wanted_may_pass_a_hundred():
    assert rate(["a b c"], [["x"]]) == pytest.approx(300)


def test_a_pronunciation_is_right_as_one_of_its_references_and_not_in_part():
    said = ["AE B D", "AH B", "K  AE T ", "K AE"]
    references = [["AH B D", "AE B D"], ["AH B D"], ["K AE T"], ["K AE T"]]
    assert rate(said, references, pronunciations=True) == 50.0
    per = corpus_score("per", said, references, pronunciations=True)
    assert per is not None
    assert per.score == pytest.approx(100 * 2 / 12)


def test_references_without_a_word_have_no_rate():
    assert rate(["a"], [["", " "]]) is None
