"""``pellucid inspect``: one sentence, looked at from inside the model."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pellucid.cli.look import CROSS_ATTENTION, Look, look_inside, show

if TYPE_CHECKING:
    from pellucid.inspection.sentence import Opened, Sentence

_Command = TypeVar("_Command", bound=Callable[..., Any])
_KEY = "pellucid.inspect"


def _remember(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
    ctx.meta.setdefault(_KEY, {})[parameter.name] = value


def _file_option(name: str, text: str) -> Callable[[_Command], _Command]:
    """A file that is to be written."""
    kind = click.Path(path_type=Path)
    return click.option(
        name, type=kind, metavar="FILE", expose_value=False, callback=_remember, help=text
    )


@click.command()
@click.argument("bundle")
@click.argument("sentence")
@click.option("--target", help="What the model is to say.  [default: its own translation]")
@click.option(
    "--only",
    multiple=True,
    metavar="PATTERN",
    help='Intermediates to list or save, such as "decoder.layers.0.*"; may be given again.',
)
@_file_option("--save", "Write the intermediates as safetensors.")
@_file_option("--attention", "Draw heat maps of the attention, as .svg, .png or .pdf.")
@_file_option("--report", "Write one HTML file that walks the sentence through the model.")
@click.option("--saliency", is_flag=True, help="Which source words each target word hangs on.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def inspect(
    bundle: str,
    sentence: str,
    target: str | None,
    only: tuple[str, ...],
    saliency: bool,
    as_json: bool,
) -> None:
    """Look inside BUNDLE, a bundle or run folder, while it translates SENTENCE.

    Shows how sure the model is of each token, where it looked, and what each layer of the decoder
    would have said.

    \b
    Examples:
      pellucid inspect runs/demo "je suis étudiant"
      pellucid inspect runs/demo "je suis étudiant" --report report.html
      pellucid inspect runs/demo "je suis étudiant" --only "decoder.layers.0.*" --json
    """
    files: dict[str, Path | None] = click.get_current_context().meta[_KEY]
    save, attention, report = files["save"], files["attention"], files["report"]
    from pellucid.inspection.figures.canvas import check_picture

    if attention is not None:
        check_picture(attention)

    from pellucid.inspection.capture import capture_of
    from pellucid.inspection.sentence import open_model, read_sentence

    opened = open_model(bundle)
    read = read_sentence(opened, sentence, target)
    # Without a pattern nothing but words is shown, so only a file needs the intermediates.
    capture = capture_of(opened, read, ("*",) if save is not None and not only else only)
    look = look_inside(opened, capture, with_saliency=saliency)
    if as_json:
        click.echo(json.dumps(_plain(look, with_values=bool(only)), ensure_ascii=False))
    else:
        show(look, list_entries=bool(only))
    if save is not None:
        capture.save(save)
        click.echo(f"{len(capture.names())} intermediates: {save}", err=True)
    if attention is not None:
        _draw(opened, read, only, attention)
    if report is not None:
        from pellucid.inspection.report.write import write_report

        write_report(opened.translator, report, sentence, target)
        click.echo(f"report: {report}", err=True)


def _draw(opened: "Opened", sentence: "Sentence", only: tuple[str, ...], path: Path) -> None:
    from pellucid.inspection.capture import capture_of
    from pellucid.inspection.figures.attention import draw_attention

    default = () if opened.model.config.kind == "rnn" else (CROSS_ATTENTION,)
    draw_attention(capture_of(opened, sentence, only or default), path)
    click.echo(f"picture: {path}", err=True)


def _plain(look: Look, *, with_values: bool) -> dict[str, Any]:
    from pellucid.inspection.plain import plain_capture, plain_lens

    saliency = None if look.saliency is None else look.saliency.scores.tolist()
    return {
        **plain_capture(look.capture, with_values=with_values),
        "alignment": [list(link) for link in look.alignment],
        "lens": plain_lens(look.lens),
        "heads": [dataclasses.asdict(rank) for rank in look.heads],
        "saliency": saliency,
    }
