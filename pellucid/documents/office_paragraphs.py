"""A paragraph of Word or PowerPoint: the names of its elements, and what stands behind its marks.

A paragraph is rebuilt from its runs of text: the formatting that most of its characters have is its
own, and each stretch with another one is a pair of marks. What is not text (pictures, notes,
bookmarks, fields) is moved as it is.
"""

import dataclasses

from pellucid.documents.containers import Element, local_name
from pellucid.documents.segments import Segment


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
    ignored=frozenset(("lang", "noProof", "rsidR", "rsidRPr", "webHidden")),
    marks_spaces=True,
)
_DRAWING = ElementNames(
    namespace="{http://schemas.openxmlformats.org/drawingml/2006/main}",
    containers=frozenset(),
    ignored=frozenset(("lang", "altLang", "dirty", "err", "noProof", "smtClean", "smtId")),
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
