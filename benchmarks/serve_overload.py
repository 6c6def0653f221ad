"""More new connections than can be served, and clients that are slow on purpose.

    python benchmarks/serve_overload.py BUNDLE test.en --seconds 30 --times 2 4 8
    python benchmarks/serve_overload.py BUNDLE test.en --half-a-core --name serve_overload_half

First the capacity: clients that open a connection for each sentence and wait for their answer.
Then several times as many a second, whether or not answers come (an open loop): everybody must
get one, 429 if not 200. Then 1,000 slow clients beside honest ones. ``--half-a-core`` binds the
server to one core, beside a process that never waits; the clients keep the other cores.
``--tree`` runs the server of another checkout, to compare with.
"""

import argparse
import asyncio
import contextlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from serving import Client, Server, percentile, server, translation_body, write_result

_PATIENCE = 60.0
_CLIENTS = 64


async def ask_once(port: int, body: bytes) -> tuple[str, float]:
    """Status of one request on a connection of its own, and the seconds that it took."""
    client = Client(port)
    begun = time.monotonic()
    try:
        async with asyncio.timeout(_PATIENCE):
            status, _ = await client.post("/v1/translate", body)
            found = str(status)
    except (OSError, EOFError):
        found = "lost"
    except TimeoutError:
        found = "unanswered"
    finally:
        client.close()
    return found, time.monotonic() - begun


async def capacity(made: Server, bodies: list[bytes], seconds: float) -> float:
    """Answers a second to clients that wait for them."""
    begun = time.monotonic()
    answered = 0

    async def ask(number: int) -> None:
        nonlocal answered
        while time.monotonic() < begun + seconds:
            status, _ = await ask_once(made.port, bodies[number % len(bodies)])
            answered += status == "200"
            number += _CLIENTS

    await asyncio.gather(*(ask(number) for number in range(_CLIENTS)))
    return answered / (time.monotonic() - begun)


async def overload(
    made: Server, bodies: list[bytes], rate: float, seconds: float
) -> dict[str, Any]:
    """Send ``rate`` requests a second, each on a new connection."""
    found: list[tuple[str, float]] = []
    begun = time.monotonic()

    async def one(number: int) -> None:
        found.append(await ask_once(made.port, bodies[number % len(bodies)]))

    tasks = []
    for number in range(int(rate * seconds)):
        wait = begun + number / rate - time.monotonic()
        if wait > 0:
            await asyncio.sleep(wait)
        tasks.append(asyncio.create_task(one(number)))
    sent_for = time.monotonic() - begun
    await asyncio.gather(*tasks)

    waits: dict[str, list[float]] = {}
    for status, wait in found:
        waits.setdefault(status, []).append(wait)
    answered = waits.get("200", [])
    return {
        "requests": len(found),
        "requests/s": round(len(found) / sent_for, 1),
        "by status": {status: len(each) for status, each in sorted(waits.items())},
        "p99 ms by status": {
            status: round(1000 * percentile(each, 0.99), 1)
            for status, each in sorted(waits.items())
        },
        "p50 ms by status": {
            status: round(1000 * percentile(each, 0.5), 1) for status, each in sorted(waits.items())
        },
        "200 a second": round(len(answered) / sent_for, 1),
    }


async def slow_clients(made: Server, body: bytes, count: int, seconds: float) -> dict[str, Any]:
    """Honest waits alone, and beside ``count`` clients that send or read too slowly."""
    head = b"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    ways = [b"", head[:40], head + b"Content-Length: 50\r\n\r\n{", head + b"X"]
    gone: list[float] = []

    async def honest(until: float) -> list[float]:
        waits = []
        client = Client(made.port)
        while time.monotonic() < until:
            asked = time.monotonic()
            status, _ = await client.post("/v1/translate", body)
            assert status == 200
            waits.append(time.monotonic() - asked)
            await asyncio.sleep(0.01)
        client.close()
        return waits

    async def slow(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", made.port)
        begun = time.monotonic()
        try:
            writer.write(ways[number % len(ways)])
            async with asyncio.timeout(_PATIENCE):
                while await reader.read(1 << 16):
                    pass
        except OSError:
            pass
        gone.append(time.monotonic() - begun)
        writer.close()

    alone = await honest(time.monotonic() + seconds)
    attack = [asyncio.create_task(slow(number)) for number in range(count)]
    beside = await honest(time.monotonic() + seconds)
    await asyncio.gather(*attack)
    return {
        "slow clients": count,
        "s until the last of them was closed": round(max(gone), 2),
        "honest p50 ms, alone": round(1000 * statistics.median(alone), 1),
        "honest p99 ms, alone": round(1000 * percentile(alone, 0.99), 1),
        "honest p50 ms, beside them": round(1000 * statistics.median(beside), 1),
        "honest p99 ms, beside them": round(1000 * percentile(beside, 0.99), 1),
    }


@contextlib.contextmanager
def half_a_core(made: Server) -> Iterator[None]:
    """Bind the server to one core that a process without pauses shares; the clients leave it."""
    cores = sorted(os.sched_getaffinity(0))
    for pid in made.pids():
        for thread in Path(f"/proc/{pid}/task").iterdir():
            os.sched_setaffinity(int(thread.name), {cores[0]})
    os.sched_setaffinity(0, set(cores[1:]))
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    os.sched_setaffinity(busy.pid, {cores[0]})
    try:
        yield
    finally:
        busy.kill()
        busy.wait()
        os.sched_setaffinity(0, set(cores))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("bundle")
    parser.add_argument("source", type=Path, help="a file with one sentence a line")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--times", type=int, nargs="+", default=[2], help="of the capacity")
    parser.add_argument("--half-a-core", action="store_true")
    parser.add_argument("--words", type=int, default=15)
    parser.add_argument("--slow", type=int, default=1000)
    parser.add_argument("--engine", default="torch", choices=["auto", "torch", "ctranslate2"])
    parser.add_argument("--tree", type=Path, help="a checkout whose server is measured")
    parser.add_argument("--name", default="serve_overload")
    options = parser.parse_args()
    lines = options.source.read_text(encoding="utf-8").split("\n")
    bodies = [translation_body(line) for line in lines if len(line.split()) == options.words]

    figures: dict[str, Any] = {"engine": options.engine, "half a core": options.half_a_core}
    with (
        server(options.bundle, "--engine", options.engine, tree=options.tree) as made,
        half_a_core(made) if options.half_a_core else contextlib.nullcontext(),
    ):
        asyncio.run(capacity(made, bodies, 3.0))
        rate = asyncio.run(capacity(made, bodies, options.seconds / 3))
        figures["capacity, answers/s"] = round(rate, 1)
        for times in options.times:
            figures[f"at {times} times the capacity"] = asyncio.run(
                overload(made, bodies, times * rate, options.seconds)
            )
        figures["capacity afterwards, answers/s"] = round(
            asyncio.run(capacity(made, bodies, options.seconds / 3)), 1
        )
        figures["beside slow clients"] = asyncio.run(
            slow_clients(made, bodies[0], options.slow, 10.0)
        )
        figures["process alive"] = made.process.poll() is None
    write_result(
        options.name,
        "More new connections than can be served, and slow clients",
        figures,
        ["Clients and server share the machine. 0 or lost: a connection that ended unanswered."],
    )


if __name__ == "__main__":
    main()
