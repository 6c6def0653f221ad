"""Pictures of attention weights and of ablations, drawn with matplotlib (extra ``plot``)."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from pellucid.core.errors import ConfigError
from pellucid.inspection.ablation import AblationStudy
from pellucid.inspection.capture import Capture
from pellucid.inspection.figures.canvas import DOTS_PER_INCH, new_figure, print_style, save_picture
from pellucid.inspection.parts import name_equations, parts_of

MOST_PANELS = 150
"""The most heat maps in one picture; more are unreadable and take long to draw."""
_MOST_PIXELS = 100_000_000
"""A picture of so many takes 400 MB while it is drawn."""
_INCHES_PER_WORD = 0.24
_INCHES_PER_LETTER = 0.08
_MARGIN = 1.1
_NARROWEST, _LOWEST = 1.5, 2.2
"""The inches that the title of a heat map takes, and the name of an attention beside a row."""
_LAYERS = "whole layers"


@dataclasses.dataclass(frozen=True)
class _Panel:
    title: str
    weights: Tensor
    rows: Sequence[str]
    columns: Sequence[str]


def draw_attention(capture: Capture, path: Path) -> None:
    """Save every head's weights in ``capture`` as heat maps, a row of them for each attention.

    Words stand on both axes; where several heads of an attention were captured, their mean comes
    first. The suffix of ``path`` decides the format. Raises MissingExtraError without matplotlib,
    WriteError, ConfigError if the capture holds no weights or too many, or the picture would be too
    large.
    """
    grid = _grid(capture)
    if not capture.config.cross_attentions:
        raise ConfigError("a picture of attention needs attention, and a plain rnn has none")
    # Checked before matplotlib is imported, which takes a while.
    count = sum(len(panels) for panels in grid.values())
    if not 0 < count <= MOST_PANELS:
        raise ConfigError(
            f"a picture must show from 1 to {MOST_PANELS} heat maps, got {count}",
            hint='choose heads, for example by only=("decoder.layers.0.*.heads.*.weights",)',
        )

    widest = max(len(panels) for panels in grid.values())
    columns = max(len(panel.columns) for panels in grid.values() for panel in panels)
    width = widest * max(columns * _INCHES_PER_WORD + 0.5, _NARROWEST)
    heights = [
        max(len(panels[0].rows) * _INCHES_PER_WORD + _MARGIN, _LOWEST) for panels in grid.values()
    ]
    pixels = width * sum(heights) * DOTS_PER_INCH**2
    if path.suffix == ".png" and pixels > _MOST_PIXELS:
        raise ConfigError(
            f"a picture must have at most {_MOST_PIXELS / 1e6:.0f} million pixels, would have"
            f" {pixels / 1e6:,.0f}",
            hint='draw fewer attentions, for example --only "decoder.layers.0.*.weights", or .svg',
        )

    with print_style():
        title = f"Attention weights: {_formula(capture)}"
        figure = new_figure(
            max(width + _MARGIN, len(title) * _INCHES_PER_LETTER), sum(heights) + 0.5
        )
        figure.suptitle(title)
        ratios = {"height_ratios": heights}
        axes: Any = figure.subplots(len(grid), widest, squeeze=False, gridspec_kw=ratios)
        image: Any = None
        for row, (name, panels) in zip(axes, grid.items(), strict=True):
            row[0].set_ylabel(name)
            # Rows differ in length if only some heads of an attention were captured.
            for axis in row[len(panels) :]:
                axis.set_axis_off()
            for axis, panel in zip(row, panels, strict=False):
                image = _draw_panel(axis, panel, has_row_words=axis is row[0])
        figure.colorbar(image, ax=axes.ravel().tolist(), label="weight", fraction=0.02)
        save_picture(figure, path)


def draw_ablation(study: AblationStudy, path: Path) -> None:
    """Save what BLEU loses with each head off and each layer left out as heat maps.

    Raises MissingExtraError without matplotlib, WriteError, ConfigError if nothing was off.
    """
    tables = _tables(study)
    if not tables:
        raise ConfigError("a picture of ablations needs a part that was off, got none")
    heads = [table for title, (table, _) in tables.items() if title != _LAYERS]

    with print_style():
        height = max(table.shape[0] for table, _ in tables.values()) * 0.45 + 1.6
        width = sum(table.shape[1] * 0.7 + 1.6 for table, _ in tables.values())
        figure = new_figure(max(width, 4.0), height)
        figure.suptitle(f"BLEU with one part off, less {study.bleu:.1f} of the whole model")
        ratios = {"width_ratios": [table.shape[1] + 1.5 for table, _ in tables.values()]}
        axes: Any = figure.subplots(1, len(tables), squeeze=False, gridspec_kw=ratios)[0]
        for axis, (title, (table, columns)) in zip(axes, tables.items(), strict=True):
            # A layer may be worth far more than a head: each has a scale of its own.
            largest = _largest([table] if title == _LAYERS else heads)
            # Symmetric around 0, which is white: red is a loss, blue a gain.
            axis.imshow(table, cmap="RdBu", vmin=-largest, vmax=largest, aspect="auto")
            axis.set_title(title)
            axis.set_xticks(range(table.shape[1]), columns)
            axis.set_yticks(range(table.shape[0]), [f"layer {n}" for n in range(len(table))])
            for (row, column), change in np.ndenumerate(table):
                if not np.isnan(change):
                    # The ends of the color map are dark.
                    color = "white" if abs(change) > 0.7 * largest else "black"
                    place = {"ha": "center", "va": "center", "fontsize": 7, "color": color}
                    axis.text(column, row, f"{change:+.1f}", **place)
        save_picture(figure, path)


def _largest(tables: Sequence[Any]) -> float:
    return max(float(np.nanmax(np.abs(table))) for table in tables) or 1.0


def _grid(capture: Capture) -> dict[str, list[_Panel]]:
    """The heat maps of each attention from left to right, by a readable name."""
    heads: dict[str, list[_Panel]] = {}
    for name in capture.names():
        stem, mark, rest = name.partition(".heads.")
        if mark and rest.endswith(".weights"):
            entry = capture.entry(name)
            rows, columns = (words or () for words in entry.words)
            title = f"head {rest.partition('.')[0]}"
            # (query, key), with the words of the sentence along both axes
            heads.setdefault(stem, []).append(_Panel(title, entry.tensor.float(), rows, columns))

    grid = {}
    for stem, panels in heads.items():
        # Of the captured heads, which need not be all.
        mean = sum((panel.weights for panel in panels), start=0 * panels[0].weights) / len(panels)
        first = _Panel("mean of the heads", mean, panels[0].rows, panels[0].columns)
        # The mean of one head would be the same picture twice.
        grid[_readable(stem)] = panels if len(panels) == 1 else [first, *panels]
    return grid


def _readable(stem: str) -> str:
    """``decoder.layers.0.cross_attention`` as ``decoder 0, cross-attention``."""
    place, _, kind = stem.rpartition(".")
    return f"{place.replace('.layers.', ' ')}, {kind.replace('_', '-')}"


def _formula(capture: Capture) -> str:
    """The formula of the drawn weights, with that of the scores inserted, and its equations."""
    parts = parts_of(capture.config)
    stems = {name.partition(".heads.")[0] for name in capture.names() if ".heads." in name}
    scores = [parts[f"{stem}.scores"] for stem in sorted(stems)]
    weights = [parts[f"{stem}.weights"] for stem in sorted(stems)]

    # Self-attention and cross-attention differ where positions act inside attention.
    products = {each.formula.partition(" = ")[2] for each in scores}
    product = products.pop() if len(products) == 1 else "scores"
    numbers = sorted({number for each in (*scores, *weights) for number in each.equations})
    return f"softmax({product}), {name_equations(numbers)}"


def _draw_panel(axis: Any, panel: _Panel, *, has_row_words: bool) -> Any:
    # The same scale in every panel: heads can be compared by their color.
    image = axis.imshow(panel.weights.numpy(), cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    axis.set_title(panel.title)
    # A token may hold a dollar sign, which matplotlib would read as a formula.
    axis.set_xticks(range(len(panel.columns)), panel.columns, rotation=90, parse_math=False)
    words = panel.rows if has_row_words else [""] * len(panel.rows)
    axis.set_yticks(range(len(panel.rows)), words, parse_math=False)
    return image


def _tables(study: AblationStudy) -> dict[str, tuple[Any, list[str]]]:
    """Changes of BLEU with the names of the columns.

    (layer, head) for each kind of attention, (layer, side) for whole layers.
    """
    changes: dict[str, dict[tuple[int, int], float]] = {}
    columns: dict[str, dict[int, str]] = {}
    for each in study.parts:
        stem, mark, head = each.part.partition(".heads.")
        side, _, rest = stem.partition(".layers.")
        layer, _, kind = rest.partition(".")
        if kind:
            title = f"{side}, {kind.replace('_', '-')}"
            column, label = (int(head), f"head {head}") if mark else (0, "all")
        elif layer:
            title, column, label = _LAYERS, ["encoder", "decoder"].index(side), side
        else:
            title, column, label, layer = "attention", 0, "all", "0"
        changes.setdefault(title, {})[int(layer), column] = each.bleu - study.bleu
        columns.setdefault(title, {})[column] = label

    tables = {}
    for title, cells in changes.items():
        # NaN where nothing was measured: a study may be of some parts only.
        measured = sorted(columns[title])
        table = np.full((max(row for row, _ in cells) + 1, len(measured)), np.nan)
        for (row, column), change in cells.items():
            table[row, measured.index(column)] = change
        tables[title] = (table, [columns[title][column] for column in measured])

    return tables
