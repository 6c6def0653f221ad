"""Many clients at once: is any answer lost or wrong, how long do they wait, how many are there?

    python benchmarks/serve_load.py BUNDLE test.en --clients 64 --seconds 120

Each client sends one sentence of 15 words at a time and the next as soon as it has the answer.
Every answer is compared with the translation that ``pellucid.load`` gives offline. Afterwards the
same server runs with batching off. Clients and server share the machine.
"""

import argparse
import asyncio
import time
from pathlib import Path
from typing import Any

from serving import (
    Client,
    Server,
    percentile,
    server,
    translation_body,
    translation_of,
    write_result,
)

from pellucid.backends.load import load


async def drive(
    made: Server, sentences: dict[str, str], clients: int, seconds: float
) -> dict[str, Any]:
    """Figures of ``clients`` that ask for ``seconds``."""
    waits: list[float] = []
    wrong: list[str] = []
    statuses: dict[str, int] = {}
    texts = list(sentences)
    bodies = [translation_body(text) for text in texts]
    begun = time.monotonic()
    resident: list[float] = []

    async def ask(number: int) -> None:
        client = Client(made.port)
        place = number
        while time.monotonic() < begun + seconds:
            index = place % len(texts)
            place += clients + 1
            asked = time.monotonic()
            try:
                status, content = await client.post("/v1/translate", bodies[index])
            except (OSError, EOFError):
                client.close()
                status, content = 0, b""
            waits.append(time.monotonic() - asked)
            statuses[str(status)] = statuses.get(str(status), 0) + 1
            if status == 200 and translation_of(content) != sentences[texts[index]]:
                wrong.append(texts[index])
        client.close()

    async def weigh() -> None:
        for _ in range(2):
            await asyncio.sleep(seconds / 2 - 0.1)
            resident.append(made.resident_mb())

    await asyncio.gather(weigh(), *(ask(number) for number in range(clients)))
    spent = time.monotonic() - begun
    return {
        "seconds": round(spent, 1),
        "answers by status (0 is lost)": statuses,
        "wrong answers": len(wrong),
        "wrong sentences": len(set(wrong)),
        "sentences/s": round(statuses.get("200", 0) / spent, 1),
        "p50 ms": round(1000 * percentile(waits, 0.5), 1),
        "p99 ms": round(1000 * percentile(waits, 0.99), 1),
        "resident MB at half": resident[0],
        "resident MB at end": resident[1],
        "growth %": round(100 * (resident[1] / resident[0] - 1), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("bundle")
    parser.add_argument("source", type=Path, help="a file with one sentence a line")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--words", type=int, default=15)
    parser.add_argument("--engine", default="auto", choices=["auto", "torch", "ctranslate2"])
    parser.add_argument("--name", default="serve_load")
    options = parser.parse_args()
    lines = options.source.read_text(encoding="utf-8").split("\n")
    wanted = (line for line in lines if len(line.split()) == options.words)
    texts = list(dict.fromkeys(wanted))[: 10 * options.clients]
    offline = load(options.bundle, options.engine).translate(texts)
    sentences = {each.source: each.text for each in offline}
    figures: dict[str, Any] = {"clients": options.clients, "different sentences": len(sentences)}
    figures["engine"] = options.engine
    for name, more in (("batching on", []), ("batching off", ["--max-batch-sentences", "1"])):
        with server(options.bundle, "--engine", options.engine, *more) as made:
            asyncio.run(drive(made, sentences, options.clients, min(3.0, options.seconds)))
            figures[name] = asyncio.run(drive(made, sentences, options.clients, options.seconds))
    ratio = figures["batching on"]["sentences/s"] / figures["batching off"]["sentences/s"]
    figures["batching on / off"] = round(ratio, 2)
    write_result(
        options.name,
        f"{options.clients} clients, one sentence of {options.words} words at a time",
        figures,
        ["Three seconds of the same load came before each measurement."],
    )


if __name__ == "__main__":
    main()
