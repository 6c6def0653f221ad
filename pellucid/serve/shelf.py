"""Documents that several workers of one server share: a folder of the process that started them.

The worker that took a document translates it; the others find its state and its translation here.
"""

import contextlib
import fcntl
import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pellucid.core.files import write_file

_KEY = re.compile(r"[A-Za-z0-9_-]{16,64}")
"""What a key looks like; anything else would be a path of a stranger."""
_ENDED = ("done", "failed")


class Shelf:
    """A folder with a file for the state of each document, and one for each translation."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def add(self, key: str, state: dict[str, Any], seconds: float, most: int) -> bool:
        """Keep a new document of this process; False if there are ``most`` already.

        Of these the oldest give way that have failed or were fetched.
        """
        with self._locked():
            self._sweep()
            found = {path: self._read(path) for path in self._folder.glob("*.json")}
            old = [path for path, content in found.items() if content and _gives_way(content)]
            old.sort(key=lambda path: (found[path] or {})["until"])
            for path in old[: max(0, len(found) - most + 1)]:
                self._remove(path.stem)
            if len(list(self._folder.glob("*.json"))) >= most:
                return False
            self.put(key, state, seconds)
            return True

    def put(self, key: str, state: dict[str, Any], seconds: float) -> None:
        """Write how far a document is; it is forgotten after ``seconds`` if it has ended."""
        content = {"state": state, "until": time.time() + seconds, "process": os.getpid()}
        write_file(self._folder / f"{key}.json", json.dumps(content).encode())

    def put_file(self, key: str, data: bytes) -> None:
        """Write a translated document."""
        write_file(self._folder / f"{key}.data", data)

    def note_fetched(self, key: str) -> None:
        """Note that a document that is done was fetched."""
        path = self._folder / f"{key}.json"
        # Locked, or one that another worker removes meanwhile would come back.
        with self._locked():
            content = self._read(path)
            if content is not None and not content.get("is_fetched"):
                write_file(path, json.dumps({**content, "is_fetched": True}).encode())

    def holds(self, key: str) -> bool:
        """Whether a document is kept, and was not dropped by another worker."""
        return (self._folder / f"{key}.json").exists()

    def get(self, key: str) -> dict[str, Any] | None:
        """How far a document is; None if there is none."""
        if not _KEY.fullmatch(key):
            return None
        content = self._read(self._folder / f"{key}.json")
        if content is None or self._is_old(content):
            return None
        state: dict[str, Any] = content["state"]
        if state["state"] not in _ENDED and not _is_alive(content["process"]):
            detail = "the process that translated it has ended; send it again"
            return {**state, "state": "failed", "detail": detail}
        return state

    def file(self, key: str) -> bytes:
        """The translation of a document that is done. Raises FileNotFoundError."""
        return (self._folder / f"{key}.data").read_bytes()

    def remove(self, key: str) -> None:
        """Forget a document."""
        with self._locked():
            self._remove(key)

    def _remove(self, key: str) -> None:
        for ending in ("json", "data"):
            (self._folder / f"{key}.{ending}").unlink(missing_ok=True)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """One worker at a time counts and adds."""
        with (self._folder / "lock").open("wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _sweep(self) -> None:
        for path in self._folder.glob("*.json"):
            content = self._read(path)
            if content is not None and (self._is_old(content) or self._is_left(content)):
                self._remove(path.stem)

    def _is_old(self, content: dict[str, Any]) -> bool:
        return content["state"]["state"] in _ENDED and time.time() > content["until"]

    def _is_left(self, content: dict[str, Any]) -> bool:
        """Whether nobody ends it, and it is late."""
        return not _is_alive(content["process"]) and time.time() > content["until"]

    def _read(self, path: Path) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = json.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        return found


def _gives_way(content: dict[str, Any]) -> bool:
    """Whether a document may be forgotten for another: it was fetched, or has failed."""
    state = content["state"]["state"]
    has_failed = state == "failed" or (state not in _ENDED and not _is_alive(content["process"]))
    return has_failed or bool(content.get("is_fetched"))


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
