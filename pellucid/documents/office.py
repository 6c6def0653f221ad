"""Word and PowerPoint files (Office Open XML): paragraphs of runs, each with its formatting.

A paragraph is rebuilt from its runs: the formatting that most of its characters have is its own,
and each stretch with another one is a pair of marks. What is not text (pictures, notes, bookmarks,
fields) is moved as it is. Parts without paragraphs are copied.
"""

import copy
import dataclasses
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence

from pellucid.core.errors import DataError
from pellucid.documents.containers import (
    Archive,
    Element,
    local_name,
    new_element,
    parse_xml,
    write_xml,
)
from pellucid.documents.office_parts import EMBEDDED, has_text, related_parts
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
class _Names:
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


_WORD = _Names(
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
_DRAWING = _Names(
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
_PARAGRAPHS = {f"{names.namespace}p": names for names in _NAMES}
_SHOWN_ATTRIBUTES = ("descr", "title")
"""The attributes of a picture, a chart or a shape that are read aloud."""
_FILE_NAME = re.compile(r"\S+\.\w{2,5}|\w:\\.*|\w+:\S*")
_NUMBERING = re.compile(r"[^\W\d_]{3,}")
"""A word beside the number of a heading, such as "Chapter %1"."""


@dataclasses.dataclass(frozen=True)
class OfficeFormat:
    """Word or PowerPoint."""

    main: str
    """The main part of a file whose relationships do not say it."""
    root: str
    """The element that the main part is."""


WORD = OfficeFormat("word/document.xml", "document")
SLIDES = OfficeFormat("ppt/presentation.xml", "presentation")


@dataclasses.dataclass(frozen=True)
class _Part:
    """A piece that is no text: a part of a run, with the run whose properties it has, or an
    element."""

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
    names: _Names
    opened: dict[int, Element | _Field]
    """By pair: the element that holds it, the field, or the first run with its formatting."""
    alone: dict[int, tuple[_Part, ...]]
    bases: dict[int, Element | None]
    """By holder, such as a link: a run with the formatting that most of it has."""


@dataclasses.dataclass
class _String:
    """A text without formatting: what an element holds, or an attribute of it."""

    element: Element
    attribute: str | None = None

    @property
    def text(self) -> str:
        """The text as it is."""
        return (self.element.get(self.attribute) if self.attribute else self.element.text) or ""

    def write(self, text: str) -> None:
        """Write another text."""
        if self.attribute:
            self.element.set(self.attribute, text)
        else:
            self.element.text = text


class OfficeDocument:
    """A docx or pptx file."""

    def __init__(self, data: bytes, what: str, form: OfficeFormat) -> None:
        """Raises DataError for a file that is none, is damaged, or holds macros."""
        self._archive = Archive(data, what)
        names = self._archive.names
        if any(name.rpartition("/")[2].lower().startswith("vbaproject") for name in names):
            raise DataError(
                f"{what} holds macros, which are programs",
                hint="save it without macros, as docx or pptx",
            )
        parts = related_parts(self._archive, form.main, what)
        if not parts:
            raise DataError(f"{what} must hold {form.main}, which it does not")

        self.segments: list[Segment] = []
        self._texts: list[_Paragraph | _String] = []
        self._roots: dict[str, Element] = {}
        for name, kind in parts.items():
            if kind not in EMBEDDED:
                self._roots[name] = parse_xml(self._archive.read(name), f"{what}: {name}")
        main = next(iter(self._roots.values()))
        if local_name(main) != form.root:
            raise DataError(
                f"{what} must hold <{form.root}> in its main part, which is <{local_name(main)}>",
                hint="its name may end as that of another format",
            )

        self._scripts = frozenset(
            style
            for name, root in self._roots.items()
            if parts[name] == "styles"
            for style in _styles_of_scripts(root)
        )
        for name, root in self._roots.items():
            if has_text(parts[name]):
                self._read_part(root)
        self._notes = _left_out(parts, self._roots)

    @property
    def notes(self) -> Sequence[str]:
        """Notes on the text that stays in the language of the original."""
        return self._notes

    def write(self, translated: Sequence[Segment]) -> bytes:
        """The file with other segments."""
        if len(translated) != len(self.segments):
            raise ValueError(f"{len(self.segments)} segments are needed, got {len(translated)}")
        changed = set()
        for text, before, after in zip(self._texts, self.segments, translated, strict=True):
            if before == after:
                continue
            if isinstance(text, _String):
                text.write(after.text)
            else:
                _Writer(text).write(after)
            changed.add(text.element.getroottree().getroot())
        parts = {name: write_xml(root) for name, root in self._roots.items() if root in changed}
        return self._archive.written(parts)

    def _read_part(self, root: Element) -> None:
        """Add the texts of a part, in their order."""
        is_pattern = local_name(root) in ("sldLayout", "sldMaster")
        for element in root.iter():
            names = _PARAGRAPHS.get(element.tag)
            if is_pattern and _is_prompt(element):
                continue
            if names is not None:
                self._read_paragraph(element, names)
            elif local_name(element) in ("docPr", "cNvPr"):
                for attribute in _SHOWN_ATTRIBUTES:
                    if not _FILE_NAME.fullmatch(element.get(attribute, "")):
                        self._add(_String(element, attribute))
            elif _is_chart_text(element):
                self._add(_String(element))

    def _read_paragraph(self, element: Element, names: _Names) -> None:
        reader = _Reader(names, self._scripts)
        segment = Segment(tuple(reader.pieces_of(element)))
        if segment.has_words:
            self.segments.append(segment)
            self._texts.append(
                _Paragraph(element, names, reader.opened, reader.alone, reader.bases)
            )

    def _add(self, text: _String) -> None:
        segment = Segment((text.text,))
        if segment.has_words:
            self.segments.append(segment)
            self._texts.append(text)


def _is_prompt(element: Element) -> bool:
    """Whether a paragraph of a layout stands in for one of a slide, and is never shown."""
    if element.tag not in _PARAGRAPHS:
        return False
    shape = next((each for each in element.iterancestors() if local_name(each) == "sp"), None)
    return shape is not None and next(shape.iter("{*}ph"), None) is not None


def _is_chart_text(element: Element) -> bool:
    """Whether an element holds the name of a category or of a series."""
    name = local_name(element)
    if name == "v":
        holders = [local_name(each) for each in itertools.islice(element.iterancestors(), 3)]
        is_cached = "pt" in holders[:1] and {"strCache", "strLit", "lvl"} & set(holders[1:2])
        return bool(is_cached) or holders[:1] == ["txData"]
    if name == "pt":
        return "strDim" in [
            local_name(each) for each in itertools.islice(element.iterancestors(), 2)
        ]
    return False


def _styles_of_scripts(root: Element) -> Iterator[str]:
    """The names of the styles that raise or lower a text."""
    for style in root.iter("{*}style"):
        for each in style.iter("{*}vertAlign"):
            if _value(each, "val") in ("superscript", "subscript"):
                yield _value(style, "styleId")


def _left_out(parts: Mapping[str, str], roots: Mapping[str, Element]) -> list[str]:
    """Return notes on text that is not translated though people read it, a line each."""
    embedded = sum(kind in EMBEDDED for kind in parts.values())
    charts = sum(kind in ("chart", "chartEx") for kind in parts.values())
    numberings = {
        value
        for name, root in roots.items()
        if parts[name] == "numbering"
        for each in root.iter("{*}lvlText")
        if _NUMBERING.search(value := _value(each, "val"))
    }
    bound = sum(1 for root in roots.values() for _ in root.iter("{*}dataBinding"))
    notes = []
    if embedded:
        charted = ", the worksheets of charts among them" if charts else ""
        notes.append(f"{_counted(embedded, 'embedded file')} not translated{charted}")
    if numberings:
        shown = ", ".join(map(repr, sorted(numberings)[:3]))
        notes.append(f"{_counted(len(numberings), 'numbering')} not translated: {shown}")
    if bound:
        notes.append(
            f"{_counted(bound, 'field')} bound to data of the file: Word may show the original"
        )
    return notes


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


class _Writer:
    """Writes the pieces of a segment into a paragraph, whose properties stay."""

    def __init__(self, paragraph: _Paragraph) -> None:
        self._paragraph, self._words = paragraph, paragraph.names

    def write(self, segment: Segment) -> None:
        """Replace what the paragraph holds."""
        paragraph = self._paragraph
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


def _content(element: Element, words: _Names) -> Element:
    """Where the runs of a holder are: of a content control inside of an element of its own."""
    inner = element.find(f"{words.namespace}sdtContent")
    return element if inner is None else inner


def _clear(element: Element, words: _Names) -> None:
    """Take out the content; what describes the element itself stays."""
    for child in list(element):
        if not _is_property(child, words):
            element.remove(child)


def _is_property(child: Element, words: _Names) -> bool:
    """Whether an element describes the one around it: pPr, sdtPr, sdtEndPr, endParaRPr."""
    return local_name(child).endswith("Pr") and child.tag.startswith(words.namespace)


_Item = tuple[str | None, _Part]
"""A text with its part, or None with anything else."""
_Atom = tuple[list[Piece], Element | None]
"""Pieces with the run of a text; None for what has no formatting of its own."""


class _Reader:
    """Reads one paragraph, and changes nothing in it."""

    def __init__(self, words: _Names, scripts: frozenset[str]) -> None:
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
                    atoms.append(([self._alone(parts, _shown(items[at : end + 1]))], None))
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
                name = local_name(part.element)
                text = _shown(list(self._items(part.element))) if name == "fldSimple" else ""
                alone = self._alone((part,), text, breaks=name in ("br", "cr", "tab"))
                atoms.append(([alone], None))
        return atoms

    def _alone(self, parts: tuple[_Part, ...], text: str = "", *, breaks: bool = False) -> Alone:
        number = self._number()
        self.alone[number] = parts
        ends = self._ranges.ended_by(number, _range_of(parts[0]))
        return Alone(number, text, breaks, ends)

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
        """Return the role of a run's text in a sentence: raised, lowered, or in another format."""
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


def _shown(items: Sequence[_Item]) -> str:
    """Return the text of a computed field, which is read as a word: the 1 of "Figure 1"."""
    return "".join(text for text, _ in items if text is not None)


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
