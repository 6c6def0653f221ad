"""The journal of a run, one JSON object per line: writing it, and reading it as a history."""

import dataclasses
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pellucid.core.errors import InputMissingError
from pellucid.core.files import write_errors
from pellucid.core.run_names import JOURNAL_FILE

Event = dict[str, Any]
"""``event`` is its kind; the other keys are figures, whose units are in the docs."""

Listener = Callable[[Event], None]
"""Is called with every event when it happens; a command shows them to its user."""


class Journal:
    """Appends events to ``journal.jsonl`` and calls a listener with each.

    Without a path it writes no file: of several processes only the first one writes.
    """

    def __init__(self, path: Path | None, listener: Listener | None = None) -> None:
        self._path = path
        self._listener = listener
        if path is not None:
            end_last_line(path)

    def write(self, event: str, figures: Mapping[str, Any]) -> None:
        """Record an event with its figures, None for those that are NaN or infinite.

        Raises WriteError if that fails.
        """
        entry: Event = {"event": event, **finite(dict(figures))}

        # Opened for each line, so that it is on its way to the disk when this returns.
        if self._path is not None:
            with write_errors(self._path), self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry, ensure_ascii=False, allow_nan=False) + "\n")

        if self._listener is not None:
            self._listener(entry)


def finite(value: Any) -> Any:
    """``value`` with None for every number that is NaN or infinite, as JSON has neither."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {key: finite(each) for key, each in value.items()}
        case list() | tuple():
            return [finite(each) for each in value]
        case _:
            return value


def end_last_line(path: Path) -> None:
    """End a line that a killed process left unfinished, so that the next event has its own."""
    if not path.exists() or path.stat().st_size == 0:
        return

    with write_errors(path), path.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        if file.read(1) != b"\n":
            file.write(b"\n")


def read_journal(path: Path) -> list[Event]:
    """All events of a journal; lines that a killed process left unfinished are dropped.

    Raises InputMissingError.
    """
    return [event for line in _lines(path) if (event := _event(line)) is not None]


def read_on(path: Path, start: int) -> tuple[list[Event], int]:
    """The events after byte ``start`` of a journal, and the byte after its last whole line."""
    if not path.exists():
        return [], start

    events = []
    with path.open("rb") as file:
        file.seek(start)
        for line in file:
            if not line.endswith(b"\n"):
                break  # it is being written
            start += len(line)
            if (event := _event(line)) is not None:
                events.append(event)
    return events, start


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            yield from file
    except OSError as error:
        raise InputMissingError(
            f"cannot read {path}: {error.strerror}", hint="name the folder of a run"
        ) from error


LIMITS = ("max_steps", "max_epochs", "max_minutes", "patience")
"""Limits of the config at which a run ends by itself."""


@dataclasses.dataclass
class History:
    """The events that count, in the order of their steps.

    Of updates that a killed run had not saved, or that were rolled back, the later ones count.
    """

    start: Event | None = None
    """The last time training started or resumed."""
    train: list[Event] = dataclasses.field(default_factory=list)
    validations: list[Event] = dataclasses.field(default_factory=list)
    end: Event | None = None
    """How the run ended, if it did."""
    problems: list[str] = dataclasses.field(default_factory=list)
    """Lines that are not events, unless a killed process left them unfinished."""

    def last(self, key: str) -> float | None:
        """The newest value of a figure that several kinds of event have."""
        # Figures grow with time, so the largest of the last ones is the newest.
        last = (kept[-1] for kept in (self.train, self.validations) if kept)
        events = [*([self.end] if self.end else []), *last, *([self.start] if self.start else [])]
        values = [value for value in (number(event, key) for event in events) if value is not None]
        return max(values) if values else None

    def _add(self, event: Event) -> None:
        step = number(event, "step")
        if step is None or step < 0:
            return

        match event["event"]:
            # A run that resumes begins at its checkpoint: what was beyond it will be made again.
            case "start":
                self.start, self.end = event, None
                _drop(self.train, beyond=step)
                _drop(self.validations, beyond=step)
            case "train":
                _drop(self.train, beyond=step - 1)
                self.train.append(event)
            case "validation":
                _drop(self.validations, beyond=step - 1)
                self.validations.append(event)
            case "end":
                self.end = event


def read_history(run: Path) -> History:
    """The history of a run folder. Raises InputMissingError if it has no journal to read."""
    # ``cut_short`` is the number of the latest line that is not an event. A killed process leaves
    # one behind, and then a start follows; anywhere else it is damage.
    history, cut_short = History(), 0
    for place, line in enumerate(_lines(run / JOURNAL_FILE), start=1):
        event = _event(line)
        if event is None:
            cut_short = place if line.strip() else cut_short
            continue

        if cut_short and event["event"] != "start":
            history.problems.append(f"{JOURNAL_FILE}, line {cut_short}: not an event")
        cut_short = 0
        history._add(event)
    return history


def number(event: Event, key: str) -> float | None:
    """The figure ``key`` of an event; None if there is none or it is not a finite number."""
    value = event.get(key)
    # bool is a subclass of int.
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return value if math.isfinite(value) else None
    except OverflowError:  # an integer of hundreds of digits
        return None


def _drop(events: list[Event], *, beyond: float) -> None:
    while events and events[-1]["step"] > beyond:
        events.pop()


def _event(line: bytes) -> dict[str, Any] | None:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):  # also of a line of nothing but brackets
        return None
    return event if isinstance(event, dict) and isinstance(event.get("event"), str) else None
