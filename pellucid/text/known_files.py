"""The SHA-256 of large files that have not been touched since they were last hashed."""

import contextlib
import json
import time
from pathlib import Path

from pellucid.core.errors import WriteError
from pellucid.core.files import LARGEST_TABLE, read_plain, sha256_of, write_file

NAME = "inputs.json"
_WORTH_KNOWING = 1 << 26
"""Bytes; a smaller file is hashed each time, in less than a tenth of a second."""
_SETTLED = 2_000_000_000
"""Nanoseconds without a change before a file's times can be trusted: file systems keep them to two
seconds at worst, so a file may change twice within one of their ticks."""


class KnownFiles:
    """Hashes of files, kept in a folder beside what was made of them.

    A file counts as unchanged while its size, both its times, its inode and its device do. Its
    time of change cannot be set by programs, so a file that was replaced, or written to and dated
    back, is noticed; bytes that rot on the disk are not, and are not looked for: the store made of
    them has hashes of its own.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._known: dict[str, list[object]] = {}
        with contextlib.suppress(OSError, ValueError, RecursionError):
            table = json.loads(read_plain(self._path, LARGEST_TABLE))
            if isinstance(table, dict):
                self._known = {key: entry for key, entry in table.items() if len(entry) == 2}

    def sha256_of(self, path: Path) -> str:
        """The SHA-256 of a file, as ``core.files.sha256_of``, without reading it if it is known."""
        before = _state_of(path)
        if path.stat().st_size < _WORTH_KNOWING:
            return sha256_of(path)
        key = str(path.resolve())
        state, digest = self._known.get(key, [None, None])
        if state == before and isinstance(digest, str):
            return digest
        began = time.time_ns()
        digest = sha256_of(path)
        is_settled = began - max(path.stat().st_mtime_ns, path.stat().st_ctime_ns) > _SETTLED
        if is_settled and _state_of(path) == before:
            self._known[key] = [before, digest]
            self._save()
        return digest

    def _save(self) -> None:
        with contextlib.suppress(WriteError, OSError):  # then it is hashed again next time
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_file(self._path, json.dumps(self._known).encode())


def _state_of(path: Path) -> list[int]:
    about = path.stat()
    return [about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino, about.st_dev]
