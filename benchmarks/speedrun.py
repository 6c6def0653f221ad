"""CPU minutes until Multi30k En-De has a validation BLEU of 34: a record that levers shorten.

    python benchmarks/speedrun.py --data ../shared/data --work /tmp/speedrun --threads 2 \
        --lever "vocabulary of 4,000" --set tokenizer.vocabulary_size=4000
    python benchmarks/speedrun.py --work /tmp/speedrun --table

Before and after are trained in turn on one machine, with each of the --seeds: `before` with the
levers that were kept so far and any --both, `after` with --set on top. With --keep a lever that is
faster on average is kept, and the next is measured against it. A run that lies in --work is not
made again, and one that was interrupted goes on. The history is in `results/speedrun.json`; --table
writes the page from it and trains nothing. Only validation text is read.

What is counted: CPU minutes of the run's process on all its threads from its start to the first
greedy validation of at least 34, start-up and earlier validations included, the tokenizer of a new
run too; of several processes, those of the first times their number. The minutes in brackets are
the run's own clock, and mean something only on an idle machine; behind the plus sign stands what
the command takes outside of it: tokenizer, word vectors, start and end. Every run ends after
--epochs passes, or as its settings say, and to that end its learning rate falls. Validations come
every 100 updates unless a setting says otherwise.
"""

import argparse
import hashlib
import json
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import machine
from quality import learned, train
from quality_texts import prepare

RESULTS = Path(__file__).parent / "results"
HISTORY = RESULTS / "speedrun.json"
GOAL = 34.0
_LONGEST_NAME = 100
"""The limit on a run's folder name, in characters; the rest of a longer one becomes a hash."""
_ALWAYS = (
    "training.validate_every=100",
    "training.max_minutes=100000",
    # of the preset as it was when the history began
    "training.learning_rate=4e-3",
    "training.weight_decay=0",
    "training.vector_epochs=0",
)

Lever = dict[str, Any]
"""A line of the history: name, settings, the runs before and after, and whether it was kept."""


def main() -> None:
    options = _parse_options()
    options.work.mkdir(parents=True, exist_ok=True)
    history: list[Lever] = json.loads(HISTORY.read_text()) if HISTORY.exists() else []

    if not options.table:
        kept = [each for lever in history if lever["kept"] for each in lever["settings"]]
        kept = [*options.both, *kept]
        runs: dict[str, list[dict[str, Any]]] = {"before": [], "after": []}
        for seed in options.seeds:
            # in turn, so that what else the machine does falls on both
            runs["before"].append(_run(kept, seed, options))
            runs["after"].append(_run([*kept, *options.set], seed, options))

        lever: Lever = {
            "name": options.lever,
            "settings": options.set,
            "both": options.both,
            "processes": options.processes,
            "epochs": options.epochs,
            "machine": machine.describe(),
            "command": machine.command(),
            **runs,
        }
        lever["kept"] = options.keep and is_faster(lever)
        history.append(lever)
        HISTORY.write_text(json.dumps(history, indent=1) + "\n", encoding="utf-8")

    if not history:
        raise SystemExit("nothing was measured yet: name a --lever")
    (RESULTS / "speedrun.md").write_text(page(history), encoding="utf-8")
    print(RESULTS / "speedrun.md")


def _run(settings: Sequence[str], seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """Train once, unless that was done before; when the goal was reached."""
    # named by its settings: the run after one lever is the run before the next
    several = f"-{options.processes}processes" if options.processes > 1 else ""
    run = options.work / f"{_slug(settings)}-{options.epochs}epochs{several}-seed{seed}"
    is_old = run.exists()
    text = prepare("multi30k-en-de-tuning", options.data.resolve(), options.work.resolve())
    own = [f"training.max_epochs={options.epochs}", f"training.seed={seed}"]
    own += [f"training.threads={options.threads}"] if options.threads else []
    # a setting that is named twice is what it is named last: levers may be about these too
    everything = [*_ALWAYS, *own, *settings, *text.settings]
    began = time.monotonic()
    train("multi30k", everything, run, processes=options.processes)
    seconds = time.monotonic() - began

    figures = learned(run, GOAL)
    spent = figures.get("goal_cpu_minutes")
    return {
        "seed": seed,
        "cpu_minutes": None if spent is None else round(spent * options.processes, 2),
        "minutes": figures["goal_minutes"],
        "outside_minutes": None if is_old else round(seconds / 60 - figures["minutes"], 2),
        "resumed": figures["resumed"],
        "best_bleu": round(figures["best"]["bleu"], 2),
    }


def _slug(settings: Sequence[str]) -> str:
    """The settings as a file's name, each without its section: its value may have a point too."""
    sides = (each.partition("=") for each in settings)
    name = "-".join(key.rpartition(".")[2] + value for key, _, value in sides) or "preset"
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[:_LONGEST_NAME]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def is_faster(lever: Lever) -> bool:
    """Whether every run after reached the goal, in less CPU time on average."""
    after = [run["cpu_minutes"] for run in lever["after"]]
    before = [run["cpu_minutes"] for run in lever["before"]]
    if None in after:
        return False
    return None in before or statistics.mean(after) < statistics.mean(before)


def page(history: Sequence[Lever]) -> str:
    """The history as Markdown."""
    lines = [
        "# Speedrun: Multi30k En-De to a validation BLEU of 34\n",
        "Written by `benchmarks/speedrun.py`; nothing here is edited by hand.\n",
        " ".join((__doc__ or "").split("\n\n")[-1].split()) + "\n",
        "| lever | settings | passes | seeds | CPU minutes before | after | kept |",
        "|---|---|---|---|---|---|---|",
    ]
    for lever in history:
        settings = ", ".join(f"`{each}`" for each in lever["settings"])
        if lever.get("both"):
            settings += "; both with " + ", ".join(f"`{each}`" for each in lever["both"])
        if lever.get("processes", 1) > 1:
            settings += f"; both by {lever['processes']} processes"
        seeds = ", ".join(str(run["seed"]) for run in lever["after"])
        before, after = _told(lever["before"]), _told(lever["after"])
        kept = "yes" if lever["kept"] else "no"
        lines.append(
            f"| {lever['name']} | {settings} | {lever['epochs']} | {seeds} | {before} | {after}"
            f" | {kept} |"
        )

    for lever in history:
        about = lever["machine"]
        lines.append(
            f"\n{lever['name']}: {about['cores']} cores of {about['cpu']}, load"
            f" {about['load_before']:g} at the end, torch {about['versions']['torch']}, commit"
            f" {about['commit']}, {about['date'][:10]}; `{lever['command']}`"
        )
    return "\n".join(lines) + "\n"


def _told(runs: Sequence[dict[str, Any]]) -> str:
    """Mean and range of the CPU minutes, and the clock; the best BLEU where one never got there."""
    missed = [run["best_bleu"] for run in runs if run["cpu_minutes"] is None]
    if missed:
        return f"never ({max(missed):.1f} at best)"
    cpu = [run["cpu_minutes"] for run in runs]
    clock = statistics.mean(run["minutes"] for run in runs)
    told = f"{statistics.mean(cpu):.1f}"
    if len(cpu) > 1:
        told += f", {min(cpu):.1f} to {max(cpu):.1f}"
    outside: list[Any] = [run.get("outside_minutes") for run in runs]
    if None in outside:
        return f"{told} ({clock:.1f})"
    return f"{told} ({clock:.1f} + {statistics.mean(outside):.1f})"


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="the corpora")
    parser.add_argument("--work", type=Path, required=True, help="where runs are kept")
    parser.add_argument("--lever", default="", help="what is changed, in a few words")
    parser.add_argument("--set", action="append", default=[], help="a setting of the lever")
    parser.add_argument("--both", action="append", default=[], help="a setting of both runs")
    parser.add_argument("--epochs", type=int, default=10, help="passes over the text of every run")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--threads", type=int, help="of each run; by default all cores")
    parser.add_argument("--processes", type=int, default=1, help="of each run, by torchrun")
    parser.add_argument("--keep", action="store_true", help="keep the lever if it is faster")
    parser.add_argument("--table", action="store_true", help="only write the page, train nothing")
    options = parser.parse_args()
    if not options.table and not (options.lever and options.set):
        parser.error("name the lever by --lever, and what it changes by --set, or take --table")
    return options


if __name__ == "__main__":
    main()
