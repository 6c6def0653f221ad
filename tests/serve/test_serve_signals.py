"""The real server in a process: how it starts, what signals do to it, how it ends."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import socket
import threading
import time
from pathlib import Path

import pytest
from commands import pellucid, running
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

from pellucid.cli.serve import listen

BODY = json.dumps({"text": LINES[0]}).encode()
HEAD = b"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
GOOD = HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bundle(tmp_path_factory.mktemp("served") / "tiny")


def test_work_for_a_client_that_left_is_stopped(bundle: Path):
    """H9: nothing is in flight and nothing is open a moment later."""
    with serving_process(bundle) as server:
        server.translate(LINES[0])
        before = server.open_files()
        text = json.dumps({"text": LINES * 12, "beam_size": 16, "max_new_tokens": 60}).encode()
        request = HEAD + b"Content-Length: %d\r\n\r\n" % len(text) + text
        clients = [server.connect() for _ in range(6)]
        for client in clients:
            client.sendall(request)
        wait_until(lambda: figure(server, "pellucid_inflight") > 1)
        for client in clients:
            client.close()
        wait_until(lambda: figure(server, "pellucid_inflight") == 1)  # the one that asks
        wait_until(lambda: server.open_files() <= before)
        assert figure(server, "pellucid_cancelled_total") > 0
        assert figure(server, "pellucid_queue_depth") == 0
        assert server.translate(LINES[0])


def test_more_connections_than_can_be_served_are_told_so(bundle: Path):
    """Each of them gets an answer: the backlog hides nobody."""
    body = json.dumps({"text": LINES * 12, "beam_size": 8}).encode()
    request = HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    with serving_process(bundle, "--max-queue", 2, "--max-batch-sentences", 2) as server:
        clients = [server.connect() for _ in range(40)]
        for client in clients:
            client.sendall(request)
        assert server.ask("GET", "/livez")[0] == 200
        answers = [read_all(client) for client in clients]
        for client in clients:
            client.close()
        assert server.translate(LINES[0]) == translator().translate(LINES[0]).text
    statuses = [status_of(answer) for answer in answers]
    assert set(statuses) == {200, 429}
    assert all(b"retry-after: 1\r\n" in each for each in answers if status_of(each) == 429)


def test_sigterm_loses_no_accepted_request_and_refuses_new_ones(bundle: Path):
    """H10: readiness goes at once, the socket stays open until the last answer, exit code 0."""
    body = json.dumps({"text": LINES * 12, "beam_size": 8}).encode()
    request = HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
    answers: list[bytes] = []
    with serving_process(bundle) as server:
        clients = [server.connect() for _ in range(8)]
        for client in clients:
            client.sendall(request)
        wait_until(lambda: figure(server, "pellucid_inflight") == 9)
        threads = [
            threading.Thread(target=lambda c=client: answers.append(read_all(c)))
            for client in clients
        ]
        for thread in threads:
            thread.start()
        server.signal(signal.SIGTERM)
        late = []
        while not late or (late[-1] != 503 and any(t.is_alive() for t in threads)):
            try:
                late.append(server.ask("GET", "/readyz")[0])
            except OSError:
                break
        for thread, client in zip(threads, clients, strict=True):
            thread.join(60)
            client.close()
    assert [status_of(answer) for answer in answers] == [200] * 8
    assert set(late) <= {200, 503}


def test_it_serves_on_when_nobody_reads_its_log(bundle: Path, tmp_path: Path):
    """A reader of stdout and stderr that leaves, as `pellucid serve ... 2>&1 | head` has."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with running("serve", bundle, "--port", 0, stdout=pipe, stderr=pipe) as command:
        said = b""
        while not said.endswith(b"/\n"):
            with contextlib.suppress(BlockingIOError):
                said += os.read(reader, 65536)
            time.sleep(0.01)
        os.close(reader)
        server = ServerProcess(command, int(said.strip(b"/\n").rpartition(b":")[2]))
        for _ in range(3):
            assert server.translate(LINES[0])
        server.signal(signal.SIGTERM)
    assert command.result is not None
    assert command.result.code == 0


def test_a_stuck_client_cannot_hold_up_the_end(bundle: Path):
    """H10: it is cut off when the grace is over."""
    options = ["--max-grace-seconds", "0.5", "--max-receipt-seconds", "60"]
    with serving_process(bundle, *options) as server:
        with server.connect() as client:
            client.sendall(HEAD + b"Content-Length: 10\r\n\r\n{")
            server.translate(LINES[0])
            server.signal(signal.SIGTERM)
            begun = time.monotonic()
            read_all(client)
        assert time.monotonic() - begun < 30


def test_a_second_signal_ends_it_at_once(bundle: Path):
    with serving_process(bundle, "--max-receipt-seconds", "60", code=143) as server:
        client = server.connect()
        client.sendall(HEAD + b"Content-Length: 10\r\n\r\n{")
        server.translate(LINES[0])
        server.signal(signal.SIGTERM)
        wait_until(lambda: server.ask("GET", "/readyz")[0] == 503)
        server.signal(signal.SIGTERM)
        read_all(client)
        client.close()


def test_sighup_reads_the_model_again_without_losing_a_request(bundle: Path, tmp_path: Path):
    path = tmp_path / "run"
    shutil.copytree(bundle, path)
    expected = translator().translate(LINES[0]).text
    with serving_process(path) as server:
        for round_number in range(3):
            server.signal(signal.SIGHUP)
            for _ in range(5):
                assert server.translate(LINES[0]) == expected, round_number
        (path / "model.safetensors").write_bytes(b"broken")
        server.signal(signal.SIGHUP)
        for _ in range(5):
            assert server.translate(LINES[0]) == expected


def test_a_worker_that_is_killed_is_replaced(bundle: Path):
    """Only requests of the dead one may fail; the figures of all workers are one."""
    with serving_process(bundle, "--workers", 2) as server:
        # the process that answered while the server started may not have left yet
        wait_until(lambda: len(children_of(server.command.pid)) == 2)
        workers = children_of(server.command.pid)
        assert server.translate(LINES[0])
        os.kill(workers[0], signal.SIGKILL)
        wait_until(lambda: workers[0] not in children_of(server.command.pid))
        wait_until(lambda: len(children_of(server.command.pid)) == 2)
        for _ in range(10):
            assert server.translate(LINES[0])
        assert figure(server, "pellucid_sentences_total") >= 10


def test_a_replacement_that_cannot_start_leaves_the_others_alone(bundle: Path, tmp_path: Path):
    """A bundle that is being copied over must not end the server."""
    folder, away = tmp_path / "served", tmp_path / "away"
    shutil.copytree(bundle, folder)
    with serving_process(folder, "--workers", 2) as server:
        wait_until(lambda: len(children_of(server.command.pid)) == 2)
        killed, healthy = children_of(server.command.pid)
        folder.rename(away)
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda: children_of(server.command.pid) == [healthy])
        wait_until(lambda: len(children_of(server.command.pid)) == 2)  # the one that fails
        wait_until(lambda: children_of(server.command.pid) == [healthy])
        assert server.translate(LINES[0])
        away.rename(folder)
        wait_until(lambda: len(children_of(server.command.pid)) == 2)
        assert server.translate(LINES[0])


def test_a_bundle_that_is_not_there_or_broken_is_told_before_anything_listens(
    bundle: Path, tmp_path: Path
):
    result = pellucid("serve", tmp_path / "none", "--port", 0)
    assert result.code == 66
    assert result.error_line == f"error: there is no folder {tmp_path / 'none'}"
    broken = tmp_path / "broken"
    shutil.copytree(bundle, broken)
    (broken / "model.safetensors").write_bytes(b"broken")
    for workers in (1, 2):
        result = pellucid("serve", broken, "--port", 0, "--workers", workers)
        assert result.code == 65, result.err


def test_answers_do_not_wait_for_acknowledgements():
    """What the command's socket accepts has TCP_NODELAY once asyncio has taken it over."""

    async def option_of_one_that_was_accepted() -> int:
        options: asyncio.Queue[int] = asyncio.Queue()

        class Protocol(asyncio.Protocol):
            def connection_made(self, transport):
                accepted = transport.get_extra_info("socket")
                options.put_nowait(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

        listener = listen("127.0.0.1", 0)
        async with await asyncio.get_running_loop().create_server(Protocol, sock=listener):
            _, writer = await asyncio.open_connection(*listener.getsockname())
            found = await options.get()
            writer.close()
        return found

    assert asyncio.run(option_of_one_that_was_accepted()) != 0


def test_a_port_in_use_is_told(bundle: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = pellucid("serve", bundle, "--port", port)
    assert result.code == 74
    assert result.error_line == (
        f"error: 127.0.0.1:{port}: Address already in use; hint: end the program that has it, or"
        " choose another --port (0: any free)"
    )


def test_strangers_need_a_key(bundle: Path, tmp_path: Path):
    """S10."""
    result = pellucid("serve", bundle, "--host", "0.0.0.0", "--port", 0)
    assert result.code == 78
    assert result.error_line == (
        "error: a server that others can reach needs an API key, got --host 0.0.0.0 without one;"
        " hint: give --api-key-file FILE,"
        " or --insecure-no-auth if a proxy before it checks keys"
    )
    (tmp_path / "keys").write_text("# nobody yet\n")
    result = pellucid("serve", bundle, "--api-key-file", tmp_path / "keys")
    assert result.code == 78
    assert result.error_line == f"error: {tmp_path / 'keys'} holds no API key"


def test_limits_that_are_none_are_refused(bundle: Path):
    result = pellucid("serve", bundle, "--max-queue", "0", "--max-request-seconds", "inf")
    assert result.code == 78
    assert result.error_line == (
        "error: limits: max_request_seconds must be finite and above 0, got inf;"
        " max_queue must be finite and above 0, got 0"
    )
