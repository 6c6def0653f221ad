"""A file translated in parts: what two workers gain on one, and what kill -9 costs.

    python benchmarks/parts.py --model runs/demo --text test.fr

Wall time and CPU time are noted, since other programs may use the same cores: the wall times of two
workers are only worth something if the load before was small. "of CPU time" divides the CPU seconds
of one worker by those of the busier of two, which is what two free cores would give if the two did
not slow one another down. All processes have one thread; starting and loading the model count.
"""

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import machine

ROUNDS = 3


def main() -> None:
    options = _parse_options()
    about = machine.describe(("torch", "numpy", "sentencepiece", "ctranslate2"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        result: dict[str, Any] = {
            "benchmark": "parts",
            "command": machine.command(),
            "machine": about,
            "lines": sum(1 for _ in options.text.open("rb")),
            "rounds": [_round(options, folder / f"round-{n}") for n in range(options.rounds)],
        }
        result["kills"] = _kills(options, folder / "killed")
    report = _report(result)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "parts.json").write_text(json.dumps(result, indent=2) + "\n")
    (options.out / "parts.md").write_text(report)
    print(report)


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--model", type=Path, required=True, help="bundle or run folder")
    add("--text", type=Path, required=True, help="lines to translate")
    add("--rounds", type=int, default=ROUNDS)
    add("--parts", type=int, default=64, help="of the text whose processes are killed")
    add("--kills", type=int, default=20)
    add("--kill-lines", type=int, default=4096, help="lines of that text")
    add("--kill-within", type=float, default=4.0, help="seconds after the start of a process")
    add("--out", type=Path, default=machine.REPOSITORY / "benchmarks" / "results")
    return parser.parse_args()


def _start(model: Path, text: Path, part: str, folder: Path, *more: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "pellucid", "-q", "translate", str(model), str(text)]
    return subprocess.Popen(
        [*command, "--part", part, "-o", str(folder), "--engine", "ctranslate2", *more],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
    )


def _together(options: argparse.Namespace, folder: Path, count: int) -> dict[str, Any]:
    """Seconds of ``count`` workers that begin together, and the text of their parts."""
    began = time.perf_counter()
    workers = {
        each.pid: each
        for each in (
            _start(options.model, options.text, f"{number}/{count}", folder)
            for number in range(1, count + 1)
        )
    }
    cpu = []
    for _ in range(count):
        pid, status, used = os.wait4(-1, 0)
        assert pid in workers
        assert status == 0
        workers[pid].returncode = 0
        cpu.append(used.ru_utime + used.ru_stime)
    wall = time.perf_counter() - began
    return {"wall": wall, "cpu": sorted(cpu), "sha256": _joined(folder)}


def _joined(folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pellucid", "join", str(folder)], stdout=subprocess.PIPE, check=True
    )
    return hashlib.sha256(done.stdout).hexdigest()


def _round(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    one = _together(options, folder / "one", 1)
    two = _together(options, folder / "two", 2)
    assert one["sha256"] == two["sha256"], "two parts differ from one"
    return {
        "one": {key: one[key] for key in ("wall", "cpu")},
        "two": {key: two[key] for key in ("wall", "cpu")},
        "sha256": one["sha256"],
        "gain_wall": one["wall"] / two["wall"],
        "gain_cpu": one["cpu"][0] / two["cpu"][-1],
        "load": os.getloadavg()[0],
    }


def _kills(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Kill processes at random, begin them again, and compare the text with one run's."""
    folder.mkdir()
    text = folder / "text"
    with options.text.open("rb") as file:
        text.write_bytes(b"".join(next(file) for _ in range(options.kill_lines)))
    blocks = ("--buffer-size", "16")

    chance = random.Random(0)
    waiting, kills, starts = list(range(1, options.parts + 1)), 0, 0
    while waiting:
        number = waiting.pop(chance.randrange(len(waiting)))
        process = _start(
            options.model, text, f"{number}/{options.parts}", folder / "parts", *blocks
        )
        starts += 1
        if kills < options.kills:
            # From the first moment of a process to a little after its end.
            time.sleep(chance.uniform(0, options.kill_within))
            process.send_signal(signal.SIGKILL)
        if process.wait() == -signal.SIGKILL:
            kills += 1
        if process.returncode != 0:
            waiting.append(number)

    one = folder / "one"
    assert _start(options.model, text, "1/1", one, *blocks).wait() == 0
    killed, whole = _joined(folder / "parts"), _joined(one)
    assert killed == whole, "the parts differ from one run"
    return {
        "parts": options.parts,
        "lines": options.kill_lines,
        "kills": kills,
        "starts": starts,
        "left_behind": len(list((folder / "parts").glob("*.partial*"))),
        "equal": killed == whole,
    }


def _report(result: dict[str, Any]) -> str:
    about, kills = result["machine"], result["kills"]
    lines = [
        "# Translating in parts",
        "",
        "```",
        result["command"],
        "```",
        "",
        f"{about['cpu']}, {about['cores']} cores, load {about['load_before']} before;"
        f" {result['lines']:,} lines; commit {about['commit']}.",
        "",
        "| round | one worker: wall, CPU s | two workers: wall, CPU s each | gain in wall time |"
        " gain of CPU time | load |",
        "|---|---|---|---|---|---|",
    ]
    for number, each in enumerate(result["rounds"], start=1):
        one, two = each["one"], each["two"]
        both = " and ".join(f"{seconds:.1f}" for seconds in two["cpu"])
        lines.append(
            f"| {number} | {one['wall']:.1f}, {one['cpu'][0]:.1f} | {two['wall']:.1f}, {both} |"
            f" {each['gain_wall']:.2f} | {each['gain_cpu']:.2f} | {each['load']:.1f} |"
        )
    lines += [
        "",
        f"The joined texts were equal in every round. {kills['parts']} parts of"
        f" {kills['lines']:,} lines with {kills['kills']} processes killed by SIGKILL"
        f" ({kills['starts']} starts): the joined text equals that of one run, byte for byte;"
        f" {kills['left_behind']} files were left behind.",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
