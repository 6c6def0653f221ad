"""T1: killed again and again at random moments, a run ends as if nothing had happened."""

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from commands import Result, running
from tiny_runs import ONE_LAYER, SETTINGS, set_options

from pellucid.core.errors import InputMissingError
from pellucid.core.files import verify_folder
from pellucid.core.tensors import load_tensors
from pellucid.training.checkpoint import checkpoints_of, newest_intact
from pellucid.training.journal import read_journal
from pellucid.training.presets import read_config
from pellucid.training.train import train

KILLS = int(os.environ.get("PELLUCID_KILLS", "4"))
"""Every second one while a checkpoint is being written; reliability T1 asks for 50."""
STEPS = 5 * KILLS
RUN = [*SETTINGS, *ONE_LAYER, "training.average_decay=0.9", f"training.max_steps={STEPS}"]


def losses(run: Path) -> dict[int, tuple[float, float, float]]:
    return {
        event["step"]: (event["loss"], event["learning_rate"], event["gradient_norm"])
        for event in read_journal(run / "journal.jsonl")
        if event["event"] == "train"
    }


def steps_done(run: Path) -> int:
    try:
        return max(losses(run), default=0)
    except InputMissingError:
        return 0


def told(run: Path) -> int:
    path = run / "journal.jsonl"
    return path.stat().st_size if path.exists() else 0


def is_saving(run: Path) -> bool:
    return any((run / "checkpoints").glob(".tmp-*"))


def start_and_kill(run: Path, at_step: int, delay: float, *, inside_save: bool) -> Result:
    """Kill ``delay`` seconds after the journal told of ``at_step``, or in the save after it."""
    options = [*set_options(RUN), "--out", run, *(["--resume"] if run.exists() else [])]
    told_before = told(run)
    with running("-q", "train", "demo", *options) as command:
        deadline = time.monotonic() + 250
        # once it tells anything it has removed what the last death left
        while (told(run) == told_before or steps_done(run) < at_step) and is_alive(command.pid):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        if not inside_save:
            time.sleep(delay)
        while inside_save and is_alive(command.pid) and not is_saving(run):
            time.sleep(0.0003)
        if is_alive(command.pid):
            os.kill(command.pid, signal.SIGKILL)
    assert command.result is not None
    return command.result


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.timeout(300 + 20 * KILLS)
def test_kills_change_nothing_and_cost_no_checkpoint(tmp_path: Path):
    train(read_config("demo", RUN), tmp_path / "unbroken")
    run, random = tmp_path / "killed", np.random.default_rng(7)
    kills = kills_inside_save = 0
    for kill in range(KILLS):
        before = newest_intact(run)
        target = max(steps_done(run), (kill + 1) * (STEPS - 4) // KILLS - 2)
        delay = float(random.uniform(0, 0.06))
        result = start_and_kill(run, target, delay, inside_save=kill % 2 == 1)
        assert result.code in (-signal.SIGKILL, 0), result.err
        kills += result.code == -signal.SIGKILL
        kills_inside_save += is_saving(run)
        after = newest_intact(run)
        assert before is None or (after is not None and after.name >= before.name)
        for folder in checkpoints_of(run):
            verify_folder(folder)  # none is ever half there under its own name
    assert kills >= KILLS // 2
    assert kills_inside_save >= 1
    result = train(read_config("demo", RUN), run, resume=True)
    assert result.progress.step == STEPS
    assert not list(run.rglob(".tmp-*"))
    assert losses(run) == losses(tmp_path / "unbroken")
    assert len(losses(run)) == STEPS
    last = f"step-{STEPS:08d}"
    for name in ("model.safetensors", "optimizer.safetensors", "average.safetensors"):
        expected = load_tensors(tmp_path / "unbroken" / "checkpoints" / last / name)
        got = load_tensors(run / "checkpoints" / last / name)
        assert got.keys() == expected.keys()
        assert all(got[key].equal(expected[key]) for key in got)
    redone = [event["step"] for event in read_journal(run / "journal.jsonl") if "loss" in event]
    assert len(redone) >= STEPS
