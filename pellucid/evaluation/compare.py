"""Compares two systems on one test set: scores, significance, and where they differ most."""

import dataclasses
import logging
from collections.abc import Sequence
from typing import Any

from sacrebleu.metrics.chrf import CHRF

from pellucid.core.errors import DataError
from pellucid.core.texts import counted, lines_of
from pellucid.evaluation.metrics import check_lines
from pellucid.evaluation.references import has_text, warn_of_unscored
from pellucid.evaluation.scoring import (
    WORDS_COUNTED_BY,
    bleu_problem,
    form_problems,
    scoring_of,
    words_problem,
)
from pellucid.evaluation.significance import Comparison, PairedScores
from pellucid.evaluation.tokenizers import TokenizerName
from pellucid.text.scripts import SPACELESS_LETTER

_log = logging.getLogger("pellucid")

DEFAULT_METRICS = ("bleu", "chrf")


@dataclasses.dataclass(frozen=True)
class Change:
    """A sentence that two systems translate differently."""

    line: int
    """The line number, from 1."""
    reference: str
    baseline: str
    system: str
    difference: float
    """The system's sentence chrF2 minus the baseline's, in percent."""


@dataclasses.dataclass(frozen=True)
class Contest:
    """A system against a baseline."""

    bootstrap: dict[str, Comparison]
    """Paired bootstrap resampling, by metric."""
    randomization: dict[str, Comparison]
    """Approximate randomization, by metric; where the two disagree, believe this one."""
    length_ratios: tuple[float, float]
    """Words of the baseline and of the system, divided by those of the references."""
    changed_count: int
    """How many sentences they translate differently."""
    most_changed: list[Change]
    """The sentences whose chrF2 differs most, for better or worse, first."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values; each metric has its two scores, both tests and their signatures."""
        scores: dict[str, Any] = {
            name: {
                "baseline": one.baseline,
                "system": one.system,
                "difference": one.difference,
                "interval": list(one.interval or ()),
                "bootstrap_p": one.p_value,
                "randomization_p": self.randomization[name].p_value,
                "signatures": [one.signature, self.randomization[name].signature],
            }
            for name, one in self.bootstrap.items()
        }

        return {
            **scores,
            "length_ratio": dict(zip(("baseline", "system"), self.length_ratios, strict=True)),
            "changed": self.changed_count,
            "most_changed": [dataclasses.asdict(change) for change in self.most_changed],
        }


def compare(
    baseline: Sequence[str],
    system: Sequence[str],
    references: Sequence[str],
    *,
    metrics: Sequence[str] = DEFAULT_METRICS,
    language: str | None = None,
    tokenize: TokenizerName | None = None,
    samples: int = 1000,
    seed: int = 12345,
    most_changed: int = 5,
) -> Contest:
    """Compare the translations of two systems by each of ``metrics``, line by line.

    ``language`` and ``tokenize`` are as for ``evaluate``. ``samples`` test sets are drawn for each
    test. The same arguments give the same answer. Lines without a reference are left out, with a
    warning.

    Raises DataError if the line counts differ or no line has a reference, ConfigError if
    samples < 1, and as ``evaluate`` for a language or a tokenizer.
    """
    baseline = lines_of(baseline, "baseline lines")
    system = lines_of(system, "system lines")
    references = lines_of(references, "references")
    check_lines({"baseline lines": baseline, "system lines": system, "references": references})

    rows = [
        row
        for row, texts in enumerate(zip(references, baseline, system, strict=True))
        if has_text(texts[0]) or not any(map(has_text, texts))
    ]
    warn_of_unscored(rows, len(references))
    if not any(map(has_text, references)):
        raise DataError(
            f"no line has a reference, got {counted(len(references), 'blank line')}",
            hint="is the file of references the right one?",
        )
    baseline, system, references = (
        [side[row] for row in rows] for side in (baseline, system, references)
    )

    # Checked before the first metric: sacreBLEU itself would notice only when it scores.
    accepted = [[line] for line in references]
    scoring = scoring_of(accepted, language, tokenize)
    problem = bleu_problem(accepted, scoring) if "bleu" in metrics else ""
    if problem:
        _log.warning("%s; go by chrf", problem)
    texts = baseline, system, references
    sides = {"baseline's lines": baseline, "system's lines": system, "references": references}
    problems = form_problems(sides, scoring)
    if any(name in metrics for name in WORDS_COUNTED_BY):
        problems.append(words_problem(accepted))
    for problem in filter(None, problems):
        _log.warning("%s", problem)
    bootstrap, randomization = {}, {}

    for name in metrics:
        paired = PairedScores.of(*texts, metric=name, language=language, tokenize=scoring.tokenize)
        bootstrap[name] = paired.bootstrap(samples, seed)
        randomization[name] = paired.randomization(samples, seed)

    return Contest(
        bootstrap=bootstrap,
        randomization=randomization,
        length_ratios=(_length_ratio(baseline, references), _length_ratio(system, references)),
        changed_count=sum(map(str.__ne__, baseline, system)),
        most_changed=_changes(*texts, [row + 1 for row in rows])[:most_changed],
    )


def _length_ratio(translations: Sequence[str], references: Sequence[str]) -> float:
    words = [sum(map(_word_count, side)) for side in (translations, references)]
    return words[0] / max(1, words[1])


def _word_count(line: str) -> int:
    """Words; in a script without spaces each letter counts as one."""
    letters = len(SPACELESS_LETTER.findall(line))
    return letters + len(SPACELESS_LETTER.sub(" ", line).split())


def _changes(
    baseline: Sequence[str],
    system: Sequence[str],
    references: Sequence[str],
    numbers: Sequence[int],
) -> list[Change]:
    """The lines that differ, by the numbers that they have in the files."""
    metric = CHRF()
    changes = []
    for line, one, other, reference in zip(numbers, baseline, system, references, strict=True):
        # chrF and not BLEU: for a single sentence BLEU is mostly zero or steps.
        if one != other:
            before = metric.sentence_score(one, [reference]).score
            after = metric.sentence_score(other, [reference]).score
            changes.append(Change(line, reference, one, other, after - before))

    # Stable: of equal changes the earlier line comes first.
    return sorted(changes, key=lambda change: -abs(change.difference))
