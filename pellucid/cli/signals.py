"""Ctrl-C and SIGTERM as polite requests: finish the update, save, leave."""

import signal
import sys
from types import FrameType

EXIT_CODES = {"interrupted": 130, "terminated": 143}
"""What a command ends with after each request."""


class StopRequests:
    """Remembers the first signal; the second ends the process at once, if it is heeded.

    torchrun hands on to its processes what they may have got already, and ends by itself those
    that take too long.
    """

    def __init__(self, *, heeds_second: bool = True) -> None:
        self._reason: str | None = None
        self._heeds_second = heeds_second
        signal.signal(signal.SIGINT, self._hear)
        signal.signal(signal.SIGTERM, self._hear)

    def __call__(self) -> str | None:
        """The reason to stop, if a signal has come."""
        return self._reason

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        reason = "interrupted" if number == signal.SIGINT else "terminated"
        if self._reason is None:
            self._reason = reason
        elif self._heeds_second:
            sys.exit(EXIT_CODES[reason])
