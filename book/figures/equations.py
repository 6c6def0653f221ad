"""Figures about the equations, drawn with the functions of ``pellucid.equations``.

Each shows a statement of one of the texts in docs/sources.md, or of the paper, for a page with a
light or a dark background. Here are their names and what all have in common; the files beside it
draw them, by the sections of the paper.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, assert_never, get_args

from book.figures.attention_equations import (
    draw_dot_products,
    draw_exp_cosine,
    draw_jacobian_statistics,
    draw_jacobians,
    draw_masks,
)
from book.figures.complexity_figures import draw_complexity
from book.figures.length_figures import draw_lengths
from book.figures.position_equations import draw_positions, draw_wavelengths
from book.figures.themes import Theme, ThemeName, theme_of, themed_style
from book.figures.training_equations import draw_label_smoothing, draw_learning_rate
from pellucid.core.errors import ConfigError
from pellucid.core.files import write_errors
from pellucid.core.near_names import did_you_mean
from pellucid.inspection.figures.canvas import PICTURE_SUFFIXES, save_picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FigureName = Literal[
    "complexity",
    "dot-products",
    "exp-cosine",
    "jacobian-statistics",
    "jacobians",
    "label-smoothing",
    "learning-rate",
    "lengths",
    "masks",
    "positions",
    "wavelengths",
]
FIGURE_NAMES: tuple[FigureName, ...] = get_args(FigureName)
NUMBERS: dict[FigureName, str] = {
    "complexity": "Vaswani et al. (2017), §4",
    "dot-products": "EQ-60",
    "exp-cosine": "EQ-59, ER-05",
    "jacobian-statistics": "EQ-49, ER-57",
    "jacobians": "EQ-48",
    "label-smoothing": "EQ-120, ER-48",
    "learning-rate": "Vaswani et al. (2017), eq. (3)",
    "lengths": "as in Bahdanau et al. (2014), figure 2",
    "masks": "EQ-70 to EQ-75, ER-01, ER-41",
    "positions": "EQ-24, EQ-32",
    "wavelengths": "EQ-26, EQ-27, ER-31",
}
"""What each figure shows: numbers of docs/EQUATIONS.md and docs/ERRATA.md, or a paper's place."""
LEGEND = "docs/EQUATIONS.md and docs/ERRATA.md of Pellucid; texts: docs/sources.md"
"""The end of the line at the foot of each figure, for a reader without the docs."""


def figure_names(wanted: Sequence[str]) -> tuple[FigureName, ...]:
    """The names of the wanted figures, each once; all of them if none is given.

    Raises ConfigError that names every unknown one with the nearest known name.
    """
    unknown = [name for name in wanted if name not in FIGURE_NAMES]
    if unknown:
        faults = []
        for name in unknown:
            faults.append(f"{name!r}" + did_you_mean(name, FIGURE_NAMES, " ({})"))
        raise ConfigError(
            f"there is no figure {', nor '.join(faults)}",
            hint=f"there are {', '.join(FIGURE_NAMES[:-1])} and {FIGURE_NAMES[-1]}",
        )
    return tuple(name for name in FIGURE_NAMES if not wanted or name in wanted)


def draw_equations(
    names: Sequence[FigureName],
    folder: Path,
    theme: ThemeName = "light",
    drawn: Callable[[Path], None] = lambda _: None,
) -> list[Path]:
    """Draw these figures into ``folder``, each as PNG and SVG, and return their paths.

    Names of dark figures end in ``-dark``. ``drawn`` is called with each path once its file is
    written. The same version of matplotlib writes the same bytes each time. Raises
    MissingExtraError without matplotlib, WriteError.
    """
    paths = []
    for name in names:
        # Saved under the style that it was drawn in: some settings are read only then.
        with themed_style(theme_of(theme)):
            figure = draw_figure(name, theme)

            with write_errors(folder):
                folder.mkdir(parents=True, exist_ok=True)
            for suffix in PICTURE_SUFFIXES:
                path = folder / f"{name}{'-dark' if theme == 'dark' else ''}{suffix}"
                save_picture(figure, path)
                drawn(path)
                paths.append(path)
    return paths


def draw_figure(name: FigureName, theme_name: ThemeName = "light") -> "Figure":
    """Draw one figure without saving it. Raises MissingExtraError without matplotlib."""
    theme = theme_of(theme_name)
    with themed_style(theme):
        figure = _draw(name, theme)

        # The layout leaves a strip at the bottom free for the legend.
        engine: Any = figure.get_layout_engine()
        if engine is not None:
            engine.set(rect=(0.0, 0.045, 1.0, 0.955))
        foot = f"{NUMBERS[name]}: {LEGEND}" if "-" in NUMBERS[name][:3] else NUMBERS[name]
        figure.text(0.99, 0.012, foot, ha="right", va="bottom", fontsize=7, color=theme.muted)
    return figure


def _draw(name: FigureName, theme: Theme) -> "Figure":
    match name:
        case "complexity":
            return draw_complexity(theme)
        case "dot-products":
            return draw_dot_products(theme)
        case "exp-cosine":
            return draw_exp_cosine(theme)
        case "jacobian-statistics":
            return draw_jacobian_statistics(theme)
        case "jacobians":
            return draw_jacobians(theme)
        case "label-smoothing":
            return draw_label_smoothing(theme)
        case "learning-rate":
            return draw_learning_rate()
        case "lengths":
            return draw_lengths(theme)
        case "masks":
            return draw_masks(theme)
        case "positions":
            return draw_positions(theme)
        case "wavelengths":
            return draw_wavelengths(theme)
        case _:
            assert_never(name)
