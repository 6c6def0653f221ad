import math

import pytest

from pellucid.core.errors import ConfigError
from pellucid.equations.schedules import (
    constant_learning_rate,
    cosine_learning_rate,
    inverse_root_learning_rate,
    linear_learning_rate,
    plateau_learning_rate,
    transformer_learning_rate,
    wsd_learning_rate,
)


@pytest.mark.by_hand
def test_the_papers_peak_by_hand():
    """d = 512, warm-up 4000: peak 1/√(512·4000) = 6.99e-4; a quarter of it at step 1000."""
    peak = 1 / math.sqrt(512 * 4000)
    assert transformer_learning_rate(4000, 512, 4000) == pytest.approx(peak, rel=1e-14)
    assert transformer_learning_rate(1000, 512, 4000) == pytest.approx(peak / 4, rel=1e-14)
    assert transformer_learning_rate(16000, 512, 4000) == pytest.approx(peak / 2, rel=1e-14)
    assert transformer_learning_rate(1, 512, 4000) == pytest.approx(peak / 4000, rel=1e-14)


@pytest.mark.by_hand
def test_the_peak_is_where_the_warm_up_ends():
    """It rises up to warmup_steps and falls from there."""
    rates = [transformer_learning_rate(step, 8, 10) for step in range(1, 40)]
    assert rates.index(max(rates)) == 9
    assert rates == sorted(rates[:10]) + sorted(rates[10:], reverse=True)


@pytest.mark.by_hand
def test_inverse_root_is_the_papers_with_another_peak():
    """The same shape; without warm-up it is peak/√step."""
    for step in (1, 7, 10, 33):
        expected = transformer_learning_rate(step, 8, 10) * 0.3 * math.sqrt(80)
        assert inverse_root_learning_rate(step, 0.3, 10) == pytest.approx(expected, rel=1e-14)
        assert inverse_root_learning_rate(step, 0.3, 0) == pytest.approx(0.3 / math.sqrt(step))


@pytest.mark.by_hand
def test_linear_by_hand():
    """Ten steps of which four warm up: it rises to 0.4, and from step 3 on 1 - progress is less."""
    rates = [linear_learning_rate(step, 0.8, 4, step / 10) for step in (1, 2, 3, 4, 6, 10)]
    assert rates == pytest.approx([0.2, 0.4, 0.56, 0.48, 0.32, 0])
    assert linear_learning_rate(11, 0.8, 4, 1.1) == 0
    assert linear_learning_rate(1, 0.8, 0, 0.25) == pytest.approx(0.6)


@pytest.mark.by_hand
def test_cosine_by_hand():
    """A third of the way down it is (1 + cos 60°)/2 = 3/4, half-way 1/2, from the end on 0."""
    rates = [cosine_learning_rate(9, 0.8, 3, progress) for progress in (0, 1 / 3, 1 / 2, 1, 1.5)]
    assert rates == pytest.approx([0.8, 0.6, 0.4, 0, 0])
    assert cosine_learning_rate(1, 0.9, 3, 1 / 9) == pytest.approx(0.3)


@pytest.mark.by_hand
def test_a_warm_up_of_a_fifth_of_the_run_never_reaches_the_peak():
    """Step 400 of 2,000: 0.8 in a line, (1 + cos 36°)/2 = 0.905 on a cosine."""
    assert linear_learning_rate(400, 1.0, 400, 0.2) == pytest.approx(0.8)
    assert cosine_learning_rate(400, 1.0, 400, 0.2) == pytest.approx(
        (1 + math.cos(math.pi / 5)) / 2
    )


@pytest.mark.by_hand
def test_warm_up_stable_decay_by_hand():
    """Four steps of warm-up, then the peak until a quarter of the run is left, then a line to 0."""
    rates = [wsd_learning_rate(step, 0.8, 4, step / 20, 0.25) for step in (2, 4, 15, 16, 18, 20)]
    assert rates == pytest.approx([0.4, 0.8, 0.8, 0.64, 0.32, 0])
    assert wsd_learning_rate(30, 0.8, 4, 1.5, 0.25) == 0
    with pytest.raises(ConfigError, match="the step must be at least 1, got 0"):
        wsd_learning_rate(0, 0.8, 4, 0.0, 0.25)


@pytest.mark.by_hand
def test_constant_and_plateau_by_hand():
    """Half-way through the warm-up 0.4 of 0.8; then 0.8, halved twice 0.2."""
    rates = [constant_learning_rate(step, 0.8, 4) for step in (2, 4, 99)]
    assert rates == pytest.approx([0.4, 0.8, 0.8])
    rates = [plateau_learning_rate(step, 0.8, 4, 0.5, 2) for step in (2, 4, 99)]
    assert rates == pytest.approx([0.1, 0.2, 0.2])


@pytest.mark.parametrize(
    "rate",
    [
        lambda step: transformer_learning_rate(step, 8, 10),
        lambda step: inverse_root_learning_rate(step, 0.3, 10),
        lambda step: linear_learning_rate(step, 0.3, 10, 0.1),
        lambda step: cosine_learning_rate(step, 0.3, 10, 0.1),
        lambda step: constant_learning_rate(step, 0.3, 10),
        lambda step: plateau_learning_rate(step, 0.3, 10, 0.5, 1),
    ],
)
def test_steps_count_from_one(rate):
    """Step 0 would be a division by zero, or a step without movement."""
    assert rate(1) > 0
    with pytest.raises(ConfigError) as caught:
        rate(0)
    assert str(caught.value) == "the step must be at least 1, got 0"
