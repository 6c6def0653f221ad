"""The processor of this machine, as Linux describes it, and how many threads to use on it."""

import itertools
import os
import platform
import sys
from pathlib import Path

_DESCRIPTION = Path("/proc/cpuinfo")
_MOST_LINES = 100


def processor_fields() -> dict[str, str]:
    """Return Linux's description of the first processor, such as "model name" and "flags".

    Empty where it says nothing, as on other systems.
    """
    fields: dict[str, str] = {}
    try:
        with _DESCRIPTION.open(encoding="utf-8", errors="replace") as file:
            for line in itertools.islice(file, _MOST_LINES):
                name, _, value = line.partition(":")
                fields.setdefault(name.strip(), value.strip())
    except OSError:
        pass
    return fields


def processor_name() -> str:
    """The name of the processor, whose instructions decide how sums are rounded."""
    return processor_fields().get("model name") or platform.processor() or platform.machine()


def thread_count() -> int:
    """Return the number of threads that torch may use.

    Without torch the default that torch would take: ``OMP_NUM_THREADS``, or the physical cores that
    this process may use.
    """
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "get_num_threads"):  # else it is being imported
        return int(torch.get_num_threads())
    # OpenMP allows a list, with a number for each level of nesting
    named = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if named.isdecimal() and int(named) > 0:
        return int(named)
    return _physical_cores()


def _physical_cores() -> int:
    """The physical cores that this process may use; two threads of one core count once."""
    try:
        numbers = os.sched_getaffinity(0)
        siblings = [
            Path(f"/sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list").read_text()
            for number in numbers
        ]
    except (AttributeError, OSError):  # not Linux, or a container that does not show them
        return os.cpu_count() or 1
    return len(set(siblings))
