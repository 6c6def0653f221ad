"""How good the presets get, by real training through the command line.

    python benchmarks/quality.py --data ../shared/data --work /tmp/quality --experiment en-de
    python benchmarks/quality.py --data ../shared/data --work /tmp/quality --table

An experiment is a preset, settings and a text; with several --seeds it is run once for each. A run
whose result lies in --work is not made again, and one that was interrupted goes on, so that a long
table can be made in parts. The table of all that lies there is written to --work; --table trains
nothing. `results/quality.md` has what was measured with these and many other settings.

What is counted: CPU minutes are the time of the run's process on all its threads, in all its
resumed parts; those of the runs that teach it are given beside them, translating included. Tokens
are real target tokens, stops included. Validation is greedy. The bundle that was best on validation
text is tested, once, by `pellucid evaluate` with the search settings of its preset; nothing is
chosen by test text.
"""

import argparse
import dataclasses
import json
import resource
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import machine
from quality_texts import Test, Text, prepare

Row = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Experiment:
    """One claim about quality."""

    title: str
    preset: str
    text: str
    """The text, a name that ``prepare`` knows."""
    settings: tuple[str, ...]
    """The settings that differ from the preset."""
    teachers: tuple[str, ...] = ()
    """Runs in ``--work``, by the names of their folders, that teach this one together."""
    recombined: int = 0
    """So many sentences are made of the sources (``pellucid recombine``), and translated by all
    ``teachers`` together, as further pairs."""


_TWENTY_PASSES = ("training.max_epochs=20", "training.max_minutes=100000")
"""Passes are a budget that a busy machine does not change."""

_SHORT_SCAN = ("training.max_steps=3000", "training.validate_every=500")

EXPERIMENTS: dict[str, Experiment] = {
    "en-de": Experiment(
        "Multi30k English-German, 20 passes", "multi30k", "multi30k-en-de", _TWENTY_PASSES
    ),
    "en-fr": Experiment(
        "Multi30k English-French, 20 passes", "multi30k", "multi30k-en-fr", _TWENTY_PASSES
    ),
    "en-de-r-drop": Experiment(
        "Multi30k English-German, R-Drop 1, 20 passes: chosen on val",
        "multi30k",
        "multi30k-en-de-tuning",
        ("training.r_drop=1", "training.max_epochs=20", "training.max_minutes=100000"),
    ),
    "en-de-lower": Experiment(
        "Multi30k English-German, lower-cased and tokenized as papers train on it, 20 passes",
        "multi30k",
        "multi30k-en-de-lower",
        _TWENTY_PASSES,
    ),
    "en-fr-lower": Experiment(
        "Multi30k English-French, lower-cased and tokenized as papers train on it, 20 passes",
        "multi30k",
        "multi30k-en-fr-lower",
        _TWENTY_PASSES,
    ),
    "en-de-lower-student": Experiment(
        "the same, English-German, by a student of seeds 2 and 3 with recombined sentences",
        "multi30k",
        "multi30k-en-de-lower",
        (
            "training.max_epochs=10",
            "training.max_minutes=100000",
            "training.weight_decay=0.05",
            "training.teacher_top_k=8",
            # two of five pairs are true ones, so that each comes twelve times
            "data.weights=[2,3]",
        ),
        teachers=("en-de-lower-seed2", "en-de-lower-seed3"),
        recombined=58_000,
    ),
    "cmudict": Experiment("CMUdict, letters to phones, 20 passes", "cmudict", "cmudict", ()),
    "tatoeba": Experiment("Tatoeba German-English, two hours", "tatoeba", "tatoeba-de-en", ()),
    "scan": Experiment("SCAN, simple split, a held-out tenth", "scan", "scan", ()),
    "scan-length": Experiment(
        "SCAN, learned from at most 22 actions, tested on 24 to 48",
        "scan",
        "scan-length",
        _SHORT_SCAN,
    ),
    "scan-jump": Experiment(
        "SCAN, with a verb that was learned by itself alone", "scan", "scan-jump", _SHORT_SCAN
    ),
    "scan-length-relative": Experiment(
        "SCAN, learned from at most 22 actions, with relative positions",
        "scan",
        "scan-length",
        (*_SHORT_SCAN, "model.positions=relative"),
    ),
    "scan-jump-relative": Experiment(
        "SCAN, a verb that was learned by itself alone, with relative positions",
        "scan",
        "scan-jump",
        (*_SHORT_SCAN, "model.positions=relative"),
    ),
}


def main() -> None:
    options = _parse_options()
    options.work.mkdir(parents=True, exist_ok=True)
    for name in options.experiment:
        for seed in options.seeds:
            _run(name, seed, options)

    kept = sorted(options.work.glob("*.result.json"))
    rows = [json.loads(path.read_text(encoding="utf-8")) for path in kept]
    if not rows:
        raise SystemExit(f"nothing in {options.work} yet: name an --experiment")
    (options.work / "quality.md").write_text(page(rows, machine.command()), encoding="utf-8")
    print(options.work / "quality.md")


def _run(name: str, seed: int, options: argparse.Namespace) -> None:
    """Train and test once, unless that was done before."""
    experiment = EXPERIMENTS[name]
    run = options.work / f"{name}-seed{seed}"
    kept = options.work / f"{run.name}.result.json"
    if options.table or kept.exists():
        return
    teachers = [options.work / each for each in experiment.teachers]
    untrained = [each.name for each in teachers if not each.exists()]
    if untrained:
        raise SystemExit(f"{name}: {', '.join(untrained)} must be run first")

    text = prepare(experiment.text, options.data.resolve(), options.work.resolve())
    files, translating = with_recombined(text, experiment, seed, run)
    settings = [*experiment.settings, f"training.seed={seed}", *files]
    if options.threads:
        settings.append(f"training.threads={options.threads}")
    if teachers:
        settings.append(f"training.teacher={json.dumps(list(map(str, teachers)))}")
    about = machine.describe()
    train(experiment.preset, settings, run)

    row: Row = {"experiment": name, "seed": seed, "machine": about, **learned(run)}
    if teachers:
        taught = sum(cpu_minutes(_events(each)) for each in teachers)
        row["teachers_cpu_minutes"] = round(translating + taught, 2)
    row["tests"] = {test.name: _test(run, test) for test in text.tests}
    kept.write_text(json.dumps(row, indent=1), encoding="utf-8")


def train(preset: str, settings: Sequence[str], run: Path, processes: int = 1) -> None:
    """Train, or go on with, the run in a folder; one that has ended is left as it is."""
    if run.exists() and any(event["event"] == "end" for event in _events(run)):
        last = [event for event in _events(run) if event["event"] == "end"][-1]
        if last["reason"] in ("max_steps", "max_epochs", "max_minutes"):
            return
    sets = [part for setting in settings for part in ("--set", setting)]
    torchrun = ["-m", "torch.distributed.run", "--nproc-per-node", str(processes)]
    start = [sys.executable, *(torchrun if processes > 1 else []), "-m", "pellucid"]
    command = [*start, "train", preset, *sets, "--out", str(run)]
    subprocess.run([*command, "--resume"], check=True)


def _events(run: Path) -> list[dict[str, Any]]:
    journal = (run / "journal.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in journal.splitlines() if line]


def cpu_minutes(events: Sequence[dict[str, Any]]) -> float:
    """CPU minutes of a run up to the last of these events, over all its resumed parts."""
    parts: list[float] = []
    for event in events:
        if event["event"] == "start":
            parts.append(0.0)
        elif "cpu_seconds" in event:
            parts[-1] = event["cpu_seconds"]
    return sum(parts) / 60


def learned(run: Path, goal: float | None = None) -> Row:
    """Return the journal's facts on a run, and the time when its greedy validation BLEU reached
    ``goal``."""
    events = _events(run)
    start = next(event for event in events if event["event"] == "start")
    end = [event for event in events if event["event"] == "end"][-1]
    validated = [event for event in events if event["event"] == "validation"]
    validating = sum(event["validation_seconds"] for event in validated)
    best = max(validated, key=lambda event: event["step"] == end["best_step"])
    reached = [
        number
        for number, event in enumerate(events)
        if event["event"] == "validation" and goal is not None and event["bleu"] >= goal
    ][:1]
    return {
        "cpu_minutes": round(cpu_minutes(events), 2),
        "goal_cpu_minutes": round(cpu_minutes(events[: reached[0] + 1]), 2) if reached else None,
        "goal_minutes": round(events[reached[0]]["seconds"] / 60, 2) if reached else None,
        "minutes": round(end["seconds"] / 60, 2),
        "parameters": start["parameters"],
        "precision": start["precision"],
        "updates": end["step"],
        "target_tokens": end["target_tokens"],
        "tokens_per_second": round(end["target_tokens"] / max(1.0, end["seconds"] - validating), 1),
        "resumed": len([event for event in events if event["event"] == "start"]) - 1,
        "best": {key: best[key] for key in ("step", "loss", "bleu", "chrf", "exact_match")},
    }


def with_recombined(
    text: Text, experiment: Experiment, seed: int, run: Path
) -> tuple[list[str], float]:
    """The settings of the text, with recombined sentences and what the teachers make of them as
    further pairs, and the CPU minutes of translating these, now or when they were made."""
    if not experiment.recombined:
        return list(text.settings), 0.0

    settings = dict(each.split("=", 1) for each in text.settings)
    source, target = Path(settings["data.source"]), Path(settings["data.target"])
    new = run.parent / "text" / f"{run.name}{source.suffix}"
    made = new.with_suffix(target.suffix)
    spent = made.with_name(f"{made.name}.cpu-minutes")
    if not new.exists():
        drawn = ["--lines", str(experiment.recombined), "--seed", str(seed), "--out", str(new)]
        _pellucid("recombine", source, *drawn)
    if not spent.exists():
        before = _cpu_seconds_of_children()
        first, *others = (run.parent / each for each in experiment.teachers)
        models = [first, *(part for each in others for part in ("--with", each))]
        made.unlink(missing_ok=True)
        _pellucid("distill", *models, new, "--beam-size", "5", "--out", made)
        spent.write_text(f"{(_cpu_seconds_of_children() - before) / 60:.2f}", encoding="utf-8")

    settings["data.source"] = json.dumps([str(source), str(new)])
    settings["data.target"] = json.dumps([str(target), str(made)])
    both = [f"{name}={value}" for name, value in settings.items()]
    return both, float(spent.read_text(encoding="utf-8"))


def _pellucid(*words: str | Path) -> None:
    subprocess.run([sys.executable, "-m", "pellucid", *map(str, words)], check=True)


def _cpu_seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _test(run: Path, test: Test) -> dict[str, Any]:
    """The figures of the run's best bundle on a test set, each with its signature."""
    files = list(map(str, test.files))
    command = [sys.executable, "-m", "pellucid", "evaluate", str(run), *files, *test.options]
    output = subprocess.run([*command, "--json"], check=True, stdout=subprocess.PIPE).stdout
    figures = json.loads(output)
    return {
        "sentences": figures["sentences"],
        **{name: round(figures[name], 2) for name in test.figures},
        "signatures": {name: figures["signatures"][name] for name in test.figures},
    }


def page(rows: Sequence[Row], command: str) -> str:
    """Everything that was run, as Markdown: a table for each experiment, and mean and spread."""
    parts = ["# Quality\n", f"- Command: `{command}`"]
    for name, experiment in EXPERIMENTS.items():
        own = sorted((row for row in rows if row["experiment"] == name), key=lambda r: r["seed"])
        if own:
            changed = ", ".join(f"`{each}`" for each in experiment.settings) or "nothing changed"
            parts += [f"\n## {experiment.title}\n", f"Preset `{experiment.preset}`, {changed}."]
            parts += [_machine(own), *_table(own), *_means(own), *_signatures(own[0])]
    return "\n".join(parts) + "\n"


def _table(rows: Sequence[Row]) -> list[str]:
    cells = [_cells(row) for row in rows]
    return [
        f"| {' | '.join(cells[0])} |",
        f"|{'---|' * len(cells[0])}",
        *(f"| {' | '.join(row.values())} |" for row in cells),
    ]


def _cells(row: Row) -> dict[str, str]:
    cpu = f"{row['cpu_minutes']:.0f}"
    if "teachers_cpu_minutes" in row:
        cpu += f" and {row['teachers_cpu_minutes']:.0f} of its teachers"
    return {
        "seed": str(row["seed"]),
        "minutes": f"{row['minutes']:.1f}",
        "CPU minutes": cpu,
        "parameters": f"{row['parameters']:,}",
        "updates": f"{row['updates']:,}",
        "tokens": f"{row['target_tokens'] / 1e6:.1f} M",
        "tokens/s": f"{row['tokens_per_second']:,.0f} ({row['precision']})",
        "valid loss": f"{row['best']['loss']:.3f}",
        "valid BLEU": f"{row['best']['bleu']:.2f}",
        "valid exact": f"{row['best']['exact_match']:.1f}%",
        **{
            f"{test} {name}": f"{figures[name]:.2f}"
            for test, figures in row["tests"].items()
            for name in figures["signatures"]
        },
    }


def _means(rows: Sequence[Row]) -> list[str]:
    """Mean, standard deviation, lowest and highest over the seeds, if there are several."""
    if len(rows) < 2:
        return []
    figures = {"valid BLEU": [row["best"]["bleu"] for row in rows]}
    for test, counted in rows[0]["tests"].items():
        for name in counted["signatures"]:
            figures[f"{test} {name}"] = [row["tests"][test][name] for row in rows]
    spread = [
        f"{name} {statistics.mean(values):.2f} ± {statistics.stdev(values):.2f}"
        f" ({min(values):.2f} to {max(values):.2f})"
        for name, values in figures.items()
    ]
    return [f"\nOver {len(rows)} seeds (lowest to highest): {'; '.join(spread)}."]


def _signatures(row: Row) -> list[str]:
    return ["", "Signatures:\n"] + [
        f"- {test} {name}: `{signature}`"
        for test, figures in row["tests"].items()
        for name, signature in figures["signatures"].items()
    ]


def _machine(rows: Sequence[Row]) -> str:
    described = {
        f"{about['cores']} cores of {about['cpu']}, torch {about['versions']['torch']},"
        f" commit {about['commit']}, {about['date'][:10]}"
        for about in (row["machine"] for row in rows)
    }
    return "Made on " + "; and on ".join(sorted(described)) + ".\n"


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the corpora")
    parser.add_argument("--work", type=Path, required=True, help="where runs and results are kept")
    parser.add_argument(
        "--experiment", nargs="+", choices=list(EXPERIMENTS), default=[], help="which to run"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--threads", type=int, help="of each run; by default all cores")
    parser.add_argument("--table", action="store_true", help="only write the page, train nothing")
    return parser.parse_args()


if __name__ == "__main__":
    main()
