"""What ``pellucid inspect`` shows: tokens, where they looked, what each layer would have said."""

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from pellucid.inspection.capture import Capture
    from pellucid.inspection.entries import Entry
    from pellucid.inspection.heads import HeadRank
    from pellucid.inspection.lens import Lens
    from pellucid.inspection.saliency import Saliency
    from pellucid.inspection.sentence import Opened

CROSS_ATTENTION = "*cross_attention.heads.*.weights"
"""Where each head looked in the source."""
_SALIENCY_STEPS = 64
_SHOWN_HEADS = 3
_SHOWN_SOURCES = 3
_SURE, _UNSURE = 0.9, 0.5
"""Probabilities from which a token is shown green, and below which red."""


@dataclasses.dataclass(frozen=True)
class Look:
    """One sentence pair, looked at from several sides."""

    capture: "Capture"
    alignment: "tuple[tuple[int, int], ...]"
    """(source token, target token), as ``translate`` gives it; empty without attention."""
    lens: "Lens"
    heads: "list[HeadRank]"
    """Best first; empty without attention."""
    saliency: "Saliency | None"


def look_inside(opened: "Opened", capture: "Capture", *, with_saliency: bool) -> Look:
    """Look at a captured sentence from every side."""
    import torch

    from pellucid.decoding.alignment import align_tokens
    from pellucid.decoding.attention import looks
    from pellucid.inspection.capture import capture_of
    from pellucid.inspection.heads import rank_heads
    from pellucid.inspection.lens import lens_of
    from pellucid.inspection.saliency import saliency_of
    from pellucid.inspection.sentence import at_rest

    sentence = capture.sentence
    alignment: tuple[tuple[int, int], ...] = ()
    heads: list[HeadRank] = []
    if capture.config.kind != "rnn":
        pair = (sentence.source_ids[:-1], sentence.target_ids[:-1])
        with torch.no_grad(), at_rest(opened.model):
            [look] = looks(opened.model, [pair], None, None)
        alignment = align_tokens(look)
        heads = rank_heads([capture_of(opened, sentence, (CROSS_ATTENTION,))])
    return Look(
        capture=capture,
        alignment=alignment,
        lens=lens_of(opened, sentence, count=5),
        heads=heads,
        saliency=(
            saliency_of(opened, sentence, "integrated_gradients", _SALIENCY_STEPS)
            if with_saliency
            else None
        ),
    )


def show(look: Look, *, list_entries: bool) -> None:
    """Print it: colored on a terminal, plain elsewhere."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    _say(console, f"source  {look.capture.sentence.source}")
    _say(console, f"target  {look.capture.text}")
    _show_tokens(console, look)
    _show_lens(console, look.lens)
    if look.heads:
        console.print("\nheads that align best (weight on the token where the others look)")
        for rank in look.heads[:_SHOWN_HEADS]:
            name = rank.name.removesuffix(".weights")
            console.print(f"  {rank.agreement:.2f}  {name}, entropy {rank.entropy:.2f} nats")
    if look.saliency is not None:
        _show_saliency(console, look.saliency)
    if list_entries:
        console.print()
        for name in look.capture.names():
            _say(console, _describe(look.capture.entry(name)))


def _show_tokens(console: "Console", look: Look) -> None:
    from rich.table import Table

    capture = look.capture
    table = Table(box=None, pad_edge=False)
    for header in ("says", "p", "looked at", "might have said"):
        table.add_column(header, justify="right" if header == "p" else "left")
    sources = {target: capture.source_tokens[source] for source, target in look.alignment}
    for row, (token, confidence) in enumerate(
        zip(capture.target_tokens, capture.confidences, strict=True)
    ):
        said = capture.sentence.target_ids[row]
        others = [word for word in capture.predictions[row] if word.id != said][:2]
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
        best = [layer.predictions[row][0] for layer in lens.layers]
        table.add_row(
            *(_colored(word.token, word.probability, f" {word.probability:.2f}") for word in best)
        )
    console.print("\nwhat each layer of the decoder would say")
    console.print(table)


def _show_saliency(console: "Console", saliency: "Saliency") -> None:
    sentence = saliency.sentence
    console.print("\nwhat each token hangs on (integrated gradients, nats)")
    for token, row in zip(sentence.target_tokens, saliency.scores.tolist(), strict=True):
        strongest = sorted(range(len(row)), key=lambda place: -abs(row[place]))[:_SHOWN_SOURCES]
        shares = ", ".join(f"{sentence.source_tokens[n]} {row[n]:+.2f}" for n in strongest)
        _say(console, f"  {token}: {shares}")


def _describe(entry: "Entry") -> str:
    return f"{entry.name}  ({entry.shape_in_words})  {entry.equation_names}  {entry.meaning}"


def _colored(token: str, probability: float, suffix: str = "") -> "Text":
    from rich.text import Text

    style = "green" if probability >= _SURE else "red" if probability < _UNSURE else "yellow"
    return Text(_clean(token) + suffix, style=style)


def _visible(text: str) -> "Text":
    from rich.text import Text

    return Text(_clean(text))


def _say(console: "Console", text: str) -> None:
    console.print(_visible(text))


def _clean(text: str) -> str:
    """Without what could steer a terminal."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii")
        for letter in text
    )
