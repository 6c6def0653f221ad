"""One HTTP/1.1 connection: h11 parses, asyncio reads and writes, and every wait has a deadline.

Kept servers wait without end for some client: uvicorn for the head of a request, hypercorn and
granian for one that does not read its answer. ASGI middleware never sees such clients, so the
connection itself has to end them. Of h11 only its documented interface is used.
"""

import asyncio
import contextlib
import http
import logging
import re
import socket
import time
from collections import Counter
from collections.abc import Callable
from email.utils import formatdate
from urllib.parse import unquote

import h11
from starlette.types import ASGIApp, Message, Scope

from pellucid.core.errors import place_of
from pellucid.serve.server.errors import REFUSED
from pellucid.serve.server.limits import ServerLimits
from pellucid.serve.server.problems import TITLES, problem_bytes

_LOG = logging.getLogger("pellucid.serve")
_SLICE = 4096
"""Bytes of a request's head given to the parser at a time: it counts the bytes of heads that are
not complete, so this is how far one may exceed the limit."""
_HELD_BYTES = 1 << 16
"""Bytes of a body that wait for the application before no more are read from the socket."""
_LONGEST_SIZE = 15
"""Digits of a Content-Length that are read."""
_LOG_EVERY_SECONDS = 10.0
"""Between two lines of the log about refusals with one status."""
_PROBE_SECONDS = 0.25
"""How often a client that has closed its sending half is checked for being there."""
_PHRASES = {status.value: status.phrase for status in http.HTTPStatus}
_ABSOLUTE = re.compile(rb"(?i:https?)://([^/?]*)")
"""The scheme and the authority of a request target in absolute form."""
Headers = list[tuple[bytes, bytes]]
_NO_MORE = (h11.MUST_CLOSE, h11.CLOSED, h11.ERROR)
"""States of a client whose further bytes are ignored."""


class Site:
    """The state that the connections of one worker share: application, limits, connections."""

    def __init__(self, app: ASGIApp, limits: ServerLimits, count: Callable[[int], None]) -> None:
        """``count`` is called with the status of each answer that no request got."""
        self.app = app
        self.limits = limits
        self.connections: set[Connection] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        """The requests that the application works on."""
        self.is_stopping = False
        """Whether each connection is closed after the answer it is waiting for."""

        self._count = count
        self._logged: dict[int, float] = {}
        """When a status was last logged."""
        self._unlogged: Counter[int] = Counter()
        """How often it was given since."""

    def note_refusal(self, status: int, detail: str) -> None:
        """Count an answer to what was no request yet; log it unless its status was logged in the
        last seconds.
        """
        self._count(status)
        now = time.monotonic()
        self._unlogged[status] += 1
        if now - self._logged.get(status, -_LOG_EVERY_SECONDS) >= _LOG_EVERY_SECONDS:
            count = self._unlogged.pop(status)
            self._logged[status] = now
            _LOG.warning("%d connections were refused with %d: %s", count, status, detail)


class _Deadline:
    """A call that is made after some seconds unless it is cancelled before."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call
        self._handle: asyncio.TimerHandle | None = None

    def start(self, seconds: float) -> None:
        """Start it, unless it is running."""
        if self._handle is None:
            self._handle = asyncio.get_running_loop().call_later(seconds, self._on_time)

    def extend(self, seconds: float) -> None:
        """Move a running one."""
        if self._handle is not None:
            when = self._handle.when() + seconds
            self._handle.cancel()
            self._handle = asyncio.get_running_loop().call_at(when, self._on_time)

    def cancel(self) -> None:
        """Stop it, if it is running."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _on_time(self) -> None:
        self._handle = None
        self._call()


class Connection(asyncio.Protocol):
    """The protocol of one connection, which asyncio calls with what happens to it."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.http = h11.Connection(
            h11.SERVER, max_incomplete_event_size=site.limits.max_header_bytes
        )
        self.writable = asyncio.Event()
        """Set unless the client has to read first."""
        self.writable.set()

        self._exchange: Exchange | None = None
        """The request that is being received or answered."""
        self._has_ended = False
        """Whether the client has closed its sending half of the connection."""
        self._is_probed = False

        self._receipt = _Deadline(self._on_slow_request)
        self._receipt_seconds = site.limits.max_receipt_seconds
        self._idle = _Deadline(self.close)
        self._reading = _Deadline(self.abort)
        self._probing = _Deadline(self._probe)

    # what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the deadline of the first request."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.site.connections.add(self)
        if len(self.site.connections) > self.site.limits.max_connections:
            self._answer_and_close(503, "too many connections are open")
        else:
            self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Stop all deadlines, and the work on a request."""
        self.site.connections.discard(self)
        for each in (self._receipt, self._idle, self._reading, self._probing):
            each.cancel()
        self.writable.set()
        if self._exchange is not None:
            self._exchange.cut()

    def data_received(self, data: bytes) -> None:
        """Parse what has arrived."""
        self._idle.cancel()
        view = memoryview(data)
        while view and not self.transport.is_closing() and self.http.their_state not in _NO_MORE:
            in_head = self.http.their_state is not h11.SEND_BODY
            size = _SLICE if in_head else len(view)
            self.http.receive_data(bytes(view[:size]))
            view = view[size:]
            self._read_events()
        self._watch_receipt()

    def eof_received(self) -> bool:
        """Answer the requests that have arrived, then close the connection.

        TCP does not tell apart a client that has left and one that has only closed its sending
        half. The system of a client that has left resets the connection when something is sent
        to it. So a client that has to wait is sent ``100 Continue``, which clients skip
        (RFC 9110, section 15.2).
        """
        self._has_ended = True
        self._receipt.cancel()
        if self._is_answering():
            self._probing.start(_PROBE_SECONDS)
            return True  # asyncio keeps the sending half open
        return False

    def pause_writing(self) -> None:
        """Start a deadline for a client that does not read."""
        self.writable.clear()
        self._reading.start(self.site.limits.max_receipt_seconds)

    def resume_writing(self) -> None:
        """Stop the deadline: the client reads again."""
        self.writable.set()
        # A connection that is closing keeps its deadline: its last bytes must leave in time.
        if not self.transport.is_closing():
            self._reading.cancel()

    # what the exchange and the server call

    def is_last(self) -> bool:
        """Whether no request can follow the one that is being answered."""
        has_more = bool(self.http.trailing_data[0])
        return self.site.is_stopping or (self._has_ended and not has_more)

    def answered(self) -> None:
        """Close the connection after an answer, or go on to the next request."""
        if self.http.our_state is not h11.DONE or self.is_last():
            self.close()
            return
        self.transport.resume_reading()
        self._next_request()
        self._watch_receipt()

    def close(self) -> None:
        """Close the connection once everything written has been read, or at a deadline."""
        self._receipt.cancel()
        self.transport.close()
        self._reading.start(self.site.limits.max_receipt_seconds)

    def abort(self) -> None:
        """Close the connection at once."""
        self.transport.abort()

    def shutdown(self) -> None:
        """Close the connection if it is idle; else it is closed after its answer."""
        if self._exchange is None or self._exchange.is_over:
            self.close()

    # requests

    def _read_events(self) -> None:
        """Take what the parser has completed."""
        while not self.transport.is_closing() and self.http.their_state not in _NO_MORE:
            try:
                event = self.http.next_event()
            except h11.RemoteProtocolError as error:
                status = error.error_status_hint if error.error_status_hint in TITLES else 400
                detail = "Invalid HTTP request received." if status == 400 else TITLES[status]
                self._answer_and_close(status, detail)
                return

            match event:
                case h11.Request():
                    self._begin(event)
                case h11.Data():
                    assert self._exchange is not None
                    if self._exchange.feed(event.data) > _HELD_BYTES:
                        self.transport.pause_reading()
                case h11.EndOfMessage():
                    assert self._exchange is not None
                    self._exchange.end()
                    self._next_request()
                case h11.PAUSED:  # the next request has arrived before the answer to this one
                    self.transport.pause_reading()
                    return
                case _:
                    return  # NEED_DATA

    def _begin(self, request: h11.Request) -> None:
        headers = list(request.headers)
        # Before any chunk is parsed, perhaps hundreds of thousands of one byte each.
        if any(name == b"transfer-encoding" for name, _ in headers):
            self._answer_and_close(411, "the body must have a Content-Length")
            return

        target, headers = _in_origin_form(request.target, headers)
        path, _, query = target.partition(b"?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": request.http_version.decode(),
            "method": request.method.decode(),
            "scheme": "http",
            "path": unquote(path.decode("ascii")),
            "raw_path": path,
            "query_string": query,
            "root_path": "",
            "headers": headers,
            "client": self.transport.get_extra_info("peername")[:2],
            "server": self.transport.get_extra_info("sockname")[:2],
            "state": {},
        }
        self._idle.cancel()
        self._exchange = Exchange(self, scope)
        task = asyncio.get_running_loop().create_task(self._exchange.run())
        self.site.tasks.add(task)
        task.add_done_callback(self.site.tasks.discard)
        self._extend_for_upload(dict(headers))

    def _next_request(self) -> None:
        """Take the next request, if this one has been received and answered."""
        if self.http.our_state is h11.DONE and self.http.their_state is h11.DONE:
            self.http.start_next_cycle()
            self._exchange = None
            self._idle.start(self.site.limits.max_idle_seconds)
            self._read_events()
            # Several requests may have arrived before the client closed its half.
            if self._has_ended and self._exchange is None:
                self.close()

    def _is_answering(self) -> bool:
        """Whether a complete request has arrived and its answer is not finished."""
        return self._exchange is not None and self._exchange.is_whole and not self._exchange.is_over

    def _answer_and_close(self, status: int, detail: str) -> None:
        """Write an answer directly to the transport, unless one has begun, and close."""
        exchange = self._exchange
        if exchange is not None and exchange.is_over:
            exchange = None
        in_answer = exchange is not None and exchange.is_begun
        if not in_answer and not self.transport.is_closing():
            # Past h11, whose state may not allow an answer in the middle of a request.
            self.transport.write(problem_bytes(status, detail))
            # Counted once: with its request, if the application has one, else here.
            if exchange is None:
                self.site.note_refusal(status, detail)
            else:
                exchange.scope["state"][REFUSED] = status

        if exchange is not None:
            exchange.cut()
        self.close()

    # deadlines

    def _await_request(self) -> None:
        self._receipt_seconds = self.site.limits.max_receipt_seconds
        self._receipt.start(self._receipt_seconds)

    def _watch_receipt(self) -> None:
        """Start the deadline of a request with its first byte, and end it with its last.

        Later bytes do not move it: a client that sends a byte every second gains nothing.
        """
        state = self.http.their_state
        in_head = state is h11.IDLE and bool(self.http.trailing_data[0])
        if self.transport.is_closing() or not (in_head or state is h11.SEND_BODY):
            self._receipt.cancel()
        else:
            self._idle.cancel()
            self._await_request()

    def _extend_for_upload(self, headers: dict[bytes, bytes]) -> None:
        """Give a file more time than a short request has, in proportion to its size."""
        size = headers.get(b"content-length", b"0")
        is_upload = headers.get(b"content-type", b"").lower().startswith(b"multipart/form-data")
        if is_upload and size.isdigit() and len(size) <= _LONGEST_SIZE:
            self._await_request()
            share = min(int(size) / self.site.limits.max_file_bytes, 1.0)
            more = share * self.site.limits.max_upload_seconds
            self._receipt_seconds += more
            self._receipt.extend(more)

    def _on_slow_request(self) -> None:
        if self.http.their_state is h11.IDLE and not self.http.trailing_data[0]:
            self.abort()  # nothing was sent, so there is nothing to answer
        else:
            seconds = self._receipt_seconds
            self._answer_and_close(408, f"the request was not received within {seconds:g} seconds")

    def _probe(self) -> None:
        """Check whether a client that has closed its sending half is still there."""
        if self.transport.is_closing() or not self._is_answering():
            return
        if self._has_refused():
            self.abort()
            return
        assert self._exchange is not None
        if not self._is_probed and not self._exchange.is_begun:
            # HTTP/1.0 has no informational responses.
            if self.http.their_http_version == b"1.1":
                self.go_on()
            self._is_probed = True
        self._probing.start(_PROBE_SECONDS)

    def go_on(self) -> None:
        """Send ``100 Continue``."""
        event = h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue")
        self.write(self.http.send(event))

    def write(self, data: bytes | None) -> None:
        """Send bytes, unless the connection is closing."""
        if data and not self.transport.is_closing():
            self.transport.write(data)

    def _has_refused(self) -> bool:
        """Whether the client's system has reset the connection.

        Reads the state of the socket, because asyncio stops reading after the end of file.
        """
        own: socket.socket = self.transport.get_extra_info("socket")
        with contextlib.suppress(OSError):
            return own.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0
        return True


def _in_origin_form(target: bytes, headers: Headers) -> tuple[bytes, Headers]:
    """The target of a request and its headers, where the target may be a whole address, as clients
    write it that take this server for a proxy: the authority in it stands for the Host header
    (RFC 9112, section 3.2.2).
    """
    whole = _ABSOLUTE.match(target)
    if whole is None:
        return target, headers
    others = [each for each in headers if each[0] != b"host"]
    rest = target[whole.end() :]
    return rest if rest.startswith(b"/") else b"/" + rest, [*others, (b"host", whole[1])]


class Exchange:
    """One request and its answer, between the connection and the application."""

    def __init__(self, connection: Connection, scope: Scope) -> None:
        self.scope = scope
        self.is_whole = False
        """Whether all of the request has arrived."""
        self.is_begun = False
        """Whether part of the answer has been written."""
        self.is_over = False
        """Whether the answer is finished, or nobody is there to get it."""

        self._connection = connection
        self._http = connection.http
        self._body = bytearray()
        self._is_handed_on = False
        """Whether the application has all of the body."""
        self._head: h11.Response | None = None
        """Kept until the first bytes of the body: they leave in one packet."""
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Have the application answer."""
        try:
            await self._connection.site.app(self.scope, self._receive, self._send)
        except Exception as error:
            _LOG.error("a request failed: %s", place_of(error))
        finally:
            if not self.is_over:  # an answer that is not complete
                self._connection.abort()

    def feed(self, data: bytes) -> int:
        """Take a part of the body; returns the bytes that wait for the application."""
        if not self.is_over:
            self._body += data
            self._changed.set()
        return len(self._body)

    def end(self) -> None:
        """Note that the body is complete."""
        self.is_whole = True
        self._changed.set()

    def cut(self) -> None:
        """Note that nobody is there any more."""
        self.is_over = True
        self._body.clear()
        self._changed.set()

    async def _receive(self) -> Message:
        if self._http.they_are_waiting_for_100_continue and not self.is_over:
            self._connection.go_on()

        while not (self.is_over or self._body or (self.is_whole and not self._is_handed_on)):
            self._connection.transport.resume_reading()
            self._changed.clear()
            await self._changed.wait()
        if self.is_over:
            return {"type": "http.disconnect"}

        body = bytes(self._body)
        self._body.clear()
        self._is_handed_on = self.is_whole
        return {"type": "http.request", "body": body, "more_body": not self.is_whole}

    async def _send(self, message: Message) -> None:
        await self._connection.writable.wait()
        if self.is_over:
            return

        if message["type"] == "http.response.start":
            headers = [*message.get("headers", []), (b"date", formatdate(usegmt=True).encode())]
            if self._connection.is_last():
                headers.append((b"connection", b"close"))
            status = message["status"]
            self._head = h11.Response(
                status_code=status, headers=headers, reason=_PHRASES.get(status, "").encode()
            )
            return

        events: list[h11.Event] = []
        if self._head is not None:
            events.append(self._head)
            self._head = None
        if self.scope["method"] != "HEAD":
            events.append(h11.Data(data=message.get("body", b"")))
        is_end = not message.get("more_body", False)
        if is_end:
            events.append(h11.EndOfMessage())

        self.is_begun = True
        self._connection.write(b"".join(self._http.send(event) or b"" for event in events))
        if is_end:
            self.is_over = True
            self._changed.set()
            self._connection.answered()
