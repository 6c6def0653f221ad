"""Ends a command within seconds of SIGTERM, SIGHUP or Ctrl-C, whatever its threads do.

Python runs the handler of a signal in the main thread, between two of its instructions, and a
process ends only when all its threads have. So a command could be kept alive by a thread that reads
a large file, or by one long call of a library in the main thread. And what a handler raises is lost
in a callback of the garbage collector or of the import system. A thread of its own hears of the
signal at once, gives the command some seconds to clean up, and then ends the process.

Commands that save before they end (``display.StopRequests``, the server) have handlers of their
own, and take their time, until a second signal if they say so (``save_at_first``).
"""

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from pellucid.core import system

REASONS = dict(zip(system.END_SIGNALS, ("interrupted", "terminated", "hung up"), strict=False))
"""Reasons by the signal that ends a command; its exit code is 128 and the number of the signal, as
in a shell."""
_Handler = Callable[[int, FrameType | None], None]
_savers: list[_Handler] = []
"""Handlers that save at the first signal, and leave at the second."""
GRACE_SECONDS = 5.0
"""For removing temporary files; half of what Docker waits before it kills."""


def end_on_signals() -> None:
    """Let SIGTERM and SIGHUP end this process as an error does, and Ctrl-C too in any case soon.

    By default they end a process at once, and half-written temporary files stay behind. Whoever
    runs the command may have them ignored, as nohup does; then they stay ignored.
    """
    for number in system.END_SIGNALS:
        if number != signal.SIGINT and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, terminate)
    if system.LACKS_POSIX:
        return  # there a closed window or terminal ends the process by itself

    # Python writes the number of each signal into the pipe when it arrives, before any handler.
    heard, written = os.pipe()
    os.set_blocking(written, False)
    signal.set_wakeup_fd(written, warn_on_full_buffer=False)
    # A fork has the pipe but not the thread: its signals would end this process.
    system.after_fork(_stop_telling)
    threading.Thread(target=_end_soon, args=(heard,), name="pellucid-signals", daemon=True).start()


def save_at_first(handler: _Handler, *, leaves_at_second: bool) -> dict[int, Any]:
    """Let ``handler`` hear the signals that end a command; returns who heard them before.

    With ``leaves_at_second`` a second one ends the process within the grace period, also in a long
    call of a library, in which no handler runs. SIGHUP stays ignored if it is, as under nohup.
    """
    if leaves_at_second:
        _savers.append(handler)
    return {
        number: signal.signal(number, handler)
        for number in REASONS
        if number != system.HANG_UP or signal.getsignal(number) is not signal.SIG_IGN
    }


def terminate(number: int, _frame: FrameType | None) -> None:
    """Exit as after an error, so that temporary files are removed; a second such signal ends it."""
    signal.signal(number, signal.SIG_DFL)
    sys.exit(128 + number)


def leave(_number: int, _frame: FrameType | None) -> None:
    """Exit as after success: of a server that is told to stop while it starts."""
    sys.exit(0)


def _stop_telling() -> None:
    # In a fork by another thread than the main one this is not allowed, and not needed.
    with contextlib.suppress(ValueError):
        signal.set_wakeup_fd(-1)


def _end_soon(heard: int) -> None:
    """Wait for a signal that should end the process, and end it after the grace period."""
    ends = 0
    while True:
        for each in os.read(heard, 64):
            if each not in REASONS:
                continue
            handler = signal.getsignal(each)
            ends += 1
            # ``terminate`` may have run by now, and set the default.
            raising = (terminate, leave, signal.default_int_handler, signal.SIG_DFL)
            if handler in raising or (handler in _savers and ends > 1):
                time.sleep(GRACE_SECONDS)
                with contextlib.suppress(OSError):
                    os.write(2, b"interrupted\n" if each == signal.SIGINT else b"")
                os._exit(0 if handler is leave else 128 + each)
