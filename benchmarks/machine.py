"""Where and with what a benchmark ran: goes into every result file."""

import datetime
import json
import os
import platform
import shlex
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
NOTES = "<!-- Notes: what follows is written by hand, and kept when the page is written again. -->"


def command() -> str:
    """Return the typed command, with the folders that only one machine has left out."""
    words = [Path(word).name if Path(word).is_absolute() else word for word in sys.argv]
    return shlex.join(["python", *words])


def describe(packages: tuple[str, ...] = ("torch", "numpy", "sentencepiece")) -> dict[str, Any]:
    """Machine, versions, commit and date, as plain values."""
    commit = _git("rev-parse", "--short", "HEAD")
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "cpu": _cpu_model(),
        "cores": cores(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "load_before": round(os.getloadavg()[0], 2),
        "system": platform.platform(),
        "python": platform.python_version(),
        "commit": commit + (" with changes" if _git("status", "--porcelain") else ""),
        "versions": {name: version(name) for name in ("pellucid", *packages)},
    }


def write_result(
    name: str, result: dict[str, Any], page: str, folder: Path = REPOSITORY / "benchmarks/results"
) -> None:
    """Write the figures and their page; notes below ``NOTES`` on the page that was there stay."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
    path = folder / f"{name}.md"
    _, mark, notes = (path.read_text() if path.exists() else "").partition(NOTES)
    path.write_text(page.rstrip("\n") + "\n" + (f"\n{mark}{notes}" if mark else ""))


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().split("\n"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"


def _git(*arguments: str) -> str:
    """What git answers; "unknown" in a copy of the files without their history."""
    done = subprocess.run(
        ["git", *arguments], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() if done.returncode == 0 else "unknown"
