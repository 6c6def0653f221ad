"""What `pellucid train SOURCE TARGET --minutes M` reaches beside the best preset, on six corpora.

    python benchmarks/auto.py --data ../shared/data --work runs/auto --minutes 5 --corpus scan
    python benchmarks/auto.py --data ../shared/data --work runs/auto --table

For each corpus two runs start at the same time, one with settings chosen by Pellucid and one by the
preset named in `CORPORA`, each on a core and a thread of its own, so that whatever else the machine
does slows both. A pair of runs whose result lies in --work is not made again; --table writes the
page from what lies there.

What is counted: minutes are each run's own clock, training and validating together. Choosing the
settings comes on top. Both are scored by `pellucid evaluate` with the search
settings of their own config, on the validation text that chose their best bundle: text on which
settings may be tuned, and no test. The ratio is auto's score divided by the preset's.
"""

import argparse
import dataclasses
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import machine
import quality_experiments

from pellucid import phrasebook
from pellucid.core.config import read_toml
from pellucid.core.files import write_file
from pellucid.text.corpus.lines import read_lines

RESULTS = Path(__file__).parent / "results"
_HELD_OUT_LINES = 500
_LOAD_EVERY_SECONDS = 5.0


@dataclasses.dataclass(frozen=True)
class Corpus:
    """A text and what it is compared by."""

    title: str
    preset: str
    score: str
    """A figure of ``pellucid evaluate``; higher is better."""
    settings: tuple[str, ...] = ()
    """Limits of the preset other than minutes are lifted, so that both have the same time."""


CORPORA = {
    "multi30k": Corpus("Multi30k En-De, 29,000 captions", "multi30k", "bleu"),
    "phrasebook": Corpus(
        "phrasebook Fr-En, the 20,000 pairs of docs/quickstart.md",
        "demo",
        "exact_match",
        ("training.max_steps=1000000",),
    ),
    # Its own preset warms up for 1,000 updates, which one core does not make in ten minutes.
    "tatoeba": Corpus("Tatoeba De-En, 164,471 short sentences", "multi30k", "bleu"),
    "scan": Corpus("SCAN, 14,556 commands", "scan", "exact_match", ("training.max_steps=1000000",)),
    "cmudict": Corpus("CMUdict, 114,085 pronunciations", "cmudict", "exact_match"),
    "europarl": Corpus("Europarl De-En, 19,500 long sentences", "multi30k", "bleu"),
}
"""The most important first; beside each the preset that is best for it within minutes."""


def main() -> None:
    options = _parse_options()
    options.work.mkdir(parents=True, exist_ok=True)
    for name in options.corpus:
        kept = options.work / f"{name}-{options.minutes:g}.result.json"
        if not options.table and not kept.exists():
            row = _compare(name, options)
            kept.write_text(json.dumps(row, indent=1), encoding="utf-8")
            print(json.dumps({key: row[key] for key in ("corpus", "minutes", "ratio")}))
    rows = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(options.work.glob("*.result.json"))
    ]
    if not rows:
        raise SystemExit(f"nothing in {options.work} yet: name a --corpus")
    rows.sort(key=lambda row: (list(CORPORA).index(row["corpus"]), row["minutes"]))
    counted = " ".join((__doc__ or "").split("\n\n")[-1].split())
    result = {
        "benchmark": "auto",
        "command": machine.command(),
        "counted": counted,
        "machine": machine.describe(),
        "rows": rows,
    }
    (RESULTS / "auto.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    (RESULTS / "auto.md").write_text(page(result), encoding="utf-8")
    print(RESULTS / "auto.md")


def _compare(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Both runs at once, and what became of them."""
    corpus, minutes = CORPORA[name], options.minutes
    train, valid = _texts(name, options.data.resolve(), options.work.resolve())
    runs = {each: options.work / f"{name}-{minutes:g}-{each}" for each in ("auto", "preset")}
    fixed = [f"training.seed={options.seed}", "training.threads=1"]
    common = ["--valid", *map(str, valid), "--minutes", str(minutes)]
    files = [f"data.source={train[0]}", f"data.target={train[1]}"]
    commands = {
        "auto": ["train", *map(str, train), *common, *_set(fixed)],
        "preset": ["train", corpus.preset, *common, *_set([*files, *fixed, *corpus.settings])],
    }
    about = machine.describe()
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise SystemExit("two runs at once need two cores")
    began = time.monotonic()
    running = [
        _start(command, runs[each], core)
        for (each, command), core in zip(commands.items(), cores, strict=False)
    ]
    loads = []
    while any(each.poll() is None for each in running):
        loads.append(os.getloadavg()[0])
        time.sleep(_LOAD_EVERY_SECONDS)
    if any(each.returncode for each in running):
        raise SystemExit(f"a run failed; see the .log files in {options.work}")
    found = {each: _learned(run, valid, corpus.score) for each, run in runs.items()}
    return {
        "corpus": name,
        "title": corpus.title,
        "score": corpus.score,
        "minutes": minutes,
        "seed": options.seed,
        "command_minutes": round((time.monotonic() - began) / 60, 2),
        "load": round(sum(loads) / max(1, len(loads)), 1),
        "machine": about,
        **found,
        "ratio": round(found["auto"]["score"] / max(1e-9, found["preset"]["score"]), 3),
    }


def _start(command: list[str], run: Path, core: int) -> subprocess.Popen[bytes]:
    """``pellucid`` on this core, with one thread; what it prints goes beside the run folder."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with run.with_suffix(".log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "pellucid", *command, "--out", str(run)],
            stdout=log,
            stderr=log,
            env=environment,
            start_new_session=True,
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),
        )


def _learned(run: Path, valid: tuple[Path, Path], score: str) -> dict[str, Any]:
    """Settings, size, work done and score of a finished run."""
    journal = (run / "journal.jsonl").read_text(encoding="utf-8")
    events = [json.loads(line) for line in journal.splitlines() if line]
    start = next(event for event in events if event["event"] == "start")
    end = [event for event in events if event["event"] == "end"][-1]
    config = read_toml(run / "config.toml")
    command = [sys.executable, "-m", "pellucid", "evaluate", str(run), *map(str, valid), "--json"]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    figures = json.loads(output)
    model = config["model"]
    return {
        "score": round(figures[score], 2),
        "signature": figures["signatures"].get(score, ""),
        "parameters": start["parameters"],
        "updates": end["step"],
        "target_tokens": end["target_tokens"],
        "layers": f"{model['encoder_layers']}+{model['decoder_layers']}",
        "width": model["d_model"],
        "vocabulary": start["target_vocabulary"],
        "dropout": model.get("dropout", 0.1),
        "batch_tokens": config["training"]["batch_tokens"],
        "warmup_steps": config["training"]["warmup_steps"],
        "precision": start["precision"],
    }


def _texts(name: str, data: Path, work: Path) -> tuple[tuple[Path, Path], tuple[Path, Path]]:
    """Training and validation files; what is held out is written under ``work``."""
    folder = work / "text" / name
    match name:
        case "multi30k":
            sides = data / "multi30k" / "train", data / "multi30k" / "val", ("en", "de")
        case "tatoeba":
            corpus = data / "tatoeba_de_en"
            sides = corpus / "train", corpus / "valid", ("de", "en")
        case "scan" | "cmudict":
            quality_experiments.prepare(name, data, work)
            languages = ("in", "out") if name == "scan" else ("graph", "phon")
            sides = folder / "train", folder / "valid", languages
        case "europarl":
            _hold_out(data / "europarl20k", folder, ("de", "en"))
            sides = folder / "train", folder / "valid", ("de", "en")
        case "phrasebook":
            _phrasebook(folder)
            sides = folder / "train", folder / "valid", ("fr", "en")
        case _:
            raise SystemExit(f"no corpus is called {name}")
    train, valid, (source, target) = sides
    return tuple(
        (each.with_name(f"{each.name}.{source}"), each.with_name(f"{each.name}.{target}"))
        for each in (train, valid)
    )  # type: ignore[return-value]


def _hold_out(corpus: Path, into: Path, sides: tuple[str, str]) -> None:
    """The corpus has no validation text: some lines, always the same, become it."""
    into.mkdir(parents=True, exist_ok=True)
    lines = {side: read_lines(corpus / f"train.{side}") for side in sides}
    count = len(lines[sides[0]])
    valid = set(random.Random(20_000).sample(range(count), _HELD_OUT_LINES))
    for side, text in lines.items():
        for part, is_valid in (("train", False), ("valid", True)):
            kept = (line for row, line in enumerate(text) if (row in valid) == is_valid)
            write_file(into / f"{part}.{side}", "".join(f"{line}\n" for line in kept).encode())


def _phrasebook(into: Path) -> None:
    """The files that docs/quickstart.md writes."""
    into.mkdir(parents=True, exist_ok=True)
    parts = phrasebook.split(20_000, 500, seed=1)
    for name, pairs in (("train", parts.train), ("valid", parts.valid)):
        source = "".join(f"{pair.source}\n" for pair in pairs)
        target = "".join(f"{pair.target}\n" for pair in pairs)
        write_file(into / f"{name}.fr", source.encode())
        write_file(into / f"{name}.en", target.encode())


def _set(settings: list[str]) -> list[str]:
    return [part for setting in settings for part in ("--set", setting)]


def page(result: dict[str, Any]) -> str:
    """The result as a table."""
    about = result["machine"]
    lines = [
        "# Settings that are chosen, beside presets",
        "",
        "Written by `benchmarks/auto.py`; nothing here is edited by hand.",
        "",
        str(result["counted"]),
        "",
        f"- Machine: {about['cpu']}, {about['cores']} cores, one for each of the two runs;"
        f" torch {about['versions']['torch']}.",
        "- Load is the mean load average while the two ran. What is above 2 is other work on the"
        " same two cores: each run then had a part of its core, and the minutes hold fewer updates"
        " than on a quiet machine.",
        "- Presets were made for quiet machines and, but for `demo`, for half an hour and more. The"
        " minutes here say nothing of budgets that are not in the table.",
        "- One seed each. Where few updates were made, another seed may change a score by several"
        " percent.",
        "",
        "| corpus | minutes | load | by | auto | preset | ratio | auto: layers, width, subwords,"
        " dropout, updates | preset: layers, width, subwords, dropout, updates |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in result["rows"]:
        auto, preset = row["auto"], row["preset"]
        lines.append(
            f"| {row['title']} | {row['minutes']:g} | {row['load']} | {row['score']}"
            f" | {auto['score']:.2f} | {preset['score']:.2f} (`{CORPORA[row['corpus']].preset}`)"
            f" | {row['ratio']:.3f} | {_shape(auto)} | {_shape(preset)} |"
        )
    commits = sorted({row["machine"]["commit"] for row in result["rows"]})
    dates = sorted({row["machine"]["date"][:10] for row in result["rows"]})
    lines += ["", f"Made on {', '.join(dates)}, commit {', '.join(commits)}.", ""]
    missing = [each.title for name, each in CORPORA.items() if not _has(result, name)]
    if missing:
        lines += [f"Not measured: {'; '.join(missing)}.", ""]
    return "\n".join(lines)


def _has(result: dict[str, Any], name: str) -> bool:
    return any(row["corpus"] == name for row in result["rows"])


def _shape(run: dict[str, Any]) -> str:
    return (
        f"{run['layers']}, {run['width']}, {run['vocabulary']:,}, {run['dropout']:g},"
        f" {run['updates']:,}"
    )


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the corpora")
    parser.add_argument("--work", type=Path, required=True, help="where runs and results are kept")
    parser.add_argument("--corpus", nargs="+", choices=list(CORPORA), default=[])
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--table", action="store_true", help="only write the page, train nothing")
    return parser.parse_args()


if __name__ == "__main__":
    main()
