"""Whether translating costs the same for each sentence, however many, and memory stays flat.

    python benchmarks/decode_scaling.py --model runs/de --text test.en --lines 2000 8000
    python benchmarks/decode_scaling.py --model runs/de --text test.en --lines 1000000 --beam 1

A stream of different lines (those of the text, numbered, again and again) goes through one
translator. Seconds and resident memory are noted at ten marks of each length. Lines come out as
many at a time as are read ahead (``stream_lines``), so neighboring marks may have the same time.
"""

import argparse
import itertools
import json
import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import machine

from pellucid.backends.load import load
from pellucid.text.corpus.lines import read_lines


def main() -> None:
    options = _parse_options()
    about = machine.describe()
    text = [line for line in read_lines(options.text) if line.strip()]
    runs = [_run(options, text, count) for count in options.lines]
    result = {
        "benchmark": "decode_scaling",
        "command": machine.command(),
        "machine": about,
        "runs": runs,
    }
    report = _report(result)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "decode_scaling.json").write_text(json.dumps(result, indent=2) + "\n")
    (options.out / "decode_scaling.md").write_text(report)
    print(report)


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--model", type=Path, required=True, help="bundle or run folder")
    add("--text", type=Path, required=True, help="lines to translate")
    add("--lines", type=int, nargs="+", default=[2000, 8000], help="lengths of the streams")
    add("--beam", type=int, default=1)
    add("--out", type=Path, default=machine.REPOSITORY / "benchmarks" / "results")
    return parser.parse_args()


def _run(options: argparse.Namespace, text: list[str], count: int) -> dict[str, Any]:
    translator = load(options.model, "torch")
    marks = {count * tenth // 10 for tenth in range(1, 11)}
    points = []
    began = time.perf_counter()
    for number, _ in enumerate(
        translator.translate(_different_lines(text, count), beam_size=options.beam), start=1
    ):
        if number in marks:
            point = {
                "lines": number,
                "seconds": round(time.perf_counter() - began, 2),
                "resident_mb": _resident_mb(),
            }
            points.append(point)
            print(json.dumps(point), flush=True)
    return {"lines": count, "points": points, "peak_mb": _peak_mb()}


def _different_lines(text: list[str], count: int) -> Iterator[str]:
    """The lines of the text, numbered from the second time on, so that none is known."""
    for number in itertools.islice(itertools.count(), count):
        turn, place = divmod(number, len(text))
        yield f"{text[place]} {turn}" if turn else text[place]


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)


def _peak_mb() -> float:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def _report(result: dict[str, Any]) -> str:
    about = result["machine"]
    lines = [
        "# Decoding many lines",
        "",
        "| lines of the stream | lines so far | seconds | lines/s so far | resident memory, MB |",
        "|---|---|---|---|---|",
    ]
    for run in result["runs"]:
        lines += [
            f"| {run['lines']:,} | {point['lines']:,} | {point['seconds']:.1f}"
            f" | {point['lines'] / point['seconds']:,.0f} | {point['resident_mb']:,.0f} |"
            for point in run["points"]
        ]
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    lines += [
        "",
        f"- machine: {about['cpu']}, {about['cores']} cores, {about['memory_gb']} GB,"
        f" load {about['load_before']} before the start",
        f"- {about['date']}, commit {about['commit']}, Python {about['python']}, {versions}",
        f"- `{result['command']}`",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
