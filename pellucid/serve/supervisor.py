"""Several worker processes on one socket: those that die are replaced."""

import contextlib
import logging
import os
import signal
import socket
import time
from collections.abc import Callable

from prometheus_client.multiprocess import mark_process_dead

from pellucid.serve.process import ServerPlan, run_worker
from pellucid.serve.starting import Starting

_LOG = logging.getLogger("pellucid.serve")

_TURN_SECONDS = 0.05
_PAUSE_SECONDS = 1.0
"""Before a worker that did not live that long is replaced, so that a fault cannot fork wildly."""
_LEEWAY_SECONDS = 2.0
"""Beyond the grace that a worker gives its requests, until it is killed."""
_FAILED = 70


def run_workers(
    plan: ServerPlan,
    listener: socket.socket,
    announce: Callable[[], None],
    starting: Starting | None = None,
) -> None:
    """Answer requests until asked to stop. ``announce`` is called once all is ready.

    With one worker it is this process; with more, they are forked from it, which has imported
    everything and read nothing, so that a new one is there in a moment. ``starting`` answers
    until the first of them does.
    """
    if plan.workers == 1:
        run_worker(plan, listener, announce, starting=starting)
    else:
        _Supervisor(plan, listener, announce, starting).run()


class _Supervisor:
    """Forks workers, passes signals on, buries the dead."""

    def __init__(
        self,
        plan: ServerPlan,
        listener: socket.socket,
        announce: Callable[[], None],
        starting: Starting | None,
    ) -> None:
        self._plan = plan
        self._listener = listener
        self._announce = announce
        self._starting = starting
        self._born: dict[int, float] = {}
        self._ready_in, self._ready_out = os.pipe()
        os.set_blocking(self._ready_in, False)
        self._lifeline_in, self._lifeline_out = os.pipe()
        """Nothing is ever written; the workers learn from its end that this process is no more."""
        self._stops = 0
        self._reload = False
        self._failure = 0

    def run(self) -> None:
        """Until all workers have ended. Raises SystemExit with the code of one that failed."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_stop)
        signal.signal(signal.SIGHUP, self._on_reload)
        for _ in range(self._plan.workers):
            self._fork()
        self._watch()
        if self._failure:
            raise SystemExit(self._failure)

    def _on_stop(self, _number: int, _frame: object) -> None:
        self._stops += 1

    def _on_reload(self, _number: int, _frame: object) -> None:
        self._reload = True

    def _fork(self) -> None:
        pid = os.fork()
        if pid == 0:
            code = _FAILED
            try:
                for descriptor in (self._ready_in, self._lifeline_out):
                    os.close(descriptor)
                for number in (signal.SIGTERM, signal.SIGINT):
                    signal.signal(number, signal.SIG_DFL)
                signal.signal(signal.SIGHUP, signal.SIG_IGN)  # its models are read just now
                run_worker(
                    self._plan,
                    self._listener,
                    self._tell_ready,
                    starting=self._starting,
                    lifeline=self._lifeline_in,
                )
                code = 0
            except Exception as error:
                code = getattr(error, "exit_code", _FAILED)
                _LOG.error("a worker could not go on: %s", error)
            finally:
                os._exit(code)
        self._born[pid] = time.monotonic()

    def _tell_ready(self) -> None:
        with contextlib.suppress(BrokenPipeError):  # the supervisor was killed this instant
            os.write(self._ready_out, b".")

    def _watch(self) -> None:
        asked_to_stop = passed_on = ready = 0
        until = float("inf")
        while self._born:
            self._bury()
            if not asked_to_stop:
                ready += self._count_ready()
                if ready >= self._plan.workers:
                    asked_to_stop = 1
                    if self._starting is not None:
                        self._starting.stop()
                    self._announce()
            if self._starting is not None:
                self._starting.reap()
            if self._reload:
                self._reload = False
                self._signal_all(signal.SIGHUP)
            if self._stops > passed_on:
                passed_on = self._stops
                self._signal_all(signal.SIGTERM)
                until = time.monotonic() + self._plan.limits.max_grace_seconds + _LEEWAY_SECONDS
            if time.monotonic() > until:
                self._signal_all(signal.SIGKILL)
            time.sleep(_TURN_SECONDS)

    def _count_ready(self) -> int:
        try:
            return len(os.read(self._ready_in, 64))
        except BlockingIOError:
            return 0

    def _bury(self) -> None:
        """Take note of those that ended; replace them, unless it is time to stop."""
        for pid in list(self._born):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if not ended:
                continue
            lived = time.monotonic() - self._born.pop(pid)
            mark_process_dead(pid)  # type: ignore[no-untyped-call]
            code = os.waitstatus_to_exitcode(status)
            if self._stops:
                continue
            if code > 0:  # it could not read its models, and no other could
                self._failure = code
                self._stops += 1
                continue
            _LOG.error("worker %d ended (%d) after %.0f s; starting another", pid, code, lived)
            time.sleep(max(0.0, _PAUSE_SECONDS - lived))
            self._fork()

    def _signal_all(self, number: signal.Signals) -> None:
        for pid in self._born:
            os.kill(pid, number)
