"""Means of parameters: over snapshots, moving, restored, and taken back after use."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from pellucid.training.averaging import Average
from pellucid.training.config import TrainingConfig


def average(parameter: Tensor, **settings: object) -> Average:
    return Average(TrainingConfig.parse({"max_steps": 1, **settings}), {"w": parameter})


def value_inside(average: Average, parameter: Tensor) -> float:
    with average.applied():
        return parameter.item()


def test_the_mean_spans_the_last_snapshots_and_the_parameters_come_back():
    w = torch.tensor(0.0)
    mean = average(w, average_last=3)
    for value, expected in [(1.0, 1.0), (2.0, 1.5), (6.0, 3.0), (7.0, 5.0)]:
        w.fill_(value)
        mean.before_validation()
        assert value_inside(mean, w) == expected
        assert w.item() == value


def test_the_present_may_count_as_a_snapshot_that_is_not_remembered():
    w = torch.tensor(0.0)
    mean = average(w, average_last=2)
    for value in (1.0, 3.0):
        w.fill_(value)
        mean.before_validation()
    w.fill_(8.0)
    with mean.applied(with_present=True):
        assert w.item() == 5.5
    assert w.item() == 8.0
    assert value_inside(mean, w) == 2.0
    moving = average(w, average_decay=0.5)
    moving.after_update()
    w.fill_(2.0)
    with moving.applied(with_present=True):
        assert w.item() == 8.0


def test_the_parameters_come_back_after_an_error_too():
    w = torch.tensor(1.0)
    mean = average(w, average_last=2)
    mean.before_validation()
    w.fill_(3.0)
    mean.before_validation()

    def broken() -> None:
        with mean.applied():
            assert w.item() == 2.0
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        broken()
    assert w.item() == 3.0


def test_without_averages_nothing_is_kept_and_nothing_changes():
    w = torch.tensor(1.0)
    mean = average(w)
    mean.after_update()
    mean.before_validation()
    assert value_inside(mean, w) == 1.0
    assert mean.state().keys() == {"update_count"}


def test_a_moving_average_starts_at_the_first_update_and_forgets_fast_while_young():
    """With decay 0.9 the second update weighs 1 - 3/12, the third 1 - 4/13."""
    w = torch.tensor(0.0)
    mean = average(w, average_decay=0.9)
    expected = None
    for count, value in enumerate([4.0, 8.0, 1.0], start=1):
        w.fill_(value)
        mean.after_update()
        decay = min(0.9, (1 + count) / (10 + count))
        expected = value if expected is None else decay * expected + (1 - decay) * value
        assert value_inside(mean, w) == pytest.approx(expected)


def test_an_old_moving_average_forgets_with_the_decay_that_was_asked_for():
    w = torch.tensor(0.0)
    mean = average(w, average_decay=0.5)
    mean.after_update()
    for _ in range(30):
        mean.after_update()
    w.fill_(1.0)
    mean.after_update()
    assert value_inside(mean, w) == pytest.approx(0.5)


def test_a_restored_average_moves_each_parameter_towards_itself():
    """A checkpoint's file has the names in another order than the model."""
    parameters = {"z": torch.tensor(1.0), "a": torch.tensor(9.0)}
    config = TrainingConfig(max_steps=1, average_decay=0.5)
    mean, other = (Average(config, parameters) for _ in range(2))
    mean.after_update()
    saved = sorted(mean.state().items())
    other.restore({name: each.clone() for name, each in saved}, Path("checkpoint"))
    other.after_update()
    with other.applied():
        assert {name: each.item() for name, each in parameters.items()} == {"z": 1.0, "a": 9.0}


@pytest.mark.parametrize("settings", [{"average_last": 3}, {"average_decay": 0.9}])
def test_a_restored_average_goes_on_as_the_one_that_was_saved(settings: dict[str, object]):
    w = torch.tensor(0.0)
    mean = average(w, **settings)
    other_w = torch.tensor(0.0)
    other = average(other_w, **settings)
    for value in (1.0, 5.0, 2.0, 9.0):
        w.fill_(value)
        mean.after_update()
        mean.before_validation()
    state = {name: tensor.clone() for name, tensor in mean.state().items()}
    other.restore(state, Path("checkpoint"))
    for value in (3.0, 8.0):
        for each, slot in ((mean, w), (other, other_w)):
            slot.fill_(value)
            each.after_update()
            each.before_validation()
        assert value_inside(other, other_w) == value_inside(mean, w)
