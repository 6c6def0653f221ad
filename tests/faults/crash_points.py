"""A process that dies at any one of its dealings with the disk, and what a power loss leaves.

The process is a fork. An audit hook counts what Python does to files; at the chosen event the fork
ends at once, as by SIGKILL. It also tells which bytes it had synced by then: after a power loss
only these are sure to be there, and of a rename only whether its folder was synced.
"""

import dataclasses
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from forks import fork

WATCHED = ("open", "os.", "shutil.")
"""Audit events that name a dealing with the disk; fsync has none and is counted by itself."""

DELETIONS = ("os.remove", "os.rmdir")
"""A tree is taken down by names within open folders, which do not say where those are."""


@dataclasses.dataclass(frozen=True)
class Death:
    """How far a fork came."""

    finished: bool
    """It had no more than the chosen number of dealings with the disk."""
    synced: dict[int, int]
    """For each file that was synced, by inode, its size then."""
    unsynced_rename: tuple[Path, Path] | None
    """From where to where the last rename was, if the folder was not synced after it."""


def die_at(event: int, below: Path, work: Callable[[], None]) -> Death:
    """Do ``work`` in a fork that ends at its dealing number ``event`` with what is ``below``."""
    reading, writing = os.pipe()
    child = fork()
    if child == 0:
        os.close(reading)
        _work_and_die(event, below, work, writing)
    os.close(writing)
    with os.fdopen(reading) as told:
        lines = [json.loads(line) for line in told]
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, 9), f"the work failed by itself (exit code {code})"
    synced: dict[int, int] = {}
    rename: tuple[Path, Path] | None = None
    for line in lines:
        if line[0] == "file":
            synced[line[1]] = line[2]
        elif line[0] == "rename":
            rename = Path(line[1]), Path(line[2])
        elif rename is not None and os.fspath(rename[1].parent) == line[1]:
            rename = None
    return Death(code == 0, synced, rename)


def lose_power(death: Death, below: Path) -> None:
    """Cut every file that was not synced, the hardest case there is."""
    for path in below.rglob("*"):
        if path.is_file() and not path.is_symlink():
            sure = death.synced.get(path.stat().st_ino, 0)
            os.truncate(path, min(sure, path.stat().st_size))


def _work_and_die(event: int, below: Path, work: Callable[[], None], writing: int) -> None:
    left = [event]
    inside = str(below)

    def tell(*line: object) -> None:
        os.write(writing, (json.dumps(line) + "\n").encode())

    def count() -> None:
        if left[0] == 0:
            os._exit(9)
        left[0] -= 1

    def hear(name: str, arguments: tuple[Any, ...]) -> None:
        if not name.startswith(WATCHED) or not arguments:
            return
        paths = [os.fspath(each) for each in arguments[:2] if isinstance(each, str | os.PathLike)]
        if name in DELETIONS or any(each.startswith(inside) for each in paths):
            count()
            if name == "os.rename":
                tell("rename", *paths)

    sync = os.fsync

    def fsync(descriptor: int) -> None:
        count()
        sync(descriptor)
        about = os.fstat(descriptor)
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):  # noqa: PTH112
            tell("folder", os.readlink(f"/proc/self/fd/{descriptor}"))  # noqa: PTH115
        else:
            tell("file", about.st_ino, about.st_size)

    os.fsync = fsync
    sys.addaudithook(hear)
    try:
        work()
    except BaseException:
        os._exit(1)
    os._exit(0)
