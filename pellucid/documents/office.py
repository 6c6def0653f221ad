"""Word and PowerPoint files (Office Open XML): paragraphs of runs, each with its formatting.

A paragraph is rebuilt from its runs: the formatting that most of its characters have is its own,
and each stretch with another one is a pair of marks. What is not text (pictures, notes, bookmarks,
fields) is moved as it is. Parts without paragraphs are copied.
"""

import copy
import dataclasses
import fnmatch
from collections.abc import Iterator, Sequence

from pellucid.core.errors import DataError
from pellucid.documents.containers import (
    Archive,
    Element,
    local_name,
    new_element,
    parse_xml,
    write_xml,
)
from pellucid.documents.segments import (
    OUTERMOST,
    Alone,
    Close,
    Kind,
    Open,
    Piece,
    Range,
    Ranges,
    Segment,
)

_SPACE = "{http://www.w3.org/XML/1998/namespace}space"


@dataclasses.dataclass(frozen=True)
class OfficeNames:
    """What the elements are called in one of the two formats."""

    namespace: str
    strict: str
    """The namespace in files that are saved as Strict Open XML."""
    parts: tuple[str, ...]
    """The parts with text, as patterns of their names."""
    body: str
    """The part without which a file is none of this format."""
    containers: frozenset[str]
    """Elements of a paragraph that hold runs."""
    dropped: frozenset[str] = frozenset()
    """What said something of the original's wording only, such as marks of the spelling checker."""
    ignored: frozenset[str] = frozenset()
    """Properties of a run that make no difference for readers."""
    marks_spaces: bool = False
    """Whether a text has to say that its spaces count."""


WORD = OfficeNames(
    namespace="{http://schemas.openxmlformats.org/wordprocessingml/2006/main}",
    strict="{http://purl.oclc.org/ooxml/wordprocessingml/main}",
    parts=(
        "word/document.xml",
        "word/header*.xml",
        "word/footer*.xml",
        "word/footnotes.xml",
        "word/endnotes.xml",
        "word/comments.xml",
        "word/glossary/document.xml",
    ),
    body="word/document.xml",
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
SLIDES = OfficeNames(
    namespace="{http://schemas.openxmlformats.org/drawingml/2006/main}",
    strict="{http://purl.oclc.org/ooxml/drawingml/main}",
    parts=(
        "ppt/slides/slide*.xml",
        "ppt/notesSlides/notesSlide*.xml",
        "ppt/diagrams/data*.xml",
        "ppt/diagrams/drawing*.xml",
        "ppt/charts/chart*.xml",
    ),
    body="ppt/presentation.xml",
    containers=frozenset(),
    ignored=frozenset(("lang", "altLang", "dirty", "err", "noProof", "smtClean", "smtId")),
)


@dataclasses.dataclass(frozen=True)
class _Part:
    """What is no text: a part of a run, with the run whose properties it has, or an element."""

    element: Element
    run: Element | None = None


@dataclasses.dataclass(frozen=True)
class _Field:
    """A field that shows text to translate, such as a link in Word's older way."""

    head: tuple[_Part, ...]
    """From its beginning up to the text."""
    tail: tuple[_Part, ...]


@dataclasses.dataclass
class _Paragraph:
    """A paragraph, and what stands behind its marks."""

    element: Element
    opened: dict[int, Element | _Field]
    """By pair: the element that holds it, the field, or the first run with its formatting."""
    alone: dict[int, tuple[_Part, ...]]
    bases: dict[int, Element | None]
    """By holder, such as a link: a run with the formatting that most of it has."""


class OfficeDocument:
    """A docx or pptx file."""

    def __init__(self, data: bytes, what: str, vocabulary: OfficeNames) -> None:
        """Raises DataError for a file that is none, is damaged, or holds macros."""
        self._archive = Archive(data, what)
        self._words = vocabulary
        names = self._archive.names
        if vocabulary.body not in names:
            raise DataError(f"{what} must hold {vocabulary.body}, which it does not")
        if any(name.rpartition("/")[2].lower().startswith("vbaproject") for name in names):
            raise DataError(
                f"{what} holds macros, which are programs",
                hint="save it without macros, as docx or pptx",
            )

        self._scripts: frozenset[str] = frozenset()
        self.segments: list[Segment] = []
        self._paragraphs: list[_Paragraph] = []
        self._roots: dict[str, Element] = {}
        for name in names:
            if any(fnmatch.fnmatchcase(name, pattern) for pattern in vocabulary.parts):
                self._roots[name] = parse_xml(self._archive.read(name), f"{what}: {name}")

        # A file is of one of the two kinds, whatever part of it has paragraphs.
        roots = self._roots.values()
        if any(True for root in roots for _ in root.iter(f"{vocabulary.strict}p")):
            self._words = dataclasses.replace(vocabulary, namespace=vocabulary.strict)
        for root in roots:
            for paragraph in root.iter(f"{self._words.namespace}p"):
                self._read(paragraph)

    def write(self, translated: Sequence[Segment]) -> bytes:
        """The file with other segments."""
        if len(translated) != len(self.segments):
            raise ValueError(f"{len(self.segments)} segments are needed, got {len(translated)}")
        changed = set()
        for paragraph, before, after in zip(
            self._paragraphs, self.segments, translated, strict=True
        ):
            if before != after:
                self._rebuild(paragraph, after)
                changed.add(paragraph.element.getroottree().getroot())
        parts = {name: write_xml(root) for name, root in self._roots.items() if root in changed}
        return self._archive.written(parts)

    def _read(self, element: Element) -> None:
        reader = _Reader(self._words, self._scripts)
        pieces = reader.pieces_of(element)
        segment = Segment(tuple(pieces))
        if segment.has_words:
            self.segments.append(segment)
            self._paragraphs.append(_Paragraph(element, reader.opened, reader.alone, reader.bases))

    def _rebuild(self, paragraph: _Paragraph, segment: Segment) -> None:
        """Write the pieces into the paragraph, whose properties stay."""
        root = paragraph.element
        _clear(root, self._words)
        # Where to add, with the run whose formatting texts have there, and the parts to end with.
        holders: list[tuple[Element, Element | None, tuple[_Part, ...]]]
        holders = [(root, paragraph.bases[OUTERMOST], ())]

        for piece in segment.pieces:
            holder, run, tail = holders[-1]
            if isinstance(piece, str):
                self._add_text(holder, piece, run)
            elif isinstance(piece, Alone):
                for part in paragraph.alone[piece.number]:
                    self._add_part(holder, part)
            elif isinstance(piece, Close):
                for part in tail:
                    self._add_part(holder, part)
                holders.pop()
            else:
                opened = paragraph.opened[piece.number]
                base = paragraph.bases.get(piece.number)
                if isinstance(opened, _Field):
                    for part in opened.head:
                        self._add_part(holder, part)
                    holders.append((holder, base, opened.tail))
                elif self._is_run(opened):
                    holders.append((holder, opened, ()))
                else:
                    holder.append(opened)
                    inner = _content(opened, self._words)
                    _clear(inner, self._words)
                    holders.append((inner, base, ()))

        # In slides the properties of the paragraph's end have to be last.
        for end in root.findall(f"{self._words.namespace}endParaRPr"):
            root.append(end)

    def _add_part(self, holder: Element, part: _Part) -> None:
        """Add what is no text; a part of a run in a run of its own."""
        if part.run is None:
            holder.append(part.element)
            return
        added = self._new_run(holder, part.run)
        # Moved and not copied: a copy of a picture would have the same id.
        added.append(part.element)

    def _new_run(self, holder: Element, run: Element | None) -> Element:
        """A new run with the properties of another one."""
        namespace = self._words.namespace
        added = new_element(holder, f"{namespace}r")
        properties = None if run is None else run.find(f"{namespace}rPr")
        if properties is not None:
            added.append(copy.deepcopy(properties))
        return added

    def _is_run(self, element: Element) -> bool:
        return bool(element.tag == f"{self._words.namespace}r")

    def _add_text(self, holder: Element, text: str, run: Element | None) -> None:
        added = self._new_run(holder, run)
        element = new_element(added, f"{self._words.namespace}t")
        element.text = text
        if self._words.marks_spaces:
            element.set(_SPACE, "preserve")


def _content(element: Element, words: OfficeNames) -> Element:
    """Where the runs of a holder are: of a content control inside of an element of its own."""
    inner = element.find(f"{words.namespace}sdtContent")
    return element if inner is None else inner


def _clear(element: Element, words: OfficeNames) -> None:
    """Take out the content; what describes the element itself stays."""
    for child in list(element):
        if not _is_property(child, words):
            element.remove(child)


def _is_property(child: Element, words: OfficeNames) -> bool:
    """Whether an element describes the one around it: pPr, sdtPr, sdtEndPr, endParaRPr."""
    return local_name(child).endswith("Pr") and child.tag.startswith(words.namespace)


_Item = tuple[str | None, _Part]
"""A text with its part, or None with anything else."""
_Atom = tuple[list[Piece], Element | None]
"""Pieces with the run of a text; None for what has no formatting of its own."""


class _Reader:
    """Reads one paragraph, and changes nothing in it."""

    def __init__(self, words: OfficeNames, scripts: frozenset[str]) -> None:
        """``scripts``: the styles that raise or lower a text."""
        self._words, self._scripts = words, scripts
        self._next = 0
        self._ranges = Ranges()
        self.opened: dict[int, Element | _Field] = {}
        self.alone: dict[int, tuple[_Part, ...]] = {}
        self.bases: dict[int, Element | None] = {}

    def pieces_of(self, paragraph: Element) -> list[Piece]:
        """The pieces of a paragraph."""
        return self._merged(self._atoms(list(self._items(paragraph))), OUTERMOST)

    def _number(self) -> int:
        self._next += 1
        return self._next - 1

    def _items(self, holder: Element) -> Iterator[_Item]:
        """The texts of a holder and whatever else is in it, in order."""
        for child in holder:
            name = local_name(child)
            if _is_property(child, self._words) if name else False:
                continue
            if name != "r":
                if name not in self._words.dropped:
                    yield None, _Part(child)
                continue
            for part in child:
                kind = local_name(part)
                if kind in ("rPr", "softHyphen") or kind in self._words.dropped:
                    continue
                if kind == "t":
                    if part.text:
                        yield part.text, _Part(part, child)
                elif kind == "noBreakHyphen":
                    yield "\u2011", _Part(part, child)
                elif kind == "ruby" and (text := _base_text(part)):
                    yield text, _Part(part, child)
                else:
                    yield None, _Part(part, child)

    def _atoms(self, items: Sequence[_Item]) -> list[_Atom]:
        """The pieces of items; inner holders and fields are read already."""
        fields = _fields(items)
        atoms: list[_Atom] = []
        at = 0
        while at < len(items):
            text, part = items[at]
            field = fields.get(at)
            if field is not None:
                end, shown = field
                if shown is None:
                    # What a field shows is computed, such as the number of a page.
                    parts = tuple(each for _, each in items[at : end + 1])
                    atoms.append(([self._alone(parts)], None))
                else:
                    number = self._number()
                    head = tuple(each for _, each in items[at : shown + 1])
                    self.opened[number] = _Field(head, (items[end][1],))
                    inner = self._merged(self._atoms(items[shown + 1 : end]), number)
                    atoms.append(([Open(number), *inner, Close(number)], None))
                at = end + 1
                continue
            at += 1
            if text is not None:
                atoms.append(([text], part.run))
            elif self._is_holder(part):
                number = self._number()
                self.opened[number] = part.element
                inner_items = list(self._items(_content(part.element, self._words)))
                inner = self._merged(self._atoms(inner_items), number)
                atoms.append(([Open(number), *inner, Close(number)], None))
            else:
                is_break = local_name(part.element) in ("br", "cr", "tab")
                atoms.append(([self._alone((part,), breaks=is_break)], None))
        return atoms

    def _alone(self, parts: tuple[_Part, ...], *, breaks: bool = False) -> Alone:
        number = self._number()
        self.alone[number] = parts
        ends = self._ranges.ended_by(number, _range_of(parts[0]))
        return Alone(number, breaks=breaks, ends=ends)

    def _is_holder(self, part: _Part) -> bool:
        """Whether it holds runs of this paragraph, and no paragraph of its own."""
        name = local_name(part.element)
        if part.run is not None or name not in self._words.containers:
            return False
        if name == "fldSimple" and not _shows_text(_value(part.element, "instr")):
            return False
        return not any(local_name(each) == "p" for each in _content(part.element, self._words))

    def _merged(self, atoms: Sequence[_Atom], holder: int) -> list[Piece]:
        """The pieces, with a pair around each stretch whose formatting is not the common one."""
        sizes: dict[bytes, int] = {}
        runs: dict[bytes, Element] = {}
        keys: list[bytes | None] = []
        for pieces, run in atoms:
            key = None if run is None else self._formatting(run)
            keys.append(key)
            if key is not None:
                sizes[key] = sizes.get(key, 0) + sum(
                    len(piece.strip()) for piece in pieces if isinstance(piece, str)
                )
                runs.setdefault(key, run)
        # Of equals the first, so that a file is read the same way every time.
        base = max(sizes, key=lambda key: sizes[key], default=None)
        self.bases[holder] = None if base is None else runs[base]

        merged: list[Piece] = []
        current = base
        number = -1
        for (pieces, run), key in zip(atoms, keys, strict=True):
            # White space has no formatting that a reader sees, so it ends no stretch.
            is_blank = all(isinstance(piece, str) and not piece.strip() for piece in pieces)
            wanted = current if is_blank else base if key is None else key
            if wanted != current:
                if current != base:
                    merged.append(Close(number))
                if wanted != base:
                    number = self._number()
                    self.opened[number] = run
                    merged.append(Open(number, self._kind(run)))
                current = wanted
            for piece in pieces:
                if isinstance(piece, str) and merged and isinstance(merged[-1], str):
                    merged[-1] += piece
                else:
                    merged.append(piece)
        if current != base:
            merged.append(Close(number))
        return merged

    def _kind(self, run: Element | None) -> Kind:
        """What the text of a run is in a sentence: raised, lowered, or in another format."""
        properties = None if run is None else run.find(f"{self._words.namespace}rPr")
        if properties is None:
            return "format"
        if properties.get("baseline", "0").strip("0%") not in ("", "-"):
            return "script"
        for child in properties:
            name, value = local_name(child), _value(child, "val")
            is_raised = name == "vertAlign" and value in ("superscript", "subscript")
            if is_raised or (name == "position" and value.strip("0-")):
                return "script"
            if name == "rStyle" and value in self._scripts:
                return "script"
        return "format"

    def _formatting(self, run: Element) -> bytes:
        """The properties of a run that a reader sees, as bytes to compare."""
        properties = run.find(f"{self._words.namespace}rPr")
        if properties is None:
            return b""
        ignored = self._words.ignored
        attributes = sorted(
            f"{name}={value}" for name, value in properties.attrib.items() if name not in ignored
        )
        children = sorted(
            "".join(f"{each.tag}{sorted(each.attrib.items())}" for each in child.iter())
            for child in properties
            if local_name(child) not in ignored
        )
        return "\n".join([*attributes, *children]).encode()


def _value(element: Element, name: str) -> str:
    """An attribute by its name without a namespace."""
    return next((value for key, value in element.attrib.items() if key.endswith(f"}}{name}")), "")


def _shows_text(instruction: str) -> bool:
    """Whether a field shows text that people wrote, and nothing that is computed."""
    return instruction.split()[:1] in (["HYPERLINK"], ["TOC"], ["QUOTE"])


def _base_text(ruby: Element) -> str:
    """The words below a reading; the reading says how those of the original are spoken."""
    texts = (
        each.text or ""
        for base in ruby
        if local_name(base) == "rubyBase"
        for each in base.iter()
        if local_name(each) == "t"
    )
    return "".join(texts)


def _range_of(part: _Part) -> Range | None:
    """The bookmark, comment, move or permission that an element begins or ends."""
    name = local_name(part.element)
    kind = name.removesuffix("Start").removesuffix("End")
    if part.run is not None or kind == name:
        return None
    ids = [value for key, value in part.element.attrib.items() if key.endswith("}id")]
    return (kind, ids[0], name.endswith("End")) if ids else None


def _fields(items: Sequence[_Item]) -> dict[int, tuple[int, int | None]]:
    """By the item that begins a field: its last item, and where the text that it shows begins;
    None if that is computed. A field that ends in another paragraph is not among them.
    """
    found: dict[int, tuple[int, int | None]] = {}
    opened: list[tuple[int, list[str], list[int]]] = []
    for number, (_, part) in enumerate(items):
        name = local_name(part.element)
        if name == "instrText" and opened:
            opened[-1][1].append(part.element.text or "")
        if name != "fldChar":
            continue
        kind = _value(part.element, "fldCharType")
        if kind == "begin":
            opened.append((number, [], []))
        elif kind == "separate" and opened:
            opened[-1][2].append(number)
        elif kind == "end" and opened:
            begin, instruction, separators = opened.pop()
            is_text = _shows_text("".join(instruction)) and bool(separators)
            found[begin] = number, separators[0] if is_text else None
    return found
