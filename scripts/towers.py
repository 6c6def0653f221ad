"""The picture of README: a sentence on its way through both towers, as ribbons of attention.

    python scripts/towers.py runs/demo "je vois un chat noir" docs/pictures/towers.svg

Each column of words stands between two layers. A ribbon leads from a word that is attended to, to
the word that attends to it, as wide as the attention weight, the mean of all heads; in purple the
decoder attends to the source. It is drawn with the program's own captures, not by hand.
"""

import argparse
import itertools
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Curve

from pellucid import inspect, load_bundle
from pellucid.inspection.entries import Entry
from pellucid.inspection.figures.canvas import new_figure, print_style, save_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SELF, CROSS = "#3b6fb6", "#9a5aae"
WIDEST = 9.0
"""Points of a ribbon of weight 1."""
GAP = 1.6
"""Between the towers, where the words of both stand."""
FAINTEST = 0.04
"""Smaller weights are left out."""
Column = tuple[float, list[float]]
"""The horizontal position of a column of words, and the height of each word."""


def draw_towers(run: Path, source: str, picture: Path) -> None:
    """Translate ``source`` with the model in ``run``, and draw its attention to ``picture``."""
    bundle = load_bundle(run)
    capture = inspect(bundle, source, only=("*.weights",))
    config = bundle.config
    words, generated = capture.source_tokens, capture.target_input_tokens
    rows = max(len(words), len(generated))

    with print_style():
        figure = new_figure(8.0, 0.34 * rows + 1.0)
        axes: Axes = figure.add_subplot()
        axes.set_axis_off()
        across = config.encoder_layers + 2 * config.decoder_layers + GAP
        axes.set_xlim(-0.6, across + 0.7)
        axes.set_ylim(-rows + 0.4, 1.3)

        read = columns(0.0, config.encoder_layers + 1, len(words))
        for layer, (left, right) in enumerate(itertools.pairwise(read)):
            weights = capture.entry(f"encoder.layers.{layer}.self_attention.weights")
            ribbons(axes, left, right, mean_of_heads(weights), SELF)
        write_words(axes, read[0], words, "right")
        write_words(axes, read[-1], words, "left")
        axes.text(0.0, 0.8, "Encoder: reads", fontsize=11)

        start = config.encoder_layers + GAP
        written = columns(start, 2 * config.decoder_layers + 1, len(generated))
        for layer in range(config.decoder_layers):
            left, middle, right = written[2 * layer : 2 * layer + 3]
            name = f"decoder.layers.{layer}"
            own = mean_of_heads(capture.entry(f"{name}.self_attention.weights"))
            ribbons(axes, left, middle, own, SELF)
            across_towers = mean_of_heads(capture.entry(f"{name}.cross_attention.weights"))
            memory = (middle[0], read[-1][1])
            ribbons(axes, memory, right, across_towers, CROSS)
            for height, word in zip(memory[1], words, strict=True):  # where its ribbons begin
                style = {"color": CROSS, "fontsize": 6, "va": "center", "zorder": 3}
                axes.text(middle[0] + 0.03, height + 0.2, word.replace("▁", " "), **style)
        write_words(axes, written[0], generated, "right")
        write_words(axes, written[-1], capture.target_tokens, "left")
        axes.text(start, 0.8, "Decoder: writes the next word", fontsize=11)
        save_picture(figure, picture)


def columns(first: float, count: int, rows: int) -> list[Column]:
    """So many columns of ``rows`` words, one unit apart."""
    return [(first + at, [-float(row) for row in range(rows)]) for at in range(count)]


def mean_of_heads(weights: Entry) -> np.ndarray:
    """Attention weights (query, key), the mean of all heads."""
    return weights.tensor.float().numpy().mean(axis=-3).squeeze()


def ribbons(axes: "Axes", left: Column, right: Column, weights: np.ndarray, color: str) -> None:
    """Curves from the keys at the left to the queries at the right, as wide as their weights."""
    middle = (left[0] + right[0]) / 2
    for query, row in enumerate(weights[: len(right[1])]):
        for key, weight in enumerate(row[: len(left[1])]):
            if weight < FAINTEST:
                continue
            begin, end = (left[0], left[1][key]), (right[0], right[1][query])
            points = [begin, (middle, begin[1]), (middle, end[1]), end]
            curve = Curve(points, [Curve.MOVETO, *[Curve.CURVE4] * 3])
            width, alpha = WIDEST * weight, 0.25 + 0.6 * weight
            axes.add_patch(PathPatch(curve, fill=False, color=color, linewidth=width, alpha=alpha))


def write_words(axes: "Axes", column: Column, words: tuple[str, ...], side: str) -> None:
    """The words of a column, at its left (aligned ``right``) or at its right."""
    shift = -0.08 if side == "right" else 0.08
    for height, word in zip(column[1], words, strict=True):
        axes.text(column[0] + shift, height, word.replace("▁", " "), ha=side, va="center")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("source")
    parser.add_argument("picture", type=Path)
    given = parser.parse_args()
    draw_towers(given.run, given.source, given.picture)
