"""A process that dies at any one of its dealings with the disk, and what a power loss leaves.

The process is a fork. An audit hook counts what Python does to files. ``die_at`` ends the fork at
one of these events, as by SIGKILL; ``deaths_of`` copies the folder at every one of them, which is
what a process that ends there would leave. It also tells which bytes had been synced by then: after
a power loss only these are sure to be there, and of a rename only whether its folder was synced.
"""

import ast
import dataclasses
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from forks import fork

WATCHED = ("open", "os.", "shutil.")
"""Audit events that name a dealing with the disk; fsync has none and is counted by itself."""

DELETIONS = ("os.remove", "os.rmdir")
"""A tree is taken down by names within open folders, which do not say where those are."""


@dataclasses.dataclass(frozen=True)
class Death:
    """What a process leaves that ends before one of its dealings with the disk, or after all."""

    folder: Path
    synced: dict[str, int]
    """For each file that is synced, by its path in the folder, its size then."""
    unsynced_renames: list[tuple[Path, Path]]
    """From where to where, in their order: those whose folder was not synced afterwards."""


def die_at(event: int, below: Path, work: Callable[[], None]) -> bool:
    """Do ``work`` in a fork that ends at its dealing number ``event`` with what is ``below``.

    True if it was done before.
    """
    left = [event]

    def count(_disk: "_Disk") -> None:
        if left[0] == 0:
            os._exit(9)
        left[0] -= 1

    return _in_fork(below, work, count) == 0


def deaths_of(below: Path, work: Callable[[], None], copies: Path) -> Iterator[Death]:
    """Do ``work`` and keep in ``copies`` what each end of it would leave; the last is its own."""
    copies.mkdir()

    def keep(disk: "_Disk") -> None:
        copy = copies / str(len(list(copies.iterdir())))
        shutil.copytree(below, copy / "folder", symlinks=True)
        (copy / "told").write_text(repr(disk.told()))

    assert _in_fork(below, work, keep, at_end=keep) == 0, "the work failed by itself"
    for copy in sorted(copies.iterdir(), key=lambda each: int(each.name)):
        synced, renames = ast.literal_eval((copy / "told").read_text())
        folder = copy / "folder"
        yield Death(folder, synced, [(folder / old, folder / new) for old, new in renames])


def lose_power(death: Death) -> None:
    """Cut every file that was not synced, the hardest case, and undo renames that may be lost."""
    for path in death.folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            sure = death.synced.get(os.fspath(path.relative_to(death.folder)), 0)
            os.truncate(path, min(sure, path.stat().st_size))
    for old, new in reversed(death.unsynced_renames):
        if new.exists() and not old.exists():
            new.rename(old)


class _Disk:
    """What a process has synced of a folder, and its renames in there."""

    def __init__(self, below: Path) -> None:
        self._below = below
        # What is there from the beginning is on the disk.
        self._sizes = {each.stat().st_ino: each.stat().st_size for each in _files(below)}
        self._renames: list[tuple[str, str]] = []

    def told(self) -> tuple[dict[str, int], list[tuple[str, str]]]:
        synced = {
            os.fspath(each.relative_to(self._below)): self._sizes[each.stat().st_ino]
            for each in _files(self._below)
            if each.stat().st_ino in self._sizes
        }
        return synced, self._renames

    def rename(self, old: str, new: str) -> None:
        self._renames.append((self._place(old), self._place(new)))

    def sync(self, descriptor: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115
        about = os.fstat(descriptor)
        if os.path.isdir(path):  # noqa: PTH112
            place = self._place(path)
            self._renames = [
                each
                for each in self._renames
                if (os.path.dirname(each[1]) or ".") != place  # noqa: PTH120
            ]
        else:
            self._sizes[about.st_ino] = about.st_size

    def _place(self, path: str) -> str:
        return os.path.relpath(path, self._below)


def _files(folder: Path) -> list[Path]:
    return [each for each in folder.rglob("*") if each.is_file()]


def _in_fork(
    below: Path,
    work: Callable[[], None],
    count: Callable[[_Disk], None],
    at_end: Callable[[_Disk], None] = lambda _: None,
) -> int:
    """The exit code of a fork that does ``work`` and calls ``count`` before each dealing."""
    child = fork()
    if child == 0:
        try:
            _watch(below, count, at_end, work)
        except BaseException:
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, 9), f"the work failed by itself (exit code {code})"
    return code


def _watch(
    below: Path,
    count: Callable[[_Disk], None],
    at_end: Callable[[_Disk], None],
    work: Callable[[], None],
) -> None:
    disk = _Disk(below)
    inside = str(below)
    is_counting = False

    def dealing() -> None:
        """Its own dealings do not count."""
        nonlocal is_counting
        is_counting = True
        count(disk)
        is_counting = False

    def hear(name: str, arguments: tuple[Any, ...]) -> None:
        if is_counting or not name.startswith(WATCHED) or not arguments:
            return
        paths = [os.fspath(each) for each in arguments[:2] if isinstance(each, str | os.PathLike)]
        if name in DELETIONS or any(each.startswith(inside) for each in paths):
            dealing()
            if name == "os.rename":
                disk.rename(*paths)

    sync = os.fsync

    def fsync(descriptor: int) -> None:
        dealing()
        sync(descriptor)
        disk.sync(descriptor)

    os.fsync = fsync
    sys.addaudithook(hear)
    work()
    is_counting = True
    at_end(disk)
