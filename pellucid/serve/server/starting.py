"""A small process that answers every request with 503 while the server starts.

Importing torch and loading models takes seconds, on a busy machine most of a minute, and holds
Python's global lock for long stretches, so a thread could not answer meanwhile. Instead a process
is forked before anything heavy is imported. It shares the listening socket and accepts connections
until the server does. This module may import nothing beyond the standard library and ``problems``.
"""

import contextlib
import dataclasses
import errno
import os
import selectors
import signal
import socket
import time
from typing import NoReturn

from pellucid.serve.server.problems import problem_bytes

_DETAIL, _RETRY_AFTER = "the server is starting", 2
_LARGEST_READ = 1 << 16
_NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
"""Errors of ``accept`` that mean too many open files, or no memory for another connection."""


class Starting:
    """The handle of the answering process, held by the server that is starting."""

    def __init__(self, pid: int, link: socket.socket) -> None:
        self._pid: int | None = pid
        self._link: socket.socket | None = link

    def stop(self) -> None:
        """Return once the process accepts no more connections; forked workers may call this too.

        The process ends by itself with its last connection, at the latest at that one's deadline.
        """
        if self._link is None:
            return
        with contextlib.suppress(OSError):  # it may have been stopped, or have died, already
            self._link.shutdown(socket.SHUT_WR)
            # Returns at end of file: the child closes its listener before its link.
            self._link.recv(1)
        self._link.close()
        self._link = None

    def reap(self) -> None:
        """Collect the exit status if the process has ended, so that it leaves no zombie.

        Only the process that forked it may call this.
        """
        if self._pid is None:
            return
        with contextlib.suppress(ChildProcessError):
            ended, _ = os.waitpid(self._pid, os.WNOHANG)
            if not ended:
                return
        self._pid = None


def answer_while_starting(
    listener: socket.socket, *, max_seconds: float, max_connections: int, max_head_bytes: int
) -> Starting:
    """Fork the process that answers. It ends when it is stopped, or when this process ends.

    A connection has ``max_seconds`` to send a request and read the answer.
    """
    link, other_end = socket.socketpair()

    # Before any thread is started: only the forking thread goes on in a child.
    pid = os.fork()
    if pid == 0:
        # The child must hold no copy of the parent's end, or it would never see the parent die.
        link.close()
        _answer_in_child(
            _Doorkeeper(listener, other_end, max_seconds, max_connections, max_head_bytes)
        )
    other_end.close()
    return Starting(pid, link)


def _answer_in_child(doorkeeper: "_Doorkeeper") -> NoReturn:
    """Answer until stopped, then exit without the parent's cleanup (``os._exit``)."""
    code = 1
    try:
        # A terminal signals the whole process group. The parent decides when to stop.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)

        # Whoever reads the parent's output waits until the last holder of the pipe has closed it,
        # so the child must not hold it open.
        null = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(null, standard)

        doorkeeper.run()
        code = 0
    finally:
        os._exit(code)


@dataclasses.dataclass(eq=False)
class _Connection:
    """One client connection, and what it has sent so far."""

    socket: socket.socket
    deadline: float
    """The deadline of request and answer together, on ``time.monotonic``."""
    head: bytearray = dataclasses.field(default_factory=bytearray)
    is_answered: bool = False


@dataclasses.dataclass
class _Doorkeeper:
    """Accepts connections, reads the head of a request, answers, and closes."""

    listener: socket.socket
    link: socket.socket
    max_seconds: float
    max_connections: int
    max_head_bytes: int
    selector: selectors.BaseSelector = dataclasses.field(default_factory=selectors.DefaultSelector)
    connections: dict[_Connection, None] = dataclasses.field(default_factory=dict)
    """In order of arrival, which is the order of the deadlines: the first is the oldest."""

    def run(self) -> None:
        """Answer until the parent stops it or dies, and all connections are closed."""
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.selector.register(self.link, selectors.EVENT_READ)
        is_open = True
        while is_open or self.connections:
            for key, _ in self.selector.select(self._seconds_left()):
                if key.fileobj is self.listener:
                    self._accept()
                elif key.fileobj is self.link:
                    # Readable means end of file: the parent never writes to the link.
                    is_open = False
                    self._stop_accepting()
                else:
                    self._read(key.data)
            self._close_overdue()

    def _stop_accepting(self) -> None:
        # The link is closed last: its end of file tells the parent that the listener is closed.
        for each in (self.listener, self.link):
            self.selector.unregister(each)
            each.close()

    def _accept(self) -> None:
        while True:
            try:
                accepted, _ = self.listener.accept()
            except OSError as error:
                # Without this a client that opens connections and sends nothing
                # would lock out all others.
                if error.errno in _NO_ROOM and self.connections:
                    self._close(next(iter(self.connections)))
                    continue
                return  # no connection is waiting, or the one that was has been reset

            # The oldest one makes room: it has had its time, and honest clients are quick.
            if len(self.connections) >= self.max_connections:
                self._close(next(iter(self.connections)))

            accepted.setblocking(False)
            connection = _Connection(accepted, time.monotonic() + self.max_seconds)
            self.connections[connection] = None
            self.selector.register(accepted, selectors.EVENT_READ, connection)

    def _read(self, connection: _Connection) -> None:
        if connection not in self.connections:
            return  # closed to make room for another, earlier in the same turn

        try:
            data = connection.socket.recv(_LARGEST_READ)
        except BlockingIOError:
            return
        except OSError:
            self._close(connection)
            return

        if not data:
            self._close(connection)
        elif not connection.is_answered:  # bytes after the head are read and dropped
            connection.head += data
            # An empty line ends the head; a bare LF is a line end as well (RFC 9112, section 2.2).
            is_whole = b"\r\n\r\n" in connection.head or b"\n\n" in connection.head
            if is_whole or len(connection.head) > self.max_head_bytes:
                self._answer(connection)

    def _answer(self, connection: _Connection) -> None:
        """Send the answer and let the client close the connection.

        Closing while the client still sends resets the connection, and the client may lose the
        answer (RFC 9112, section 9.6).
        """
        has_body = not connection.head.startswith(b"HEAD ")
        answer = problem_bytes(503, _DETAIL, retry_after=_RETRY_AFTER, has_body=has_body)

        connection.is_answered = True
        connection.head.clear()
        try:
            connection.socket.send(answer)  # it fits into the empty buffer of any connection
            connection.socket.shutdown(socket.SHUT_WR)
        except OSError:
            self._close(connection)

    def _close(self, connection: _Connection) -> None:
        del self.connections[connection]
        self.selector.unregister(connection.socket)
        connection.socket.close()

    def _close_overdue(self) -> None:
        # A copy of the keys, because closing one removes it.
        now = time.monotonic()
        for connection in list(self.connections):
            if connection.deadline > now:
                break
            self._close(connection)

    def _seconds_left(self) -> float | None:
        """Seconds until the first deadline; None without connections."""
        first = next(iter(self.connections), None)
        return None if first is None else max(first.deadline - time.monotonic(), 0.0)
