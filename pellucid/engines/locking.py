"""A folder that one process at a time works in."""

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

_LOCK_FILE = ".lock"


@contextlib.contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Make the folder and hold it alone; waits for whoever holds it.

    Raises OSError if it cannot be made, or if it is a link: whoever packed it chose where to.
    """
    if folder.is_symlink():
        raise OSError(errno.ELOOP, "it is a link", str(folder))
    folder.mkdir(parents=True, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
    descriptor = os.open(folder / _LOCK_FILE, flags, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
