"""``pellucid plot``: draws the curves of runs into one picture."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pellucid.inspection.figures.run_curves import Horizontal


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
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
    from pellucid.inspection.figures.run_curves import draw_runs

    draw_runs(runs, out, horizontal)
    click.echo(str(out))
