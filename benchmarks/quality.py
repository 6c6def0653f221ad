"""How good a model gets, by real training through the command line, and how soon.

    python benchmarks/quality.py --data ../shared/data --work /tmp/quality --experiment one-hour
    python benchmarks/quality.py --data ../shared/data --work /tmp/quality --table

Each experiment of `quality_experiments.py` is a preset, settings, a text and a number of minutes;
with several --seeds it is run once for each. A run whose result lies in --work is not made again,
and one that was interrupted goes on, so that a long table can be made in parts; --table writes the
page from what lies there and trains nothing. --minutes shortens every run, for a trial.

What is counted: minutes are the run's own clock, training and validating together; the whole
command, with tokenizer and start-up, is given beside it. CPU minutes are the time of the run's
process on all its threads, in all its resumed parts, and in the run that it begins with; those of
the runs that teach it, or whose translations it learns from, are given beside them, translating
included. Tokens are real target tokens, stops included.
Validation is greedy. The bundle that was best on validation text is tested, once, by `pellucid
evaluate` with the search settings of its preset; nothing is chosen by test text.
"""

import argparse
import json
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import machine
import quality_page
from quality_experiments import EXPERIMENTS, Experiment, Test, Text, Variant, prepare

RESULTS = Path(__file__).parent / "results"


def main() -> None:
    options = _parse_options()
    options.work.mkdir(parents=True, exist_ok=True)
    about = machine.describe()
    for name in options.experiment:
        experiment = EXPERIMENTS[name]
        for variant in experiment.variants:
            if options.only and variant.name not in options.only:
                continue
            # an average is of fixed runs
            for seed in [0] if variant.averages else options.seeds:
                _run(name, experiment, variant, seed, options)
    rows = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(options.work.glob("*.result.json"))
    ]
    if not rows:
        raise SystemExit(f"nothing in {options.work} yet: name an --experiment")
    result = {
        "benchmark": "quality",
        "command": machine.command(),
        "counted": " ".join((__doc__ or "").split("\n\n")[-1].split()),
        "machine": about,
        "rows": rows,
    }
    (RESULTS / "quality.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    (RESULTS / "quality.md").write_text(quality_page.page(result), encoding="utf-8")
    print(RESULTS / "quality.md")


def _run(
    name: str,
    experiment: Experiment,
    variant: Variant,
    seed: int,
    options: argparse.Namespace,
) -> None:
    """Train and test once, unless that was done before."""
    parts = name, variant.slug, "" if variant.averages else f"seed{seed}"
    slug = "-".join(filter(None, parts))
    kept = options.work / f"{slug}.result.json"
    if options.table or kept.exists():
        return
    minutes = options.minutes or experiment.minutes
    text = prepare(experiment.text, options.data.resolve(), options.work.resolve())
    _check_helpers(variant, seed, options.work)
    if variant.averages:
        row = _average(name, experiment, variant, options.work, slug)
        row["tests"] = {test.name: _test(options.work / slug, test) for test in text.tests}
        _keep(row, kept)
        return
    files, translating = _with_translations(text, variant, seed, options.work.resolve(), slug)
    # a variant may change what the experiment sets
    by_name = {each.partition("=")[0]: each for each in (*experiment.settings, *variant.settings)}
    own = list(by_name.values())
    always = [f"training.max_minutes={minutes}", f"training.seed={seed}", *files]
    if options.threads:
        always.append(f"training.threads={options.threads}")
    run = options.work / slug
    about = machine.describe()
    began = time.monotonic()
    parent = None
    if variant.first:
        parent = options.work / f"{slug}-first"
        train(experiment.preset, [*experiment.settings, *variant.first, *always], parent)
    initial = parent
    if variant.begins_with:
        (initial,) = _runs([variant.begins_with], seed, options.work)
    teachers = _runs(variant.teachers, seed, options.work)
    if teachers:
        always.append(f"training.teacher={json.dumps(list(map(str, teachers)))}")
    train(experiment.preset, [*own, *always], run, initial)
    row: dict[str, Any] = {
        "experiment": name,
        "variant": variant.name,
        "preset": experiment.preset,
        "settings": own,
        "first": list(variant.first),
        "minutes": minutes,
        "seed": seed,
        "command_minutes": round((time.monotonic() - began) / 60, 2),
        "machine": about,
        **learned(run, experiment.goal, parent),
        **({"begins_with": variant.begins_with.format(seed=seed)} if variant.begins_with else {}),
        **({"draws": True} if variant.draws else {}),
        **({"recombined": variant.recombined} if variant.recombined else {}),
        **({"recombined_seed": variant.recombined_seed} if variant.recombined_seed else {}),
        **_helped_by(variant, seed, options.work, translating),
        "tests": {test.name: _test(run, test) for test in text.tests},
    }
    _keep(row, kept)


def _keep(row: dict[str, Any], kept: Path) -> None:
    kept.write_text(json.dumps(row, indent=1), encoding="utf-8")
    print(json.dumps({key: row[key] for key in ("experiment", "variant", "seed", "tests")}))


def _average(
    name: str, experiment: Experiment, variant: Variant, work: Path, slug: str
) -> dict[str, Any]:
    """The row, without tests, of a model that is the average of others. Averaging takes seconds."""
    runs = [work / each for each in variant.averages]
    trained = [learned(run, None) for run in runs]
    out = work / slug
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, "-m", "pellucid", "average", *map(str, runs), "--out", str(out)]
    subprocess.run(command, check=True)
    return {
        "experiment": name,
        "variant": variant.name,
        "preset": experiment.preset,
        "settings": [],
        "seed": 0,
        "machine": machine.describe(),
        "parameters": trained[0]["parameters"],
        "cpu_minutes": round(sum(each["cpu_minutes"] for each in trained), 2),
        "averages": list(variant.averages),
    }


def train(
    preset: str,
    settings: Sequence[str],
    run: Path,
    parent: Path | None = None,
    processes: int = 1,
) -> None:
    """Train, or go on with, the run in a folder; one that has ended is left as it is."""
    if run.exists() and any(event["event"] == "end" for event in _events(run)):
        last = [event for event in _events(run) if event["event"] == "end"][-1]
        if last["reason"] in ("max_steps", "max_epochs", "max_minutes"):
            return
    sets = [part for setting in settings for part in ("--set", setting)]
    torchrun = ["-m", "torch.distributed.run", "--nproc-per-node", str(processes)]
    start = [sys.executable, *(torchrun if processes > 1 else []), "-m", "pellucid"]
    command = [*start, "train", preset, *sets, "--out", str(run)]
    if parent is not None:
        command += ["--init", str(parent)]
    subprocess.run([*command, "--resume"], check=True)


def _events(run: Path) -> list[dict[str, Any]]:
    journal = (run / "journal.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in journal.splitlines() if line]


def cpu_minutes(events: Sequence[dict[str, Any]]) -> float | None:
    """CPU minutes of a run up to the last of these events, over all its resumed parts.

    None if the journal is older than ``cpu_seconds``.
    """
    parts: list[float] = []
    for event in events:
        if event["event"] == "start":
            parts.append(0.0)
        elif "cpu_seconds" in event:
            parts[-1] = event["cpu_seconds"]
    return sum(parts) / 60 if any(parts) else None


def learned(run: Path, goal: float | None, parent: Path | None = None) -> dict[str, Any]:
    """What the journal says of a run; the CPU time of its parent is its own."""
    events = _events(run)
    before = cpu_minutes(_events(parent)) or 0.0 if parent is not None else 0.0
    spent = cpu_minutes(events)
    figures: dict[str, Any] = {}
    if spent is not None:
        figures["cpu_minutes"] = round(before + spent, 2)
    start = next(event for event in events if event["event"] == "start")
    end = [event for event in events if event["event"] == "end"][-1]
    validated = [event for event in events if event["event"] == "validation"]
    validating = sum(event["validation_seconds"] for event in validated)
    best = max(validated, key=lambda event: event["step"] == end["best_step"])
    reached = [e["seconds"] / 60 for e in validated if goal is not None and e["bleu"] >= goal]
    for place, event in enumerate(events):
        is_reached = event["event"] == "validation" and goal is not None and event["bleu"] >= goal
        if is_reached and spent is not None:
            cost = cpu_minutes(events[: place + 1])
            assert cost is not None
            figures["goal_cpu_minutes"] = round(before + cost, 2)
            break
    return {
        **figures,
        "parameters": start["parameters"],
        "precision": start["precision"],
        "updates": end["step"],
        "target_tokens": end["target_tokens"],
        "tokens_per_second": round(end["target_tokens"] / max(1.0, end["seconds"] - validating), 1),
        "resumed": len([event for event in events if event["event"] == "start"]) - 1,
        "best": {
            key: best[key] for key in ("step", "seconds", "loss", "bleu", "chrf", "exact_match")
        },
        "goal": goal,
        "goal_minutes": round(reached[0], 2) if reached else None,
        "curve": [[round(e["seconds"] / 60, 2), e["step"], round(e["bleu"], 2)] for e in validated],
    }


def _runs(names: Sequence[str], seed: int, work: Path) -> list[Path]:
    return [work / name.format(seed=seed) for name in names]


def _check_helpers(variant: Variant, seed: int, work: Path) -> None:
    names = (
        *variant.teachers,
        *variant.translated_by,
        *variant.translated_back_by,
        *variant.averages,
    )
    untrained = [each.name for each in _runs(names, seed, work) if not each.exists()]
    if untrained:
        raise SystemExit(f"{variant.name}: {', '.join(untrained)} must be run first")


def _with_translations(
    text: Text, variant: Variant, seed: int, work: Path, slug: str
) -> tuple[list[str], float]:
    """The settings of the text, with what other runs translate beside it, and the CPU minutes of
    that.

    Translations of the sources are further targets for them, translations of the targets further
    sources (Nguyen et al. 2020, arXiv:1911.01986: data diversification). Recombined sources and
    what the teachers make of them are further pairs, named by ``slug``, which stands for the run.
    """
    settings = dict(each.split("=", 1) for each in text.settings)
    source, target = Path(settings["data.source"]), Path(settings["data.target"])
    sources, targets, minutes = [source], [target], 0.0
    (work / "text").mkdir(exist_ok=True)

    for run in _runs(variant.translated_by, seed, work):
        made, spent = _translated([run], source, work / "text" / f"{run.name}{target.suffix}")
        sources, targets, minutes = [*sources, source], [*targets, made], minutes + spent
    for run in _runs(variant.translated_back_by, seed, work):
        name = f"{run.name}{'-drawn' if variant.draws else ''}{source.suffix}"
        made, spent = _translated([run], target, work / "text" / name, draws=variant.draws)
        sources, targets, minutes = [*sources, made], [*targets, target], minutes + spent
    if variant.recombined:
        named, drawn_by = slug, seed
        if variant.recombined_seed is not None:
            named, drawn_by = slug.removesuffix(f"-seed{seed}"), variant.recombined_seed
        made_of = work / "text" / f"{named}{source.suffix}"
        new = _recombined(source, variant.recombined, drawn_by, made_of)
        teachers = _runs(variant.teachers, seed, work)
        made, spent = _translated(teachers, new, new.with_suffix(target.suffix))
        sources, targets, minutes = [*sources, new], [*targets, made], minutes + spent

    if len(sources) > 1:
        settings["data.source"] = json.dumps(list(map(str, sources)))
        settings["data.target"] = json.dumps(list(map(str, targets)))
    return [f"{name}={value}" for name, value in settings.items()], minutes


def _recombined(source: Path, count: int, seed: int, made: Path) -> Path:
    """The file of new sentences; seconds of CPU time, which are not counted."""
    if not made.exists():
        options = ["--lines", str(count), "--seed", str(seed), "--out", str(made)]
        command = [sys.executable, "-m", "pellucid", "recombine", str(source), *options]
        subprocess.run(command, check=True)
    return made


def _translated(
    runs: Sequence[Path], text: Path, made: Path, *, draws: bool = False
) -> tuple[Path, float]:
    """The translations of a file by one run or several together, and the CPU minutes they took, now
    or when they were made."""
    spent = made.with_name(f"{made.name}.cpu-minutes")
    if not spent.exists():
        before = _cpu_seconds_of_children()
        how = ["backtranslate", "--sample"] if draws else ["distill", "--beam-size", "5"]
        first, *others = map(str, runs)
        models = [first, *(part for each in others for part in ("--with", each))]
        command = [sys.executable, "-m", "pellucid", *how, *models, str(text), "--out", str(made)]
        made.unlink(missing_ok=True)
        subprocess.run(command, check=True)
        spent.write_text(f"{(_cpu_seconds_of_children() - before) / 60:.2f}", encoding="utf-8")
    return made, float(spent.read_text(encoding="utf-8"))


def _cpu_seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _helped_by(variant: Variant, seed: int, work: Path, translating: float) -> dict[str, Any]:
    """Which runs taught or translated, and their CPU minutes, which are not the run's own."""
    kinds = {
        "teachers": _runs(variant.teachers, seed, work),
        "translated_by": _runs(variant.translated_by, seed, work),
        "translated_back_by": _runs(variant.translated_back_by, seed, work),
    }
    runs = set().union(*kinds.values())
    if not runs:
        return {}
    minutes = translating + sum(cpu_minutes(_events(each)) or 0.0 for each in runs)
    names = {kind: [each.name for each in found] for kind, found in kinds.items() if found}
    return {**names, "teachers_cpu_minutes": round(minutes, 2)}


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


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the corpora")
    parser.add_argument("--work", type=Path, required=True, help="where runs and results are kept")
    parser.add_argument(
        "--experiment", nargs="+", choices=list(EXPERIMENTS), default=[], help="which to run"
    )
    parser.add_argument("--only", nargs="*", default=[], help="variants, by name")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--minutes", type=float, help="in place of an experiment's own")
    parser.add_argument("--threads", type=int, help="of each run; by default all cores")
    parser.add_argument("--table", action="store_true", help="only write the page, train nothing")
    return parser.parse_args()


if __name__ == "__main__":
    main()
