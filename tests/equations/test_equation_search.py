import math

import pytest
import torch
from equation_checks import close

from pellucid.equations.penalties import length_penalty, power_length_penalty
from pellucid.equations.search import coverage_penalty, most_likely, sequence_score
from pellucid.equations.softmax import softmax


@pytest.mark.by_hand
def test_length_penalty_by_hand():
    """((5 + 7)/6)^α = 2^α; a length of 1 costs nothing, α = 0 never does."""
    assert length_penalty(7, 0.6) == 2**0.6
    assert length_penalty(1, 0.6) == 1
    assert length_penalty(99, 0) == 1
    close(length_penalty(torch.tensor([1, 7, 13]), 1), [1.0, 2, 3])


@pytest.mark.by_hand
def test_power_length_penalty_by_hand():
    """9^½ = 3; a length of 1 costs nothing, α = 0 never does, α = -1 multiplies by the length."""
    assert power_length_penalty(9, 0.5) == 3
    assert power_length_penalty(1, 0.6) == 1
    assert power_length_penalty(99, 0) == 1
    assert power_length_penalty(4, -1) == 0.25
    close(power_length_penalty(torch.tensor([1, 2, 4]), 2), [1.0, 4, 16])
    close(power_length_penalty(torch.tensor([2, 4]), -1), [0.5, 0.25])


@pytest.mark.by_hand
def test_with_the_exponent_1_a_sentence_s_score_does_not_depend_on_how_often_it_is_repeated():
    """The mean log-probability of a token; GNMT's penalty prefers the longer of the two."""
    log_prob, length = torch.tensor([-2.0, -4.0, -6.0]), torch.tensor([3, 6, 9])
    close(log_prob / power_length_penalty(length, 1), [-2 / 3] * 3)
    gnmt = log_prob / length_penalty(length, 1)
    assert (gnmt.diff() < 0).all()


@pytest.mark.by_hand
def test_the_power_penalty_is_the_steeper_one():
    """Both are 1 at length 1 and grow with it; ((5 + n)/6)^α grows at most as fast as n^α."""
    length = torch.arange(1, 50)
    power, gnmt = (each(length, 0.7) for each in (power_length_penalty, length_penalty))
    assert power[0] == gnmt[0] == 1
    assert (power.diff() > gnmt.diff()).all()


@pytest.mark.by_hand
def test_coverage_by_hand():
    """Word 0 was looked at 1.5 times (counts as 1), word 1 half a time: β log ½."""
    weights = torch.tensor([[0.9, 0.1], [0.6, 0.4]])
    close(coverage_penalty(weights, 0.2), 0.2 * math.log(0.5))
    close(coverage_penalty(weights.expand(3, 2, 2), 1), [math.log(0.5)] * 3)
    assert coverage_penalty(torch.tensor([[1.0, 0]]), 1) == -math.inf


@pytest.mark.by_hand
def test_a_longer_sentence_may_win():
    """EQ-127: -2.0 for 1 word beats -2.5 for 7, until α = 1 halves the latter."""
    log_prob, length = torch.tensor([-2.0, -2.5]), torch.tensor([1, 7])
    close(sequence_score(log_prob, length, 0), log_prob)
    close(sequence_score(log_prob, length, 1), [-2.0, -1.25])
    assert sequence_score(log_prob.float(), length, 0.6).dtype == torch.float32


@pytest.mark.property
def test_the_most_likely_word():
    """EQ-114: argmax of P is argmax of Z; among equals the first."""
    z = torch.randn(2, 3, 7)
    assert most_likely(z).equal(most_likely(softmax(z)))
    assert most_likely(z).shape == (2, 3)
    assert most_likely(torch.tensor([[0.0, 5, 5], [1, 0, 1], [0, 0, 2]])).tolist() == [1, 0, 2]
