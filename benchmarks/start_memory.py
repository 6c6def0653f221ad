"""Memory and CPU time of a start with the kernels: a student of up to 32,000 words.

    pip install ./kernels
    python benchmarks/start_memory.py --text ../shared/data/multi30k/train.*

A student 6+2/256 with an SSRU decoder and random weights. "first" rounds and packs it, "next" reads
the packed model from the cache; each is a whole process, its peak memory and CPU seconds. "floor"
imports numpy and pydantic and ends. "server" is one process of ``pellucid serve``: its memory when
it is ready, and after 100 requests of a line and 100 of fifty lines.
"""

import argparse
import dataclasses
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

_LINE = "a dog runs on the beach ."
_SHAPE = "6+2/256, 32,000 words"
_SMALL_PARENT = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, used = os.wait4(process.pid, 0)
assert status == 0
print(used.ru_maxrss / 1024, used.ru_utime + used.ru_stime)
"""
"""A process begins with the peak of the one that starts it, which here has PyTorch in it."""


def main() -> None:
    """Measure, and write the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--text", type=Path, nargs="+", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()

    import machine
    from student_speed import _student

    from pellucid.bundle import save_bundle
    from pellucid.text.corpus.lines import read_lines

    before = machine.describe(("numpy",))
    text = [line for path in options.text for line in read_lines(path)]
    student = _student(_SHAPE, text)
    search = {"max_length_ratio": 1.0, "max_length_extra": 4, "beam_size": 1}
    settings = {"model": student.config.to_table(), "decoding": search}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bundle, lines = folder / "bundle", folder / "lines"
        save_bundle(bundle, dataclasses.replace(student, settings=settings), card="", details={})
        lines.write_text(f"{_LINE}\n" * 50)
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
        pellucid = [sys.executable, "-m", "pellucid"]
        translate = [*pellucid, "-q", "translate", str(bundle), str(lines), "--engine", "kernels"]
        floor = [sys.executable, "-c", "import numpy, pydantic"]
        rows = {"floor": _measured(floor, options.rounds), "first": _measured(translate, 1)}
        rows["next"] = _measured(translate, options.rounds)
        served = _served([*pellucid, "serve", str(bundle), "--engine", "kernels"])
    result = {
        "benchmark": "start_memory",
        "command": machine.command(),
        "counted": " ".join((__doc__ or "").split("\n\n")[-1].split()),
        "machine": before,
        "words": student.source_tokenizer.vocabulary_size,
        "parameters": student.parameter_count,
        "rounds": options.rounds,
        "rows": rows,
        "server_mb": served,
    }
    machine.write_result("start_memory", result, _page(result))


def _measured(command: list[str], rounds: int) -> dict[str, list[float]]:
    """The least, the median and the most of peak MB and of CPU seconds."""
    peaks, seconds = [], []
    for _ in range(rounds):
        parent = [sys.executable, "-c", _SMALL_PARENT, *command]
        done = subprocess.run(parent, stdout=subprocess.PIPE, text=True, check=True)
        peak, spent = map(float, done.stdout.split())
        peaks.append(peak)
        seconds.append(spent)
    return {
        name: [min(found), statistics.median(found), max(found)]
        for name, found in (("mb", peaks), ("cpu_s", seconds))
    }


def _served(command: list[str]) -> list[float]:
    """Resident MB of the server when it is ready, after 100 single lines, after 100 batches."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with subprocess.Popen(
        [*command, "--port", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            address = f"http://127.0.0.1:{port}"
            while not _is_ready(address):
                time.sleep(0.2)
            found = [_resident(process.pid)]
            for text in (_LINE, [_LINE] * 50):
                for _ in range(100):
                    _ask(f"{address}/v1/translate", {"text": text})
                found.append(_resident(process.pid))
        finally:
            process.terminate()
    return found


def _is_ready(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/readyz", timeout=10) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _ask(address: str, body: Any) -> None:
    request = urllib.request.Request(
        address, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        answer.read()


def _resident(process: int) -> float:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    [size] = [int(line.split()[1]) for line in lines if line.startswith("VmRSS")]
    return size / 1024


def _page(result: dict[str, Any]) -> str:
    where = result["machine"]
    rows = [
        f"| {who} | {row['mb'][1]:.0f} | {row['cpu_s'][1]:.2f}"
        f" ({row['cpu_s'][0]:.2f} to {row['cpu_s'][2]:.2f}) |"
        for who, row in result["rows"].items()
    ]
    ready, alone, batches = result["server_mb"]
    return "\n".join(
        [
            "# Memory of a start with the kernels",
            "",
            result["counted"],
            "",
            "| process | peak MB | CPU s, median (least to most) |",
            "|---|---|---|",
            *rows,
            "",
            f"The server has {ready:.0f} MB when it is ready, {alone:.0f} MB after 100 lines alone,"
            f" {batches:.0f} MB after 100 batches.",
            "",
            f"- {result['words']:,} words, {result['parameters']:,} parameters,"
            f" {result['rounds']} rounds",
            f"- machine: {where['cpu']}, {where['cores']} cores, load {where['load_before']} before"
            " the start; one thread",
            f"- {where['date']}, commit {where['commit']}, Python {where['python']}",
            f"- `{result['command']}`",
            "",
        ]
    )


if __name__ == "__main__":
    main()
