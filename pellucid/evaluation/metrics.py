"""The metrics, and one table of all of them.

A metric is a function and a field of ``Scores``. The table imports no slow package, because the
command line reads it for its help.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, assert_never, get_type_hints

from pellucid.core.errors import ConfigError, DataError
from pellucid.core.texts import check_texts, lines_of, texts_among
from pellucid.evaluation.tokenizers import (
    DEFAULT_TOKENIZER,
    TokenizerName,
    check_tokenizer,
    language_code,
    moses_lc_tok,
)
from pellucid.text.normalization import Normalization, normalize_all
from pellucid.text.scripts import SPACELESS_LETTER

if TYPE_CHECKING:
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

References = Sequence[str | Sequence[str]]
"""For each line the reference, or a list of all accepted references."""
Alternatives = Sequence[Sequence[str]]
"""For each line a list of all accepted references."""


@dataclasses.dataclass(frozen=True)
class Score:
    """A score, and the settings to reproduce it."""

    score: float
    """In percent; TER may pass 100."""
    signature: str
    """sacrebleu's signature: references, case, tokenization, smoothing, version."""


@dataclasses.dataclass(frozen=True)
class SentenceScores:
    """A score for each sentence by itself, and the settings to reproduce them."""

    scores: list[float | None]
    """In percent, in the order of the lines. None where nothing can be counted."""
    signature: str
    """The signature, as in ``Score``. BLEU's has ``eff:yes``: orders of n-grams that a sentence is
    too short for are left out; otherwise most short sentences would have a BLEU of 0."""


@dataclasses.dataclass(frozen=True)
class Judged:
    """The scores of a test set by a metric that is a model, in its own unit."""

    score: float
    """The mean of all lines."""
    by_sentence: list[float]
    signature: str
    """The version of the model, and the hash of its parameters."""


class Judge(Protocol):
    """A model that scores translations."""

    def judge(
        self, sources: Sequence[str], hypotheses: Sequence[str], references: Sequence[str]
    ) -> Judged:
        """The scores of these lines; a line has one reference."""


@dataclasses.dataclass(frozen=True)
class Output:
    """The translations of a test set, their references, and how both are read.

    Raises DataError if the line counts differ, there is no line, one accepts nothing or is no text.
    """

    hypotheses: Sequence[str]
    references: References
    language: str | None = None
    """The language of both; None is assumed to be English."""
    tokenize: TokenizerName = DEFAULT_TOKENIZER
    """sacrebleu's tokenizer for ``bleu``."""
    pronunciations: bool = False
    """Each line is one word, and its tokens are phones."""
    normalization: Normalization = "none"
    """The form in which ``exact_match`` compares both; the others read the text as it is."""

    def __post_init__(self) -> None:
        # Columns of tables and arrays become lists; what is frozen is set by its base class.
        object.__setattr__(self, "hypotheses", lines_of(self.hypotheses, "hypotheses"))
        check_lines({"hypotheses": self.hypotheses, "references": self.alternatives})

    @functools.cached_property
    def alternatives(self) -> list[list[str]]:
        """All accepted references of each line."""
        return accepted(self.references)

    @functools.cached_property
    def lines(self) -> list["Output"]:
        """Each line by itself."""
        return [
            dataclasses.replace(self, hypotheses=[hypothesis], references=[line])
            for hypothesis, line in zip(self.hypotheses, self.alternatives, strict=True)
        ]

    @functools.cached_property
    def edits(self) -> tuple[int, int]:
        """Word edits to the nearest references, and the words of these."""
        edits = words = 0
        for hypothesis, alternatives in zip(self.hypotheses, self.alternatives, strict=True):
            tokens = hypothesis.split()
            right = [alternative.split() for alternative in alternatives]
            # Of references equally near the longest counts, which gives the lower rate.
            fewest, minus_length = min((edit_distance(tokens, each), -len(each)) for each in right)
            edits += fewest
            words -= minus_length
        return edits, words


@dataclasses.dataclass(frozen=True)
class Statistics:
    """The numbers that a score is made of, for tests of significance."""

    rows: list[list[float]]
    """(sentence, statistic)"""
    score: Callable[[list[float]], float]
    """The score of a sum of rows."""
    signature: str


@dataclasses.dataclass(frozen=True)
class Metric:
    """A row of the table: how a metric is computed, compared and printed."""

    score: Callable[[Output], Score | None]
    """The score of all lines together, in percent; None where nothing can be counted."""
    by_sentence: Callable[[Output], SentenceScores] | None = None
    """The score of each line by itself; None if that is ``score`` of the line alone."""
    statistics: Callable[[Output], Statistics] | None = None
    """The statistics that two systems are compared by; None if this metric cannot compare
    them."""
    higher_is_better: bool = True
    format: str = ".2f"
    """How its score is printed."""
    fits: tuple[Literal["text", "pronunciations"], ...] = ("text",)
    """The kinds of output that it is printed for unless metrics are chosen."""
    in_validation: str | None = None
    """The title in a model card, if every validation of a run computes it. The default tokenizer
    counts there, and the others are too slow to be run as often."""
    alias: str | None = None
    """The name in papers, which the command line takes as well."""

    def sentence_scores(self, output: Output) -> SentenceScores:
        """The score of every line by itself; the signature is that of all lines."""
        if self.by_sentence is not None:
            return self.by_sentence(output)
        whole = self.score(output)
        scores = [self.score(line) for line in output.lines]
        return SentenceScores(
            [None if score is None else score.score for score in scores],
            "" if whole is None else whole.signature,
        )


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
    return _BLEU.score(Output(hypotheses, references, tokenize=tokenize))


def chrf(hypotheses: Sequence[str], references: References) -> Score:
    """chrF2, the F-score of character n-grams; higher is better.

    Source: Popović (2015), WMT.  Raises DataError.
    """
    return _CHRF.score(Output(hypotheses, references))


def accepted(references: References) -> list[list[str]]:
    """All accepted references of each line, as a list even if there is only one.

    A table has a line in each row. Raises DataError naming the line that accepts nothing, or
    something that is no text.
    """
    rows: Iterable[Any]
    if getattr(references, "ndim", 1) == 2:
        table: Any = getattr(references, "values", references)  # pandas holds it as an array
        rows = table.tolist()
    else:
        rows = texts_among(references, "references")

    lines = [
        list(each) if isinstance(each, Iterable) and not isinstance(each, str) else [each]
        for each in rows
    ]

    for number, alternatives in enumerate(lines, start=1):
        if not alternatives:
            raise DataError(f"line {number} must have at least one accepted reference, has none")
        check_texts(alternatives, number)

    return lines


def edit_distance(found: Sequence[str], right: Sequence[str]) -> int:
    """The fewest insertions, deletions and replacements that turn one sequence into the other.

        D(i, j) = min(D(i-1, j) + 1, D(i, j-1) + 1, D(i-1, j-1) + [saidᵢ ≠ rightⱼ])

    Source: Levenshtein (1966); Wagner and Fischer (1974).
    """
    import numpy as np  # not for the help of the command line, which reads the table

    numbers: dict[str, int] = {}
    rows, columns = sorted(
        ([numbers.setdefault(word, len(numbers)) for word in side] for side in (found, right)),
        key=len,
    )
    others, steps = np.array(columns, np.int64), np.arange(len(columns) + 1)
    above = steps  # one row of D is enough to compute the next

    for i, word in enumerate(rows, start=1):
        row = np.minimum(above[1:] + 1, above[:-1] + (others != word))
        # D(i, j-1) + 1 for all j at once: the least so far, and a step for each column since.
        above = np.minimum.accumulate(np.concatenate(([i], row)) - steps) + steps

    return int(above[-1])


def references_signature(alternatives: Sequence[Sequence[str]]) -> str:
    """How many references there are for each line, as sacrebleu says it."""
    count = _common_count(alternatives)
    return f"nrefs:{'var' if count == _VARIABLE else count}"


_VARIABLE = -1
"""sacrebleu's number of references where it differs from line to line."""


def _common_count(alternatives: Sequence[Sequence[str]]) -> int:
    counts = set(map(len, alternatives))
    return counts.pop() if len(counts) == 1 else _VARIABLE


@dataclasses.dataclass(frozen=True)
class _Sacrebleu:
    """A metric of sacrebleu, with the settings used everywhere here."""

    kind: Literal["bleu", "chrf", "ter"]
    word_order: int = 0
    """The longest n-grams of words that chrF counts."""
    lc_tok: bool = False
    """Whether Moses lower-cases and tokenizes the text before."""

    def _make(self, output: Output, *, effective_order: bool = False) -> "BLEU | CHRF | TER":
        """A metric that has not scored yet; ``effective_order`` is for BLEU of single sentences."""
        from sacrebleu.metrics.bleu import BLEU
        from sacrebleu.metrics.chrf import CHRF
        from sacrebleu.metrics.ter import TER

        match self.kind:
            case "bleu":
                tokenize = check_tokenizer("none" if self.lc_tok else output.tokenize)
                # ``force`` takes nothing but sacrebleu's advice away, which names options of its
                # own; ours is ``scoring.tokenized_problem``.
                return BLEU(tokenize=tokenize, force=True, effective_order=effective_order)
            case "chrf":
                return CHRF(word_order=self.word_order)
            case "ter":
                return TER()
            case _:
                assert_never(self.kind)

    def score(self, output: Output) -> Score:
        """Return the score of all lines together."""
        metric = self._make(output)

        # sacrebleu takes columns: the first reference of every line, then the second of every line.
        result = metric.corpus_score(
            self._read(output.hypotheses, output),
            self._columns(output),  # type: ignore[arg-type]  # None is allowed
        )
        return Score(float(result.score), self._signature(metric, output))

    def sentence_scores(self, output: Output) -> SentenceScores:
        """Return the score of every line by itself, as sacrebleu's ``sentence_score`` gives it."""
        # "effective order": a sentence of three words has no 4-grams, and its BLEU would be 0.
        metric = self._make(output, effective_order=True)

        # One call for all lines of a side: Moses' tokenizer is slow to call for each.
        read = self._read(output.hypotheses, output)
        right = [self._read(line, output) for line in output.alternatives]
        scores: list[float | None] = [
            float(metric.sentence_score(hypothesis, line).score)
            for hypothesis, line in zip(read, right, strict=True)
        ]

        # sacrebleu's signature counts the references of the last sentence only.
        metric.num_refs = _common_count(output.alternatives)
        return SentenceScores(scores, self._signature(metric, output))

    def statistics(self, output: Output) -> Statistics:
        """The numbers of each sentence whose sum decides the score."""
        metric = self._make(output)
        # The rows are private to sacrebleu, but its own tests of significance stand on them.
        rows: list[list[float]] = metric._extract_corpus_statistics(
            self._read(output.hypotheses, output),
            self._columns(output),  # type: ignore[arg-type]  # None is allowed
        )

        compute: Callable[[list[Any]], Any] = metric._compute_score_from_stats

        def score(total: list[float]) -> float:
            # A score is a function of summed counts, so that a resampled test set needs one sum and
            # no text.
            return float(compute(total).score)

        return Statistics(rows, score, self._signature(metric, output))

    def _read(self, lines: Sequence[str], output: Output) -> list[str]:
        return moses_lc_tok(lines, output.language) if self.lc_tok else list(lines)

    def _columns(self, output: Output) -> list[list[str | None]]:
        """The references as sacrebleu takes them: the first of every line, the second, and so on.

        None stands where a line has fewer.
        """
        read = [self._read(line, output) for line in output.alternatives]
        return [list(column) for column in itertools.zip_longest(*read)]

    def _signature(self, metric: "BLEU | CHRF | TER", output: Output) -> str:
        """sacrebleu's signature of a metric that has scored; for lc_tok with what came before."""
        signature = metric.get_signature()
        if self.lc_tok:
            import sacremoses

            # sacrebleu saw tokenized text and would sign that; whoever repeats the score needs what
            # came before.
            signature.update("case", "lc")
            signature.update("tok", f"moses-{language_code(output.language)}")
            signature.update("lang", "assumed" if output.language is None else None)
            signature.update("sacremoses", sacremoses.__version__)
        return str(signature)


_BLEU, _CHRF = _Sacrebleu("bleu"), _Sacrebleu("chrf")


def _sacrebleu(
    metric: _Sacrebleu,
    *,
    higher_is_better: bool = True,
    in_validation: str | None = None,
    alias: str | None = None,
) -> Metric:
    return Metric(
        metric.score,
        metric.sentence_scores,
        metric.statistics,
        higher_is_better=higher_is_better,
        in_validation=in_validation,
        alias=alias,
    )


def _exact_match(output: Output) -> Score:
    """Percent of lines that equal one of their references, character for character."""
    form = output.normalization
    lines = zip(normalize_all(output.hypotheses, form), output.alternatives, strict=True)
    equal = sum(hypothesis in normalize_all(right, form) for hypothesis, right in lines)
    suffix = "" if form == "none" else f"|norm:{form}"
    return Score(
        100.0 * equal / len(output.hypotheses),
        f"{references_signature(output.alternatives)}|case:mixed|tok:none{suffix}",
    )


def _wer(output: Output) -> Score | None:
    edits, words = output.edits
    if words == 0:
        return None
    counted = references_signature(output.alternatives)
    if output.pronunciations:
        # A word is a line here, so that a single wrong phone makes the word wrong. Compared as
        # lists, because how phones are spaced says nothing.
        wrong = sum(
            hypothesis.split() not in [each.split() for each in alternatives]
            for hypothesis, alternatives in zip(output.hypotheses, output.alternatives, strict=True)
        )
        return Score(100.0 * wrong / len(output.hypotheses), f"{counted}|word:line")
    return Score(100.0 * edits / words, f"{counted}|case:mixed|tok:none|word:token")


def _per(output: Output) -> Score | None:
    edits, phones = output.edits
    if phones == 0 or not output.pronunciations:
        return None
    return Score(100.0 * edits / phones, f"{references_signature(output.alternatives)}|phone:token")


@dataclasses.dataclass(frozen=True)
class Scores:
    """The table of metrics: each field holds a score in percent, and its row says the rest.

    ``evaluate``, ``compare`` and the command line read the rows, in this order.
    """

    bleu: Annotated[float, _sacrebleu(_BLEU, in_validation="BLEU")]
    """Cased, detokenized sacreBLEU; its signature names the tokenizer."""
    chrf: Annotated[float, _sacrebleu(_CHRF, in_validation="chrF")]
    """chrF2."""
    chrfpp: Annotated[float, _sacrebleu(_Sacrebleu("chrf", word_order=2), alias="chrf++")]
    """chrF2++: chrF2 with n-grams of words up to order 2 (Popović 2017)."""
    ter: Annotated[float, _sacrebleu(_Sacrebleu("ter"), higher_is_better=False)]
    """Translation edit rate: edits and shifts per 100 reference words (Snover et al. 2006)."""
    exact_match: Annotated[
        float,
        Metric(_exact_match, fits=("text", "pronunciations"), in_validation="exact match (%)"),
    ]
    """Lines translated exactly as the reference has it, in the form of ``Output.normalization``."""
    bleu_lc_tok: Annotated[float, _sacrebleu(_Sacrebleu("bleu", lc_tok=True))]
    """BLEU over lower-cased, Moses-normalized and -tokenized text, as Multi30k papers report it;
    the signature says if the language was assumed. Up to two points from ``bleu``."""
    wer: Annotated[float | None, Metric(_wer, higher_is_better=False, fits=("pronunciations",))]
    """Word error rate; lower is better. Words to insert, delete or replace per 100 words of the
    nearest references; of pronunciations, percent of the words pronounced as no reference has it.
    None if no reference holds a word."""
    per: Annotated[float | None, Metric(_per, higher_is_better=False, fits=("pronunciations",))]
    """Phone error rate: phones to insert, delete or replace per 100 phones of the nearest
    references. None unless the text is pronunciations."""


def _rows(table: type[Any]) -> dict[str, Metric]:
    # The rows stand in the annotations, beside the fields that hold their scores.
    hints = get_type_hints(table, include_extras=True)
    return {name: hint.__metadata__[0] for name, hint in hints.items()}


METRICS: Mapping[str, Metric] = _rows(Scores)
"""The rows of ``Scores`` by their names."""
COMPARED_BY = tuple(name for name, metric in METRICS.items() if metric.statistics is not None)
"""The metrics by which two systems can be compared."""
VALIDATED = tuple(name for name, metric in METRICS.items() if metric.in_validation is not None)
"""The metrics that every validation of a run computes."""


def shown_metrics(*, pronunciations: bool) -> tuple[str, ...]:
    """The metrics that are printed unless others are chosen."""
    if not pronunciations:
        return tuple(name for name, metric in METRICS.items() if "text" in metric.fits)
    fitting = [name for name, metric in METRICS.items() if "pronunciations" in metric.fits]
    # What counts words and phones comes before what fits any text.
    return tuple(sorted(fitting, key=lambda name: "text" in METRICS[name].fits))


def corpus_score(
    name: str,
    hypotheses: Sequence[str],
    references: References,
    language: str | None = None,
    tokenize: TokenizerName = DEFAULT_TOKENIZER,
    *,
    pronunciations: bool = False,
) -> Score | None:
    """The named score of all lines together; None where nothing can be counted.

    ``language`` matters to ``bleu_lc_tok`` only, ``tokenize`` to ``bleu`` only, ``pronunciations``
    to ``wer`` and ``per`` only. Raises as those do, and ConfigError for a name that the table does
    not have.
    """
    if name not in METRICS:
        raise ConfigError(f"a metric must be one of {', '.join(METRICS)}, got {name!r}")
    output = Output(hypotheses, references, language, tokenize, pronunciations)
    return METRICS[name].score(output)


NEAREST_BY = ("bleu", "chrf")
"""The metrics that ``nearest`` compares by; both count parts of a sentence in any script."""


def nearest(texts: Sequence[str], reference: str, name: str) -> int:
    """The number of the text that the named metric finds best; of equal ones the first.

    Source: Kim and Rush (2016), §3.3, "sequence-level interpolation".
    Raises ConfigError for a metric that is none of ``NEAREST_BY``.
    """
    if name not in NEAREST_BY:
        raise ConfigError(f"texts are compared by {' or '.join(NEAREST_BY)}, got {name!r}")

    # a sentence without spaces would be one word, right or wrong as a whole
    tokenize: TokenizerName = "char" if SPACELESS_LETTER.search(reference) else DEFAULT_TOKENIZER
    output = Output(texts, [reference] * len(texts), tokenize=tokenize)
    scores = METRICS[name].sentence_scores(output).scores
    return max(range(len(texts)), key=lambda number: scores[number] or 0.0)


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
