"""Writes what is published of a model: ``model/``, and ``space/`` with the page that translates.

model/    Marian's files for transformers, or the bundle itself where Marian cannot express it
space/    a static Space of the Hub: the exported page, with nothing to run on a server

Nothing of the machine or of the training text goes along that the user did not name: of paths in
the config only the last part, and no list of words.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from pellucid.backends.example_program import model_name, pair_in_words
from pellucid.backends.huggingface.export_folder import export_huggingface
from pellucid.backends.publish.card import Card, card_text, yaml_text
from pellucid.backends.web.export import export_web
from pellucid.bundle import CARD_FILE, Bundle, save_bundle
from pellucid.core.files import TEMPORARY_PREFIX, refuse_to_overwrite, temporary_folder

MODEL_FOLDER, SPACE_FOLDER = "model", "space"
_MADE_BY_SAVING = ("version", "kind", "files", "tensors", "sha256")
"""Entries of a manifest that ``save_bundle`` makes."""


def write_publication(bundle: Bundle, out: Path, card: Card, *, space: bool) -> None:
    """Write the new folder ``out`` whole, or nothing.

    Raises OutputExistsError, WriteError, and BundleError if the page or Marian's copy is not the
    model, naming why.
    """
    refuse_to_overwrite(out)
    bundle = _without_words(bundle)
    out.parent.mkdir(parents=True, exist_ok=True)
    with temporary_folder(out.parent, TEMPORARY_PREFIX) as temporary:
        made = temporary / "made"
        made.mkdir()
        text = card_text(bundle, card)
        if card.problems:
            kept = bundle.manifest.items()
            details = {key: value for key, value in kept if key not in _MADE_BY_SAVING}
            save_bundle(made / MODEL_FOLDER, bundle, card=text, details=details)
        else:
            export_huggingface(bundle, made / MODEL_FOLDER, text)
        if space:
            _write_space(bundle, made / SPACE_FOLDER, card)
        if out.exists():
            out.rmdir()  # it is empty
        made.rename(out)


def _write_space(bundle: Bundle, folder: Path, card: Card) -> None:
    name = card.repository.partition("/")[2] or model_name(bundle)
    folder.mkdir()
    export_web(bundle, folder / "index.html", name=name, example=card.example)

    pair = pair_in_words(bundle)
    head = {
        "title": f"{name}{pair and f': {pair}'}",
        "sdk": "static",
        "app_file": "index.html",
        "pinned": False,
        "license": card.license,
        **({"models": [card.repository]} if card.repository else {}),
    }
    about = (
        "A translation model in one page: it translates in the browser and shows how. Nothing is"
        " sent."
    )
    (folder / CARD_FILE).write_text(f"---\n{yaml_text(head)}---\n\n{about}\n", encoding="utf-8")


def _without_words(bundle: Bundle) -> Bundle:
    """The bundle without the words of its training text, and with names in place of paths."""
    settings = {
        # the texts of a search are no paths, and "and/or" is not "or"
        name: section if name == "decoding" else _names_alone(section)
        for name, section in bundle.settings.items()
    }
    return dataclasses.replace(bundle, settings=settings, seen_words=None)


def _names_alone(value: Any) -> Any:
    match value:
        case str() if "/" in value or "\\" in value:
            return PureWindowsPath(PurePosixPath(value).name).name
        case str():
            return value
        case Mapping():
            return {key: _names_alone(each) for key, each in value.items()}
        case Sequence():
            return [_names_alone(each) for each in value]
        case _:
            return value
