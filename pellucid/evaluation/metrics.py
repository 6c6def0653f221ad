"""Scores of a whole text, each with the signature that says how it was counted."""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Literal, assert_never

import sacremoses
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from pellucid.core.errors import DataError
from pellucid.evaluation.moses import language_code, moses_lc_tok
from pellucid.evaluation.tokenizers import DEFAULT_TOKENIZER, TokenizerName, check_tokenizer

MetricName = Literal["bleu", "bleu_lc_tok", "chrf", "chrfpp", "ter"]

References = Sequence[str | Sequence[str]]
"""For each line the right answer, or all that are accepted."""


@dataclasses.dataclass(frozen=True)
class Score:
    """A figure and how to get it again."""

    score: float
    """In percent; TER may pass 100."""
    signature: str
    """sacrebleu's: references, case, tokenization, smoothing, version."""


@dataclasses.dataclass(frozen=True)
class SentenceScores:
    """A score for each sentence by itself, and how to get them again."""

    scores: list[float | None]
    """In percent, in the order of the lines. None where nothing can be counted."""
    signature: str
    """As of a ``Score``. BLEU's has ``eff:yes``: orders of n-grams that a sentence is too short for
    are left out, without which most short sentences had a BLEU of 0."""


def bleu(
    hypotheses: Sequence[str],
    references: References,
    tokenize: TokenizerName = DEFAULT_TOKENIZER,
) -> Score:
    """Cased BLEU over detokenized text; higher is better.

    ``tokenize`` is the tokenizer of sacrebleu that cuts both sides into words.
    Source: Papineni et al. (2002); Post (2018), arXiv:1804.08771.
    Raises DataError, and as ``check_tokenizer`` for a package or a file that is missing.
    """
    return corpus_score("bleu", hypotheses, references, tokenize=tokenize)


def bleu_lc_tok(
    hypotheses: Sequence[str], references: References, language: str | None = None
) -> Score:
    """BLEU over lower-cased, Moses-normalized and -tokenized text, as Multi30k papers report it.

    ``language`` is that of both arguments; the signature says if it was assumed.
    Differs: from ``bleu`` in case and tokenization, which is worth up to two points.
    Raises DataError, or ConfigError for what is not a language code.
    """
    return corpus_score("bleu_lc_tok", hypotheses, references, language)


def chrf(hypotheses: Sequence[str], references: References) -> Score:
    """chrF2, the F-score of character n-grams; higher is better.

    Source: Popović (2015), WMT.  Raises DataError.
    """
    return corpus_score("chrf", hypotheses, references)


def chrfpp(hypotheses: Sequence[str], references: References) -> Score:
    """chrF2++, chrF2 with the n-grams of words up to order 2 as well; higher is better.

    Source: Popović (2017), WMT.  Raises DataError.
    """
    return corpus_score("chrfpp", hypotheses, references)


def ter(hypotheses: Sequence[str], references: References) -> Score:
    """Translation edit rate: edits and shifts per 100 reference words; lower is better.

    Source: Snover et al. (2006), AMTA.  Raises DataError.
    """
    return corpus_score("ter", hypotheses, references)


def exact_match(hypotheses: Sequence[str], references: References) -> float:
    """Percent of lines that equal their reference, character for character.

    Raises DataError.
    """
    check_lines({"hypotheses": hypotheses, "references": references})
    lines = zip(hypotheses, accepted(references), strict=True)
    equal = sum(hypothesis in alternatives for hypothesis, alternatives in lines)
    return 100.0 * equal / len(references)


def accepted(references: References) -> list[list[str]]:
    """All that is accepted for each line, also where that is one text.

    Raises DataError naming the line that accepts nothing.
    """
    lines = [[each] if isinstance(each, str) else list(each) for each in references]
    for number, alternatives in enumerate(lines, start=1):
        if not alternatives:
            raise DataError(f"line {number} must have at least one accepted reference, has none")
    return lines


def corpus_score(
    name: MetricName,
    hypotheses: Sequence[str],
    references: References,
    language: str | None = None,
    tokenize: TokenizerName = DEFAULT_TOKENIZER,
) -> Score:
    """The named score of all lines together.

    ``language`` matters to ``bleu_lc_tok`` only, ``tokenize`` to ``bleu`` only. Raises as those do.
    """
    check_lines({"hypotheses": hypotheses, "references": references})
    metric = make_metric(name, tokenize)
    result = metric.corpus_score(
        as_metric_reads(name, hypotheses, language),
        _columns(name, references, language),  # type: ignore[arg-type]  # None is allowed
    )
    return Score(float(result.score), metric_signature(name, metric, language))


def sentence_scores(
    name: MetricName,
    hypotheses: Sequence[str],
    references: References,
    language: str | None = None,
    tokenize: TokenizerName = DEFAULT_TOKENIZER,
) -> SentenceScores:
    """The named score of every line by itself, as sacrebleu's ``sentence_score`` gives it.

    Their mean is not the score of the whole text. Arguments and errors as of ``corpus_score``.
    """
    check_lines({"hypotheses": hypotheses, "references": references})
    alternatives = accepted(references)
    metric = make_metric(name, tokenize, effective_order=True)

    # One call for all lines of a side: Moses' tokenizer is slow to call for each.
    read = as_metric_reads(name, hypotheses, language)
    right = [as_metric_reads(name, line, language) for line in alternatives]
    scores: list[float | None] = [
        float(metric.sentence_score(hypothesis, line).score)
        for hypothesis, line in zip(read, right, strict=True)
    ]

    # sacrebleu's signature counts the references of the last sentence only.
    metric.num_refs = _common_count(alternatives)
    return SentenceScores(scores, metric_signature(name, metric, language))


def references_signature(alternatives: Sequence[Sequence[str]]) -> str:
    """How many references there are for each line, as sacrebleu says it."""
    count = _common_count(alternatives)
    return f"nrefs:{'var' if count == _VARIABLE else count}"


_VARIABLE = -1
"""sacrebleu's number of references where it differs from line to line."""


def _common_count(alternatives: Sequence[Sequence[str]]) -> int:
    counts = set(map(len, alternatives))
    return counts.pop() if len(counts) == 1 else _VARIABLE


def _columns(
    name: MetricName, references: References, language: str | None
) -> list[list[str | None]]:
    """The references as sacrebleu takes them: the first of every line, the second, and so on.

    None stands where a line has fewer.
    """
    read = [as_metric_reads(name, alternatives, language) for alternatives in accepted(references)]
    return [list(column) for column in itertools.zip_longest(*read)]


def make_metric(
    name: MetricName,
    tokenize: TokenizerName = DEFAULT_TOKENIZER,
    *,
    effective_order: bool = False,
) -> BLEU | CHRF | TER:
    """sacrebleu's metric of that name, with the settings used everywhere here.

    ``effective_order`` is for BLEU of single sentences.
    """
    match name:
        case "bleu":
            check_tokenizer(tokenize)  # sacrebleu would download a file that is missing
            # Without a tokenizer, tokenized text is meant, which sacrebleu would warn of.
            meant = tokenize == "none"
            return BLEU(tokenize=tokenize, force=meant, effective_order=effective_order)
        case "bleu_lc_tok":
            return BLEU(tokenize="none", force=True, effective_order=effective_order)
        case "chrf":
            return CHRF()
        case "chrfpp":
            return CHRF(word_order=2)
        case "ter":
            return TER()
        case _:
            assert_never(name)


def as_metric_reads(name: MetricName, lines: Sequence[str], language: str | None) -> list[str]:
    """The lines as ``make_metric(name)`` is to be given them."""
    return moses_lc_tok(lines, language) if name == "bleu_lc_tok" else list(lines)


def metric_signature(name: MetricName, metric: BLEU | CHRF | TER, language: str | None) -> str:
    """sacrebleu's signature of a metric that has scored; for lc_tok with what came before it."""
    signature = metric.get_signature()
    if name == "bleu_lc_tok":
        signature.update("case", "lc")
        signature.update("tok", f"moses-{language_code(language)}")
        signature.update("lang", "assumed" if language is None else None)
        signature.update("sacremoses", sacremoses.__version__)
    return str(signature)


def check_lines(sides: Mapping[str, Sequence[object]]) -> None:
    """See that all sides, by name, have the same number of lines, and more than none.

    Raises DataError naming the counts.
    """
    counts = [f"{len(lines)} {name}" for name, lines in sides.items()]
    if len({len(lines) for lines in sides.values()}) > 1:
        raise DataError(
            f"there must be as many {' as '.join(sides)}, got {' and '.join(counts)}",
            hint="a line ends at \\n only; look for a line that is missing on one side",
        )
    if not all(sides.values()):
        raise DataError(f"scoring needs at least one line, got {' and '.join(counts)}")
