import math

import pytest

from pellucid.core.errors import ConfigError
from pellucid.equations import (
    cosine_learning_rate,
    inverse_root_learning_rate,
    linear_learning_rate,
    transformer_learning_rate,
)


def test_the_papers_peak_by_hand():
    """d = 512, warm-up 4000: peak 1/√(512·4000) = 6.99e-4; a quarter of it at step 1000."""
    peak = 1 / math.sqrt(512 * 4000)
    assert transformer_learning_rate(4000, 512, 4000) == pytest.approx(peak, rel=1e-14)
    assert transformer_learning_rate(1000, 512, 4000) == pytest.approx(peak / 4, rel=1e-14)
    assert transformer_learning_rate(16000, 512, 4000) == pytest.approx(peak / 2, rel=1e-14)
    assert transformer_learning_rate(1, 512, 4000) == pytest.approx(peak / 4000, rel=1e-14)


def test_the_peak_is_where_the_warm_up_ends():
    """It rises up to warmup_steps and falls from there."""
    rates = [transformer_learning_rate(step, 8, 10) for step in range(1, 40)]
    assert rates.index(max(rates)) == 9
    assert rates == sorted(rates[:10]) + sorted(rates[10:], reverse=True)


def test_inverse_root_is_the_papers_with_another_peak():
    """The same shape; without warm-up it is peak/√step."""
    for step in (1, 7, 10, 33):
        expected = transformer_learning_rate(step, 8, 10) * 0.3 * math.sqrt(80)
        assert inverse_root_learning_rate(step, 0.3, 10) == pytest.approx(expected, rel=1e-14)
        assert inverse_root_learning_rate(step, 0.3, 0) == pytest.approx(0.3 / math.sqrt(step))


def test_linear_by_hand():
    """Up to 0.8 in 4 steps, down to 0 at step 12, and 0 for ever after."""
    rates = [linear_learning_rate(step, 0.8, 4, 12) for step in (1, 2, 4, 6, 8, 12, 13, 99)]
    assert rates == pytest.approx([0.2, 0.4, 0.8, 0.6, 0.4, 0, 0, 0])
    assert linear_learning_rate(1, 0.8, 0, 4) == pytest.approx(0.6)
    assert linear_learning_rate(5, 0.8, 5, 5) == 0


def test_cosine_by_hand():
    """Half-way down it is between peak and final; a third of the way at (1 + cos 60°)/2 = 3/4."""
    rates = [cosine_learning_rate(step, 0.9, 4, 10, 0.1) for step in (1, 2, 4, 6, 7, 10, 11)]
    assert rates == pytest.approx([0.225, 0.45, 0.9, 0.1 + 0.8 * 0.75, 0.5, 0.1, 0.1])
    assert cosine_learning_rate(10, 0.9, 4, 10) == 0
    assert cosine_learning_rate(7, 0.9, 4, 10) == pytest.approx(0.45)


@pytest.mark.parametrize(
    "rate",
    [
        lambda step: transformer_learning_rate(step, 8, 10),
        lambda step: inverse_root_learning_rate(step, 0.3, 10),
        lambda step: linear_learning_rate(step, 0.3, 10, 20),
        lambda step: cosine_learning_rate(step, 0.3, 10, 20),
    ],
)
def test_steps_count_from_one(rate):
    """Step 0 would be a division by zero, or a step without movement."""
    assert rate(1) > 0
    with pytest.raises(ConfigError) as caught:
        rate(0)
    assert str(caught.value) == "the step must be at least 1, got 0"
