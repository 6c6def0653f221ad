"""torchrun's own agent: one process is killed and all restart; one signal, and all have saved."""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import tiny_runs
from processes import in_processes, started_fork
from test_runs_of_several import SETTINGS, losses, run
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from pellucid.cli import main
from pellucid.core.errors import OutputExistsError
from pellucid.core.files import sha256_of
from pellucid.core.run_names import JOURNAL_FILE, LOCK_FILE
from pellucid.training.checkpoint import checkpoints_of
from pellucid.training.folder import goes_on
from pellucid.training.journal import read_journal
from pellucid.training.presets import read_config
from pellucid.training.train import train


def torchrun(notes: Path, arguments: list[str]) -> None:
    """``torchrun --standalone --nproc-per-node 2 --max-restarts 1 -m pellucid``, forking."""
    errors = os.open(notes / "errors", os.O_WRONLY | os.O_CREAT)
    os.dup2(errors, 2)
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=2,
        run_id="test",
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=1,
        start_method="fork",
    )
    elastic_launch(config, pellucid)(notes, arguments)


def pellucid(notes: Path, arguments: list[str]) -> None:
    (notes / os.environ["RANK"]).write_text(str(os.getpid()))
    sys.argv = ["pellucid", *arguments]
    main()


def newest_step(folder: Path) -> int:
    return max((int(each.name.removeprefix("step-")) for each in checkpoints_of(folder)), default=0)


def test_a_killed_process_and_a_signal_change_nothing(tmp_path: Path):
    """Dropout is on; what is learned in the end is that of an unbroken run, to the last bit."""
    out, notes = tmp_path / "run", tmp_path / "notes"
    notes.mkdir()
    settings = tiny_runs.set_options([*SETTINGS, "training.max_steps=100000"])
    arguments = ["train", "demo", *settings, "--out", str(out)]
    agent = started_fork(torchrun, notes, arguments)

    def wait_for(reached: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 120
        while not reached():
            running = agent.is_alive() and time.monotonic() < deadline
            assert running, (notes / "errors").read_text()[-4000:]
            time.sleep(0.02)

    try:
        wait_for(lambda: newest_step(out) >= 3)
        os.kill(int((notes / "1").read_text()), signal.SIGKILL)
        killed_at = newest_step(out)
        wait_for(lambda: newest_step(out) > killed_at + 3)
        os.kill(agent.pid, signal.SIGTERM)
        agent.join(100)
    finally:
        agent.kill()
        agent.join()
    told = (notes / "errors").read_text()
    assert "error: the processes of this run lost each other: " in told
    assert "hint: look for the message of the one that ended first" in told
    assert told.count("saved; go on with: torchrun ... -m pellucid train demo --set ") == 1
    events = read_journal(out / JOURNAL_FILE)
    assert [each["event"] for each in events].count("start") == 2
    assert events[-1]["event"] == "end"
    assert events[-1]["reason"] == "terminated"
    assert newest_step(out) == events[-1]["step"]

    steps = newest_step(out) + 2
    assert in_processes(run, out, steps) == [("max_steps", steps)] * 2
    assert in_processes(run, tmp_path / "unbroken", steps) == [("max_steps", steps)] * 2
    assert losses(out)[-2:] == losses(tmp_path / "unbroken")[-2:]
    broken, unbroken = (checkpoints_of(folder)[0] for folder in (out, tmp_path / "unbroken"))
    for name in ("model.safetensors", "optimizer.safetensors", "average.safetensors"):
        assert sha256_of(broken / name) == sha256_of(unbroken / name)


def test_a_restart_goes_on_with_its_own_run_and_into_no_other_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The first attempt was refused there; the second must not take the files for a run's."""
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    precious = tmp_path / "photos" / ".tmp-holiday"
    precious.mkdir(parents=True)
    config = read_config("demo", [*SETTINGS, "training.max_steps=1"])
    with pytest.raises(OutputExistsError, match="already holds something"):
        train(config, tmp_path / "photos")
    assert list((tmp_path / "photos").iterdir()) == [precious]

    assert not goes_on(tmp_path / "photos", resume=False)
    assert goes_on(tmp_path / "photos", resume=True)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / LOCK_FILE).touch()
    assert goes_on(tmp_path / "run", resume=False)
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "0")
    assert not goes_on(tmp_path / "run", resume=False)
