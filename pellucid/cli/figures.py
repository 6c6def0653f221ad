"""``pellucid figures``: figures about the equations, drawn with Pellucid's own functions."""

from pathlib import Path

import click


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    default=Path("figures"),
    help="Folder for the pictures.  [default: figures]",
)
def figures(names: tuple[str, ...], out: Path) -> None:
    """Draw the equations' pictures, as PNG and SVG: those called NAME, or all.

    \b
    NAME is one of
      dot-products         variance of q · k against its width (EQ-60)
      exp-cosine           cos and exp cos, and where they cross (EQ-59)
      jacobian-statistics  scaled and unscaled Jacobians over many draws (EQ-49)
      jacobians            softmax Jacobians as heat maps (EQ-48)
      label-smoothing      what is taught, and the loss (EQ-120)
      learning-rate        the schedule of the paper
      masks                who may look at whom (EQ-70 to EQ-75)
      positions            the sinusoidal positions as a heat map (EQ-24)
      wavelengths          their waves (EQ-26)

    EQ and ER numbers are those of docs/EQUATIONS.md and docs/ERRATA.md, names of texts those of
    docs/sources.md.

    \b
    Example:
      pellucid figures --out pictures jacobians exp-cosine
    """
    from pellucid.inspection.seed_figures import draw_seed_figures, figure_names

    draw_seed_figures(figure_names(names), out, drawn=click.echo)
