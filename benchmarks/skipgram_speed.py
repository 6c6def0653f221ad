"""Word vectors beside gensim: same text, vocabulary and settings, taken in turn.

    python benchmarks/skipgram_speed.py ../shared/data/tatoeba_de_en --epochs 5 --rounds 3

FOLDER holds train.en, one sentence a line. Window 5, 5 negatives, size 100, words more frequent
than 1e-3 thinned out. gensim is asked for all neighbors in the window (shrink_windows=False), as
Pellucid takes them; its own default draws a smaller window for each word and so learns from about
half of the pairs. Either has one worker and one thread.

What is counted: words of the text, those that are thinned out or have no vector included, times
epochs, per second of the process's CPU time. "Training" is the loop alone: for Pellucid from the
first to the last line of the journal, which makes batches, draws noise and logs within that time;
for gensim one call of `train`. "All" is a whole process: start, reading, vocabulary, training,
saving. Nearest neighbors are compared for the most frequent words: the share of one system's ten
nearest that are among the other's ten.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import machine
import numpy as np

from pellucid.training.vectors import load_vectors

RESULTS = Path(__file__).parent / "results"
GENSIM = """
import json, sys, time
from gensim.models import Word2Vec
text, out, vocabulary, epochs, workers, seed = sys.argv[1:]
sentences = [line.split() for line in open(text, encoding="utf-8")]
model = Word2Vec(
    vector_size=100, window=5, negative=5, sg=1, hs=0, sample=1e-3, shrink_windows=False,
    min_count=1, max_final_vocab=int(vocabulary), workers=int(workers), seed=int(seed),
)
model.build_vocab(sentences)
began = time.process_time()
model.train(sentences, total_examples=len(sentences), epochs=int(epochs))
print(json.dumps({"seconds": time.process_time() - began, "vectors": len(model.wv)}))
model.wv.save_word2vec_format(out)
"""
FREQUENT, NEAREST = 1000, 10


def main() -> None:
    options = _parse_options()
    about = machine.describe(("torch", "numpy", "gensim"))
    text = options.folder / "train.en"
    words = sum(len(line.split()) for line in text.open(encoding="utf-8"))
    rows = []
    with tempfile.TemporaryDirectory() as name:
        for number in range(1, options.rounds + 1):
            for system, contend in (("pellucid", _pellucid), ("gensim", _gensim)):
                began = _children_seconds()
                figures = contend(text, Path(name) / f"{system}-{number}", number, options)
                figures["all"] = words * options.epochs / (_children_seconds() - began)
                figures["training"] = (
                    figures.pop("share", 1.0) * words * options.epochs / (figures["seconds"])
                )
                rows.append({"system": system, "round": number, **figures})
                print(json.dumps(rows[-1]), flush=True)
        near = _compare(Path(name), options.rounds)
    result = {
        "benchmark": "skipgram_speed",
        "command": machine.command(),
        "counted": " ".join((__doc__ or "").split("\n\n")[-1].split()),
        "machine": about,
        "words": words,
        "epochs": options.epochs,
        "vocabulary": options.vocabulary,
        "batch_tokens": options.batch_tokens,
        "rows": rows,
        "neighbors": near,
    }
    machine.write_result("skipgram_speed", result, _page(result), options.out)
    print(options.out / "skipgram_speed.md")


def _children_seconds() -> float:
    """CPU seconds of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _pellucid(text: Path, run: Path, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """Train by the command; of the journal, the share of the updates that its lines span."""
    settings = [
        f"tokenizer.vocabulary_size={options.vocabulary + 4}",
        f"training.batch_tokens={options.batch_tokens}",
        f"training.learning_rate={options.learning_rate}",
        f"training.max_epochs={options.epochs}",
        f"training.seed={seed}",
        "training.threads=1",
        "training.log_every=5",
        "training.validate_every=1000000",
        "training.save_every=1000000",
    ]
    sets = [part for setting in settings for part in ("--set", setting)]
    command = [sys.executable, "-m", "pellucid", "vectors", "train", str(text), *sets]
    subprocess.run([*command, "--out", str(run)], check=True)
    lines = (run / "journal.jsonl").read_text(encoding="utf-8").split("\n")
    events = [json.loads(line) for line in lines if line]
    logged = [event for event in events if event["event"] == "train"]
    [end] = [event for event in events if event["event"] == "end"]
    first, last = logged[0], logged[-1]
    return {
        "seconds": last["cpu_seconds"] - first["cpu_seconds"],
        "share": (last["step"] - first["step"]) / end["step"],
        "updates": end["step"],
        "vectors": len(load_vectors(run).words),
    }


def _gensim(text: Path, out: Path, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    arguments = [text, out, options.vocabulary, options.epochs, 1, seed]
    done = subprocess.run(
        [sys.executable, "-c", GENSIM, *map(str, arguments)],
        check=True,
        capture_output=True,
        text=True,
    )
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def _compare(folder: Path, rounds: int) -> dict[str, float]:
    """Mean overlap of nearest neighbors between the systems, and between gensim's own seeds."""
    ours = [_nearest(folder / f"pellucid-{number}") for number in range(1, rounds + 1)]
    theirs = [_nearest(folder / f"gensim-{number}") for number in range(1, rounds + 1)]
    pairs = {
        "pellucid and gensim": [(a, b) for a in ours for b in theirs],
        "gensim and gensim": [(a, b) for i, a in enumerate(theirs) for b in theirs[:i]],
        "pellucid and pellucid": [(a, b) for i, a in enumerate(ours) for b in ours[:i]],
    }
    return {
        name: round(statistics.mean(_overlap(a, b) for a, b in each), 3)
        for name, each in pairs.items()
        if each
    }


def _nearest(path: Path) -> dict[str, set[str]]:
    """The nearest of the frequent words among the frequent words; both systems sort by count."""
    vectors = load_vectors(path)
    words, matrix = vectors.words[:FREQUENT], vectors.matrix[:FREQUENT].astype(np.float64)
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -2.0)
    order = np.argsort(-cosines, axis=1)[:, :NEAREST]
    return {word: {words[i] for i in row} for word, row in zip(words, order, strict=True)}


def _overlap(one: dict[str, set[str]], other: dict[str, set[str]]) -> float:
    both = one.keys() & other.keys()
    return statistics.mean(len(one[word] & other[word]) / NEAREST for word in both)


def _page(result: dict[str, Any]) -> str:
    about = result["machine"]
    lines = [
        "# Skip-gram: words a CPU-second",
        "",
        result["counted"],
        "",
        f"{result['words']:,} words, {result['epochs']} epochs, {result['vocabulary']:,} vectors of"
        f" size 100; Pellucid in batches of {result['batch_tokens']:,} tokens.",
        "",
        "| round | system | words per CPU-s, training | words per CPU-s, all |",
        "|---:|---|---:|---:|",
    ]
    lines += [
        f"| {row['round']} | {row['system']} | {row['training']:,.0f} | {row['all']:,.0f} |"
        for row in result["rows"]
    ]
    lines.append("")
    for system in ("pellucid", "gensim"):
        rates = [row["training"] for row in result["rows"] if row["system"] == system]
        lines.append(
            f"- {system}: median {statistics.median(rates):,.0f} words per CPU-second in training"
        )
    lines += [
        f"- nearest neighbors in common, {name}: {share:.1%}"
        for name, share in result["neighbors"].items()
    ]
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    lines += [
        f"- machine: {about['cpu']}, {about['cores']} cores, {about['memory_gb']} GB, load"
        f" {about['load_before']} before the start",
        f"- {about['date']}, commit {about['commit']}, Python {about['python']}, {versions}",
        f"- `{result['command']}`",
    ]
    return "\n".join(lines) + "\n"


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="holds train.en")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--vocabulary", type=int, default=16_000)
    parser.add_argument("--batch-tokens", type=int, default=4_096)
    parser.add_argument("--learning-rate", type=float, default=0.025)
    parser.add_argument("--out", type=Path, default=RESULTS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
