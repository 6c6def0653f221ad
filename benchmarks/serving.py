"""A server in a process, and light clients for it, shared by the benchmarks of serving."""

import asyncio
import contextlib
import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from machine import REPOSITORY, describe

RESULTS = REPOSITORY / "benchmarks" / "results"
VERSIONS = ("torch", "ctranslate2", "fastapi", "starlette", "h11")


@dataclasses.dataclass
class Server:
    """A running ``pellucid serve``."""

    process: subprocess.Popen[bytes]
    port: int
    ready_seconds: float
    log: Path

    def pids(self) -> list[int]:
        """The process and those it forked."""
        own = self.process.pid
        children = Path(f"/proc/{own}/task/{own}/children").read_text().split()
        return [own, *map(int, children)]

    def resident_mb(self) -> float:
        pages = sum(int(Path(f"/proc/{p}/statm").read_text().split()[1]) for p in self.pids())
        return round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 1)

    def open_files(self) -> int:
        return sum(len(list(Path(f"/proc/{p}/fd").iterdir())) for p in self.pids())


@contextlib.contextmanager
def server(*arguments: str, tree: Path | None = None) -> Iterator[Server]:
    """Start one on a free port, wait until it is ready, and end it by SIGTERM.

    ``tree`` is another checkout whose server is started.
    """
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with log.open("wb") as errors:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "pellucid", "-q", "serve", "--port", "0", *arguments],
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, "PYTHONPATH": str(tree or REPOSITORY)},
            )
        assert process.stdout is not None
        line = process.stdout.readline().decode()
        if not line:
            raise SystemExit(f"the server did not start:\n{log.read_text()}")
        port = int(line.strip("/\n").rpartition(":")[2])
        made = Server(process, port, time.monotonic() - begun, log)
        try:
            yield made
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            process.wait(60)
            process.stdout.close()


class Client:
    """One connection that is kept open; no more HTTP than that needs."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.reader: asyncio.StreamReader | None = None
        self.writer: asyncio.StreamWriter | None = None

    async def post(self, path: str, body: bytes) -> tuple[int, bytes]:
        """Status and body of the answer. Raises OSError or EOFError if there is none."""
        if self.writer is None or self.reader is None:
            self.reader, self.writer = await asyncio.open_connection(
                "127.0.0.1", self.port, limit=1 << 24
            )
        head = (
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        self.writer.write(head.encode() + body)
        await self.writer.drain()
        answer = await self.reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", answer, re.I)
        content = await self.reader.readexactly(int(length[1]) if length else 0)
        if b"connection: close" in answer.lower():
            self.close()
        return int(answer[9:12]), content

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
        self.reader = self.writer = None


def translation_body(text: str) -> bytes:
    return json.dumps({"text": text, "split": False}).encode()


def translation_of(content: bytes) -> str:
    return str(json.loads(content)["translations"][0]["text"])


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else float("nan")


def write_result(name: str, title: str, figures: dict[str, Any], notes: list[str]) -> None:
    """``results/NAME.json`` with everything, ``results/NAME.md`` for people."""
    where = describe(VERSIONS)
    RESULTS.mkdir(exist_ok=True)
    record = {"machine": where, "command": command(), **figures}
    (RESULTS / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    lines = [f"# {title}", "", f"{where['cpu']}, {where['cores']} cores; {where['date']};"]
    lines += [f"load before {where['load_before']}; commit {where['commit']};"]
    lines += [", ".join(f"{k} {v}" for k, v in where["versions"].items()), ""]
    lines += [f"`{command()}`", ""]
    lines += ["| figure | value |", "|---|---|"]
    lines += [f"| {key} | {value} |" for key, value in flat(figures)]
    lines += ["", *notes, ""]
    (RESULTS / f"{name}.md").write_text("\n".join(lines))
    print("\n".join(lines))


def flat(figures: dict[str, Any], stem: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in figures.items():
        if isinstance(value, dict):
            yield from flat(value, f"{stem}{key}: ")
        else:
            yield f"{stem}{key}", value


def command() -> str:
    """Return the typed command, with folders of one machine left out."""
    words = [Path(word).name if word.startswith("/") else word for word in sys.argv]
    return "python benchmarks/" + " ".join([Path(words[0]).name, *words[1:]])
