"""The language and the direction of the text in OpenDocument files.

Both are in styles, which all texts have that use them: names of the language of the source become
those of the language of the translation, and lines, columns and pages begin on the other side if
one of the two is written from right to left and the other is not.
"""

from pellucid.documents.containers import Element, local_name
from pellucid.documents.document_language import names_source, script_group, turns_right_to_left
from pellucid.documents.segments import Languages
from pellucid.text.languages import with_country

_STYLE = "{urn:oasis:names:tc:opendocument:xmlns:style:1.0}"
_FORMAT = "{urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0}"
_NAMES = {
    "western": (f"{_FORMAT}language", f"{_FORMAT}country"),
    "asian": (f"{_STYLE}language-asian", f"{_STYLE}country-asian"),
    "complex": (f"{_STYLE}language-complex", f"{_STYLE}country-complex"),
}
"""By group of scripts: the attributes that name a language and its country."""
_WRITING = f"{_STYLE}writing-mode"
_ALIGNMENT = f"{_FORMAT}text-align"


def say_language(root: Element, languages: Languages) -> bool:
    """Let a part of a file say the language and the direction of a translation. Return whether it
    says something else than before."""
    changed = False
    turns = turns_right_to_left(languages)
    for element in root.iter():
        if any(names_source(element.get(name), languages) for name, _ in _NAMES.values()):
            language, country = _NAMES[script_group(languages.target)]
            base, _, region = with_country(languages.target).partition("-")
            element.set(language, base)
            element.set(country, region or "none")
            changed = True
        if turns is not None and _turn(element, right_to_left=turns):
            changed = True
    return changed


def _turn(element: Element, *, right_to_left: bool) -> bool:
    """Let the lines of a style begin on the other side. Return whether they did not already."""
    old, new = ("lr", "rl") if right_to_left else ("rl", "lr")
    changed = False
    mode = element.get(_WRITING, "")
    if mode in (old, f"{old}-tb"):
        element.set(_WRITING, f"{new}-tb")
        changed = True
    elif not mode and right_to_left and local_name(element) == "page-layout-properties":
        # paragraphs and tables follow the page unless their own styles say otherwise
        element.set(_WRITING, "rl-tb")
        changed = True

    sides = ("left", "right") if right_to_left else ("right", "left")
    if element.get(_ALIGNMENT) == sides[0]:
        element.set(_ALIGNMENT, sides[1])
        changed = True
    return changed
