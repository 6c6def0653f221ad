"""Ends a command within seconds of SIGTERM or Ctrl-C, whatever its threads do.

Python runs the handler of a signal in the main thread, between two of its instructions, and a
process ends only when all its threads have. So a command could be kept alive by a thread that reads
a large file, or by one long call of a library in the main thread. A thread of its own hears of the
signal at once, gives the command some seconds to clean up, and then ends the process.

Commands that save before they end (``display.StopRequests``, the server) have handlers of their
own, and take their time.
"""

import contextlib
import os
import signal
import sys
import threading
import time
from types import FrameType

TERMINATED = 128 + signal.SIGTERM
"""Exit code after SIGTERM, as in a shell."""
INTERRUPTED = 128 + signal.SIGINT
GRACE_SECONDS = 5.0
"""For removing temporary files; half of what Docker waits before it kills."""


def end_on_signals() -> None:
    """Let SIGTERM end this process as an error does, and SIGTERM and Ctrl-C in any case soon.

    By default SIGTERM ends a process at once, and half-written temporary files stay behind. Whoever
    runs the command may have it ignored; then it stays ignored.
    """
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, terminate)

    # Python writes the number of each signal into the pipe when it arrives, before any handler.
    heard, written = os.pipe()
    os.set_blocking(written, False)
    signal.set_wakeup_fd(written, warn_on_full_buffer=False)
    # A fork has the pipe but not the thread: its signals would end this process.
    os.register_at_fork(after_in_child=_stop_telling)
    threading.Thread(target=_end_soon, args=(heard,), name="pellucid-signals", daemon=True).start()


def terminate(_number: int, _frame: FrameType | None) -> None:
    """Exit as after an error, so that temporary files are removed; a second SIGTERM ends it."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    sys.exit(TERMINATED)


def _stop_telling() -> None:
    # In a fork by another thread than the main one this is not allowed, and not needed.
    with contextlib.suppress(ValueError):
        signal.set_wakeup_fd(-1)


def _end_soon(heard: int) -> None:
    """Wait for a signal whose handler only raises, and end the process after the grace period."""
    while True:
        numbers = os.read(heard, 64)
        # ``terminate`` may have run by now, and set the default.
        if signal.SIGTERM in numbers and signal.getsignal(signal.SIGTERM) in (
            terminate,
            signal.SIG_DFL,
        ):
            code, message = TERMINATED, b""
        elif (
            signal.SIGINT in numbers
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        ):
            code, message = INTERRUPTED, b"interrupted\n"
        else:
            continue
        time.sleep(GRACE_SECONDS)
        with contextlib.suppress(OSError):
            os.write(2, message)
        os._exit(code)
