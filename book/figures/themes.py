"""The colors of the book's figures, for light and for dark pages, and their small SVGs."""

import contextlib
import dataclasses
import html
import io
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, assert_never, get_args

from pellucid.inspection.figures.canvas import FONT, draw_once, print_style

if TYPE_CHECKING:
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

_FONTS = [FONT, "Verdana", "Segoe UI", "Helvetica", "Arial", "sans-serif"]
"""Verdana has the widths of DejaVu Sans, which decides the layout but which few machines have."""
_SVG_FONTS = ", ".join(f"'{font}'" for font in _FONTS[:-1]) + ", sans-serif"

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


@contextlib.contextmanager
def themed_style(theme: Theme) -> Iterator[None]:
    """``print_style`` in the colors of a theme. Raises MissingExtraError without matplotlib."""
    with print_style():
        from matplotlib import style

        with style.context(_style_of(theme)):
            yield


def picture_for_page(figure: "Figure") -> str:
    """The figure as a small SVG for a page, with text as text and rounded coordinates.

    Screen readers read its title. Rounding makes the files equal on machines whose processors
    differ in the last digits of a sum.
    """
    from matplotlib import rc_context

    buffer = io.StringIO()
    with rc_context({"svg.fonttype": "none", "font.sans-serif": _FONTS}):
        metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"), None)
        draw_once(figure, buffer, ".svg", metadata)
    return _compact(buffer.getvalue(), figure.get_suptitle())


def _style_of(theme: Theme) -> dict[str, Any]:
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
