"""What an operating system lacks, and what is done there: names are taken away, or made up."""

import contextlib
import ctypes
import errno
import os
import resource
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from pellucid.core import system
from pellucid.core.errors import UnsupportedSystemError
from pellucid.core.files import HeldFile, read_plain, sha256_of, write_file, write_folder
from pellucid.core.growing import GrowingFile
from pellucid.core.locks import lock_holder, take_lock
from pellucid.core.system import processor_name, thread_count


@pytest.fixture
def macos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No /proc and /sys, no affinity; memory in bytes; a call that exchanges names."""
    monkeypatch.setattr(system, "IS_LINUX", False)
    for name in ("_PROC", "_SYS", "_DEV"):
        monkeypatch.setattr(system, name, tmp_path / "nothing")
    monkeypatch.delattr(os, "sched_getaffinity")
    return monkeypatch


@pytest.fixture
def windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Without fcntl and resource, and without what Windows' ``os`` lacks."""
    monkeypatch.setattr(system, "IS_LINUX", False)
    for name in ("_PROC", "_SYS", "_DEV"):
        monkeypatch.setattr(system, name, tmp_path / "nothing")
    for name in ("fcntl", "resource"):
        monkeypatch.setattr(system, name, None)
    monkeypatch.setattr(system, "LACKS_POSIX", True)
    for name in ("sched_getaffinity", "pread", "sysconf", "getloadavg", "register_at_fork"):
        monkeypatch.delattr(os, name)

    really = os.open

    def opened(path: str | Path, flags: int, *rest: object, **more: object) -> int:
        if Path(path).is_dir():
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return really(path, flags, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", opened)
    return monkeypatch


def test_on_macos_cores_memory_and_names_are_still_found(macos: pytest.MonkeyPatch):
    macos.setattr(os, "cpu_count", lambda: 10)
    macos.delenv("OMP_NUM_THREADS", raising=False)
    macos.delitem(sys.modules, "torch", raising=False)
    assert (system.usable_cores(), system.physical_cores(), thread_count()) == (10, 10, 10)
    assert system.processor_fields() == {}
    assert processor_name()

    found = system.memory()
    assert found is not None
    assert (found.available, found.swap) == (None, 0)
    assert found.total > 1 << 28
    assert system.memory_limit() is None
    assert not system.has_nvidia_card()
    assert system.may_have_gpu(), "PyTorch is asked for Apple's own"


@pytest.mark.parametrize(("is_macos", "unit"), [(False, 1024), (True, 1)])
def test_the_peak_of_memory_is_in_bytes_everywhere(
    is_macos: bool, unit: int, monkeypatch: pytest.MonkeyPatch
):
    """Linux counts KiB, macOS bytes."""
    monkeypatch.setattr(system, "IS_MACOS", is_macos)
    monkeypatch.setattr(resource, "getrusage", lambda who: SimpleNamespace(ru_maxrss=3000))
    assert system.peak_memory() == 3000 * unit


def test_macos_is_asked_to_write_through_the_disks_own_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    asked: list[int] = []
    monkeypatch.setattr(system.fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(system.fcntl, "fcntl", lambda descriptor, what: asked.append(what))
    write_file(tmp_path / "file", b"content")
    assert asked == [51, 51], "the file, and the folder that has its name"

    def unknown(descriptor: int, what: int) -> None:
        raise OSError(errno.ENOTSUP, "no such file system")

    synced: list[int] = []
    monkeypatch.setattr(system.fcntl, "fcntl", unknown)
    monkeypatch.setattr(os, "fsync", synced.append)
    write_file(tmp_path / "file", b"other")
    assert len(synced) == 2


def test_macos_exchanges_two_folders_in_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    calls: list[tuple[object, ...]] = []

    class Library:
        def __init__(self, *arguments: object, use_errno: bool) -> None:
            self.renamex_np = lambda *given: calls.append(given) or 0

    monkeypatch.setattr(ctypes, "CDLL", Library)
    assert system.exchange(tmp_path / "a", tmp_path / "b")
    assert calls == [(os.fsencode(tmp_path / "a"), os.fsencode(tmp_path / "b"), 2)]


def test_macos_sets_no_bound_on_memory(macos: pytest.MonkeyPatch):
    macos.setattr(resource, "setrlimit", lambda *_: pytest.fail("nothing to count from"))
    assert not system.limit_memory(1 << 20)


def test_a_bound_that_is_refused_is_none(monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> None:
        raise ValueError("current limit exceeds maximum limit")

    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert not system.limit_memory(1 << 20)
    limits = (100, resource.RLIM_INFINITY)
    monkeypatch.setattr(resource, "getrlimit", lambda kind: limits)
    assert system.limit_open_files(300) == 100


def test_windows_reads_and_writes_files_and_folders(windows: pytest.MonkeyPatch, tmp_path: Path):
    write_folder(tmp_path / "folder", lambda inner: write_file(inner / "a", b"a\r\nb"), details={})
    file = tmp_path / "folder" / "a"
    assert read_plain(file) == b"a\r\nb"
    held = HeldFile(file, sha256_of(file))
    assert held.part(0, 2) == b"a\r"
    assert held.read() == held.read() == b"a\r\nb"
    write_folder(tmp_path / "folder", lambda inner: write_file(inner / "a", b"2"), details={})
    assert read_plain(file) == b"2"


def test_windows_reads_at_a_position_from_many_threads(windows: pytest.MonkeyPatch, tmp_path: Path):
    path = tmp_path / "bytes"
    path.write_bytes(bytes(range(256)))
    descriptor = system.open_to_read(path)
    found: dict[int, bytes] = {}

    def read(place: int) -> None:
        for _ in range(200):
            found[place] = system.read_at(descriptor, 4, place)

    threads = [threading.Thread(target=read, args=(place,)) for place in (0, 100, 252)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    os.close(descriptor)
    assert found == {place: bytes(range(place, place + 4)) for place in (0, 100, 252)}


def test_on_windows_what_needs_locks_says_so_in_one_line(
    windows: pytest.MonkeyPatch, tmp_path: Path
):
    with pytest.raises(UnsupportedSystemError) as caught:
        take_lock(tmp_path / ".lock")
    assert str(caught.value) == "training works on Linux and macOS alone"
    assert "WSL" in caught.value.hint
    with pytest.raises(UnsupportedSystemError), GrowingFile(tmp_path / "out", {}):
        pass
    assert list(tmp_path.iterdir()) == []

    (tmp_path / ".lock").touch()
    assert lock_holder(tmp_path / ".lock") is None


def test_on_windows_nothing_is_asked_that_it_does_not_know(windows: pytest.MonkeyPatch):
    assert system.memory() is None
    assert system.peak_memory() == 0
    assert system.usable_cores() == system.physical_cores() == os.cpu_count()
    assert not system.is_busy()
    system.after_fork(lambda: None)


@pytest.fixture
def descriptor(tmp_path: Path) -> Iterator[int]:
    path = tmp_path / "locked"
    path.touch()
    found = system.open_to_read(path)
    yield found
    with contextlib.suppress(OSError):
        os.close(found)


def test_a_lock_keeps_others_out_until_it_ends(descriptor: int, tmp_path: Path):
    other = system.open_to_read(tmp_path / "locked")
    system.lock(descriptor)
    with pytest.raises(BlockingIOError):
        system.lock(other, shared=True)
    system.unlock(descriptor)
    system.lock(other, shared=True)
    system.lock(descriptor, shared=True)
    with pytest.raises(BlockingIOError):
        system.lock(descriptor)
    os.close(other)
    system.lock(descriptor, waits=True)


def test_no_link_is_followed_and_no_pipe_waited_for(tmp_path: Path):
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "file").write_text("content")
    with pytest.raises(OSError, match="symbolic links"):
        system.open_to_read(tmp_path / "link")
    os.close(system.open_to_read(tmp_path / "link", follows_links=True))
    os.mkfifo(tmp_path / "pipe")
    os.close(system.open_to_read(tmp_path / "pipe"))


def test_the_signals_that_end_a_process_are_those_that_the_system_has():
    assert system.END_SIGNALS == (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    assert system.HANG_UP == signal.SIGHUP
