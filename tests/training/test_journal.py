"""The journal: one event a line, heard by a listener, and readable after any end."""

import json
import math
from pathlib import Path

import pytest
from failing_objectives import build_broken, times
from tiny_runs import ONE_LAYER, SETTINGS

from pellucid.cli.display import Display
from pellucid.core.errors import WriteError
from pellucid.core.tensors import load_tensors
from pellucid.training.checkpoint import newest_intact
from pellucid.training.journal import Journal, read_journal
from pellucid.training.presets import read_config
from pellucid.training.train import train


def test_events_are_kept_in_order_and_heard(tmp_path: Path):
    heard: list[dict[str, object]] = []
    journal = Journal(tmp_path / "j", heard.append)
    journal.write("start", {"step": 0})
    journal.write("train", {"step": 1, "sample": "été 🌞"})
    expected = [{"event": "start", "step": 0}, {"event": "train", "step": 1, "sample": "été 🌞"}]
    assert read_journal(tmp_path / "j") == heard == expected


@pytest.mark.parametrize("rest", ['{"event": "tra', '{"event": "é'])
def test_a_line_that_a_kill_cut_short_costs_that_event_alone(rest: str, tmp_path: Path):
    path = tmp_path / "j"
    Journal(path).write("start", {})
    with path.open("ab") as file:
        file.write(rest.encode()[:-1])
    assert read_journal(path) == [{"event": "start"}]
    Journal(path).write("start", {"step": 1})
    assert read_journal(path) == [{"event": "start"}, {"event": "start", "step": 1}]


def test_an_empty_journal_has_no_events(tmp_path: Path):
    (tmp_path / "j").touch()
    Journal(tmp_path / "j")
    assert read_journal(tmp_path / "j") == []


def test_a_journal_that_cannot_be_written_is_told(tmp_path: Path):
    with pytest.raises(WriteError, match=r"cannot write .*none/j: No such file or directory"):
        Journal(tmp_path / "none" / "j").write("start", {})


def test_figures_that_are_not_finite_are_null(tmp_path: Path):
    """JSON has neither NaN nor infinity, and other programs refuse them."""
    heard: list[dict[str, object]] = []
    journal = Journal(tmp_path / "j", heard.append)
    journal.write("train", {"loss": math.nan, "of": [{"norm": math.inf}, 1.5], "is_best": True})
    expected = [{"event": "train", "loss": None, "of": [{"norm": None}, 1.5], "is_best": True}]
    assert read_journal(tmp_path / "j") == heard == expected
    assert "NaN" not in (tmp_path / "j").read_text()


def test_an_update_that_was_left_out_has_no_loss_and_learned_from_no_tokens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    spoiled = build_broken(lambda _, __, sums, call: times(sums, math.nan if call == 1 else 1))
    settings = [
        *SETTINGS,
        *ONE_LAYER,
        "training.accumulate=1",
        "training.max_steps=3",
        "decoding.max_length=5",
    ]
    result = train(
        read_config("demo", settings),
        tmp_path / "run",
        listener=Display(quiet=False).hear,
        make_objective=spoiled,
    )

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    lines = (tmp_path / "run" / "journal.jsonl").read_text().splitlines()
    events = [json.loads(line, parse_constant=refuse) for line in lines]
    first, second, third = (event for event in events if event["event"] == "train")
    assert (second["loss"], second["negative_log_likelihood"]) == (None, None)
    assert second["gradient_norm"] is None
    assert first["target_tokens"] == second["target_tokens"] > 0
    assert third["target_tokens"] == result.progress.target_tokens > first["target_tokens"]
    assert third["loss"] > 0
    assert "step 2  no update applied  0 tokens/s" in capsys.readouterr().err


def test_of_three_updates_one_is_left_out(tmp_path: Path):
    """A line of several updates is their mean by tokens, the moving average counts two, and the
    rate of update n of N goes by n / N."""
    settings = [
        *SETTINGS,
        *ONE_LAYER,
        "training.accumulate=1",
        "training.max_steps=3",
        "training.schedule=linear",
        "training.warmup_steps=1",
        "training.learning_rate=0.003",
        "training.average_decay=0.9",
    ]

    def lines(every: int) -> list[dict[str, float]]:
        spoiled = build_broken(lambda _, __, sums, call: times(sums, math.nan if call == 1 else 1))
        config = read_config("demo", [*settings, f"training.log_every={every}"])
        train(config, tmp_path / str(every), make_objective=spoiled)
        events = read_journal(tmp_path / str(every) / "journal.jsonl")
        return [event for event in events if event["event"] == "train"]

    first, second, third = lines(1)
    [together] = lines(3)
    counts = first["target_tokens"], third["target_tokens"] - second["target_tokens"]
    assert counts[0] != counts[1] > 0
    for name in ("loss", "negative_log_likelihood"):
        total = first[name] * counts[0] + third[name] * counts[1]
        assert together[name] == pytest.approx(total / sum(counts), rel=1e-12)
    rates = [each["learning_rate"] for each in (first, second, third)]
    assert rates == pytest.approx([0.002, 0.001, 0.0], abs=1e-15)
    folder = newest_intact(tmp_path / "1")
    assert folder is not None
    assert load_tensors(folder / "average.safetensors")["update_count"].item() == 2
