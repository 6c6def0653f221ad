"""A file that takes hours to write: written in blocks, and continued after a kill."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Self

from pellucid.core import system
from pellucid.core.errors import (
    ConfigError,
    CorruptError,
    LockedError,
    OutputExistsError,
    UnsupportedSystemError,
)
from pellucid.core.files import name_with_room, write_errors, write_file


class GrowingFile:
    """Writes ``path``, which appears only when it is complete.

    Until then its lines are in ``NAME.partial``, and ``NAME.partial.json`` records how many of its
    bytes are synced and what they are made from (``origin``). If the process is killed, the synced
    blocks stay, and another ``GrowingFile`` with the same origin continues after them.

    Raises OutputExistsError if ``path`` or an unknown ``NAME.partial`` exists, LockedError if
    another process writes it, ConfigError naming every difference if it was started with another
    origin, CorruptError if synced bytes are missing, WriteError if the disk does not take it,
    UnsupportedSystemError on Windows.
    """

    def __init__(self, path: Path, origin: Mapping[str, Any]) -> None:
        self.path = path
        self.line_count = 0
        """How many lines are synced."""
        # As it will be read back: JSON turns tuples into lists.
        self._origin = json.loads(json.dumps(dict(origin)))
        name = name_with_room(path.name, len(".partial.json"))
        self._partial = path.with_name(f"{name}.partial")
        self._state = path.with_name(f"{name}.partial.json")
        self._size = 0

    def __enter__(self) -> Self:
        """Start or continue; what a killed process wrote after its last block is cut off."""
        if system.LACKS_POSIX:
            raise UnsupportedSystemError("an output that can be continued")
        if not self._partial.exists():
            # Killed within ``finish`` or ``finish_into``: a state without its file is of nothing.
            self._state.unlink(missing_ok=True)
        if self.path.exists():
            raise OutputExistsError(
                f"{self.path} is already there", hint="choose another --out, or remove it"
            )
        with write_errors(self._partial):
            # Appending, so that nothing is lost if another process turns out to be at work in it.
            self._file: BinaryIO = self._partial.open("ab")

        try:
            # Locked before the state is read: another process may still be moving its end.
            self._lock()
            self._find_place()
            with write_errors(self._partial):
                self._file.truncate(self._size)
        except BaseException:
            self._file.close()
            raise

        return self

    def __exit__(self, *_: object) -> None:
        """Close the file; if it is still empty, remove it."""
        # Removed while the lock is held, before another process can find it.
        if self._size == 0 and self._partial.exists() and not self.path.exists():
            self._partial.unlink()
            self._state.unlink(missing_ok=True)
        self._file.close()

    def append(self, content: bytes, line_count: int) -> None:
        """Append a block of ``line_count`` lines, synced when this returns. Raises WriteError."""
        with write_errors(self._partial):
            self._file.write(content)
            self._file.flush()
            system.sync(self._file.fileno())

        # Noted only after the sync: the state must never promise bytes that a crash can take away.
        self._size += len(content)
        self.line_count += line_count
        self._note()

    def finish_into(self, write: Callable[[BinaryIO], None]) -> None:
        """Hand the complete lines to ``write``, and remove them. Raises WriteError.

        For an output that cannot grow, such as a packed one: ``path`` then only gives the partial
        file its name. If the process is killed while ``write`` works, the next one repeats that.
        """
        with write_errors(self._partial):
            system.sync(self._file.fileno())
            with self._partial.open("rb") as lines:
                write(lines)
            self._partial.unlink()
            self._state.unlink(missing_ok=True)

    def finish(self) -> None:
        """Rename the complete file to ``path``. Raises WriteError."""
        with write_errors(self.path):
            system.sync(self._file.fileno())

            # A rename and no copy: the file is whole from the first moment that it has its name.
            self._partial.rename(self.path)
            system.sync_folder(self.path.parent)
            self._state.unlink(missing_ok=True)

    def _lock(self) -> None:
        """Lock the partial file; the kernel releases the lock however this process ends."""
        try:
            system.lock(self._file.fileno())
        except BlockingIOError:
            raise LockedError(f"another process writes {self._partial}") from None

    def _find_place(self) -> None:
        """Read from the state how much of the partial file is valid."""
        # From the open file, not from its name, which may mean another file by now.
        size = os.fstat(self._file.fileno()).st_size
        if not self._state.exists():
            if size:
                raise OutputExistsError(
                    f"{self._partial} is in the way, and nothing tells what it is",
                    hint="remove it, or choose another --out",
                )
            self._note()
            return

        try:
            state = json.loads(self._state.read_bytes())
            origin, certain, lines = state["origin"], state["bytes"], state["lines"]
        except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
            raise CorruptError(
                f"{self._state} is damaged: {error!r}", hint=f"remove it and {self._partial}"
            ) from error
        self._refuse_other(origin)

        # Synced bytes are gone: the disk lied, or somebody cut the file.
        if size < certain:
            raise CorruptError(
                f"{self._partial} should have {certain} bytes or more, has {size}",
                hint=f"remove it and {self._state.name} to start from the beginning",
            )
        self._size, self.line_count = certain, lines

    def _refuse_other(self, origin: dict[str, Any]) -> None:
        own = self._origin
        differing = sorted(k for k in origin.keys() | own.keys() if origin.get(k) != own.get(k))
        if differing:
            changes = "; ".join(f"{key}: {origin.get(key)} -> {own.get(key)}" for key in differing)
            raise ConfigError(
                f"{self.path} was begun otherwise: {changes}",
                hint=f"repeat the command it was begun with, or remove {self._partial} and"
                f" {self._state.name}",
            )

    def _note(self) -> None:
        state = {"lines": self.line_count, "bytes": self._size, "origin": self._origin}
        write_file(self._state, json.dumps(state).encode())
