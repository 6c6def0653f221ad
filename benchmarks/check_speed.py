"""How many pairs a second ``pellucid check`` looks at, and in how much memory.

    python benchmarks/check_speed.py --data ../shared/data

Each corpus is checked --rounds times in a process of its own; the whole command is timed, start-up
included, by the wall clock and by the processor time of the process, which other programs on the
machine disturb less. --made-up PAIRS adds a corpus of so many generated pairs, for the memory.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import machine

CORPORA = {
    "multi30k": ("multi30k/train.en", "multi30k/train.de"),
    "tatoeba": ("tatoeba_de_en/train.en", "tatoeba_de_en/train.de"),
    "europarl": ("europarl20k/train.de", "europarl20k/train.en"),
}
_REPEATED_TO = 400_000
"""Pairs to which a small corpus is repeated, so that start-up does not count for most."""


def main() -> None:
    options = _parse_options()
    results: dict[str, Any] = {"command": machine.command(), "machine": machine.describe()}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for corpus, names in CORPORA.items():
            files = [_repeat(options.data / each, folder / Path(each).name) for each in names]
            results[corpus] = _measure(files, options.rounds)
        if options.made_up:
            results["made up"] = _measure(_make_up(folder, options.made_up), 1)
    text = json.dumps(results, indent=2)
    sys.stdout.write(text + "\n")
    if options.out:
        options.out.write_text(text + "\n")


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--made-up", type=int, default=0, metavar="PAIRS")
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def _repeat(path: Path, to: Path) -> Path:
    text = path.read_bytes()
    to.write_bytes(text * (_REPEATED_TO // text.count(b"\n") + 1))
    return to


def _make_up(folder: Path, pairs: int) -> list[Path]:
    files = [folder / "made-up.a", folder / "made-up.b"]
    for side, path in enumerate(files):
        with path.open("w") as file:
            for number in range(pairs):
                words = "word " * (3 + number * 7919 % 11)
                file.write(f"{'ab'[side]}{number} {words}.\n")
    return files


def _measure(files: list[Path], rounds: int) -> dict[str, Any]:
    with files[0].open("rb") as file:
        pairs = sum(1 for _ in file)
    runs = [_run(files) for _ in range(rounds)]
    wall = statistics.median(run["wall_seconds"] for run in runs)
    processor = statistics.median(run["processor_seconds"] for run in runs)
    return {
        "pairs": pairs,
        "bytes": sum(file.stat().st_size for file in files),
        "pairs_per_second": round(pairs / wall),
        "pairs_per_processor_second": round(pairs / processor),
        "peak_megabytes": max(run["peak_megabytes"] for run in runs),
        "runs": runs,
    }


def _run(files: list[Path]) -> dict[str, float]:
    command = [sys.executable, "-m", "pellucid", "check", *map(str, files), "--json"]
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, _, usage = os.wait4(process.pid, 0)
    return {
        "wall_seconds": round(time.perf_counter() - began, 3),
        "processor_seconds": round(usage.ru_utime + usage.ru_stime, 3),
        "peak_megabytes": round(usage.ru_maxrss / 1024),
    }


if __name__ == "__main__":
    main()
