"""``pellucid publish``: a model with its card as a folder, and on the Hub where one is named."""

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pellucid.cli.options import NAME, PATH
from pellucid.core.files import TEMPORARY_PREFIX, refuse_to_overwrite

if TYPE_CHECKING:
    from pellucid.backends.publish.card import Figure
    from pellucid.backends.publish.upload import Kind
    from pellucid.bundle import Bundle

_LICENSE = re.compile(r"[a-z0-9][a-z0-9.-]{1,39}")


@click.command()
@click.argument("bundle", type=NAME)
@click.argument("repository", type=NAME, required=False)
@click.option(
    "--license",
    "license_",
    required=True,
    help="The license of the model, by its identifier on the Hub, such as cc-by-4.0.",
)
@click.option(
    "--out",
    type=PATH,
    help="Write what is published to this new folder. Without REPOSITORY nothing is sent.",
)
@click.option(
    "--test",
    nargs=2,
    type=NAME,
    metavar="SOURCE REFERENCE",
    help="Two files: their BLEU and chrF go into the card, with signatures.  [default: the scores"
    " of the run's validation, if the bundle has them]",
)
@click.option(
    "--space",
    is_flag=True,
    help="Also the page that translates (pellucid export web), as a static Space of the same name.",
)
@click.option(
    "--example",
    metavar="TEXT",
    default="",
    help="The sentence that card and page show.  [default: one in the model's language]",
)
@click.option("--public", is_flag=True, help="Everybody may see it. A new repository is private.")
@click.option(
    "--update", is_flag=True, help="REPOSITORY may exist: add a commit that replaces the model."
)
def publish(
    bundle: str,
    repository: str | None,
    license_: str,
    out: Path | None,
    test: tuple[str, str] | None,
    space: bool,
    example: str,
    public: bool,
    update: bool,
) -> None:
    """Write BUNDLE with its model card, and send it to REPOSITORY (hf://ORG/NAME).

    The files are Marian's, which transformers reads, or the bundle itself where Marian cannot
    express it. Nothing is sent unless REPOSITORY is given; what is sent is listed first.

    \b
    Examples:
      pellucid publish runs/en-de --license cc-by-4.0 --out published
      pellucid publish runs/en-de hf://acme/en-de --license cc-by-4.0 --test test.en test.de
    """
    if out is None and repository is None:
        raise click.UsageError("Missing REPOSITORY to send to, or --out to write a folder.")
    if repository is None and (public or update):
        raise click.UsageError("--public and --update are about REPOSITORY, and none is given.")
    if _LICENSE.fullmatch(license_) is None:
        raise click.BadParameter(
            f"{license_!r} is no identifier such as apache-2.0 or cc-by-4.0.",
            param_hint="'--license'",
        )
    if out is not None:
        refuse_to_overwrite(out)

    uploader = None
    kinds: list[Kind] = ["model", "space"] if space else ["model"]
    if repository is not None:
        from pellucid.backends.publish.upload import Uploader

        uploader = Uploader(repository)
        for kind in kinds:
            uploader.check(kind, update=update)

    from pellucid.backends.example_program import example_text
    from pellucid.backends.huggingface.export_folder import marian_problems
    from pellucid.backends.publish.card import Card
    from pellucid.backends.publish.folder import write_publication
    from pellucid.bundle import load_bundle

    opened = load_bundle(bundle)
    problems = marian_problems(opened)
    for problem in problems:
        click.echo(f"left out: files for transformers: {problem}", err=True)
    card = Card(
        license=license_,
        figures=_figures(opened, bundle, test),
        repository="" if uploader is None else uploader.repository,
        example=example or example_text(opened),
        problems=problems,
    )

    with tempfile.TemporaryDirectory(prefix=TEMPORARY_PREFIX) as temporary:
        folder = Path(temporary) / "published" if out is None else out
        write_publication(opened, folder, card, space=space)
        for kind in kinds:
            for path in sorted((folder / kind).iterdir()):
                click.echo(f"{kind}/{path.name}  {path.stat().st_size:,} bytes", err=True)
        if out is not None:
            click.echo(f"wrote {out}", err=True)
        if uploader is None:
            return
        for kind in kinds:
            seen = "public" if public else "private, if it is new"
            click.echo(f"sending {kind}/ to {kind} {uploader.repository} ({seen})", err=True)
            click.echo(uploader.send(folder / kind, kind, public=public, update=update))


def _figures(bundle: "Bundle", place: str, test: tuple[str, str] | None) -> "list[Figure]":
    """The scores of the test set, or those that the bundle was saved with."""
    from pellucid.backends.publish.card import figures_of_run, figures_of_test

    if test is None:
        return figures_of_run(bundle.manifest)

    from pellucid.backends.load import load
    from pellucid.cli.evaluate import named_language
    from pellucid.evaluation.evaluate import evaluate, read_test_set

    source, reference = map(Path, test)
    sources, references = read_test_set(source, [reference])
    evaluation = evaluate(load(place), sources, references, language=named_language(*test))
    return figures_of_test(evaluation, f"{source.name}, {reference.name}")
