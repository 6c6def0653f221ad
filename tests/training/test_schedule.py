"""The learning rate of every schedule, at the places that decide it."""

import math

import pytest

from pellucid.equations.schedules import transformer_learning_rate
from pellucid.training.config import TrainingConfig
from pellucid.training.step import learning_rate, peak_rate


def config(**settings: object) -> TrainingConfig:
    return TrainingConfig.parse({"max_steps": 100, "warmup_steps": 10, **settings})


@pytest.mark.parametrize("step", [1, 9, 10, 11, 40, 1000])
def test_by_default_the_rate_is_the_paper_s_equation_3(step: int):
    expected = transformer_learning_rate(step, d_model=16, warmup_steps=10)
    assert learning_rate(config(), 16, step, progress=0.5) == pytest.approx(float(expected))


def test_the_peak_is_what_is_set_or_what_the_formula_gives_there():
    assert peak_rate(config(), d_model=16) == (16 * 10) ** -0.5
    assert peak_rate(config(learning_rate=0.5), d_model=16) == 0.5


@pytest.mark.parametrize("step", [1, 9, 10, 11, 40, 1000])
def test_paper_is_equation_3_to_the_last_bit(step: int):
    expected = transformer_learning_rate(step, d_model=16, warmup_steps=10)
    assert learning_rate(config(schedule="paper"), 16, step, progress=0.5) == expected


def test_the_paper_s_peak_by_hand():
    """d_model = 16, warm-up 25: (16 · 25)^(-1/2) = 1/20 at step 25, half of it at step 100."""
    paper = config(schedule="paper", warmup_steps=25)
    assert learning_rate(paper, 16, 25, progress=0.0) == pytest.approx(0.05)
    assert learning_rate(paper, 16, 100, progress=0.0) == pytest.approx(0.025)


@pytest.mark.parametrize(
    "schedule", ["inverse_root", "linear", "cosine", "plateau", "constant", "wsd"]
)
def test_every_schedule_rises_linearly_to_the_peak(schedule: str):
    wanted = config(schedule=schedule, learning_rate=1.0)
    for step in range(1, 11):
        assert learning_rate(wanted, 16, step, progress=0.0) == pytest.approx(step / 10)


@pytest.mark.parametrize(
    ("schedule", "step", "progress", "rate"),
    [
        ("inverse_root", 40, 0.9, 0.5),
        ("linear", 40, 0.25, 0.75),
        ("linear", 40, 1.0, 0.0),
        ("linear", 1, 0.99, 0.01),
        ("cosine", 40, 0.5, 0.5),
        ("cosine", 40, 0.25, 0.5 + 0.5 * math.sqrt(0.5)),
        ("cosine", 40, 1.0, 0.0),
        ("cosine", 40, 1.5, 0.0),
        ("constant", 40, 1.0, 1.0),
        ("wsd", 40, 0.8, 1.0),
        ("wsd", 40, 0.95, 0.25),
        ("wsd", 40, 1.1, 0.0),
    ],
)
def test_every_schedule_falls_as_its_name_says(
    schedule: str, step: int, progress: float, rate: float
):
    wanted = config(schedule=schedule, learning_rate=1.0)
    assert learning_rate(wanted, 16, step, progress) == pytest.approx(rate, abs=1e-15)


def test_the_share_in_which_the_rate_falls_is_the_one_that_is_set():
    wanted = config(schedule="wsd", learning_rate=1.0, decay_share=0.5)
    found = [learning_rate(wanted, 16, 40, progress) for progress in (0.5, 0.75, 0.875)]
    assert found == [1.0, 0.5, 0.25]


@pytest.mark.parametrize(
    ("step", "reductions", "rate"), [(40, 0, 1.0), (40, 1, 0.25), (40, 3, 1 / 64), (5, 1, 0.125)]
)
def test_a_plateau_multiplies_the_rate_at_each_reduction(step: int, reductions: int, rate: float):
    wanted = config(schedule="plateau", learning_rate=1.0, plateau_factor=0.25)
    assert learning_rate(wanted, 16, step, 0.9, reductions) == rate


def test_no_rate_is_ever_below_zero():
    assert learning_rate(config(schedule="linear"), 16, 50, progress=1.2) == 0.0
