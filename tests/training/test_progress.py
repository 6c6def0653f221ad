"""Where a run stands: bests, limits, and the share that is done."""

import json

import pytest

from pellucid.training.config import TrainingConfig
from pellucid.training.progress import Progress


def config(**settings: object) -> TrainingConfig:
    return TrainingConfig.parse({"max_steps": 100, **settings})


def test_a_better_score_is_a_new_best_and_a_worse_or_equal_one_is_not():
    progress = Progress(step=5)
    assert progress.note_score(1.0)
    progress.step = 6
    assert not progress.note_score(1.0)
    assert not progress.note_score(0.5)
    assert (progress.best_score, progress.best_step) == (1.0, 5)
    assert progress.validations_since_best == 2
    progress.step = 7
    assert progress.note_score(1.5)
    assert (progress.best_step, progress.validations_since_best) == (7, 0)
    assert progress.validated_step == 7


def test_a_score_that_is_not_a_number_is_never_the_best():
    progress = Progress()
    assert not progress.note_score(float("nan"))
    assert progress.note_score(-3.0)
    assert not progress.note_score(float("nan"))
    assert progress.best_score == -3.0


@pytest.mark.parametrize(
    ("progress", "settings", "epoch", "reason"),
    [
        (Progress(step=99), {}, 0, None),
        (Progress(step=100), {}, 0, "max_steps"),
        (Progress(), {"max_epochs": 2}, 1, None),
        (Progress(), {"max_epochs": 2}, 2, "max_epochs"),
        (Progress(seconds=29.0), {"max_minutes": 0.5}, 0, None),
        (Progress(seconds=30.0), {"max_minutes": 0.5}, 0, "max_minutes"),
        (Progress(validations_since_best=2), {"patience": 3}, 0, None),
        (Progress(validations_since_best=3), {"patience": 3}, 0, "patience"),
    ],
)
def test_a_run_ends_at_the_limit_that_is_reached(
    progress: Progress, settings: dict[str, object], epoch: int, reason: str | None
):
    assert progress.reason_to_stop(config(**settings), epoch) == reason


def test_the_share_that_is_done_goes_by_the_nearer_limit():
    progress = Progress(step=25, seconds=30.0)
    assert progress.share_done(config()) == 0.25
    assert progress.share_done(config(max_minutes=1)) == 0.5
    assert progress.share_done(config(max_steps=20)) == 1.0
    assert progress.share_done(TrainingConfig(max_epochs=1)) == 0.0


def test_a_state_comes_back_from_json():
    progress = Progress(step=3, seconds=1.5, best_score=-2.25, skipped_steps=1)
    assert Progress.from_state(json.loads(json.dumps(progress.state()))) == progress
