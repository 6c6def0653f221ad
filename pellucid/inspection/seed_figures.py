"""Figures about the equations of the five sources, drawn with the project's own functions."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, assert_never, get_args

from pellucid.core.config import nearest_name
from pellucid.core.errors import ConfigError
from pellucid.core.files import write_errors
from pellucid.inspection.canvas import PICTURE_SUFFIXES, print_style, save_picture
from pellucid.inspection.seed_figures_angles import draw_dot_products, draw_exp_cosine
from pellucid.inspection.seed_figures_masks import draw_masks
from pellucid.inspection.seed_figures_positions import draw_positions, draw_wavelengths
from pellucid.inspection.seed_figures_softmax import draw_jacobian_statistics, draw_jacobians
from pellucid.inspection.seed_figures_training import draw_label_smoothing, draw_learning_rate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FigureName = Literal[
    "dot-products",
    "exp-cosine",
    "jacobian-statistics",
    "jacobians",
    "label-smoothing",
    "learning-rate",
    "masks",
    "positions",
    "wavelengths",
]
FIGURE_NAMES: tuple[FigureName, ...] = get_args(FigureName)
LEGEND = "EQ and ER: docs/EQUATIONS.md and docs/ERRATA.md of Pellucid; texts: docs/sources.md"
"""Below each figure: who sees only the picture knows where its numbers lead."""


def figure_names(wanted: Sequence[str]) -> tuple[FigureName, ...]:
    """The names of these figures, each once; all of them if none is given.

    Raises ConfigError that names every unknown one and what may have been meant.
    """
    unknown = [name for name in wanted if name not in FIGURE_NAMES]
    if unknown:
        faults = []
        for name in unknown:
            nearest = nearest_name(name, FIGURE_NAMES)
            faults.append(f"{name!r}" + (f" (did you mean {nearest!r}?)" if nearest else ""))
        raise ConfigError(
            f"there is no figure {', nor '.join(faults)}", hint=f"there are {_listed(FIGURE_NAMES)}"
        )
    return tuple(name for name in FIGURE_NAMES if not wanted or name in wanted)


def draw_seed_figures(
    names: Sequence[FigureName], folder: Path, drawn: Callable[[Path], None] = lambda _: None
) -> list[Path]:
    """Draw these figures into ``folder``, each as PNG and SVG; the paths, in the order drawn.

    ``drawn`` hears of every file once it is there. The same version of matplotlib writes the same
    bytes each time. Raises MissingExtraError without matplotlib, WriteError.
    """
    paths = []
    with print_style():
        with write_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            figure = draw_figure(name)
            _explain_numbers(figure)
            for suffix in PICTURE_SUFFIXES:
                path = folder / f"{name}{suffix}"
                save_picture(figure, path)
                drawn(path)
                paths.append(path)
    return paths


def draw_figure(name: FigureName) -> "Figure":
    """One of the pictures, not saved yet. Raises MissingExtraError without matplotlib."""
    match name:
        case "dot-products":
            return draw_dot_products()
        case "exp-cosine":
            return draw_exp_cosine()
        case "jacobian-statistics":
            return draw_jacobian_statistics()
        case "jacobians":
            return draw_jacobians()
        case "label-smoothing":
            return draw_label_smoothing()
        case "learning-rate":
            return draw_learning_rate()
        case "masks":
            return draw_masks()
        case "positions":
            return draw_positions()
        case "wavelengths":
            return draw_wavelengths()
        case _:
            assert_never(name)


def _explain_numbers(figure: "Figure") -> None:
    """A line below everything else, where the numbers of equations lead."""
    engine: Any = figure.get_layout_engine()
    if engine is not None:
        engine.set(rect=(0.0, 0.035, 1.0, 0.965))
    figure.text(0.99, 0.008, LEGEND, ha="right", va="bottom", fontsize=6, color="gray")


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"
