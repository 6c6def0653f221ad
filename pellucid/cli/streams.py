"""Handles standard streams that are closed, or whose reader goes away while a command runs.

Python ignores SIGPIPE, and every command keeps it so: a write to a pipe or socket without a reader
raises BrokenPipeError where it happens. The default action would end the process: a server whose
client disconnects, or a training run whose terminal is gone.
"""

import contextlib
import errno
import io
import os
import signal
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, NoReturn

from pellucid.core.errors import InputMissingError, WriteError
from pellucid.core.files import open_user_file, write_errors

if TYPE_CHECKING:
    from typing_extensions import Buffer


def visible(text: str) -> str:
    """``text`` in one line, with all that could steer the terminal or is not seen escaped.

    Spaces of every kind stay, the joiners that Persian, Hindi and emoji are written with, and
    letters and emoji that are newer than this Python's Unicode.
    """
    if text.isprintable():
        return text
    return "".join(
        letter if _is_seen(letter) else letter.encode("unicode_escape").decode("ascii")
        for letter in text
    )


def _is_seen(letter: str) -> bool:
    if letter.isprintable() or letter in "\u200c\u200d":
        return True
    category = unicodedata.category(letter)
    # Of the codes without a letter, Unicode promises 66 to stay so: "noncharacters".
    code = ord(letter)
    is_new = category == "Cn" and code & 0xFFFE != 0xFFFE and not 0xFDD0 <= code <= 0xFDEF
    return category == "Zs" or is_new


FILTERS = frozenset(
    (
        "compare",
        "config",
        "continue",
        "doctor",
        "evaluate",
        "fill",
        "join",
        "presets",
        "runs",
        "score",
        "translate",
    )
)
"""Commands whose result is their stdout: they end when its reader does. The others write files or
serve, and continue without a reader."""

_NOBODY_READS = (errno.EPIPE, errno.ECONNRESET, errno.EIO)
"""The errors of writing to a pipe or socket without a reader, to a connection that the reader
reset, and to a terminal that was closed."""


def prepare_streams() -> None:
    """Replace closed streams, and keep failing writes to stderr from ending the process."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        # A closed descriptor is the lowest free one: without this the next file that is opened
        # would get it, and receive what is meant for the stream.
        if stream is None:
            os.open(os.devnull, os.O_RDWR)
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # for good
    elif _descriptor_of(sys.stderr) == 2:
        sys.stderr = _text_over(_DroppingFile(2, "wb", closefd=False), sys.stderr)


def keep_going_without_a_reader() -> None:
    """Drop what is written to stdout once it has no reader."""
    if _descriptor_of(sys.stdout) == 1:
        sys.stdout = _text_over(_AbandonableFile(1, "wb", closefd=False), sys.stdout)


def standard_input() -> BinaryIO:
    """The bytes of stdin. Raises InputMissingError if it is closed."""
    if sys.stdin is None:
        raise InputMissingError("cannot read standard input: it is closed")
    return sys.stdin.buffer


def standard_output() -> BinaryIO:
    """The bytes of stdout. Raises WriteError if it is closed."""
    if sys.stdout is None:
        raise WriteError("cannot write standard output: it is closed")
    return sys.stdout.buffer


def is_broken_pipe(error: BaseException) -> bool:
    """Whether the reader of stdout has gone, also if another error was raised from that one."""
    return isinstance(error, BrokenPipeError) or isinstance(error.__cause__, BrokenPipeError)


def end_like_a_filter() -> NoReturn:
    """End as the default action of SIGPIPE would: silently, with 141 (128 + 13) for a shell."""
    drop_unwritten_output()
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        # By the signal and not by an exit code, so that a shell sees what it sees of cat or grep.
        os.kill(os.getpid(), signal.SIGPIPE)
    sys.exit(141)


def drop_unwritten_output() -> None:
    """Drop buffered output that cannot be written; Python would try again and complain at exit."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except OSError:
        _abandon(sys.stdout.fileno())


class _AbandonableFile(io.FileIO):
    """Discards writes once its reader has gone; other errors are raised."""

    def write(self, data: "Buffer", /) -> int:
        """Write bytes, and return how many were written or dropped."""
        try:
            return super().write(data)
        except OSError as error:
            if error.errno not in _NOBODY_READS:
                raise
            _abandon(self.fileno())
            return memoryview(data).nbytes


class _DroppingFile(_AbandonableFile):
    """Drops whatever cannot be written, also for a full disk or a full pipe behind stderr."""

    def write(self, data: "Buffer", /) -> int:
        """Write bytes, or drop them."""
        written: int | None = None  # as of a pipe that does not block and is full
        with contextlib.suppress(OSError):
            written = super().write(data)
        return memoryview(data).nbytes if written is None else written


def _abandon(descriptor: int) -> None:
    """Point a descriptor at the null device."""
    # dup2 keeps the number: Python's stream object goes on, into nothing.
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
        # PYTHONUNBUFFERED makes a stream write through: each line is written at once.
        line_buffering=old.line_buffering or old.write_through,
    )


def _descriptor_of(stream: object) -> int:
    """The descriptor of a text stream over a file; -1 for any other stream."""
    try:
        return stream.fileno() if isinstance(stream, io.TextIOWrapper) else -1
    except io.UnsupportedOperation:  # text over bytes in memory, as click's CliRunner makes it
        return -1


@contextlib.contextmanager
def opened(output: str) -> Iterator[IO[bytes]]:
    """The binary stream to write to; an existing file is replaced once the last line is written.

    A name such as ``out.de.zst`` or ``s3://bucket/out.de`` is packed or written elsewhere
    (``pellucid.text.corpus.writers``).
    """
    from pellucid.text.corpus.writers import is_plain_output, open_output

    if output == "-":
        with write_errors(Path("standard output")):
            yield standard_output()
            standard_output().flush()
    elif output.endswith("/"):  # which a path loses: a file of that name would be written
        raise WriteError(f"-o must name a file, {output} is a folder")
    elif is_plain_output(output):
        # Written beside the file and renamed, so that an interrupted run leaves the old one.
        with open_user_file(Path(output)) as out:
            yield out
    else:
        with open_output(output) as out:
            yield out
