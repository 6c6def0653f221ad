"""``pellucid fill``: predicts the masked words of a text with an encoder-only model."""

import json
import sys
from itertools import islice
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pellucid.decoding.plain_text import Filled


@click.command()
@click.argument("bundle")
@click.argument("text", nargs=-1)
@click.option("-n", "--count", type=click.IntRange(1), default=5, help="Guesses for each mask.")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object a line.")
def fill(bundle: str, text: tuple[str, ...], count: int, as_json: bool) -> None:
    """Guess what stands behind each [MASK] of TEXT, or of each line of stdin.

    BUNDLE is a model trained with model.kind = "encoder". Each text gives the filled text, and
    below it each mask's likeliest tokens with their probabilities.

    \b
    Examples:
      pellucid train encoder --out runs/encoder
      pellucid fill runs/encoder "the [MASK] is black"
    """
    from pellucid.bundle import load_any_bundle
    from pellucid.decoding.plain_text import fill_masks
    from pellucid.text.corpus.lines import iterate_lines

    model = load_any_bundle(bundle)
    # Line by line, so that the command works as a filter of an endless stream.
    for line in text or iterate_lines(sys.stdin.buffer):
        filled = fill_masks(model, line, count)
        if as_json:
            entry = {"text": filled.text, "source": line, "candidates": _named(filled)}
            click.echo(json.dumps(entry, ensure_ascii=False))
            continue
        click.echo(filled.text)
        for candidates in filled.candidates:
            words = (f"{word} {probability:.1%}" for word, probability in islice(candidates, count))
            click.echo("  " + "  ".join(words))


def _named(filled: "Filled") -> list[list[dict[str, object]]]:
    return [
        [{"token": word, "probability": probability} for word, probability in candidates]
        for candidates in filled.candidates
    ]
