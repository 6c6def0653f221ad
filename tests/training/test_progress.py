"""Where a run stands: bests, limits, and the share that is done."""

import json
from typing import get_args

import pytest

from pellucid.evaluation.metrics import VALIDATED, Score
from pellucid.training.config import TrainingConfig
from pellucid.training.run import Progress
from pellucid.training.validation import Validation


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


def test_a_score_between_two_regular_ones_may_be_the_best_but_uses_up_no_patience():
    progress = Progress(step=5)
    progress.note_score(1.0)
    assert not progress.note_score(0.5, is_regular=False)
    assert progress.validations_since_best == 0
    progress.note_score(0.5)
    assert progress.note_score(2.0, is_regular=False)
    assert (progress.best_score, progress.validations_since_best) == (2.0, 1)


def test_a_prolonged_run_decides_as_one_that_did_not_end_between_two_validations():
    """The last validation of the first part was a new best, which the regular ones do not see."""
    prolonged, unbroken = Progress(), Progress()
    for progress in (prolonged, unbroken):
        progress.note_score(30.0)
    prolonged.note_score(33.0, is_regular=False)
    for progress in (prolonged, unbroken):
        progress.note_score(32.0)
        progress.note_score(32.5)
    assert (prolonged.best_score, unbroken.best_score) == (33.0, 32.5)
    names = "best_regular_score", "validations_since_best", "validations_at_this_rate"
    for name in names:
        assert getattr(prolonged, name) == getattr(unbroken, name)
    assert unbroken.validations_since_best == 0


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


def test_the_rate_is_lowered_after_so_many_validations_without_a_new_best():
    """Patience 2: scores 1, 0, 0 lower it once; then the count restarts, and a best resets it."""
    progress = Progress()
    plateau = config(schedule="plateau", plateau_patience=2)
    lowered = []
    for score in (1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 1.0, 0.0, 0.0):
        progress.note_score(score)
        lowered.append(progress.note_plateau(plateau))
    assert lowered == [False, False, True, False, False, False, True, False, True]
    assert progress.rate_reductions == 3
    assert progress.validations_since_best == 4


def test_other_schedules_know_no_plateau():
    progress = Progress(validations_at_this_rate=9)
    assert not progress.note_plateau(config(schedule="constant", plateau_patience=2))
    assert progress.rate_reductions == 0


def validation(loss: float, bleu: float, chrf: float) -> Validation:
    scores = {"bleu": Score(bleu, "b"), "chrf": Score(chrf, "c")}
    return Validation(loss, seconds=0.1, sample=("", "", ""), translations=scores)


@pytest.mark.parametrize(("best_by", "best"), [("loss", 3), ("bleu", 1), ("chrf", 2)])
def test_a_run_is_stopped_by_the_figure_asked_for_whose_direction_is_known(best_by: str, best: int):
    """The lowest loss comes last, the highest BLEU first, the highest chrF in between."""
    progress = Progress()
    wanted = config(best_by=best_by, patience=2)
    figures = [(3.0, 9.0, 1.0), (2.0, 8.0, 6.0), (1.0, 7.0, 5.0), (1.5, 6.0, 4.0), (1.5, 5.0, 3.0)]
    for step, each in enumerate(figures, start=1):
        progress.step = step
        score, *ties = validation(*each).rank(wanted.best_by)
        progress.note_score(score, ties)
        if progress.reason_to_stop(wanted, epoch=0):
            break
    assert (progress.step, progress.best_step) == (best + 2, best)
    assert progress.reason_to_stop(wanted, epoch=0) == "patience"


def test_of_equal_scores_the_better_by_the_other_figures_is_best():
    """Exact matches of 0 throughout while chrF climbs: none of these is a tie."""
    progress = Progress()
    noted = [
        progress.note_score(score, ties)
        for score, *ties in ([0.0, 9.0, -4.0], [0.0, 20.0, -3.0], [0.0, 20.0, -2.9], [0.0, 5.0, -2])
    ]
    assert noted == [True, True, True, False]
    assert progress.validations_since_best == 1
    assert progress.best_ties == [20.0, -2.9]


def test_a_model_with_nothing_wrong_gets_no_better():
    """Of two perfect models that with the lower loss is best, but patience counts."""
    progress = Progress()
    assert progress.note_score(100.0, [100.0, -0.5])
    assert progress.note_score(100.0, [100.0, -0.4])
    assert progress.validations_since_best == 1


def test_scores_of_another_ranking_are_forgotten():
    progress = Progress(step=5)
    assert progress.rank_by("bleu valid:1")
    progress.note_score(60.0)
    progress.note_score(50.0)
    assert progress.rank_by("bleu valid:1")
    assert (progress.best_score, progress.validations_since_best) == (60.0, 1)
    assert not progress.rank_by("bleu valid:2")
    assert progress.validations_since_best == 0
    assert progress.note_score(3.0)
    assert progress.validations_since_best == 0, "nor does patience remember the other text"


def test_the_share_that_is_done_goes_by_the_nearer_limit():
    progress = Progress(step=25, seconds=30.0)
    assert progress.share_done(config()) == 0.25
    assert progress.share_done(config(max_minutes=1)) == 0.5
    assert progress.share_done(config(max_steps=20)) == 1.0
    assert progress.share_done(TrainingConfig(max_epochs=4), epochs=3.0) == 0.75
    assert progress.share_done(config(max_epochs=4), epochs=0.5) == 0.25


def test_a_state_comes_back_from_json():
    progress = Progress(step=3, seconds=1.5, best_score=-2.25, skipped_steps=1)
    assert Progress(**json.loads(json.dumps(progress.state()))) == progress


def test_a_run_may_go_by_each_metric_of_its_validations_and_by_the_loss():
    names = get_args(TrainingConfig.model_fields["best_by"].annotation)
    assert set(names) == {*VALIDATED, "loss"}
