"""Signatures estimate how similar pairs are, and a pair that is dropped takes no other along."""

import itertools
import random

import numpy as np
import pytest

from pellucid.text.corpus.similar import BANDS, signatures, similar_rows, similarity

WORDS = ["".join(letters) for letters in itertools.product("bdklmnrst", "aeiou", "lmnrst")]


def shingles(pair: tuple[str, str]) -> set[str]:
    """Independently of the module: all five characters in a row, with ends."""
    text = f"{pair[0]}\0{pair[1]}\0"
    return {text[start : start + 5] for start in range(len(text) - 4)}


def exact(one: tuple[str, str], other: tuple[str, str]) -> float:
    first, second = shingles(one), shingles(other)
    return len(first & second) / len(first | second)


def drawn_pair(draw: random.Random, words: int = 12) -> tuple[str, str]:
    return "".join(draw.choices(WORDS, k=words)), "".join(draw.choices(WORDS, k=words))


def changed(draw: random.Random, pair: tuple[str, str], share: float) -> tuple[str, str]:
    sides = []
    for side in pair:
        words = [side[at : at + 3] for at in range(0, len(side), 3)]
        sides.append("".join(draw.choice(WORDS) if draw.random() < share else w for w in words))
    return sides[0], sides[1]


@pytest.mark.property
def test_estimates_are_right_on_average_with_the_deviation_of_64_draws():
    """sqrt(J (1 - J) / 64) is at most 0.0625; the mean of 1,000 is within five of its own."""
    draw = random.Random(1)
    pairs = [drawn_pair(draw) for _ in range(1000)]
    others = [changed(draw, pair, draw.random() * 0.6) for pair in pairs]
    estimated = similarity(signatures(pairs), signatures(others))
    errors = estimated - np.array([exact(*both) for both in zip(pairs, others, strict=True)])
    assert abs(errors.mean()) < 5 * 0.0625 / 1000**0.5
    assert errors.std() < 0.07


def test_signatures_do_not_depend_on_the_other_pairs_of_a_block():
    draw = random.Random(2)
    pairs = [drawn_pair(draw, words) for words in (1, 2, 5, 40, 0, 3)] + [
        ("", ""),
        ("猫" * 9, "🌾"),
    ]
    together = signatures(pairs)
    assert together.shape == (len(pairs), BANDS)
    for row, pair in enumerate(pairs):
        np.testing.assert_array_equal(signatures([pair])[0], together[row])
    assert signatures([]).shape == (0, BANDS)


def test_a_signature_stays_what_it_is_on_every_machine():
    """By hand from the definition, in Python's own integers."""
    mask = (1 << 64) - 1

    def mixed(number: int) -> int:
        number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 & mask
        number = (number ^ number >> 27) * 0x94D049BB133111EB & mask
        return number ^ number >> 31

    letters = [*map(ord, "weiß"), 0x110000, *map(ord, "white"), 0x110000]
    hashes = []
    for start in range(len(letters) - 4):
        number = 0
        for letter in letters[start : start + 5]:
            number = number * 0x9E3779B97F4A7C15 + letter & mask
        hashes.append(mixed(number))
    expected, key = bytearray(), 1
    for _ in range(64):
        key = mixed(key + 0x9E3779B97F4A7C15 & mask)
        values = [each * (key | 1) & mask for each in hashes]
        expected.append(min(value ^ value >> 32 for value in values) & 255)
    assert signatures([("weiß", "white")]).astype("<i8").tobytes() == bytes(expected)


def columns(pairs: list[tuple[str, str]]) -> list[np.ndarray]:
    return list(np.ascontiguousarray(signatures(pairs).T))


def test_later_similar_pairs_are_found_and_others_stay():
    draw = random.Random(3)
    pairs = [drawn_pair(draw, 30) for _ in range(300)]
    copies = {number: changed(draw, pairs[number], 0.02) for number in range(0, 300, 3)}
    everything = pairs + list(copies.values())
    rows = np.arange(len(everything))
    found = set(similar_rows(columns(everything), rows, 0.6).tolist())
    alike = {
        300 + place
        for place, number in enumerate(copies)
        if exact(pairs[number], copies[number]) >= 0.8
    }
    assert len(alike) > 50
    assert found <= set(range(300, 400))
    assert len(alike - found) <= 2  # bands miss one of a hundred that are as similar as 0.9
    # Sorted in many parts, it is the same.
    parts = similar_rows(columns(everything), rows, 0.6, together=16)
    assert set(parts.tolist()) == found


def test_a_dropped_pair_takes_no_other_along_and_rows_left_out_do_not_count():
    """b has 7 of 8 bands in common with a and with c, which have 6 in common."""
    ones = 0x0101010101010101
    a = [ones * number for number in range(1, 9)]
    b = [ones * 20, *a[1:]]
    c = [ones * 20, ones * 21, *a[2:]]
    bands = list(np.array([a, b, c], np.int64).T)
    assert similar_rows(bands, np.arange(3), 0.8).tolist() == [1]
    assert similar_rows(bands, np.array([1, 2]), 0.8).tolist() == [2]
    assert similar_rows(bands, np.array([0, 2]), 0.8).tolist() == []
    assert similar_rows(bands, np.arange(3), 0.7).tolist() == [1, 2]


def test_pairs_without_letters_are_not_alike():
    assert (
        similar_rows(columns([("", ""), ("", ""), ("a", "b"), ("a", "b")]), np.arange(4), 0.5).size
        == 0
    )
