"""Creates, styles and saves figures; the base of all modules that draw with matplotlib."""

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pellucid.core.errors import ConfigError, MissingExtraError
from pellucid.core.files import write_errors, write_user_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURE_SUFFIXES = (".png", ".svg")
DOTS_PER_INCH = 200  # a page-wide picture of 7 inches has 1,400 pixels
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

FONT = "DejaVu Sans"
"""It comes with matplotlib, and decides the layout."""

_NAMED = 3
"""How many letters a warning names."""
_log = logging.getLogger("pellucid")


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure of this size in inches, which never opens a window.

    Raises MissingExtraError without matplotlib.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise _missing() from error
    # Figure and not pyplot, which keeps figures alive and may need a display.
    return Figure(figsize=(width, height), layout="constrained")


@contextlib.contextmanager
def print_style() -> Iterator[None]:
    """Draw and save figures in the block in a style for print, ignoring matplotlibrc.

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

    # Some contain the date of their creation otherwise, and would differ each time.
    dates = {".svg": "Date", ".pdf": "CreationDate"}
    suffix = path.suffix.lower()
    metadata = {dates[suffix]: None} if suffix in dates else None
    # Into memory first: a disk that fills up must not leave half a picture.
    draw_once(figure, buffer, suffix, metadata)
    write_user_file(path, buffer.getvalue())


def draw_once(
    figure: "Figure", file: IO[Any], suffix: str, metadata: Mapping[str, None] | None
) -> None:
    """Draw ``figure`` into ``file``. ``savefig`` would draw it twice, to see what is beyond its
    edge."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_pdf import FigureCanvasPdf
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    figure.set_dpi(DOTS_PER_INCH)
    _choose_fonts(figure)
    canvas: Any
    with warnings.catch_warnings():
        # letters without a font are told already, in one line
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        match suffix:
            case ".png":
                canvas = FigureCanvasAgg(figure)
                canvas.print_png(file, metadata=metadata)
            case ".svg":
                canvas = FigureCanvasSVG(figure)
                canvas.print_svg(file, metadata=metadata)
            case _:
                canvas = FigureCanvasPdf(figure)
                canvas.print_pdf(file, metadata=metadata)


def _choose_fonts(figure: "Figure") -> None:
    """Add fonts of this machine for letters that DejaVu Sans lacks; warn of those that none has."""
    from matplotlib.font_manager import fontManager, get_font
    from matplotlib.text import Text

    labels = figure.findobj(Text)
    letters = dict.fromkeys(each for label in labels for each in label.get_text())
    families, missing = [FONT], [each for each in letters if not each.isspace()]
    first = [font for font in fontManager.ttflist if font.name == FONT]
    for font in [*first, *fontManager.ttflist]:
        if not missing:
            break
        # a font of last resort has a box for every script
        if font.name.startswith("Last Resort"):
            continue
        try:
            opened = get_font(font.fname)
        except (OSError, RuntimeError):  # a file that is damaged, or no longer there
            continue
        lacking = [each for each in missing if not opened.get_char_index(ord(each))]
        if opened.scalable and len(lacking) < len(missing):
            families, missing = [*families, font.name], lacking

    if families := list(dict.fromkeys(families))[1:]:
        for label in labels:
            label.set_fontfamily([FONT, *families])
    if missing:
        more = f" and {len(missing) - _NAMED:,} more" if len(missing) > _NAMED else ""
        _log.warning(
            "no font of this machine has %s%s: the picture has boxes in their place; install one,"
            " such as fonts-noto-cjk",
            ", ".join(f"“{each}”" for each in missing[:_NAMED]),
            more,
        )


def check_picture(path: Path) -> None:
    """Raise ConfigError unless the suffix of ``path`` names a format that can be drawn, WriteError
    if its folder is not there: before minutes of work."""
    if path.suffix.lower() not in (*PICTURE_SUFFIXES, ".pdf"):
        raise ConfigError(
            f"a picture must end in {', '.join(PICTURE_SUFFIXES)} or .pdf, got {path.name}"
        )
    with write_errors(path):
        path.parent.stat()


def _missing() -> MissingExtraError:
    return MissingExtraError("matplotlib", "plot", "drawing a picture")
