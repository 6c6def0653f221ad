"""What `pellucid train SOURCE TARGET --minutes M` reaches beside the best preset, on six corpora.

    python benchmarks/auto.py --data ../shared/data --work /tmp/auto --corpus scan --seeds 1 2 3
    python benchmarks/auto.py --data ../shared/data --work /tmp/auto --table

For each corpus and seed two runs start at the same time, one with the settings that Pellucid
chooses and one with a preset, each on a core and a thread of its own, so that whatever else the
machine does slows both. A pair of runs whose result lies in --work is not made again, and one that
was interrupted goes on; --table writes the page from what lies there.

What is counted: minutes are each run's own clock, training and validating together; CPU minutes
are those of its process. Both are scored by `pellucid evaluate` with the search settings of their
own config, on the validation text that chose their best bundle: text on which settings may be
tuned, and no test. The ratio is the score of the chosen settings divided by the preset's.
"""

import argparse
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import machine
from quality import learned
from quality_texts import prepare

from pellucid.core.config import read_toml

_LOAD_EVERY_SECONDS = 5.0


@dataclasses.dataclass(frozen=True)
class Corpus:
    """A text, and the preset that is best for it within minutes."""

    title: str
    text: str
    """A name that ``quality_texts.prepare`` knows."""
    preset: str
    score: str
    """A figure of ``pellucid evaluate``; higher is better."""
    settings: tuple[str, ...] = ()
    """Limits of the preset other than minutes are lifted, so that both have the same time."""


_UNLIMITED = ("training.max_steps=1000000",)
CORPORA = {
    "multi30k": Corpus(
        "Multi30k En-De, 29,000 captions", "multi30k-en-de-tuning", "multi30k", "bleu"
    ),
    "tatoeba": Corpus(
        "Tatoeba De-En, 164,471 short sentences", "tatoeba-de-en-tuning", "tatoeba", "bleu"
    ),
    "europarl": Corpus(
        "Europarl De-En, 19,500 long sentences", "europarl-de-en", "multi30k", "bleu"
    ),
    "cmudict": Corpus("CMUdict, 114,085 pronunciations", "cmudict", "cmudict", "exact_match"),
    "scan": Corpus("SCAN, 14,556 commands", "scan", "scan", "exact_match", _UNLIMITED),
    "phrasebook": Corpus(
        "phrasebook Fr-En, the 20,000 pairs of docs/quickstart.md",
        "phrasebook",
        "demo",
        "exact_match",
        _UNLIMITED,
    ),
}
"""The most important first."""


def main() -> None:
    options = _parse_options()
    options.work.mkdir(parents=True, exist_ok=True)
    for seed in options.seeds:
        for name in options.corpus:
            kept = options.work / f"{name}-{options.minutes:g}-seed{seed}.result.json"
            if not kept.exists():
                row = _compare(name, seed, options)
                kept.write_text(json.dumps(row, indent=1), encoding="utf-8")
                print(json.dumps({key: row[key] for key in ("corpus", "seed", "ratio")}))

    kept_rows = sorted(options.work.glob("*.result.json"))
    rows = [json.loads(path.read_text(encoding="utf-8")) for path in kept_rows]
    if not rows:
        raise SystemExit(f"nothing in {options.work} yet: name a --corpus")
    rows.sort(key=lambda row: (list(CORPORA).index(row["corpus"]), row["minutes"], row["seed"]))
    result = {
        "benchmark": "auto",
        "command": machine.command(),
        "counted": " ".join((__doc__ or "").split("\n\n")[-1].split()),
        "rows": rows,
    }
    machine.write_result("auto", result, page(result))


def _compare(name: str, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """Both runs at once, and what became of them."""
    corpus = CORPORA[name]
    text = prepare(corpus.text, options.data.resolve(), options.work.resolve())
    files = dict(each.split("=", 1) for each in text.settings)
    source, target, *valid = files.values()
    always = [f"training.seed={seed}", "training.threads=1"]
    minutes = ["--minutes", f"{options.minutes:g}", "--resume"]
    words = {
        "auto": ["train", source, target, "--valid", *valid, *_set(always), *minutes],
        "preset": [
            "train",
            corpus.preset,
            *_set([*text.settings, *always, *corpus.settings]),
            *minutes,
        ],
    }
    runs = {each: options.work / f"{name}-{options.minutes:g}-seed{seed}-{each}" for each in words}
    about = machine.describe()
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise SystemExit("two runs at once need two cores")

    running = [
        _start(words[each], run, core)
        for (each, run), core in zip(runs.items(), cores, strict=False)
    ]
    loads = []
    while any(each.poll() is None for each in running):
        loads.append(os.getloadavg()[0])
        time.sleep(_LOAD_EVERY_SECONDS)
    if any(each.returncode for each in running):
        raise SystemExit(f"a run failed; see the .log files in {options.work}")

    found = {each: _outcome(run, valid, corpus.score) for each, run in runs.items()}
    return {
        "corpus": name,
        "score": corpus.score,
        "minutes": options.minutes,
        "seed": seed,
        "load": round(statistics.mean(loads), 1),
        "machine": about,
        **found,
        "ratio": round(found["auto"]["score"] / max(1e-9, found["preset"]["score"]), 3),
    }


def _start(words: list[str], run: Path, core: int) -> subprocess.Popen[bytes]:
    """``pellucid`` on this core, with one thread; what it prints goes beside the run folder."""
    with run.with_name(f"{run.name}.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "pellucid", *words, "--out", str(run)],
            stdout=log,
            stderr=log,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),
        )


def _outcome(run: Path, valid: list[str], score: str) -> dict[str, Any]:
    """Settings, work done and score of a finished run."""
    command = [sys.executable, "-m", "pellucid", "evaluate", str(run), *valid, "--json"]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    figures = json.loads(output)
    config = read_toml(run / "config.toml")
    model, training = config["model"], config["training"]
    row = learned(run)
    return {
        "score": round(figures[score], 2),
        "signature": figures["signatures"][score],
        "layers": f"{model['encoder_layers']}+{model['decoder_layers']}",
        "width": model["d_model"],
        "dropout": model["dropout"],
        "batch_tokens": training["batch_tokens"],
        "learning_rate": training["learning_rate"],
        "weight_decay": training["weight_decay"],
        **{key: row[key] for key in ("cpu_minutes", "updates", "target_tokens", "precision")},
    }


def _set(settings: list[str]) -> list[str]:
    return [part for setting in settings for part in ("--set", setting)]


def page(result: dict[str, Any]) -> str:
    """The result as a table."""
    rows = result["rows"]
    lines = [
        "# Settings that are chosen, beside presets",
        "",
        "Written by `benchmarks/auto.py`.",
        "",
        str(result["counted"]),
        "",
        "Load is the mean load average while the two ran. What is above 2 is other work on the same"
        " two cores: each run then had a part of its core, and the minutes contain fewer updates"
        " than on a quiet machine.",
        "",
        "| corpus | minutes | seed | load | by | auto | preset | ratio"
        " | auto: layers, width, dropout, decay, updates, CPU minutes"
        " | preset: the same |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        auto, preset, corpus = row["auto"], row["preset"], CORPORA[row["corpus"]]
        lines.append(
            f"| {corpus.title} | {row['minutes']:g} | {row['seed']} | {row['load']}"
            f" | {row['score']} | {auto['score']:.2f} | {preset['score']:.2f} (`{corpus.preset}`)"
            f" | {row['ratio']:.3f} | {_shape(auto)} | {_shape(preset)} |"
        )
    made = {
        f"{about['cpu']}, torch {about['versions']['torch']}, commit {about['commit']},"
        f" {about['date'][:10]}"
        for about in (row["machine"] for row in rows)
    }
    lines += ["", f"Made on two cores of {'; '.join(sorted(made))}."]
    missing = [each.title for name, each in CORPORA.items() if not _has(rows, name)]
    return "\n".join([*lines, *(["", f"Not measured: {'; '.join(missing)}."] if missing else [])])


def _has(rows: list[dict[str, Any]], name: str) -> bool:
    return any(row["corpus"] == name for row in rows)


def _shape(run: dict[str, Any]) -> str:
    return (
        f"{run['layers']}, {run['width']}, {run['dropout']:g}, {run['weight_decay']:.3g},"
        f" {run['updates']:,}, {run['cpu_minutes']:.0f}"
    )


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the corpora")
    parser.add_argument("--work", type=Path, required=True, help="where runs and results are kept")
    parser.add_argument("--corpus", nargs="+", choices=list(CORPORA), default=[])
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--table", action="store_true", help="only write the page, train nothing")
    return parser.parse_args()


if __name__ == "__main__":
    main()
