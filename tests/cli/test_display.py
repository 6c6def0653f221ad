"""What a run shows to the person who started it: a bar on a terminal, plain lines elsewhere."""

import logging
import os
import pty
import re
import select
from pathlib import Path

import pytest
from commands import pellucid, running
from journals import validated, validated_text
from tiny_runs import SETTINGS, set_options

from pellucid.cli.display import Display, next_commands
from pellucid.core.phases import begin_phase
from pellucid.training.presets import read_config


def said(
    capsys: pytest.CaptureFixture[str], *events: dict[str, object], quiet: bool = False
) -> str:
    with Display(quiet=quiet) as display:
        for event in events:
            display.hear(event)
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


TRAINED = {
    "event": "train",
    "step": 1200,
    "seconds": 5400.0,
    "loss": 2.3456,
    "tokens_per_second": 10_350.2,
    "share_done": 0.75,
}
SHOWN = {"is_best": True, "rate_lowered": True, "exact_match": 12.5, "sample": ["a", "b", "c"]}


def test_training_shows_the_loss_the_speed_and_the_time_left(capsys: pytest.CaptureFixture[str]):
    """After 1:30 hours three quarters are done: half an hour is left."""
    line = "step 1,200  loss 2.346  10,350 tokens/s  30:00 left\n"
    assert said(capsys, TRAINED) == line
    assert said(capsys, {**TRAINED, "share_done": 0.1}).endswith("  13:30:00 left\n")
    assert said(capsys, {**TRAINED, "share_done": 0.0}).endswith(" tokens/s  \n")


def test_the_time_left_goes_by_the_recent_speed(capsys: pytest.CaptureFixture[str]):
    """A run that took 1:30 hours for a half on a busy machine now does a tenth in a minute."""
    resumed = [{**TRAINED, "share_done": 0.5}]
    resumed += [
        {**TRAINED, "seconds": 5400.0 + 60.0 * i, "share_done": 0.5 + 0.1 * i} for i in (1, 2)
    ]
    before, *after = said(capsys, *resumed).splitlines()
    assert before.endswith("  1:30:00 left")
    assert [line.split("  ")[-1] for line in after] == ["4:00 left", "3:00 left"]

    back = {**TRAINED, "seconds": 5520.0, "share_done": 0.4}  # after a rollback
    assert said(capsys, *resumed, back).splitlines()[-1].endswith("  2:18:00 left")


def test_a_validation_shows_its_scores_and_one_sentence(capsys: pytest.CaptureFixture[str]):
    event = {**validated(600, 31.256, 50.0, 1.9), **SHOWN}
    assert said(capsys, event) == (
        "step 600  1:00:01  BLEU 31.26  chrF 50.00  exact 12.5%  loss 1.900"
        "  (best)  (rate lowered)\n"
        "    a  ->  c   (reference: b)\n"
    )
    text = {**validated_text(6, 1.9), **SHOWN, "is_best": False, "rate_lowered": False}
    assert said(capsys, text).splitlines()[0] == "step 6  0:37  loss 1.900"


def test_text_of_files_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]):
    texts = ("un \x1b[31mchat\a", "a \x9b2Jcat", "[bold]a\u202ecat[/bold]")
    shown = said(capsys, {**validated(600, 31.256, 50.0, 1.9), **SHOWN, "sample": texts})
    expected = r"    un \x1b[31mchat\x07  ->  [bold]a\u202ecat[/bold]   (reference: a \x9b2Jcat)"
    assert shown.splitlines()[1] == expected

    suspect = {"pair": 3, "lines": [4, 4], "source": texts[0], "target": "a\ncat"}
    norms = {"gradient_norm": 9.0, "usual_norm": 1.0, "limit": 2.0, "skipped": False}
    spike = {"event": "spike", "step": 40, "suspects": [suspect], **norms}
    [_, pair] = said(capsys, spike).splitlines()
    assert pair == r"    worst pair (line 4): un \x1b[31mchat\x07  ->  a\ncat"


def test_quiet_says_nothing(capsys: pytest.CaptureFixture[str]):
    assert said(capsys, TRAINED, {"event": "end", "step": 3, "reason": "x"}, quiet=True) == ""


START = {
    "event": "start",
    "step": 0,
    "batches_per_epoch": 10,
    "parameters": 7,
    "pairs": 8,
    "source_vocabulary": 9,
    "target_vocabulary": 9,
    "threads": 1,
    "device": "cpu",
    "precision": "fp32",
}
TEXT_OF_TERMINAL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def test_preparations_are_named_and_a_warning_has_a_line(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO, "pellucid")
    before = logging.getLogger("pellucid").handlers
    with Display(quiet=False) as display:
        display.begin("loading PyTorch")
        begin_phase("tokenizing the text")
        logging.getLogger("pellucid").warning("two of %d lines", 3)
        display.hear(START)
        begin_phase("validating")
    lines = capsys.readouterr().err.splitlines()
    assert lines[:3] == [
        "loading PyTorch ...",
        "tokenizing the text ...",
        "WARNING: two of 3 lines",
    ]
    assert len(lines) == 4, "once a run has begun, only its figures are lines"
    assert logging.getLogger("pellucid").handlers is before


@pytest.mark.parametrize(
    ("reason", "is_whole"), [("patience", True), ("max_minutes", True), ("interrupted", False)]
)
def test_a_bar_ends_whole_unless_the_run_was_stopped(
    reason: str,
    is_whole: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
):
    """Of 1,000 updates four were made: without an early end that is 0%."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    config = read_config("demo", ["training.max_steps=1000"])
    with Display(quiet=False) as display:
        stop = display.counting(config, lambda: None)
        display.hear(START)
        for _ in range(5):
            assert stop() is None
        display.hear({"event": "end", "step": 4, "reason": reason})
    shown = TEXT_OF_TERMINAL.sub("", capsys.readouterr().err)
    assert f"stopped at step 4: {reason}" in shown
    assert ("100%" in shown.splitlines()[-1]) == is_whole


def test_every_update_moves_the_bar(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """Between two lines of the journal too: from step 500 of 1,000 on, each is a thousandth."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    config = read_config("demo", ["training.max_steps=1000", "training.max_minutes=1000.0"])
    with Display(quiet=False) as display:
        stop = display.counting(config, lambda: None)
        display.hear({**START, "step": 500})
        shares = []
        for _ in range(3):
            stop()
            assert display._bar is not None
            shares.append(display._bar.tasks[0].completed)
    assert shares == [0.5, 0.501, 0.502]


def test_commands_to_try_fit_the_model_and_its_files(tmp_path: Path):
    run = tmp_path / "my run"
    quoted = f"'{run}'"
    assert next_commands(read_config("demo"), run, "l'été") == [
        f'echo "l\'été" | pellucid translate {quoted}',
        f'pellucid inspect {quoted} "l\'été" --report report.html',
        f"pellucid serve {quoted}",
    ]
    [only] = next_commands(read_config("demo"), run, "l'été", is_useless=True)
    assert only == f'echo "l\'été" | pellucid translate {quoted}'
    files = ["data.source=a", "data.target=b", "data.valid_source=v.a", "data.valid_target=v.b"]
    commands = next_commands(read_config("rnn", files), run, 'a "b" $c')
    assert commands[0] == f"echo 'a \"b\" $c' | pellucid translate {quoted}"
    assert commands[1:] == [f"pellucid evaluate {quoted} v.a v.b", f"pellucid serve {quoted}"]
    for name, command in (("encoder", "fill"), ("decoder", "continue"), ("skipgram", "vectors")):
        [only] = next_commands(read_config(name), run, "")
        assert only.startswith(f"pellucid {command} ")


def test_on_a_terminal_a_run_is_shown_from_its_first_second_to_its_last(tmp_path: Path):
    """As a user sees it, with a vocabulary that is too large for the text, which is warned of."""
    settings = [*SETTINGS, "tokenizer.kind=bpe", "training.max_steps=4"]
    settings += ["tokenizer.shared=true", "tokenizer.vocabulary_size=5000"]
    out = tmp_path / "run"
    leader, follower = pty.openpty()
    terminal = Path(os.ttyname(follower))
    received = b""
    with running(
        *("train", "demo", *set_options(settings), "--out", out),
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        environment={"TERM": "xterm", "COLUMNS": "120"},
    ) as command:
        while True:
            is_there, _, _ = select.select([leader], [], [], 0.05)
            if is_there:
                received += os.read(leader, 1 << 16)
            elif not Path(f"/proc/{command.pid}").exists():
                break
    assert command.result is not None
    assert command.result.code == 0
    os.close(follower)
    os.close(leader)

    lines = re.split(r"[\r\n]+", TEXT_OF_TERMINAL.sub("", received.decode()))
    names = [line[2:].split(" ━")[0] for line in lines if "━" in line]
    order = [
        "loading PyTorch",
        "training the tokenizer (bpe, 5,000)",
        "tokenizing 300 sentence pairs",
        "training",
        "validating",
        "trained",
    ]
    assert [name for name in dict.fromkeys(names) if name in order] == order
    warned = [line for line in lines if "WARNING" in line]
    assert [line.split(" of ")[0] for line in warned] == ["WARNING: the text gives a vocabulary"]
    assert "100%" in [line for line in lines if "━" in line][-1]
    end = [line.strip() for line in lines if line.strip()]
    assert end[-3:-1] == [str(out), "See for yourself:"]
    assert end[-1].endswith(f"| pellucid translate {out}")
    assert any(line.startswith("useless: hardly a sentence says what") for line in end)


def test_elsewhere_it_ends_with_the_folder_on_stdout_and_commands_on_stderr(tmp_path: Path):
    settings = [*SETTINGS, "training.max_steps=4"]
    out = tmp_path / "run"
    result = pellucid("train", "demo", *set_options(settings), "--out", out)
    assert (result.code, result.out) == (0, f"{out}\n")
    assert "training the tokenizer (word, " in result.err
    assert "INFO" not in result.err
    assert "\nuseless: hardly a sentence says what its source says" in result.err
    assert result.err.splitlines()[-1].endswith(f"| pellucid translate {out}")
    assert "pellucid serve" not in result.err, "four updates are no model to serve"
    result = pellucid("-q", "train", "demo", *set_options(settings), "--out", out, "--resume")
    assert (result.code, result.out, result.err) == (0, f"{out}\n", "")
