"""T4: whenever the disk is full, the previous checkpoint survives and the exit code is 74."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import tiny_runs
from commands import pellucid
from tiny_runs import SETTINGS, set_options

from pellucid.bundle import load_bundle
from pellucid.core.files import verify_folder
from pellucid.training.checkpoint import checkpoints_of, newest_intact

LONGER = ["train", "demo", *set_options([*SETTINGS, "training.max_steps=8"])]


@pytest.fixture
def run(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run at step 4 that wants to go on."""
    return tiny_runs.copy_of_tiny_run(tmp_path_factory.getbasetemp(), tmp_path / "run")


def test_files_that_may_not_grow_leave_the_previous_checkpoint(run: Path):
    """The system refuses the 4,097th byte of any file (EFBIG); the same way as a full disk."""
    result = pellucid(*LONGER, "--out", run, "--resume", largest_file=4096)
    assert result.code == 74
    assert "error: cannot write " in result.error_line
    assert "File too large" in result.error_line
    newest = newest_intact(run)
    assert newest is not None
    assert newest.name == "step-00000004"
    result = pellucid(*LONGER, "--out", run, "--resume")
    assert result.code == 0, result.err
    assert newest_intact(run) == run / "checkpoints" / "step-00000008"
    assert not list(run.rglob(".tmp-*"))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own in memory; only root may make one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(disk)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("mounting a disk needs root")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_a_disk_that_is_really_full_leaves_the_previous_checkpoint(
    small_disk: Path, tmp_path_factory: pytest.TempPathFactory
):
    """Room is left for a little more each time: the disk is full at four places of a save."""
    run = tiny_runs.copy_of_tiny_run(tmp_path_factory.getbasetemp(), small_disk / "run")
    [checkpoint, *_] = checkpoints_of(run)
    size = sum(path.stat().st_size for path in checkpoint.iterdir())
    for tenth in (0, 3, 6, 9):
        fill_up(small_disk, leave=size * tenth // 10)
        result = pellucid(*LONGER, "--out", run, "--resume")
        (small_disk / "ballast").unlink()
        assert result.code == 74, result.err
        assert "No space left on device" in result.error_line
        assert "hint: free some disk space and run the command again" in result.error_line
        newest = newest_intact(run)
        assert newest is not None
        assert newest.name >= checkpoint.name
        load_bundle(run)
        for folder in checkpoints_of(run):
            verify_folder(folder)
    result = pellucid(*LONGER, "--out", run, "--resume")
    assert result.code == 0, result.err
    assert not list(run.rglob(".tmp-*"))


def test_a_folder_that_may_only_be_read_is_an_error_that_says_so(
    small_disk: Path, tmp_path_factory: pytest.TempPathFactory
):
    """T13: for a new run and for one that is to go on, which stays as it is."""
    run = tiny_runs.copy_of_tiny_run(tmp_path_factory.getbasetemp(), small_disk / "run")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    for arguments in (["--out", small_disk / "new"], ["--out", run, "--resume"]):
        result = pellucid(*LONGER, *arguments)
        assert result.code == 74, result.err
        assert "error: cannot write " in result.error_line
        assert "Read-only file system" in result.error_line
    newest = newest_intact(run)
    assert newest is not None
    assert newest.name == "step-00000004"


def fill_up(disk: Path, leave: int) -> None:
    free = os.statvfs(disk)
    size = free.f_bavail * free.f_frsize - leave
    with (disk / "ballast").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, size)
