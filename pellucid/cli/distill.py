"""``pellucid distill``: a training text translated by a teacher (Kim and Rush, 2016)."""

from pathlib import Path

import click

from pellucid.cli.search_options import engine_options, open_translator, search_options
from pellucid.cli.synthesis import write

_MEASURES = ("chrf", "bleu")


@click.command()
@click.argument("teacher")
@click.argument("source")
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="File to write.")
@click.option(
    "--reference",
    type=click.Path(path_type=Path),
    help="Its lines: of the n best translations take the one nearest to its own.",
)
@click.option(
    "--measure",
    type=click.Choice(_MEASURES),
    default="chrf",
    help="How near a translation is to the reference.  [default: chrf]",
)
@search_options
@engine_options
@click.pass_obj
def distill(
    obj: dict[str, bool],
    teacher: str,
    source: str,
    out: Path,
    reference: Path | None,
    measure: str,
) -> int:
    """Write TEACHER's translation of every line of the file SOURCE, for a student to learn from.

    TEACHER is a bundle or a run folder. Blank lines stay blank. If it is stopped or killed, the
    same command goes on where it was.

    \b
    Examples:
      pellucid distill runs/en-de train.en --out distilled.de
      pellucid distill runs/en-de train.en --out near.de --reference train.de --beam-size 8
    """
    from pellucid.training.synthesis import Finish

    translator = open_translator(teacher, figures=False)
    settings = translator.settings

    if reference is None:
        settings = settings.having(n_best=1)
    elif settings.n_best == 1:
        # Only a list of hypotheses has one that is nearest to the reference.
        settings = settings.having(n_best=settings.beam_size)

    translator = translator.with_settings(settings)
    finish = Finish(reference=reference, measure=measure)
    return write(translator, source, out, finish, quiet=obj["quiet"])
