"""The memory of a process and all its children, as /proc tells it while they run."""

import dataclasses
import threading
from collections.abc import Iterator
from pathlib import Path


@dataclasses.dataclass(frozen=True)
class Memory:
    """Of a process and its children together, in MiB."""

    anonymous: int
    """RssAnon: what was allocated."""
    mapped: int
    """RssFile: what is mapped from files; the system takes it back when it needs the room."""
    processes: int


class Watch:
    """Looks at the memory of a process tree twenty times a second while the block lasts."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.most = Memory(0, 0, 0)

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._end.wait(0.05):
            now = memory_of(self._pid)
            pairs = zip(dataclasses.astuple(self.most), dataclasses.astuple(now), strict=True)
            self.most = Memory(*(max(pair) for pair in pairs))


def memory_of(pid: int) -> Memory:
    """What /proc says now."""
    found = [figures for each in (pid, *_children_of(pid)) if (figures := _status(each))]
    return Memory(
        sum(figures["RssAnon"] for figures in found) // 1024,
        sum(figures["RssFile"] for figures in found) // 1024,
        len(found),
    )


def _children_of(pid: int) -> Iterator[int]:
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        words = [word for each in threads for word in (each / "children").read_text().split()]
    except OSError:
        return
    for child in map(int, words):
        yield child
        yield from _children_of(child)


def _status(pid: int) -> dict[str, int]:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return {}
    wanted = ("RssAnon", "RssFile")
    figures = {
        line.partition(":")[0]: int(line.split()[1]) for line in lines if line.startswith(wanted)
    }
    return figures if len(figures) == len(wanted) else {}
