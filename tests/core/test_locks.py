"""A lock file keeps a second process out."""

import os
import socket
from pathlib import Path

import pytest

from pellucid.core.errors import LockedError, WriteError
from pellucid.core.locks import lock_holder, take_lock


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


def test_a_lock_that_cannot_be_opened_is_told(tmp_path: Path):
    (tmp_path / ".lock").mkdir()
    with pytest.raises(WriteError, match=r"cannot write .*\.lock: Is a directory"):
        take_lock(tmp_path / ".lock")
