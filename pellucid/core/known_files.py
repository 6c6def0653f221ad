"""The hashes of large input files, remembered while the files do not change."""

import contextlib
import json
import time
from pathlib import Path

from pellucid.core.errors import WriteError
from pellucid.core.files import sha256_of, write_file

NAME = "inputs.json"
_WORTH_KNOWING = 1 << 26
"""Bytes; a smaller file is hashed each time, in less than a tenth of a second."""
_SETTLED = 2_000_000_000
"""Nanoseconds since the last change before a file's times can be trusted. File systems round times
to two seconds at worst, so a file that changes twice within them keeps its times."""


class KnownFiles:
    """Hashes of files, kept in a folder beside what was made of the files.

    A file counts as unchanged while its size, both its times, its inode and its device are the
    same. Programs cannot set the time of the last status change (ctime), so a file that was
    replaced, or written to and dated back, is noticed. Bytes that decay on the disk are not; the
    store made of them has hashes of its own.
    """

    def __init__(
        self, folder: Path, *, worth_knowing: int = _WORTH_KNOWING, settled: int = _SETTLED
    ) -> None:
        self._path = folder / NAME
        self._worth_knowing, self._settled = worth_knowing, settled
        self._known: dict[str, tuple[list[int], str]] = {}

        # A damaged or missing table costs time, nothing else: the files are hashed again.
        with contextlib.suppress(OSError, ValueError, TypeError):
            self._known = dict(json.loads(self._path.read_bytes()))

    def sha256_of(self, path: Path) -> str:
        """The SHA-256 of a file, like ``core.files.sha256_of``; a known file is not read."""
        before = _state_of(path)
        if path.stat().st_size < self._worth_knowing:
            return sha256_of(path)

        key = str(path.resolve())
        state, known = self._known.get(key, (None, ""))
        if state == before:
            return known

        # Remembered only if the file did not change while it was hashed, nor so shortly before
        # that a further change might leave its times as they are.
        began = time.time_ns()
        digest = sha256_of(path)
        is_settled = began - max(path.stat().st_mtime_ns, path.stat().st_ctime_ns) > self._settled
        if is_settled and _state_of(path) == before:
            self._known[key] = before, digest
            self._save()

        return digest

    def _save(self) -> None:
        with contextlib.suppress(WriteError, OSError):  # the file is then hashed again next time
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_file(self._path, json.dumps(self._known).encode())


def _state_of(path: Path) -> list[int]:
    """Return the facts about a file that change when its content does."""
    about = path.stat()
    return [about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino, about.st_dev]
