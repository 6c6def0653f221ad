"""``python -m book``, from a checkout: the equations in numbers and figures, and the scenes."""

import sys
from pathlib import Path

import click

from book.complexity import as_text, cache_table, measure, store, table_of
from book.draw import draw_pictures
from book.examples.names import check_name, list_examples
from book.examples.page import print_example
from book.examples.work import work_out
from book.exercises import exercise
from book.exposure import measure as measure_exposure
from book.exposure import store as store_exposure
from book.exposure import table_of as table_of_exposure
from book.figures.equations import draw_equations, figure_names
from book.live import EXAMPLE, PAGE, train_live, translated, write_live
from book.scenes import STORED, scenes_text
from book.thread import STORED as STORED_SENTENCE
from book.thread import store as store_sentence
from book.variations import measure as measure_variations
from book.variations import store as store_variations
from book.variations import table_of as table_of_variations
from pellucid.backends.web.export import remake_page
from pellucid.core.errors import PellucidError


@click.group()
def cli() -> None:
    """The book of equations of Pellucid: worked examples, figures and scenes."""


@cli.command()
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
      complexity           operations and time of a layer by length
      dot-products         variance of q · k against dₖ (EQ-60)
      exp-cosine           cos and exp cos, and where they cross (EQ-59)
      jacobian-statistics  scaled and unscaled Jacobians over many draws (EQ-49)
      jacobians            softmax Jacobians as heat maps (EQ-48)
      label-smoothing      smoothed targets, and the loss (EQ-120)
      learning-rate        the schedule of the paper
      lengths              BLEU by length: one vector, attention, Transformer
      masks                which query may attend to which key (EQ-70 to EQ-75)
      positions            sinusoidal positional encoding as a heat map (EQ-24)
      wavelengths          its features as waves (EQ-26)

    EQ and ER numbers are those of docs/EQUATIONS.md and docs/ERRATA.md, names of texts those of
    docs/sources.md.

    \b
    Example:
      python -m book figures --out pictures jacobians exp-cosine
    """
    draw_equations(figure_names(names), out, "dark" if dark else "light", click.echo)


@cli.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
def examples(names: tuple[str, ...]) -> None:
    """Show worked examples: those called NAME, or a list of all.

    Each says what a text states, its formula and every step with its numbers, which the functions
    of pellucid.equations compute. Where a text prints a wrong number, both stand side by side.

    EQ and ER numbers are those of docs/EQUATIONS.md and docs/ERRATA.md, names of texts those of
    docs/sources.md.

    \b
    Examples:
      python -m book examples
      python -m book examples masked-softmax teacher-forcing
    """
    wanted = [check_name(name) for name in names]
    if not wanted:
        click.echo(list_examples())
        click.echo("\nShow one with: python -m book examples NAME", err=True)
        return

    click.echo("\n\n".join(print_example(work_out(name)) for name in wanted))


@cli.command()
@click.option("--store", "keeps", is_flag=True, help="Keep the result for the page and the figure.")
def complexity(keeps: bool) -> None:
    """Count the multiplications of three translators by length, and measure their time.

    A Transformer, a recurrent translator and one with attention, of one width and depth, read a
    sentence of 8 to 512 words and as long a target on one CPU thread. Below stand the cache and
    the work of one word for the base model of the paper. Takes about a minute.
    """
    found = measure()
    click.echo(as_text(table_of(found)))
    click.echo()
    click.echo(as_text(cache_table()))
    if keeps:
        store(found)


@cli.command()
@click.option(
    "--runs",
    type=click.Path(path_type=Path),
    default=Path("build/variations"),
    help="Folder for the runs.  [default: build/variations]",
)
@click.option("--store", "keeps", is_flag=True, help="Keep the result for the page.")
def variations(runs: Path, keeps: bool) -> None:
    """Train Table 3 of the paper small: a base and 18 variations of it, on the phrasebook.

    Prints a table beside the paper's, with a sentence for each row. Takes some twenty minutes of
    one core, and goes on where it was stopped.
    """
    found = measure_variations(runs, lambda each: click.echo(f"{each}", err=True))
    click.echo(table_of_variations(found))
    if keeps:
        store_variations(found)


@cli.command()
@click.option(
    "--run",
    type=click.Path(path_type=Path),
    default=Path("build/variations/00"),
    help="Run of the base model.  [default: build/variations/00]",
)
@click.option("--store", "keeps", is_flag=True, help="Keep the result for the page.")
def exposure(run: Path, keeps: bool) -> None:
    """Measure what one wrong word before them does to the words of held-out sentences.

    The model is the base of Table 3, first seed, which is trained in half a minute unless
    `variations` has done so.
    """
    found = measure_exposure(run)
    click.echo(as_text(table_of_exposure(found)))
    click.echo(
        f"\n{found.wrong_words:.1%} of the words wrong, {found.right_sentences:.1%} of the"
        f" sentences right; {found.independent:.1%} if wrong words were independent"
    )
    if keeps:
        store_exposure(found)


@cli.command()
@click.argument("chapter")
@click.argument("number", type=int)
@click.argument("answer")
def check(chapter: str, number: int, answer: str) -> None:
    """Say whether ANSWER is right for exercise NUMBER of CHAPTER; exit code 1 if it is not.

    \b
    Example:
      python -m book check attention 2 0.88
    """
    asked = exercise(chapter, number)
    is_right = asked.is_answered_by(answer)
    click.echo("right" if is_right else f"wrong: {asked.question}")
    sys.exit(0 if is_right else 1)


@cli.command()
@click.option(
    "--run",
    type=click.Path(path_type=Path),
    default=Path("build/live"),
    help="Run folder of the model.  [default: build/live]",
)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    default=PAGE,
    help="File for the page.  [default: docs/live.html]",
)
@click.option("--again", is_flag=True, help="Keep the model of the page; write its code again.")
def live(run: Path, out: Path, again: bool) -> None:
    """Train a small French-English model and write it as a page that translates by itself.

    Takes some minutes on one core, and goes on where it was stopped. The page is smaller than 1.5
    MB; the first screen of the site is that page. After a change of the explorer or the engine,
    --again writes the page with that code, around the model and the film that it has.
    """
    if again:
        out.write_text(remake_page(out.read_text("utf-8")), encoding="utf-8")
        click.echo(out)
        return

    train_live(run)
    size = write_live(run, out)
    click.echo(f"{out}: {size:,} bytes; {EXAMPLE} -> {translated(run)}")


@cli.command()
def sentence() -> None:
    """Train the model of the book's one sentence again and store its 408 numbers."""
    store_sentence()
    click.echo(STORED_SENTENCE)


@cli.command()
def scenes() -> None:
    """Write the scenes that exported pages hold, from the equations."""
    STORED.write_text(scenes_text(), encoding="utf-8")
    click.echo(STORED)


@cli.command()
def pictures() -> None:
    """Write docs/pictures/equations: all figures, each for light and for dark pages."""
    draw_pictures()


def main() -> None:
    """Run the command line; an error of ours is one line and its exit code."""
    try:
        cli.main(prog_name="python -m book")
    except PellucidError as error:
        click.echo(f"error: {error}" + (f"; hint: {error.hint}" if error.hint else ""), err=True)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
