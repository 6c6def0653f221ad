"""``pellucid import`` and ``pellucid export``: models of other programs, read and written."""

import contextlib
import itertools
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from pellucid.backends.ctranslate2 import Quantization
from pellucid.cli.options import FILE_PATH, NAME, PATH, require_model

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pellucid.backends.marian_files.shortlist import Shortlist
    from pellucid.backends.marian_files.write import FileKind
    from pellucid.backends.web.weights import WeightsType
    from pellucid.bundle import Bundle

_CALIBRATION_LINES = 500
"""The sentences that the factors of activations are measured on: enough for mean and deviation of
each, in a few seconds."""
_bundle = click.argument("bundle", type=NAME)
_example = click.option(
    "--example",
    metavar="TEXT",
    help="The sentence that the program in README.md translates.  [default: the last short sample"
    " of the run's validations, or one in the model's language]",
)
_new_folder = click.argument("out", type=PATH)


class _Formats(click.Group):
    """The formats, some by a short name as well."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The format of that name."""
        return super().get_command(ctx, {"hf": "huggingface"}.get(cmd_name, cmd_name))


@click.group(name="import", cls=_Formats)
def import_() -> None:
    """Make a bundle of another program's model.

    \b
    Example:
      pellucid import huggingface opus-mt-en-de runs/opus-en-de
    """


@import_.command("huggingface")
@click.argument("folder", type=NAME)
@_new_folder
def import_huggingface(folder: str, out: Path) -> None:
    """Read a Marian or OPUS-MT model from FOLDER and write it as a bundle to the new folder OUT.

    FOLDER may be hf://ORG/NAME, fetched from the Hugging Face Hub (needs pellucid[hub]).
    Otherwise nothing is downloaded. Nothing in FOLDER is run. The bundle is held to Marian's own
    definition on a few sentences before it is written.
    """
    require_model(folder)
    from pellucid.backends.hub import folder_of
    from pellucid.backends.huggingface.import_folder import import_huggingface as read_and_write

    bundle = read_and_write(folder_of(folder), out)
    click.echo(f"wrote {out}: {bundle.parameter_count:,} parameters, self-check passed", err=True)


@import_.command("marian")
@click.argument("model", type=PATH)
@_new_folder
@click.option(
    "--vocab",
    "vocabularies",
    type=PATH,
    multiple=True,
    required=True,
    help="The sentencepiece model (.spm); twice for source and target if they differ.",
)
def import_marian(model: Path, out: Path, vocabularies: tuple[Path, ...]) -> None:
    """Read MODEL, a file of Marian (.npz, .bin) or Firefox (.intgemm.alphas.bin), into OUT.

    Matrices of 8 bits are widened to float32, so that the model can be opened, inspected and
    fine-tuned. The bundle is held to Marian's own definition on a few sentences before it is
    written.
    """
    from pellucid.backends.marian_files.read import import_marian as read_and_write

    if len(vocabularies) > 2:
        raise click.UsageError("--vocab is given once, or twice for source and target")
    bundle = read_and_write(model, (vocabularies[0], vocabularies[-1]), out)
    click.echo(f"wrote {out}: {bundle.parameter_count:,} parameters, self-check passed", err=True)


@click.group(cls=_Formats)
def export() -> None:
    """Write a model in the format of another program, or as a page that translates (web).

    hf is short for huggingface.

    \b
    Examples:
      pellucid export huggingface runs/en-de opus-en-de
      pellucid export ctranslate2 runs/en-de ct2-en-de --quantization int8
      pellucid export onnx runs/en-de onnx-en-de
      pellucid export marian runs/student firefox-en-de --format int8 --text train.en
      pellucid export web runs/en-de en-de.html
    """


@export.command("huggingface")
@_bundle
@_new_folder
def export_huggingface(bundle: str, out: Path) -> None:
    """Write BUNDLE to the new folder OUT for transformers (MarianMTModel, MarianTokenizer)."""
    require_model(bundle)

    from pellucid.backends.huggingface.export_folder import export_huggingface as write
    from pellucid.bundle import load_bundle

    opened = load_bundle(bundle)
    write(opened, out)
    _tell_of_normalization(opened, "transformers")
    click.echo(f"wrote {out}", err=True)


def _tell_of_normalization(bundle: "Bundle", program: str) -> None:
    """Warn that a program gives the model text in another form than it has learned."""
    if bundle.source_tokenizer.normalization == "nfc":
        click.echo(
            f"WARNING: {program} does not normalize text as this model reads it: compose it (NFC)"
            " and make all white space ordinary spaces first (docs/interop.md)",
            err=True,
        )


@export.command()
@_bundle
@_new_folder
@click.option(
    "--quantization",
    type=click.Choice(get_args(Quantization)),
    default="float32",
    show_default=True,
    help="How the weights are stored.",
)
@_example
def ctranslate2(bundle: str, out: Path, quantization: Quantization, example: str | None) -> None:
    """Write BUNDLE to the new folder OUT for CTranslate2 (needs pellucid[fast])."""
    require_model(bundle)

    from pellucid.backends.ctranslate2.export import export_ctranslate2
    from pellucid.backends.ctranslate2.support import int8_problem
    from pellucid.bundle import load_bundle

    opened = load_bundle(bundle)
    example = _example_of(opened, example)
    export_ctranslate2(opened, out, quantization, example)
    _tell_of_normalization(opened, "CTranslate2")
    # int16 too: CTranslate2 computes it in int8 where it does not call MKL
    if quantization.startswith("int") and (problem := int8_problem()):
        click.echo(f"WARNING: {quantization} {problem}; translate on another machine", err=True)
    click.echo(f"wrote {out}{_mention_of(example)}", err=True)


def _example_of(bundle: "Bundle", example: str | None) -> str:
    """The named sentence, or one that the run has shown; empty if there is none."""
    from pellucid.backends.web.invitation import sample_of_run

    return sample_of_run(bundle) if example is None else example


def _mention_of(example: str) -> str:
    """The end of a line that says which sentence goes along, as it may be of the user's own
    text."""
    return f"; its README.md translates “{example}”" if example else ""


@export.command()
@_bundle
@_new_folder
@click.option(
    "--format",
    "kind",
    type=click.Choice(("npz", "bin", "int8")),
    default="npz",
    show_default=True,
    help="Marian's archive, its binary file, or that of Firefox's engine in 8 bits.",
)
@click.option(
    "--text",
    type=FILE_PATH,
    help="Sentences of the source language, by which int8 scales activations: the first 500.",
)
@click.option(
    "--shortlist-from",
    type=FILE_PATH,
    nargs=2,
    metavar="SOURCE TARGET",
    help="Two text files of pairs, from which a lexical shortlist is learned and written too.",
)
@click.option(
    "--shortlist",
    type=FILE_PATH,
    help="The lexical shortlist of this model that goes along, as Firefox has it (lex.*.bin).",
)
def marian(
    bundle: str,
    out: Path,
    kind: "FileKind",
    text: Path | None,
    shortlist_from: tuple[Path, Path] | None,
    shortlist: Path | None,
) -> None:
    """Write BUNDLE to the new folder OUT as Marian's own files, with its vocabulary.

    With a lexical shortlist Marian and Firefox translate faster, and not always the same.
    """
    if text is not None and kind != "int8":
        raise click.UsageError("--text must go with --format int8.")
    if shortlist is not None and shortlist_from is not None:
        raise click.UsageError("--shortlist and --shortlist-from exclude each other.")
    require_model(bundle)

    from pellucid.backends.marian_files.shortlist import read_shortlist
    from pellucid.backends.marian_files.write import export_marian
    from pellucid.bundle import load_bundle
    from pellucid.text.corpus.lines import iterate_lines
    from pellucid.text.corpus.pairs import PairFiles, iterate_pairs

    lexical: Shortlist | Iterable[tuple[str, str]] | None = None
    if shortlist is not None:
        lexical = read_shortlist(shortlist)
    if shortlist_from is not None:
        lexical = iterate_pairs(
            PairFiles((shortlist_from[0],), (shortlist_from[1],), format="plain")
        )

    lines: list[str] = []
    if text is not None:
        with contextlib.closing(iterate_lines(text)) as every:
            sentences = (line for line in every if line.strip())
            lines = list(itertools.islice(sentences, _CALIBRATION_LINES))
    opened = load_bundle(bundle)
    export_marian(opened, out, kind, lines, lexical)
    _tell_of_normalization(opened, "Marian")
    click.echo(f"wrote {out}", err=True)


@export.command()
@_bundle
@_new_folder
@_example
def onnx(bundle: str, out: Path, example: str | None) -> None:
    """Write BUNDLE to the new folder OUT as ONNX graphs (needs pellucid[onnx])."""
    require_model(bundle)

    from pellucid.backends.onnx.export import export_onnx
    from pellucid.bundle import load_bundle

    opened = load_bundle(bundle)
    example = _example_of(opened, example)
    export_onnx(opened, out, example)
    click.echo(f"wrote {out}{_mention_of(example)}", err=True)


@export.command()
@_bundle
@click.argument("out", type=FILE_PATH)
@click.option(
    "--weights",
    type=click.Choice(("float32", "float16", "int8")),
    default="float16",
    show_default=True,
    help="How the matrices are stored; the page computes in float32.",
)
@click.option(
    "--example",
    metavar="TEXT",
    help="The text with which the page opens; '' for none.  [default: the last short sample of the"
    " run's validations]",
)
@click.option(
    "--film", default="", metavar="TEXT", help="Show TEXT through the updates of the run BUNDLE."
)
@click.option(
    "--book",
    default="",
    metavar="ADDRESS",
    help="A site of these docs (make site): numbers of equations lead there.",
)
def web(
    bundle: str,
    out: Path,
    weights: "WeightsType",
    example: str | None,
    film: str,
    book: str,
) -> None:
    """Write BUNDLE to the new file OUT: a page that translates by itself, without a server.

    Any model but word vectors can be exported. Open the file in a browser, also from a disk or a
    phone: nothing is loaded and nothing is sent.
    """
    require_model(bundle)
    from pellucid.backends.web.export import export_web
    from pellucid.backends.web.invitation import sample_of_run
    from pellucid.bundle import load_any_bundle

    loaded = load_any_bundle(bundle)
    frames = None
    if film:
        from pellucid.inspection.film import film as film_of

        frames = film_of(bundle, film)
    if example is None:
        example = film or sample_of_run(loaded)
    name = Path(bundle).resolve().name
    size = export_web(loaded, out, weights, name=name, example=example, film=frames, book=book)
    # said, because it may be a sentence of the user's own text, and the file goes to others
    opening = f"; it opens with “{example}”" if example else ""
    click.echo(f"wrote {out}: {size / 1e6:.1f} MB{opening}", err=True)
