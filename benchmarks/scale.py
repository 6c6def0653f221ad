"""Twenty million made-up pairs: how they are prepared, started on and resumed, and in what memory.

    python benchmarks/scale.py --pairs 20000000

The corpus is made in a temporary folder (about 5 GB with the token store; --folder chooses where)
and removed at the end. Every step runs in processes of its own. Memory is what /proc/PID/status
says of the process and all its children together, twenty times a second: RssAnon is memory that
was allocated; RssFile is what is mapped from files, which the system takes back when it needs the
room. "Growth" of preparing is the highest RssAnon less that of the process when all its imports
were done. Starting and resuming are timed from the start of the command ``pellucid train`` until
the first update stands in the journal, and their memory is compared with the same command on a
thousandth of the pairs.
"""

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import machine
from memory import Watch, memory_of

from pellucid import phrasebook
from pellucid.core.files import write_folder
from pellucid.text.batching import BatchSampler
from pellucid.training.config import RunConfig
from pellucid.training.data import prepare_data
from pellucid.training.journal import JOURNAL_FILE, read_journal
from pellucid.training.presets import read_config

RESULTS = Path(__file__).parent / "results"
_SMALL = 1000
"""How many times smaller the corpus is that memory is compared with."""
_PHRASES = 20_000
_READY = "ready"
_LONGEST_WAIT = 600.0
_SETTINGS = [
    "tokenizer.vocabulary_size=8000",
    "model.d_model=64",
    "model.d_ff=64",
    "model.encoder_layers=1",
    "model.decoder_layers=1",
    "training.batch_tokens=4096",
    "training.precision=fp32",
    "training.average_decay=0.0",
    "training.validate_every=1000000",
    "training.max_minutes=600",
    "training.log_every=1",
]


def main() -> None:
    options = _parse_options()
    if options.prepare is not None:
        _prepare_here(options.prepare)
        return
    results: dict[str, Any] = {"command": machine.command(), "machine": machine.describe()}
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        small = measure(Path(name) / "small", max(2000, options.pairs // _SMALL))
        large = measure(Path(name) / "large", options.pairs)
    for step in ("start", "resume mid-epoch"):
        large[step]["growth_mb"] = large[step]["anonymous_mb"] - small[step]["anonymous_mb"]
    results |= {"corpus": large.pop("corpus"), "large": large, "small": small}
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "scale.json").write_text(json.dumps(results, indent=2) + "\n")
    (RESULTS / "scale.md").write_text(report(results))
    sys.stdout.write(report(results))


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--pairs", type=int, default=20_000_000)
    parser.add_argument("--folder", type=Path, help="where to make the temporary folder")
    parser.add_argument("--prepare", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def measure(folder: Path, pairs: int) -> dict[str, Any]:
    """Make a corpus, prepare it, begin to train, go on in the middle of an epoch."""
    folder.mkdir()
    began = time.perf_counter()
    corpus = make_corpus(folder, pairs) | {"seconds": round(time.perf_counter() - began, 1)}
    config = read_config("demo", [*_SETTINGS, *_data_settings(folder)])
    (folder / "config.json").write_text(json.dumps(config.to_table()))
    prepared = _prepare(folder)
    prepared["store_bytes"] = sum(path.stat().st_size for path in (folder / "run").rglob("*.*"))
    return {
        "corpus": corpus,
        "prepare": prepared,
        "start": _time_to_update(folder, steps=3),
        "resume mid-epoch": _resume_in_the_middle(folder, config, steps=6),
        "plan": _time_to_plan(folder, config),
    }


def make_corpus(folder: Path, pairs: int) -> dict[str, Any]:
    """Sentences of one to three phrases and a number, drawn at random."""
    phrases = phrasebook.split(_PHRASES, 10, 1).train
    draw = random.Random(1)
    sides = [
        [(pair.source if side == 0 else pair.target).removesuffix(" .") for pair in phrases]
        for side in range(2)
    ]
    files = [(folder / f"train.{name}").open("w", buffering=1 << 20) for name in ("fr", "en")]
    count = len(phrases)
    for number in range(pairs):
        rest = int(draw.random() * count * count * 3)
        chosen = [rest % count, rest // 3 % count, rest // 7 % count][: number % 3 + 1]
        for file, side in zip(files, sides, strict=True):
            file.write(f"{' , '.join([side[each] for each in chosen])} {rest % 977} .\n")
    for file in files:
        file.close()
    for name in ("fr", "en"):
        with (folder / f"train.{name}").open() as file, (folder / f"valid.{name}").open("w") as to:
            to.writelines(line for line, _ in zip(file, range(50), strict=False))
    sizes = [(folder / f"train.{name}").stat().st_size for name in ("fr", "en")]
    return {"pairs": pairs, "bytes": sum(sizes)}


def _data_settings(folder: Path) -> list[str]:
    names = {"source": "train.fr", "target": "train.en"}
    names |= {"valid_source": "valid.fr", "valid_target": "valid.en"}
    return [f"data.{key}={folder / name}" for key, name in names.items()]


def _prepare_here(folder: Path) -> None:
    """In a process of its own: everything is imported, now its memory is looked at."""
    config = RunConfig.parse(json.loads((folder / "config.json").read_text()))
    sys.stdout.write(_READY + "\n")
    sys.stdout.flush()
    time.sleep(0.5)
    began = time.perf_counter()
    data = prepare_data(config, folder / "run")
    prepared = time.perf_counter() - began
    began = time.perf_counter()
    sampler = data.sampler()
    planned = time.perf_counter() - began
    for _ in range(300):
        data.batch(next(sampler), sampler.epoch)
    figures = {"seconds": round(prepared, 2), "plan_seconds": round(planned, 3)}
    sys.stdout.write(json.dumps(figures) + "\n")


def _prepare(folder: Path) -> dict[str, Any]:
    process = subprocess.Popen(
        [sys.executable, __file__, "--prepare", str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline().strip() == _READY
    before = memory_of(process.pid)
    with Watch(process.pid) as watch:
        said = process.stdout.read()
        if process.wait():
            raise SystemExit("preparing failed")
    return {
        **json.loads(said),
        "before_mb": before.anonymous,
        "anonymous_mb": watch.most.anonymous,
        "growth_mb": watch.most.anonymous - before.anonymous,
        "mapped_mb": watch.most.mapped,
        "most_processes": watch.most.processes,
    }


def _time_to_update(folder: Path, steps: int) -> dict[str, Any]:
    """Train up to ``steps`` updates; when did the first stand in the journal?"""
    config = RunConfig.parse(json.loads((folder / "config.json").read_text()))
    options = [f"training.max_steps={steps}", "training.save_every=3", *_SETTINGS]
    options += _data_settings(folder)
    run = folder / "run"
    seen = _steps_seen(run)
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "pellucid", "-q", "train", "demo", "--out", str(run), "--resume"]
        + [part for option in options for part in ("--set", option)]
    )
    with Watch(process.pid) as watch:
        while _steps_seen(run) == seen:
            if process.poll() is not None or time.perf_counter() - began > _LONGEST_WAIT:
                raise SystemExit("no update was made")
            time.sleep(0.01)
        seconds = time.perf_counter() - began
        if process.wait():
            raise SystemExit("training failed")
    return {
        "seconds_to_first_update": round(seconds, 2),
        "updates": steps,
        "anonymous_mb": watch.most.anonymous,
        "mapped_mb": watch.most.mapped,
        "batch_tokens": config.training.batch_tokens,
    }


def _steps_seen(run: Path) -> int:
    path = run / JOURNAL_FILE
    return sum(each["event"] == "train" for each in read_journal(path)) if path.exists() else 0


def _resume_in_the_middle(folder: Path, config: RunConfig, steps: int) -> dict[str, Any]:
    """Put the last checkpoint into the middle of the first epoch, and go on from there."""
    run = folder / "run"
    checkpoint = max((run / "checkpoints").glob("step-*"))
    sampler = prepare_data(config, run).sampler()
    state = json.loads((checkpoint / "state.json").read_text())
    state["sampler"] = _middle(sampler)
    kept = {path.name: path.read_bytes() for path in checkpoint.iterdir()}
    step = state["step"]
    shutil.rmtree(checkpoint)

    def fill(temporary: Path) -> None:
        for name, content in kept.items():
            if name not in ("manifest.json", "state.json"):
                (temporary / name).write_bytes(content)
        (temporary / "state.json").write_text(json.dumps(state))

    write_folder(checkpoint, fill, details={"kind": "checkpoint", "step": step})
    return _time_to_update(folder, steps) | {"from": state["sampler"]}


def _middle(sampler: BatchSampler) -> dict[str, int]:
    """A place half way through an epoch, wherever the block there is taken to begin."""
    position = sampler.epoch_batch_count // 2
    place = {**sampler.state(), "position": position}
    if "block" in place:
        blocks = round(sampler.epoch_batch_count / len(sampler._batches))
        place |= {"block": blocks // 2, "block_start": position - len(sampler._batches) // 2}
    return place


def _time_to_plan(folder: Path, config: RunConfig) -> dict[str, float]:
    """How long the first and the middle batch of an epoch take to be known."""
    data = prepare_data(config, folder / "run")
    began = time.perf_counter()
    sampler = data.sampler()
    first = time.perf_counter() - began
    place = _middle(sampler)
    began = time.perf_counter()
    sampler.restore(place)
    return {
        "first_seconds": round(first, 3),
        "restore_seconds": round(time.perf_counter() - began, 3),
    }


def report(results: dict[str, Any]) -> str:
    """The figures as Markdown."""
    about, corpus, large = results["machine"], results["corpus"], results["large"]
    prepare, start, resume = large["prepare"], large["start"], large["resume mid-epoch"]
    rate = corpus["pairs"] / prepare["seconds"]
    rows = [
        (
            "prepare (tokenizer and token store)",
            f"{prepare['seconds']:,.0f} s, {rate:,.0f} pairs/s",
        ),
        ("allocated memory beyond the imports, all processes", f"{prepare['growth_mb']} MiB"),
        ("mapped files at most", f"{prepare['mapped_mb']} MiB"),
        ("start: command to first update", f"{start['seconds_to_first_update']} s"),
        (f"allocated beyond a corpus {_SMALL} times smaller", f"{start['growth_mb']} MiB"),
        ("resume mid-epoch: command to update", f"{resume['seconds_to_first_update']} s"),
        (f"allocated beyond a corpus {_SMALL} times smaller", f"{resume['growth_mb']} MiB"),
        ("of that, finding the place in the epoch", f"{large['plan']['restore_seconds']} s"),
    ]
    table = "\n".join(f"| {name} | {figure} |" for name, figure in rows)
    return f"""# A corpus of {corpus["pairs"]:,} pairs

`{results["command"]}`

{about["cpu"]}, {about["cores"]} cores, {about["memory_gb"]} GB, load {about["load_before"]} before;
{about["date"]}; torch {about["versions"]["torch"]}, commit {about["commit"]}.

Text of {corpus["bytes"] / 1e9:.2f} GB, store of {prepare["store_bytes"] / 1e9:.2f} GB. Memory is
RssAnon of /proc (allocated, not mapped from files), of the process and its children together.

| what | figure |
|---|---|
{table}
"""


if __name__ == "__main__":
    main()
