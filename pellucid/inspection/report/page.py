"""Reports: walks a sentence through a model and writes the result as one HTML file.

``make_report`` and ``write_report`` compute the content; ``render_page`` embeds it in the page with
all styles and scripts, so that nothing is downloaded when the file is opened.
"""

import html
import importlib.resources
import json
from pathlib import Path
from typing import Any

from pellucid.core.errors import ConfigError
from pellucid.core.files import write_user_file
from pellucid.inspection.capture import Capture, capture_of
from pellucid.inspection.film import Film
from pellucid.inspection.report.content import report_content
from pellucid.inspection.report.film_content import film_content
from pellucid.inspection.report.views import look_around
from pellucid.inspection.sentence import Openable, open_model, read_sentence

_ASSETS = importlib.resources.files("pellucid.inspection.report") / "assets"
_UI = importlib.resources.files("pellucid.inspection") / "ui"

STYLES = ("ui/ui.css", "ui/explorer.css", "ui/why.css", "report.css")
SCRIPTS = (
    "ui/dom.js",
    "ui/colors.js",
    "ui/matrices.js",
    "ui/arithmetic.js",
    "ui/pointer.js",
    "ui/heatmap.js",
    "ui/heads.js",
    "ui/inspector.js",
    "ui/equations.js",
    "ui/steps.js",
    "ui/plan.js",
    "ui/paint.js",
    "ui/ribbons.js",
    "ui/sheet.js",
    "ui/towers.js",
    "ui/card.js",
    "ui/bus.js",
    "ui/experiments.js",
    "ui/hold.js",
    "ui/explorer.js",
    "ui/why.js",
    "ui/film.js",
    "overview.js",
    "heads.js",
    "views.js",
    "beam.js",
    "report.js",
)
"""The modules of the page, each after its imports; ``ui`` is shared with the server's page."""

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
"""The Content-Security-Policy: a browser loads nothing but what is in the file."""

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="pellucid">
<meta name="pellucid-book" content="{book}">
<title>{title}</title>
<style>
body {{ margin: 0; }}
{style}</style>
</head>
<body>
<div id="pellucid-report"></div>
<noscript>This report draws its pictures with the scripts inside this file, which are switched off
here. Nothing is sent anywhere: it may be opened without a network.</noscript>
<script type="application/json" id="pellucid-report-data">{data}</script>
<script type="module">
{script}</script>
</body>
</html>
"""


def render_page(content: dict[str, Any], *, book: str = "") -> str:
    """The whole page for the result of ``report_content``.

    ``book`` is the address of a site of these docs, to which the numbers of equations lead.
    """
    return _PAGE.format(
        policy=POLICY,
        book=html.escape(book),
        title="Pellucid: one sentence, every equation",
        style="".join(read_asset(name) for name in STYLES),
        data=embed_json(content),
        script="\n".join(_inlined(name) for name in SCRIPTS),
    )


def embed_json(content: dict[str, Any] | list[dict[str, Any]]) -> str:
    """JSON that is safe inside a script element, whatever words are in it."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)

    # A "</script>" in a sentence would end the element, and U+2028 and U+2029 are line ends in
    # older JavaScript. JSON allows all of them as escapes.
    return (
        text.replace("&", r"\u0026")
        .replace("<", r"\u003c")
        .replace(">", r"\u003e")
        .replace("\u2028", r"\u2028")
        .replace("\u2029", r"\u2029")
    )


def read_asset(name: str) -> str:
    """A style sheet or a module of the page, read from the package."""
    folder, _, file = name.rpartition("/")
    return ((_UI if folder == "ui" else _ASSETS) / file).read_text(encoding="utf-8")


def _inlined(name: str) -> str:
    """A module without its imports, because all modules of the page are joined into one."""
    lines = read_asset(name).splitlines()
    return "\n".join(line for line in lines if not line.startswith("import ")) + "\n"


def make_report(
    opened: Openable,
    source: str,
    target: str | None = None,
    film: Film | None = None,
    *,
    book: str = "",
) -> str:
    """An HTML page that walks ``source`` through the model to ``target``, or to its translation.

    With ``film``, the page shows it too, and may take twice as many bytes; ``book`` is that of
    ``render_page``.

    Raises DataError if a side is not text or too long, PellucidError if the model gives NaN or
    infinity, and what ``load_bundle`` raises.
    """
    inside = open_model(opened)
    # Everything: the page lets its reader walk to any part.
    capture = capture_of(inside, read_sentence(inside, source, target), ("*",))
    views = look_around(inside, capture, with_search=target is None)  # a given target had no search
    content = report_content(capture, inside.model, views)
    if film is not None:
        content["film"] = film_content(film)
    return render_page(content, book=book)


def write_report(
    opened: Openable | Capture,
    path: Path | str,
    source: str = "",
    target: str | None = None,
    film: Film | None = None,
    *,
    book: str = "",
) -> None:
    """Write the page of ``make_report``, or the page of a capture, which has no weights.

    Raises WriteError, ConfigError if a capture comes with another sentence, and what
    ``make_report`` raises.
    """
    if isinstance(opened, Capture):
        if source or target is not None or film is not None:
            raise ConfigError("a capture has a sentence of its own, and its report takes no other")
        # A capture has neither parameters nor a search, and its report leaves those parts out.
        page = render_page(report_content(opened), book=book)
    else:
        page = make_report(opened, source, target, film, book=book)
    write_user_file(Path(path), page.encode("utf-8"))
