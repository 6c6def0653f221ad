"""A bundle as one HTML file: weights, engine and page, with nothing to load."""

import base64
import html
import json
import re
import zlib
from pathlib import Path
from typing import Any

from pellucid.backends.example_program import model_name
from pellucid.backends.web.content import FORMAT, character_facts, sentence_ends, web_content
from pellucid.backends.web.scripts import engine_script, page_policy, page_script, read_asset
from pellucid.backends.web.weights import WeightsType
from pellucid.bundle import Bundle
from pellucid.core.errors import BundleError, OutputExistsError
from pellucid.core.files import write_user_file
from pellucid.inspection.film import Film
from pellucid.inspection.report.film_content import film_content
from pellucid.inspection.report.page import embed_json
from pellucid.inspection.report.plan import explorer_plan
from pellucid.model.build import build_model
from pellucid.model.config import parse_model_config
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
    film_budget: int = _FILM_BUDGET,
    book: str = "",
) -> str:
    """The whole page as text; ``film_budget`` are the bytes of the film before they are packed.

    Raises BundleError as ``export_web`` does.
    """
    name = name or model_name(bundle)
    content = web_content(bundle, name, weights, example)
    frames = None if film is None else film_content(film, budget=film_budget, drawn_only=True)
    packed = base64.b64encode(content.weights).decode()
    return _page(content.header, bundle.model, packed, _packed(frames), book)


def remake_page(page: str) -> str:
    """The page of the same model and the same film as this code makes it: nothing is trained.

    For a page that is kept beside the code, which changes. Raises BundleError if ``page`` was made
    by a version whose pages held a model otherwise.
    """
    held = {
        each: re.search(rf'<script [^>]*id="pellucid-{each}">([^<]*)</script>', page)
        for each in ("model", "weights", "film")
    }
    texts = {each: match[1] for each, match in held.items() if match is not None}
    header = json.loads(texts.get("model", "{}"))
    if texts.keys() != held.keys() or header.get("format") != FORMAT:
        raise BundleError("this page holds no model as this version writes it")
    header["characters"] = character_facts()
    asked = {"splits": True, "has_codes": False, **header.get("sentences", {})}
    header["sentences"] = {**asked, **sentence_ends(header["languages"][0]["code"])}

    sizes = {each["name"]: each["shape"][0] for each in header["tensors"]}
    target = sizes["output_weight"]
    source = sizes.get("source_embedding.weight", target)
    model = build_model(parse_model_config(header["config"]), source, target, seed=0)
    return _page(header, model, texts["weights"], texts["film"], book="")


def _page(header: dict[str, Any], model: SequenceModel, weights: str, film: str, book: str) -> str:
    """The template filled with a model, of which only the shapes are looked at, and its parts."""
    source, target = _titles(header)
    parts = {
        "policy": page_policy(),
        "title": html.escape(f"{header['name']} · Pellucid"),
        "book": html.escape(book),
        "about": html.escape(_about(model, header["name"])),
        "source": html.escape(source),
        "target": html.escape(target),
        **_WORDS[header["source_reads"]],
        "style": "".join(read_asset(each) for each in _STYLES),
        "model": embed_json(header),
        "plan": _packed(explorer_plan(model)),
        "film": film,
        "scenes": _packed(json.loads(read_asset("page/scenes.json"))),
        "weights": weights,
        "engine": engine_script(),
        "page": page_script(),
    }
    # what a part holds is not looked at again
    return re.sub(r"\{\{(.*?)\}\}", lambda found: parts[found[1]], read_asset("page/page.html"))


def _packed(value: Any) -> str:
    """JSON as deflated base64, which a browser inflates: a sixth of the size."""
    return base64.b64encode(zlib.compress(json.dumps(value).encode(), 9)).decode()


def _titles(header: dict[str, Any]) -> tuple[str, str]:
    if header["source_reads"] != "pairs":
        return "Text", "Filled" if header["source_reads"] == "source" else "Continued"
    source, target = header["languages"]
    return (
        source["name"] if source["code"] != UNKNOWN else "Source",
        target["name"] if target["code"] != UNKNOWN else "Translation",
    )


def _about(model: SequenceModel, name: str) -> str:
    count = sum(each.numel() for each in model.parameters())
    return f"{name} · {count:,} parameters · {model.config.summary()}"
