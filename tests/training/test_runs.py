"""The list of runs: found wherever they lie, told as they stand, ordered by score."""

import fcntl
import json
import os
from pathlib import Path

import pytest
from journals import ended, make_run, start, trained, validated, validated_text
from tiny_runs import copy_of_tiny_run

from pellucid.core.errors import InputMissingError
from pellucid.training.runs import by_score, find_runs, summarize


def test_runs_are_found_at_any_depth_but_not_inside_runs(tmp_path: Path):
    outer = make_run(tmp_path / "a" / "b", [start()])
    make_run(outer / "nested", [start()])
    for inside in ("data", "bundles", "checkpoints"):
        make_run(outer / inside / "copy", [start()])
    make_run(tmp_path / "data" / "c", [start()])
    make_run(tmp_path / ".hidden", [start()])
    (tmp_path / "notes").mkdir()
    (tmp_path / "link").symlink_to(outer)
    found = [str(path.relative_to(tmp_path)) for path in find_runs(tmp_path)]
    assert found == ["a/b", "a/b/nested", "data/c"]
    assert find_runs(outer)[0] == outer


def test_a_run_that_has_not_begun_to_learn_is_one(tmp_path: Path):
    run = make_run(tmp_path / "r", [])
    (run / "journal.jsonl").unlink()
    assert find_runs(tmp_path) == [run]
    summary = summarize(run)
    assert (summary.state, summary.step, summary.best, summary.problems) == ("stopped", 0, None, ())


def test_a_folder_that_is_not_there_is_told(tmp_path: Path):
    with pytest.raises(InputMissingError, match=r"there is no folder .*none"):
        find_runs(tmp_path / "none")


def test_a_folder_that_cannot_be_read_is_named_and_the_others_are_listed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    """A path of more than 4,096 bytes, which not even root can read."""
    run = make_run(tmp_path / "r", [start()])
    deep = os.open(tmp_path, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=deep)
        outer, deep = deep, os.open("d" * 250, os.O_RDONLY, dir_fd=deep)
        os.close(outer)
    os.close(deep)

    assert find_runs(tmp_path) == [run]
    [warning] = caplog.messages
    assert warning.startswith(f"cannot read {tmp_path}/ddd")
    assert warning.endswith(": File name too long")


def test_a_real_run_is_told_in_full(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory):
    run = copy_of_tiny_run(tmp_path_factory.getbasetemp(), tmp_path / "r")
    summary = summarize(run)
    assert (summary.state, summary.reason, summary.kind) == ("finished", "max_steps", "transformer")
    assert (summary.step, summary.bundle, summary.problems) == (4, "step-00000004", ())
    assert summary.parameters is not None
    events = [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()]
    seconds = next(event["seconds"] for event in reversed(events) if "seconds" in event)
    assert summary.minutes == round(seconds / 60, 2)  # a fast machine ends it within half of 0.01
    [bleu] = [event["bleu"] for event in events if event["event"] == "validation"]
    assert (summary.figure, summary.best, summary.best_step) == ("bleu", bleu, 4)


SCORED = [
    start(),
    {**validated(1, bleu=10.0, chrf=9.0, loss=3.0), "exact_match": 5.0},
    {**validated(2, 8.0, 12.0, 2.0), "exact_match": 4.0},
]


@pytest.mark.parametrize(
    ("best_by", "best", "step"),
    [("bleu", 10.0, 1), ("chrf", 12.0, 2), ("exact_match", 5.0, 1), ("loss", 2.0, 2)],
)
def test_the_best_is_by_the_figure_of_the_run_in_its_direction(
    best_by: str, best: float, step: int, tmp_path: Path
):
    events = [{**event, "decided_by": best_by} for event in SCORED]
    summary = summarize(make_run(tmp_path / "r", events))
    assert (summary.figure, summary.best, summary.best_step) == (best_by, best, step)


def test_of_equal_scores_the_latest_is_the_best_as_it_is_among_bundles(tmp_path: Path):
    events = [start(), *(validated(step, bleu=30.0) for step in (1, 2)), validated(3, bleu=20.0)]
    summary = summarize(make_run(tmp_path / "r", events))
    assert (summary.best, summary.best_step) == (30.0, 2)


def test_a_model_of_plain_text_goes_by_the_loss_whatever_its_config_says(tmp_path: Path):
    events = [start(), validated_text(1, 3.0), validated_text(2, 2.5)]
    summary = summarize(make_run(tmp_path / "r", events, kind="decoder"))
    assert (summary.kind, summary.figure, summary.best) == ("decoder", "loss", 2.5)


def test_the_order_is_by_score_and_of_losses_the_lowest_first(tmp_path: Path):
    runs = {
        "c": [start(), validated(1, 30.0)],
        "a": [start(), validated(1, 40.0)],
        "none": [start()],
        "low": [start(), validated_text(1, 1.0)],
        "high": [start(), validated_text(1, 2.0)],
        "b": [start(), validated(1, 30.0)],
    }
    summaries = [summarize(make_run(tmp_path / name, events)) for name, events in runs.items()]
    names = [summary.path.name for summary in by_score(summaries)]
    assert names == ["a", "b", "c", "low", "high", "none"]


@pytest.mark.parametrize(
    ("events", "state", "reason"),
    [
        ([start(), trained(1), ended(2, "patience")], "finished", "patience"),
        ([start(), trained(1), ended(2, "interrupted")], "stopped", "interrupted"),
        ([start(), trained(1)], "stopped", None),
        ([start(), ended(2, "max_steps"), start(2), trained(3)], "stopped", None),
    ],
)
def test_the_state_is_what_the_journal_says_last(
    events: list[dict[str, object]], state: str, reason: str | None, tmp_path: Path
):
    summary = summarize(make_run(tmp_path / "r", events))
    assert (summary.state, summary.reason) == (state, reason)


def test_a_run_is_running_while_its_lock_is_held(tmp_path: Path):
    run = make_run(tmp_path / "r", [start(), ended(2, "max_steps")])
    (run / ".lock").write_text("pid 1 on host x\n")
    assert summarize(run).state == "finished"
    descriptor = os.open(run / ".lock", os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        assert summarize(run).state == "running"
        assert summarize(run).reason is None
    finally:
        os.close(descriptor)
    assert summarize(run).state == "finished"


def test_a_score_on_other_text_than_the_last_validation_s_is_none(tmp_path: Path):
    """And the last one has none itself."""
    events = [
        start(),
        {**validated_text(1, 3.0), "ranking": "loss valid:a"},
        {**validated_text(2, 3.0), "ranking": "loss valid:b", "loss": None},
    ]
    summary = summarize(make_run(tmp_path / "r", events, kind="decoder"))
    assert (summary.figure, summary.best, summary.best_step) == (None, None, None)


@pytest.mark.parametrize(
    "line", [b"[" * 100_000, b'{"event": "train", "step": ' + b"9" * 400 + b"}"]
)
def test_lines_that_no_run_writes_are_passed_over(line: bytes, tmp_path: Path):
    run = make_run(tmp_path / "r", [start(), trained(1)])
    with (run / "journal.jsonl").open("ab") as file:
        file.write(line + b"\n")
    assert summarize(run).step == 1


def test_a_folder_that_may_not_be_read_is_a_problem_of_its_run_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A patch and no mode of the folder: the administrator may read all."""
    run = make_run(tmp_path / "r", [start()])

    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "iterdir", refuse)
    summary = summarize(run)
    assert summary.state == "damaged"
    assert summary.problems == (f"cannot read {run / 'bundles'}: Permission denied",)


def test_looking_does_not_keep_the_lock(tmp_path: Path):
    run = make_run(tmp_path / "r", [start()])
    (run / ".lock").touch()
    summarize(run)
    descriptor = os.open(run / ".lock", os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(descriptor)


def test_damage_is_told_and_what_is_left_is_shown(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
):
    run = copy_of_tiny_run(tmp_path_factory.getbasetemp(), tmp_path / "r")
    (run / "config.toml").write_text("so it goes\n")
    bundle = run / "bundles" / "step-00000004"
    with (bundle / "model.safetensors").open("r+b") as file:
        file.truncate(100)
    (run / "bundles" / "step-00000002").mkdir()
    journal = run / "journal.jsonl"
    journal.write_bytes(b"\xff\n" + journal.read_bytes().replace(b'{"event": "start"', b"{"))
    summary = summarize(run)
    assert (summary.state, summary.step, summary.bundle) == ("damaged", 4, None)
    problems = "\n".join(summary.problems)
    assert "config.toml is not valid TOML" in problems
    assert "journal.jsonl, line 2: not an event" in problems
    assert f"{bundle} is damaged: model.safetensors" in problems
    assert "step-00000002 has no manifest.json" in problems


def test_a_journal_that_cannot_be_read_is_damage(tmp_path: Path):
    run = make_run(tmp_path / "r", [])
    (run / "journal.jsonl").unlink()
    (run / "journal.jsonl").mkdir()
    summary = summarize(run)
    assert summary.state == "damaged"
    assert "journal.jsonl: Is a directory" in summary.problems[0]
