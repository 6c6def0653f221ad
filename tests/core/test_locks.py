"""A lock file keeps a second process out, and no file of the user is harmed by it."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from pellucid.core.errors import LockedError, OutputExistsError, WriteError
from pellucid.core.locks import lock_holder, take_lock

PRECIOUS = "a file of the user's\n"


def test_the_holder_is_named_and_a_released_lock_is_free(tmp_path: Path):
    path = tmp_path / ".lock"
    path.write_text("pid 1 on host with-a-name-that-is-longer-than-any-other.example.org\n")
    descriptor = take_lock(path)
    own = f"pid {os.getpid()} on host {socket.gethostname()}"
    assert lock_holder(path) == own
    with pytest.raises(LockedError) as caught:
        take_lock(path)
    assert str(caught.value) == f"run folder {tmp_path} is locked by {own}"
    os.close(descriptor)
    assert lock_holder(path) is None
    assert lock_holder(tmp_path / "none") is None


def _symbolic(lock: Path, precious: Path) -> None:
    lock.symlink_to(precious)


def _hard(lock: Path, precious: Path) -> None:
    lock.hardlink_to(precious)


def _copied(lock: Path, precious: Path) -> None:
    lock.write_bytes(precious.read_bytes())


def _pipe(lock: Path, precious: Path) -> None:
    os.mkfifo(lock)


@pytest.mark.parametrize("make", [_symbolic, _hard, _copied, _pipe])
def test_what_is_no_lock_file_is_refused_and_keeps_its_bytes(
    make: Callable[[Path, Path], None], tmp_path: Path
):
    precious, lock = tmp_path / "precious", tmp_path / ".lock"
    precious.write_text(PRECIOUS)
    make(lock, precious)
    with pytest.raises(OutputExistsError) as caught:
        take_lock(lock)
    assert str(caught.value) == (
        f"{lock} must be a lock file that Pellucid made, and is a link or another file"
    )
    assert caught.value.hint == "choose another --out, or remove it if nothing else needs it"
    assert lock_holder(lock) is None
    assert precious.read_text() == PRECIOUS


def test_a_link_to_nothing_creates_nothing(tmp_path: Path):
    (tmp_path / ".lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OutputExistsError):
        take_lock(tmp_path / ".lock")
    assert not (tmp_path / "elsewhere").exists()


def test_a_lock_that_cannot_be_opened_is_told(tmp_path: Path):
    (tmp_path / ".lock").mkdir()
    with pytest.raises(WriteError, match=r"cannot write .*\.lock: Is a directory"):
        take_lock(tmp_path / ".lock")
