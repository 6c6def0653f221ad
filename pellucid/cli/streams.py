"""Standard streams that were closed, or whose reader goes away while a command runs.

Python ignores SIGPIPE, and that stays so for every command: a write to a pipe or socket that
nobody reads raises BrokenPipeError where it happens. The default action would end the process,
and with it a server whose client hangs up, or a training run whose terminal is gone.
"""

import contextlib
import errno
import io
import os
import signal
import sys
from pathlib import Path
from typing import NoReturn

from typing_extensions import Buffer

FILTERS = frozenset(
    (
        "compare",
        "config",
        "continue",
        "doctor",
        "evaluate",
        "fill",
        "presets",
        "runs",
        "score",
        "translate",
    )
)
"""Commands whose result is what they write to stdout: they end with their reader. The others save
files, or serve, and go on without one."""

_NOBODY_READS = (errno.EPIPE, errno.EIO)
"""Of a pipe, and of a terminal that was closed."""


def prepare_streams() -> None:
    """Fill in closed streams, and let nothing that is written to stderr end the process."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if stream is None:  # or a file that is opened later would be taken for this stream
            os.open(os.devnull, os.O_RDWR)
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # for good
    elif _descriptor_of(sys.stderr) == 2:
        sys.stderr = _text_over(_DroppingFile(2, "wb", closefd=False), sys.stderr)


def keep_going_without_a_reader() -> None:
    """Let what is written to stdout be dropped once nobody reads it."""
    if _descriptor_of(sys.stdout) == 1:
        sys.stdout = _text_over(_AbandonableFile(1, "wb", closefd=False), sys.stdout)


def is_broken_pipe(error: BaseException) -> bool:
    """Whether the reader of stdout has gone; also where another error was made of it."""
    return isinstance(error, BrokenPipeError) or isinstance(error.__cause__, BrokenPipeError)


def end_like_a_filter() -> NoReturn:
    """End as SIGPIPE's default action would have: quietly, and so that a shell sees 141."""
    drop_unwritten_output()
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGPIPE)
    sys.exit(141)


def drop_unwritten_output() -> None:
    """What stdout could not take must not be tried, and complained about, once more at exit."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except OSError:
        _abandon(sys.stdout.fileno())


class _AbandonableFile(io.FileIO):
    """Writes to nowhere once its reader has gone; other errors are raised."""

    def write(self, data: Buffer, /) -> int:
        """Write bytes; the number of them that are done with."""
        try:
            return super().write(data)
        except OSError as error:
            if error.errno not in _NOBODY_READS:
                raise
            _abandon(self.fileno())
            return memoryview(data).nbytes


class _DroppingFile(_AbandonableFile):
    """Drops what cannot be written, whatever the reason: a full disk behind stderr, too."""

    def write(self, data: Buffer, /) -> int:
        """Write bytes, or drop them."""
        with contextlib.suppress(OSError):
            return super().write(data)
        return memoryview(data).nbytes


def _abandon(descriptor: int) -> None:
    """Point a descriptor at the null device."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)


def _text_over(file: io.FileIO, old: io.TextIOBase | object) -> io.TextIOWrapper:
    """A text stream over ``file`` that is otherwise like ``old``."""
    assert isinstance(old, io.TextIOWrapper)
    old.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(file),
        encoding=old.encoding,
        errors=old.errors,
        line_buffering=old.line_buffering,
    )


def _descriptor_of(stream: object) -> int:
    """The descriptor of a stream that Python opened itself, -1 of any other."""
    try:
        return stream.fileno() if isinstance(stream, io.TextIOWrapper) else -1
    except io.UnsupportedOperation:  # text over bytes in memory, as click's CliRunner makes it
        return -1
