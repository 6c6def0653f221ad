"""The real server while it starts, and what becomes of its processes when one is killed."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commands import running
from served_models import LINES, translator, write_bundle
from server_processes import (
    ServerProcess,
    children_of,
    figure,
    read_all,
    serving_process,
    status_of,
    wait_until,
)

from pellucid.backends.user_cache import locked_folder

REQUEST = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n"
BODY = b'{"text":"' + b"a" * 900_000 + b'"}'
LARGE = b"POST /translate HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that no other test opens, so that its lock can be held."""
    return write_bundle(tmp_path_factory.mktemp("starting") / "tiny")


@contextlib.contextmanager
def starting_process(
    bundle: Path, *options: object, code: int = 0
) -> Iterator[tuple[ServerProcess, Callable[[], None]]]:
    """A server that answers, and goes on starting once the function beside it has been called.

    Until then it waits for the lock under which its model is converted.
    """
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    held = contextlib.ExitStack()
    held.enter_context(locked_folder(bundle.parent / "pellucid" / "ctranslate2"))
    home = {"XDG_CACHE_HOME": str(bundle.parent)}
    arguments = ["serve", bundle, "--engine", "ctranslate2", "--port", port, *options]
    with held, running(*arguments, environment=home) as command:
        server = ServerProcess(command, port)
        try:
            wait_until(lambda: is_answered(server))
            yield server, held.close
        finally:
            held.close()
            if not server.is_stopping:
                server.signal(signal.SIGTERM)
    assert command.result is not None
    assert command.result.code == code, command.result.err
    assert "Traceback" not in command.result.err


def is_answered(server: ServerProcess) -> bool:
    with contextlib.suppress(ConnectionRefusedError):
        return bool(server.send(REQUEST))
    return False


@pytest.mark.parametrize("workers", [1, 2])
def test_every_request_is_answered_with_503_until_it_is_ready(workers: int, bundle: Path):
    """By a process of its own: also while the one that imports and reads gets no core at all."""
    options = ["--workers", workers, "--max-receipt-seconds", "1"]
    with starting_process(bundle, *options) as (server, go_on):
        os.kill(server.command.pid, signal.SIGSTOP)
        for path in ("/livez", "/readyz", "/languages", "/none"):
            status, answer = server.ask("GET", path)
            assert (status, answer["detail"]) == (503, "the server is starting")
            assert answer["error"] == answer["detail"], "what clients of LibreTranslate show"
        head = server.send(REQUEST.replace(b"GET", b"HEAD"))
        assert status_of(head) == 503
        assert b"retry-after: 2\r\n" in head
        assert head.endswith(b"\r\n\r\n")
        assert status_of(server.send(REQUEST, half_close=True)) == 503
        assert status_of(server.send(LARGE)) == 503, "answered before its body has been read"
        assert server.send(b"GET / HT") == b"", "closed at its deadline"
        for length in range(len(REQUEST) + 1):
            with server.connect() as client:
                client.sendall(REQUEST[:length])
        os.kill(server.command.pid, signal.SIGCONT)

        late = server.connect()
        late.sendall(REQUEST[:9])
        assert status_of(server.send(REQUEST)) == 503
        go_on()
        wait_until(lambda: server.ask("GET", "/readyz")[0] == 200)
        with contextlib.suppress(ConnectionError):
            late.sendall(REQUEST[9:])
        assert status_of(read_all(late)) in (503, 0), "0 where its deadline was over"
        late.close()
        for _ in range(3):
            assert server.ask("GET", "/livez")[0] == 200
            assert server.translate(LINES[0]) == translator().translate(LINES[0]).text
        processes = 0 if workers == 1 else workers
        wait_until(lambda: len(children_of(server.command.pid)) == processes)


@pytest.mark.parametrize("workers", [1, 2])
def test_sigterm_while_it_starts_ends_it(workers: int, bundle: Path):
    with starting_process(bundle, "--workers", workers) as (server, _):
        server.signal(signal.SIGTERM)
        wait_until(lambda: not is_answered(server))
        assert is_free(server.port)


SWALLOWING = """
import os, signal, time
from pellucid.cli.signals import end_on_signals, leave

end_on_signals()
signal.signal(signal.SIGTERM, leave)
try:
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)
except BaseException:
    time.sleep(60)
os._exit(1)
"""


def test_sigterm_ends_it_also_where_the_exception_of_its_handler_is_lost():
    """Python drops one that is raised in a callback, such as the import system has."""
    assert subprocess.run([sys.executable, "-c", SWALLOWING], check=False).returncode == 0


def test_killed_while_it_starts_it_leaves_the_port(bundle: Path):
    with starting_process(bundle, code=-signal.SIGKILL) as (server, _):
        assert not is_free(server.port)
        server.is_stopping = True
        server.signal(signal.SIGKILL)
        wait_until(lambda: is_free(server.port))


def test_workers_end_with_a_supervisor_that_is_killed(bundle: Path):
    """The port is free at once, and what was accepted is still answered."""
    body = json.dumps({"text": LINES * 12, "beam_size": 8}).encode()
    head = b"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with serving_process(bundle, "--workers", 2, code=-signal.SIGKILL) as server:
        wait_until(lambda: len(children_of(server.command.pid)) == 2)
        workers = children_of(server.command.pid)
        client = server.connect()
        client.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        wait_until(lambda: figure(server, "pellucid_inflight") == 2)
        server.is_stopping = True
        server.signal(signal.SIGKILL)
        wait_until(lambda: is_free(server.port))
        assert status_of(read_all(client)) == 200
        client.close()
        wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            probe.listen()
            return True
    return False
