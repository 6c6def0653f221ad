"""Hours of one training run: whether its memory grows, and its open files.

    pellucid train multi30k ... --out RUN &
    python benchmarks/soak.py --pid $! --run RUN

Looks at a process that trains until it ends, every --every seconds. Memory is RssAnon of the
process alone, what was allocated and not mapped from files. The slope is the least-squares line
through all looks after --warm-up minutes; beside it stand the medians of equal thirds of that time,
as validations and checkpoints come and go within a line.
"""

import argparse
import datetime
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import machine

RESULTS = Path(__file__).parent / "results"
Look = tuple[float, int, int]
"""Minutes since the first, RssAnon in kB, open file descriptors."""


def main() -> None:
    options = _parse_options()
    about = machine.describe()
    looks = watch(options.pid, options.every)
    late = [look for look in looks if look[0] >= options.warm_up]
    if len(late) < 3:
        raise SystemExit(f"only {len(late)} looks after {options.warm_up} minutes")
    journal = (options.run / "journal.jsonl").read_text(encoding="utf-8")
    events = [json.loads(line) for line in journal.splitlines() if line]
    result = {
        "benchmark": "soak",
        "command": machine.command(),
        "machine": about,
        "ended": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "warm_up_minutes": options.warm_up,
        **summary(late),
        "updates": max(event.get("step", 0) for event in events),
        "validations": sum(event["event"] == "validation" for event in events),
        "looks": looks,
    }
    (RESULTS / "soak.json").write_text(json.dumps(result) + "\n", encoding="utf-8")
    (RESULTS / "soak.md").write_text(report(result), encoding="utf-8")
    sys.stdout.write(report(result))


def watch(pid: int, every: float) -> list[Look]:
    """Look at a process until it has ended."""
    looks, began = [], time.monotonic()
    while (memory := _allocated(pid)) is not None:
        files = sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
        looks.append((round((time.monotonic() - began) / 60, 3), memory, files))
        time.sleep(every)
    return looks


def _allocated(pid: int) -> int | None:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("RssAnon:")), None)


def summary(looks: list[Look]) -> dict[str, Any]:
    """Slope in MB an hour, medians of the thirds in MB, and how many files were open."""
    hours = [look[0] / 60 for look in looks]
    memory = [look[1] / 1000 for look in looks]
    slope, _ = statistics.linear_regression(hours, memory)
    third = len(looks) // 3
    parts = memory[:third], memory[third : 2 * third], memory[2 * third :]
    return {
        "slope_mb_per_hour": round(slope, 2),
        "thirds_mb": [round(statistics.median(part), 1) for part in parts],
        "range_mb": [round(min(memory), 1), round(max(memory), 1)],
        "hours": round(hours[-1] - hours[0], 2),
        "open_files": sorted({look[2] for look in looks}),
    }


def report(result: dict[str, Any]) -> str:
    about, (least, most) = result["machine"], result["range_mb"]
    return "\n".join(
        [
            "# Soak",
            "",
            f"What is counted: {' '.join((__doc__ or '').split(chr(10) * 2)[-1].split())}",
            "",
            f"- {result['hours']} hours after {result['warm_up_minutes']:g} minutes;"
            f" {result['updates']:,} updates, {result['validations']} validations in all",
            f"- slope: {result['slope_mb_per_hour']} MB an hour",
            f"- medians of the thirds: {', '.join(map(str, result['thirds_mb']))} MB;"
            f" least {least}, most {most}",
            f"- open files: {', '.join(map(str, result['open_files']))}",
            f"- {about['cpu']}, {about['system']}, commit {about['commit']}, {result['ended']}",
            "",
        ]
    )


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pid", type=int, required=True, help="a process that trains")
    parser.add_argument("--run", type=Path, required=True, help="its folder")
    parser.add_argument("--every", type=float, default=20.0, help="seconds between two looks")
    parser.add_argument("--warm-up", type=float, default=20.0, help="minutes that do not count")
    return parser.parse_args()


if __name__ == "__main__":
    main()
