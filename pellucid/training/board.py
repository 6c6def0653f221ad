"""The journal's figures as TensorBoard's event files (extra ``board``).

Each time training starts or resumes, and after a rollback, a new file is written. It opens with the
step from which on older files no longer count, so that updates that a killed run had not saved are
not shown twice.
"""

from pathlib import Path
from typing import Any

from pellucid.core.errors import MissingExtraError
from pellucid.core.files import write_errors
from pellucid.core.run_names import BOARD_FOLDER
from pellucid.training.journal import Event, Listener, number

SHOWN = ("train", "validation")
"""Events whose figures are shown, as ``train/loss`` and so on."""


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
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            purpose = "showing a run in TensorBoard"
            raise MissingExtraError("tensorboard", "board", purpose) from error

        self._open: Any = SummaryWriter
        self._folder = folder
        self._writer: Any = None
        self._last_step = 0

    def hear(self, event: Event) -> None:
        """Record an event if it has figures to show. Raises WriteError if that fails."""
        step = int(number(event, "step") or 0)
        with write_errors(self._folder):
            if event["event"] == "start":
                self._begin(step + 1)
            elif event["event"] in SHOWN:
                if step < self._last_step:  # rolled back
                    self._begin(step)
                for key in event:
                    if key != "step" and (value := number(event, key)) is not None:
                        self._writer.add_scalar(f"{event['event']}/{key}", value, step)
                self._writer.flush()
            elif event["event"] == "end":
                self.close()
            else:
                return

        self._last_step = step

    def _begin(self, step: int) -> None:
        """Begin a file; readers drop what earlier ones have from this step on."""
        self.close()
        self._writer = self._open(str(self._folder), purge_step=step)
        self._writer.flush()  # a thread writes; what the disk refuses is told here

    def close(self) -> None:
        """Write what is left and end the thread that writes."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
