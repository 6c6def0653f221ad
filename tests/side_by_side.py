"""Runs tests side by side, in forks of the process that has collected them.

    python -m pytest --workers 4

Collecting takes twenty seconds of a processor and half a gigabyte of memory. New processes would
each pay that; forks share it, so that there may be more of them than cores, and no core waits.

A worker begins with a share of the tests that follow each other, so that what a module makes is
mostly made once. One that has finished takes half of the longest share that is left. If a worker
dies, the test it ran has failed, and a new worker goes on with its share.
"""

import atexit
import contextlib
import dataclasses
import itertools
import json
import os
import selectors
import shutil
import signal
import socket
import sys
import tempfile
import traceback
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn, TextIO

import pytest

RUN = "PELLUCID_TESTS_RUN"
"""The name that all workers of a run have in their environment, where there are any."""


def add_option(parser: pytest.Parser) -> None:
    parser.addoption("--workers", type=int, default=0, help="run the tests in so many processes")


def register(config: pytest.Config) -> None:
    if config.getoption("--workers") > 0:
        config.pluginmanager.register(_Foreman(config.getoption("--workers")))


@dataclasses.dataclass(eq=False)
class _Worker:
    """A process as the foreman sees it; ``given`` are the tests it has and has not finished."""

    share: deque[int]
    pid: int = 0
    channel: socket.socket | None = None
    unread: bytes = b""
    problem: str = ""
    given: deque[int] = dataclasses.field(default_factory=deque)


class _Foreman:
    def __init__(self, count: int) -> None:
        self._count = count
        self._workers: list[_Worker] = []
        self._selector = selectors.DefaultSelector()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Run all tests; what stops a session before its first test is left to pytest."""
        if session.testsfailed or session.config.option.collectonly:
            return None

        with _folder_of_all_workers(session) as folder:
            os.environ[RUN] = str(os.getpid())
            os.environ["PYTEST_DEBUG_TEMPROOT"] = folder  # each worker makes its own below it
            try:
                for share in _shares(len(session.items), self._count):
                    self._start(session, share)
                while self._workers:
                    self._listen(session)
            finally:
                for worker in self._workers:
                    os.kill(worker.pid, signal.SIGTERM)
                    os.waitpid(worker.pid, 0)

        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        return True

    def _start(self, session: pytest.Session, share: deque[int]) -> None:
        ours, theirs = socket.socketpair()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            ours.close()
            for other in self._workers:
                other.channel.close()  # or it would not notice that the foreman has died
            _work(session, theirs)  # never returns
        theirs.close()
        worker = _Worker(share, pid, ours)
        self._workers.append(worker)
        self._selector.register(ours, selectors.EVENT_READ, worker)

    def _listen(self, session: pytest.Session) -> None:
        for key, _ in self._selector.select():
            worker = key.data
            received = worker.channel.recv(1 << 20)
            if not received:
                self._end(session, worker)
                continue
            *lines, worker.unread = (worker.unread + received).split(b"\n")
            for line in lines:
                self._take(session, worker, *json.loads(line))

    def _take(self, session: pytest.Session, worker: _Worker, kind: str, data: Any) -> None:
        """Do what one message of a worker asks for."""
        config = session.config
        if kind == "report":
            report = config.hook.pytest_report_from_serializable(config=config, data=data)
            if isinstance(report.longrepr, list):  # why it was skipped: JSON has no tuples
                report.longrepr = tuple(report.longrepr)
            config.hook.pytest_runtest_logreport(report=report)
            return

        if kind == "finished":
            item = session.items[worker.given.popleft()]
            config.hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        elif kind == "next":
            number = self._next(session, worker)
            if number is not None:
                worker.given.append(number)
            worker.channel.sendall(f"{json.dumps(number)}\n".encode())
        elif kind == "begun":
            item = session.items[worker.given[0]]
            config.hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        else:
            worker.problem = data

    def _next(self, session: pytest.Session, worker: _Worker) -> int | None:
        if session.shouldfail or session.shouldstop:
            return None
        if not worker.share:
            longest = max((other.share for other in self._workers), key=len)
            taken = [longest.pop() for _ in range((len(longest) + 1) // 2)]
            worker.share.extend(reversed(taken))
        return worker.share.popleft() if worker.share else None

    def _end(self, session: pytest.Session, worker: _Worker) -> None:
        self._selector.unregister(worker.channel)
        worker.channel.close()
        self._workers.remove(worker)
        code = os.waitstatus_to_exitcode(os.waitpid(worker.pid, 0)[1])
        if worker.given:
            item = session.items[worker.given.popleft()]
            problem = worker.problem or f"the worker ended with {code} in this test"
            report = pytest.TestReport(item.nodeid, item.location, {}, "failed", problem, "call")
            session.config.hook.pytest_runtest_logreport(report=report)
        left = worker.given + worker.share
        if left and not (session.shouldfail or session.shouldstop):
            self._start(session, left)


def _shares(tests: int, workers: int) -> Iterator[deque[int]]:
    ends = [tests * number // workers for number in range(workers + 1)]
    for begin, end in itertools.pairwise(ends):
        yield deque(range(begin, end))


@contextlib.contextmanager
def _folder_of_all_workers(session: pytest.Session) -> Iterator[str]:
    """A folder for temporary files; what failed tests left there is kept until the next run."""
    parent = Path(tempfile.gettempdir(), f"tests-{os.getuid()}")
    parent.mkdir(mode=0o700, exist_ok=True)
    for old in parent.iterdir():
        if not _is_alive(int(old.name)):
            shutil.rmtree(old, ignore_errors=True)

    folder = parent / str(os.getpid())
    folder.mkdir()
    yield str(folder)
    if not session.testsfailed:
        shutil.rmtree(folder, ignore_errors=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def _work(session: pytest.Session, channel: socket.socket) -> NoReturn:
    """Run the tests that the foreman gives, then end this process."""
    try:
        capture = session.config.pluginmanager.getplugin("capturemanager")
        capture.stop_global_capturing()  # its files would be those of all forks
        capture.start_global_capturing()
        with channel.makefile("r") as answers, channel.makefile("w") as messages:
            _run(session, answers, messages)
        atexit._run_exitfuncs()
    finally:
        os._exit(0)


def _run(session: pytest.Session, answers: TextIO, messages: TextIO) -> None:
    def say(kind: str, data: object = None) -> None:
        messages.write(json.dumps([kind, data]) + "\n")

    def next_item() -> pytest.Item | None:
        say("next")
        messages.flush()  # once for a test: each message would wake the foreman
        number = json.loads(answers.readline())
        return None if number is None else session.items[number]

    class Reports:
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            """Send the report to the foreman, whose terminal shows it, if it says anything."""
            is_silent = report.passed and report.when != "call" and not report.sections
            if is_silent and not shows_all:
                return
            say("report", hook.pytest_report_to_serializable(config=session.config, report=report))

    plugins, hook = session.config.pluginmanager, session.config.hook
    shows_all = session.config.option.durations is not None or session.config.option.xmlpath
    plugins.unregister(name="terminalreporter")  # or it would print each report here as well
    plugins.register(Reports())
    item = next_item()
    while item is not None:
        following = next_item()  # what it needs as well is not taken down after this one
        say("begun")
        try:
            hook.pytest_runtest_protocol(item=item, nextitem=following)
        except BaseException:  # as by Ctrl-C and by pytest.exit
            say("broken", traceback.format_exc())
            return
        say("finished")
        item = following
