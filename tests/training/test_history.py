"""A journal's history: each step once, whatever was killed, resumed or cut short."""

from pathlib import Path

import pytest
from journals import ended, make_run, start, trained, validated

from pellucid.core.errors import InputMissingError
from pellucid.training.journal import number, read_history


def steps(events: list[dict[str, object]]) -> list[object]:
    return [event["step"] for event in events]


def test_what_was_done_twice_counts_as_it_was_done_last(tmp_path: Path):
    """Killed after step 30, resumed from the checkpoint of step 15."""
    events = [
        start(),
        trained(10),
        trained(20, loss=9.0),
        validated(25, 1.0),
        trained(30, loss=9.0),
    ]
    history = read_history(make_run(tmp_path / "r", [*events, start(15), trained(20, loss=1.0)]))
    assert steps(history.train) == [10, 20]
    assert history.train[-1]["negative_log_likelihood"] == 1.0
    assert history.validations == []
    assert history.last("step") == 20


def test_a_rollback_without_a_new_start_is_followed_too(tmp_path: Path):
    events = [start(), trained(10), trained(20), validated(20, 1.0), trained(30), trained(15)]
    history = read_history(make_run(tmp_path / "r", [*events, validated(16, 2.0)]))
    assert steps(history.train) == [10, 15]
    assert steps(history.validations) == [16]


def test_an_end_counts_until_the_run_goes_on(tmp_path: Path):
    history = read_history(make_run(tmp_path / "a", [start(), trained(1), ended(2, "max_steps")]))
    assert history.end is not None
    assert history.last("step") == 2
    assert history.last("seconds") == 14.0
    history = read_history(make_run(tmp_path / "b", [start(), ended(2, "max_steps"), start(2)]))
    assert history.end is None


@pytest.mark.parametrize(
    ("rest", "problems"),
    [
        ('{"event": "tra', []),
        ('{"event": "tra\n{"event": "start", "step": 1}\n', []),
        (
            '{"event": "tra\n{"event": "train", "step": 3}\n',
            ["journal.jsonl, line 3: not an event"],
        ),
        ("[1]\n7\n{}\n", []),
        ('\x00\x00\n{"event": "end", "step": 3}\n', ["journal.jsonl, line 3: not an event"]),
    ],
)
def test_a_line_that_is_no_event_is_a_problem_unless_a_kill_cut_it_short(
    rest: str, problems: list[str], tmp_path: Path
):
    run = make_run(tmp_path / "r", [start(), trained(1)])
    with (run / "journal.jsonl").open("a") as file:
        file.write(rest)
    history = read_history(run)
    assert history.problems == problems
    assert steps(history.train)[0] == 1


def test_an_event_without_a_step_is_passed_over(tmp_path: Path):
    events = [start(), {"event": "train"}, {"event": "validation", "step": "3"}]
    history = read_history(make_run(tmp_path / "r", events))
    assert (history.train, history.validations) == ([], [])


@pytest.mark.parametrize("value", [None, "3", True, float("nan"), float("inf"), [1]])
def test_what_is_no_finite_number_is_no_figure(value: object):
    assert number({"event": "train", "loss": value}, "loss") is None
    assert number({"event": "train", "loss": 2}, "loss") == 2


def test_a_folder_without_a_journal_is_told(tmp_path: Path):
    with pytest.raises(
        InputMissingError, match=r"cannot read .*x/journal\.jsonl: No such file"
    ) as c:
        read_history(tmp_path / "x")
    assert c.value.hint == "name the folder of a run"
