"""``pellucid export``: converts a bundle for another program."""

from pathlib import Path
from typing import get_args

import click

from pellucid.interop.ctranslate2 import Quantization


@click.group()
def export() -> None:
    """Write a model in the format of another program.

    \b
    Examples:
      pellucid export huggingface runs/en-de opus-en-de
      pellucid export ctranslate2 runs/en-de ct2-en-de --quantization int8
      pellucid export onnx runs/en-de onnx-en-de
    """


@export.command()
@click.argument("bundle")
@click.argument("out", type=click.Path(path_type=Path))
def huggingface(bundle: str, out: Path) -> None:
    """Write BUNDLE to the new folder OUT for transformers (MarianMTModel, MarianTokenizer)."""
    from pellucid.bundle import load_bundle
    from pellucid.interop.huggingface.export_folder import export_huggingface

    export_huggingface(load_bundle(bundle), out)
    click.echo(f"wrote {out}", err=True)


@export.command()
@click.argument("bundle")
@click.argument("out", type=click.Path(path_type=Path))
@click.option(
    "--quantization",
    type=click.Choice(get_args(Quantization)),
    default="float32",
    show_default=True,
    help="How the weights are stored.",
)
def ctranslate2(bundle: str, out: Path, quantization: Quantization) -> None:
    """Write BUNDLE to the new folder OUT for CTranslate2 (needs pellucid[fast])."""
    from pellucid.bundle import load_bundle
    from pellucid.interop.ctranslate2.export import export_ctranslate2

    export_ctranslate2(load_bundle(bundle), out, quantization)
    click.echo(f"wrote {out}", err=True)


@export.command()
@click.argument("bundle")
@click.argument("out", type=click.Path(path_type=Path))
def onnx(bundle: str, out: Path) -> None:
    """Write BUNDLE to the new folder OUT as ONNX graphs (needs pellucid[onnx])."""
    from pellucid.bundle import load_bundle
    from pellucid.interop.onnx.export import export_onnx

    export_onnx(load_bundle(bundle), out)
    click.echo(f"wrote {out}", err=True)
