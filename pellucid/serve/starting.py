"""While the server starts: a small process that answers every request with 503.

Importing torch and reading models takes seconds, on a busy machine most of a minute, and long
stretches of it hold Python's global lock; a thread could not answer meanwhile. So a process is
forked before anything heavy is imported. It shares the listening socket, and accepts until the
server is ready to do so itself. Nothing here may import more than the standard library.
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

from pellucid.serve.plain_answers import problem_bytes

_TITLE, _DETAIL, _RETRY_AFTER = "Unavailable", "the server is starting", 2
_LARGEST_READ = 1 << 16
_NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Starting:
    """The process that answers meanwhile, as seen by those it answers for."""

    def __init__(self, pid: int, link: socket.socket) -> None:
        self._pid: int | None = pid
        self._link: socket.socket | None = link

    def stop(self) -> None:
        """Return once it accepts no more connections; any process that has it may call this.

        It ends by itself when its last connection is closed, or at their deadline.
        """
        if self._link is None:
            return
        with contextlib.suppress(OSError):  # it may be stopped, or dead, already
            self._link.shutdown(socket.SHUT_WR)
            self._link.recv(1)  # its end is closed after its listener
        self._link.close()
        self._link = None

    def reap(self) -> None:
        """Take note of its end if it has ended; for the process that forked it."""
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
    """Fork the process that answers. It ends when asked to, or when this process is no more.

    A connection has ``max_seconds`` to send a request and take the answer.
    """
    link, other_end = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        link.close()
        _answer_in_child(
            _Doorkeeper(listener, other_end, max_seconds, max_connections, max_head_bytes)
        )
    other_end.close()
    return Starting(pid, link)


def _answer_in_child(doorkeeper: "_Doorkeeper") -> NoReturn:
    """Answer, and leave without running anything that belongs to the parent."""
    code = 1
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # the parent gets them too, and decides
        null = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):  # whoever reads the parent's output waits for its end only
            os.dup2(null, standard)
        doorkeeper.run()
        code = 0
    finally:
        os._exit(code)


@dataclasses.dataclass(eq=False)
class _Connection:
    """One client, and how far it is."""

    socket: socket.socket
    deadline: float
    head: bytearray = dataclasses.field(default_factory=bytearray)
    is_answered: bool = False


class _Doorkeeper:
    """Accepts connections, reads the head of a request, answers, and closes."""

    def __init__(
        self,
        listener: socket.socket,
        link: socket.socket,
        max_seconds: float,
        max_connections: int,
        max_head_bytes: int,
    ) -> None:
        self._listener = listener
        self._link = link
        self._max_seconds = max_seconds
        self._max_connections = max_connections
        self._max_head_bytes = max_head_bytes
        self._selector = selectors.DefaultSelector()
        self._connections: dict[_Connection, None] = {}
        """In the order of their deadlines, which is that of their arrival."""

    def run(self) -> None:
        """Until the parent says stop or dies, and all connections are closed."""
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._link, selectors.EVENT_READ)
        is_open = True
        while is_open or self._connections:
            for key, _ in self._selector.select(self._seconds_left()):
                if key.fileobj is self._listener:
                    self._accept()
                elif key.fileobj is self._link:
                    is_open = False
                    self._stop_accepting()
                else:
                    self._read(key.data)
            self._close_overdue()

    def _stop_accepting(self) -> None:
        for each in (self._listener, self._link):  # the link last: its end is the parent's sign
            self._selector.unregister(each)
            each.close()

    def _accept(self) -> None:
        while True:
            try:
                accepted, _ = self._listener.accept()
            except OSError as error:
                if error.errno in _NO_ROOM and self._connections:
                    self._close(next(iter(self._connections)))
                    continue
                return  # nobody is waiting, or whoever did has left
            if len(self._connections) >= self._max_connections:
                self._close(next(iter(self._connections)))
            accepted.setblocking(False)
            connection = _Connection(accepted, time.monotonic() + self._max_seconds)
            self._connections[connection] = None
            self._selector.register(accepted, selectors.EVENT_READ, connection)

    def _read(self, connection: _Connection) -> None:
        if connection not in self._connections:
            return  # closed for another one, earlier in the same turn
        try:
            data = connection.socket.recv(_LARGEST_READ)
        except BlockingIOError:
            return
        except OSError:
            self._close(connection)
            return

        if not data:
            self._close(connection)
        elif not connection.is_answered:  # what comes after the answer is dropped
            connection.head += data
            is_whole = b"\r\n\r\n" in connection.head or b"\n\n" in connection.head
            if is_whole or len(connection.head) > self._max_head_bytes:
                self._answer(connection)

    def _answer(self, connection: _Connection) -> None:
        """Answer, and wait for the client to close first.

        Closing while it still sends would reset the connection, and the answer might be lost.
        """
        has_body = not connection.head.startswith(b"HEAD ")
        answer = problem_bytes(503, _TITLE, _DETAIL, retry_after=_RETRY_AFTER, has_body=has_body)
        connection.is_answered = True
        connection.head.clear()
        try:
            connection.socket.send(answer)  # it fits into the empty buffer of any connection
            connection.socket.shutdown(socket.SHUT_WR)
        except OSError:
            self._close(connection)

    def _close(self, connection: _Connection) -> None:
        del self._connections[connection]
        self._selector.unregister(connection.socket)
        connection.socket.close()

    def _close_overdue(self) -> None:
        now = time.monotonic()
        for connection in list(self._connections):
            if connection.deadline > now:
                break
            self._close(connection)

    def _seconds_left(self) -> float | None:
        """Until the next deadline."""
        first = next(iter(self._connections), None)
        return None if first is None else max(first.deadline - time.monotonic(), 0.0)
