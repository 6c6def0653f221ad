"""``pellucid translate``: one sentence a line in, one translation a line out."""

import json
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from pellucid.cli.search_options import open_translator, search_options

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

    if buffer_size is None and file == "-" and sys.stdin.isatty():
        buffer_size = 1
    translator = open_translator(bundle, buffer_size)
    lines = iterate_lines(sys.stdin.buffer if file == "-" else Path(file))
    several = translator.settings.n_best > 1
    with click.open_file(output, "w", encoding="utf-8") as out:
        for number, translation in enumerate(translator.translate(lines)):
            if as_json:
                _write_json(out, number, translation)
            elif several:
                _write_n_best(out, number, translation)
            else:
                out.write(translation.text + "\n")
            if buffer_size is not None:
                out.flush()


def _write_json(out: IO[str], number: int, translation: "Translation") -> None:
    entry = {"id": number, "source": translation.source, **_figures(translation)}
    entry["n_best"] = [_figures(each) for each in translation.n_best]
    out.write(json.dumps(entry, ensure_ascii=False) + "\n")


def _figures(translation: "Translation") -> dict[str, object]:
    return {
        "translation": translation.text,
        "score": translation.score,
        "tokens": list(translation.tokens),
        "token_log_probs": list(translation.token_log_probs),
    }


def _write_n_best(out: IO[str], number: int, translation: "Translation") -> None:
    for each in translation.n_best:
        out.write(f"{number} ||| {each.text} ||| {each.score:.6f}\n")
