"""``pellucid examples``: computes the worked examples of the source texts."""

import click


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
    from pellucid.inspection.examples.page import check_name, list_examples, print_example

    wanted = [check_name(name) for name in names]
    if not wanted:
        click.echo(list_examples())
        click.echo("\nShow one with: pellucid examples NAME", err=True)
        return

    from pellucid.inspection.examples.work import work_out

    click.echo("\n\n".join(print_example(work_out(name)) for name in wanted))
