"""What happened in a run, one JSON object a line, in the order it happened."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pellucid.core.files import write_errors

Event = dict[str, Any]
"""``event`` says what kind it is; the other keys are figures with their units in the docs."""
JOURNAL_FILE = "journal.jsonl"

Listener = Callable[[Event], None]
"""Hears every event as it happens; a command shows them to its user."""


class Journal:
    """Appends events to ``journal.jsonl`` and tells a listener about each."""

    def __init__(self, path: Path, listener: Listener | None = None) -> None:
        self._path = path
        self._listener = listener

    def write(self, event: str, figures: Mapping[str, Any]) -> None:
        """Record an event with its figures. Raises WriteError if the disk does not take it."""
        entry: Event = {"event": event, **figures}
        with write_errors(self._path), self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")
        if self._listener is not None:
            self._listener(entry)


def read_journal(path: Path) -> list[Event]:
    """All events of a journal; a last line that a killed process left unfinished is dropped."""
    events = []
    for line in path.read_text(encoding="utf-8").split("\n"):
        try:
            events.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return events
