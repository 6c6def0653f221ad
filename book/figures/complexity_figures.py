"""The figure of operations by length, and of the time that they take."""

from typing import TYPE_CHECKING, Any

from book.complexity import D_MODEL, stored
from book.figures.themes import Theme
from pellucid.equations.complexity import (
    convolution_operations,
    crossing_length,
    recurrence_operations,
    restricted_attention_operations,
    self_attention_operations,
)
from pellucid.inspection.figures.canvas import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LENGTHS = (8, 16, 32, 64, 128, 256, 512, 1024, 2048)
KERNEL, WINDOW, WIDTH = 3, 64, 512


def draw_complexity(theme: Theme) -> "Figure":
    """Multiplications of a layer by length, and the time of three translators."""
    figure = new_figure(9.0, 4.2)
    figure.suptitle(
        "Why self-attention: what a layer multiplies, and what has to wait (the paper's Table 1)"
    )
    panels: Any = figure.subplots(1, 2)
    _draw_operations(panels[0], theme)
    _draw_seconds(panels[1], theme)
    for panel in panels:
        panel.set_xscale("log", base=2)
        panel.set_yscale("log")
        panel.set_xlabel("words")
        panel.legend(loc="upper left")
        panel.grid(True)
    return figure


def _draw_operations(panel: Any, theme: Theme) -> None:
    millions = {
        "self-attention, 2 n² d": [self_attention_operations(n, n, WIDTH) for n in LENGTHS],
        "recurrence, 2 n d²": [recurrence_operations(n, WIDTH, 1) for n in LENGTHS],
        f"convolution, k = {KERNEL}": [convolution_operations(n, WIDTH, KERNEL) for n in LENGTHS],
        f"attention to r = {WINDOW} words": [
            restricted_attention_operations(n, WIDTH, WINDOW) for n in LENGTHS
        ],
    }
    styles = (("-", theme.blue), ("--", theme.orange), ("-.", theme.green), (":", theme.red))
    for (name, values), (style, color) in zip(millions.items(), styles, strict=True):
        panel.plot(LENGTHS, [each / 1e6 for each in values], style, label=name, color=color)

    meeting = crossing_length(WIDTH, gates=1)
    panel.plot([meeting], [self_attention_operations(meeting, meeting, WIDTH) / 1e6], "o")
    panel.annotate(
        f"n = d = {meeting}",
        (meeting, self_attention_operations(meeting, meeting, WIDTH) / 1e6),
        xytext=(-70, 8),
        textcoords="offset points",
    )
    panel.set_title(f"one layer, d = {WIDTH}")
    panel.set_ylabel("millions of multiplications")


def _draw_seconds(panel: Any, theme: Theme) -> None:
    found = stored()
    styles = (("-", theme.blue), ("--", theme.orange), ("-.", theme.green))
    for name, (style, color) in zip(dict.fromkeys(e.model for e in found), styles, strict=True):
        rows = [each for each in found if each.model == name]
        panel.plot(
            [each.length for each in rows],
            [1e3 * each.seconds for each in rows],
            style,
            marker="o",
            markersize=3,
            label=name,
            color=color,
        )
    panel.set_title(f"measured: one sentence, one CPU thread, d = {D_MODEL}")
    panel.set_ylabel("milliseconds for a forward pass")
