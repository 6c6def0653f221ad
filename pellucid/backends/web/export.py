"""A bundle as one HTML file: weights, engine and page, with nothing to load."""

import base64
import html
import json
from pathlib import Path
from typing import Any

from pellucid.backends.web.content import web_content
from pellucid.backends.web.scripts import engine_script, page_policy, page_script, read_asset
from pellucid.backends.web.weights import WeightsType
from pellucid.bundle import Bundle
from pellucid.core.errors import OutputExistsError
from pellucid.core.files import write_user_file
from pellucid.inspection.film import Film
from pellucid.inspection.report.film_content import film_content
from pellucid.inspection.report.page import embed_json
from pellucid.inspection.report.plan import explorer_plan
from pellucid.model.seq2seq import SequenceModel
from pellucid.text.languages import UNKNOWN

_STYLES = ("ui/ui.css", "ui/page.css", "ui/explorer.css", "ui/why.css", "page/web.css")
_FILM_BUDGET = 2_400_000
"""Bytes of a film: the file has the model, too."""
_PAIRS = {
    "placeholder": "Type or paste a text",
    "hint": "The translation appears here as you type. Point at a word of it to see where it comes"
    " from; click it to see what else could stand there.",
}
_WORDS = {
    "pairs": _PAIRS,
    "source": {
        "placeholder": "A text with a [MASK]",
        "hint": "The text appears here with a word in the place of each [MASK].",
    },
    "target": {
        "placeholder": "Begin a text",
        "hint": "The text goes on here as you type.",
    },
}
"""The words of the page for its reader, by the text that the model reads."""


def export_web(
    bundle: Bundle[SequenceModel],
    out: Path,
    weights: WeightsType = "float16",
    *,
    name: str = "",
    example: str = "",
    film: Film | None = None,
    book: str = "",
) -> int:
    """Write the page of ``bundle`` to the new file ``out``; returns its size in bytes.

    ``name`` is what the model is called there, ``example`` the text with which the page opens,
    ``film`` how the model learned, which the page then shows, ``book`` the address of a site of
    these docs, to which the numbers of equations then lead.
    Raises OutputExistsError, WriteError, and BundleError naming everything that a page cannot
    express.
    """
    if out.exists():
        raise OutputExistsError(
            f"{out} already exists", hint="name a new file, or remove this one first"
        )
    page = make_page(bundle, weights, name=name, example=example, film=film, book=book).encode(
        "utf-8"
    )
    write_user_file(out, page)
    return len(page)


def make_page(
    bundle: Bundle[SequenceModel],
    weights: WeightsType = "float16",
    *,
    name: str = "",
    example: str = "",
    film: Film | None = None,
    book: str = "",
) -> str:
    """The whole page as text. Raises BundleError as ``export_web`` does."""
    name = name or (bundle.path.name if bundle.path is not None else "model")
    content = web_content(bundle, name, weights, example)
    header = content.header

    source, target = _titles(header)
    parts = {
        "policy": page_policy(),
        "title": html.escape(f"{name} · Pellucid"),
        "book": html.escape(book),
        "about": html.escape(_about(bundle, name)),
        "source": html.escape(source),
        "target": html.escape(target),
        **_WORDS[header["source_reads"]],
        "style": "".join(read_asset(each) for each in _STYLES),
        "model": embed_json(header),
        "plan": embed_json(explorer_plan(bundle.model)),
        "film": "null" if film is None else embed_json(film_content(film, budget=_FILM_BUDGET)),
        "scenes": embed_json(json.loads(read_asset("page/scenes.json"))),
        "weights": base64.b64encode(content.weights).decode(),
        "engine": engine_script(),
        "page": page_script(),
    }
    return _filled(read_asset("page/page.html"), parts)


def _filled(template: str, parts: dict[str, str]) -> str:
    """The template with each ``{{name}}`` replaced; what a part holds is not looked at again."""
    pieces = template.split("{{")
    filled = [pieces[0]]
    for piece in pieces[1:]:
        part, _, rest = piece.partition("}}")
        filled += [parts[part], rest]
    return "".join(filled)


def _titles(header: dict[str, Any]) -> tuple[str, str]:
    if header["source_reads"] != "pairs":
        return "Text", "Filled" if header["source_reads"] == "source" else "Continued"
    source, target = header["languages"]
    return (
        source["name"] if source["code"] != UNKNOWN else "Source",
        target["name"] if target["code"] != UNKNOWN else "Translation",
    )


def _about(bundle: Bundle[SequenceModel], name: str) -> str:
    return f"{name} · {bundle.parameter_count:,} parameters · {bundle.config.summary()}"
