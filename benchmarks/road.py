"""The road to the Transformer in one table: the systems of docs/sources.md, same data, same time.

    python benchmarks/road.py --data ../shared/data/multi30k --work /tmp/road --minutes 20

Each system trains for the same wall-clock time on the cores this process may use (`taskset` makes
them fewer): first on the phrasebook (French to English), then on Multi30k (English to German). A
system whose result lies in --work is not trained again, so that a long table can be made in parts;
--table writes the page from what lies there and trains nothing.

What is counted: tokens/s are real target tokens a second of training, validation left out;
processor minutes are what the run got of its cores, validation included; BLEU is cased sacreBLEU
(13a) on the test files, beam 5; by length means by the number of words of the source sentence. The
skip-gram vectors are trained beforehand, outside the time.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import machine

from pellucid import phrasebook
from pellucid.bundle import load_bundle
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.translator import Translator
from pellucid.evaluation.metrics import bleu, exact_match
from pellucid.text.corpus.lines import read_lines

RESULTS = Path(__file__).parent / "results"
_RECURRENT = ["model.d_model=256", "model.encoder_layers=1", "model.decoder_layers=1"]
SYSTEMS: dict[str, list[str]] = {
    "rnn": ["model.kind=rnn", *_RECURRENT],
    "rnn-attention, additive": ["model.kind=rnn-attention", *_RECURRENT],
    "rnn-attention, dot": ["model.kind=rnn-attention", "model.attention=dot", *_RECURRENT],
    "transformer, sinusoidal": ["model.positions=sinusoidal"],
    "transformer, learned": ["model.positions=learned", "model.max_positions=512"],
    "transformer, relative": ["model.positions=relative"],
    "transformer, rotary": ["model.positions=rotary"],
    "transformer, skip-gram vectors": ["model.positions=sinusoidal"],
}
VECTORS = "transformer, skip-gram vectors"
PRESETS = {"phrasebook": "demo", "multi30k": "multi30k"}
LENGTHS = {"phrasebook": (3, 5, 7, 9), "multi30k": (8, 11, 14, 18)}
"""Upper ends of the classes of length, in words; the last class has none."""


def main() -> None:
    options = _parse_options()
    options.work.mkdir(parents=True, exist_ok=True)
    about = machine.describe()
    rows = []
    for corpus in options.corpora:
        for name, settings in SYSTEMS.items():
            if not options.only or name in options.only:
                rows += _row(corpus, name, settings, options)
    if not rows:
        raise SystemExit(f"nothing in {options.work} yet: run without --table first")
    result = {
        "benchmark": "road",
        "command": machine.command(),
        "counted": " ".join((__doc__ or "").split("\n\n")[-1].split()),
        "machine": about,
        "rows": rows,
    }
    (RESULTS / "road.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    (RESULTS / "road.md").write_text(_page(result), encoding="utf-8")
    print(RESULTS / "road.md")


def _row(
    corpus: str, name: str, settings: Sequence[str], options: argparse.Namespace
) -> list[dict[str, Any]]:
    """Train one system unless it was trained before; no row where --table forbids it."""
    slug = f"{corpus}-{name.replace(', ', '-').replace(' ', '-')}"
    kept = options.work / f"{slug}.json"
    if kept.exists():
        return [json.loads(kept.read_text(encoding="utf-8"))]
    if options.table:
        return []
    minutes = options.minutes if corpus == "multi30k" else options.phrasebook_minutes
    chosen = [*settings, f"training.max_minutes={minutes}", f"training.seed={options.seed}"]
    chosen += ["training.log_every=10", *_data(corpus, options)]
    if corpus == "phrasebook":
        chosen += ["training.max_steps=1000000", "phrasebook.style=plain", "phrasebook.pairs=60000"]
    if name == VECTORS:
        chosen.append(f'model.pretrained_vectors="{_vectors(corpus, options)}"')
    run = options.work / slug
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _train(PRESETS[corpus], chosen, run)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    row: dict[str, Any] = {
        "corpus": corpus,
        "system": name,
        "settings": list(settings),
        "seed": options.seed,
    }
    row |= {"minutes": minutes, "cores": len(os.sched_getaffinity(0))}
    row |= {
        "processor_minutes": round(used / 60, 1),
        **_learned(run),
        **_scores(corpus, run, options),
    }
    kept.write_text(json.dumps(row, indent=1), encoding="utf-8")
    print(json.dumps(row), flush=True)
    return [row]


def _train(preset: str, settings: Sequence[str], run: Path) -> None:
    sets = [part for setting in settings for part in ("--set", setting)]
    command = [sys.executable, "-m", "pellucid", "train", preset, *sets, "--out", str(run)]
    subprocess.run([*command, "--resume"], check=True)


def _data(corpus: str, options: argparse.Namespace) -> list[str]:
    if corpus == "phrasebook":
        return []
    folder = options.data
    return [
        f"data.source={folder / 'train.en'}",
        f"data.target={folder / 'train.de'}",
        f"data.valid_source={folder / 'val.en'}",
        f"data.valid_target={folder / 'val.de'}",
    ]


def _vectors(corpus: str, options: argparse.Namespace) -> Path:
    """A skip-gram run over both sides of the training text, cut as the translators cut it."""
    run: Path = options.work / f"{corpus}-vectors"
    if not (run / "bundles").exists():
        if corpus == "multi30k":
            files = [str(options.data / "train.en"), str(options.data / "train.de")]
            size = 8000
        else:
            pairs = phrasebook.split(60_000, 1000, 0).train
            text = options.work / "phrasebook.text"
            lines = [pair.source for pair in pairs] + [pair.target for pair in pairs]
            text.write_text("\n".join(lines) + "\n", encoding="utf-8")
            files, size = [str(text)], 1500
        settings = [
            f"data.text={json.dumps(files)}",
            "tokenizer.kind=bpe",
            f"tokenizer.vocabulary_size={size}",
            "model.d_model=128",
            f"training.seed={options.seed}",
        ]
        _train("skipgram", settings, run)
    return run


def _learned(run: Path) -> dict[str, Any]:
    journal = (run / "journal.jsonl").read_text(encoding="utf-8")
    events = [json.loads(line) for line in journal.splitlines() if line]
    start = next(event for event in events if event["event"] == "start")
    trained = [event for event in events if event["event"] == "train"]
    validated = [event for event in events if event["event"] == "validation"]
    if not trained:
        raise SystemExit(f"{run} ended before its first ten updates: give it more minutes")
    seconds = trained[-1]["seconds"] - sum(event["validation_seconds"] for event in validated)
    best = max(validated, key=lambda event: event["bleu"])
    return {
        "parameters": start["parameters"],
        "precision": start["precision"],
        "steps": trained[-1]["step"],
        "tokens_per_second": round(trained[-1]["target_tokens"] / max(1.0, seconds), 1),
        "validation_loss": round(best["loss"], 4),
        "validation_bleu_greedy": round(best["bleu"], 2),
    }


def _scores(corpus: str, run: Path, options: argparse.Namespace) -> dict[str, Any]:
    if corpus == "phrasebook":
        test = phrasebook.split(60_000, 1000, 0).test
        sources, references = [p.source for p in test], [p.target for p in test]
    else:
        sources = list(read_lines(options.data / "test_2016_flickr.en"))
        references = list(read_lines(options.data / "test_2016_flickr.de"))
    bundle = load_bundle(run)
    settings = DecodingConfig.parse(bundle.settings["decoding"]).having(beam_size=5)
    hypotheses = [each.text for each in Translator(bundle, settings).translate(sources)]
    whole = bleu(hypotheses, references)
    by_length = {}
    ends = (*LENGTHS[corpus], None)
    first = 1
    for end in ends:
        rows = [
            index
            for index, source in enumerate(sources)
            if first <= len(source.split()) and (end is None or len(source.split()) <= end)
        ]
        label = f"{first}-{end}" if end else f"{first}+"
        score = bleu([hypotheses[i] for i in rows], [references[i] for i in rows]).score
        by_length[label] = {"sentences": len(rows), "bleu": round(score, 2)}
        first = (end or 0) + 1
    return {
        "test_bleu": round(whole.score, 2),
        "signature": whole.signature,
        "exact_match": round(exact_match(hypotheses, references), 2),
        "by_length": by_length,
    }


def _page(result: dict[str, Any]) -> str:
    parts = [
        "# The road in one table\n",
        "Written by `benchmarks/road.py`; nothing here is edited by hand.\n",
        f"{result['counted']}\n",
        f"- Command: `{result['command']}`",
        *(f"- {key}: {value}" for key, value in result["machine"].items()),
    ]
    for corpus in dict.fromkeys(row["corpus"] for row in result["rows"]):
        rows = [row for row in result["rows"] if row["corpus"] == corpus]
        labels = list(rows[0]["by_length"])
        counts = ", ".join(f"{each}: {rows[0]['by_length'][each]['sentences']}" for each in labels)
        parts.append(
            f"\n## {corpus}, {rows[0]['minutes']:g} minutes each on {_cores(rows)}, "
            f"seed {rows[0]['seed']}\n"
        )
        head = [
            "system",
            "parameters",
            "processor min",
            "tokens/s",
            "updates",
            "valid loss",
            "BLEU",
            "exact",
        ]
        head += [f"BLEU {label} words" for label in labels]
        parts.append(f"| {' | '.join(head)} |")
        parts.append(f"|{'---|' * len(head)}")
        for row in rows:
            cells = [
                row["system"],
                f"{row['parameters']:,}",
                f"{row['processor_minutes']:.1f}",
                f"{row['tokens_per_second']:,.0f}",
                f"{row['steps']:,}",
                f"{row['validation_loss']:.3f}",
                f"{row['test_bleu']:.2f}",
                f"{row['exact_match']:.1f}%",
                *(f"{row['by_length'][label]['bleu']:.1f}" for label in labels),
            ]
            parts.append(f"| {' | '.join(cells)} |")
        parts.append(f"\nTest sentences by length: {counts}. {rows[0]['signature']}, beam 5.")
    return "\n".join(parts) + "\n"


def _cores(rows: Sequence[dict[str, Any]]) -> str:
    counts = sorted({row["cores"] for row in rows})
    return " or ".join(map(str, counts)) + (" core" if counts == [1] else " cores")


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of Multi30k")
    parser.add_argument("--work", type=Path, required=True, help="where runs and results are kept")
    parser.add_argument("--minutes", type=float, default=20.0, help="for each system on Multi30k")
    parser.add_argument("--phrasebook-minutes", type=float, default=3.0)
    parser.add_argument("--corpora", nargs="+", choices=list(PRESETS), default=list(PRESETS))
    parser.add_argument("--only", nargs="*", choices=list(SYSTEMS), default=[])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--table", action="store_true", help="only write the page, train nothing")
    return parser.parse_args()


if __name__ == "__main__":
    main()
