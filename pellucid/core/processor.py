"""The name of this machine's processor, and how many threads to use on it."""

import os
import platform
import sys

from pellucid.core import system


def processor_name() -> str:
    """The name of the processor, whose instructions decide how sums are rounded."""
    return system.processor_fields().get("model name") or platform.processor() or platform.machine()


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
    return system.physical_cores()
