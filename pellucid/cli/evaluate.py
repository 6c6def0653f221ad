"""``pellucid evaluate`` and ``score``: figures of a model's translations, and of given ones."""

import contextlib
import dataclasses
import json
import logging
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pellucid.cli.options import (
    FILE_PATH,
    NAME,
    Choices,
    engine_options,
    ensemble_option,
    json_lines_option,
    json_option,
    length_penalty_option,
    mbr_option,
    open_translator,
    refuse_to_replace,
    require_model,
    require_texts,
    single_search_options,
)
from pellucid.cli.translate import figures
from pellucid.core.errors import ConfigError, DataError
from pellucid.evaluation.metrics import METRICS, shown_metrics
from pellucid.evaluation.tokenizers import TOKENIZERS
from pellucid.text.corpus.addresses import address_of
from pellucid.text.corpus.writers import open_output

if TYPE_CHECKING:
    from pellucid.decoding.result import Translation
    from pellucid.decoding.translator import Translator
    from pellucid.evaluation.evaluate import Evaluation
    from pellucid.evaluation.metrics import Judge

_log = logging.getLogger("pellucid")
_Command = TypeVar("_Command", bound=Callable[..., Any])
_ALIASES = {metric.alias: name for name, metric in METRICS.items() if metric.alias is not None}


class _Metric(click.Choice[str]):
    """A metric by its name in Python, or by the name it has in papers; or KIND=FOLDER, a model."""

    def __init__(self, names: Sequence[str], *, takes_models: bool) -> None:
        super().__init__(names)
        self._takes_models = takes_models

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name of the metric in Python; a model as it was given."""
        if self._takes_models and "=" in value:
            return value
        name: str = super().convert(value, param, ctx)
        return _ALIASES.get(name, name)


def metric_option(
    names: Sequence[str], help_text: str, *, takes_models: bool = False
) -> Callable[[_Command], _Command]:
    """The option ``--metric``, which may be given several times."""
    aliases = [alias for alias, name in _ALIASES.items() if name in names]
    return click.option(
        "--metric",
        "metrics",
        multiple=True,
        type=_Metric((*names, *aliases), takes_models=takes_models),
        help=help_text,
    )


tokenize_option = click.option(
    "--tokenize",
    type=click.Choice(TOKENIZERS),
    help="sacreBLEU's tokenizer for bleu.  [default: that of the language or the script]",
)
language_option = click.option(
    "--language",
    help="Language of REFERENCE, such as de, for bleu_lc_tok and --tokenize.  [default:"
    " by REFERENCE's name, or that of the model]",
)


@click.command()
@click.argument("bundle", type=NAME)
@click.argument("source", type=NAME)
@click.argument("reference", type=NAME, nargs=-1)
@single_search_options
@mbr_option
@ensemble_option
@engine_options
@language_option
@tokenize_option
@metric_option(
    tuple(METRICS),
    "Print this figure alone; may be given several times. chrf++ and chrfpp are one."
    " metricx-24=FOLDER is a model on your disk, lower is better; also metricx-24-qe, metricx-23"
    " and metricx-23-qe.  [default: those of text, or of pronunciations]",
    takes_models=True,
)
@click.option(
    "--pronunciations/--no-pronunciations",
    default=None,
    help="Each line is one word, its tokens are phones: wer counts words pronounced wrong, per"
    " wrong phones.  [default: if each line of SOURCE is one word]",
)
@click.option(
    "--sentence-scores",
    type=FILE_PATH,
    help="Write the scores of each line by itself to this file: its number, its scores, source,"
    " translation and references; as TSV, or as JSON lines if its name ends in .jsonl.",
)
@click.option(
    "--robustness",
    is_flag=True,
    help="BLEU of copies of SOURCE instead: in upper case, in Title Case, without the final stop,"
    " with typing errors, with emoji, with stray spaces.",
)
@click.option(
    "--calibrate",
    is_flag=True,
    help="Keep in BUNDLE what its probabilities say about the quality of its translations, for"
    " pellucid translate --below. Needs 100 lines or more that it was not trained on.",
)
@click.option(
    "--glossary",
    type=FILE_PATH,
    help="TSV file of terms that translations must have, as pellucid translate takes it; also says"
    " how many of them are there.",
)
@click.option(
    "--domain",
    "domains",
    multiple=True,
    help="With --glossary: only its terms of this domain, and those of none; may be given many"
    " times.",
)
@json_option
def evaluate(
    bundle: str,
    source: str,
    reference: tuple[str, ...],
    search: Choices,
    others: tuple[str, ...],
    engine: Choices,
    language: str | None,
    tokenize: Any,
    metrics: tuple[str, ...],
    pronunciations: bool | None,
    sentence_scores: Path | None,
    robustness: bool,
    calibrate: bool,
    glossary: Path | None,
    domains: tuple[str, ...],
    as_json: bool,
) -> None:
    """Translate SOURCE with BUNDLE and score it against REFERENCE.

    Several files of references, or a SOURCE.tsv with further columns and no REFERENCE, give several
    accepted translations of each line.

    \b
    Examples:
      pellucid evaluate runs/en-de test.en test.de --beam-size 5 --json
      pellucid evaluate runs/cmudict valid.refs.tsv --metric wer --metric per
      pellucid evaluate runs/en-zh test.en test.zh --metric chrf++ --sentence-scores scores.tsv
    """
    if domains and glossary is None:
        raise click.UsageError("--domain must go with --glossary.")
    if robustness and (metrics or pronunciations is not None or sentence_scores):
        raise click.UsageError(
            "--robustness is BLEU, and takes no --metric, --pronunciations or --sentence-scores."
        )

    if calibrate and (others or robustness or glossary is not None or "mbr" in search):
        raise click.UsageError(
            "--calibrate is for one model as it is, and takes no --with, --robustness, --glossary"
            " or --mbr."
        )
    if pronunciations is False and "per" in metrics:
        raise click.UsageError("--metric per counts phones, and takes no --no-pronunciations.")

    # Before the imports, which take longer than to find that nothing is there.
    for model in (bundle, *others):
        require_model(model)
    require_texts(source, *reference)
    refuse_to_replace("--sentence-scores", sentence_scores, source, *reference, glossary)

    from pellucid.evaluation.evaluate import evaluate as evaluate_lines
    from pellucid.evaluation.evaluate import read_test_set
    from pellucid.text.config import file_format
    from pellucid.text.glossary import Glossary, count_present

    if not reference and file_format(source) != "tsv":
        raise click.UsageError(
            "Missing argument 'REFERENCE...', unless SOURCE is a .tsv file with the references."
        )
    if pronunciations is None and "per" in metrics:
        # ``per`` counts phones, so its texts are pronunciations.
        pronunciations = True

    judges = _open_judges([each for each in metrics if "=" in each])
    metrics = tuple(each.partition("=")[0] for each in metrics)
    if sentence_scores is not None:
        _check_scores_file(sentence_scores)
    sources, references = read_test_set(Path(source), [Path(name) for name in reference])
    # After the test set was read: a missing file fails before the model is opened.
    terms = None if glossary is None else Glossary.read(glossary, domains)
    translator = open_translator(bundle, search, engine=engine, others=others)
    translator.glossary = terms
    if reference and (problem := other_languages(translator, source, reference[0])):
        _log.warning("%s", problem)
    if calibrate:  # the scale is learned from translations as the model gives them
        plain = translator.settings.changed({"below": None})
        translator = translator.with_settings(plain)
    if reference and language is None:
        language = named_language(source, reference[0])
    if robustness:
        _evaluate_copies(translator, sources, references, language, tokenize, as_json=as_json)
        return

    # The file is opened first: one that cannot be written must not cost a translation.
    with contextlib.ExitStack() as stack:
        # Renamed into place when the block ends: an error leaves an older file as it was.
        file = stack.enter_context(open_output(str(sentence_scores))) if sentence_scores else None
        evaluation = evaluate_lines(
            translator,
            sources,
            references,
            language=language,
            tokenize=tokenize,
            pronunciations=pronunciations,
            per_sentence=file is not None or terms is not None or calibrate,
            judges=judges,
        )
        if file is not None:
            as_objects = address_of(str(sentence_scores)).suffix == ".jsonl"
            rows = _sentence_rows(evaluation, sources, references, metrics, as_json=as_objects)
            for row in rows:  # the writer of zstandard has no writelines
                file.write(row.encode() + b"\n")

    if calibrate:
        _calibrate(bundle, evaluation)

    present, count = (
        (0, 0) if terms is None else count_present(terms, sources, evaluation.translations or ())
    )
    if as_json:
        table = evaluation.to_dict()
        left_out = {"by_sentence", "translations", "log_probs"}  # as long as the test set
        # ``--metric`` chooses figures; signatures and times stay.
        left_out |= METRICS.keys() - set(metrics) if metrics else set()
        kept = {name: value for name, value in table.items() if name not in left_out}
        if terms is not None:
            kept["terms"] = {"present": present, "of": count}
        click.echo(json.dumps(kept, ensure_ascii=False))
        return
    _print(evaluation, metrics)
    if terms is not None:
        click.echo(f"terms in their translations: {present:,} of {count:,}")


def _open_judges(given: Sequence[str]) -> "dict[str, Judge]":
    """The models that were given as KIND=FOLDER, by their kind."""
    if not given:
        return {}
    from pellucid.backends.metricx import VERSIONS, MetricX

    judges: dict[str, Judge] = {}
    for each in given:
        name, _, folder = each.partition("=")
        if name == "comet":
            raise ConfigError(
                "a model of COMET is a checkpoint of Lightning (.ckpt), a pickle that may run code,"
                " and is not read",
                hint="metricx-24=FOLDER is a metric of its kind; docs/decisions.md says why",
            )
        kind = next((version for version in VERSIONS if version == name), None)
        if kind is None:
            raise ConfigError(f"a metric that is a model is {', '.join(VERSIONS)}, got {name!r}")
        if name in judges:
            raise ConfigError(f"--metric {name} must be given once")
        judges[name] = MetricX(Path(folder), kind)
    return judges


def _calibrate(bundle: str, evaluation: "Evaluation") -> None:
    """Keep in the bundle what its translations of a test set say of others. Raises DataError."""
    from pellucid.bundle import QUALITY_KEY, UNSURE_KEY, note_in_bundle
    from pellucid.decoding.quality import LEAST_TRANSLATIONS, quality_points
    from pellucid.decoding.suspicious import unsure_below

    assert evaluation.log_probs is not None
    assert evaluation.by_sentence is not None
    points = quality_points(evaluation.log_probs, evaluation.by_sentence["chrf"].scores)
    if points is None:
        raise DataError(
            f"--calibrate needs {LEAST_TRANSLATIONS} lines with text at least,"
            f" got {evaluation.sentences:,}"
        )
    unsure = unsure_below([each for each in evaluation.log_probs if each is not None])
    folder = note_in_bundle(bundle, {QUALITY_KEY: points, UNSURE_KEY: unsure})
    lowest, highest = points[0][1], points[-1][1]
    click.echo(f"calibrated {folder}: qualities from {lowest:.2f} to {highest:.2f}", err=True)


def _evaluate_copies(
    translator: "Translator",
    sources: Sequence[str],
    references: Sequence[Sequence[str]],
    language: str | None,
    tokenize: Any,
    *,
    as_json: bool,
) -> None:
    from pellucid.evaluation.robustness import COPIES, evaluate_robustness

    scores = evaluate_robustness(
        translator, sources, references, language=language, tokenize=tokenize
    )
    if as_json:
        click.echo(json.dumps({name: dataclasses.asdict(each) for name, each in scores.items()}))
        return

    click.echo("copy        BLEU    loss")
    for name, score in scores.items():
        loss = "" if name == "original" else f"{score.loss:.2f}"
        click.echo(f"{name:10} {score.bleu:5.2f}  {loss:>6}   {COPIES[name]}")
    emoji = scores["emoji"]
    click.echo(f"{emoji.emoji_lost:,} of {emoji.emoji:,} emoji lost")
    click.echo(scores["original"].signature)


def _shown(evaluation: "Evaluation", metrics: tuple[str, ...]) -> tuple[str, ...]:
    """The requested metrics, or by default those for text or for pronunciations."""
    return metrics or shown_metrics(pronunciations=evaluation.per is not None)


def _check_scores_file(path: Path) -> None:
    """Raise ConfigError for a name that says another format than TSV or JSON lines."""
    address = address_of(path)
    if address.table or address.column:
        raise ConfigError(
            f"the scores of sentences are TSV or JSON lines, got {path}",
            hint="for example scores.tsv, scores.tsv.gz or scores.jsonl.zst",
        )


def _sentence_rows(
    evaluation: "Evaluation",
    sources: Sequence[str],
    references: Sequence[Sequence[str]],
    metrics: tuple[str, ...],
    *,
    as_json: bool,
) -> Iterator[str]:
    """A line for each sentence: an object of JSON, or a row of TSV.

    The first row of TSV has the names of the columns, with signatures of the scores. A score that
    does not exist is null, or an empty cell.
    """
    by_sentence, translations = evaluation.by_sentence, evaluation.translations
    assert by_sentence is not None
    assert translations is not None
    # Some metrics belong to a whole text and have no number for a sentence.
    names = [name for name in _shown(evaluation, metrics) if name in by_sentence]
    # The line with most references decides the number of columns; others end in empty cells.
    width = max(map(len, references))
    if not as_json:
        yield _row(
            "line",
            *(f"{name}|{by_sentence[name].signature}" for name in names),
            "source",
            "translation",
            *(f"reference {n}" if n > 1 else "reference" for n in range(1, width + 1)),
        )

    for index, texts in enumerate(zip(sources, translations, references, strict=True)):
        source, translation, accepted = texts
        scores = {name: by_sentence[name].scores[index] for name in names}
        if as_json:
            row = {
                "line": index + 1,
                **scores,
                "source": source,
                "translation": translation,
                "references": list(accepted),
            }
            yield json.dumps(row, ensure_ascii=False)
        else:
            figures = ("" if score is None else f"{score:.4f}" for score in scores.values())
            empty = [""] * (width - len(accepted))
            yield _row(str(index + 1), *figures, source, translation, *accepted, *empty)


def _row(*cells: str) -> str:
    """Cells separated by tabs; tabs and line feeds inside them become spaces."""
    return "\t".join(cell.replace("\t", " ").replace("\n", " ") for cell in cells)


def _print(evaluation: "Evaluation", metrics: tuple[str, ...]) -> None:
    for name in _shown(evaluation, metrics):
        if evaluation.judged is not None and name in evaluation.judged:
            click.echo(f"{name:12} {evaluation.judged[name]:6.2f}   {evaluation.signatures[name]}")
            continue
        value = getattr(evaluation, name)
        if value is None:
            click.echo(f"{name:12} {'-':>6}   nothing to count: no reference holds a word")
        else:
            click.echo(f"{name:12} {value:6{METRICS[name].format}}   {evaluation.signatures[name]}")
    click.echo(
        f"{evaluation.sentences:,} sentences in {evaluation.seconds:.1f} s,"
        f" {evaluation.tokens_per_second:,.0f} tokens/s"
    )
    if evaluation.warnings:
        from pellucid.decoding.warnings import in_words

        click.echo(f"translations with warnings: {in_words(evaluation.warnings)}")


def other_languages(translator: "Translator", source: str, reference: str) -> str | None:
    """A sentence if the names of a test set tell other languages than the model translates."""
    from pellucid.text.check.languages import languages_of_files, languages_problem, pairs_of

    model = translator.source_language, translator.target_language
    given = languages_of_files(source, reference)
    learned = pairs_of(getattr(translator.bundle, "settings", {}))
    return languages_problem(model, given, (source, reference), learned)


def named_language(source: str, reference: str) -> str | None:
    """The language that the name of a file of references tells, such as ``test.de`` or
    ``test.pt-BR.txt``, if any."""
    from pellucid.text.check.languages import languages_of_files
    from pellucid.text.languages import UNKNOWN

    language = languages_of_files(source, reference)[1]
    return None if language == UNKNOWN else language


_LINES_AT_A_TIME = 1024


@click.command()
@click.argument("bundle", type=NAME)
@click.argument("source", type=NAME)
@click.argument("target", type=NAME)
@length_penalty_option
@ensemble_option
@engine_options
@json_lines_option
def score(
    bundle: str,
    source: str,
    target: str,
    search: Choices,
    others: tuple[str, ...],
    engine: Choices,
    as_json: bool,
) -> None:
    """Print the probability that BUNDLE gives each line of TARGET as a translation of SOURCE's.

    Each pair gives a line: summed log-probability in nats, score, perplexity, with tabs
    between. The perplexity of the whole text stands in the last line of stderr.

    \b
    Example:
      pellucid score runs/en-de test.en test.de > scores.tsv
    """
    if engine.get("engine", "auto") not in ("auto", "torch"):
        raise click.UsageError(
            "score computes in torch, which alone gives the probabilities of given words; leave out"
            f" --engine {engine['engine']}."
        )
    for model in (bundle, *others):
        require_model(model)
    require_texts(source, target)

    from pellucid.evaluation.metrics import check_lines
    from pellucid.text.check.check import pairing_problem
    from pellucid.text.config import require_one_side
    from pellucid.text.corpus.lines import read_lines

    require_one_side(source, target)
    sources, targets = read_lines(Path(source)), read_lines(Path(target))
    check_lines({"source lines": sources, "target lines": targets})
    engine = {**engine, "engine": "torch"}
    translator = open_translator(bundle, search, engine=engine, others=others)
    if problem := other_languages(translator, source, target):
        _log.warning("%s", problem)
    if problem := pairing_problem(sources, targets):
        _log.warning("source and target: %s", problem)
    blank = [
        number
        for number, pair in enumerate(zip(sources, targets, strict=True), start=1)
        if not all(map(str.strip, pair))
    ]
    if blank:
        _log.warning(
            "%s a blank side, which is scored as an empty text; the first is line %d",
            "1 line has" if len(blank) == 1 else f"{len(blank):,} lines have",
            blank[0],
        )
    log_probs: list[float] = []
    token_count = 0

    # In portions, so that the first lines of a large file are printed early.
    for first in range(0, len(sources), _LINES_AT_A_TIME):
        chunk = slice(first, first + _LINES_AT_A_TIME)
        found = translator.score(sources[chunk], targets[chunk], first + 1)
        for number, scored in enumerate(found, first):
            log_probs.append(math.fsum(scored.token_log_probs))  # fsum: no rounding over long texts
            token_count += len(scored.token_log_probs)
            click.echo(_line(number, scored, log_probs[-1], as_json=as_json))

    # Of the whole text, so that long sentences weigh more than short ones.
    total = math.fsum(log_probs)
    summary = {
        "sentences": len(sources),
        "tokens": token_count,
        "log_prob": total,
        "perplexity": math.exp(min(-total / token_count, 709.0)),  # exp(710) is beyond a double
    }
    if as_json:
        click.echo(json.dumps({"corpus": summary}))
    else:
        click.echo(
            f"{len(sources):,} sentences, {token_count:,} tokens with the stops,"
            f" perplexity {summary['perplexity']:.4f}",
            err=True,
        )


def _line(number: int, scored: "Translation", log_prob: float, *, as_json: bool) -> str:
    if not as_json:
        return f"{log_prob:.6f}\t{scored.score:.6f}\t{scored.perplexity:.4f}"
    entry = {"id": number, "source": scored.source, "target": scored.text, **figures(scored)}
    # Here the target was given and stands under its own name.
    del entry["translation"]
    entry |= {"log_prob": log_prob, "perplexity": scored.perplexity}
    return json.dumps(entry, ensure_ascii=False)
