"""Training speed beside JoeyNMT: same files, subwords, model and batch size, taken in turn.

    benchmarks/setup_joeynmt.sh /tmp/joeynmt-env
    python benchmarks/train_speed.py --joeynmt /tmp/joeynmt-env --data ../shared/data/multi30k \
        --minutes 3 --rounds 2

What is counted: real target tokens, each sentence's stop included and padding left out, that
went through forward, backward and update, per second of wall time from the first line of the log
at or after step --skip-steps to the last line. Reading, tokenizing, batching and logging within
that time are in it; start-up, validation and saving are not.
"""

import argparse
import json
import os
import shlex
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joeynmt_peer
import machine
from throughput import read_journal, throughput

from pellucid.text.corpus.lines import read_lines
from pellucid.text.tokenizers.tokenizer import train_tokenizers
from pellucid.training.presets import read_config

_NEVER = 100_000_000
_EXIT_SECONDS = 300.0
_POLL_SECONDS = 0.2


def main() -> None:
    options = _parse_options()
    before = machine.describe()
    work = options.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    _write_data(work, options)
    config = read_config(options.preset, options.set)
    both, _ = train_tokenizers(
        read_lines(work / "train.source"), read_lines(work / "train.target"), config.tokenizer
    )
    joeynmt_peer.write_tokenizer(work, both)
    rounds = []
    for number in range(1, options.rounds + 1):
        for system, train in (("pellucid", _train_pellucid), ("joeynmt", _train_joeynmt)):
            if options.only in (None, system):
                figures = train(work / f"{system}-{number}", options)
                rounds.append({"system": system, "round": number, **figures})
                print(json.dumps(rounds[-1]), flush=True)
    result = {
        "benchmark": "train_speed",
        "command": machine.command(),
        "counted": (__doc__ or "").split("\n\n")[-1].replace("\n", " ").strip(),
        "machine": before,
        "peers": {} if options.only == "pellucid" else _peer_versions(options.joeynmt),
        "settings": {
            "preset": options.preset,
            "set": options.set,
            "minutes": options.minutes,
            "threads": options.threads,
            "log_every": options.log_every,
            "skip_steps": options.skip_steps,
            "model": config.model.to_table(),
            "vocabulary_size": both.vocabulary_size,
            "batch_tokens": config.training.batch_tokens,
        },
        "rounds": rounds,
        **_summary(rounds),
    }
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "train_speed.json").write_text(json.dumps(result, indent=2) + "\n")
    (options.out / "train_speed.md").write_text(_report(result))
    print(_report(result))


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--joeynmt", type=Path, help="environment made by setup_joeynmt.sh")
    add("--data", type=Path, required=True, help="folder with train.* and val.*")
    add("--languages", nargs=2, default=["en", "de"], help="suffixes: source, target")
    add("--preset", default="multi30k", help="Pellucid's preset or config")
    add("--set", action="append", default=[], help="setting for Pellucid (both take the model's)")
    add("--minutes", type=float, default=3.0, help="training time of each run")
    add("--rounds", type=int, default=2, help="how often each system is run, in turn")
    add("--threads", type=int, default=machine.cores())
    add("--log-every", type=int, default=10, help="updates between lines of either log")
    add("--skip-steps", type=int, default=20, help="updates before counting begins")
    add("--only", choices=["pellucid", "joeynmt"], help="run one system alone")
    add("--work", type=Path, default=Path("/tmp/train_speed"), help="for data and runs")
    add("--out", type=Path, default=machine.REPOSITORY / "benchmarks" / "results")
    options = parser.parse_args()
    if options.joeynmt is None and options.only != "pellucid":
        parser.error("name JoeyNMT's environment by --joeynmt, or take --only pellucid")
    return options


def _write_data(work: Path, options: argparse.Namespace) -> None:
    """Copies of the files that both systems read alike.

    JoeyNMT cuts lines at U+2028, U+0085 and the like, and drops empty lines from each side alone;
    so such characters become spaces and pairs with an empty side are left out.
    """
    for ours, theirs in (("train", "train"), ("valid", "val")):
        paths = [options.data / f"{theirs}.{language}" for language in options.languages]
        sides = [[" ".join(line.splitlines()) for line in read_lines(path)] for path in paths]
        pairs = [pair for pair in zip(*sides, strict=True) if all(map(str.strip, pair))]
        for name, lines in zip(("source", "target"), zip(*pairs, strict=True), strict=True):
            (work / f"{ours}.{name}").write_bytes("".join(f"{x}\n" for x in lines).encode())


def _train_pellucid(run: Path, options: argparse.Namespace) -> dict[str, Any]:
    data = {
        "data.source": run.parent / "train.source",
        "data.target": run.parent / "train.target",
        "data.valid_source": run.parent / "valid.source",
        "data.valid_target": run.parent / "valid.target",
        "data.format": "plain",
        "training.max_minutes": float(options.minutes),
        "training.validate_every": _NEVER,
        "training.save_every": _NEVER,
        "training.log_every": options.log_every,
        "training.threads": options.threads,
    }
    subprocess.run(["rm", "-rf", str(run)], check=True)
    command = [sys.executable, "-m", "pellucid", "train", options.preset, "--out", str(run)]
    for setting in [*options.set, *(f"{name}={value}" for name, value in data.items())]:
        command += ["--set", setting]
    peak = _run(command, run.with_suffix(".out"), options.threads)
    points = read_journal(run / "journal.jsonl")
    return throughput(points, options.skip_steps).to_dict() | {"peak_memory_mb": peak}


def _train_joeynmt(run: Path, options: argparse.Namespace) -> dict[str, Any]:
    config = read_config(options.preset, options.set)
    path = joeynmt_peer.write_config(run.parent, run, config, options.log_every)
    log = run / "train.log"
    log.unlink(missing_ok=True)
    deadline: list[float] = []

    def is_over() -> bool:
        """The time runs from JoeyNMT's first epoch on, as Pellucid's does."""
        if not deadline and log.exists() and " - EPOCH 1\n" in log.read_text(encoding="utf-8"):
            deadline.append(time.monotonic() + 60.0 * options.minutes)
        return bool(deadline) and time.monotonic() > deadline[0]

    python = str(options.joeynmt / "bin" / "python")
    command = [python, "-m", "joeynmt", "train", str(path), "--skip-test"]
    peak = _run(command, run.with_suffix(".out"), options.threads, is_over)
    points = joeynmt_peer.read_log(log.read_text(encoding="utf-8"))
    return throughput(points, options.skip_steps).to_dict() | {"peak_memory_mb": peak}


def _run(
    command: list[str], output: Path, threads: int, is_over: Callable[[], bool] | None = None
) -> int:
    """Run until it ends, or interrupt it once ``is_over``; peak resident memory in MB."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    with output.open("wb") as file:
        process = subprocess.Popen(
            command, stdout=file, stderr=file, env=environment, cwd=output.parent
        )
        interrupted_at = None
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if interrupted_at is None and is_over is not None and is_over():
                process.send_signal(signal.SIGINT)  # both systems save and leave
                interrupted_at = time.monotonic()
            if interrupted_at and time.monotonic() > interrupted_at + _EXIT_SECONDS:
                process.kill()
            time.sleep(_POLL_SECONDS)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode and interrupted_at is None:
        raise SystemExit(f"{shlex.join(command)} failed ({process.returncode}); see {output}")
    return usage.ru_maxrss // 1024


def _peer_versions(environment: Path) -> dict[str, str]:
    code = (
        "import json; from importlib.metadata import version;"
        "print(json.dumps({n: version(n) for n in ('joeynmt', 'torch', 'sentencepiece', 'numpy')}))"
    )
    python = str(environment / "bin" / "python")
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def _summary(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    speeds: dict[str, list[float]] = {}
    for figures in rounds:
        speeds.setdefault(figures["system"], []).append(figures["tokens_per_second"])
    medians = {system: round(statistics.median(values), 1) for system, values in speeds.items()}
    summary: dict[str, Any] = {"median_tokens_per_second": medians}
    if len(medians) == 2:
        summary["pellucid_over_joeynmt"] = round(medians["pellucid"] / medians["joeynmt"], 2)
    return summary


def _report(result: dict[str, Any]) -> str:
    about, settings = result["machine"], result["settings"]
    versions = ", ".join(f"{name} {value}" for name, value in about["versions"].items())
    peers = ", ".join(f"{name} {value}" for name, value in result["peers"].items())
    lines = [
        "# Training speed",
        "",
        result["counted"],
        "",
        "| round | system | target tokens/s | tokens | seconds | updates | peak memory, MB |",
        "|---|---|---|---|---|---|---|",
        *(
            f"| {r['round']} | {r['system']} | {r['tokens_per_second']:,.0f} |"
            f" {r['target_tokens']:,} | {r['seconds']:.0f} | {r['steps']} |"
            f" {r['peak_memory_mb']:,} |"
            for r in result["rounds"]
        ),
        "",
        *(
            f"- {system}: median {speed:,.0f} target tokens/s"
            for system, speed in result["median_tokens_per_second"].items()
        ),
        *(
            [f"- Pellucid is {result['pellucid_over_joeynmt']:.2f} times as fast as JoeyNMT"]
            if "pellucid_over_joeynmt" in result
            else []
        ),
        f"- machine: {about['cpu']}, {about['cores']} cores, {about['memory_gb']} GB,"
        f" load {about['load_before']} before the start; {settings['threads']} threads each",
        f"- {about['date']}, commit {about['commit']}, Python {about['python']}, {versions}",
        *([f"- in JoeyNMT's environment: {peers}"] if peers else []),
        f"- `{result['command']}`",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
