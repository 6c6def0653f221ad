"""A server in a process of its own, on a port of its own."""

import contextlib
import dataclasses
import http.client
import json
import os
import signal
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from commands import Running, running

PATIENCE = 60.0


@dataclasses.dataclass
class ServerProcess:
    command: Running
    port: int
    is_stopping: bool = False

    def connect(self, seconds: float = PATIENCE) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=seconds)

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, dict]:
        """One request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            content = None if body is None else json.dumps(body)
            headers = {} if body is None else {"content-type": "application/json"}
            connection.request(method, path, content, headers)
            response = connection.getresponse()
            text = response.read()
            is_json = "json" in response.headers.get("content-type", "")
            return response.status, json.loads(text) if is_json else {"text": text.decode()}
        finally:
            connection.close()

    def translate(self, text: str) -> str:
        status, answer = self.ask("POST", "/v1/translate", {"text": text})
        assert status == 200, answer
        return answer["translations"][0]["text"]

    def send(self, data: bytes, *, half_close: bool = False) -> bytes:
        """What the server says to these bytes until it closes the connection."""
        with self.connect() as connection:
            with contextlib.suppress(OSError):
                connection.sendall(data)
            if half_close:
                connection.shutdown(socket.SHUT_WR)
            return read_all(connection)

    def signal(self, number: signal.Signals) -> None:
        self.is_stopping |= number == signal.SIGTERM
        os.kill(self.command.pid, number)

    def resident_bytes(self) -> int:
        pages = int(Path(f"/proc/{self.command.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def open_files(self) -> int:
        return len(list(Path(f"/proc/{self.command.pid}/fd").iterdir()))


def read_all(connection: socket.socket) -> bytes:
    found = b""
    with contextlib.suppress(ConnectionError):
        while data := connection.recv(65536):
            found += data
    return found


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer else 0


def wait_until(holds, seconds: float = PATIENCE) -> None:
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, "it never came to hold"
        time.sleep(0.01)


def figure(server: ServerProcess, name: str) -> float:
    text = server.ask("GET", "/metrics")[1]["text"]
    return sum(
        float(line.rpartition(" ")[2])
        for line in text.splitlines()
        if line.startswith((f"{name} ", f"{name}{{"))
    )


def children_of(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@contextlib.contextmanager
def serving_process(
    bundle: Path, *options: object, code: int | None = 0
) -> Iterator[ServerProcess]:
    """A server that is ready; ended by SIGTERM after the block, with the exit code ``code``."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        out.touch()
        with running("serve", bundle, "--port", 0, *options, stdout=out) as command:
            server = ServerProcess(command, 0)
            try:
                wait_until(lambda: out.read_text().endswith("/\n"))
                server.port = int(out.read_text().strip("/\n").rpartition(":")[2])
                yield server
            finally:
                if not server.is_stopping:
                    server.signal(signal.SIGTERM)
        assert command.result is not None
        assert command.result.code == code, command.result.err
        assert "Traceback" not in command.result.err
