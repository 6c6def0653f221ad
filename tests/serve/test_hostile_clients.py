"""The real server in a process, and clients that are slow, broken or hostile."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from served_models import LINES, translator, write_bundle
from server_processes import (
    ServerProcess,
    read_all,
    serving_process,
    status_of,
    wait_until,
)

BODY = json.dumps({"text": LINES[0]}).encode()
HEAD = b"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
GOOD = HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bundle(tmp_path_factory.mktemp("served") / "tiny")


@pytest.fixture(scope="module")
def server(bundle: Path) -> Iterator[ServerProcess]:
    with serving_process(bundle, "--max-receipt-seconds", "0.5", "--max-idle-seconds", "1") as made:
        yield made


def test_it_answers_as_the_library_does(server: ServerProcess):
    assert server.translate(LINES[0]) == translator().translate(LINES[0]).text
    assert server.ask("GET", "/readyz") == (200, {"status": "ok"})


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"", 0),
        (b"GET / HTTP/1.1\r\nHost: local", 408),
        (HEAD + b"Content-Length: 100\r\n\r\n{", 408),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\n \r\n" * 100_000, 411),
        (HEAD + b"Content-Length: 1073741824\r\n\r\n", 413),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 20_000_000, 431),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"A: b\r\n" * 10_000 + b"\r\n", 431),
        (b"GET /" + b"x" * 65_536 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 431),
        (
            b"GET /" + b"x" * 9_000 + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
            414,
        ),
        (b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
        (b"\x00" * 1000 + b"\r\n\r\n", 400),
        (HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n123456", 400),
        (HEAD + b"Content-Length: 0x5\r\n\r\n12345", 400),
        (GOOD.replace(b"\r\nHost", b"\r\nUpgrade: websocket\r\nHost"), 200),
        (GOOD + b"rubbish after the end\r\n\r\n", 200),
    ],
)
def test_broken_and_slow_requests_are_answered_and_closed(
    server: ServerProcess, data: bytes, status: int
):
    """H3, H5. Who sends more than is read may see the connection end before the answer."""
    answer = server.send(data)
    assert status_of(answer) in ((status, 0) if len(data) > 60_000 else (status,)), answer[:200]
    if answer and status != 200:
        assert b"application/problem+json" in answer
    assert server.translate(LINES[0])


@pytest.mark.parametrize(
    ("target", "host", "status"),
    [
        ("http://localhost/readyz", "localhost", 200),
        ("HTTP://LOCALHOST:80/readyz?a=/b", "evil.example", 200),
        ("https://[::1]:8000/readyz", "localhost", 200),
        ("http://127.0.0.1?a=1", "localhost", 200),
        ("http://evil.example/readyz", "localhost", 421),
        ("http://evil.example", "localhost", 421),
        ("http://localhost@evil.example/readyz", "localhost", 400),
        ("http:///readyz", "localhost", 400),
        ("http://localhost/nothing", "localhost", 404),
        ("ftp://localhost/readyz", "localhost", 404),
    ],
)
def test_a_target_may_be_a_whole_address_whose_host_counts(
    server: ServerProcess, target: str, host: str, status: int
):
    """RFC 9112, section 3.2.2: it was 404, and with another path the host of the header."""
    ask = f"GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    assert status_of(server.send(ask.encode())) == status


def test_probes_of_balancers_in_http_1_0_name_no_host(server: ServerProcess):
    """As HAProxy's ``option httpchk GET /readyz`` asks; from HTTP/1.1 on a host is required."""
    assert status_of(server.send(b"GET /readyz HTTP/1.0\r\n\r\n")) == 200
    assert status_of(server.send(b"GET http://evil.example/ HTTP/1.0\r\n\r\n")) == 421
    assert status_of(server.send(b"GET /readyz HTTP/2.0\r\n\r\n")) == 400


def test_a_client_that_sends_no_more_gets_its_answers(server: ServerProcess):
    """Half-closed connections, as ``printf ... | nc -N`` makes them."""
    kept_open = GOOD.replace(b"Connection: close\r\n", b"")
    assert status_of(server.send(kept_open, half_close=True)) == 200
    assert server.send(kept_open * 3, half_close=True).count(b"HTTP/1.1 200 OK") == 3
    assert status_of(server.send(b"GET /livez HTTP/1.0\r\nHost: a\r\n\r\n", half_close=True)) in (
        200,
        421,
    )
    assert server.send(HEAD + b"Content-Length: 9\r\n\r\n{", half_close=True) == b""
    assert server.send(kept_open + b"GET / HT", half_close=True).count(b"HTTP/1.1") == 1
    assert server.translate(LINES[0])


def test_one_that_has_to_wait_for_its_answer_is_told_to_go_on(server: ServerProcess):
    """By ``100 Continue``, which finds out whether it is still there."""
    body = json.dumps({"text": LINES * 12, "beam_size": 16, "max_new_tokens": 60}).encode()
    answer = server.send(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body, half_close=True)
    interim, _, final = answer.rpartition(b"HTTP/1.1 200 OK\r\n")
    assert interim in (b"", b"HTTP/1.1 100 Continue\r\n\r\n")
    assert final.endswith(b"}")


def test_clients_that_hang_up_before_their_answer_end_nothing(server: ServerProcess):
    """Two writes to a connection whose client is gone: the second one raises SIGPIPE."""
    for request in (b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n", GOOD, GOOD * 3):
        for _ in range(20):
            with server.connect() as client:
                client.sendall(request)
    # what they asked for may wait in the queue for a moment, which answers 429 meanwhile
    wait_until(lambda: server.send(GOOD).startswith(b"HTTP/1.1 200 "))


def test_many_slow_clients_are_all_closed_and_a_good_one_is_served_meanwhile(server: ServerProcess):
    """H5 at a small size; the kernel's sockets of this process are what limits it."""
    before = server.open_files()
    slow = []
    for start in (b"", b"GET / HT", HEAD + b"Content-Length: 50\r\n\r\n{"):
        for _ in range(15):
            slow.append(server.connect())
            slow[-1].sendall(start)
    assert server.translate(LINES[0]) == translator().translate(LINES[0]).text
    for each in slow:
        read_all(each)
        each.close()
    wait_until(lambda: server.open_files() <= before)


def test_a_client_that_does_not_read_is_cut_off(server: ServerProcess):
    """A large answer, and nobody to take it."""
    before = server.open_files()
    body = json.dumps({"text": LINES[1], "only": ["*"]}).encode()
    head = HEAD.replace(b"translate", b"inspect") + b"Content-Length: %d\r\n\r\n" % len(body)
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", server.port))
        client.sendall((head + body) * 8)
        wait_until(lambda: server.open_files() > before)
        wait_until(lambda: server.open_files() <= before)
    assert server.translate(LINES[0]) == translator().translate(LINES[0]).text


def test_two_requests_in_one_packet_are_both_answered(server: ServerProcess):
    answer = server.send(GOOD.replace(b"Connection: close\r\n", b"") + GOOD)
    assert answer.count(b"HTTP/1.1 200 OK") == 2


def test_an_upload_has_time_in_proportion_to_its_size(server: ServerProcess):
    """A file of 8 MiB in more than the half second that a short request has."""
    form = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
    body = form + b"le chat\n" * (1 << 17) + b"\r\n--x--\r\n"
    head = b"POST /v1/documents HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    kind = b"Content-Type: multipart/form-data; boundary=x\r\n"
    with server.connect() as connection:
        connection.sendall(head + kind + b"Content-Length: %d\r\n\r\n" % len(body))
        connection.sendall(body[:1000])
        time.sleep(1.0)
        connection.sendall(body[1000:])
        assert status_of(read_all(connection)) == 202


def test_refusals_of_connections_are_counted(server: ServerProcess):
    def refused(status: int) -> float:
        text = server.ask("GET", "/metrics")[1]["text"]
        name = f'pellucid_rejected_total{{reason="{status}"}} '
        return sum(float(line[len(name) :]) for line in text.splitlines() if line.startswith(name))

    for data, status in (
        (b"GET / HTTP/1.1\r\nHost: local", 408),
        (HEAD + b"Content-Length: 100\r\n\r\n{", 408),
        (b"\x00" * 1000 + b"\r\n\r\n", 400),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\n \r\n", 411),
    ):
        before, left = refused(status), refused(499)
        assert status_of(server.send(data)) == status
        wait_until(lambda status=status, before=before: refused(status) == before + 1)
        assert refused(499) == left


OPEN_FILES = """
import resource
from pellucid.cli.serve import _raise_open_files

resource.setrlimit(resource.RLIMIT_NOFILE, (64, {hard}))
_raise_open_files(100)
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


@pytest.mark.parametrize(("hard", "soft"), [(4096, 356), (64, 64)])
def test_files_may_be_open_for_all_connections_or_that_is_told(hard: int, soft: int):
    done = subprocess.run(
        [sys.executable, "-c", OPEN_FILES.format(hard=hard)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"{soft}\n"
    assert ("64 files may be open, too few for 100 connections" in done.stderr) == (soft == 64)
