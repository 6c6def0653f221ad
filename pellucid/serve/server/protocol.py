"""uvicorn's HTTP/1.1 protocol with deadlines for slow clients.

uvicorn waits forever for the first byte of a request, for the rest of one, and for a client that
does not read its answer (measured with 0.54). ASGI middleware never sees such clients. Remove this
module once uvicorn has timeouts for receiving a request.
"""

import asyncio
import contextlib
import logging
import socket
import sys
import time
from collections.abc import Callable
from typing import Any

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from pellucid.serve.server.errors import REFUSED
from pellucid.serve.server.limits import ServerLimits
from pellucid.serve.server.problems import TITLES, problem_bytes

_LOG = logging.getLogger("pellucid.serve")
_SLICE = 4096
"""Bytes given to the parser at a time until a request's head is complete: a chunked request is
refused before its chunks, perhaps hundreds of thousands of one byte each, are parsed."""
_LONGEST_SIZE = 15
"""Digits of a Content-Length that are read."""
_LOG_EVERY_SECONDS = 10.0
"""Between two lines of the log about refusals with one status."""
_PROBE_SECONDS = 0.25
"""How often a client that has closed its sending half is checked for being there."""


class DeadlineProtocol(H11Protocol):
    """One connection, with deadlines for receiving requests and for sending answers."""

    limits: ServerLimits
    """Set on the subclass that ``protocol_with`` makes."""
    refusals: "Refusals"
    """Set on the subclass that ``protocol_with`` makes."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._receipt: asyncio.TimerHandle | None = None  # the request must arrive
        self._receipt_seconds = self.limits.max_receipt_seconds
        self._reading: asyncio.TimerHandle | None = None  # the client must read
        self._probing: asyncio.TimerHandle | None = None  # the client must still be there
        self._has_ended = False
        """Whether the client has closed its sending half of the connection."""
        self._is_probed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the deadline of the first request."""
        assert isinstance(transport, asyncio.Transport)
        super().connection_made(transport)
        # uvicorn has added this connection already, so the set may be one larger than the limit.
        if len(self.connections) > self.limits.max_connections:
            self._answer_and_close(503, "too many connections are open")
            return
        self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all timers."""
        self._cancel_timers()

        super().connection_lost(exc)
        self._cancel_timers()  # again, in case one of its callbacks has started a timer

    def data_received(self, data: bytes) -> None:
        """Feed the parser in slices; close the connection for a chunked request."""
        view = memoryview(data)
        while view and not self.transport.is_closing():
            in_head = self.conn.their_state is not h11.SEND_BODY
            size = _SLICE if in_head else len(view)
            super().data_received(bytes(view[:size]))
            view = view[size:]
            # The head is complete: a chunked body is refused before any chunk is parsed.
            if self.conn.their_state is h11.SEND_BODY and self._is_chunked():
                self._answer_and_close(411, "the body must have a Content-Length")
                return
            if in_head and self.conn.their_state is h11.SEND_BODY:
                self._extend_for_upload()

        # The deadline starts with the first byte of a request and is not moved by later ones: a
        # client that sends a byte every second gains nothing.
        if self._is_receiving():
            self._await_request()
        else:
            self._cancel_receipt()

    def eof_received(self) -> bool:  # type: ignore[override]  # asyncio's own signature
        """Answer the requests that have arrived, then close the connection.

        TCP does not tell apart a client that has left and one that has only closed its sending
        half. The system of a client that has left resets the connection when something is sent
        to it. So a client that has to wait is sent ``100 Continue``, which clients skip
        (RFC 9110, section 15.2).
        """
        self._has_ended = True
        self._cancel_receipt()
        if self._is_answering():
            self._close_after_last()
            if self._probing is None:
                self._probing = self.loop.call_later(_PROBE_SECONDS, self._probe)
            return True  # asyncio keeps the sending half open
        return False

    def _probe(self) -> None:
        """Check whether a client that has closed its sending half is still there."""
        self._probing = None
        if self.transport.is_closing() or not self._is_answering():
            return
        if self._has_refused():
            self.transport.abort()  # the request gets an error, and cancels its work
            return
        if not self._is_probed and not self.cycle.response_started:
            # HTTP/1.0 has no informational responses.
            if self.conn.their_http_version == b"1.1":
                event = h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue")
                self.transport.write(self.conn.send(event))
            self._is_probed = True
        self._probing = self.loop.call_later(_PROBE_SECONDS, self._probe)

    def _has_refused(self) -> bool:
        """Whether the client's system has reset the connection.

        Reads the state of the socket, because asyncio stops reading after the end of file.
        """
        own: socket.socket = self.transport.get_extra_info("socket")
        with contextlib.suppress(OSError):
            return own.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0
        return True

    def _is_answering(self) -> bool:
        """Whether a complete request has arrived and its answer is not finished."""
        cycle = self.cycle
        return cycle is not None and not cycle.response_complete and not cycle.more_body

    def _close_after_last(self) -> None:
        """Close the connection after this answer, unless another request has arrived."""
        if not self.conn.trailing_data[0]:
            self.cycle.keep_alive = False

    def send_400_response(self, msg: str) -> None:
        """Answer a malformed or too large request head."""
        error = sys.exc_info()[1]
        status = getattr(error, "error_status_hint", 400)
        status = status if status in TITLES else 400
        detail = msg if status == 400 else TITLES[status]
        self._answer_and_close(status, detail)

    def on_response_complete(self) -> None:
        """Start the deadline of the next request if part of it has arrived."""
        super().on_response_complete()
        # uvicorn may have begun the next of several pipelined requests in that call.
        if self.transport.is_closing():
            self._await_reader()
        elif self._has_ended and self._is_answering():  # the next of several pipelined requests
            self._close_after_last()
        elif self._has_ended:
            self.transport.close()
            self._await_reader()
        elif self._is_receiving():
            self._await_request()

    def pause_writing(self) -> None:
        """Start a deadline for a client that does not read."""
        super().pause_writing()
        self._await_reader()

    def resume_writing(self) -> None:
        """Stop the deadline: the client reads again."""
        super().resume_writing()
        # A connection that is closing keeps its deadline: its last bytes must leave in time.
        if self._reading is not None and not self.transport.is_closing():
            self._reading.cancel()
            self._reading = None

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection; a client that has not read the last answer gets a deadline."""
        super().timeout_keep_alive_handler()
        self._await_reader()

    def shutdown(self) -> None:
        """Close the connection: now if it is idle, otherwise after its answer."""
        super().shutdown()
        if self.transport.is_closing():
            self._await_reader()

    def _is_chunked(self) -> bool:
        return any(name == b"transfer-encoding" for name, _ in self.headers or ())

    def _is_receiving(self) -> bool:
        """Whether part of a request has arrived and part has not."""
        if self.conn.their_state is h11.SEND_BODY:
            return True
        return self.conn.their_state is h11.IDLE and bool(self.conn.trailing_data[0])

    def _await_request(self) -> None:
        if self._receipt is None and not self.transport.is_closing():
            self._receipt_seconds = self.limits.max_receipt_seconds
            self._receipt = self.loop.call_later(self._receipt_seconds, self._too_slow)

    def _extend_for_upload(self) -> None:
        """Give a file more time than a short request has, in proportion to its size."""
        headers = dict(self.headers or ())
        size = headers.get(b"content-length", b"0")
        is_upload = headers.get(b"content-type", b"").lower().startswith(b"multipart/form-data")
        if not is_upload or not size.isdigit() or len(size) > _LONGEST_SIZE:
            return

        self._await_request()
        if self._receipt is not None:
            share = min(int(size) / self.limits.max_file_bytes, 1.0)
            more = share * self.limits.max_upload_seconds
            self._receipt_seconds = self.limits.max_receipt_seconds + more
            when = self._receipt.when() + more
            self._receipt.cancel()
            self._receipt = self.loop.call_at(when, self._too_slow)

    def _await_reader(self) -> None:
        if self._reading is None:
            self._reading = self.loop.call_later(
                self.limits.max_receipt_seconds, self.transport.abort
            )

    def _too_slow(self) -> None:
        self._receipt = None
        if self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]:
            self.transport.abort()  # nothing was sent, so there is nothing to answer
        else:
            seconds = self._receipt_seconds
            self._answer_and_close(408, f"the request was not received within {seconds:g} seconds")

    def _answer_and_close(self, status: int, detail: str) -> None:
        """Write an answer directly to the transport, unless one has begun, and close."""
        cycle = self.cycle
        in_answer = cycle is not None and cycle.response_started and not cycle.response_complete
        if not in_answer and not self.transport.is_closing():
            # Past h11, whose state may not allow an answer in the middle of a request.
            self.transport.write(problem_bytes(status, detail))
            self._note_refusal(status, detail)

        # Wakes the application if it waits for the body.
        if cycle is not None:
            cycle.disconnected = True
            cycle.message_event.set()

        # `close` waits until the buffer is empty, which a client that does not read prevents.
        self._cancel_receipt()
        self.transport.close()
        self._await_reader()

    def _note_refusal(self, status: int, detail: str) -> None:
        """Count a refusal once: with its request if the application has one, else here."""
        if self._is_asked():
            self.cycle.scope.setdefault("state", {})[REFUSED] = status
        else:
            self.refusals.add(status, detail)

    def _is_asked(self) -> bool:
        """Whether the application has a request of this connection that is not answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def _cancel_receipt(self) -> None:
        if self._receipt is not None:
            self._receipt.cancel()
            self._receipt = None

    def _cancel_timers(self) -> None:
        self._cancel_receipt()
        for timer in (self._reading, self._probing):
            if timer is not None:
                timer.cancel()
        self._reading = self._probing = None


class Refusals:
    """Counts the answers of connections that were no requests yet, and logs some of them."""

    def __init__(self, count: Callable[[int], None]) -> None:
        self._count = count
        self._logged: dict[int, float] = {}
        """When a status was last logged."""
        self._unlogged: dict[int, int] = {}
        """How often it was given since."""

    def add(self, status: int, detail: str) -> None:
        """Count a refusal; log it unless its status was logged in the last seconds."""
        self._count(status)
        now = time.monotonic()
        self._unlogged[status] = self._unlogged.get(status, 0) + 1
        if now - self._logged.get(status, -_LOG_EVERY_SECONDS) >= _LOG_EVERY_SECONDS:
            count = self._unlogged.pop(status)
            self._logged[status] = now
            _LOG.warning("%d connections were refused with %d: %s", count, status, detail)


def protocol_with(limits: ServerLimits, refusals: Refusals) -> type[DeadlineProtocol]:
    """A protocol class with these limits; uvicorn creates an instance for each connection."""
    return type("LimitedProtocol", (DeadlineProtocol,), {"limits": limits, "refusals": refusals})
