"""Writes requirements.lock: the SHA-256 of every wheel that a server is installed from.

    python scripts/lock.py

The versions are those of constraints.txt; the packages are what pyproject.toml names for the extras
of ``EXTRAS``, and what these need, as those that are installed say themselves. None of them needs
PyTorch, whose builds for CPUs and for each CUDA version have one version number and different
hashes.
"""

import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements.lock"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PLATFORMS = {
    machine: [f"manylinux_2_{minor}_{machine}" for minor in (17, 26, 27, 28)]
    + [f"manylinux2014_{machine}"]
    for machine in ("x86_64", "aarch64")
}
EXTRAS = ("fast", "documents", "serve")
HEADER = """\
# Every wheel of the extras {extras}, by its SHA-256, for CPython
# {pythons} on Linux ({machines}). Written by scripts/lock.py; the
# versions are those of constraints.txt.
#
#   pip install --require-hashes --no-deps -r requirements.lock
#   pip install --no-deps .
"""


def report(arguments: list[str]) -> list[dict[str, Any]]:
    """Return the packages that pip would install, each with the file it would take."""
    # The index alone, no folder of one's own builds: those have other hashes. No name of an index
    # stands here; pip knows its own, and PIP_INDEX_URL may name another.
    local = ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS")
    environment = {key: value for key, value in os.environ.items() if key not in local}
    environment["PIP_CONFIG_FILE"] = os.devnull
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "-q", "--dry-run", "--ignore-installed"]
        subprocess.run(  # noqa: S603  # our own arguments
            [*command, "--report", str(path), *arguments], check=True, env=environment, cwd=ROOT
        )
        installed: list[dict[str, Any]] = json.loads(path.read_text())["install"]
        return installed


def normalized(name: str) -> str:
    """A package's name as all its spellings are compared."""
    return re.sub(r"[-_.]+", "-", name).lower()


def needed_packages() -> set[str]:
    """Return the packages that the extras need, as the installed packages declare them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = project["optional-dependencies"]
    waiting = [*project["dependencies"], *(line for extra in EXTRAS for line in optional[extra])]

    seen: set[tuple[str, tuple[str, ...]]] = set()
    while waiting:
        requirement = Requirement(waiting.pop())
        step = (normalized(requirement.name), ("", *sorted(requirement.extras)))
        if step in seen:
            continue
        seen.add(step)
        for line in importlib.metadata.requires(requirement.name) or []:
            marker = Requirement(line).marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in step[1]):
                waiting.append(line)
    return {name for name, _ in seen}


def read_pins(path: Path) -> dict[str, str]:
    """The versions of a constraints file by normalized name."""
    found = re.findall(r"^([\w.-]+)==(\S+)", path.read_text(), re.MULTILINE)
    return {normalized(name): version for name, version in found}


def main() -> None:
    """Ask pip for each version of Python and each kind of machine."""
    pins = read_pins(ROOT / "constraints.txt")
    versions = {name: pins[name] for name in sorted(needed_packages())}
    wanted = [f"{name}=={version}" for name, version in versions.items()]
    hashes: dict[str, set[str]] = {name: set() for name in versions}
    with tempfile.TemporaryDirectory() as target:
        for python in PYTHONS:
            for tags in PLATFORMS.values():
                options = ["--no-deps", "--only-binary=:all:", "--target", target]
                options += ["--python-version", python, "--implementation", "cp"]
                options += [part for tag in tags for part in ("--platform", tag)]
                for each in report([*options, *wanted]):
                    name = normalized(each["metadata"]["name"])
                    hashes[name].add(each["download_info"]["archive_info"]["hashes"]["sha256"])

    listed = {"extras": EXTRAS, "pythons": PYTHONS, "machines": PLATFORMS}
    lines = [HEADER.format(**{name: ", ".join(each) for name, each in listed.items()})]
    for name, version in versions.items():
        found = "".join(f" \\\n    --hash=sha256:{each}" for each in sorted(hashes[name]))
        lines.append(f"{name}=={version}{found}\n")
    LOCK.write_text("".join(lines))
    print(f"wrote {LOCK.name}: {len(versions)} packages", file=sys.stderr)


if __name__ == "__main__":
    main()
