"""``pellucid translate``: one sentence a line in, one translation a line out."""

import contextlib
import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import MappingProxyType
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

_log = logging.getLogger("pellucid")


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
@click.option(
    "--split/--no-split",
    default=None,
    help="Translate a line of several sentences one by one.  [default: as the model was trained]",
)
@explain_options
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object a line.")
def translate(
    bundle: str,
    file: str,
    output: str,
    tab_separated: bool,
    buffer_size: int | None,
    split: bool | None,
    as_json: bool,
) -> None:
    """Translate FILE, or stdin, with BUNDLE: a bundle folder or a run folder.

    Every line in gives one line out, an empty one an empty one. A line of several sentences is
    split if the model was trained on single ones. With --n-best each line gives
    several, as NUMBER ||| TRANSLATION ||| SCORE. Under torchrun the lines are shared out among
    the processes, and written in order by the first.

    \b
    Examples:
      echo "je suis étudiant" | pellucid translate runs/demo
      pellucid translate runs/en-de test.en -o test.de --beam-size 5
      pellucid translate runs/en-de test.en --n-best 5 --align --json
    """
    from pellucid.text.corpus.lines import iterate_lines

    if file == "-" and sys.stdin is None:
        raise InputMissingError("cannot read standard input: it is closed")
    if buffer_size is None and file == "-" and sys.stdin.isatty():
        buffer_size = 1
    translator = open_translator(bundle, buffer_size, figures=as_json)
    lines = iterate_lines(sys.stdin.buffer if file == "-" else Path(file))
    requests = _columns(lines) if tab_separated else lines
    if split is not None:
        translator.split = split
    asked = asked_to_explain(as_json=as_json)
    doubts = _Doubts()
    render = doubts.told(_renderer(as_json=as_json, several=translator.settings.n_best > 1))
    if "RANK" in os.environ and shard_of_run(file, explains=asked is not None):
        write_shards(translator, requests, render, lambda: opened(output))
        doubts.end()
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
    doubts.end()


class _Doubts:
    """Warns of translations that should not be trusted; of many, it gives the number."""

    _SHOWN = 5
    _MESSAGES = MappingProxyType(
        {
            "short": "line %d: the translation is suspiciously short (%d tokens from %d)",
            "loop": "line %d: the translation repeats itself (%d tokens from %d)",
        }
    )

    def __init__(self) -> None:
        self._count = 0

    def told(
        self, render: Callable[[int, "Translation"], bytes]
    ) -> Callable[[int, "Translation"], bytes]:
        """``render``, which also warns."""

        def warn_and_render(number: int, translation: "Translation") -> bytes:
            doubt = translation.warning
            if doubt is not None:
                self._count += 1
                if self._count <= self._SHOWN:
                    sizes = len(translation.tokens), len(translation.source_tokens)
                    _log.warning(self._MESSAGES[doubt], number + 1, *sizes)
            return render(number, translation)

        return warn_and_render

    def end(self) -> None:
        """The number of warnings that were not shown."""
        if self._count > self._SHOWN:
            _log.warning(
                "%d more: suspiciously short, or repeating themselves", self._count - self._SHOWN
            )


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
