"""``pellucid fill``, ``continue`` and ``vectors``: models of one language.

The first two work line by line, so that they are filters of an endless stream.
"""

import json
import logging
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pellucid.cli.options import (
    NAME,
    PATH,
    Choices,
    changed_settings,
    continuation_options,
    json_lines_option,
    require_model,
    sampling_options,
    settings_option,
)
from pellucid.cli.streams import standard_input
from pellucid.core.limits import shown

if TYPE_CHECKING:
    from pellucid.text.vectors import WordVectors

_log = logging.getLogger("pellucid")


@click.command()
@click.argument("bundle", type=NAME)
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
    require_model(bundle)

    from pellucid.bundle import load_any_bundle
    from pellucid.decoding.plain_text import fill_masks, text_warnings
    from pellucid.text.corpus.lines import iterate_lines

    # Asked for before the model, which takes seconds.
    lines = text or iterate_lines(standard_input())
    model = load_any_bundle(bundle)
    for line in lines:
        filled = fill_masks(model, line, count)
        for warning in text_warnings(model, line):
            _log.warning("%s: %s", shown(line), warning)
        if as_json:
            named = [
                [{"token": word, "probability": probability} for word, probability in candidates]
                for candidates in filled.candidates
            ]
            entry = {"text": filled.text, "source": line, "candidates": named}
            click.echo(json.dumps(entry, ensure_ascii=False))
            continue
        click.echo(filled.text)
        # One line for each mask, in the order of the text.
        for candidates in filled.candidates:
            words = (f"{word} {probability:.1%}" for word, probability in islice(candidates, count))
            click.echo("  " + "  ".join(words))


@click.command("continue")
@click.argument("bundle", type=NAME)
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
    require_model(bundle)

    from pellucid.bundle import load_any_bundle
    from pellucid.decoding.config import DecodingConfig
    from pellucid.decoding.plain_text import continue_text, text_warnings
    from pellucid.text.corpus.lines import iterate_lines

    # Asked for before the model, which takes seconds.
    lines = text or iterate_lines(standard_input())
    model = load_any_bundle(bundle)
    # The settings that the model was trained to be used with; options change single ones.
    settings = DecodingConfig.carried(model.settings.get("decoding", {}), f"{bundle}: decoding")
    settings = changed_settings(settings, search, sampling)

    for line in lines:
        found = continue_text(model, line, settings, new_tokens)
        for warning in text_warnings(model, line):
            _log.warning("%s: %s", shown(line), warning)
        if as_json:
            click.echo(json.dumps({"source": line, "texts": found}, ensure_ascii=False))
        else:
            click.echo("\n".join(found))


@click.group()
def vectors() -> None:
    """Train word vectors (Word2Vec) and use them.

    \b
    Examples:
      pellucid vectors train text.en --out runs/vectors
      pellucid vectors nearest runs/vectors dog
      pellucid vectors export runs/vectors vectors.txt
    """


@vectors.command()
@click.argument("text", type=NAME, nargs=-1, required=True)
@click.option("-o", "--out", type=PATH, required=True, help="Run folder.")
@settings_option("Change one setting of the preset skipgram; may be given many times.")
@click.pass_context
def train(ctx: click.Context, text: tuple[str, ...], out: Path, overrides: tuple[str, ...]) -> int:
    """Learn vectors from TEXT files, one passage a line, by skip-gram."""
    from pellucid.cli.train import train as train_command

    # A list of strings is written alike in JSON and in TOML.
    named = (f"data.text={json.dumps(list(text))}", *overrides)
    # The same command as for every other model, with the preset that learns vectors.
    code: int = ctx.invoke(train_command, texts=("skipgram",), overrides=named, out=out)
    return code


@vectors.command()
@click.argument("source", type=NAME)
@click.argument("words", nargs=-1, required=True)
@click.option("-n", "--count", type=click.IntRange(1), default=10, help="How many neighbors.")
@json_lines_option
def nearest(source: str, words: tuple[str, ...], count: int, as_json: bool) -> None:
    """The words nearest to each of WORDS, with the cosines of the angles between them.

    SOURCE is a skipgram bundle or run folder, or a file in word2vec's text format.
    """
    known = _read(Path(source))
    for word in words:
        near = known.nearest(word, count)
        if as_json:
            entry = {"word": word, "nearest": [{"word": w, "cosine": c} for w, c in near]}
            click.echo(json.dumps(entry, ensure_ascii=False))
        else:
            click.echo(word)
            for other, cosine in near:
                click.echo(f"  {cosine:.4f}  {other}")


@vectors.command()
@click.argument("source", type=NAME)
@click.argument("file", type=PATH)
def export(source: str, file: Path) -> None:
    """Write the vectors of SOURCE to FILE in word2vec's text format."""
    from pellucid.text.vectors import write_vectors

    write_vectors(file, _read(Path(source)))
    click.echo(str(file))


def _read(source: Path) -> "WordVectors":
    """The vectors of a model; those of a file are read without PyTorch, which takes seconds."""
    if source.is_dir():
        from pellucid.training.vectors import load_vectors

        return load_vectors(source)
    if not source.exists():
        from pellucid.core.errors import InputMissingError

        raise InputMissingError(f"there is no file and no folder {source}")
    from pellucid.text.vectors import read_vectors

    return read_vectors(source)
