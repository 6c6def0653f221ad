"""What happened in a run, one JSON object a line, in the order it happened."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pellucid.core.files import write_errors
from pellucid.core.layout import JOURNAL_FILE as JOURNAL_FILE

Event = dict[str, Any]
"""``event`` says what kind it is; the other keys are figures with their units in the docs."""

Listener = Callable[[Event], None]
"""Hears every event as it happens; a command shows them to its user."""


class Journal:
    """Appends events to ``journal.jsonl`` and tells a listener about each.

    Without a path it keeps nothing: of several processes one alone writes.
    """

    def __init__(self, path: Path | None, listener: Listener | None = None) -> None:
        self._path = path
        self._listener = listener
        if path is not None:
            end_last_line(path)

    def write(self, event: str, figures: Mapping[str, Any]) -> None:
        """Record an event with its figures. Raises WriteError if the disk does not take it."""
        entry: Event = {"event": event, **figures}
        if self._path is not None:
            with write_errors(self._path), self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry, ensure_ascii=False) + "\n")
        if self._listener is not None:
            self._listener(entry)


def end_last_line(path: Path) -> None:
    """Keep what a killed process left unfinished from swallowing the next line."""
    if not path.exists() or path.stat().st_size == 0:
        return
    with write_errors(path), path.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        if file.read(1) != b"\n":
            file.write(b"\n")


def read_journal(path: Path) -> list[Event]:
    """All events of a journal; lines that a killed process left unfinished are dropped."""
    events = []
    for line in path.read_bytes().split(b"\n"):
        try:
            events.append(json.loads(line))
        except ValueError:
            continue
    return events
