"""Twenty million made-up pairs through ``pellucid prepare``: here, and on two Ray workers.

    python benchmarks/prepare.py --pairs 20000000 --ray

The pairs are those of ``benchmarks/scale.py``; of those of one phrase most are near duplicates, as
they differ in a number only. They are made in a temporary folder (about 10 GB in all; --folder
chooses where), which is removed at the end. Each way is one command in a process of its own. Its
memory is what /proc/PID/status says of it and all its children together, twenty times a second
(RssAnon: what was allocated, without what is mapped from files and Ray's shared memory); CPU time
is that of the process and the children it waited for, which Ray's workers are not. At the end the
SHA-256 of all files of both ways are compared: the cleaned text, the tokenizers and the store.
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import machine
from memory import Watch
from scale import make_corpus

RESULTS = Path(__file__).parent / "results"
_READ_AT_ONCE = 1 << 20
_SETTINGS = ("tokenizer.kind=bpe", "tokenizer.vocabulary_size=8000")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--pairs", type=int, default=20_000_000)
    parser.add_argument("--folder", type=Path, help="where to make the temporary folder")
    parser.add_argument("--ray", action="store_true", help="once more, on two workers of Ray")
    options = parser.parse_args()

    results: dict[str, Any] = {"command": machine.command(), "machine": machine.describe()}
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        results["corpus"] = make_corpus(folder, options.pairs)
        results["one machine"] = prepare(folder, "one")
        write(results)
        if options.ray:
            results["two Ray workers"] = prepare(folder, "two", "--ray", "local", "--cores", "2")
            write(results)


def prepare(folder: Path, name: str, *options: str) -> dict[str, Any]:
    """Run the command, and say what it took and what it wrote."""
    out = folder / name / "corpus"
    settings = [*_SETTINGS, *(f"data.{key}={folder / path}" for key, path in _FILES.items())]
    words = ["prepare", "tiny", "-o", str(out), "--json", *options]
    words += [word for setting in settings for word in ("--set", setting)]
    environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}

    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "pellucid", "-q", *words],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert process.stdout is not None
    with Watch(process.pid) as watch:
        said = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit("preparing failed")

    facts = json.loads(said)
    del facts["config"]
    return {
        **facts,
        "seconds": round(time.perf_counter() - began, 1),
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "anonymous_mb": watch.most.anonymous,
        "mapped_mb": watch.most.mapped,
        "most_processes": watch.most.processes,
        "files": {
            str(path.relative_to(out)): {"bytes": path.stat().st_size, "sha256": sha256(path)}
            for part in ("text", "cache")
            for path in sorted((out / part).rglob("*"))
            if path.is_file()
        },
    }


_FILES = {"source": "train.fr", "target": "train.en"}


def sha256(path: Path) -> str:
    """Of a file of any size."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while content := file.read(_READ_AT_ONCE):
            digest.update(content)
    return digest.hexdigest()


def write(results: dict[str, Any]) -> None:
    """The figures as JSON and as Markdown."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "prepare.json").write_text(json.dumps(results, indent=2) + "\n")
    (RESULTS / "prepare.md").write_text(report(results))
    sys.stdout.write(report(results))
    sys.stdout.flush()


def report(results: dict[str, Any]) -> str:
    """The figures as Markdown."""
    about, corpus = results["machine"], results["corpus"]
    ways = {name: results[name] for name in ("one machine", "two Ray workers") if name in results}
    rows = [
        ("pairs kept", [f"{way['kept']:,}" for way in ways.values()]),
        ("time", [f"{way['seconds']:,.0f} s" for way in ways.values()]),
        ("CPU time", [f"{ways['one machine']['cpu_seconds']:,.0f} s", "not known"]),
        ("allocated at most, all processes", [f"{e['anonymous_mb']} MiB" for e in ways.values()]),
        ("processes at most", [str(way["most_processes"]) for way in ways.values()]),
    ]
    table = "\n".join(
        f"| {name} | {' | '.join(cells[: len(ways)])} |"
        for name, cells in [("", list(ways)), ("---", ["---"] * len(ways)), *rows]
    )
    dropped = ", ".join(
        f"{count:,} {reason.replace('_', ' ')}"
        for reason, count in ways["one machine"]["dropped"].items()
        if count
    )
    files = ways["one machine"]["files"]
    listed = "\n".join(
        f"| `{name}` | {file['bytes']:,} | `{file['sha256'][:16]}` |"
        for name, file in files.items()
    )
    return f"""# {corpus["pairs"]:,} pairs prepared

`{results["command"]}`

{about["cpu"]}, {about["cores"]} cores, {about["memory_gb"]} GB, load {about["load_before"]} before;
{about["date"]}; commit {about["commit"]}.

Text of {corpus["bytes"] / 1e9:.2f} GB. Dropped: {dropped}.

{table}

{_compared(ways)}

| file | bytes | SHA-256 |
|---|---|---|
{listed}
"""


def _compared(ways: dict[str, Any]) -> str:
    if len(ways) < 2:
        return "Files of the one machine:"
    # The name of the tokenizers' folder has a hash of the paths of the text, which differ.
    one, two = (
        {re.sub("tokenizers-[0-9a-f]+", "tokenizers", name): file for name, file in files.items()}
        for files in (way["files"] for way in ways.values())
    )
    other = sorted(name for name in one.keys() | two.keys() if one.get(name) != two.get(name))
    if other:
        return f"**Not equal**: {', '.join(other)}."
    return f"All {len(one)} files of both ways are equal, byte for byte:"


if __name__ == "__main__":
    main()
