"""Noise on words: how much, how far, and the same each time it is asked."""

import pytest

from pellucid.training.synthesis import add_text_noise

WORDS = [f"w{number}" for number in range(40)]


def test_a_tenth_of_the_words_goes_and_a_tenth_of_the_rest_is_blanked():
    """20,000 words; the bounds are five standard deviations away."""
    made = [add_text_noise(" ".join(WORDS), 0, number, "_").split() for number in range(500)]
    count = 500 * len(WORDS)
    assert sum(map(len, made)) / count == pytest.approx(0.9, abs=0.011)
    blanks = sum(words.count("_") for words in made)
    assert blanks / sum(map(len, made)) == pytest.approx(0.1, abs=0.012)


def test_no_word_moves_more_than_three_places_and_some_move_three():
    farthest = 0
    for number in range(300):
        left = add_text_noise(" ".join(WORDS), 1, number, "_").split()
        named = [word for word in left if word != "_"]
        in_order = sorted(named, key=WORDS.index)
        if "_" in left:
            continue  # blanks hide where the others stood
        farthest = max(farthest, *(abs(named.index(w) - in_order.index(w)) for w in named))
    for number in range(300):
        short = ["a", "b", "c", "d", "e", "f"]
        left = add_text_noise(" ".join(short), 1, number, "_").split()
        if "_" in left:
            continue
        places = [abs(left.index(w) - sorted(left).index(w)) for w in left]
        farthest = max(farthest, *places)
        assert farthest <= 3
    assert farthest == 3


def test_it_is_the_same_for_the_same_seed_and_line_and_no_other():
    text = " ".join(WORDS)
    made = {add_text_noise(text, seed, number, "_") for seed in (0, 1) for number in (0, 1)}
    assert len(made) == 4
    assert add_text_noise(text, 0, 1, "_") in made
    assert add_text_noise(text, 0, 1, "_") == add_text_noise(text, 0, 1, "_")


def test_something_is_always_left_and_nothing_stays_nothing():
    assert all(add_text_noise("one", 0, number, "_") in ("one", "_") for number in range(200))
    assert add_text_noise("", 0, 0, "_") == ""
    assert add_text_noise("  ", 0, 0, "_") == "  "
