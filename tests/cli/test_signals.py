"""Signals: the first saves and leaves with its own code, the run goes on from there."""

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import pellucid, running
from tiny_runs import SETTINGS, set_options

from pellucid.cli.display import EXIT_CODES, StopRequests
from pellucid.training.journal import read_journal

MANY_STEPS = set_options([*SETTINGS, "training.max_steps=100000", "training.save_every=100000"])


def wait_for_step(run: Path, step: int) -> None:
    deadline = time.monotonic() + 250
    journal = run / "journal.jsonl"
    while not journal.exists() or f'"step": {step},' not in journal.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("number", "code", "reason"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
)
def test_a_signal_saves_and_the_printed_command_goes_on(
    number: signal.Signals, code: int, reason: str, tmp_path: Path
):
    """T7; the line that is printed can be pasted into a shell as it is."""
    run = tmp_path / "my run"
    with running("train", "demo", *MANY_STEPS, "--out", run) as command:
        wait_for_step(run, 2)
        os.kill(command.pid, number)
    result = command.result
    assert result is not None
    assert result.code == code
    assert "Traceback" not in result.err
    last = read_journal(run / "journal.jsonl")[-1]
    assert (last["event"], last["reason"]) == ("end", reason)
    assert (run / "checkpoints" / f"step-{last['step']:08d}").is_dir()
    line = result.err.splitlines()[-1]
    assert line.startswith("saved; go on with: pellucid train demo --set ")
    words = shlex.split(line.removeprefix("saved; go on with: "))
    words += ["--set", f"training.max_steps={last['step'] + 1}"]
    result = pellucid(*words[1:])
    assert result.code == 0, result.err
    assert f"resumed from step-{last['step']:08d}" in result.err


def test_a_second_signal_ends_it_at_once(tmp_path: Path):
    """While the first checkpoint is being saved, or before."""
    run = tmp_path / "run"
    with running("train", "demo", *MANY_STEPS, "--out", run) as command:
        wait_for_step(run, 1)
        os.kill(command.pid, signal.SIGINT)
        os.kill(command.pid, signal.SIGTERM)
    assert command.result is not None
    assert command.result.code in (130, 143)
    assert "Traceback" not in command.result.err


@pytest.mark.parametrize(
    ("number", "code", "message"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "")],
)
def test_a_signal_while_translating_leaves_no_traceback_and_no_file(
    number: signal.Signals, code: int, message: str, tiny_run: Path, tmp_path: Path
):
    out = tmp_path / "out"
    out.write_text("precious")
    (tmp_path / "lines").write_text("le chat dort\n" * 10 + "la lune\n" * 10)
    os.mkfifo(tmp_path / "pipe")
    arguments = ["-q", "translate", tiny_run, tmp_path / "pipe", "-o", out]
    with running(*arguments) as command, (tmp_path / "pipe").open("w") as pipe:
        pipe.write("le chat\n")
        pipe.flush()
        while not list(tmp_path.glob(".tmp-*")):
            assert not_gone(command.pid)
            time.sleep(0.02)
        time.sleep(0.2)  # it waits for more lines than there are
        os.kill(command.pid, number)
        while not_gone(command.pid):
            time.sleep(0.02)
    assert command.result is not None
    assert command.result.code == code
    assert command.result.err.strip() == message
    assert out.read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lines", "out", "pipe"]


def not_gone(pid: int) -> bool:
    """Whether the process still runs; the server that forked it may have reaped it already."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_a_second_process_on_the_same_run_folder_is_told_who_holds_it(tmp_path: Path):
    """T8, with and without --resume; the first one is not disturbed."""
    from pellucid.training.folder import RunFolder
    from pellucid.training.presets import read_config

    config = read_config("demo", [*SETTINGS, "training.max_steps=1"])
    options = set_options([*SETTINGS, "training.max_steps=1"])
    with RunFolder(tmp_path / "run", config, resume=False):
        for more in ([], ["--resume"]):
            result = pellucid("train", "demo", *options, "--out", tmp_path / "run", *more)
            assert result.code == 3
            assert result.error_line.startswith(
                f"error: run folder {tmp_path / 'run'} is locked by pid {os.getpid()} on host "
            )


def test_a_dry_run_that_is_terminated_leaves_nothing(tmp_path: Path):
    options = set_options([*SETTINGS, "training.max_steps=1"])
    with running("train", "demo", *options, "--out", tmp_path / "run", "--dry-run") as command:
        while not list(tmp_path.glob(".dry-run-*")):
            assert not_gone(command.pid)
            time.sleep(0.02)
        os.kill(command.pid, signal.SIGTERM)
    assert command.result is not None
    assert command.result.code == 143
    assert "Traceback" not in command.result.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (signal.SIGINT, "interrupted"),
        (signal.SIGTERM, "terminated"),
        (signal.SIGHUP, "hung up"),
    ],
)
def test_what_saves_hears_every_signal_that_ends_a_command(
    number: signal.Signals, reason: str, kept_handlers: None
):
    stop = StopRequests()
    assert stop() is None
    signal.raise_signal(number)
    assert stop() == reason
    with pytest.raises(SystemExit) as left:
        signal.raise_signal(number)
    assert left.value.code == EXIT_CODES[reason] == 128 + number


def test_under_nohup_what_saves_does_not_hear_that_the_terminal_is_closed(kept_handlers: None):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    stop = StopRequests()
    stop()
    signal.raise_signal(signal.SIGHUP)
    assert stop() is None


@pytest.fixture
def kept_handlers() -> Iterator[None]:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whoever runs the tests may ignore it
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


LONG_CALL = 'hashlib.pbkdf2_hmac("sha256", b"", b"", (1 << 31) - 1)'
"""Of an hour, in which Python runs no handler of a signal."""
BUSY = """
import hashlib, signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may ignore it
signal.signal(signal.SIGHUP, signal.SIG_DFL)
from pellucid.cli import main, signals
from pellucid.cli.display import StopRequests
from pellucid.text.check import check

def scan(path, most_lines):
    print("on", flush=True)
    {waiting}

signals.GRACE_SECONDS = 0.05
check.scan = scan
sys.argv = ["pellucid", "check", __file__, __file__]
main()
"""


@pytest.mark.parametrize(
    ("waiting", "numbers", "said"),
    [
        ("threading.Event().wait()", [signal.SIGTERM], ""),
        (LONG_CALL, [signal.SIGINT], "interrupted\n"),
        (LONG_CALL, [signal.SIGHUP], ""),
        # Which of two comes first is the system's choice.
        (f"StopRequests()(); {LONG_CALL}", [signal.SIGHUP, signal.SIGTERM], ""),
    ],
    ids=["threads", "a long call", "hung up", "twice while it saves"],
)
def test_a_command_ends_soon_whatever_its_threads_do(
    waiting: str, numbers: list[signal.Signals], said: str, tmp_path: Path
):
    """Both threads of ``check`` wait for ever, or are in a call that returns after an hour; one
    that saves at the first signal ends at the second.
    """
    script = tmp_path / "busy.py"
    script.write_text(BUSY.format(waiting=waiting))
    command = [sys.executable, script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        for _ in range(2):
            process.stdout.readline()
        for number in numbers:
            process.send_signal(number)
        _, err = process.communicate(timeout=60)
    assert process.returncode in [128 + number for number in numbers]
    assert err.decode() == said
