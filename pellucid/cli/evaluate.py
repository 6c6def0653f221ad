"""``pellucid evaluate``: how well a model translates a test set."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pellucid.cli.search_options import engine_options, open_translator, search_options

if TYPE_CHECKING:
    from pellucid.evaluation.evaluate import Evaluation

_TEXT_METRICS = ("bleu", "chrf", "ter", "exact_match", "bleu_lc_tok")
_PRONUNCIATION_METRICS = ("wer", "per", "exact_match")
_METRICS = (*_TEXT_METRICS, "wer", "per")
_LANGUAGE_CODE_LENGTH = 2  # ISO 639-1


@click.command()
@click.argument("bundle")
@click.argument("source")
@click.argument("reference", nargs=-1)
@search_options
@engine_options
@click.option(
    "--language",
    help="Language of REFERENCE, such as de, for bleu_lc_tok.  [default: REFERENCE's suffix]",
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    type=click.Choice(_METRICS),
    help="Print this figure alone; may be given several times.  [default: those of text,"
    " or of pronunciations]",
)
@click.option(
    "--pronunciations/--no-pronunciations",
    default=None,
    help="Each line is one word, its tokens are phones: wer counts words pronounced wrong, per"
    " wrong phones.  [default: if each line of SOURCE is one word]",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def evaluate(
    bundle: str,
    source: str,
    reference: tuple[str, ...],
    language: str | None,
    metrics: tuple[str, ...],
    pronunciations: bool | None,
    as_json: bool,
) -> None:
    """Translate SOURCE with BUNDLE and score it against REFERENCE.

    Several files of references, or a SOURCE.tsv with further columns and no REFERENCE, give several
    accepted translations of each line.

    \b
    Examples:
      pellucid evaluate runs/en-de test.en test.de --beam-size 5 --json
      pellucid evaluate runs/cmudict valid.refs.tsv --metric wer --metric per
    """
    from pellucid.evaluation.evaluate import evaluate as evaluate_lines
    from pellucid.evaluation.references import read_test_set
    from pellucid.text.config import file_format

    if not reference and file_format(source) != "tsv":
        raise click.UsageError(
            "Missing argument 'REFERENCE...', unless SOURCE is a .tsv file with the references."
        )
    if pronunciations is None and "per" in metrics:
        pronunciations = True
    sources, references = read_test_set(Path(source), [Path(name) for name in reference])
    translator = open_translator(bundle)
    language = language or _language_of(reference[0] if reference else source)
    evaluation = evaluate_lines(
        translator, sources, references, language=language, pronunciations=pronunciations
    )
    if as_json:
        table = evaluation.to_dict()
        left_out = set(_METRICS) - set(metrics) if metrics else set()
        kept = {name: value for name, value in table.items() if name not in left_out}
        click.echo(json.dumps(kept, ensure_ascii=False))
        return
    _print(evaluation, metrics)


def _print(evaluation: "Evaluation", metrics: tuple[str, ...]) -> None:
    shown = metrics or (_PRONUNCIATION_METRICS if evaluation.per is not None else _TEXT_METRICS)
    for name in shown:
        value = getattr(evaluation, name)
        if value is None:
            click.echo(f"{name:12} {'-':>6}   nothing to count: no reference holds a word")
        else:
            click.echo(f"{name:12} {value:6.2f}   {evaluation.signatures[name]}")
    click.echo(
        f"{evaluation.sentences:,} sentences in {evaluation.seconds:.1f} s,"
        f" {evaluation.tokens_per_second:,.0f} tokens/s"
    )


def _language_of(path: str) -> str | None:
    """The language that a file name such as ``test.de`` or ``test.de.gz`` ends in, if any."""
    suffix = Path(path.removesuffix(".gz")).suffix.removeprefix(".")
    return suffix if len(suffix) == _LANGUAGE_CODE_LENGTH and suffix.isalpha() else None
