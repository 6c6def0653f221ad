"""``recombined``: new sentences whose every stretch of three words is in the text somewhere."""

import itertools

import pytest

from pellucid.text.recombination import Unit, recombined

TEXT = [
    "A man in a blue shirt is standing on a ladder .",
    "Two dogs are running on a beach in the sun .",
    "A woman in a red dress is standing in the rain .",
    "Two men are running in the sun on a hill .",
    "A girl is standing on a hill .",
]


def stretches(line: str, length: int) -> set[tuple[str, ...]]:
    words = line.split()
    return {tuple(words[at : at + length]) for at in range(len(words) - length + 1)}


@pytest.mark.parametrize("overlap", [1, 2, 3])
def test_every_stretch_is_in_the_text_and_no_line_is_old_or_comes_twice(overlap: int):
    made = list(recombined(TEXT, 1, overlap=overlap))
    assert len(made) >= 3
    assert len(set(made)) == len(made)
    assert not set(made) & set(TEXT)
    known = set().union(*(stretches(line, overlap + 1) for line in TEXT))
    for line in made:
        assert stretches(line, overlap + 1) <= known
        assert len(stretches(line, overlap)) == len(line.split()) - overlap + 1  # none comes twice
        assert len(line.split()) <= max(len(each.split()) for each in TEXT)


def test_by_hand():
    """``b c`` has a word on either side in both lines, so they may change places there."""
    made = set(recombined(["a b c d", "x b c y"], 0))
    assert made == {"a b c y", "x b c d"}


def test_lines_too_short_to_take_part_do_not_hide_the_others():
    """Of 10,000 draws one would be of a line that has something to give."""
    short = [f"{number} x" for number in range(20_000)]
    assert set(recombined([*short, "a b c d", "x b c y"], 0)) == {"a b c y", "x b c d"}


@pytest.mark.parametrize("different", [50, 20_000])
def test_of_a_long_line_alone_no_try_copies_all(different: int):
    """10,000 tries that do take a minute. From any word it may go over to its last round."""
    words = [str(number % different) for number in range(20_000)]
    made = list(recombined([" ".join(words)], 0))
    assert made == ([] if different == 20_000 else [" ".join(words[:50])])


def test_no_break_spaces_hold_a_word_together():
    made = set(recombined(["a 10\u00a0000 c\u202f!", "x 10\u00a0000 y z"], 0, overlap=1))
    assert made == {"a 10\u00a0000 y z", "x 10\u00a0000 c\u202f!"}


@pytest.mark.parametrize("text", [[], [""], ["a b c d"], ["a b", "a c"], ["a b c d", "e f g h"]])
def test_text_that_gives_nothing_ends(text: list[str]):
    assert list(recombined(text, 0)) == []


def test_a_seed_draws_the_same_again_and_another_others():
    first, again, other = (list(itertools.islice(recombined(TEXT, s), 5)) for s in (1, 1, 2))
    assert first == again != other


@pytest.mark.parametrize(("unit", "overlap"), [("character", 2), ("character", 3)])
def test_words_of_characters(unit: Unit, overlap: int):
    words = ["standing", "handing", "landed", "sander", "wandering"]
    made = list(recombined(words, 1, unit=unit, overlap=overlap))
    known = {word[at : at + overlap + 1] for word in words for at in range(len(word) - overlap)}
    assert made
    assert not set(made) & set(words)
    for word in made:
        assert {word[at : at + overlap + 1] for at in range(len(word) - overlap)} <= known
