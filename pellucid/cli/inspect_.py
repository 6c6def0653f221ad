"""``pellucid inspect``: the command, what it computes for a sentence, and how it is printed."""

import dataclasses
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pellucid.cli.options import NAME, PATH, json_option, require_model
from pellucid.cli.streams import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from pellucid.inspection.capture import Capture
    from pellucid.inspection.heads import HeadRank
    from pellucid.inspection.lens import Lens
    from pellucid.inspection.saliency import Saliency
    from pellucid.inspection.sentence import Opened, Sentence
    from pellucid.inspection.value_zeroing import ValueZeroing


_SALIENCY_STEPS = 64
_SHOWN_HEADS = 3
_SHOWN_SOURCES = 3
_LEAST_SHARE = 0.005
_PIPED_WIDTH = 10_000
"""Columns of a table that no terminal shows."""
_SURE, _UNSURE = 0.9, 0.5
"""A token is green from the first probability on, and red below the second."""


@dataclasses.dataclass(frozen=True)
class Inspection:
    """The inspections of one sentence pair."""

    capture: "Capture"
    alignment: "tuple[tuple[int, int], ...]"
    """Pairs (source token, target token), as ``translate`` aligns them; empty without attention."""
    lens: "Lens"
    heads: "list[HeadRank]"
    """The heads that align best, best first; empty without attention."""
    saliency: "Saliency | None"
    value_zeroing: "ValueZeroing | None"


def look_inside(
    opened: "Opened", capture: "Capture", *, with_saliency: bool, with_value_zeroing: bool
) -> Inspection:
    """Compute everything that the command shows of a captured sentence."""
    import torch

    from pellucid.decoding.attention import align_tokens, cross_attention
    from pellucid.inspection.capture import capture_of
    from pellucid.inspection.heads import patterns_of_heads, rank_heads
    from pellucid.inspection.lens import lens_of
    from pellucid.inspection.saliency import saliency_of
    from pellucid.inspection.value_zeroing import value_zeroing_of
    from pellucid.model.dropout import without_dropout

    sentence = capture.sentence
    alignment: tuple[tuple[int, int], ...] = ()
    heads: list[HeadRank] = []
    if capture.config.cross_attentions:
        # As ``translate --align`` aligns, so that both print the same links.
        pair = (sentence.source_ids[:-1], sentence.target_ids[:-1])  # without the stops
        with torch.no_grad(), without_dropout(opened.model):
            [seen] = cross_attention(opened.model, [pair], None, None)
        alignment = align_tokens(seen)
        # A capture of its own: ``--only`` may have left these weights out.
        heads = rank_heads([capture_of(opened, sentence, patterns_of_heads(capture.config))])

    return Inspection(
        capture=capture,
        alignment=alignment,
        lens=lens_of(opened, sentence, count=5),
        heads=heads,
        saliency=(
            saliency_of(opened, sentence, "integrated_gradients", _SALIENCY_STEPS)
            if with_saliency
            else None
        ),
        value_zeroing=value_zeroing_of(opened, sentence) if with_value_zeroing else None,
    )


def show(inspection: Inspection, *, list_entries: bool) -> None:
    """Print an inspection: colored on a terminal, plain elsewhere."""
    from rich.console import Console

    # A table that a program reads is not cut to the width of a terminal.
    width = None if sys.stdout.isatty() else _PIPED_WIDTH
    console = Console(width=width, highlight=False, soft_wrap=True)
    _say(console, f"source  {inspection.capture.sentence.source}")
    _say(console, f"target  {inspection.capture.text}")

    _show_tokens(console, inspection)
    _show_lens(console, inspection.lens)
    if inspection.heads:
        console.print("\nheads that align best (weight on the token where the other heads have it)")
        for rank in inspection.heads[:_SHOWN_HEADS]:
            name = rank.name.removesuffix(".weights")
            console.print(f"  {rank.agreement:.2f}  {name}, entropy {rank.entropy:.2f} nats")

    if inspection.saliency is not None:
        _show_saliency(console, inspection.saliency)
    if inspection.value_zeroing is not None:
        _show_value_zeroing(console, inspection.value_zeroing)

    if list_entries:
        console.print()
        for each in map(inspection.capture.entry, inspection.capture.names()):
            shape, equations = each.shape_in_words, each.equation_names
            _say(console, f"{each.name}  ({shape})  {equations}  {each.meaning}")


def _show_tokens(console: "Console", inspection: Inspection) -> None:
    from rich.table import Table

    capture = inspection.capture
    table = Table(box=None, pad_edge=False)
    for header in ("token", "p", "attends to", "alternatives"):
        table.add_column(header, justify="right" if header == "p" else "left")

    sources = {target: capture.source_tokens[source] for source, target in inspection.alignment}
    for row, (token, confidence) in enumerate(
        zip(capture.target_tokens, capture.confidences, strict=True)
    ):
        id_ = capture.sentence.target_ids[row]
        # The likeliest two besides the target, which need not be the likeliest itself.
        others = [word for word in capture.predictions[row] if word.id != id_][:2]
        table.add_row(
            _colored(token, confidence),
            f"{confidence:.3f}",
            _visible(sources.get(row, "")),
            _visible(", ".join(f"{word.token} {word.probability:.3f}" for word in others)),
        )
    console.print()
    console.print(table)


def _show_lens(console: "Console", lens: "Lens") -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for layer in lens.layers:
        table.add_column(layer.name.removeprefix("decoder.").removesuffix(".output"))
    for row in range(len(lens.sentence.target_tokens)):
        # One column for each layer, one row for each position.
        best = [layer.predictions[row][0] for layer in lens.layers]
        table.add_row(
            *(_colored(word.token, word.probability, f" {word.probability:.2f}") for word in best)
        )
    console.print("\nwhat each layer of the decoder would predict")
    console.print(table)


def _show_saliency(console: "Console", saliency: "Saliency") -> None:
    sentence = saliency.sentence
    console.print("\nwhat each token depends on (integrated gradients, nats)")
    rows, gains = saliency.scores.tolist(), saliency.gains.tolist()
    for token, row, gain in zip(sentence.target_tokens, rows, gains, strict=True):
        # By size and not by sign: a word may speak against a prediction.
        by_size = sorted(range(len(row)), key=lambda position: -abs(row[position]))
        strongest = by_size[:_SHOWN_SOURCES]
        shares = ", ".join(f"{sentence.source_tokens[n]} {row[n]:+.2f}" for n in strongest)
        _say(console, f"  {token}: {shares}; all {sum(row):+.2f}, should be {gain:+.2f}")


def _show_value_zeroing(console: "Console", found: "ValueZeroing") -> None:
    console.print("\nwhose value each hidden state depends on (value zeroing)")
    sentence = found.sentence
    for name, shares in found.attentions.items():
        _say(console, f"  {name}")
        is_encoder = name.startswith("encoder")
        queries = sentence.source_tokens if is_encoder else sentence.target_input_tokens
        is_of_source = is_encoder or name.endswith("cross_attention")
        keys = sentence.source_tokens if is_of_source else sentence.target_input_tokens
        for query, row in zip(queries, shares.tolist(), strict=True):
            strongest = sorted(range(len(row)), key=lambda key: -row[key])[:_SHOWN_SOURCES]
            # what rounds to nothing, such as a later word under the causal mask, is left out
            reported = [f"{keys[n]} {row[n]:.0%}" for n in strongest if row[n] >= _LEAST_SHARE]
            _say(console, f"    {query}: {', '.join(reported)}")


def _colored(token: str, probability: float, suffix: str = "") -> "Text":
    from rich.text import Text

    style = "green" if probability >= _SURE else "red" if probability < _UNSURE else "yellow"
    return Text(visible(token) + suffix, style=style)


def _visible(text: str) -> "Text":
    from rich.text import Text

    return Text(visible(text))


def _say(console: "Console", text: str) -> None:
    console.print(_visible(text))


_Command = TypeVar("_Command", bound=Callable[..., Any])


def _file_option(name: str, text: str) -> Callable[[_Command], _Command]:
    """An option that names a file to write."""
    return click.option(name, type=PATH, metavar="FILE", help=text)


@click.command()
@click.argument("bundle", type=NAME)
@click.argument("sentence")
@click.option("--target", help="The translation to inspect.  [default: the model's own]")
@click.option(
    "--only",
    multiple=True,
    metavar="PATTERN",
    help='Intermediates to list or save, such as "decoder.layers.0.*"; may be given again.',
)
@_file_option("--save", "Write the intermediates as safetensors.")
@_file_option("--attention", "Draw heat maps of the attention, as .svg, .png or .pdf.")
@_file_option("--report", "Write one HTML file that walks the sentence through the model.")
@click.option(
    "--film", is_flag=True, help="With --report: the same sentence through the updates of its run."
)
@click.option(
    "--book",
    default="",
    metavar="ADDRESS",
    help="With --report: a site of these docs (make site), to which numbers of equations lead.",
)
@click.option("--saliency", is_flag=True, help="Which source words each target word depends on.")
@click.option(
    "--value-zeroing",
    is_flag=True,
    help="In each attention, how far a hidden state turns without the value of each position.",
)
@click.option(
    "--why", metavar="WORD", help="Why WORD is generated: what each part adds to its logit."
)
@click.option(
    "--not", "rival", metavar="WORD", help="With --why or alone: why WORD is not generated."
)
@json_option
def inspect(
    bundle: str,
    sentence: str,
    target: str | None,
    only: tuple[str, ...],
    save: Path | None,
    attention: Path | None,
    report: Path | None,
    film: bool,
    book: str,
    saliency: bool,
    value_zeroing: bool,
    why: str | None,
    rival: str | None,
    as_json: bool,
) -> None:
    """Look inside BUNDLE, a bundle or run folder, while it translates SENTENCE.

    Shows the probability of each token, the source token that it attends to, and what each layer of
    the decoder would predict.

    \b
    Examples:
      pellucid inspect runs/demo "je suis étudiant"
      pellucid inspect runs/demo "je suis étudiant" --report report.html
      pellucid inspect runs/demo "je suis étudiant" --report report.html --film
      pellucid inspect runs/demo "je suis étudiant" --only "decoder.layers.0.*" --json
      pellucid inspect runs/demo "je suis étudiant" --why student --not teacher
    """
    require_model(bundle)
    # By os.path, which raises for no sentence, however long. A word may be the name of a file, too.
    if os.path.splitext(sentence)[1] and os.path.isfile(sentence):  # noqa: PTH113, PTH122
        raise click.UsageError(f"SENTENCE is the text itself, and {sentence} is a file.")
    if film and report is None:
        raise click.UsageError("--film is part of a report: name its file by --report FILE")
    if book and report is None:
        raise click.UsageError("--book is for a report: name its file by --report FILE")
    files = [file for file in (save, attention, report) if file is not None]
    if len(set(files)) < len(files):
        raise click.UsageError("--save, --attention and --report write files of their own.")
    if why is not None or rival is not None:
        if only or files or saliency or value_zeroing:
            raise click.UsageError("--why and --not go with --target and --json only")
        from pellucid.inspection.why import why as explain

        found = explain(bundle, sentence, target, word=why, rival=rival)
        if as_json:
            click.echo(json.dumps(found.to_dict(), ensure_ascii=False))
        else:
            click.echo("\n".join(visible(line) for line in str(found).splitlines()))
        return

    # A wrong suffix fails before PyTorch is imported and the model is run.
    from pellucid.inspection.figures.canvas import check_picture

    if attention is not None:
        check_picture(attention)

    from pellucid.inspection.capture import capture_of
    from pellucid.inspection.plain import json_line
    from pellucid.inspection.sentence import open_model, read_sentence

    opened = open_model(bundle)
    read = read_sentence(opened, sentence, target)
    # Without --only no intermediate is printed, so only --save needs them.
    # A captured attention computes its weights in the open, which is slower.
    capture = capture_of(opened, read, ("*",) if save is not None and not only else only)
    inspection = look_inside(
        opened, capture, with_saliency=saliency, with_value_zeroing=value_zeroing
    )

    if as_json:
        click.echo(json_line(_plain(inspection, with_values=bool(only))))
    else:
        show(inspection, list_entries=bool(only))

    if save is not None:
        capture.save(save)
        click.echo(f"{len(capture.names())} intermediates: {save}", err=True)
    if attention is not None:
        _draw(opened, read, only, attention)
    if report is not None:
        from pellucid.inspection.report.page import write_report

        # The report captures again, with everything in it.
        frames = None
        if film:
            from pellucid.inspection.film import film as film_of

            frames = film_of(bundle, sentence, target)
            steps = ", ".join(f"{frame.step:,}" for frame in frames.frames)
            click.echo(f"film: updates {steps}", err=True)
        write_report(opened.translator, report, sentence, target, frames, book=book)
        click.echo(f"report: {report}", err=True)


def _draw(opened: "Opened", sentence: "Sentence", only: tuple[str, ...], path: Path) -> None:
    from pellucid.inspection.capture import capture_of
    from pellucid.inspection.figures.attention import draw_attention
    from pellucid.inspection.heads import patterns_of_heads

    default = patterns_of_heads(opened.model.config)
    draw_attention(capture_of(opened, sentence, only or default), path)
    click.echo(f"picture: {path}", err=True)


def _plain(inspection: Inspection, *, with_values: bool) -> dict[str, Any]:
    from pellucid.inspection.plain import plain_capture

    saliency = inspection.saliency
    return {
        **plain_capture(inspection.capture, with_values=with_values),
        "alignment": [list(link) for link in inspection.alignment],
        "lens": [dataclasses.asdict(layer) for layer in inspection.lens.layers],
        "heads": [dataclasses.asdict(rank) for rank in inspection.heads],
        "saliency": None if saliency is None else saliency.scores.tolist(),
        "saliency_gains": None if saliency is None else saliency.gains.tolist(),
        "value_zeroing": (
            None
            if inspection.value_zeroing is None
            else {name: each.tolist() for name, each in inspection.value_zeroing.attentions.items()}
        ),
    }
