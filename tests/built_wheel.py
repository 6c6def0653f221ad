"""The wheel of the checkout, built once for all workers."""

import subprocess
import sys
from pathlib import Path

from made_once import made_once

ROOT = Path(__file__).parents[1]


def build(folder: Path) -> Path:
    """Build a wheel of the checkout into ``folder``."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    [wheel] = folder.glob("pellucid-*.whl")
    return wheel


def built_wheel(base: Path) -> Path:
    """A wheel to be read; ``base`` is where pytest puts the temporary files of this worker."""
    [wheel] = made_once(base, "wheel", build).glob("pellucid-*.whl")
    return wheel
