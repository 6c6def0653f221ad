"""``pellucid vectors``: trains word vectors on plain text, and looks up neighbors."""

import json
from pathlib import Path

import click

from pellucid.cli.options import json_lines_option, settings_option


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
@click.argument("text", nargs=-1, required=True)
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="Run folder.")
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
@click.argument("source")
@click.argument("words", nargs=-1, required=True)
@click.option("-n", "--count", type=click.IntRange(1), default=10, help="How many neighbors.")
@json_lines_option
def nearest(source: str, words: tuple[str, ...], count: int, as_json: bool) -> None:
    """The words nearest to each of WORDS, with the cosines of the angles between them.

    SOURCE is a skipgram bundle or run folder, or a file in word2vec's text format.
    """
    from pellucid.training.vectors import load_vectors

    known = load_vectors(Path(source))
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
@click.argument("source")
@click.argument("file", type=click.Path(path_type=Path))
def export(source: str, file: Path) -> None:
    """Write the vectors of SOURCE to FILE in word2vec's text format."""
    from pellucid.text.vectors import write_vectors
    from pellucid.training.vectors import load_vectors

    write_vectors(file, load_vectors(Path(source)))
    click.echo(str(file))
