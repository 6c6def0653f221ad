"""A paragraph of Word or PowerPoint: the names of its elements, and what stands behind its marks.

A paragraph is rebuilt from its runs of text: the formatting that most of its characters have is its
own, and each stretch with another one is a pair of marks. What is not text (pictures, notes,
bookmarks, fields) is moved as it is.
"""

import dataclasses
import re

from pellucid.documents.containers import Element, local_name
from pellucid.documents.segments import Segment

_TYPOGRAPHY = ("kern", "ligatures", "cntxtAlts")
"""Properties of letters that stand closer to each other, which no reader takes for a format."""
_SYMBOLS = {
    **dict(zip(range(0x41, 0x5B), "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ", strict=True)),
    **dict(zip(range(0x61, 0x7B), "αβχδεφγηιϕκλμνοπθρστυϖωξψζ", strict=True)),
    **dict(zip(b"\x2d\xa0\xa2\xa3\xa5\xae\xb0\xb1", "−€′≤∞→°±", strict=True)),
    **dict(zip(b"\xb2\xb3\xb4\xb8\xb9\xbb\xd7", "″≥×÷≠≈⋅", strict=True)),
}
"""Letters and signs of the font Symbol that are in texts. Source: Unicode's SYMBOL.TXT."""
_BOXES = {"Wingdings": b"oqrx\xa8\xfd\xfe", "Wingdings 2": b"RST\xa3"}
"""Boxes to check, by font."""
_PICTURES = re.compile(r"(?:Wingdings|Webdings|Symbol$|Zapf ?Dingbats|Marlett)", re.IGNORECASE)
"""Fonts that have no letters of a text."""


@dataclasses.dataclass(frozen=True)
class ElementNames:
    """The names of the elements of a paragraph, in Word's text or in drawings."""

    namespace: str
    containers: frozenset[str]
    """Elements of a paragraph that hold runs."""
    dropped: frozenset[str] = frozenset()
    """Elements that concern the original's wording only, such as marks of the spelling checker."""
    ignored: frozenset[str] = frozenset()
    """Properties of a run that make no difference for readers."""
    marks_spaces: bool = False
    """Whether a text has to say that its spaces count."""


_WORD = ElementNames(
    namespace="{http://schemas.openxmlformats.org/wordprocessingml/2006/main}",
    containers=frozenset(
        (
            *("hyperlink", "ins", "moveTo", "smartTag", "sdt", "sdtContent", "fldSimple"),
            *("customXml", "dir", "bdo"),
        )
    ),
    dropped=frozenset(("proofErr", "lastRenderedPageBreak")),
    ignored=frozenset(("lang", "noProof", "rsidR", "rsidRPr", "webHidden", *_TYPOGRAPHY)),
    marks_spaces=True,
)
_DRAWING = ElementNames(
    namespace="{http://schemas.openxmlformats.org/drawingml/2006/main}",
    containers=frozenset(),
    ignored=frozenset(
        ("lang", "altLang", "dirty", "err", "noProof", "smtClean", "smtId", *_TYPOGRAPHY)
    ),
)


_NAMES = tuple(
    dataclasses.replace(names, namespace=namespace)
    for names, namespace in (
        (_WORD, _WORD.namespace),
        (_DRAWING, _DRAWING.namespace),
        # In files that are saved as Strict Open XML.
        (_WORD, "{http://purl.oclc.org/ooxml/wordprocessingml/main}"),
        (_DRAWING, "{http://purl.oclc.org/ooxml/drawingml/main}"),
    )
)
PARAGRAPHS = {f"{names.namespace}p": names for names in _NAMES}
"""By the tag of a paragraph: the names of the elements in it."""


@dataclasses.dataclass(frozen=True)
class Styles:
    """The styles that say what a text is."""

    scripts: frozenset[str]
    """Styles that raise or lower a text."""
    code: frozenset[str]
    """Styles of code."""

    def is_code(self, properties: Element) -> bool:
        """Whether a run or a paragraph with these properties is code, which is not translated."""
        return any(
            local_name(each) in ("rStyle", "pStyle") and value_of(each, "val") in self.code
            for each in properties
        )


@dataclasses.dataclass(frozen=True)
class Part:
    """A piece that is no text: a part of a run, with the run whose properties it has, or an
    element."""

    element: Element
    run: Element | None = None


@dataclasses.dataclass(frozen=True)
class Field:
    """A field that shows text to translate, such as a link in Word's older way."""

    head: tuple[Part, ...]
    """From its beginning up to the text."""
    tail: tuple[Part, ...]


@dataclasses.dataclass
class Paragraph:
    """A paragraph, and what stands behind its marks."""

    element: Element
    names: ElementNames
    segment: Segment
    opened: dict[int, Element | Field]
    """By pair: the element that holds it, the field, or the first run with its formatting."""
    alone: dict[int, tuple[Part, ...]]
    bases: dict[int, Element | None]
    """By holder, such as a link: a run with the formatting that most of it has."""
    computed: list[str]
    """The texts that its computed fields show."""


class Runs:
    """The properties of the runs of a paragraph. Each run is searched once, as a search goes
    through all of its parts, which may be thousands.
    """

    def __init__(self, names: ElementNames) -> None:
        self._tag = f"{names.namespace}rPr"
        self._found: dict[Element, Element | None] = {}

    def properties_of(self, run: Element) -> Element | None:
        """The element with the properties of a run, if it has one."""
        if run not in self._found:
            self._found[run] = self._search(run)
        return self._found[run]

    def _search(self, run: Element) -> Element | None:
        return run.find(self._tag)


def content_of(element: Element, names: ElementNames) -> Element:
    """Where the runs of a holder are: of a content control inside of an element of its own."""
    inner = element.find(f"{names.namespace}sdtContent")
    return element if inner is None else inner


def is_property(child: Element, names: ElementNames) -> bool:
    """Whether an element describes the one around it: pPr, sdtPr, sdtEndPr, endParaRPr."""
    return local_name(child).endswith("Pr") and child.tag.startswith(names.namespace)


def value_of(element: Element, name: str) -> str:
    """An attribute by its name without a namespace."""
    return next((value for key, value in element.attrib.items() if key.endswith(f"}}{name}")), "")


def symbol_of(element: Element) -> str:
    """The letter or sign that a symbol of Word is; empty for one that is a picture."""
    return _SYMBOLS.get(_code_of(element), "") if value_of(element, "font") == "Symbol" else ""


def is_box(element: Element) -> bool:
    """Whether a symbol of Word is a box to check."""
    return _code_of(element) in _BOXES.get(value_of(element, "font"), b"")


def _code_of(symbol: Element) -> int:
    """The place of a symbol in its font; Word adds F000 to it, or not."""
    found = re.fullmatch(r"(?:F0|00)?([0-9A-F]{2})", value_of(symbol, "char"), re.IGNORECASE)
    return int(found[1], 16) if found else 0


def has_pictures_for_letters(properties: Element) -> bool:
    """Whether the font of a run has pictures or other letters in the place of letters."""
    names = {"rFonts": "ascii", "latin": "typeface"}
    return any(
        (name := names.get(local_name(each))) is not None
        and _PICTURES.match(value_of(each, name) or each.get(name, "")) is not None
        for each in properties
    )
