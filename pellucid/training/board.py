"""The journal's figures as TensorBoard's event files (extra ``board``).

Each time training starts or resumes, a new file is written. It opens with the step from which on
older files no longer count, so that updates that a killed run had not saved are not shown twice.
"""

import contextlib
import time
from pathlib import Path
from typing import Any

from pellucid.core.errors import MissingExtraError
from pellucid.core.files import write_errors
from pellucid.core.run_names import BOARD_FOLDER
from pellucid.training.journal import Event, Listener, number

SHOWN = ("train", "validation")
"""Events whose figures are shown, as ``train/loss`` and so on."""
_FORMAT = "brain.Event:2"  # from version 2 on, readers look for the step that a session starts from


def with_board(run: Path, listener: Listener | None) -> Listener:
    """A listener that writes to a board in ``run`` and then calls ``listener``.

    Raises MissingExtraError.
    """
    board = Board(run / BOARD_FOLDER)

    def hear(event: Event) -> None:
        board.hear(event)
        if listener is not None:
            listener(event)

    return hear


class Board:
    """A listener for the events of a run, which begin with ``start``.

    Raises MissingExtraError without tensorboard.
    """

    def __init__(self, folder: Path) -> None:
        try:
            from tensorboard.compat.proto.event_pb2 import Event as Record
            from tensorboard.compat.proto.event_pb2 import SessionLog
            from tensorboard.compat.proto.summary_pb2 import Summary
            from tensorboard.summary.writer.record_writer import RecordWriter
        except ImportError as error:
            purpose = "showing a run in TensorBoard"
            raise MissingExtraError("tensorboard", "board", purpose) from error

        self._entry: Any = Record
        self._session: Any = SessionLog
        self._summary: Any = Summary
        self._recorder: Any = RecordWriter
        self._folder = folder
        self._path = folder
        self._last_step = 0

    def hear(self, event: Event) -> None:
        """Record an event if it has figures to show. Raises WriteError if that fails."""
        step = int(number(event, "step") or 0)

        # Readers drop what an earlier file has from this step on.
        if event["event"] == "start":
            self._path = self._begin_file()
            self._write(self._entry(file_version=_FORMAT))
            self._forget_from(step + 1)
        elif event["event"] in SHOWN:
            if step < self._last_step:  # rolled back
                self._forget_from(step)
            summary = self._summary(value=self._values(event))
            self._write(self._entry(step=step, summary=summary))
        else:
            return

        self._last_step = step

    def _values(self, event: Event) -> list[Any]:
        return [
            self._summary.Value(tag=f"{event['event']}/{key}", simple_value=value)
            for key in event
            if key != "step" and (value := number(event, key)) is not None
        ]

    def _forget_from(self, step: int) -> None:
        began = self._session(status=self._session.START)
        self._write(self._entry(step=step, session_log=began))

    def _write(self, entry: Any) -> None:
        entry.wall_time = time.time()
        with write_errors(self._path), self._path.open("ab") as file:
            self._recorder(file).write(entry.SerializeToString())

    def _begin_file(self) -> Path:
        """Create a new file, never one that exists.

        Readers order files by name, so the names are counted: a clock may jump.
        """
        with write_errors(self._folder):
            self._folder.mkdir(exist_ok=True)
            count = sum(1 for _ in self._folder.glob("*tfevents*"))

            # Two processes may have counted alike: "x" lets only one of them have the name.
            while True:
                count += 1
                path = self._folder / f"events.out.tfevents.{count:06d}"
                with contextlib.suppress(FileExistsError):
                    path.open("xb").close()
                    return path
