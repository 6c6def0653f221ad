"""``pellucid evaluate``: how well a model translates a test set."""

import json
from pathlib import Path

import click

from pellucid.cli.search_options import engine_options, open_translator, search_options

_LANGUAGE_CODE_LENGTH = 2  # ISO 639-1


@click.command()
@click.argument("bundle")
@click.argument("source")
@click.argument("reference")
@search_options
@engine_options
@click.option(
    "--language",
    help="Language of REFERENCE, such as de, for bleu_lc_tok.  [default: REFERENCE's suffix]",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def evaluate(
    bundle: str,
    source: str,
    reference: str,
    language: str | None,
    as_json: bool,
) -> None:
    """Translate SOURCE with BUNDLE and score it against REFERENCE.

    \b
    Example:
      pellucid evaluate runs/en-de test.en test.de --beam-size 5 --json
    """
    from pellucid.evaluation.evaluate import evaluate as evaluate_lines
    from pellucid.text.lines import read_lines

    sources, references = read_lines(Path(source)), read_lines(Path(reference))
    translator = open_translator(bundle)
    language = language or _language_of(reference)
    evaluation = evaluate_lines(translator, sources, references, language=language)
    if as_json:
        click.echo(json.dumps(evaluation.to_dict(), ensure_ascii=False))
        return
    for name in ("bleu", "chrf", "ter", "exact_match", "bleu_lc_tok"):
        signature = evaluation.signatures[name]
        click.echo(f"{name:12} {getattr(evaluation, name):6.2f}   {signature}")
    click.echo(
        f"{evaluation.sentences:,} sentences in {evaluation.seconds:.1f} s,"
        f" {evaluation.tokens_per_second:,.0f} tokens/s"
    )


def _language_of(path: str) -> str | None:
    """The language that a file name such as ``test.de`` or ``test.de.gz`` ends in, if any."""
    suffix = Path(path.removesuffix(".gz")).suffix.removeprefix(".")
    return suffix if len(suffix) == _LANGUAGE_CODE_LENGTH and suffix.isalpha() else None
