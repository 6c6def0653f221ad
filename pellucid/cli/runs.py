"""``pellucid runs``, ``plot`` and ``average``: what is done with finished runs."""

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pellucid.cli.options import NAME, PATH, FiniteRange, json_option, require_model
from pellucid.cli.streams import visible
from pellucid.core.files import require_folder

if TYPE_CHECKING:
    from pellucid.inspection.figures.run_curves import Horizontal
    from pellucid.training.runs import RunSummary

_NAME_WIDTH = 15
"""The width that the other columns leave of 80; a longer name gets its own line."""
_LARGEST = 1e9
"""Figures from here on are damaged, or would be too wide for their column."""
_HEADINGS = ("MODEL", "SIZE", "STEP", "MINUTES", "BEST", "BUNDLE", "STATE")


@click.command()
@click.argument("folder", type=PATH, default=Path("runs"), metavar="[DIR]")
@json_option
def runs(folder: Path, as_json: bool) -> None:
    """List the runs below DIR (./runs unless given), the best first.

    \b
    Examples:
      pellucid runs
      pellucid runs runs/en-de --json
    """
    require_folder(folder, hint="name a folder with runs in it")

    from pellucid.training.runs import by_score, find_runs, summarize

    # Damaged runs are in the list, too, with their problems below it.
    summaries = by_score([summarize(run) for run in find_runs(folder)])
    if as_json:
        table = {"runs": [each.to_dict() for each in summaries]}
        # The bytes of a file's name that are not UTF-8 become escapes, which JSON has too.
        text = json.dumps(table, ensure_ascii=False)
        click.echo(text.encode("utf-8", "backslashreplace").decode("utf-8"))
        return

    if not summaries:
        click.echo(f"no runs below {folder}", err=True)
        return

    for line in _table(summaries, folder):
        click.echo(line)
    for summary in summaries:
        for problem in summary.problems:
            click.echo(visible(f"{summary.path}: {problem}"), err=True)


def _table(summaries: "list[RunSummary]", folder: Path) -> list[str]:
    from rich.cells import cell_len

    # Cells are text before their widths are known.
    names = ["RUN", *(_name(each.path, folder) for each in summaries)]
    rows = [_HEADINGS, *(_cells(each) for each in summaries)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    name_width = min(max(map(cell_len, names)), _NAME_WIDTH)

    lines = []
    for name, row in zip(names, rows, strict=True):
        if cell_len(name) > name_width:  # the columns must not move
            lines.append(name)
            name = ""
        cells = [
            cell.ljust(width) if heading in ("MODEL", "BEST", "STATE") else cell.rjust(width)
            for cell, width, heading in zip(row, widths, _HEADINGS, strict=True)
        ]
        # A Chinese character takes two columns of a terminal, an accent by itself none.
        padded = name + " " * (name_width - cell_len(name))
        lines.append(" ".join([padded, *cells]).rstrip())
    return lines


def _name(path: Path, folder: Path) -> str:
    return visible(str(path) if path == folder else str(path.relative_to(folder)))


def _cells(summary: "RunSummary") -> tuple[str, ...]:
    best = ""
    if summary.figure is not None and summary.best is not None:
        names = {"bleu": "BLEU", "chrf": "chrF", "exact_match": "exact"}
        name = names.get(summary.figure, summary.figure)
        best = f"{name} {_decimal(summary.best, 3 if summary.figure == 'loss' else 2)}"
    # "patience" or "max_steps" says more than "finished".
    ended = summary.reason if summary.state in ("finished", "stopped") else None

    return (
        summary.kind or "",
        "" if summary.parameters is None else _short(summary.parameters),
        f"{summary.step:,}",
        _decimal(summary.minutes, 1),
        best,
        "" if summary.bundle is None else _step_of(summary.bundle),
        ended or summary.state,
    )


def _decimal(value: float, digits: int) -> str:
    return f"{value:,.{digits}f}" if abs(value) < _LARGEST else f"{value:.3g}"


def _short(count: int) -> str:
    """The count with three significant digits and a unit, such as 4.5M."""
    for size, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= 0.9995 * size:  # which three digits round to a whole unit
            return f"{count / size:.3g}{unit}"
    return str(count)


def _step_of(bundle: str) -> str:
    digits = bundle.removeprefix("step-")
    return f"{int(digits):,}" if digits.isdecimal() else bundle


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=PATH)
@click.option(
    "-o",
    "--out",
    type=PATH,
    default=Path("curves.png"),
    help="The picture: .png, .svg or .pdf.  [default: curves.png]",
)
@click.option(
    "--x",
    "horizontal",
    type=click.Choice(["steps", "minutes", "tokens"]),
    default="steps",
    show_default=True,
    help="What the curves are drawn over.",
)
def plot(runs: tuple[Path, ...], out: Path, horizontal: "Horizontal") -> None:
    """Draw loss, BLEU, chrF, rate and gradient of each RUN (a run folder) in one picture.

    \b
    Examples:
      pellucid plot runs/en-de
      pellucid plot runs/en-de runs/en-de-2 --x minutes --out curves.svg
    """
    for run in runs:
        require_folder(run, hint="name run folders; pellucid runs lists them")

    from pellucid.inspection.figures.run_curves import draw_runs

    draw_runs(runs, out, horizontal)
    click.echo(str(out))


@click.command()
@click.argument("models", type=NAME, nargs=-1, required=True, metavar="MODEL MODEL...")
@click.option(
    "-o",
    "--out",
    required=True,
    type=PATH,
    help="New folder to write the bundle to.",
)
@click.option(
    "--weight",
    "weights",
    type=FiniteRange(0),
    multiple=True,
    help="How much a model counts; once for each model, in their order.  [default: all the same]",
)
@click.pass_obj
def average(
    obj: dict[str, bool], models: tuple[str, ...], out: Path, weights: tuple[float, ...]
) -> None:
    """Average the parameters of several models into one, as large and as fast as each of them.

    MODEL is a bundle or a run folder, whose best bundle is taken. The models must be of one run, or
    fine-tuned from the same bundle (pellucid train --init). Models with different initializations
    can translate together instead (pellucid translate --with).

    \b
    Examples:
      pellucid average runs/student1 runs/student2 --out runs/average
      pellucid average runs/de/bundles/step-* --out runs/mean
      pellucid average runs/news runs/tuned --weight 1 --weight 3 --out runs/between
    """
    if len(models) < 2:
        raise click.UsageError(
            "an average needs at least two models: name the bundles of a run one by one, such as"
            " runs/de/bundles/step-*."
        )
    if weights and len(weights) != len(models):
        raise click.UsageError(
            f"--weight must be given for each of the {len(models)} models, or not at all; got"
            f" {len(weights)}."
        )
    if weights and not 0 < sum(weights) < math.inf:  # NaN is in no range
        raise click.UsageError("the weights must be finite, and not all 0.")
    for model in models:
        require_model(model)

    from pellucid.bundle import open_any_bundle
    from pellucid.training.merging import save_average

    bundle = save_average(out, [open_any_bundle(each) for each in models], weights or None)
    if not obj["quiet"]:
        advice = "; score it with pellucid evaluate" if bundle.config.translates else ""
        click.echo(
            f"the average of {len(models)} models, {bundle.parameter_count:,} parameters{advice}",
            err=True,
        )
    # stdout holds the path alone, for scripts.
    click.echo(str(out))
