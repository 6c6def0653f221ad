"""How many pairs a second ``pellucid check`` looks at, and in how much memory.

    python benchmarks/check_speed.py --data ../shared/data --made-up 10000000

Each corpus is checked --rounds times in a process of its own, as it is and repeated to 400,000
pairs; the whole command is timed by the wall clock, and by the processor time beside, which other
programs on the machine disturb less. What a check of one pair takes is the start-up. --made-up
PAIRS adds a corpus of so many generated pairs, for the memory: RssAnon of /proc is what was
allocated, RssFile what is mapped from files, the program's own among them.
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
from memory import Watch

RESULTS = Path(__file__).parent / "results"
CORPORA = {
    "multi30k en-de": ("multi30k/train.en", "multi30k/train.de"),
    "multi30k en-fr": ("multi30k/train.en", "multi30k/train.fr"),
    "tatoeba": ("tatoeba_de_en/train.en", "tatoeba_de_en/train.de"),
    "europarl": ("europarl20k/train.de", "europarl20k/train.en"),
    "scan": ("scan/train.in", "scan/train.out"),
    "cmudict": ("cmudict/train.graph", "cmudict/train.phon"),
    "news, messy": ("messy/nc-5k.en", "messy/nc-5k.fr"),
    "crawl, messy": ("messy/wmt10k.de", "messy/wmt10k.en"),
}
_REPEATED_TO = 400_000
"""Pairs to which a small corpus is repeated, so that start-up does not count for most."""


def main() -> None:
    options = _parse_options()
    results: dict[str, Any] = {"command": machine.command(), "machine": machine.describe()}
    corpora: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        alone = [folder / "one.a", folder / "one.b"]
        for path in alone:
            path.write_text("One pair.\n")
        results["start_up"] = _measure(alone, options.rounds)
        for corpus, names in CORPORA.items():
            files = [options.data / each for each in names]
            repeated = [_repeat(path, folder / path.name) for path in files]
            corpora[corpus] = {
                "as it is": _measure(files, options.rounds),
                "repeated": _measure(repeated, options.rounds),
            }
        if options.made_up:
            made_up = _make_up(folder, options.made_up)
            corpora["made up"] = {"as it is": _measure(made_up, 1)}
    results["corpora"] = corpora
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "check_speed.json").write_text(json.dumps(results, indent=2) + "\n")
    (RESULTS / "check_speed.md").write_text(report(results))
    sys.stdout.write(report(results))


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--made-up", type=int, default=0, metavar="PAIRS")
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
        "wall_seconds": wall,
        "pairs_per_second": round(pairs / wall),
        "pairs_per_processor_second": round(pairs / processor),
        "anonymous_mb": max(run["anonymous_mb"] for run in runs),
        "mapped_mb": max(run["mapped_mb"] for run in runs),
        "runs": runs,
    }


def _run(files: list[Path]) -> dict[str, float]:
    command = [sys.executable, "-m", "pellucid", "check", *map(str, files), "--json"]
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    with Watch(process.pid) as watch:
        _, _, usage = os.wait4(process.pid, 0)
        ended = time.perf_counter()
    return {
        "wall_seconds": round(ended - began, 3),
        "processor_seconds": round(usage.ru_utime + usage.ru_stime, 3),
        "anonymous_mb": watch.most.anonymous,
        "mapped_mb": watch.most.mapped,
    }


def report(results: dict[str, Any]) -> str:
    """The figures as Markdown."""
    about = results["machine"]
    start_up = results["start_up"]["wall_seconds"]
    rows = []
    for name, kinds in results["corpora"].items():
        for kind, figures in kinds.items():
            rest = figures["wall_seconds"] - start_up
            beyond = f"{figures['pairs'] / rest:,.0f}" if rest > 0 else "-"
            rows.append(
                f"| {name}, {kind} | {figures['pairs']:,} | {figures['wall_seconds']:.2f} |"
                f" {figures['pairs_per_second']:,} | {beyond} |"
                f" {figures['pairs_per_processor_second']:,} | {figures['anonymous_mb']} |"
                f" {figures['mapped_mb']} |"
            )
    return f"""# How fast `pellucid check` is

`{results["command"]}`

{about["cpu"]}, {about["cores"]} cores, {about["memory_gb"]} GB, load {about["load_before"]} before;
{about["date"]}; commit {about["commit"]}. Medians of whole commands; a check of one pair, the
start-up, takes {start_up:.2f} s. Memory in MiB: allocated (RssAnon), mapped from files (RssFile).

| corpus | pairs | seconds | pairs/s | without start-up | pairs/processor s | allocated | mapped |
|---|---|---|---|---|---|---|---|
{chr(10).join(rows)}
"""


if __name__ == "__main__":
    main()
