"""T13: a run goes on wherever it lies, in whatever time zone, and whoever may read its files."""

import os
import stat
from pathlib import Path

import pytest
import tiny_runs
from commands import pellucid
from tiny_runs import SETTINGS, set_options

from pellucid.core.files import verify_folder
from pellucid.training.checkpoint import newest_intact
from pellucid.training.journal import JOURNAL_FILE, read_journal

LONGER = ["train", "demo", *set_options([*SETTINGS, "training.max_steps=5"])]


@pytest.fixture
def copied(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run at step 4 that wants to go on."""
    return tiny_runs.copy_of_tiny_run(tmp_path_factory.getbasetemp(), tmp_path / "run")


def goes_on(run: Path, environment: dict[str, str] | None = None) -> None:
    result = pellucid(*LONGER, "--out", run, "--resume", environment=environment)
    assert result.code == 0, result.err
    newest = newest_intact(run)
    assert newest is not None
    assert newest.name == "step-00000005"
    verify_folder(newest)


def test_through_a_link(copied: Path, tmp_path: Path):
    link = tmp_path / "link"
    link.symlink_to(copied, target_is_directory=True)
    goes_on(link)
    assert link.is_symlink()
    assert (copied / "checkpoints" / "step-00000005").is_dir()


def test_under_the_longest_name_there_is(copied: Path, tmp_path: Path):
    longest = tmp_path / ("r" * os.pathconf(tmp_path, "PC_NAME_MAX"))
    copied.rename(longest)
    goes_on(longest)
    assert (longest / "checkpoints" / "step-00000005").is_dir()


def test_without_a_home_and_in_another_time_zone(copied: Path):
    """The far side of the date line is a day ahead of or behind the run's first half."""
    goes_on(copied, {"HOME": "", "TZ": "Pacific/Kiritimati"})
    seconds = [
        event["seconds"]
        for event in read_journal(copied / JOURNAL_FILE)
        if event["event"] == "train"
    ]
    assert len(seconds) == 5
    assert seconds == sorted(seconds)


@pytest.mark.parametrize("mask", [0o077, 0o022])
def test_who_may_read_follows_the_umask(mask: int, tmp_path: Path):
    """Not 0600 for everything, as safetensors would write its files."""
    run = tmp_path / "run"
    settings = set_options([*SETTINGS, "training.max_steps=1"])
    result = pellucid("train", "demo", *settings, "--out", run, umask=mask)
    assert result.code == 0, result.err
    modes = {stat.S_IMODE(path.stat().st_mode) for path in run.rglob("*") if path.is_file()}
    assert modes == {0o666 & ~mask}
