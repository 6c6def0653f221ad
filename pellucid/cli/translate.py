"""``pellucid translate``: one sentence a line in, one translation a line out."""

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from pellucid.cli.search_options import open_translator, search_options
from pellucid.core.errors import InputMissingError, WriteError
from pellucid.core.files import open_replacement, write_errors

if TYPE_CHECKING:
    from pellucid.decoding.result import Translation


@click.command()
@click.argument("bundle")
@click.argument("file", default="-")
@click.option("-o", "--output", default="-", help="File to write.  [default: stdout]")
@search_options
@click.option(
    "--buffer-size",
    type=click.IntRange(1),
    help="Lines read before translating.  [default: 1 on a terminal, else 1024]",
)
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object a line.")
def translate(bundle: str, file: str, output: str, buffer_size: int | None, as_json: bool) -> None:
    """Translate FILE, or stdin, with BUNDLE: a bundle folder or a run folder.

    Every line in gives one line out, an empty one an empty one. With --n-best each line gives
    several, as NUMBER ||| TRANSLATION ||| SCORE.

    \b
    Examples:
      echo "je suis étudiant" | pellucid translate runs/demo
      pellucid translate runs/en-de test.en -o test.de --beam-size 5
    """
    from pellucid.text.lines import iterate_lines

    if file == "-" and sys.stdin is None:
        raise InputMissingError("cannot read standard input: it is closed")
    if buffer_size is None and file == "-" and sys.stdin.isatty():
        buffer_size = 1
    translator = open_translator(bundle, buffer_size)
    lines = iterate_lines(sys.stdin.buffer if file == "-" else Path(file))
    several = translator.settings.n_best > 1
    with _opened(output) as out:
        for number, translation in enumerate(translator.translate(lines)):
            if as_json:
                _write_json(out, number, translation)
            elif several:
                _write_n_best(out, number, translation)
            else:
                out.write(f"{translation.text}\n".encode())
            if buffer_size is not None:
                out.flush()


@contextlib.contextmanager
def _opened(output: str) -> Iterator[IO[bytes]]:
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


def _write_json(out: IO[bytes], number: int, translation: "Translation") -> None:
    entry = {"id": number, "source": translation.source, **_figures(translation)}
    entry["n_best"] = [_figures(each) for each in translation.n_best]
    out.write(f"{json.dumps(entry, ensure_ascii=False)}\n".encode())


def _figures(translation: "Translation") -> dict[str, object]:
    return {
        "translation": translation.text,
        "score": translation.score,
        "tokens": list(translation.tokens),
        "token_log_probs": list(translation.token_log_probs),
    }


def _write_n_best(out: IO[bytes], number: int, translation: "Translation") -> None:
    for each in translation.n_best:
        out.write(f"{number} ||| {each.text} ||| {each.score:.6f}\n".encode())
