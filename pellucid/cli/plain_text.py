"""``pellucid fill`` and ``pellucid continue``: models of one language complete a text.

Both work line by line, so that they are filters of an endless stream.
"""

import json
from itertools import islice
from typing import TYPE_CHECKING

import click

from pellucid.cli.options import (
    Choices,
    changed_settings,
    continuation_options,
    json_lines_option,
    sampling_options,
)
from pellucid.cli.streams import standard_input

if TYPE_CHECKING:
    from pellucid.decoding.plain_text import Filled


@click.command()
@click.argument("bundle")
@click.argument("text", nargs=-1)
@click.option("-n", "--count", type=click.IntRange(1), default=5, help="Guesses for each mask.")
@json_lines_option
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

    # Asked for before the model, which takes seconds.
    lines = text or iterate_lines(standard_input())
    model = load_any_bundle(bundle)
    for line in lines:
        filled = fill_masks(model, line, count)
        if as_json:
            entry = {"text": filled.text, "source": line, "candidates": _named(filled)}
            click.echo(json.dumps(entry, ensure_ascii=False))
            continue
        click.echo(filled.text)
        # One line for each mask, in the order of the text.
        for candidates in filled.candidates:
            words = (f"{word} {probability:.1%}" for word, probability in islice(candidates, count))
            click.echo("  " + "  ".join(words))


def _named(filled: "Filled") -> list[list[dict[str, object]]]:
    return [
        [{"token": word, "probability": probability} for word, probability in candidates]
        for candidates in filled.candidates
    ]


@click.command("continue")
@click.argument("bundle")
@click.argument("text", nargs=-1)
@click.option(
    "--new-tokens",
    type=click.IntRange(1),
    default=40,
    help="The most tokens to add.",
    show_default=True,
)
@continuation_options
@sampling_options
@json_lines_option
def continue_(
    bundle: str,
    text: tuple[str, ...],
    new_tokens: int,
    search: Choices,
    sampling: Choices,
    as_json: bool,
) -> None:
    """Go on with TEXT, or with each line of stdin.

    BUNDLE is a model trained with model.kind = "decoder".

    \b
    Examples:
      pellucid train decoder --out runs/decoder
      pellucid continue runs/decoder "the little cat"
      pellucid continue runs/decoder "we see" --sample --top-k 20 --n-best 3
    """
    from pellucid.bundle import load_any_bundle
    from pellucid.decoding.config import DecodingConfig
    from pellucid.decoding.plain_text import continue_text
    from pellucid.text.corpus.lines import iterate_lines

    # Asked for before the model, which takes seconds.
    lines = text or iterate_lines(standard_input())
    model = load_any_bundle(bundle)
    # The settings that the model was trained to be used with; options change single ones.
    settings = DecodingConfig.carried(model.settings.get("decoding", {}), f"{bundle}: decoding")
    settings = changed_settings(settings, search, sampling)

    for line in lines:
        found = continue_text(model, line, settings, new_tokens)
        if as_json:
            click.echo(json.dumps({"source": line, "texts": found}, ensure_ascii=False))
        else:
            click.echo("\n".join(found))
