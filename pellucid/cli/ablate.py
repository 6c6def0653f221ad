"""``pellucid ablate``: the quality of a model without each head and each layer."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pellucid.cli.options import (
    NAME,
    PATH,
    Choices,
    json_option,
    open_translator,
    require_model,
    single_search_options,
)

if TYPE_CHECKING:
    from pellucid.inspection.ablation import AblationStudy


@click.command()
@click.argument("bundle", type=NAME)
@click.argument("source", type=PATH)
@click.argument("reference", type=PATH)
@single_search_options
@click.option(
    "--lines", type=click.IntRange(1), metavar="N", help="Only the first N lines of both files."
)
@click.option(
    "--picture",
    type=PATH,
    metavar="FILE",
    help="Draw what BLEU loses as heat maps, as .svg, .png or .pdf.",
)
@json_option
def ablate(
    bundle: str,
    source: Path,
    reference: Path,
    search: Choices,
    lines: int | None,
    picture: Path | None,
    as_json: bool,
) -> None:
    """Translate SOURCE with each head of BUNDLE off, and each layer left out, one at a time.

    Gives BLEU against REFERENCE and the loss of its tokens. The test set is translated once for
    each part, so begin with a few hundred lines.

    \b
    Examples:
      pellucid ablate runs/en-de test.en test.de --lines 200 --picture heads.svg
      pellucid ablate runs/en-de test.en test.de --beam-size 1 --json
    """
    from pellucid.inspection.figures.canvas import check_picture

    if picture is not None:
        # A study takes minutes: a wrong suffix must not cost it.
        check_picture(picture)
    require_model(bundle)

    from pellucid.evaluation.metrics import check_lines
    from pellucid.inspection.ablation import ablate as ablate_parts
    from pellucid.text.config import require_one_side
    from pellucid.text.corpus.lines import read_lines

    require_one_side(str(source), str(reference))
    sources, references = read_lines(source), read_lines(reference)
    # Checked before ``--lines`` cuts both, as files of different lengths are misaligned somewhere.
    check_lines({"sources": sources, "references": references})

    study = ablate_parts(
        # Other engines have no parts to switch off.
        open_translator(bundle, search, engine={"engine": "torch"}),
        sources[:lines],
        references[:lines],
        done=_show_progress,
    )

    if not study.parts:
        click.echo("a plain rnn has no head and no layer that can be off", err=True)
    click.echo(json.dumps(study.to_dict(), ensure_ascii=False) if as_json else _table(study))
    if picture is not None:
        from pellucid.inspection.figures.attention import draw_ablation

        draw_ablation(study, picture)
        click.echo(f"picture: {picture}", err=True)


def _show_progress(done: int, count: int) -> None:
    """Show progress: one line that is overwritten on a terminal, elsewhere a line per tenth."""
    import sys

    # A log file has no line to overwrite.
    if sys.stderr.isatty():
        click.echo(f"\r{done} of {count} parts", err=True, nl=done == count)
    elif done == count or done % max(1, count // 10) == 0:
        click.echo(f"{done} of {count} parts", err=True)


def _table(study: "AblationStudy") -> str:
    """The study as a table: the whole model, then its parts, the most important first."""
    width = max([len(part.part) for part in study.parts] + [len("whole model")])
    rows = [f"{'':{width}}    BLEU  change    loss  change"]
    rows.append(f"{'whole model':{width}}  {study.bleu:6.2f}          {study.loss:6.3f}")
    rows += [
        f"{part.part:{width}}  {part.bleu:6.2f}  {part.bleu - study.bleu:+6.2f}"
        f"  {part.loss:6.3f}  {part.loss - study.loss:+6.3f}"
        # The lowest BLEU first: without that part the model lost most.
        for part in sorted(study.parts, key=lambda part: part.bleu)
    ]
    return "\n".join([*rows, f"{study.sentences:,} sentences, {study.signature}"])
