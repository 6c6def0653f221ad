"""``pellucid backtranslate``: source sentences for a target text, by a reverse model."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pellucid.cli.search_options import (
    engine_options,
    open_translator,
    sampling_options,
    single_search_options,
)
from pellucid.cli.synthesis import asked_noise, noise_options, write

if TYPE_CHECKING:
    from pellucid.text.tokenizers.interface import Tokenizer


@click.command()
@click.argument("reverse_bundle")
@click.argument("target_text")
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="File to write.")
@single_search_options
@sampling_options
@noise_options
@click.option("--tag", default="", help="Written before every made sentence, such as <bt>.")
@click.option(
    "--forward", help="The bundle that will learn from it: TAG must be made of its tokens."
)
@engine_options
@click.pass_obj
def backtranslate(
    obj: dict[str, bool],
    reverse_bundle: str,
    target_text: str,
    out: Path,
    tag: str,
    forward: str | None,
) -> int:
    """Write a source line for every line of the file TARGET_TEXT.

    REVERSE_BUNDLE translates from the target language into the source language. By default it
    searches with a beam; --sample draws, --noise spoils what was found. Blank lines stay blank. If
    it is stopped or killed, the same command goes on where it was.

    \b
    Examples:
      pellucid backtranslate runs/de-en news.de --out news.en --sample
      pellucid backtranslate runs/de-en news.de --out news.en --noise --tag "<bt>"
    """
    from pellucid.training.synthesis import Finish

    noise_seed, blank = asked_noise()
    translator = open_translator(reverse_bundle, figures=False)
    if tag:
        _check_tag(tag, forward, translator.bundle.target_tokenizer)

    settings = translator.settings.having(n_best=1)  # one source line for each target line
    translator = translator.with_settings(settings)
    finish = Finish(noise_seed=noise_seed, blank=blank, tag=tag)
    return write(translator, target_text, out, finish, quiet=obj["quiet"])


def _check_tag(tag: str, forward: str | None, own: "Tokenizer") -> None:
    """Raise ConfigError for a tag that the forward model cannot read.

    Without a forward model the tag is checked with the tokenizer of this one, and only a warning is
    logged: the forward model may not exist yet.
    """
    from pellucid.bundle import load_bundle
    from pellucid.core.errors import ConfigError
    from pellucid.training.synthesis import check_tag

    if forward is not None:
        check_tag(tag, load_bundle(forward).source_tokenizer)
        return
    try:
        check_tag(tag, own)
    except ConfigError as error:
        logging.getLogger("pellucid").warning(
            "%s; the forward model's tokenizer must be trained on text that holds it", error
        )
