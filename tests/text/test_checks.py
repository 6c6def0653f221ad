"""Lengths tell where two files stop belonging together."""

import numpy as np
import pytest

from pellucid.text.check.lengths import first_suspicious_line, slipped_stretch


def make_lengths(count, seed, likeness=0.8):
    """Log-normal sentence lengths whose logarithms correlate as those of two languages do."""
    random = np.random.default_rng(seed)
    source = random.normal(size=count)
    target = likeness * source + np.sqrt(1 - likeness**2) * random.normal(size=count)
    return np.exp(4 + 0.4 * source).astype(int), np.exp(4.2 + 0.4 * target).astype(int)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("lost_count", [1, 3])
def test_where_lines_were_lost_is_found_within_fifty_lines(seed, side, lost_count):
    lengths = list(make_lengths(3000, seed))
    lost = 50 + 290 * seed
    lengths[side] = np.delete(lengths[side], range(lost, lost + lost_count))
    assert abs(first_suspicious_line(*lengths) - (lost + 1)) <= 50


def test_where_lengths_are_equal_line_by_line_the_place_is_exact():
    target = np.array([3, 30, 5, 60, 8, 90, 4, 70])
    assert first_suspicious_line(np.delete(target, 4), target) == 5
    assert first_suspicious_line(target, np.delete(target, 0)) == 1
    assert first_suspicious_line(target, target[:-1]) == 8
    assert first_suspicious_line(target, target) == 9  # beyond the end: nothing is suspicious


def test_a_side_without_lines_parts_at_once():
    assert first_suspicious_line(np.array([1, 2]), np.array([], dtype=int)) == 1


@pytest.mark.parametrize("seed", range(20))
def test_files_that_belong_together_raise_no_alarm(seed):
    assert slipped_stretch(*make_lengths(20_000, seed)) is None


@pytest.mark.parametrize("seed", range(20))
def test_a_file_shifted_by_one_line_is_always_found(seed):
    source, target = make_lengths(20_000, seed)
    found = slipped_stretch(source[:-1], target[1:])
    assert found is not None
    assert found[0] < 50
    assert found[1] > 19_950


@pytest.mark.parametrize("seed", range(20))
def test_a_stretch_between_two_lost_lines_is_found(seed):
    source, target = make_lengths(20_000, seed)
    first, last = 500 + 700 * seed, 700 + 700 * seed
    found = slipped_stretch(np.delete(source, first), np.delete(target, last))
    assert found is not None
    assert abs(found[0] - first) <= 50
    assert abs(found[1] - last) <= 50


@pytest.mark.parametrize("likeness", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("seed", range(5))
def test_lengths_that_say_little_raise_no_alarm(likeness, seed):
    assert slipped_stretch(*make_lengths(20_000, seed, likeness)) is None


@pytest.mark.parametrize("count", [0, 1, 2, 10])
def test_few_lines_raise_no_alarm(count):
    source, target = make_lengths(count, seed=0)
    assert slipped_stretch(source, target) is None
    assert slipped_stretch(np.full(count, 5), np.full(count, 5)) is None


def test_a_slip_beyond_the_first_million_lines_is_found_too():
    source, target = make_lengths(1_200_000, seed=3)
    found = slipped_stretch(np.delete(source, 1_100_000), np.delete(target, 1_101_000))
    assert found is not None
    assert abs(found[0] - 1_100_000) <= 50
    assert abs(found[1] - 1_101_000) <= 50
