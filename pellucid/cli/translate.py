"""``pellucid translate``: one sentence a line in, one translation a line out."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from pellucid.cli.demand_options import demand_options
from pellucid.cli.explain import asked_to_explain, explain_options, explained_lines
from pellucid.cli.search_options import engine_options, open_translator, search_options
from pellucid.cli.shards import shard_of_run, write_shards
from pellucid.cli.translation_lines import json_line, n_best_lines, plain_line
from pellucid.core.errors import InputMissingError, WriteError
from pellucid.core.files import open_replacement, write_errors

if TYPE_CHECKING:
    from pellucid.decoding.requests import Request
    from pellucid.decoding.result import Translation


@click.command()
@click.argument("bundle")
@click.argument("file", default="-")
@click.option("-o", "--output", default="-", help="File to write.  [default: stdout]")
@search_options
@engine_options
@demand_options
@click.option(
    "--tab-separated",
    is_flag=True,
    help="Lines hold SOURCE, PREFIX and words that must appear, with tabs between.",
)
@click.option(
    "--buffer-size",
    type=click.IntRange(1),
    help="Lines read before translating.  [default: 1 on a terminal, else 1024]",
)
@explain_options
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object a line.")
def translate(
    bundle: str,
    file: str,
    output: str,
    tab_separated: bool,
    buffer_size: int | None,
    as_json: bool,
) -> None:
    """Translate FILE, or stdin, with BUNDLE: a bundle folder or a run folder.

    Every line in gives one line out, an empty one an empty one. With --n-best each line gives
    several, as NUMBER ||| TRANSLATION ||| SCORE. Under torchrun the lines are shared out among
    the processes, and written in order by the first.

    \b
    Examples:
      echo "je suis étudiant" | pellucid translate runs/demo
      pellucid translate runs/en-de test.en -o test.de --beam-size 5
      pellucid translate runs/en-de test.en --n-best 5 --align --json
    """
    from pellucid.text.lines import iterate_lines

    if file == "-" and sys.stdin is None:
        raise InputMissingError("cannot read standard input: it is closed")
    if buffer_size is None and file == "-" and sys.stdin.isatty():
        buffer_size = 1
    translator = open_translator(bundle, buffer_size, figures=as_json)
    lines = iterate_lines(sys.stdin.buffer if file == "-" else Path(file))
    requests = _columns(lines) if tab_separated else lines
    asked = asked_to_explain(as_json=as_json)
    render = _renderer(as_json=as_json, several=translator.settings.n_best > 1)
    if "RANK" in os.environ and shard_of_run(file, explains=asked is not None):
        write_shards(translator, requests, render, lambda: opened(output))
        return
    with opened(output) as out:
        if asked is not None:
            for line in explained_lines(translator, requests, asked):
                out.write(line.encode())
            return
        for number, translation in enumerate(translator.translate(requests)):
            out.write(render(number, translation))
            if buffer_size is not None:
                out.flush()


def _renderer(*, as_json: bool, several: bool) -> Callable[[int, "Translation"], bytes]:
    """What is written for a translation, given its number."""
    if as_json:
        return lambda number, translation: json_line(number, translation).encode()
    if several:
        return lambda number, each: "".join(n_best_lines(number, each)).encode()
    return lambda _, translation: plain_line(translation).encode()


def _columns(lines: Iterable[str]) -> Iterator["Request"]:
    from pellucid.decoding.requests import Request

    for line in lines:
        source, *others = line.split("\t")
        prefix, *must = others or [""]
        yield Request(source, prefix, tuple(phrase for phrase in must if phrase.strip()))


@contextlib.contextmanager
def opened(output: str) -> Iterator[IO[bytes]]:
    """What to write to. A file keeps what it holds until the last line is translated."""
    path = Path(output).resolve()
    if output == "-":
        if sys.stdout is None:
            raise WriteError("cannot write standard output: it is closed")
        with write_errors(Path("standard output")):
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
    elif path.exists() and not path.is_file():
        with write_errors(path), path.open("wb") as out:
            yield out
    else:
        with open_replacement(path) as file:
            yield file
