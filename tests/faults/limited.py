"""Runs one case in a fork with limits on its time and memory, and tells what it took."""

import dataclasses
import json
import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path

import torch
from forks import fork

from pellucid.core.errors import PellucidError

MOST_SECONDS = 5
MOST_BYTES = 256 << 20
_MOST_WAITING = 60
"""Seconds by the clock: a pipe whose writer never comes takes no processor time."""
_BACKSTOP_BYTES = 2 << 30
"""Of address space on top: more than any case may use, and far from filling the machine."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a case ended."""

    error: str
    """The name of the exception; empty if there was none."""
    message: str
    seconds: float
    """Of the processor."""
    bytes: int
    """Resident memory at its highest, beyond what was there before."""
    is_ours: bool
    """Whether the exception is one of Pellucid's own."""

    @property
    def is_bounded(self) -> bool:
        return self.seconds < MOST_SECONDS and self.bytes < MOST_BYTES


def run_limited(case: Callable[[], object]) -> Outcome:
    """Fork, run ``case`` there, and return how it ended; a fork that dies is a failure."""
    reading, writing = os.pipe()
    child = fork()
    if child == 0:
        try:
            os.close(reading)
            os.write(writing, json.dumps(_measure(case)).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        report = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert report, f"the process ended with {status} before it could tell"
    return Outcome(**json.loads(report))


def _measure(case: Callable[[], object]) -> dict[str, object]:
    torch.set_num_threads(1)  # a fork has none of its parent's threads
    resource.setrlimit(resource.RLIMIT_CPU, (4 * MOST_SECONDS, 4 * MOST_SECONDS))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # not what a parent's test runner does then
    signal.alarm(_MOST_WAITING)
    space = _bytes_of("VmSize") + _BACKSTOP_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (space, space))
    Path("/proc/self/clear_refs").write_text("5")  # the highest mark begins here
    before, begin = _bytes_of("VmRSS"), _cpu_seconds()
    error, message, is_ours = "", "", False
    try:
        case()
    except BaseException as caught:  # every other one is a finding
        error, message = type(caught).__name__, str(caught)
        is_ours = isinstance(caught, PellucidError)
    return {
        "error": error,
        "message": message,
        "seconds": _cpu_seconds() - begin,
        "bytes": max(0, _bytes_of("VmHWM") - before),
        "is_ours": is_ours,
    }


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _bytes_of(key: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(key)
