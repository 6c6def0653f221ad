"""What takes seconds to make is made once for all workers of a run of the tests."""

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import side_by_side


def made_once(base: Path, name: str, make: Callable[[Path], object]) -> Path:
    """``make(path)`` has made ``path``, here or in another worker; to be read, never written.

    ``base`` is where pytest puts the temporary files of this worker.
    """
    folder = base.parent if side_by_side.RUN in os.environ else base
    path, is_made = folder / name, folder / f"{name}.made"
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_made.exists():
            shutil.rmtree(path, ignore_errors=True)  # what a worker left that failed
            make(path)
            is_made.touch()
    return path
