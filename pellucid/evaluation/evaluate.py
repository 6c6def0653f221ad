"""``evaluate``: translate a test set and score the translations."""

import dataclasses
import itertools
import logging
import time
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pellucid.core.errors import DataError
from pellucid.core.texts import counted, lines_of
from pellucid.decoding.sentences import MOST_SEVERAL
from pellucid.decoding.translator import Translator, require_translator
from pellucid.decoding.warnings import KINDS, WarningKind, kinds_of
from pellucid.evaluation.metrics import (
    METRICS,
    Judge,
    References,
    Scores,
    SentenceScores,
    accepted,
    check_lines,
)
from pellucid.evaluation.references import with_references
from pellucid.evaluation.scoring import bleu_problem, form_problems, scoring_of, words_problem
from pellucid.evaluation.signature import manifest_of, origin_signature
from pellucid.evaluation.tokenizers import TokenizerName
from pellucid.text.check.check import pairing_problem
from pellucid.text.config import file_format, require_one_side
from pellucid.text.corpus.lines import read_lines
from pellucid.text.corpus.pairs import parse_tsv
from pellucid.text.languages import base_code
from pellucid.text.normalization import compose, normalize
from pellucid.text.scripts import SPACELESS_LETTER
from pellucid.text.splitting import split_sentences

_MOST_SAME = 0.9
"""Share of equal sides from which on both are one text; of words to spell right half may be."""
_SAMPLED_LINES = 1000

_log = logging.getLogger("pellucid")

_NO_JUDGES: Mapping[str, Judge] = MappingProxyType({})


@dataclasses.dataclass(frozen=True)
class Evaluation(Scores):
    """How well and how fast a test set was translated; scores are in percent.

    Each metric of the table ``Scores`` is a field.
    """

    signatures: dict[str, str]
    """For each score by name: the metric's signature, then search, bundle, data and program."""
    sentences: int
    """How many lines were translated."""
    seconds: float
    """How long translating took, without scoring."""
    tokens_per_second: float
    """Generated target tokens per second of translating, each sentence's EOS included."""
    warnings: dict[WarningKind, int] = dataclasses.field(default_factory=dict)
    """How many translations have a warning of each kind (``Translation.warnings``)."""
    unscored: int | None = None
    """How many lines have no reference and are in no score; None if every line has one."""
    by_sentence: dict[str, SentenceScores] | None = None
    """The scores of each line by itself, under the names above. None unless they were requested. A
    line without a reference has none."""
    translations: list[str] | None = None
    """The translation of each line. None unless sentence scores were requested."""
    judged: dict[str, float] | None = None
    """The scores of metrics that are models, by name, each in its own unit; None without any."""
    log_probs: list[float | None] | None = None
    """The mean log-probability of a token of each, in nats; None as ``translations``."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values under the names of the fields, without those that are None."""
        table = dataclasses.asdict(self)
        return {name: value for name, value in table.items() if value is not None}


def evaluate(
    translator: Translator,
    sources: Sequence[str],
    references: References,
    *,
    language: str | None = None,
    tokenize: TokenizerName | None = None,
    beam_size: int | None = None,
    pronunciations: bool | None = None,
    per_sentence: bool = False,
    judges: Mapping[str, Judge] = _NO_JUDGES,
) -> Evaluation:
    """Translate ``sources`` and score the result against ``references``, line by line.

    A line's reference may be a list of all accepted ones. With ``pronunciations`` each line is one
    word whose tokens are phones, which decides what ``wer`` and ``per`` count; None means that it
    is so if every source line is one word, or the letters of one.

    ``language`` is that of the references, a code such as ``de``; None takes the translator's.
    ``bleu_lc_tok`` uses its rules (English ones if it is unknown, and the signature says so).
    ``tokenize`` is the sacreBLEU tokenizer of ``bleu``; None takes that of the language or of the
    script (``scoring_of``). ``beam_size`` replaces the translator's. ``per_sentence`` also scores
    each line by itself. Of several translations of a line the first one counts. ``judges`` are
    models that score the translations, by name; of several references they read the first.

    Warns where BLEU cannot count, of lines that do not belong together, and of references in
    another form than the translations (``form_problems``). Lines with text but without a reference
    are left out of the scores, with a warning; of several references the blank ones do not count.
    ``exact_match`` compares what normalization makes of both sides if the target tokenizer
    normalizes.

    Raises before the first line is translated: DataError if the line counts differ, or no source
    line has text or a reference, ConfigError for a language that is not a code or a beam size out
    of its range, and what ``check_tokenizer`` raises if a tokenizer lacks a package or a file.
    """
    require_translator(translator)
    sources, alternatives = lines_of(sources, "sources"), accepted(references)
    check_pairs(sources, alternatives)
    alternatives, rows = with_references(sources, alternatives)
    pronunciations = are_single_words(sources) if pronunciations is None else pronunciations
    if not pronunciations:
        warn_of_pairing(sources, [line[0] for line in alternatives])
        warn_of_several_sentences(translator, sources)

    problem = other_form_problem(translator, alternatives)
    if problem:
        _log.warning("%s", problem)

    # Whatever could be wrong with the scoring is found now, not after an hour of searching.
    right = [alternatives[row] for row in rows]
    language = language or base_code(translator.target_language)
    scoring = scoring_of(right, language, tokenize, pronunciations=pronunciations)
    scoring = dataclasses.replace(scoring, normalization=translator.target_tokenizer.normalization)
    problem = "" if pronunciations else bleu_problem(right, scoring)
    if problem:
        _log.warning("%s; go by chrf or exact_match", problem)
    if not pronunciations and (problem := words_problem(right)):
        _log.warning("%s", problem)
    settings = translator.settings.having(beam_size=beam_size).best_alone()

    began = time.perf_counter()

    # Log-probabilities cost time and change no score; sentences are not split, as a line has one
    # reference.
    text_only = settings.model_copy(update={"token_log_probs": False})
    translations = translator.without_log().translate(sources, text_only, split=False)
    seconds = time.perf_counter() - began
    warnings = Counter(kind for each in translations for kind in kinds_of(each.warnings))
    hypotheses = [translation.text for translation in translations]

    outputs = [hypotheses[row] for row in rows]
    sides = {"translations": outputs, "references": list(itertools.chain(*right))}
    for problem in [] if pronunciations else form_problems(sides, scoring):
        _log.warning("%s", problem)

    output = scoring.output(outputs, right)
    found = {name: metric.score(output) for name, metric in METRICS.items()}
    scores = {name: score for name, score in found.items() if score is not None}

    manifest = manifest_of(translator)
    engine = translator.engine.signature(settings)
    joined = map("\t".join, alternatives)
    origin = origin_signature(settings, manifest, sources, joined, engine, translator.glossary)

    by_sentence = None

    # The signature of all lines and not of one: they were made together.
    if per_sentence:
        lines = {name: METRICS[name].sentence_scores(output) for name in scores}
        by_sentence = {
            name: SentenceScores(
                _spread(each.scores, rows, len(sources)), f"{each.signature}|{origin}"
            )
            for name, each in lines.items()
        }

    texts = [sources[row] for row in rows], outputs, [line[0] for line in right]
    judged = {name: each.judge(*texts) for name, each in judges.items()}
    for name, scored in judged.items():
        if by_sentence is not None:
            spread = _spread(scored.by_sentence, rows, len(sources))
            by_sentence[name] = SentenceScores(spread, f"{scored.signature}|{origin}")

    signed = {name: each.signature for name, each in scores.items()}
    signed |= {name: each.signature for name, each in judged.items()}

    # One more for EOS; blank lines are not translated.
    token_count = sum(len(each.tokens) + 1 for each in translations if each.source.strip())
    values: dict[str, Any] = {
        name: None if score is None else score.score for name, score in found.items()
    }
    return Evaluation(
        **values,
        signatures={name: f"{signature}|{origin}" for name, signature in signed.items()},
        judged={name: scored.score for name, scored in judged.items()} or None,
        sentences=len(hypotheses),
        seconds=seconds,
        tokens_per_second=token_count / seconds,
        warnings={kind: warnings[kind] for kind in KINDS if warnings[kind]},
        unscored=len(sources) - len(rows) or None,
        by_sentence=by_sentence,
        translations=hypotheses if per_sentence else None,
        log_probs=[each.mean_log_prob(settings.penalty) for each in translations]
        if per_sentence
        else None,
    )


def check_pairs(sources: Sequence[str], references: Sequence[object]) -> None:
    """Raise DataError if the line counts differ, or no source line has text."""
    check_lines({"sources": sources, "references": references})
    if not any(map(str.strip, sources)):
        raise DataError(
            "no source line has text, so there is nothing to translate, got"
            f" {counted(len(sources), 'blank line')}",
            hint="is the file of sources the right one?",
        )


def warn_of_pairing(sources: Sequence[str], references: Sequence[str]) -> None:
    """Log a warning if these lines do not belong together, going by lengths, digits and marks, if
    they are the same text, and of references without a source."""
    if problem := pairing_problem(sources, references):
        _log.warning("sources and references: %s", problem)

    pairs = [(normalize(a), normalize(b)) for a, b in zip(sources, references, strict=True)]
    same = sum(source == reference != "" for source, reference in pairs)
    if same > _MOST_SAME * len(pairs):
        _log.warning(
            "%s of %s references are the text of their source: are they the right file?",
            f"{same:,}",
            f"{len(pairs):,}",
        )
    blank = _numbers(not source and bool(reference) for source, reference in pairs)
    if blank:
        _log.warning(
            "%s of %s have a reference and no source, and count as wrong; the first is line %d",
            f"{len(blank):,}",
            counted(len(pairs), "line"),
            blank[0],
        )


def warn_of_several_sentences(translator: Translator, sources: Sequence[str]) -> None:
    """Log a warning if many lines hold several sentences, which ``translator`` translates one by
    one, but are scored as a whole."""
    some = sources[:: -(-len(sources) // _SAMPLED_LINES)]
    language = translator.source_language
    several = sum(len(split_sentences(each, language)) > 1 for each in some)
    if translator.split and several > MOST_SEVERAL * len(some):
        _log.warning(
            "%.0f%% of the sources hold several sentences, which are translated as one here, since"
            " a line has one reference, and one by one by pellucid translate: for the scores of"
            " that put each sentence on a line of its own",
            100 * several / len(some),
        )


def _spread(scores: Sequence[float | None], rows: Sequence[int], count: int) -> list[float | None]:
    """The scores at their rows among ``count`` lines; the other lines have none."""
    spread: list[float | None] = [None] * count
    for row, score in zip(rows, scores, strict=True):
        spread[row] = score
    return spread


def other_form_problem(translator: Translator, references: Sequence[Sequence[str]]) -> str:
    """Why translations cannot equal references that are not normalized; empty if they can.

    White space is no reason: no metric sees which it is.
    """
    if translator.target_tokenizer.normalization == "none":
        return ""

    count = counted(len(references), "line")
    problems = []
    decomposed = _numbers(
        not all(unicodedata.is_normalized("NFC", each) for each in line) for line in references
    )
    if decomposed:
        problems.append(
            f"the references of {len(decomposed):,} of {count} have accents apart from their"
            f" letters (not NFC), first in line {decomposed[0]}; translations have them composed,"
            " so the scores are too low: pellucid check --fix composes"
        )

    foreign = [_never_written(line) for line in references]
    lines = _numbers(map(bool, foreign))
    if lines:
        most = Counter(itertools.chain(*foreign)).most_common(_MOST_NAMED)
        named = ", ".join(f"U+{ord(each):04X}" for each, _ in most)
        problems.append(
            f"the references of {len(lines):,} of {count} have characters that no translation has,"
            f" as the tokenizer normalizes text ({named}), first in line {lines[0]}; so the scores"
            " are too low: remove or replace them"
        )
    return "; ".join(problems)


_MOST_NAMED = 3
"""Characters that a warning names."""


def _numbers(holds: Iterable[bool]) -> list[int]:
    """The numbers, from 1, of the lines for which it holds."""
    return [number for number, each in enumerate(holds, start=1) if each]


def _never_written(line: Sequence[str]) -> list[str]:
    """The characters of references that normalization removes or replaces, without spaces."""
    found = {
        each
        for text in line
        if (plain := normalize(text)) != text
        for each in set(compose(text)) - set(plain)
        if not each.isspace()
    }
    return sorted(found)


def are_single_words(sources: Sequence[str]) -> bool:
    """True if every line is a single word, or one that is spelled letter by letter.

    False for text in a script without spaces between words, which does not show where they end.
    """
    if any(map(SPACELESS_LETTER.search, sources)):
        return False
    lines = [line.split() for line in sources]
    return all(len(tokens) <= 1 for tokens in lines) or all(
        len(token) == 1 for tokens in lines for token in tokens
    )


def read_test_set(
    source: Path, references: Sequence[Path] = ()
) -> tuple[list[str], list[list[str]]]:
    """The sources, and for each the list of its accepted translations.

    Every file of ``references`` has one accepted translation per line. Without any, ``source`` is
    TSV: the source, and after tabs its accepted translations.

    Raises DataError if the line counts differ, a line accepts nothing or a table begins with names
    of columns, as ``require_one_side``, and as ``read_lines``.
    """
    if not references:
        return _read_table(source)

    require_one_side(*map(str, (source, *references)))
    sources = read_lines(source)
    columns = [read_lines(path) for path in references]
    names = [f"references {number}" for number in range(1, len(columns) + 1)]
    names = names if len(columns) > 1 else ["references"]
    check_lines({"sources": sources, **dict(zip(names, columns, strict=True))})
    return sources, [list(line) for line in zip(*columns, strict=True)]


def _read_table(path: Path) -> tuple[list[str], list[list[str]]]:
    if file_format(str(path)) != "tsv":
        raise DataError(
            f"{path} must come with a file of references, or be a .tsv file that holds them",
            hint="each line of it: source, tab, reference, and further references behind tabs",
        )

    rows = [line.split("\t") for line in read_lines(path)]
    single = [number for number, row in enumerate(rows, start=1) if len(row) == 1]
    if single:
        raise DataError(
            f"{path}: a line must be source, tab, reference (and more behind tabs);"
            f" {len(single)} of {len(rows)} have no tab, the first is line {single[0]}"
        )

    if rows:
        parse_tsv("\t".join(rows[0][:2]), str(path), 1)  # for its refusal of a header

    # Ids and scores beside a pair would be texts of their own.
    columns = list(itertools.zip_longest(*rows, fillvalue=""))
    bare = [
        number
        for number, cells in enumerate(columns, start=1)
        if any(cells) and not any(map(str.isalpha, "".join(cells)))
    ]
    if len(columns) > 2 and 0 < len(bare) < len(columns):
        _log.warning(
            "%s: column %d of %d has no letter in any line, and counts as %s: is it a text?",
            path,
            bare[0],
            len(columns),
            "the source" if bare[0] == 1 else "a reference",
        )

    # A spreadsheet fills the lines with fewer references with empty cells.
    filled = [[each for each in row[1:] if each.strip()] or row[1:2] for row in rows]
    return [row[0] for row in rows], filled
