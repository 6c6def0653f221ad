"""The demo ends by what it learned, and one that was stopped goes on."""

import itertools
import json
import signal
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from tiny_runs import SETTINGS

from pellucid.cli import demo as command
from pellucid.cli.display import EXIT_CODES
from pellucid.training import presets
from pellucid.training.journal import read_journal
from pellucid.training.presets import read_config

STEPS = 3


@pytest.fixture(autouse=True)
def tiny_preset(monkeypatch: pytest.MonkeyPatch) -> None:
    """The preset in small."""
    few = [*SETTINGS, f"training.max_steps={STEPS}", "training.validate_every=2"]
    config = read_config("demo", [*few, "phrasebook.pairs=200", "phrasebook.style=typed"])
    monkeypatch.setattr(presets, "read_config", lambda name: config)


def run_demo(*arguments: str | Path) -> Result:
    return CliRunner().invoke(
        command.demo, [*map(str, arguments)], obj={"quiet": False}, standalone_mode=False
    )


def test_a_demo_that_learned_too_little_ends_with_1_and_says_so(tmp_path: Path):
    result = run_demo("--out", tmp_path / "run")
    assert result.return_value == 1
    assert "% are exactly right, where 95% were expected" in result.stderr


def test_a_demo_that_learned_enough_ends_with_0_and_is_shown_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(command, "ENOUGH", 0.0)
    before = signal.getsignal(signal.SIGINT)
    first = run_demo("--out", tmp_path / "run")
    assert signal.getsignal(signal.SIGINT) is before
    assert first.return_value == 0
    assert first.stderr.splitlines()[0] == "loading PyTorch ..."
    assert "WARNING" not in first.stderr
    assert "Je suis étudiant.  ->  " in first.stdout
    figures = json.loads((tmp_path / "run" / "result.json").read_text())
    assert figures["famous_sentence"]["source"] == "Je suis étudiant."

    # Training is over then, so Ctrl-C ends the command at once.
    show, heard = command._show, []
    monkeypatch.setattr(
        command,
        "_show",
        lambda *given, **named: heard.append(signal.getsignal(2)) or show(*given, **named),
    )
    again = run_demo("--out", tmp_path / "run")
    assert heard == [before]
    assert again.return_value == 0
    assert again.stdout == first.stdout


def test_a_demo_whose_minutes_are_over_says_so_and_goes_on_another_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(command, "ENOUGH", 0.0)
    stopped = run_demo("--out", tmp_path / "run", "--minutes", "1e-9")
    assert stopped.return_value == 1
    assert stopped.stderr.splitlines()[-1] == (
        "0 of 3 updates were made in --minutes 1e-09: this machine is slow or busy. Run the same"
        " command again to go on"
    )
    assert run_demo("--out", tmp_path / "run").return_value == 0
    ended = read_journal(tmp_path / "run" / "journal.jsonl")[-1]
    assert (ended["event"], ended["reason"], ended["step"]) == ("end", "max_steps", STEPS)


def test_a_demo_whose_minutes_are_over_succeeds_if_it_translates_well_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    calls = itertools.count()
    ends = lambda: "demo_minutes" if next(calls) == 2 else None  # noqa: E731
    monkeypatch.setattr(command, "_until", lambda asked, minutes: ends)
    monkeypatch.setattr(command, "ENOUGH", 0.0)
    stopped = run_demo("--out", tmp_path / "run")
    assert "2 of 3 updates were made in --minutes 30" in stopped.stderr
    assert "held-out sentences:" in stopped.stdout
    assert stopped.return_value == 0


@pytest.mark.parametrize("minutes", ["nan", "inf"])
def test_minutes_that_never_end_are_refused(minutes: str, tmp_path: Path):
    with pytest.raises(click.UsageError, match=f"'{minutes}' is not a finite number"):
        CliRunner().invoke(
            command.demo,
            ["--out", str(tmp_path / "run"), "--minutes", minutes],
            standalone_mode=False,
            catch_exceptions=False,
        )


def test_a_demo_that_is_interrupted_ends_as_a_shell_expects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(command, "_until", lambda asked, minutes: lambda: "interrupted")
    stopped = run_demo("--out", tmp_path / "run")
    assert stopped.return_value == EXIT_CODES["interrupted"]
    assert stopped.stderr.splitlines()[-1] == "saved; run the same command again to go on"
