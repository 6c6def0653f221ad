"""N2: a run that becomes NaN or infinite goes back, more slowly, and nothing is forgotten."""

import json
import logging
from pathlib import Path

import pytest
import tiny_runs
import torch
from failing_objectives import build_broken, cliff, times

from pellucid.core.errors import DivergedError
from pellucid.core.files import verify_folder
from pellucid.core.tensors import load_tensors
from pellucid.model.seq2seq import LossSums
from pellucid.training import validation
from pellucid.training.checkpoint import checkpoints_of, newest_intact
from pellucid.training.config import RunConfig
from pellucid.training.journal import read_journal
from pellucid.training.presets import read_config
from pellucid.training.train import train

HEIGHT = 0.0323
"""At the full rate the largest bias climbs past this height at update 26; from where it was at
update 13, half the rate does not bring it there before the end."""


def config(*settings: str, steps: int = 36) -> RunConfig:
    changed = [
        "phrasebook.pairs=100",
        "model.encoder_layers=1",
        "model.decoder_layers=1",
        "decoding.max_length=5",
        "training.batch_tokens=128",
        "training.accumulate=1",
        "training.schedule=constant",
        "training.warmup_steps=1",
        "training.learning_rate=0.0015",
        "training.validate_every=1000",
        "training.save_every=13",
        f"training.max_steps={steps}",
    ]
    return read_config("demo", [*tiny_runs.SETTINGS, *changed, *settings])


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that fell off the cliff once and went back; to be read."""
    run = tmp_path_factory.mktemp("rollback") / "unbroken"
    train(config(), run, make_objective=build_broken(cliff(HEIGHT)))
    return run


def events(run: Path, name: str) -> list[dict[str, object]]:
    return [event for event in read_journal(run / "journal.jsonl") if event["event"] == name]


def progress_of(run: Path) -> dict[str, object]:
    newest = newest_intact(run)
    assert newest is not None
    state: dict[str, object] = json.loads((newest / "state.json").read_text())
    progress = state["progress"]
    assert isinstance(progress, dict)
    return progress


def contents(run: Path) -> dict[str, object]:
    """Every tensor and number of the last checkpoint but the clock."""
    newest = newest_intact(run)
    assert newest is not None
    state = json.loads((newest / "state.json").read_text())
    del state["progress"]["seconds"]
    files = verify_folder(newest)["files"]
    hashes = {name: each["sha256"] for name, each in files.items() if name != "state.json"}
    return {"state": state, "step": newest.name, **hashes}


def test_ten_updates_in_a_row_that_are_not_finite_lead_back_to_the_last_good_checkpoint(
    unbroken: Path,
):
    skipped = [event["step"] for event in events(unbroken, "skipped")]
    assert skipped == list(range(26, 36))
    assert events(unbroken, "rollback") == [
        {
            "event": "rollback",
            "step": 35,
            "to_step": 13,  # saved after every thirteenth update, but after 26 all was not well
            "reason": "loss or gradient was not finite for 10 updates in a row",
            "rollbacks": 1,
            "rate_factor": 0.5,
        }
    ]
    rates = [event["learning_rate"] for event in events(unbroken, "train")]
    assert rates == [0.0015] * 35 + [0.00075] * (36 - 13)
    progress = progress_of(unbroken)
    assert (progress["step"], progress["skipped_steps"], progress["good_step"]) == (36, 10, 26)
    for tensor in load_tensors(checkpoints_of(unbroken)[0] / "model.safetensors").values():
        assert bool(tensor.isfinite().all())


def test_after_three_returns_the_run_has_diverged_and_the_good_checkpoint_stays(tmp_path: Path):
    problem = build_broken(
        lambda model, batch, sums, call: times(sums, torch.nan if call > 3 else 1)
    )
    with pytest.raises(DivergedError) as caught:
        train(config("training.save_every=3"), tmp_path / "run", make_objective=problem)
    assert str(caught.value) == (
        "loss or gradient was not finite for 10 updates in a row, up to step 13, after 3 returns"
        " to a checkpoint"
    )
    assert caught.value.exit_code == 75
    assert caught.value.hint == (
        "lower training.learning_rate or training.clip_norm, or raise training.warmup_steps,"
        " then --resume"
    )
    returns = events(tmp_path / "run", "rollback")
    assert [(event["step"], event["to_step"]) for event in returns] == [(14, 3), (13, 3), (13, 3)]
    assert [event["rate_factor"] for event in returns] == [0.5, 0.25, 0.125]
    good = tmp_path / "run" / "checkpoints" / "step-00000003"
    assert good in checkpoints_of(tmp_path / "run")
    verify_folder(good)


def test_whoever_resumes_with_another_rate_begins_with_that_rate(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    problem = build_broken(
        lambda model, batch, sums, call: times(sums, torch.nan if call > 3 else 1)
    )
    with pytest.raises(DivergedError):
        train(config(), tmp_path / "run", make_objective=problem)
    with caplog.at_level(logging.WARNING, "pellucid"):
        slower = config("training.learning_rate=0.001")
        result = train(slower, tmp_path / "run", resume=True)
    assert "the halvings of 3 returns to a checkpoint are forgotten" in caplog.text
    assert events(tmp_path / "run", "train")[-1]["learning_rate"] == 0.001
    assert (result.progress.rollbacks, result.progress.rate_factor) == (0, 1.0)


class Killed(BaseException):
    """Ends the run as a kill does: nothing more is written."""


@pytest.mark.parametrize(
    ("event", "occurrence"),
    [
        pytest.param("skipped", 4, marks=pytest.mark.nightly),
        ("skipped", 9),
        ("rollback", 0),
        ("train", 38),
    ],
    ids=["in the streak", "before the return", "right after it", "later"],
)
def test_a_run_killed_around_a_return_ends_as_the_unbroken_one(
    event: str, occurrence: int, unbroken: Path, tmp_path: Path
):
    count = 0

    def kill(told: dict[str, object]) -> None:
        nonlocal count
        count += told["event"] == event
        if count > occurrence:
            raise Killed

    with pytest.raises(Killed):
        train(
            config(),
            tmp_path / "killed",
            listener=kill,
            make_objective=build_broken(cliff(HEIGHT)),
        )
    train(config(), tmp_path / "killed", resume=True, make_objective=build_broken(cliff(HEIGHT)))
    assert contents(tmp_path / "killed") == contents(unbroken)


def test_a_run_stopped_in_the_middle_of_a_streak_goes_back_where_the_unbroken_one_does(
    unbroken: Path, tmp_path: Path
):
    """The checkpoint of the stop is newer, but the run would not have made it."""
    problem = build_broken(cliff(HEIGHT))
    asked = iter(range(100))
    stop = lambda: "asked" if next(asked) == 29 else None  # noqa: E731
    train(config(), tmp_path / "stopped", should_stop=stop, make_objective=problem)
    assert progress_of(tmp_path / "stopped")["skipped_in_a_row"] == 4
    train(config(), tmp_path / "stopped", resume=True, make_objective=problem)
    assert contents(tmp_path / "stopped") == contents(unbroken)


def test_parameters_that_are_no_longer_finite_are_noticed_before_they_are_saved(tmp_path: Path):
    """N4: something outside the gradient spoiled one number in memory."""

    def problem(model: object, batch: object, sums: LossSums, call: int) -> LossSums:
        if call == 7:
            with torch.no_grad():
                model.encoder.layers[0].feed_forward.inner.bias[3] = torch.inf  # type: ignore[attr-defined]
        return sums

    result = train(
        config("training.save_every=3", steps=12),
        tmp_path / "run",
        make_objective=build_broken(problem),
    )
    [back] = events(tmp_path / "run", "rollback")
    name = "encoder.layers.0.feed_forward.inner.bias"
    assert (back["step"], back["to_step"]) == (9, 6)
    assert str(back["reason"]).startswith(name)
    assert str(back["reason"]).endswith("are no longer finite")
    assert result.progress.step == 12
    for folder in checkpoints_of(tmp_path / "run"):
        assert bool(load_tensors(folder / "model.safetensors")[name].isfinite().all())


def test_a_damaged_checkpoint_is_passed_over_on_the_way_back(tmp_path: Path):
    run = tmp_path / "run"

    def problem(model: object, batch: object, sums: LossSums, call: int) -> LossSums:
        if call == 9:
            (run / "checkpoints" / "step-00000009" / "state.json").write_text("{}")
        return times(sums, torch.nan) if 9 <= call < 19 else sums

    result = train(
        config("training.save_every=3", steps=20), run, make_objective=build_broken(problem)
    )
    [back] = events(run, "rollback")
    assert (back["step"], back["to_step"]) == (19, 6)
    assert result.progress.step == 20


def test_while_updates_are_left_out_nothing_is_validated(tmp_path: Path):
    problem = build_broken(
        lambda model, batch, sums, call: times(sums, torch.nan if 8 <= call < 18 else 1)
    )
    settings = config("training.save_every=3", "training.validate_every=5", steps=20)
    train(settings, tmp_path / "run", make_objective=problem)
    [back] = events(tmp_path / "run", "rollback")
    assert (back["step"], back["to_step"]) == (18, 6)
    steps = [event["step"] for event in events(tmp_path / "run", "validation")]
    assert steps == [5, 10, 15, 20]


def test_a_return_takes_back_later_models_and_a_stop_there_leaves_one(tmp_path: Path):
    """The bundle and the frame of update 5 are of a path that was left."""
    problem = build_broken(
        lambda model, batch, sums, call: times(sums, torch.nan if 7 <= call < 17 else 1)
    )
    settings = ["training.save_every=4", "training.validate_every=5", "training.film_every=5"]
    heard: list[str] = []
    result = train(
        config(*settings, steps=20),
        tmp_path / "run",
        make_objective=problem,
        listener=lambda event: heard.append(str(event["event"])),
        should_stop=lambda: "asked" if "rollback" in heard else None,
    )
    [back] = events(tmp_path / "run", "rollback")
    assert (result.reason, back["to_step"]) == ("asked", 4)
    for kind, kept in (("bundles", ["step-00000004"]), ("film", ["step-00000000"])):
        assert sorted(each.name for each in (tmp_path / "run" / kind).iterdir()) == kept


@pytest.mark.parametrize(("spoiled", "to_step"), [(1, 6), (2, 9)], ids=["regular", "the last"])
def test_a_validation_loss_that_is_not_finite_leads_back_to_the_last_good_checkpoint(
    spoiled: int, to_step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """No bundle is left of it, and the run ends where it should."""
    calls = iter(range(100))
    of_model = validation.mean_loss
    monkeypatch.setattr(
        validation,
        "mean_loss",
        lambda *given: torch.nan if next(calls) == spoiled else of_model(*given),
    )
    settings = ["training.save_every=3", "training.validate_every=4", "training.keep_bundles=9"]
    result = train(config(*settings, steps=10), tmp_path / "run")
    [back] = events(tmp_path / "run", "rollback")
    step = [8, 10][spoiled - 1]
    assert (back["step"], back["to_step"], back["rollbacks"]) == (step, to_step, 1)
    assert back["reason"] == f"the validation loss at step {step} is not finite: nan"
    assert (result.reason, result.progress.step) == ("max_steps", 10)
    assert [event["step"] for event in events(tmp_path / "run", "validation")] == [4, 8, 10]
    bundles = sorted(each.name for each in (tmp_path / "run" / "bundles").iterdir())
    assert bundles == ["step-00000004", "step-00000008", "step-00000010"]
