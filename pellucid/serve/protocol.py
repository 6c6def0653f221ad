"""uvicorn's HTTP/1.1 protocol with deadlines: nobody may be slow for ever.

uvicorn waits without end for the rest of a request, for the first byte of one, and for a client
that does not read its answer (measured with 0.54). ASGI middleware never sees such clients. This
can go once uvicorn has timeouts for the receipt of a request.
"""

import asyncio
import contextlib
import socket
import sys
from typing import Any

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from pellucid.serve.http.errors import TITLES
from pellucid.serve.limits import Limits
from pellucid.serve.plain_answers import problem_bytes

_SLICE = 4096
"""Bytes fed at a time until a request's head is whole: a head that says ``chunked`` is refused
before its chunks, maybe hundreds of thousands of a byte each, are taken apart."""
_PROBE_SECONDS = 0.25
"""How long a client that sends no more is left in peace, and how often it is looked for then."""


class DeadlineProtocol(H11Protocol):
    """One connection. Requests must arrive, and answers be taken, within the limits."""

    limits: Limits
    """Set on the subclass that ``protocol_with`` makes."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._receipt: asyncio.TimerHandle | None = None
        self._reading: asyncio.TimerHandle | None = None
        self._probing: asyncio.TimerHandle | None = None
        self._has_ended = False
        """Whether the client has closed its half of the connection."""
        self._is_probed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected; it must send something."""
        assert isinstance(transport, asyncio.Transport)
        super().connection_made(transport)
        if len(self.connections) > self.limits.max_connections:
            self._answer_and_close(503, "too many connections are open")
            return
        self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is no more."""
        self._cancel_timers()
        super().connection_lost(exc)
        self._cancel_timers()

    def data_received(self, data: bytes) -> None:
        """Feed the parser; a request of unknown length ends the connection."""
        view = memoryview(data)
        while view and not self.transport.is_closing():
            in_head = self.conn.their_state is not h11.SEND_BODY
            size = _SLICE if in_head else len(view)
            super().data_received(bytes(view[:size]))
            view = view[size:]
            if self.conn.their_state is h11.SEND_BODY and self._is_chunked():
                self._answer_and_close(411, "the body's Content-Length must be told")
                return
        if self._is_receiving():
            self._await_request()
        else:
            self._cancel_receipt()

    def eof_received(self) -> bool:  # type: ignore[override]  # asyncio's own signature
        """The client sends no more: what it has asked for is answered, then the connection closed.

        Whether it still reads cannot be seen. A client that has left refuses what is sent to it,
        so one that has to wait is sent ``100 Continue``, which every client skips.
        """
        self._has_ended = True
        self._cancel_receipt()
        if self._is_answering():
            self._close_after_last()
            if self._probing is None:
                self._probing = self.loop.call_later(_PROBE_SECONDS, self._probe)
            return True
        return False

    def _probe(self) -> None:
        """Look whether a client that sends no more is still there."""
        self._probing = None
        if self.transport.is_closing() or not self._is_answering():
            return
        if self._has_refused():
            self.transport.abort()  # whoever waits for it gets an error and cancels the work
            return
        if not self._is_probed and not self.cycle.response_started:
            if self.conn.their_http_version == b"1.1":
                event = h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue")
                self.transport.write(self.conn.send(event))
            self._is_probed = True
        self._probing = self.loop.call_later(_PROBE_SECONDS, self._probe)

    def _has_refused(self) -> bool:
        """Whether the client's system has reset the connection; asyncio no longer watches it."""
        own: socket.socket = self.transport.get_extra_info("socket")
        with contextlib.suppress(OSError):
            return own.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0
        return True

    def _is_answering(self) -> bool:
        """Whether a whole request is here whose answer is not."""
        cycle = self.cycle
        return cycle is not None and not cycle.response_complete and not cycle.more_body

    def _close_after_last(self) -> None:
        """Of a client that sends no more, the last request ends the connection."""
        if not self.conn.trailing_data[0]:
            self.cycle.keep_alive = False

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP/1.1, or too much of it."""
        error = sys.exc_info()[1]
        status = getattr(error, "error_status_hint", 400)
        status = status if status in TITLES else 400
        detail = msg if status == 400 else TITLES[status]
        self._answer_and_close(status, detail)

    def on_response_complete(self) -> None:
        """An answer is written; the next request may come, and does not have to."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._await_reader()
        elif self._has_ended and self._is_answering():  # of several in one packet, the next
            self._close_after_last()
        elif self._has_ended:
            self.transport.close()
            self._await_reader()
        elif self._is_receiving():
            self._await_request()

    def pause_writing(self) -> None:
        """The client does not read; it must go on within the receipt deadline."""
        super().pause_writing()
        self._await_reader()

    def resume_writing(self) -> None:
        """The client reads again."""
        super().resume_writing()
        if self._reading is not None and not self.transport.is_closing():
            self._reading.cancel()
            self._reading = None

    def timeout_keep_alive_handler(self) -> None:
        """No next request came; whoever has not read the last answer by now never will."""
        super().timeout_keep_alive_handler()
        self._await_reader()

    def shutdown(self) -> None:
        """The server stops: an idle connection is closed, a busy one after its answer."""
        super().shutdown()
        if self.transport.is_closing():
            self._await_reader()

    def _is_chunked(self) -> bool:
        return any(name == b"transfer-encoding" for name, _ in self.headers or ())

    def _is_receiving(self) -> bool:
        """Whether part of a request is here and part is not."""
        if self.conn.their_state is h11.SEND_BODY:
            return True
        return self.conn.their_state is h11.IDLE and bool(self.conn.trailing_data[0])

    def _await_request(self) -> None:
        if self._receipt is None and not self.transport.is_closing():
            self._receipt = self.loop.call_later(self.limits.max_receipt_seconds, self._too_slow)

    def _await_reader(self) -> None:
        if self._reading is None:
            self._reading = self.loop.call_later(
                self.limits.max_receipt_seconds, self.transport.abort
            )

    def _too_slow(self) -> None:
        self._receipt = None
        if self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]:
            self.transport.abort()  # it never said a word
        else:
            seconds = self.limits.max_receipt_seconds
            self._answer_and_close(408, f"the request was not received within {seconds:g} seconds")

    def _answer_and_close(self, status: int, detail: str) -> None:
        """Write an answer past the parser, unless one has begun, and close."""
        cycle = self.cycle
        in_answer = cycle is not None and cycle.response_started and not cycle.response_complete
        if not in_answer and not self.transport.is_closing():
            self.transport.write(problem_bytes(status, TITLES[status], detail))
        if cycle is not None:
            cycle.disconnected = True
            cycle.message_event.set()
        self._cancel_receipt()
        self.transport.close()
        self._await_reader()

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


def protocol_with(limits: Limits) -> type[DeadlineProtocol]:
    """The protocol that holds clients to these limits; uvicorn makes one for each connection."""
    return type("LimitedProtocol", (DeadlineProtocol,), {"limits": limits})
