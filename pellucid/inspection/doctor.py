"""Describes this machine and installation: versions, devices, threads and extras."""

import dataclasses
import importlib.metadata
import os
import platform
import re

import torch

_PACKAGE = "pellucid"


@dataclasses.dataclass(frozen=True)
class Extra:
    """An optional part of Pellucid and the packages it needs."""

    name: str
    versions: dict[str, str | None]
    """The installed version of each package; None if it is missing."""

    @property
    def is_complete(self) -> bool:
        """Whether every package is installed."""
        return all(version is not None for version in self.versions.values())


@dataclasses.dataclass(frozen=True)
class Installation:
    """Versions, devices, threads and extras."""

    versions: dict[str, str | None]
    """Python, Pellucid and the packages it always needs."""
    system: str
    devices: tuple[str, ...]
    """The CPU with its usable cores, and every accelerator that torch can use."""
    threads: dict[str, int | str]
    """The thread counts of torch, and the environment variables that set them."""
    extras: tuple[Extra, ...]


def examine_installation() -> Installation:
    """Describe this installation; uses no network and changes nothing."""
    core, extras = _requirements()
    return Installation(
        versions={
            "python": platform.python_version(),
            _PACKAGE: _version(_PACKAGE),
            **{name: _version(name) for name in core},
        },
        system=platform.platform(),
        devices=_devices(),
        threads=_threads(),
        extras=tuple(
            Extra(name, {package: _version(package) for package in packages})
            for name, packages in extras.items()
        ),
    )


def _requirements() -> tuple[list[str], dict[str, list[str]]]:
    """The packages that are always needed, and those of each extra."""
    try:
        # From the metadata of the installation, so that the list is that of pyproject.toml.
        lines = importlib.metadata.requires(_PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:  # run from a source tree, not installed
        return ["torch", "numpy"], {}

    core: list[str] = []
    extras: dict[str, list[str]] = {}
    for line in lines:
        # A requirement is a name, a version range and markers (PEP 508): `rich>=13; extra == "x"`.
        name = re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0]
        extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)['\"]", line)
        if extra is None:
            core.append(name)
        elif name != _PACKAGE:
            extras.setdefault(extra[1], []).append(name)
    return core, extras


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _devices() -> tuple[str, ...]:
    # The affinity, which containers and schedulers limit; cpu_count is that of the whole machine.
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    devices = [f"cpu: {usable} cores, {torch.backends.cpu.get_cpu_capability()}"]
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        devices.append(
            f"cuda:{index}: {properties.name}, {properties.total_memory / 2**30:.1f} GiB"
        )
    # Apple's GPUs; torch gives no name or size for them.
    if torch.backends.mps.is_available():
        devices.append("mps")
    return tuple(devices)


def _threads() -> dict[str, int | str]:
    threads: dict[str, int | str] = {
        "within one operation": torch.get_num_threads(),
        "between operations": torch.get_num_interop_threads(),
    }
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "CUDA_VISIBLE_DEVICES"):
        if variable in os.environ:
            threads[variable] = os.environ[variable]
    return threads
