"""``pellucid figures`` and ``pellucid examples``: the equations, drawn and in numbers."""

from pathlib import Path

import click


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    default=Path("figures"),
    help="Folder for the figures.  [default: figures]",
)
@click.option("--dark", is_flag=True, help="For a dark page; NAME-dark.png and NAME-dark.svg.")
def figures(names: tuple[str, ...], out: Path, dark: bool) -> None:
    """Draw figures about the equations, as PNG and SVG: those called NAME, or all.

    \b
    NAME is one of
      dot-products         variance of q · k against dₖ (EQ-60)
      exp-cosine           cos and exp cos, and where they cross (EQ-59)
      jacobian-statistics  scaled and unscaled Jacobians over many draws (EQ-49)
      jacobians            softmax Jacobians as heat maps (EQ-48)
      label-smoothing      smoothed targets, and the loss (EQ-120)
      learning-rate        the schedule of the paper
      masks                which query may attend to which key (EQ-70 to EQ-75)
      positions            sinusoidal positional encoding as a heat map (EQ-24)
      wavelengths          its features as waves (EQ-26)

    EQ and ER numbers are those of docs/EQUATIONS.md and docs/ERRATA.md, names of texts those of
    docs/sources.md.

    \b
    Example:
      pellucid figures --out pictures jacobians exp-cosine
    """
    from pellucid.inspection.figures.equations import draw_equations, figure_names

    draw_equations(figure_names(names), out, "dark" if dark else "light", click.echo)


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
def examples(names: tuple[str, ...]) -> None:
    """Show worked examples: those called NAME, or a list of all.

    Each says what a text states, its formula and every step with its numbers, which the functions
    of pellucid.equations compute. Where a text prints a wrong number, both stand side by side.

    EQ and ER numbers are those of docs/EQUATIONS.md and docs/ERRATA.md, names of texts those of
    docs/sources.md.

    \b
    Examples:
      pellucid examples
      pellucid examples masked-softmax teacher-forcing
    """
    from pellucid.inspection.examples.names import check_name, list_examples

    wanted = [check_name(name) for name in names]
    if not wanted:
        click.echo(list_examples())
        click.echo("\nShow one with: pellucid examples NAME", err=True)
        return

    # Only here: the list of names needs no torch.
    from pellucid.inspection.examples.page import print_example
    from pellucid.inspection.examples.work import work_out

    click.echo("\n\n".join(print_example(work_out(name)) for name in wanted))
