"""The role of an element of HTML: whether it is translated, and its part in a sentence.

Read by pages, by Markdown and by the strings of programs.
"""

import dataclasses
import re
from collections.abc import Sequence

from pellucid.core.texts import words_in
from pellucid.documents.segments import Kind

READ_AS_WORDS = frozenset(("code", "kbd", "samp", "var"))
"""Elements whose content is not translated and stands for a word of the sentence."""
_LABELS = frozenset(("a", "button", "label", "output", "meter", "progress"))
"""Elements whose text stands for itself, where nothing but such elements is in a line."""
_BUTTONS = frozenset(("btn", "button"))
"""Words in the class of a span that is such an element too."""
_BADGES = frozenset(("badge", "chip", "editsection", "label", "pill", "tag"))
"""Words in the class of a span that is a badge, or holds the links that edit a wiki's section."""
_REFERENCES = words_in(
    "noteref doc-noteref doc-backlink footnote-ref footnoteref footnote-back footnote-backref"
    " footnote-reference reference footref"
)
"""Roles of EPUB and ARIA, and classes of Pandoc, Hugo, Sphinx, Org, kramdown and MediaWiki."""
_PAGES = frozenset(("pagebreak", "doc-pagebreak", "page-list", "doc-pagelist"))
"""Roles of what holds numbers of pages of the printed book."""
_NAMES = frozenset(("mention", "hashtag"))
"""Classes of links to people and tags in posts of Mastodon and its relatives."""
_FORMULAS = words_in(
    "katex katex-display arithmatex mathjax mathjax_display mathjax_preview mathjax_svg"
    " mathjax_chtml mwe-math-element ltx_math"
)
"""Classes of elements with a formula of TeX, or with what a program made of one."""
_PICTURES_OF_FORMULAS = words_in(
    "latex tex math mwe-math-fallback-image-inline mwe-math-fallback-image-display"
)
"""Classes of pictures that show a formula, whose description is its TeX."""
_ICONS = re.compile(r"(?:mat|md|q|v)-icon|material-(?:icons|symbols)[\w-]*")
"""Elements and classes whose text is the name of a picture, ``<i class="material-icons">home</i>``,
which the font draws."""
_PICTURES = re.compile(r"(?:\A|font-family:)\s*[\"']?(?:wingdings|webdings|symbol)\b")
"""Fonts that draw a picture for each letter."""


@dataclasses.dataclass(frozen=True)
class Says:
    """The statements of a start tag about its element."""

    translates: bool | None
    """Whether it is translated; None where that is as around it."""
    role: Kind


def element_says(tag: str, attributes: Sequence[tuple[str, str | None]]) -> Says:
    """Return the statements of a start tag, by its name and its attributes in lower case.

    ``translate`` is read as HTML's standard reads it (section 3.2.6.3): an empty value is "yes",
    and any other than "yes" and "no" says nothing.
    """
    # Of attributes with one name the first counts.
    values = {name: (value or "").lower() for name, value in reversed(attributes)}
    classes = set(values.get("class", "").split())
    roles = {*values.get("role", "").split(), *values.get("epub:type", "").split()}

    translates = {"yes": True, "": True, "no": False}.get(values.get("translate", "-"))
    is_name = tag == "a" and bool(classes & _NAMES)
    is_kept = "notranslate" in classes or is_name or _is_formula(tag, classes)
    if translates is None and (is_kept or roles & _PAGES):
        translates = False
    fonts = (values.get("face", ""), values.get("style", ""))
    if translates is None and (
        any(map(_ICONS.fullmatch, (tag, *classes))) or any(map(_PICTURES.search, fonts))
    ):
        return Says(translates=False, role="reference")
    return Says(translates, _role(tag, values.get("style", ""), classes, roles))


def _is_formula(tag: str, classes: set[str]) -> bool:
    """Whether an element is a formula, or a word of code in the HTML of docutils."""
    if classes & _FORMULAS or tag == "mjx-container":
        return True
    return (
        (tag == "span" and "math" in classes)
        or (tag == "img" and bool(classes & _PICTURES_OF_FORMULAS))
        or (tag == "tt" and "literal" in classes)
    )


def _role(tag: str, style: str, classes: set[str], roles: set[str]) -> Kind:
    if roles & _PAGES or (tag == "a" and (roles | classes) & _REFERENCES):
        return "reference"
    # As a value, "super" or "sub" raises or lowers.
    if tag in ("sub", "sup") or "vertical-align:su" in style.replace(" ", ""):
        return "script"
    words = {word for each in classes for word in each.split("-")} if tag == "span" else set()
    if words & _BADGES:
        return "badge"
    if tag in _LABELS or "-" in tag or words & _BUTTONS:
        return "label"
    return "span" if tag in ("span", "font") else "format"
