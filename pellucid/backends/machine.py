"""Findings about this machine and installation, and what each means; needs no PyTorch.

Nothing of a user's text or models is in it, so it may stand in a report of an error.
"""

import dataclasses
import platform

from pellucid.backends.ctranslate2.support import int8_problem
from pellucid.core import system
from pellucid.core.installation import (
    TORCH_EXTRA,
    cpu_index,
    install_command,
    kind_of_installation,
    requirements,
    version_of,
)
from pellucid.core.system import processor_name, thread_count
from pellucid.core.version import __version__

_INSTRUCTIONS = {
    "AVX2": ("avx2",),
    "AVX-512": ("avx512f",),
    "VNNI": ("avx512_vnni", "avx_vnni"),
    "bfloat16": ("avx512_bf16", "amx_bf16"),
}
"""Instructions that engines use, by any of their flags in Linux's description."""
_IN_ANOTHER = ("all", "cpu", "cuda")
"""Extras that hold others."""
_SMALL = 2.0
"""GiB. PyTorch and the demo take about one."""


@dataclasses.dataclass(frozen=True)
class Finding:
    """One fact about the machine or the installation, and what it means."""

    name: str
    found: str
    meaning: str


def examine_machine() -> list[Finding]:
    """Describe the machine and the installation; uses no network and changes nothing."""
    return [
        Finding(
            "pellucid",
            f"{__version__}, Python {platform.python_version()}, {platform.platform()}",
            f"installation: {kind_of_installation()}; an extra is added by"
            f" {install_command('EXTRA')}",
        ),
        _torch(version_of("torch")),
        _processor(),
        _memory(),
        *_engines(),
        *_extras(),
    ]


def _torch(version: str | None) -> Finding:
    has_card = system.has_nvidia_card()
    card = "an NVIDIA card" if has_card else "no NVIDIA card"
    if version is None:
        return Finding("torch", f"missing; {card}", f"to train: {install_command(TORCH_EXTRA)}")

    is_for_cpu = version.endswith("+cpu") or not system.IS_LINUX
    if is_for_cpu == has_card and system.IS_LINUX:
        meaning = (
            "the card is not used: this is the build for CPUs"
            if has_card
            else "most of its gigabytes are CUDA, which is not used; the build for CPUs is a"
            f" fifth of it: pip install torch --index-url {cpu_index()}"
        )
    else:
        meaning = "the right build for this machine"
    return Finding("torch", f"{version}; {card}", meaning)


def _processor() -> Finding:
    flags = system.processor_fields().get("flags", "").split()
    known = [name for name, any_of in _INSTRUCTIONS.items() if set(any_of) & set(flags)]
    problem = int8_problem()
    return Finding(
        "processor",
        f"{processor_name()}, {system.usable_cores()} cores, {thread_count()} threads by default;"
        f" {', '.join(known) or 'none of ' + ', '.join(_INSTRUCTIONS)}",
        f"CTranslate2's int8 {problem}" if problem else "CTranslate2 may compute in int8",
    )


def _memory() -> Finding:
    memory, limit = system.memory(), system.memory_limit()
    if memory is None:
        return Finding("memory", "unknown: this system does not say", "")

    found, room = f"{memory.total / 2**30:.1f} GiB", memory.total
    if memory.available is not None:
        found += f", {memory.available / 2**30:.1f} GiB of them free"
        room = memory.available
    if limit is not None and limit < memory.total:
        found += f"; this container may use {limit / 2**30:.1f} GiB"
        room = min(room, limit)
    small = room < _SMALL * 2**30
    return Finding("memory", found, "little for training" if small else "enough for small models")


def _engines() -> list[Finding]:
    """The programs that translate, the fastest first."""
    ways = (
        ("kernels", "pellucid-kernels", "in 8 bits", "pip install ./kernels, in a checkout"),
        ("ctranslate2", "ctranslate2", "most models", install_command("fast")),
        ("torch", "torch", "every model and search", install_command(TORCH_EXTRA)),
    )
    return [
        Finding(f"engine {name}", version or "missing", what if version else f"for it: {command}")
        for name, package, what, command in ways
        for version in [version_of(package)]
    ]


def _extras() -> list[Finding]:
    findings = []
    for name, packages in sorted(requirements()[1].items()):
        missing = [each for each in packages if version_of(each) is None]
        if name not in _IN_ANOTHER:
            found = f"missing {', '.join(missing)}" if missing else "complete"
            findings.append(
                Finding(f"extra {name}", found, install_command(name) if missing else "")
            )
    return findings
