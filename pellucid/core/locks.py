"""The lock file of a folder that one process at a time works in.

The kernel holds the lock and releases it when the process ends, however it ends. The text of the
file only names the holder.
"""

import os
import socket
from pathlib import Path

from pellucid.core import system
from pellucid.core.errors import LockedError, UnsupportedSystemError
from pellucid.core.files import write_errors

_MOST_BYTES = 400
"""The number of bytes of a holder's name that are read; a host name has 255 at most."""


def take_lock(path: Path) -> int:
    """Hold the lock file ``path`` and return its descriptor; closing it releases the lock.

    Raises LockedError naming the process that holds it, WriteError if it cannot be opened,
    UnsupportedSystemError on Windows.
    """
    if system.LACKS_POSIX:
        raise UnsupportedSystemError("training")
    with write_errors(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            # Without waiting: a training run takes hours, and the user should know at once.
            system.lock(descriptor)
        except BlockingIOError:
            raise locked_error(path, _holder(descriptor)) from None

        # The first line counts: a longer name that stood here before may end after it.
        line = f"pid {os.getpid()} on host {socket.gethostname()}\n"
        with write_errors(path):
            os.pwrite(descriptor, line.encode(), 0)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def lock_holder(path: Path) -> str | None:
    """The name of the process that holds the lock file ``path``, or None. Writes nothing."""
    try:
        descriptor = system.open_to_read(path, follows_links=True)
    except OSError:
        return None
    try:
        # A shared lock, so that two processes that only look do not take each other for the holder.
        system.lock(descriptor, shared=True)
    except BlockingIOError:
        return _holder(descriptor)
    except OSError:
        return None
    finally:
        os.close(descriptor)  # this releases a lock that was free
    return None


def locked_error(path: Path, holder: str) -> LockedError:
    """Return the error that says that ``holder`` holds the lock file ``path``."""
    return LockedError(f"run folder {path.parent} is locked by {holder}")


def _holder(descriptor: int) -> str:
    return system.read_at(descriptor, _MOST_BYTES, 0).decode(errors="replace").partition("\n")[0]
