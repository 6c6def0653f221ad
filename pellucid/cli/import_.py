"""``pellucid import``: converts a model of another program into a bundle."""

from pathlib import Path

import click


@click.group(name="import")
def import_() -> None:
    """Make a bundle of another program's model.

    \b
    Example:
      pellucid import huggingface opus-mt-en-de runs/opus-en-de
    """


@import_.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("out", type=click.Path(path_type=Path))
def huggingface(folder: Path, out: Path) -> None:
    """Read a Marian or OPUS-MT model from FOLDER and write it as a bundle to the new folder OUT.

    Nothing is downloaded, and nothing in FOLDER is run. The bundle is held to Marian's own
    definition on a few sentences before it is written.
    """
    from pellucid.interop.huggingface.import_folder import import_huggingface

    bundle = import_huggingface(folder, out)
    parameters = sum(each.numel() for each in bundle.model.parameters())
    click.echo(f"wrote {out}: {parameters:,} parameters, self-check passed", err=True)
