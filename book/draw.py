"""The figures of docs/pictures/equations: each for light and for dark pages."""

from pathlib import Path

from book.figures.equations import FIGURE_NAMES, FigureName, draw_figure
from book.figures.themes import (
    THEME_NAMES,
    ThemeName,
    picture_for_page,
    theme_of,
    themed_style,
)

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "equations"


def picture(name: FigureName, theme: ThemeName) -> str:
    """The SVG of a figure."""
    with themed_style(theme_of(theme)):
        return picture_for_page(draw_figure(name, theme))


def draw_pictures() -> None:
    """Write all of them."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in FIGURE_NAMES:
        for theme in THEME_NAMES:
            path = FOLDER / f"{name}-{theme}.svg"
            path.write_text(picture(name, theme), encoding="utf-8")
