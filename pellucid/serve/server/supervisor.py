"""Several worker processes on one listening socket; a worker that dies is replaced."""

import contextlib
import dataclasses
import logging
import os
import signal
import socket
import time
from collections.abc import Callable

from prometheus_client.multiprocess import mark_process_dead

from pellucid.serve.server.process import ServerPlan, run_worker
from pellucid.serve.server.starting import Starting

_LOG = logging.getLogger("pellucid.serve")

_TURN_SECONDS = 0.05
"""Pause between two turns of the supervisor's loop."""
_PAUSE_SECONDS = 1.0
"""The least time between the fork of a worker and its replacement, so that a worker that always
dies at once does not make the supervisor fork without end."""
_LONGEST_PAUSE_SECONDS = 60.0
"""Before another replacement is tried, where the last ones could not load their models."""
_LEEWAY_SECONDS = 2.0
"""Time that a worker gets beyond the grace period of its requests before it is killed."""
_FAILED = 70
"""Exit code of a worker that raised an unexpected error (sysexits.h, EX_SOFTWARE)."""


def run_workers(
    plan: ServerPlan,
    listener: socket.socket,
    announce: Callable[[], None],
    starting: Starting | None = None,
) -> None:
    """Answer requests until a signal stops it; call ``announce`` once all workers are ready.

    A single worker is this process itself. Several are forked from it: it has imported everything
    but loaded no model, so a fork is fast. ``starting`` answers until the first worker does.
    """
    if plan.workers == 1:
        run_worker(plan, listener, announce, starting=starting)
    else:
        _Supervisor(plan, listener, announce, starting).run()


@dataclasses.dataclass
class _Supervisor:
    """Forks workers, forwards signals to them, and replaces those that die."""

    plan: ServerPlan
    listener: socket.socket
    announce: Callable[[], None]
    starting: Starting | None

    def __post_init__(self) -> None:
        self._started: dict[int, float] = {}
        """When each living worker was forked, by process id."""

        self._ready_in, self._ready_out = os.pipe()
        # The loop polls this end; it must not wait for workers that are loading their models.
        os.set_blocking(self._ready_in, False)
        self._lifeline_in, self._lifeline_out = os.pipe()
        """Nothing is written. The kernel closes it when this process ends; the workers notice."""
        self._stops = 0
        """Signals to stop that have arrived."""
        self._reload = False
        self._failure = 0
        self._is_announced = False
        """Whether all workers have been ready once."""
        self._replacements: list[float] = []
        """When workers are to be forked for those that died."""
        self._failed_replacements = 0
        """How many have ended, one after another, before they were ready."""

    def run(self) -> None:
        """Run until all workers have ended. Raises SystemExit with the code of one that failed."""
        # Handlers only set a flag: `_watch` acts on it, because a handler may run between any two
        # instructions, also between a fork and the note of its process id.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_stop)
        signal.signal(signal.SIGHUP, self._on_reload)

        for _ in range(self.plan.workers):
            self._fork()

        self._watch()
        if self._failure:
            raise SystemExit(self._failure)

    def _on_stop(self, _number: int, _frame: object) -> None:
        self._stops += 1

    def _on_reload(self, _number: int, _frame: object) -> None:
        self._reload = True

    def _fork(self) -> None:
        # Safe, because the supervisor starts no threads and runs no event loop.
        pid = os.fork()
        if pid == 0:
            code = _FAILED
            try:
                # Without its own copy of the lifeline's other end, or it would never see it close.
                for descriptor in (self._ready_in, self._lifeline_out):
                    os.close(descriptor)

                # Until the worker's event loop handles signals: SIGTERM kills it, and SIGHUP is
                # ignored, because the application is being opened right now.
                for number in (signal.SIGTERM, signal.SIGINT):
                    signal.signal(number, signal.SIG_DFL)
                signal.signal(signal.SIGHUP, signal.SIG_IGN)

                run_worker(
                    self.plan,
                    self.listener,
                    self._tell_ready,
                    starting=self.starting,
                    lifeline=self._lifeline_in,
                )
                code = 0
            except Exception as error:
                code = getattr(error, "exit_code", _FAILED)
                _LOG.error("a worker could not go on: %s", error)
            finally:
                os._exit(code)  # not sys.exit: the cleanup of the parent is not the child's

        self._started[pid] = time.monotonic()

    def _tell_ready(self) -> None:
        with contextlib.suppress(BrokenPipeError):  # the supervisor has just been killed
            os.write(self._ready_out, b".")  # atomic, so bytes of several workers do not mix

    def _watch(self) -> None:
        ready = signals_passed_on = 0
        kill_at = float("inf")
        # A worker that died young leaves none for a moment, until its replacement is forked.
        while self._started or (self._replacements and not self._stops):
            self._collect_dead()
            self._fork_replacements()

            newly_ready = self._count_ready()
            ready += newly_ready
            if newly_ready:
                self._failed_replacements = 0
            if not self._is_announced and ready >= self.plan.workers:
                self._is_announced = True
                # Before the announcement, so that nobody who read it still gets a 503.
                if self.starting is not None:
                    self.starting.stop()
                self.announce()
            if self.starting is not None:
                self.starting.reap()

            if self._reload:
                self._reload = False
                self._signal_all(signal.SIGHUP)

            # Each further signal is passed on too: the second one makes a worker leave at once.
            if self._stops > signals_passed_on:
                signals_passed_on = self._stops
                self._signal_all(signal.SIGTERM)
                kill_at = time.monotonic() + self.plan.limits.max_grace_seconds + _LEEWAY_SECONDS

            if time.monotonic() > kill_at:
                self._signal_all(signal.SIGKILL)

            time.sleep(_TURN_SECONDS)

    def _count_ready(self) -> int:
        """How many workers have become ready since the last call; each writes one byte."""
        try:
            return len(os.read(self._ready_in, 64))
        except BlockingIOError:
            return 0

    def _collect_dead(self) -> None:
        """Collect workers that have ended, and plan their replacements unless the server stops."""
        for pid in list(self._started):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if not ended:
                continue
            lived = time.monotonic() - self._started.pop(pid)

            # Removes its live gauges from the shared metrics; its counters stay in the sums.
            mark_process_dead(pid)  # type: ignore[no-untyped-call]

            code = os.waitstatus_to_exitcode(status)

            if self._stops:
                continue
            # An error of its own, not a signal: it could not load its models. While the server
            # starts no other worker can, and later the others go on with theirs.
            if code > 0 and not (self._is_announced and self._started):
                self._failure = code
                self._stops += 1
                continue

            pause = max(0.0, _PAUSE_SECONDS - lived)
            if code > 0:
                pause = min(2.0**self._failed_replacements, _LONGEST_PAUSE_SECONDS)
                # no further than the longest pause: a power of two overflows some day
                self._failed_replacements = min(self._failed_replacements + 1, 10)
            _LOG.error(
                "worker %d ended (%d) after %.0f s; starting another in %.0f s",
                pid,
                code,
                lived,
                pause,
            )
            self._replacements.append(time.monotonic() + pause)

    def _fork_replacements(self) -> None:
        due = [moment for moment in self._replacements if moment <= time.monotonic()]
        for moment in due:
            self._replacements.remove(moment)
            if not self._stops:
                self._fork()

    def _signal_all(self, number: signal.Signals) -> None:
        # Safe: a worker that has ended stays a zombie, with its id, until it is collected.
        for pid in self._started:
            os.kill(pid, number)
