"""The lock file of a folder that one process at a time works in.

The kernel holds the lock and releases it when the process ends, however it ends. The text of the
file only names the holder. Whoever made the folder also chose what its ``.lock`` is: a link to a
file of the user, perhaps. So a link is never followed, and a file is never truncated or overwritten
unless an earlier holder wrote it.
"""

import fcntl
import os
import re
import socket
import stat
from pathlib import Path

from pellucid.core.errors import LockedError, OutputExistsError
from pellucid.core.files import write_errors

_MOST_BYTES = 400
"""The number of bytes of a holder's name that are read; a host name has 255 at most."""
_HOLDER = re.compile(rb"pid \d+ on host [!-~]+\n")


def take_lock(path: Path) -> int:
    """Hold the lock file ``path`` and return its descriptor; closing it releases the lock.

    Raises LockedError naming the process that holds it, OutputExistsError if ``path`` is not a lock
    file that Pellucid made, WriteError if it cannot be opened.
    """
    # Looked at first for the better message: O_NOFOLLOW alone would raise a bare ELOOP.
    if path.is_symlink():
        raise _foreign(path)
    with write_errors(path):  # a link made since is still not followed
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    try:
        # Looked at through the descriptor, so that the file cannot be exchanged in between.
        _refuse_foreign(descriptor, path)
        try:
            # Without waiting: a training run takes hours, and the user should know at once.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
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
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        # A shared lock, so that two processes that only look do not take each other for the holder.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
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
    named = _HOLDER.match(_first_bytes(descriptor))
    return named[0].decode().strip() if named else "another process"


def _first_bytes(descriptor: int) -> bytes:
    return os.pread(descriptor, _MOST_BYTES, 0)


def _refuse_foreign(descriptor: int, path: Path) -> None:
    about = os.fstat(descriptor)

    # A second hard link might be a file of the user, who would not want it to be written to.
    is_own_file = stat.S_ISREG(about.st_mode) and about.st_nlink == 1
    if not is_own_file or (about.st_size and not _HOLDER.match(_first_bytes(descriptor))):
        raise _foreign(path)


def _foreign(path: Path) -> OutputExistsError:
    return OutputExistsError(
        f"{path} must be a lock file that Pellucid made, and is a link or another file",
        hint="choose another --out, or remove it if nothing else needs it",
    )
