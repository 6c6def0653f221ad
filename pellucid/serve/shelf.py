"""The documents that a server keeps: in memory, or for several workers in a folder they share.

Every worker takes the next document that waits, whichever worker was sent it, so that none is lost
with its worker before it has begun, and each finds the states and translations of all.
"""

import collections
import contextlib
import dataclasses
import json
import os
import re
import secrets
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pellucid.core import system
from pellucid.core.files import write_errors
from pellucid.decoding.warnings import WarningKind

_KEY = re.compile(r"[A-Za-z0-9_-]{16,64}")
"""The form of a key; anything else would be a path of a stranger."""
_RECORD, _DATA, _OWNER = ".json", ".data", ".owner"
_OWNED = re.compile(r"\.(?P<writes>[0-9a-f]{16})-[0-9a-f]{16}|(?P<is>[0-9a-f]{16})\.owner")
"""The file that a process is writing, or the lock that says that it lives."""

State = Literal["waiting", "running", "done", "failed"]


def new_key() -> str:
    """The name of a new document, which nobody can guess."""
    return secrets.token_urlsafe(24)


@dataclasses.dataclass(frozen=True)
class Order:
    """A document, and what its client wants."""

    key: str
    client: str
    """The client who sent it; clients take turns."""
    model: str | None
    """The name of the model; None is the first one."""
    name: str
    """The name of the file."""
    columns: tuple[str, ...] = ()
    keep_numbers: bool = False
    guard_cells: bool = False
    glossary: str | None = None
    below: float | None = None
    doubtful: Literal["mark", "leave"] = "mark"


@dataclasses.dataclass(frozen=True)
class Remarks:
    """Remarks for the reader of a translated document."""

    warnings: dict[WarningKind, int]
    """How many segments have a warning of each kind."""
    notes: list[str]


@dataclasses.dataclass
class Record:
    """An order and how far it is."""

    order: Order
    owner: str
    """The worker that translates it; empty while it waits."""
    since: float
    """When it was sent, on ``time.monotonic``, which all processes of a machine share."""
    state: State = "waiting"
    until: float | None = None
    """When it is forgotten; None before it has ended."""
    done: int = 0
    total: int = 0
    """Sentences."""
    detail: str | None = None
    """Why it failed."""
    warnings: dict[WarningKind, int] = dataclasses.field(default_factory=dict)
    notes: list[str] = dataclasses.field(default_factory=list)
    is_fetched: bool = False

    @property
    def has_ended(self) -> bool:
        """Whether it is done, or has failed."""
        return self.state in ("done", "failed")

    @property
    def gives_way(self) -> bool:
        """Whether it may be forgotten when there is no room for another."""
        return self.state == "failed" or self.is_fetched


class MemoryFiles:
    """The documents of one process, which end with it."""

    owner = "this"
    """The name of this process, as long as it lives."""

    def __init__(self) -> None:
        self._contents: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def is_alive(self, owner: str) -> bool:
        """Always: there is only one process."""
        return owner == self.owner

    def locked(self) -> contextlib.AbstractContextManager[object]:
        """One thread at a time."""
        return self._lock

    def names(self) -> list[str]:
        """The names of what is kept."""
        return list(self._contents)

    def read(self, name: str) -> bytes:
        """A content. Raises FileNotFoundError."""
        try:
            return self._contents[name]
        except KeyError:
            raise FileNotFoundError(name) from None

    def write(self, name: str, content: bytes) -> None:
        """Keep a content."""
        self._contents[name] = content

    def remove(self, name: str) -> None:
        """Forget a content."""
        self._contents.pop(name, None)

    def remove_abandoned(self) -> None:
        """Nothing: what is in memory ends with its process."""


class FolderFiles:
    """Documents in a folder of several processes; only their user can read them."""

    def __init__(self, folder: Path) -> None:
        """To be made in the process that uses it: a fork has another name."""
        self._folder = folder
        self.owner = secrets.token_hex(8)
        # The kernel releases the lock when this process ends, however it ends.
        self._held = self._open_lock(self.owner + _OWNER)
        system.lock(self._held, waits=True)

    def is_alive(self, owner: str) -> bool:
        """Whether the process with this name holds its lock."""
        if owner == self.owner:
            return True
        try:
            descriptor = system.open_to_read(self._folder / (owner + _OWNER))
        except FileNotFoundError:
            return False
        try:
            system.lock(descriptor, shared=True)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """One thread of one process at a time."""
        descriptor = self._open_lock("lock")
        try:
            system.lock(descriptor, waits=True)
            yield
        finally:
            os.close(descriptor)

    def _open_lock(self, name: str) -> int:
        with write_errors(self._folder):
            return os.open(self._folder / name, os.O_RDWR | os.O_CREAT, 0o600)

    def names(self) -> list[str]:
        """The names of what is kept, without files that are being written."""
        return [each.name for each in self._folder.iterdir() if not each.name.startswith(".")]

    def read(self, name: str) -> bytes:
        """A file. Raises FileNotFoundError."""
        return (self._folder / name).read_bytes()

    def write(self, name: str, content: bytes) -> None:
        """Write a file in one step, without waiting for the disk: it need not survive the machine.

        Raises WriteError.
        """
        path = self._folder / name
        temporary = path.with_name(f".{self.owner}-{secrets.token_hex(8)}")
        with write_errors(path):
            try:
                descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(descriptor, "wb") as file:
                    file.write(content)
                temporary.replace(path)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise

    def remove(self, name: str) -> None:
        """Remove a file."""
        (self._folder / name).unlink(missing_ok=True)

    def remove_abandoned(self) -> None:
        """Remove the names of processes that have ended, and the files that they were writing."""
        for path in self._folder.iterdir():
            found = _OWNED.fullmatch(path.name)
            if found and not self.is_alive(found["writes"] or found["is"]):
                path.unlink(missing_ok=True)


class Shelf:
    """The documents, each with a record of how far it is; may be used from any thread."""

    def __init__(self, files: MemoryFiles | FolderFiles, *, seconds: float, most: int) -> None:
        """``seconds``: how long one that has ended is kept. ``most``: how many are kept."""
        self._files, self._seconds, self._most = files, seconds, most

    def add(self, order: Order, data: bytes) -> bool:
        """Keep a new document that waits; False if there are as many already as are kept.

        Of these the oldest give way that have failed or were fetched. Raises WriteError.
        """
        with self._files.locked():
            self._sweep()
            records = sorted(self._records(), key=lambda each: each.since)
            old = [each for each in records if each.gives_way]
            for record in old[: max(0, len(records) - self._most + 1)]:
                self._remove(record.order.key)
                records.remove(record)
            if len(records) >= self._most:
                return False

            # The data first: whoever finds the record may take it.
            self._files.write(order.key + _DATA, data)
            self._write(Record(order, "", time.monotonic()))
            return True

    def take(self, most_of_client: int) -> tuple[Order, bytes] | None:
        """The document whose turn it is, which this process translates from now on, and its data.

        Of the clients with less than ``most_of_client`` turns here the one with the fewest comes
        first. None if no document waits. Raises WriteError.
        """
        with self._files.locked():
            self._sweep()
            records = self._records()
            turns = collections.Counter(
                each.order.client
                for each in records
                if each.state == "running" and each.owner == self._files.owner
            )

            waiting = [
                each
                for each in records
                if each.state == "waiting" and turns[each.order.client] < most_of_client
            ]

            if not waiting:
                return None
            record = min(waiting, key=lambda each: (turns[each.order.client], each.since))

            name = record.order.key + _DATA
            data = self._files.read(name)
            record.state, record.owner = "running", self._files.owner
            self._write(record)
            self._files.remove(name)
            return record.order, data

    def note_progress(self, key: str, done: int, total: int) -> None:
        """Note how many sentences of a document are translated. Raises WriteError."""
        with self._changing(key) as record:
            if record is not None:
                record.done, record.total = done, total

    def finish(self, key: str, translation: bytes, remarks: Remarks) -> None:
        """Keep the translation of a document, unless it was dropped. Raises WriteError."""
        with self._changing(key) as record:
            if record is not None:
                self._files.write(key + _DATA, translation)
                record.state = "done"
                record.warnings, record.notes = remarks.warnings, remarks.notes
                record.until = time.monotonic() + self._seconds

    def fail(self, key: str, detail: str) -> None:
        """Note why a document has failed. Its client has as long to ask for the reason."""
        with self._changing(key) as record:
            if record is not None:
                record.state, record.detail = "failed", detail
                record.until = time.monotonic() + self._seconds

    def note_fetched(self, key: str) -> None:
        """Note that a document that is done was fetched. Raises WriteError."""
        with self._changing(key) as record:
            if record is not None:
                record.is_fetched = True

    def get(self, key: str) -> Record | None:
        """How far a document is; None if there is none."""
        record = self._read(key) if _KEY.fullmatch(key) else None
        return None if record is None or self._is_old(record) else record

    def data(self, key: str) -> bytes:
        """The translation of a document that is done. Raises FileNotFoundError."""
        return self._files.read(key + _DATA)

    def remove(self, key: str) -> None:
        """Forget a document."""
        with self._files.locked():
            self._remove(key)

    def sweep(self) -> None:
        """Forget what nobody has fetched in time, and what dead processes left."""
        with self._files.locked():
            self._sweep()

    def _sweep(self) -> None:
        self._files.remove_abandoned()
        for record in self._records():
            if self._is_old(record):
                self._remove(record.order.key)
            elif record.has_ended and record.until is None:  # its process has ended
                record.until = time.monotonic() + self._seconds
                self._write(record)

    def _is_old(self, record: Record) -> bool:
        return record.until is not None and time.monotonic() > record.until

    def _remove(self, key: str) -> None:
        for ending in (_RECORD, _DATA):
            self._files.remove(key + ending)

    @contextlib.contextmanager
    def _changing(self, key: str) -> Iterator[Record | None]:
        """The record of a document, written after the block; None of one that was dropped."""
        with self._files.locked():
            record = self._read(key)
            yield record
            if record is not None:
                self._write(record)

    def _records(self) -> list[Record]:
        names = [name for name in self._files.names() if name.endswith(_RECORD)]
        found = [self._read(name.removesuffix(_RECORD)) for name in names]
        return [each for each in found if each is not None]

    def _read(self, key: str) -> Record | None:
        try:
            table: dict[str, Any] = json.loads(self._files.read(key + _RECORD))
        except FileNotFoundError:
            return None
        order = table["order"]
        record = Record(
            **{**table, "order": Order(**{**order, "columns": tuple(order["columns"])})}
        )
        if record.state == "running" and not self._files.is_alive(record.owner):
            record.state = "failed"
            record.detail = "the process that translated it has ended; send it again"
        return record

    def _write(self, record: Record) -> None:
        content = json.dumps(dataclasses.asdict(record)).encode()
        self._files.write(record.order.key + _RECORD, content)
