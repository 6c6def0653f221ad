"""Kills, ends and starts: what is lost when a worker dies, or the server is told to stop.

    python benchmarks/serve_faults.py BUNDLE test.en

Clients ask all the time. One of two workers is killed with SIGKILL: which requests fail, and
how long until a new connection is answered again, and until there are two workers. Then the server
is sent SIGTERM: is any request lost that it had accepted? Last, how long it takes to be ready.
"""

import argparse
import asyncio
import contextlib
import itertools
import os
import signal
import statistics
import time
from pathlib import Path
from typing import Any

from serving import Client, Server, server, translation_body, write_result

Event = tuple[float, float, int]
"""When a request was sent, when it was answered or failed, and its status (0 is lost)."""


async def one(client: Client, body: bytes) -> Event:
    asked = time.monotonic()
    try:
        status, _ = await client.post("/v1/translate", body)
    except (OSError, EOFError):
        client.close()
        status = 0
    return asked, time.monotonic(), status


async def load_while(made: Server, bodies: list[bytes], clients: int, fault: Any) -> dict[str, Any]:
    """Ask with ``clients`` while ``fault`` happens; every request that was made."""
    events: list[Event] = []
    probes: list[Event] = []
    over = asyncio.Event()

    async def ask(number: int) -> None:
        client = Client(made.port)
        while not over.is_set():
            events.append(await one(client, bodies[number % len(bodies)]))
            number += clients
            if events[-1][2] in (0, 503):
                await asyncio.sleep(0.01)
        client.close()

    async def probe() -> None:
        while not over.is_set():
            client = Client(made.port)
            probes.append(await one(client, bodies[0]))
            client.close()
            await asyncio.sleep(0.01)

    tasks = [asyncio.create_task(ask(number)) for number in range(clients)]
    tasks.append(asyncio.create_task(probe()))
    await asyncio.sleep(2.0)
    found: dict[str, Any] = await fault()
    over.set()
    await asyncio.gather(*tasks)
    return {"events": events, "probes": probes, **found}


def kill_one(made: Server, bodies: list[bytes], clients: int) -> dict[str, Any]:
    async def fault() -> dict[str, Any]:
        victim = made.pids()[1]
        moment = time.monotonic()
        os.kill(victim, signal.SIGKILL)
        while len(made.pids()) < 3 or victim in made.pids():
            await asyncio.sleep(0.01)
        again = time.monotonic()
        await asyncio.sleep(3.0)
        return {"moment": moment, "again": again}

    found = asyncio.run(load_while(made, bodies, clients, fault))
    moment = found["moment"]
    lost = [each for each in found["events"] + found["probes"] if each[2] == 0]
    others = [each for each in found["events"] + found["probes"] if each[2] not in (0, 200)]
    good = sorted(end for _, end, status in found["probes"] if status == 200 and end > moment)
    return {
        "requests": len(found["events"]) + len(found["probes"]),
        "failed": len(lost),
        "failed that were sent after the kill": sum(asked > moment + 0.05 for asked, _, _ in lost),
        "answered otherwise than 200": len(others),
        "s until a new connection was answered": round(good[0] - moment, 3) if good else None,
        "s until there were two processes again": round(found["again"] - moment, 3),
        "longest s between two answered probes": round(
            max((b - a for a, b in itertools.pairwise(good)), default=0.0), 3
        ),
    }


def terminate(made: Server, bodies: list[bytes], clients: int) -> dict[str, Any]:
    async def fault() -> dict[str, Any]:
        moment = time.monotonic()
        made.process.send_signal(signal.SIGTERM)
        while made.process.poll() is None:
            await asyncio.sleep(0.005)
        return {"moment": moment, "ended": time.monotonic()}

    found = asyncio.run(load_while(made, bodies, clients, fault))
    moment, ended = found["moment"], found["ended"]
    before = [each for each in found["events"] if each[0] < moment < each[1]]
    after = [each for each in found["events"] if moment <= each[0] < ended]
    return {
        "requests in flight at SIGTERM": len(before),
        "of these answered with 200": sum(status == 200 for _, _, status in before),
        "of these answered with 503": sum(status == 503 for _, _, status in before),
        "of these lost": sum(status == 0 for _, _, status in before),
        "requests sent later": len(after),
        "of these answered with 503 ": sum(status == 503 for _, _, status in after),
        "s until the process had ended": round(ended - moment, 3),
        "exit code": made.process.returncode,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("bundle")
    parser.add_argument("source", type=Path)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3, help="of each fault")
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--engine", default="auto", choices=["auto", "torch", "ctranslate2"])
    options = parser.parse_args()
    lines = options.source.read_text(encoding="utf-8").split("\n")
    bodies = [translation_body(line) for line in lines if len(line.split()) == 15][:200]
    engine = ["--engine", options.engine]
    figures: dict[str, Any] = {"clients": options.clients, "engine": options.engine}
    for number in range(1, options.rounds + 1):
        with server(options.bundle, *engine, "--workers", "2") as made:
            figures[f"kill -9 of one of two workers, {number}"] = kill_one(
                made, bodies, options.clients
            )
    for workers in (1, 2):
        for number in range(1, options.rounds + 1):
            with (
                contextlib.suppress(ProcessLookupError),
                server(options.bundle, *engine, "--workers", str(workers)) as made,
            ):
                figures[f"SIGTERM, workers={workers}, {number}"] = terminate(
                    made, bodies, options.clients
                )
    seconds = []
    for _ in range(options.starts):
        with server(options.bundle, *engine) as made:
            seconds.append(made.ready_seconds)
    figures["s from start to ready, median"] = round(statistics.median(seconds), 2)
    figures["s from start to ready, longest"] = round(max(seconds), 2)
    write_result("serve_faults", "Kills, ends and starts under load", figures, [])


if __name__ == "__main__":
    main()
