"""Word vectors beside gensim: same text, vocabulary and settings, taken in turn.

    python benchmarks/skipgram_speed.py ../shared/data/tatoeba_de_en --epochs 5 --rounds 3

FOLDER holds train.en and valid.en, one sentence a line. Window 5, 5 negatives, size 100, words more
frequent than 1e-3 thinned out. gensim is asked for all neighbors in the window
(shrink_windows=False), as Pellucid takes them; its own default draws a smaller window for each word
and so learns from about half of the pairs. Either has one worker and one thread.

What is counted: words of the text, those that are thinned out or have no vector included, times
epochs, per second of the process's CPU time. "Training" is the loop alone: for Pellucid from the
first to the last line of the journal, which makes batches, draws noise and logs within that time;
for gensim one call of `train`. "All" is a whole process: start, reading, vocabulary, training,
saving. Nearest neighbors are compared for the most frequent words: the share of one system's ten
nearest that are among the other's ten. Held-out loss is the loss with negative sampling, in nats
per pair, of valid.en, with the mean over all noise; words that a system lacks are left out of the
text for both. WordSim-353 is Spearman's correlation of cosines with people's judgements of 353
pairs of words (Finkelstein et al., 2002; the file that comes with gensim), where both words have
vectors.
"""

import argparse
import csv
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
import numpy.typing as npt
import torch
from gensim.test.utils import datapath
from scipy.stats import spearmanr

from pellucid.bundle import load_any_bundle
from pellucid.equations.word2vec import noise_distribution, skipgram_pairs
from pellucid.model.skipgram import SkipGram
from pellucid.training.vectors import load_vectors

RESULTS = Path(__file__).parent / "results"
GENSIM = """
import json, sys, time
import numpy as np
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
np.savez(out + ".npz", words=model.wv.index_to_key, w_in=model.wv.vectors, w_out=model.syn1neg)
"""
FREQUENT, NEAREST = 1000, 10
WINDOW, NEGATIVES = 5, 5
Tables = tuple[list[str], npt.NDArray[np.float64], npt.NDArray[np.float64]]
"""Words, and the rows of W_in and W_out of each."""


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
        _score(rows, Path(name), options.folder)
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
        "training.log_every=10",
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


def _score(rows: list[dict[str, Any]], folder: Path, texts: Path) -> None:
    """Add held-out loss and the correlation with people's judgements to each row."""
    each = [_tables(folder / f"{row['system']}-{row['round']}") for row in rows]
    common = set.intersection(*(set(words) for words, _, _ in each))
    lines = (texts / "valid.en").read_text(encoding="utf-8").splitlines()
    held_out = [[word for word in line.split() if word in common] for line in lines]
    pairs = [pair for words in held_out for pair in skipgram_pairs(words, WINDOW)]

    counts = dict.fromkeys(sorted(common), 0)
    for line in (texts / "train.en").open(encoding="utf-8"):
        for word in line.split():
            if word in counts:
                counts[word] += 1

    for row, tables in zip(rows, each, strict=True):
        row["held_out_loss"] = _held_out_loss(tables, pairs, counts)
        row["similarity"], row["judged_pairs"] = _similarity(tables)


def _tables(path: Path) -> Tables:
    if path.is_dir():
        bundle = load_any_bundle(path)
        model, tokenizer = bundle.model, bundle.target_tokenizer
        assert isinstance(model, SkipGram)
        known = [int(i) for i in model.counts.nonzero().flatten()]
        words = [tokenizer.tokens([i])[0] for i in known]
        w_in, w_out = model.w_in[known].detach().numpy(), model.w_out[known].detach().numpy()
    else:
        with np.load(f"{path}.npz") as kept:
            words, w_in, w_out = kept["words"].tolist(), kept["w_in"], kept["w_out"]
    return words, w_in.astype(np.float64), w_out.astype(np.float64)


def _held_out_loss(tables: Tables, pairs: list[tuple[str, str]], counts: dict[str, int]) -> float:
    """``negative_sampling_loss`` with the mean over all noise, in nats per pair."""
    place = {word: number for number, word in enumerate(tables[0])}
    rows = [place[word] for word in counts]
    w_in, w_out = tables[1][rows], tables[2][rows]
    place = {word: number for number, word in enumerate(counts)}
    center, context = np.array([[place[word] for word in pair] for pair in pairs]).T
    chances = noise_distribution(torch.tensor(list(counts.values()), dtype=torch.float64)).numpy()

    agreement = np.logaddexp(0.0, -(w_in[center] * w_out[context]).sum(axis=1)).mean()
    different, times = np.unique(center, return_counts=True)
    repulsion = 0.0
    for start in range(0, len(different), 256):
        some = slice(start, start + 256)
        scores = w_in[different[some]] @ w_out.T
        repulsion += times[some] @ (np.logaddexp(0.0, scores) @ chances)
    return float(agreement + NEGATIVES * repulsion / len(pairs))


def _similarity(tables: Tables) -> tuple[float, int]:
    """Spearman's correlation with people's judgements, and of how many pairs."""
    vectors = dict(zip(tables[0], tables[1], strict=True))
    with Path(datapath("wordsim353.tsv")).open(encoding="utf-8") as file:
        judged = [row for row in csv.reader(file, delimiter="\t") if not row[0].startswith("#")]
    cosines, judgements = [], []
    for one, other, judgement in judged:
        if one in vectors and other in vectors:
            a, b = vectors[one], vectors[other]
            cosines.append(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
            judgements.append(float(judgement))
    return float(spearmanr(cosines, judgements).statistic), len(cosines)


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
        "| round | system | words per CPU-s, training | words per CPU-s, all | held-out loss |"
        " WordSim-353 |",
        "|---:|---|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {row['round']} | {row['system']} | {row['training']:,.0f} | {row['all']:,.0f} |"
        f" {row['held_out_loss']:.4f} | {row['similarity']:.3f} |"
        for row in result["rows"]
    ]
    lines.append("")
    for system in ("pellucid", "gensim"):
        rates = [row["training"] for row in result["rows"] if row["system"] == system]
        lines.append(
            f"- {system}: median {statistics.median(rates):,.0f} words per CPU-second in training"
            f" ({min(rates):,.0f} to {max(rates):,.0f})"
        )
    ratios = [
        ours["training"] / theirs["training"]
        for ours, theirs in zip(result["rows"][::2], result["rows"][1::2], strict=True)
    ]
    lines.append(
        f"- of a round, pellucid over gensim: median {statistics.median(ratios):.2f}"
        f" ({min(ratios):.2f} to {max(ratios):.2f})"
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
