"""Does the calibrated quality of a translation mean what it says? Checks that need no people.

    python benchmarks/quality_of_translations.py BUNDLE val.en val.de test.en test.de

The scale is learned from the validation text and held to the test text: by fifths of the quality,
to the chrF of the same translations; and on given translations (forced decoding), where a right
reference must have a higher quality than that of another line. Prints Markdown.
"""

import argparse
import dataclasses
import math
import random
import statistics
from collections.abc import Sequence
from pathlib import Path

import pellucid
from pellucid.bundle import QUALITY_KEY
from pellucid.decoding.quality import quality_points
from pellucid.decoding.translator import Translator
from pellucid.evaluation.evaluate import evaluate
from pellucid.text.corpus.lines import read_lines

_FIFTHS = 5
_BOUNDS = (0.3, 0.4, 0.5)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bundle")
    for name in ("valid_source", "valid_target", "test_source", "test_target"):
        parser.add_argument(name, type=Path)
    given = parser.parse_args()

    plain = pellucid.load(given.bundle).without_log()
    read = [read_lines(path) for path in (given.valid_source, given.valid_target)]
    valid = evaluate(plain, *read, per_sentence=True)
    assert valid.by_sentence is not None
    assert valid.log_probs is not None
    points = quality_points(valid.log_probs, valid.by_sentence["chrf"].scores)
    bundle = pellucid.load_bundle(given.bundle)
    bundle = dataclasses.replace(
        bundle, manifest={**bundle.manifest, QUALITY_KEY: [list(each) for each in points or ()]}
    )
    translator = Translator(bundle, plain.settings, plain.engine, logs_warnings=False)

    sources, references = read_lines(given.test_source), read_lines(given.test_target)
    found = translator.translate(sources, split=False)
    qualities = [each.quality or 0.0 for each in found]
    test = evaluate(plain, sources, references, per_sentence=True)
    assert test.by_sentence is not None
    chrf = [(each or 0.0) / 100 for each in test.by_sentence["chrf"].scores]

    print(f"{len(read[0]):,} lines of validation, {len(sources):,} of test; chrF {test.chrf:.1f}\n")
    _print_fifths(qualities, chrf)
    _print_bounds(qualities, chrf)
    _print_references(translator, sources, references)


def _print_fifths(qualities: Sequence[float], chrf: Sequence[float]) -> None:
    order = sorted(range(len(qualities)), key=lambda index: qualities[index])
    print("| translations by quality | mean quality | mean chrF / 100 |\n|---|---|---|")
    gaps = []
    for number in range(_FIFTHS):
        start, end = (len(order) * each // _FIFTHS for each in (number, number + 1))
        some = order[start:end]
        mean, right = (statistics.fmean(of[index] for index in some) for of in (qualities, chrf))
        gaps.append(abs(mean - right))
        print(f"| fifth {number + 1} | {mean:.3f} | {right:.3f} |")
    print(f"\nMean gap of the fifths: {statistics.fmean(gaps):.3f}.")
    print(f"Pearson's correlation by sentence: {statistics.correlation(qualities, chrf):.2f}.\n")


def _print_bounds(qualities: Sequence[float], chrf: Sequence[float]) -> None:
    print(
        "| `--below` | share below | mean chrF / 100 of these | of the others |\n|---|---|---|---|"
    )
    for bound in _BOUNDS:
        pairs = list(zip(qualities, chrf, strict=True))
        low = [right for quality, right in pairs if quality < bound]
        high = [right for quality, right in pairs if quality >= bound]
        means = [f"{statistics.fmean(each):.3f}" if each else "-" for each in (low, high)]
        print(f"| {bound} | {len(low) / len(chrf):.1%} | {' | '.join(means)} |")
    print()


def _print_references(
    translator: Translator, sources: Sequence[str], references: Sequence[str]
) -> None:
    """Right references against wrong ones, by the area under the ROC curve."""
    right = [each.quality or 0.0 for each in translator.score(sources, references)]
    wrong = {
        "of another line": _shuffled(references),
        "of the line next in length": _next_in_length(references),
        "with its words in another order": [_words_shuffled(each) for each in references],
        "with a word left out": [_without_word(each) for each in references],
    }
    print("| a reference against the same | AUC | pairs in the right order |\n|---|---|---|")
    for name, lines in wrong.items():
        scores = [each.quality or 0.0 for each in translator.score(sources, lines)]
        ordered = statistics.fmean(
            (one > other) + 0.5 * (one == other) for one, other in zip(right, scores, strict=True)
        )
        print(f"| {name} | {_auc(right, scores):.3f} | {ordered:.1%} |")


def _auc(right: Sequence[float], wrong: Sequence[float]) -> float:
    """The probability that a right one is above a wrong one, of all pairs; ties count half."""
    ranked = sorted([(each, True) for each in right] + [(each, False) for each in wrong])
    total, seen, start = 0.0, 0, 0
    while start < len(ranked):
        end = start
        while end < len(ranked) and ranked[end][0] == ranked[start][0]:
            end += 1
        tied = [is_right for _, is_right in ranked[start:end]]
        total += sum(tied) * (seen + 0.5 * (len(tied) - sum(tied)))
        seen += len(tied) - sum(tied)
        start = end
    return total / math.prod((len(right), len(wrong)))


def _shuffled(lines: Sequence[str]) -> list[str]:
    return [*lines[len(lines) // 2 :], *lines[: len(lines) // 2]]


def _next_in_length(lines: Sequence[str]) -> list[str]:
    order = sorted(range(len(lines)), key=lambda index: len(lines[index]))
    after = dict(zip(order, [*order[1:], order[0]], strict=True))
    return [lines[after[index]] for index in range(len(lines))]


def _words_shuffled(line: str) -> str:
    words = line.split()
    random.Random(line).shuffle(words)
    return " ".join(words)


def _without_word(line: str) -> str:
    words = line.split()
    if len(words) > 1:
        del words[random.Random(line).randrange(len(words))]
    return " ".join(words)


if __name__ == "__main__":
    main()
