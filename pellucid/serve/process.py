"""One worker process: it listens, reads its models, answers, and stops in good order."""

import asyncio
import contextlib
import dataclasses
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Sequence

import torch
import uvicorn

from pellucid.core.errors import PellucidError
from pellucid.serve.http.app import make_app
from pellucid.serve.http.guard import Policy
from pellucid.serve.limits import Limits
from pellucid.serve.metrics import Metrics
from pellucid.serve.models import ModelPlace, open_model
from pellucid.serve.protocol import protocol_with
from pellucid.serve.service import Service

_LOG = logging.getLogger("pellucid.serve")

BACKLOG = 2048
"""Connections that the kernel holds until somebody accepts them."""
_ACCEPTED_AT_ONCE = 1
"""asyncio takes the backlog for the number of connections that it accepts in one go; with one,
worker processes that share a socket share its connections."""
_TURN_SECONDS = 0.02
_LAST_TURNS = 50
"""For requests that were cut off when the grace was over."""
_SWITCH_SECONDS = 0.001
"""How long the thread that translates may hold up the one that answers; 0.005 is Python's own."""


@dataclasses.dataclass(frozen=True)
class ServerPlan:
    """Everything that a worker process has to know."""

    places: Sequence[ModelPlace]
    limits: Limits
    policy: Policy
    batch_wait_seconds: float = 0.005
    threads: int | None = None
    """Of one operation of torch; None leaves the number to torch."""
    accepts_early: bool = True
    """Whether to listen while the models are read, and say so; not where others can answer."""


def run_worker(plan: ServerPlan, listener: socket.socket, ready: Callable[[], None]) -> None:
    """Answer requests until SIGTERM or SIGINT; ``ready`` is called when the models are there.

    The first signal lets accepted requests end, a second one ends the process. SIGHUP reads the
    models again. Raises what reading the models raised.
    """
    if plan.threads is not None:
        torch.set_num_threads(plan.threads)
    asyncio.run(_Worker(plan, listener, ready).serve())


class _Worker:
    """The parts of a running server, and what signals do to them."""

    def __init__(
        self, plan: ServerPlan, listener: socket.socket, ready: Callable[[], None]
    ) -> None:
        self._plan = plan
        self._listener = listener
        self._ready = ready
        self._stopping = asyncio.Event()
        self._failure: Exception | None = None
        self._reloading = threading.Lock()
        self._service = Service(plan.limits, Metrics(), batch_wait_seconds=plan.batch_wait_seconds)
        config = uvicorn.Config(
            make_app(self._service, plan.policy),
            http=protocol_with(plan.limits),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            backlog=_ACCEPTED_AT_ONCE,
            timeout_keep_alive=max(1, round(plan.limits.max_idle_seconds)),
            h11_max_incomplete_event_size=plan.limits.max_header_bytes,
        )
        config.load()
        self._server = uvicorn.Server(config)
        self._server.lifespan = config.lifespan_class(config)

    async def serve(self) -> None:
        """From the first connection to the last answer."""
        self._handle_signals()
        if not self._plan.accepts_early:
            await asyncio.to_thread(self._read_models)
            if self._failure is not None:
                raise self._failure
        await self._server.startup(sockets=[self._listener])
        self._listener.listen(BACKLOG)
        ticking = asyncio.create_task(self._tick())
        if self._plan.accepts_early:
            reading = asyncio.create_task(asyncio.to_thread(self._read_models))
            reading.add_done_callback(self._on_read)
        else:
            self._ready()
        await self._stopping.wait()
        await self._drain()
        ticking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await ticking
        await self._close()
        if self._failure is not None:
            raise self._failure

    def _handle_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_stop, number)
        loop.add_signal_handler(signal.SIGHUP, self._on_reload)

    def _on_stop(self, number: int) -> None:
        if self._stopping.is_set():
            _LOG.warning("a second signal: leaving at once")
            os._exit(128 + number)
        _LOG.info("stopping: running requests end, new ones are refused")
        self._service.is_draining = True
        self._stopping.set()

    def _on_reload(self) -> None:
        threading.Thread(target=self._reload, name="pellucid-loader", daemon=True).start()

    def _read_models(self) -> None:
        """At the start; a model that cannot be read ends the server."""
        try:
            for place in self._plan.places:
                self._service.put(open_model(place))
        except Exception as error:
            self._failure = error
        else:
            self._service.is_ready = True

    def _on_read(self, _reading: asyncio.Task[None]) -> None:
        if self._failure is None:
            self._ready()
        else:
            self._stopping.set()

    def _reload(self) -> None:
        """On SIGHUP; a model that cannot be read leaves the old one in place."""
        with self._reloading:
            for place in self._plan.places:
                try:
                    self._service.put(open_model(place))
                    _LOG.info("read %s again", place.name)
                except PellucidError as error:
                    _LOG.error("kept the old %s: %s", place.name, error)

    async def _tick(self) -> None:
        """What uvicorn's own loop would do: the Date header."""
        counter = 0
        while True:
            await self._server.on_tick(counter)
            counter += 10
            await asyncio.sleep(1.0)

    async def _drain(self) -> None:
        """Wait for accepted requests; the socket stays open, so that new ones get their 503."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self._plan.limits.max_grace_seconds
        state = self._server.server_state
        for connection in state.connections:
            cycle = getattr(connection, "cycle", None)
            if cycle is not None and not cycle.response_complete:
                cycle.keep_alive = False
        while state.tasks and loop.time() < until:
            await asyncio.sleep(_TURN_SECONDS)

    async def _close(self) -> None:
        state = self._server.server_state
        for server in self._server.servers:
            server.close()
        for connection in list(state.connections):
            connection.shutdown()
        await asyncio.sleep(_TURN_SECONDS)
        for connection in list(state.connections):
            connection.transport.abort()  # who waits for it is told, and cancels the work
        for _ in range(_LAST_TURNS):
            if not state.tasks:
                break
            await asyncio.sleep(_TURN_SECONDS)
        for task in list(state.tasks):
            task.cancel()
        self._service.stop(1.0)
