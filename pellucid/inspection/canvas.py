"""Where pictures are drawn and how they are saved; the one place that needs matplotlib."""

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pellucid.core.errors import ConfigError, MissingExtraError
from pellucid.core.files import write_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURE_SUFFIXES = (".png", ".svg")
_DOTS_PER_INCH = 200  # a page-wide picture of 7 inches has 1,400 pixels
_PRINT_STYLE: dict[str, Any] = {
    "font.size": 9.0,
    "axes.titlesize": 9.0,
    "figure.titlesize": 10.5,
    "legend.fontsize": 8.5,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "lines.linewidth": 1.6,
    "axes.grid": False,
    "grid.alpha": 0.3,
    "svg.hashsalt": "pellucid",  # else the ids in an SVG are random
}


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure, in inches, that never opens a window.

    Raises MissingExtraError without matplotlib.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise _missing() from error
    return Figure(figsize=(width, height), layout="constrained")


@contextlib.contextmanager
def print_style() -> Iterator[None]:
    """Inside the block, figures are drawn and saved readable in print, whatever matplotlibrc says.

    Raises MissingExtraError without matplotlib.
    """
    try:
        from matplotlib import style
    except ImportError as error:
        raise _missing() from error
    with style.context(["default", _PRINT_STYLE]):
        yield


def save_picture(figure: "Figure", path: Path) -> None:
    """Write a figure in the format of its suffix; the same figure gives the same bytes.

    Raises WriteError, ConfigError for a suffix that names no format.
    """
    check_picture(path)
    buffer = io.BytesIO()
    metadata = {"Date": None} if path.suffix == ".svg" else None
    figure.savefig(
        buffer, format=path.suffix.removeprefix("."), dpi=_DOTS_PER_INCH, metadata=metadata
    )
    write_file(path, buffer.getvalue())


def check_picture(path: Path) -> None:
    """Raise ConfigError unless the suffix of ``path`` names a format that can be drawn."""
    if path.suffix not in (*PICTURE_SUFFIXES, ".pdf"):
        raise ConfigError(
            f"a picture must end in {', '.join(PICTURE_SUFFIXES)} or .pdf, got {path.name}"
        )


def _missing() -> MissingExtraError:
    return MissingExtraError("matplotlib", "plot", "drawing a picture")
