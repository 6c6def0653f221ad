"""What is counted of a corpus, on corpora small enough to count by hand."""

import pytest

from pellucid.core.errors import DataError
from pellucid.text.corpus.facts import PairSample, corpus_facts, sample_pairs


def facts_of(pairs: list[tuple[str, str]]):
    return corpus_facts(PairSample(len(pairs), *map(list, zip(*pairs, strict=True))))


def test_lengths_and_different_words_by_hand():
    facts = facts_of([("a cat", "un chat"), ("the cat sat", "le chat")])
    assert (facts.source.words, facts.source.different_words) == (2.5, 4)
    assert facts.source.characters == (4 + 9) / 2
    assert facts.target.different_characters == len(set("unchatle"))


def test_new_words_are_those_of_every_tenth_line_that_no_other_line_has():
    """Of 20 lines, the first and the eleventh count as unseen: 4 words, of which one is new."""
    lines = ["cat dog"] * 20
    lines[10] = "cat bird"
    facts = facts_of([(line, "x") for line in lines])
    assert facts.source.new_words == 1 / 4
    assert facts.target.new_words == 0.0


def test_common_characters_are_the_smaller_share_of_running_characters():
    """Of ``aab`` two thirds are in ``ac``; of ``ac`` one half is in ``aab``."""
    assert facts_of([("aab", "a c")]).common_characters == 1 / 2
    assert facts_of([("абв", "abc")]).common_characters == 0.0


def test_a_source_is_ambiguous_if_it_came_with_two_targets():
    pairs = [("a", "1"), ("a", "1"), ("b", "1"), ("b", "2"), ("b", "2"), ("c", "3")]
    facts = facts_of(pairs)
    assert (facts.repeated_sources, facts.ambiguous_sources) == (2, 1)


def test_spelled_words_and_lines_of_one_word_are_seen():
    facts = facts_of([("c a t s", "cats"), ("d o g ss", "dogs run")])
    assert facts.source.one_character_words == 7 / 8
    assert facts.target.one_word_lines == 1 / 2


@pytest.mark.parametrize(("count", "kept"), [(7, 7), (8, 4), (9, 5), (16, 4), (100, 7)])
def test_a_sample_is_spread_evenly_and_bounded(count: int, kept: int):
    """At most seven of any number: all, every second, every fourth ..., blank pairs left out."""
    sample = sample_pairs([(str(n), "x") for n in range(count)] + [(" ", "x")], most=4)
    numbers = list(map(int, sample.sources))
    assert (sample.total, len(numbers)) == (count, kept)
    assert numbers == list(range(0, count, numbers[1]))
    assert sample.is_whole == (count == kept)


def test_a_corpus_of_blank_lines_is_refused():
    with pytest.raises(DataError, match="must hold a pair with text on both sides, got none"):
        sample_pairs([("", "a"), ("b", " ")])
