"""Runs ``pellucid`` as a user does and gives back the exit code and both streams."""

import atexit
import contextlib
import dataclasses
import fcntl
import functools
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import side_by_side


@dataclasses.dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def error_line(self) -> str:
        """The one line that tells of the error; there must be no second and no traceback."""
        assert "Traceback" not in self.err, self.err
        lines = [line for line in self.err.splitlines() if line.startswith("error: ")]
        assert len(lines) == 1, self.err
        assert self.err.splitlines()[-1] == lines[0], self.err
        return lines[0]


@dataclasses.dataclass
class Running:
    """A command in mid-run."""

    pid: int
    result: Result | None = None


class _Server:
    """The connection to the server of this run of the tests, which the first worker starts."""

    def __init__(self) -> None:
        self._worker = os.getpid()
        run = os.environ.get(side_by_side.RUN, self._worker)
        folder = Path(tempfile.gettempdir(), f"pellucid-tests-{os.getuid()}", "forks")
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._socket = socket.socket(socket.AF_UNIX)
            if self._socket.connect_ex(str(folder / f"{run}")) != 0:
                (folder / f"{run}").unlink(missing_ok=True)  # what one left that was killed
                self._start(folder / f"{run}")
                self._socket.connect(str(folder / f"{run}"))
        self.requests, self.answers = self._socket.makefile("w"), self._socket.makefile("r")
        atexit.register(self.leave)

    def _start(self, path: Path) -> None:
        # sets have an order of their own in it: that of this process is drawn, or given by seed 0
        seed = {"PYTHONHASHSEED": "1"}
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("fork_server.py")), str(path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "", **seed},
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def leave(self) -> None:
        if os.getpid() == self._worker:  # and not a fork of it
            atexit.unregister(self.leave)
            self._socket.shutdown(socket.SHUT_RDWR)
            for each in (self.requests, self.answers, self._socket):
                each.close()


_server = functools.cache(_Server)


@contextlib.contextmanager
def running(
    *arguments: object,
    folder: Path | None = None,
    stdin: bytes | Path = b"",
    stdout: Path | None = None,
    stderr: Path | None = None,
    environment: dict[str, str] | None = None,
    largest_file: int | None = None,
    umask: int | None = None,
    obeys_modes: bool = False,
    closed: tuple[int, ...] = (),
    others_run: bool = False,
) -> Iterator[Running]:
    """Run ``pellucid`` with ``arguments`` beside the block; ``result`` is there when it ends.

    Inside the block no other command runs, unless ``others_run``.
    """
    with tempfile.TemporaryDirectory() as name:
        streams = Path(name)
        (streams / "in").write_bytes(stdin if isinstance(stdin, bytes) else b"")
        (streams / "out").touch()
        (streams / "err").touch()
        paths = [
            str(stdin if isinstance(stdin, Path) else streams / "in"),
            str(stdout or streams / "out"),
            str(stderr or streams / "err"),
        ]
        request = {
            "arguments": [str(argument) for argument in arguments],
            "folder": str(folder or streams),
            "environment": environment or {},
            "streams": [None if n in closed else path for n, path in enumerate(paths)],
            "largest_file": largest_file,
            "umask": umask,
            "obeys_modes": obeys_modes,
        }
        server = _server()
        if others_run:
            server = _Server()
        server.requests.write(json.dumps(request) + "\n")
        server.requests.flush()
        command = Running(pid=int(server.answers.readline()))
        try:
            yield command
        finally:
            code = int(server.answers.readline())
            if others_run:
                server.leave()
            command.result = Result(
                code=code,
                out=(streams / "out").read_text(encoding="utf-8"),
                err=(streams / "err").read_text(encoding="utf-8"),
            )


def pellucid(
    *arguments: object,
    folder: Path | None = None,
    stdin: bytes | Path = b"",
    stdout: Path | None = None,
    environment: dict[str, str] | None = None,
    largest_file: int | None = None,
    umask: int | None = None,
    obeys_modes: bool = False,
    closed: tuple[int, ...] = (),
) -> Result:
    """Run ``pellucid`` with ``arguments`` to its end."""
    with running(
        *arguments,
        folder=folder,
        stdin=stdin,
        stdout=stdout,
        environment=environment,
        largest_file=largest_file,
        umask=umask,
        obeys_modes=obeys_modes,
        closed=closed,
    ) as command:
        pass
    assert command.result is not None
    return command.result
