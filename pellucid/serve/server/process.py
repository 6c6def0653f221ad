"""One worker process: it opens its application, serves it, reloads on SIGHUP and shuts down."""

import asyncio
import contextlib
import dataclasses
import gc
import logging
import os
import shutil
import signal
import socket
import sys
import threading
from collections.abc import Callable

from starlette.types import ASGIApp

from pellucid.serve.server import SHARED_FIGURES
from pellucid.serve.server.connection import Connection, Site
from pellucid.serve.server.limits import ServerLimits
from pellucid.serve.server.pauses import loading
from pellucid.serve.server.starting import Starting

_LOG = logging.getLogger("pellucid.serve")

BACKLOG = 2048
"""Connections that the kernel queues until a worker accepts them."""
_ACCEPTED_AT_ONCE = 64
"""Connections accepted in one turn of the event loop. Between two turns the loop may wait for
Python's global lock: with one connection per turn, at hundreds per second, overload would stay in
the backlog, unanswered. asyncio takes this number from its parameter ``backlog``."""
_ACCEPTED_AT_ONCE_BY_EACH = 4
"""The same with several processes on one socket: the fewer, the more evenly they share the load."""
_TURN_SECONDS = 0.02
"""How often the worker checks, while it stops, whether requests are still running."""
_LAST_TURNS = 50
"""The number of such pauses for requests to end after their connection was cut off: one second in
all."""
_REAP_SECONDS = 1.0
"""How often the worker looks whether the process that answered during the start has ended."""
_SWITCH_SECONDS = 0.001
"""How long a thread that computes may block the one that answers; Python's default is 0.005."""


@dataclasses.dataclass(frozen=True)
class Application:
    """The application that a worker serves. The worker itself calls everything but ``asgi``."""

    asgi: ASGIApp
    reload: Callable[[], None]
    """Called in a thread of its own on SIGHUP, never twice at a time."""
    note_refusal: Callable[[int], None]
    """Called with the status of each answer that a connection gave before there was a request."""
    drain: Callable[[], None]
    """Called when the worker has to stop: running requests end, new ones are refused."""
    stop: Callable[[float], bool]
    """Called with seconds to wait, after the last request; returns whether all threads ended."""


@dataclasses.dataclass(frozen=True)
class ServerPlan:
    """The settings of a worker process."""

    open: Callable[[], Application]
    """Called in each worker process before it answers; may take as long as it needs."""
    limits: ServerLimits
    workers: int = 1
    """The number of processes that share the socket."""


def run_worker(
    plan: ServerPlan,
    listener: socket.socket,
    ready: Callable[[], None],
    *,
    starting: Starting | None = None,
    lifeline: int | None = None,
) -> None:
    """Answer requests until SIGTERM or SIGINT; call ``ready`` once connections are accepted.

    ``starting`` answers until then. The first signal lets accepted requests finish, a second one
    ends the process. SIGHUP reloads the application. ``lifeline`` is the read end of a pipe that
    the supervisor holds open: when it closes, the process accepts no more connections and ends as
    on SIGTERM. Raises what opening the application raised.
    """
    sys.setswitchinterval(_SWITCH_SECONDS)
    watched = None if lifeline is None else _Lifeline(lifeline)

    # Before the event loop runs: `starting` answers meanwhile, from another process.
    with loading():
        application = plan.open()
        gc.collect()  # now, while nobody waits: garbage must not be frozen
    asyncio.run(_Worker(plan, listener, application, ready).serve(starting, watched))

    if watched is not None and watched.is_cut and SHARED_FIGURES in os.environ:
        # The supervisor made this folder and has been killed, so it cannot remove it.
        shutil.rmtree(os.environ[SHARED_FIGURES], ignore_errors=True)
    if not application.stop(0.0):
        # A thread is still inside compiled code, for no client. An interpreter that shuts down
        # beneath it would abort, so skip the shutdown.
        _LOG.warning("leaving while a thread still computes")
        logging.shutdown()
        os._exit(0)


class _Lifeline:
    """Watches, in a thread, for the end of the supervisor through a pipe.

    A supervisor that is killed cannot send a signal, but the kernel closes its end of the pipe. A
    worker that does not serve yet then ends at once.
    """

    def __init__(self, descriptor: int) -> None:
        self.is_cut = False
        self._descriptor = descriptor
        self._lock = threading.Lock()  # `call` must not replace the callback while it runs
        self._on_cut: Callable[[], object] = lambda: os._exit(128 + signal.SIGTERM)
        threading.Thread(target=self._wait, name="pellucid-lifeline", daemon=True).start()

    def call(self, on_cut: Callable[[], object]) -> None:
        """Replace what the thread calls when the pipe is closed."""
        with self._lock:
            self._on_cut = on_cut

    def _wait(self) -> None:
        # Blocks until end of file, as nothing is ever written.
        os.read(self._descriptor, 1)
        with self._lock:
            self.is_cut = True
            self._on_cut()


@dataclasses.dataclass
class _Worker:
    """A running server: its start, its reaction to signals, and its orderly end."""

    plan: ServerPlan
    listener: socket.socket
    application: Application
    ready: Callable[[], None]

    def __post_init__(self) -> None:
        self._stopping = asyncio.Event()
        self._reloading = threading.Lock()  # two reloads at once would need the memory of both

        self._site = Site(self.application.asgi, self.plan.limits, self.application.note_refusal)
        self._server: asyncio.Server | None = None

    async def serve(self, starting: Starting | None, lifeline: _Lifeline | None) -> None:
        """Serve from the first connection to the last answer."""
        self._handle_signals()
        if lifeline is not None:
            loop = asyncio.get_running_loop()
            lifeline.call(lambda: loop.call_soon_threadsafe(self._on_abandoned))

        # The other process stops first, so that a 200 is never followed by a 503.
        if starting is not None:
            starting.stop()
        self._server = await asyncio.get_running_loop().create_server(
            lambda: Connection(self._site),
            sock=self.listener,
            backlog=_ACCEPTED_AT_ONCE if self.plan.workers == 1 else _ACCEPTED_AT_ONCE_BY_EACH,
        )
        # Again, because asyncio has just called it with the small number of connections per turn.
        self.listener.listen(BACKLOG)
        self.ready()

        while not self._stopping.is_set():
            if starting is not None:
                starting.reap()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), _REAP_SECONDS)
        await self._drain()
        await self._close()

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
        self.application.drain()
        self._stopping.set()

    def _on_abandoned(self) -> None:
        """The supervisor has died: free the port for the next server, then stop."""
        _LOG.error("the supervisor has died: stopping")
        # Only this worker's copy of the socket: the port is free once all workers have closed it.
        if self._server is not None:
            self._server.close()
        if not self._stopping.is_set():
            self._on_stop(signal.SIGTERM)

    def _on_reload(self) -> None:
        # In a thread, because loading takes seconds and the event loop has requests to answer.
        threading.Thread(target=self._reload, name="pellucid-loader", daemon=True).start()

    def _reload(self) -> None:
        with self._reloading:
            self.application.reload()

    async def _drain(self) -> None:
        """Wait for accepted requests; the socket stays open, so that new requests get a 503."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self.plan.limits.max_grace_seconds
        # A connection kept alive could carry new requests forever: close each after its answer.
        self._site.is_stopping = True
        while self._site.tasks and loop.time() < until:
            await asyncio.sleep(_TURN_SECONDS)

    async def _close(self) -> None:
        site = self._site
        assert self._server is not None
        self._server.close()
        for connection in list(site.connections):
            connection.shutdown()

        # One turn for answers that are complete to leave the buffers.
        await asyncio.sleep(_TURN_SECONDS)

        for connection in list(site.connections):
            connection.abort()  # the request that waits for it gets an error, and cancels

        for _ in range(_LAST_TURNS):
            if not site.tasks:
                break
            await asyncio.sleep(_TURN_SECONDS)

        # Whatever is still running does not notice that its client has been cut off.
        for task in list(site.tasks):
            task.cancel()
        self.application.stop(1.0)
