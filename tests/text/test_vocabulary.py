"""The look-up table is a bijection, and text cannot name a special id."""

import pytest

from pellucid.core.errors import DataError
from pellucid.core.special import BOS_ID, EOS_ID, PAD_ID, SPECIAL_COUNT, UNK_ID
from pellucid.text.tokenizers.vocabulary import SPECIAL_TOKENS, Vocabulary


@pytest.mark.by_hand
def test_it_holds_each_token_once_however_often_it_was_seen():
    """EQ: 02.  Of "a b a" the vocabulary is {a, b}."""
    once = Vocabulary.build([["a", "b"]], size=100)
    twice = Vocabulary.build([["a", "b", "a"]], size=100)
    assert once == twice
    assert twice.tokens == (*SPECIAL_TOKENS, "a", "b")
    assert twice.size == 2 + SPECIAL_COUNT


@pytest.mark.by_hand
def test_tokens_and_ids_are_a_bijection():
    """EQ: 03."""
    vocabulary = Vocabulary.of("cab")
    ids = vocabulary.encode("cab")
    assert ids == [4, 5, 6]
    assert vocabulary.decode(ids) == list("cab")
    assert "a" in vocabulary
    assert "d" not in vocabulary


@pytest.mark.by_hand
def test_the_rare_become_unknown():
    """EQ: 07.  Of a a a b b c the two most frequent keep their ids."""
    vocabulary = Vocabulary.build([list("abacab")], size=SPECIAL_COUNT + 2)
    assert vocabulary.encode("abc") == [4, 5, UNK_ID]
    assert vocabulary.decode([4, 5, UNK_ID]) == ["a", "b", "[UNK]"]


def test_of_equally_frequent_tokens_the_alphabetically_first_stay():
    assert Vocabulary.build([list("cab")], size=SPECIAL_COUNT + 2).tokens[SPECIAL_COUNT:] == (
        "a",
        "b",
    )


def test_the_special_ids_are_four_and_distinct():
    """EQ: 12."""
    assert len({PAD_ID, UNK_ID, BOS_ID, EOS_ID}) == SPECIAL_COUNT == len(set(SPECIAL_TOKENS))
    assert Vocabulary.of([]).decode([PAD_ID, UNK_ID, BOS_ID, EOS_ID]) == list(SPECIAL_TOKENS)


@pytest.mark.parametrize("name", SPECIAL_TOKENS)
def test_a_word_that_looks_special_is_an_ordinary_word(name):
    """EQ: 12."""
    assert Vocabulary.of([]).encode([name]) == [UNK_ID]
    assert Vocabulary.of([name]).encode([name]) == [SPECIAL_COUNT]


def test_a_token_that_stands_twice_is_refused():
    with pytest.raises(DataError) as caught:
        Vocabulary.of(["a", "b", "a"])
    assert str(caught.value) == "a token must stand once in a vocabulary, got 'a' 2 times"


def test_the_special_tokens_must_be_in_front():
    with pytest.raises(DataError) as caught:
        Vocabulary(("a", "b"))
    assert str(caught.value) == (
        "a vocabulary must begin with [PAD], [UNK], [BOS], [EOS], got 'a', 'b'"
    )


@pytest.mark.parametrize("id_", [-1, 5])
def test_an_id_outside_is_refused(id_):
    with pytest.raises(DataError) as caught:
        Vocabulary.of("a").decode([id_])
    assert str(caught.value) == f"an id must be from 0 to 4, got {id_}"
