"""The processor of this machine, as Linux describes it."""

import itertools
import platform
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
