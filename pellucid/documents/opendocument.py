"""OpenDocument text (odt): paragraphs and headings of the body, of headers and of footers."""

import re
from collections.abc import Iterable, Iterator, Sequence

from pellucid.core.errors import DataError
from pellucid.core.texts import words_in
from pellucid.documents.containers import Archive, Element, local_name, parse_xml, write_xml
from pellucid.documents.document_language import names_source, script_group, turns_right_to_left
from pellucid.documents.mixed import MixedText, Role, read_mixed
from pellucid.documents.office_strings import ShownString
from pellucid.documents.segments import Alone, Kind, Languages, Piece, Range, Segment
from pellucid.text.languages import with_country

_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_STYLE = "{urn:oasis:names:tc:opendocument:xmlns:style:1.0}"
_PARAGRAPHS = (f"{_TEXT}p", f"{_TEXT}h")
_PARTS = ("content.xml", "styles.xml")
_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_FORM = "{urn:oasis:names:tc:opendocument:xmlns:form:1.0}"
_SVG = "{urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0}"
_PAIRS = frozenset(("span", "a", "meta", "ruby", "ruby-base", "text-input", "placeholder"))
_BREAKS = frozenset(("line-break", "tab"))
_UNREAD = words_in(
    "ruby-text bibliography-mark note-ref hidden-text script number s list-level-label"
)
"""Elements whose text is no word of the sentence: readings, references, numbers of headings."""
_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_DESCRIPTIONS = (
    *(f"{_SVG}title", f"{_SVG}desc", f"{_TABLE}title", f"{_TABLE}desc"),
    f"{_TEXT}index-title-template",
)
"""Elements that hold a text alone: the title and the description of a picture, a shape or a table,
which are read aloud, and the heading of an index."""
_SHOW_ATTRIBUTES = frozenset(("conditional-text", "hidden-text"))
"""Fields that show one of their attributes."""
_INDEX = ("string-value", "key1", "key2")
_ATTRIBUTES = {
    f"{_TEXT}conditional-text": (
        f"{_TEXT}string-value-if-true",
        f"{_TEXT}string-value-if-false",
    ),
    f"{_TEXT}hidden-text": (f"{_TEXT}string-value",),
    f"{_TEXT}a": (f"{_OFFICE}title",),
    **{
        f"{_TEXT}{name}": tuple(f"{_TEXT}{attribute}" for attribute in _INDEX)
        for name in ("alphabetical-index-mark", "alphabetical-index-mark-start", "toc-mark")
    },
}
"""By element, the attributes that people read: of fields, links and entries of an index."""
_LABEL = f"{_FORM}label"
"""The text of a button or of a box to check."""
_FORMAT = "{urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0}"
_NAMES = {
    "western": (f"{_FORMAT}language", f"{_FORMAT}country"),
    "asian": (f"{_STYLE}language-asian", f"{_STYLE}country-asian"),
    "complex": (f"{_STYLE}language-complex", f"{_STYLE}country-complex"),
}
"""By group of scripts: the attributes that name a language and its country."""
_WRITING = f"{_STYLE}writing-mode"
_ALIGNMENT = f"{_FORMAT}text-align"


class OpenDocument:
    """An odt file."""

    notes: Sequence[str] = ()

    def __init__(self, data: bytes, what: str, languages: Languages) -> None:
        """``languages``: the file says that it is in the second one where it says the first.

        Raises DataError for a file that is none, is damaged, has a password or macros.
        """
        self._languages = languages
        self._archive = Archive(data, what)
        names = self._archive.names
        if "content.xml" not in names:
            raise DataError(f"{what} must hold content.xml, which it does not")
        manifest = "META-INF/manifest.xml"
        if manifest in names and b"encryption-data" in self._archive.read(manifest):
            raise DataError(
                f"{what} has a password", hint="open it, remove the password and save it"
            )
        if any(name.startswith(("Basic/", "Scripts/")) for name in names):
            raise DataError(f"{what} holds macros, which are programs", hint="save it without them")

        self._roots: dict[str, Element] = {}
        self._texts: list[MixedText | ShownString] = []
        for name in names:
            if name in _PARTS:
                self._roots[name] = parse_xml(self._archive.read(name), f"{what}: {name}")
        scripts = frozenset(
            each for root in self._roots.values() for each in _styles_of_scripts(root)
        )

        def kind_of(element: Element) -> Kind:
            return "script" if element.get(f"{_TEXT}style-name") in scripts else "format"

        for root in self._roots.values():
            for element in _kept(root):
                texts: Iterable[MixedText | ShownString] = _strings_of(element)
                if element.tag in _PARAGRAPHS:
                    texts = [
                        read_mixed(
                            element,
                            _role_of,
                            range_of=_range_of,
                            kind_of=kind_of,
                            read_as=_shown_by,
                        )
                    ]
                self._texts += (text for text in texts if text.segment.has_words)
        self.segments = [
            _spaced(text) if isinstance(text, MixedText) else text.segment for text in self._texts
        ]

    def write(self, translated: Sequence[Segment]) -> bytes:
        """The file with other segments."""
        changed = set()
        for text, before, after in zip(self._texts, self.segments, translated, strict=True):
            if before != after:
                _write(text, after)
                changed.add(text.element.getroottree().getroot())
        if changed:
            changed |= {
                root for root in self._roots.values() if _say_language(root, self._languages)
            }
        parts = {name: write_xml(root) for name, root in self._roots.items() if root in changed}
        return self._archive.written(parts)


def _kept(root: Element) -> Iterator[Element]:
    """The elements of a part, without a tracked change's deleted text and all that is in it."""
    waiting = [root]
    while waiting:
        element = waiting.pop()
        if element.tag == f"{_TEXT}deletion":
            continue
        yield element
        waiting += (each for each in reversed(element) if isinstance(each.tag, str))


def _strings_of(element: Element) -> Iterator[ShownString]:
    """The texts without formatting that an element holds."""
    if element.tag in _DESCRIPTIONS:
        yield ShownString(element)
    names = (*_ATTRIBUTES.get(element.tag, ()), *((_LABEL,) if _LABEL in element.attrib else ()))
    for name in names:
        yield ShownString(element, name)


def _write(text: MixedText | ShownString, segment: Segment) -> None:
    """Write another text, also into a field that shows it."""
    before = text.segment.text
    text.write(segment)
    element = text.element
    if local_name(element) in _SHOW_ATTRIBUTES and element.text == before:
        element.text = segment.text


def _shown_by(element: Element) -> str:
    """The text of a computed field, which is read as a word: the 3 of "page 3"."""
    if not element.tag.startswith(_TEXT) or local_name(element) in _UNREAD:
        return ""
    if any(local_name(child) != "label" for child in element):
        return ""  # a note; a list to choose from has a label for each choice
    return "".join([element.text or "", *(child.tail or "" for child in element)])


def _styles_of_scripts(root: Element) -> Iterator[str]:
    """The names of the styles that raise or lower a text."""
    for style in root.iter(f"{_STYLE}style"):
        for properties in style.iter(f"{_STYLE}text-properties"):
            # Such as "super 58%" or "-33% 58%"; "0% 100%" is neither, and "3% 100%" hardly.
            position = properties.get(f"{_STYLE}text-position", "")
            if re.match(r"super|sub|-?[1-9]\d", position):
                yield style.get(f"{_STYLE}name", "")


def _role_of(element: Element) -> Role:
    name = local_name(element)
    if name in _BREAKS:
        return "break"
    return "pair" if name in _PAIRS else "alone"


def _range_of(element: Element) -> Range | None:
    """The bookmark, tracked change, comment or entry of an index that it begins or ends."""
    kind, _, side = local_name(element).rpartition("-")
    if local_name(element) == "annotation":
        kind, side = "annotation", "start"
    if side not in ("start", "end"):
        return None
    ids = [v for k, v in element.attrib.items() if k.endswith(("}name", "}change-id", "}id"))]
    return (kind, ids[0], side == "end") if ids else None


def _spaced(text: MixedText) -> Segment:
    """White space as the format defines it: a line end in the file is a space. Behind an element
    that stands for spaces between two words is one that is read.
    """
    pieces: list[Piece] = []
    for piece in text.segment.pieces:
        if isinstance(piece, str):
            piece = " ".join(piece.replace("\n", " ").replace("\r", " ").split("\t"))
            if _stand_for_spaces(text, pieces[-2:]) and not piece.startswith(" "):
                piece = f" {piece}"
        pieces.append(piece)
    return Segment(tuple(pieces))


def _stand_for_spaces(text: MixedText, last: Sequence[Piece]) -> bool:
    """Whether the last pieces are a word and, without a space, an element that stands for some."""
    if len(last) < 2 or not isinstance(last[0], str) or not isinstance(last[1], Alone):
        return False
    element = text.elements.get(last[1].number)
    return element is not None and local_name(element) == "s" and not last[0].endswith(" ")


def _say_language(root: Element, languages: Languages) -> bool:
    """Let a part of a file say the language and the direction of a translation. Return whether it
    says something else than before.

    Both are in styles, which all texts have that use them: names of the language of the source
    become those of the language of the translation, and lines, columns and pages begin on the other
    side if one of the two is written from right to left and the other is not.
    """
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
