"""Word and PowerPoint files (Office Open XML): their parts, and the texts in them.

Parts are found by their relationships, as Office itself finds them: no part has a name that all
programs give it, and Word on the web writes ``word/document2.xml``.

Paragraphs are read by ``office_reader`` and written by ``office_writer``. Parts without paragraphs
are copied.
"""

import collections
import dataclasses
import posixpath
import re
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pellucid.core.errors import DataError
from pellucid.core.texts import counted, words_in
from pellucid.documents.containers import Archive, Element, local_name, parse_xml, write_xml
from pellucid.documents.office_language import OfficeLanguage
from pellucid.documents.office_paragraphs import (
    PARAGRAPHS,
    Paragraph,
    Styles,
    value_of,
)
from pellucid.documents.office_reader import ParagraphReader
from pellucid.documents.office_strings import (
    IndexEntry,
    ShownString,
    left_out_entries,
    strings_of,
)
from pellucid.documents.office_writer import ParagraphWriter
from pellucid.documents.segments import Languages, Segment
from pellucid.text.scripts import any_letter

_MAIN = "officeDocument"
_TEXTS = words_in(
    "header footer footnotes endnotes comments glossaryDocument slide notesSlide slideLayout"
    " slideMaster diagramData diagramDrawing chart chartEx chartUserShapes"
)
"""Relationships to parts with text; each is the end of an address, which differs among the two
standards and Microsoft's additions."""
_STYLES = frozenset(("styles", "numbering"))
_EMBEDDED = frozenset(("package", "oleObject", "aFChunk"))
"""Relationships to documents of their own, such as the worksheet of a chart."""
_NUMBERING = re.compile(rf"{any_letter()}{{3,}}")
"""A word beside the number of a heading, such as "Chapter %1"."""
_CODE = re.compile(
    r"(?:source|inline|program) ?(?:code|listing)(?: ?(?:char|block|text))?"
    r"|code(?: ?(?:char|block|inline|snippet))?|verbatim(?: char)?|html (?:code|sample)"
    r"|macro(?: ?text)?(?: char)?|tw4winexternal|do_?not_?translate",
    re.IGNORECASE,
)
"""The names of styles for code, as Word, Pandoc and tools of translators have them."""


@dataclasses.dataclass(frozen=True)
class OfficeFormat:
    """Word or PowerPoint."""

    main: str
    """The main part of a file whose relationships do not say it."""
    root: str
    """The element that the main part is."""


WORD = OfficeFormat("word/document.xml", "document")
SLIDES = OfficeFormat("ppt/presentation.xml", "presentation")


class OfficeDocument:
    """A docx or pptx file."""

    def __init__(self, data: bytes, what: str, form: OfficeFormat, languages: Languages) -> None:
        """``languages``: the file says that it is in the second one where it says the first.

        Raises DataError for a file that is none, is damaged, or holds macros.
        """
        self._language = OfficeLanguage(languages)
        self._archive = Archive(data, what)
        names = self._archive.names
        if any(name.rpartition("/")[2].lower().startswith("vbaproject") for name in names):
            raise DataError(
                f"{what} holds macros, which are programs",
                hint="save it without macros, as docx or pptx",
            )
        parts = _related_parts(self._archive, form.main, what)
        if not parts:
            raise DataError(f"{what} must hold {form.main}, which it does not")

        self.segments: list[Segment] = []
        self._texts: list[Paragraph | ShownString | IndexEntry] = []
        self._roots: dict[str, Element] = {}
        for name, kind in parts.items():
            if kind not in _EMBEDDED:
                self._roots[name] = parse_xml(self._archive.read(name), f"{what}: {name}")
        main = next(iter(self._roots.values()))
        if local_name(main) != form.root:
            raise DataError(
                f"{what} must hold <{form.root}> in its main part, which is <{local_name(main)}>",
                hint="its name may end as that of another format",
            )

        styles = [root for name, root in self._roots.items() if parts[name] == "styles"]
        self._styles = Styles(
            frozenset(style for root in styles for style in _styles_of_scripts(root)),
            frozenset(style for root in styles for style in _styles_of_code(root)),
        )
        self._computed: dict[str, None] = {}
        """Words that computed fields show, each once."""
        for name, root in self._roots.items():
            if parts[name] == _MAIN or parts[name] in _TEXTS:
                self._read_part(root)
        self.notes = _left_out(parts, self._roots) + _fields_left_out(self._computed)

    def write(self, translated: Sequence[Segment]) -> bytes:
        """The file with other segments."""
        changed = set()
        paragraphs: list[tuple[Paragraph, Segment]] = []
        for text, before, after in zip(self._texts, self.segments, translated, strict=True):
            if before == after:
                continue
            changed.add(text.element.getroottree().getroot())
            if isinstance(text, Paragraph):
                paragraphs.append((text, after))
            else:
                text.write(after)

        # A paragraph has copies of the properties of its runs, such as what a link shows.
        for paragraph, after in paragraphs:
            ParagraphWriter(paragraph).write(after)

        if changed:
            self._language.turn_texts([paragraph.element for paragraph, _ in paragraphs])
            for root in self._roots.values():
                if self._language.rename(root) | self._language.turn_levels(root):
                    changed.add(root)
        parts = {name: write_xml(root) for name, root in self._roots.items() if root in changed}
        return self._archive.written(parts)

    def _read_part(self, root: Element) -> None:
        """Add the texts of a part, in their order."""
        is_pattern = local_name(root) in ("sldLayout", "sldMaster")
        for element in root.iter():
            names = PARAGRAPHS.get(element.tag)
            if names is not None and is_pattern and _is_prompt(element):
                continue
            texts: Iterable[Paragraph | ShownString | IndexEntry] = (
                strings_of(element)
                if names is None
                else [ParagraphReader(names, self._styles).read(element)]
            )
            if any(self._styles.is_code(each) for each in element if local_name(each) == "pPr"):
                continue
            for text in texts:
                if isinstance(text, Paragraph):
                    self._computed |= dict.fromkeys(text.computed)
                if (segment := text.segment).has_words:
                    self.segments.append(segment)
                    self._texts.append(text)


def _is_prompt(element: Element) -> bool:
    """Whether a paragraph of a layout stands in for one of a slide, and is never shown."""
    shape = next((each for each in element.iterancestors() if local_name(each) == "sp"), None)
    return shape is not None and next(shape.iter("{*}ph"), None) is not None


def _styles_of_scripts(root: Element) -> Iterator[str]:
    """The names of the styles that raise or lower a text."""
    for style in root.iter("{*}style"):
        for each in style.iter("{*}vertAlign"):
            if value_of(each, "val") in ("superscript", "subscript"):
                yield value_of(style, "styleId")


def _styles_of_code(root: Element) -> Iterator[str]:
    """The names of the styles whose text is code, or is kept from translators."""
    for style in root.iter("{*}style"):
        if any(_CODE.fullmatch(value_of(each, "val")) for each in style.iterchildren("{*}name")):
            yield value_of(style, "styleId")


def _fields_left_out(computed: Iterable[str]) -> list[str]:
    """Return a note on the words that computed fields show, if there are any."""
    # «Name» is a place for what a letter is merged with.
    words = [text for text in computed if _NUMBERING.search(text) and not text.startswith("«")]
    if not words:
        return []
    shown = ", ".join(map(repr, words[:3]))
    return [f"{counted(len(words), 'text')} of computed fields not translated: {shown}"]


def _left_out(parts: Mapping[str, str], roots: Mapping[str, Element]) -> list[str]:
    """Return notes on text that is not translated though people read it, a line each."""
    embedded = sum(kind in _EMBEDDED for kind in parts.values())
    charts = sum(kind in ("chart", "chartEx") for kind in parts.values())
    numberings = {
        value
        for name, root in roots.items()
        if parts[name] == "numbering"
        for each in root.iter("{*}lvlText")
        if _NUMBERING.search(value := value_of(each, "val"))
    }
    entries = sum(map(left_out_entries, roots.values()))
    bound = sum(1 for root in roots.values() for _ in root.iter("{*}dataBinding"))

    notes = []
    if embedded:
        charted = ", the worksheets of charts among them" if charts else ""
        notes.append(f"{counted(embedded, 'embedded file')} not translated{charted}")
    if numberings:
        shown = ", ".join(map(repr, sorted(numberings)[:3]))
        notes.append(f"{counted(len(numberings), 'numbering')} not translated: {shown}")
    if entries:
        noun = "entry" if entries == 1 else "entries"
        notes.append(f"{entries:,} {noun} of an index not translated")
    if bound:
        notes.append(
            f"{counted(bound, 'field')} bound to data of the file: Word may show the original"
        )
    return notes


def _related_parts(archive: Archive, main: str, what: str) -> dict[str, str]:
    """The parts of an archive by name, with the kind of relationship that leads to each.

    The main part comes first: it is ``main`` where no relationship says which it is. Empty if there
    is none. Raises DataError for relationships that cannot be read.
    """
    names = frozenset(archive.names)
    relations = _relations(archive, "", names, what)
    first = next((name for kind, name in relations if kind == _MAIN), main)
    if first not in names:
        return {}

    found = {first: _MAIN}
    waiting = collections.deque(found)
    while waiting:
        part = waiting.popleft()
        for kind, name in _relations(archive, part, names, what):
            if name not in found and kind in _TEXTS | _STYLES | _EMBEDDED:
                found[name] = kind
                if kind in _TEXTS:
                    waiting.append(name)
    return found


def _relations(
    archive: Archive, part: str, names: frozenset[str], what: str
) -> Iterator[tuple[str, str]]:
    """The kind and the part of each relationship within the archive that a part has."""
    folder, name = posixpath.split(part)
    place = posixpath.join(folder, "_rels", f"{name}.rels")
    if place not in names:
        return

    try:
        root = parse_xml(archive.read(place), f"{what}: {place}")
    except DataError:
        if not part:
            raise
        return  # Office leaves out what such a part refers to

    for each in root.iter("{*}Relationship"):
        if each.get("TargetMode") == "External":
            continue
        target = urllib.parse.unquote(each.get("Target", ""))
        full = posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
        if full in names:
            yield each.get("Type", "").rpartition("/")[2], full
