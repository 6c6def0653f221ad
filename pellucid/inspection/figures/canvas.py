"""Creates, styles and saves figures; the base of all modules that draw with matplotlib."""

import contextlib
import dataclasses
import html
import io
import logging
import re
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, assert_never, get_args

from pellucid.core.errors import ConfigError, MissingExtraError
from pellucid.core.files import write_user_file

if TYPE_CHECKING:
    from matplotlib.colors import Colormap
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

_FONTS = ["DejaVu Sans", "Verdana", "Segoe UI", "Helvetica", "Arial", "sans-serif"]
"""Verdana has the widths of DejaVu Sans, which decides the layout but which few machines have."""
_SVG_FONTS = ", ".join(f"'{font}'" for font in _FONTS[:-1]) + ", sans-serif"

_NAMED = 3
"""How many letters a warning names."""
_log = logging.getLogger("pellucid")

ThemeName = Literal["light", "dark"]
THEME_NAMES: tuple[ThemeName, ...] = get_args(ThemeName)


@dataclasses.dataclass(frozen=True)
class Theme:
    """The colors of a figure, for a page with a light or a dark background."""

    background: str
    text: str
    muted: str
    """Axes, reference lines and the line below the figure."""
    blue: str
    red: str
    green: str
    orange: str
    purple: str
    weights: tuple[str, ...]
    """From 0 to the largest value; the color of 0 is near the background."""
    signed: tuple[str, ...]
    """From the most negative to the most positive value; 0, in the middle, is near the background.
    """

    def weight_colors(self) -> "Colormap":
        """Colors for values from 0 up, such as attention weights."""
        return _colormap("weights", self.weights)

    def signed_colors(self) -> "Colormap":
        """Colors for values on both sides of 0."""
        return _colormap("signed", self.signed)


# Each line color has a contrast of at least 4.5 with its background (WCAG 2.2, 1.4.3), so that
# text may have it too.
_LIGHT = Theme(
    background="#ffffff",
    text="#1f2328",
    muted="#6a737d",
    blue="#1464b4",
    red="#c0322b",
    green="#2b7a3d",
    orange="#a75600",
    purple="#7b45b5",
    weights=("#f7fafd", "#bcd7ee", "#5e9fd3", "#1464b4", "#0b3c73"),
    signed=("#8c1d18", "#e08a76", "#f8f8f8", "#7fb2da", "#0f4c8a"),
)
_DARK = Theme(
    background="#0d1117",
    text="#e6edf3",
    muted="#8b949e",
    blue="#6cb2f7",
    red="#ff8a80",
    green="#5fd07a",
    orange="#f2a65a",
    purple="#c8a2ff",
    weights=("#151b23", "#173a5e", "#2468a8", "#6cb2f7", "#dcefff"),
    signed=("#ffab9f", "#a8453c", "#161b22", "#2f73b3", "#a9d4ff"),
)


def theme_of(name: ThemeName) -> Theme:
    """The colors called ``name``."""
    match name:
        case "light":
            return _LIGHT
        case "dark":
            return _DARK
        case _:
            assert_never(name)


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
def print_style(theme: Theme | None = None) -> Iterator[None]:
    """Draw and save figures in the block in a style for print, ignoring matplotlibrc.

    Raises MissingExtraError without matplotlib.
    """
    try:
        from matplotlib import style
    except ImportError as error:
        raise _missing() from error
    with style.context(["default", _PRINT_STYLE, *([_theme_style(theme)] if theme else [])]):
        yield


def save_picture(figure: "Figure", path: Path) -> None:
    """Write a figure in the format of its suffix; the same figure gives the same bytes.

    Raises WriteError, ConfigError for a suffix that names no format.
    """
    check_picture(path)
    buffer = io.BytesIO()

    # Some contain the date of their creation otherwise, and would differ each time.
    dates = {".svg": "Date", ".pdf": "CreationDate"}
    metadata = {dates[path.suffix]: None} if path.suffix in dates else None
    # Into memory first: a disk that fills up must not leave half a picture.
    _print(figure, buffer, path.suffix, metadata)
    write_user_file(path, buffer.getvalue())


def _print(
    figure: "Figure", file: IO[Any], suffix: str, metadata: Mapping[str, None] | None
) -> None:
    """Draw ``figure`` once. ``savefig`` would draw it twice, to see what is beyond its edge."""
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
    families, missing = [_FONTS[0]], [each for each in letters if not each.isspace()]
    first = [font for font in fontManager.ttflist if font.name == _FONTS[0]]
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
            label.set_fontfamily([_FONTS[0], *families])
    if missing:
        more = f" and {len(missing) - _NAMED:,} more" if len(missing) > _NAMED else ""
        _log.warning(
            "no font of this machine has %s%s: the picture has boxes in their place; install one,"
            " such as fonts-noto-cjk",
            ", ".join(f"“{each}”" for each in missing[:_NAMED]),
            more,
        )


def picture_for_page(figure: "Figure") -> str:
    """The figure as a small SVG for a page, with text as text and rounded coordinates.

    Screen readers read its title. Rounding makes the files equal on machines whose processors
    differ in the last digits of a sum.
    """
    from matplotlib import rc_context

    buffer = io.StringIO()
    with rc_context({"svg.fonttype": "none", "font.sans-serif": _FONTS}):
        metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"), None)
        _print(figure, buffer, ".svg", metadata)
    return _compact(buffer.getvalue(), figure.get_suptitle())


def check_picture(path: Path) -> None:
    """Raise ConfigError unless the suffix of ``path`` names a format that can be drawn."""
    if path.suffix not in (*PICTURE_SUFFIXES, ".pdf"):
        raise ConfigError(
            f"a picture must end in {', '.join(PICTURE_SUFFIXES)} or .pdf, got {path.name}"
        )


def _theme_style(theme: Theme) -> dict[str, Any]:
    """The colors of a theme as settings of matplotlib."""
    from matplotlib.rcsetup import cycler

    inks = ("text.color", "axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor")
    lines = ("axes.edgecolor", "xtick.color", "ytick.color", "grid.color", "legend.edgecolor")
    grounds = ("figure.facecolor", "savefig.facecolor", "axes.facecolor", "legend.facecolor")
    cycle = [theme.blue, theme.orange, theme.green, theme.purple, theme.red]
    return {
        **dict.fromkeys(inks, theme.text),
        **dict.fromkeys(lines, theme.muted),
        **dict.fromkeys(grounds, theme.background),
        "axes.prop_cycle": cycler(color=cycle),
    }


def _colormap(name: str, colors: tuple[str, ...]) -> "Colormap":
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list(name, colors)


_TAG = re.compile(r"<[^>]+>")


def _compact(svg: str, title: str) -> str:
    """The SVG without comments and metadata, with fonts named once and numbers rounded."""
    svg = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>|<!DOCTYPE.*?>\s*", "", svg, flags=re.DOTALL)
    svg = svg.replace(f"font-family: {_SVG_FONTS}; ", "").replace(
        '<style type="text/css">*{', f'<style type="text/css">*{{font-family: {_SVG_FONTS}; '
    )
    # Matplotlib's ids are hashes of coordinates before rounding: number those that are
    # referred to, and drop the others.
    tags = "".join(_TAG.findall(svg))
    used = dict.fromkeys(re.findall(r'(?:href="|url\()#([^")]+)', tags))
    numbers = {name: f"i{number}" for number, name in enumerate(used)}

    def compact_tag(found: re.Match[str]) -> str:
        # Matplotlib turns every label, most of them by nothing.
        tag = re.sub(r' transform="rotate\(-?0 [^)]*\)"', "", found[0])
        tag = re.sub(
            r' id="([^"]+)"', lambda m: f' id="{numbers[m[1]]}"' if m[1] in numbers else "", tag
        )
        tag = re.sub(r'(href="|url\()#([^")]+)', lambda m: f"{m[1]}#{numbers[m[2]]}", tag)
        return _rounded(tag)

    svg = _TAG.sub(compact_tag, svg)  # and not the labels, which may say anything
    start = svg.index(">", svg.index("<svg")) + 1
    svg = f"{svg[:start]}\n <title>{html.escape(title)}</title>{svg[start:]}"
    return re.sub(r"\s*\n\s*", "\n", svg)


def _rounded(tag: str) -> str:
    """A tag of an SVG with rounded numbers; those of a transform keep more digits."""
    digits = 5 if "transform=" in tag else 2
    return re.sub(
        r"-?\d+\.\d{3,}(?:e-?\d+)?",
        lambda m: f"{float(m[0]):.{digits}f}".rstrip("0").rstrip("."),
        tag,
    )


def _missing() -> MissingExtraError:
    return MissingExtraError("matplotlib", "plot", "drawing a picture")
