"""The figure of Bahdanau et al. with systems of our own: BLEU by the length of the sentence."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from book.figures.themes import Theme
from pellucid.inspection.figures.canvas import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEASURED = Path(__file__).parents[2] / "benchmarks" / "results" / "road.json"
"""Trained for twenty minutes each, on one core and the same captions."""
CORPUS = "multi30k"
SYSTEMS = {
    "transformer, sinusoidal": "Transformer",
    "rnn-attention, additive": "recurrent, with Bahdanau's attention",
    "rnn": "recurrent, one vector",
}
"""The systems of the figure, under their names in the measurement."""


def bleu_by_length() -> dict[str, dict[str, float]]:
    """For each system its BLEU on the test sentences of each range of lengths."""
    rows = json.loads(MEASURED.read_text("utf-8"))["rows"]
    found = {row["system"]: row["by_length"] for row in rows if row["corpus"] == CORPUS}
    return {name: {words: part["bleu"] for words, part in found[name].items()} for name in SYSTEMS}


def draw_lengths(theme: Theme) -> "Figure":
    """A line for each system over the ranges of lengths."""
    figure = new_figure(7.0, 4.0)
    figure.suptitle("What one vector costs: BLEU by the length of the source sentence")
    panel = figure.subplots()
    styles = (("-.", theme.green), ("-", theme.blue), ("--", theme.orange))
    found = bleu_by_length()
    for (name, parts), (style, color) in zip(found.items(), styles, strict=True):
        panel.plot(
            list(parts), list(parts.values()), style, marker="o", color=color, label=SYSTEMS[name]
        )
    panel.set_xlabel("words of the source sentence")
    panel.set_ylabel("BLEU")
    panel.set_ylim(bottom=0)
    panel.legend(loc="lower left")
    panel.grid(True)
    return figure
