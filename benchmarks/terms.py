"""How many terms of a glossary are in the translations, and what that costs in BLEU.

    python benchmarks/terms.py runs/plain --marked runs/marked --data multi30k

A glossary is learned from the training text: the words that IBM's Model 1 (Brown et al. 1993),
trained in both directions, takes for translations of each other. As in Dinu et al. (2019), §4.1,
entries count in a sentence of which both sides occur in the pair: the source in the source
sentence, the target in its reference. Two kinds of terms are measured:

- "of the pair": each sentence has the very form that its reference has (``Request.terms``);
- "of a file": one glossary for the whole text with all forms of an entry, of which any suffices, as
  a user would write it: entries that occur in some pair of the text on both sides. Where a
  reference translates a term otherwise, having the term costs BLEU by the count itself. So BLEU is
  also given for the lines alone that have terms and whose reference agrees: it has a form of each.

With ``--must`` the forms of the pair are also required as ``pellucid translate --must`` does, which
is one search with the caller's beam: with the length penalty that such a search has at most, and
with the caller's own, to see what that limit is for; and with the beam that terms have at least.

Choices are made on the validation text. The result goes to ``results/terms.md``.
"""

import argparse
import collections
import dataclasses
import json
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import machine

import pellucid
from pellucid.decoding import config as decoding_config
from pellucid.decoding.translator import Translator
from pellucid.evaluation.metrics import bleu
from pellucid.text.corpus.lines import read_lines
from pellucid.text.glossary import Glossary, Term, holds_phrase

_RESULT = machine.REPOSITORY / "benchmarks" / "results" / "terms"
_UNLIMITED = "of the pair, by must, length penalty not limited"
_WIDER = "of the pair, by must, beam 12"
_LIMIT = decoding_config._REQUIRED_LENGTH_PENALTY
_LEAST_COUNT, _MOST_COUNT = 5, 500
"""How often a source word occurs in the training text: function words are no terms."""
_LEAST_LETTERS = 4
_LEAST_SHARE = 0.2
"""Of the probability of a translation, in both directions."""

Pairs = Sequence[tuple[list[str], list[str]]]


def words(line: str) -> list[str]:
    """The words of a line without punctuation, in the case that they have."""
    return [bare for word in line.split() if (bare := word.strip(".,;:!?\"'()„“”"))]


def model_1(pairs: Pairs, rounds: int = 5) -> dict[str, dict[str, float]]:
    """p(target word | source word) after some rounds of expectation maximization."""
    table: dict[str, dict[str, float]] = {}
    for _ in range(rounds):
        counts: dict[str, dict[str, float]] = collections.defaultdict(
            lambda: collections.defaultdict(float)
        )
        for source, target in pairs:
            for word in target:
                chances = [table.get(each, {}).get(word, 1e-9) if table else 1.0 for each in source]
                total = sum(chances)
                for each, chance in zip(source, chances, strict=True):
                    counts[each][word] += chance / total
        table = {}
        for each, row in counts.items():
            total = sum(row.values())
            # Unlikely ones are dropped, to keep the table small.
            table[each] = {word: n / total for word, n in row.items() if n / total > 1e-3}
    return table


def learn_terms(sources: Sequence[str], targets: Sequence[str]) -> list[Term]:
    """The terms of a training text: a source word in lower case with the forms it becomes."""
    read = [
        ([word.lower() for word in words(source)], words(target))
        for source, target in zip(sources, targets, strict=True)
    ]
    forward = model_1(read)
    backward = model_1([(target, source) for source, target in read])
    counts = collections.Counter(word for source, _ in read for word in source)

    terms = []
    for source, row in forward.items():
        if not (_LEAST_COUNT <= counts[source] <= _MOST_COUNT and len(source) >= _LEAST_LETTERS):
            continue
        forms = [
            (share, target)
            for target, share in row.items()
            if share >= _LEAST_SHARE / 2
            and backward.get(target, {}).get(source, 0.0) >= _LEAST_SHARE
            and len(target) >= _LEAST_LETTERS
        ]
        if forms and max(forms)[0] >= _LEAST_SHARE:
            terms.append(Term((source,), tuple(target for _, target in sorted(forms)[::-1])))
    return terms


@dataclasses.dataclass(frozen=True)
class Task:
    """A text with its terms, in both kinds."""

    sources: list[str]
    references: list[str]
    of_pairs: list[tuple[tuple[str, ...], ...]]
    """For each line, the groups of one form that its reference has."""
    of_file: Glossary

    @classmethod
    def of(cls, terms: Iterable[Term], sources: list[str], references: list[str]) -> "Task":
        """The terms that occur on both sides of the pairs of a text."""
        whole = Glossary(terms)
        of_pairs, used = [], set()
        for source, reference in zip(sources, references, strict=True):
            groups = []
            for match in whole.matches(source):
                held = [form for form in match.targets if holds_phrase(reference, (form,))]
                if held:
                    groups.append((held[0],))
                    used.add(match.targets)
            of_pairs.append(tuple(dict.fromkeys(groups)))
        of_file = Glossary(term for term in whole.terms if term.targets in used)
        return cls(sources, references, of_pairs, of_file)


def present(texts: Sequence[str], groups: Sequence[Sequence[Sequence[str]]]) -> tuple[int, int]:
    """How many groups have one of their forms in the text of their line, and how many there are."""
    held = [
        holds_phrase(text, forms) for text, own in zip(texts, groups, strict=True) for forms in own
    ]
    return sum(held), len(held)


def measure(
    name: str, translator: Translator, task: Task, *, with_must: bool
) -> list[dict[str, Any]]:
    """The rows of a model: without terms, with those of each pair, with those of the file."""
    by_file = [task.of_file.required(source) for source in task.sources]
    requests = [
        pellucid.Request(source, terms=terms)
        for source, terms in zip(task.sources, task.of_pairs, strict=True)
    ]
    agreed = [
        number
        for number, groups in enumerate(by_file)
        if groups and all(holds_phrase(task.references[number], forms) for forms in groups)
    ]
    rows = []
    kinds = {
        "none": task.sources,
        "of the pair": requests,
        "of a file": task.sources,
    }
    if with_must:
        required = [
            pellucid.Request(each.source, must=tuple(form for (form,) in each.terms))
            for each in requests
        ]
        kinds |= {"of the pair, by must": required, _UNLIMITED: required, _WIDER: required}
    for kind, given in kinds.items():
        translator.glossary = task.of_file if kind == "of a file" else None
        limit = 20.0 if kind == _UNLIMITED else _LIMIT
        decoding_config._REQUIRED_LENGTH_PENALTY = limit
        began = time.perf_counter()
        beam_size = 12 if kind == _WIDER else None
        found = translator.translate(given, beam_size=beam_size, split=False)
        seconds = time.perf_counter() - began
        texts = [each.text for each in found]

        groups = by_file if kind == "of a file" else task.of_pairs
        held, count = present(texts, groups)
        score = bleu(texts, task.references)
        agreed_score = bleu(
            [texts[number] for number in agreed], [task.references[number] for number in agreed]
        )
        rows.append(
            {
                "model": name,
                "terms": kind,
                "present": held,
                "of": count,
                "bleu": score.score,
                "agreed lines": len(agreed),
                "bleu of agreed": agreed_score.score,
                "signature": score.signature,
                "seconds": seconds,
            }
        )
        if kind == "none":
            rows[-1]["present of file"], rows[-1]["of file"] = present(texts, by_file)
        print(json.dumps(rows[-1]), file=sys.stderr)
    translator.glossary = None
    return rows


def main() -> None:
    """Measure and write the report."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--marked", type=Path, help="A bundle trained with terms marked.")
    parser.add_argument("--data", type=Path, required=True, help="The folder of Multi30k.")
    parser.add_argument("--glossary", type=Path, help="Only write the learned glossary here.")
    parser.add_argument("--text", choices=("val", "test_2016_flickr"), default="val")
    parser.add_argument("--lines", type=int, help="Only the first lines of the text.")
    parser.add_argument("--must", action="store_true", help="Also require them by must.")
    parser.add_argument("--beam-size", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="Write results/terms.md.")
    options = parser.parse_args()

    about = machine.describe()
    read = {
        name: [read_lines(options.data / f"{name}.{side}") for side in ("en", "de")]
        for name in ("train", options.text)
    }
    terms = learn_terms(*read["train"])
    if options.glossary:
        rows = [f"{'|'.join(each.sources)}\t{'|'.join(each.targets)}\n" for each in terms]
        options.glossary.write_text("source\ttarget\n" + "".join(rows), encoding="utf-8")
        return

    task = Task.of(terms, *(lines[: options.lines] for lines in read[options.text]))
    found = []
    bundles = {"plain": options.bundle}
    if options.marked:
        bundles["trained with marks"] = options.marked
    for name, bundle in bundles.items():
        translator = pellucid.load(bundle)
        settings = translator.settings.having(beam_size=options.beam_size)
        options.length_penalty = settings.length_penalty
        found += measure(name, translator.with_settings(settings), task, with_must=options.must)

    text = _report(about, options, terms, task, found)
    sys.stdout.write(text)
    if options.write:
        _RESULT.with_suffix(".md").write_text(text, encoding="utf-8")
        figures = {"machine": about, "command": machine.command(), "rows": found}
        _RESULT.with_suffix(".json").write_text(json.dumps(figures, indent=1) + "\n")


def _report(
    about: dict[str, Any],
    options: argparse.Namespace,
    terms: Sequence[Term],
    task: Task,
    rows: Sequence[dict[str, Any]],
) -> str:
    lines = [
        "# Terms",
        "",
        f"`{machine.command()}`, {about['date']}, commit {about['commit']}",
        f"{about['cpu']}, {about['cores']} cores, torch {about['versions']['torch']}",
        "",
        f"Multi30k En-De, {options.text}, {len(task.sources):,} lines, beam {options.beam_size},"
        f" length penalty {options.length_penalty:g} unless terms are required."
        f" The glossary: {len(terms):,} terms learned from the training text by IBM's Model 1 in"
        " both directions; as in Dinu et al. (2019) those count whose source is in a source"
        " sentence and whose target is in its reference"
        f" ({len(task.of_file):,} entries). Terms **of the pair** are the forms of the"
        " references, given with each line. Those **of a file** are one glossary with all forms of"
        " an entry, of which any suffices. Both are required where the translation without terms"
        " lacks them.",
        "",
        f"The {rows[0]['agreed lines']:,} lines that agree have terms, and their reference has a"
        " form of each: in the others a term of the file contradicts the reference.",
        "",
        "| model | terms | present | of | share | BLEU | against none | BLEU of lines that agree"
        " | against none | seconds |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    base = {row["model"]: row for row in rows if row["terms"] == "none"}
    for row in rows:
        own = base[row["model"]]
        share = row["present"] / row["of"]
        kinds = [(row["terms"], row["present"], row["of"], share)]
        if row["terms"] == "none":
            held, count = row["present of file"], row["of file"]
            kinds = [
                ("none; those of the pair", row["present"], row["of"], share),
                ("none; those of a file", held, count, held / count),
            ]
        for kind, held, count, part in kinds:
            lines.append(
                f"| {row['model']} | {kind} | {held:,} | {count:,} | {part:.1%} |"
                f" {row['bleu']:.2f} | {row['bleu'] - own['bleu']:+.2f} |"
                f" {row['bleu of agreed']:.2f} |"
                f" {row['bleu of agreed'] - own['bleu of agreed']:+.2f} | {row['seconds']:.0f} |"
            )
    return "\n".join([*lines, "", f"BLEU: `{rows[0]['signature']}`.", ""])


if __name__ == "__main__":
    main()
