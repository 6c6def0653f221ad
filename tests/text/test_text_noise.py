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


def test_letters_of_a_script_without_spaces_are_noised_as_words_are():
    """A line of 40 letters has no spaces, and gets none; the bounds are five deviations away."""
    line = "".join(chr(0x4E00 + number) for number in range(40))
    made = [add_text_noise(line, 0, number, "_") for number in range(500)]
    assert sum(map(len, made)) / (500 * 40) == pytest.approx(0.9, abs=0.011)
    assert "".join(made).count("_") / sum(map(len, made)) == pytest.approx(0.1, abs=0.012)
    assert not any(" " in each for each in made)
    assert any(each.replace("_", "") != "".join(sorted(each.replace("_", ""))) for each in made)


def test_a_thai_letter_keeps_its_marks():
    made = "".join(add_text_noise("ก่ก่ก่ก่ก่ก่", 0, number, "_") for number in range(50))
    assert set(made.replace("ก่", "")) == {"_"}


def test_words_between_letters_of_such_a_script_do_not_become_one():
    made = {add_text_noise("我爱Python和Java", 0, number, "_") for number in range(1000)}
    assert not any("PythonJava" in each or "JavaPython" in each for each in made)
    assert "我爱Python Java" in made
    assert "我爱Python和Java" in made
    assert all("我 爱" not in each for each in made)


def test_words_that_spaces_separate_stay_separated_and_marks_beside_them_too():
    made = {add_text_noise("- a , b", 0, number, "_") for number in range(1000)}
    assert {"- a , b", "a - , b", "- a b"} <= made
    assert all(set(each.split()) <= {"-", "a", ",", "b", "_"} for each in made)
