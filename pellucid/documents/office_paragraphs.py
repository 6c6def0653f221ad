"""Paragraphs of Word and PowerPoint: runs of text, each with its formatting.

A paragraph is rebuilt from its runs: the formatting that most of its characters have is its own,
and each stretch with another one is a pair of marks. What is not text (pictures, notes, bookmarks,
fields) is moved as it is.
"""

import copy
import dataclasses
from collections.abc import Iterator, Sequence

from pellucid.documents.containers import (
    Element,
    local_name,
    new_element,
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
    joined,
)

_SPACE = "{http://www.w3.org/XML/1998/namespace}space"


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
class Paragraph:
    """A paragraph, and what stands behind its marks."""

    element: Element
    names: ElementNames
    opened: dict[int, Element | _Field]
    """By pair: the element that holds it, the field, or the first run with its formatting."""
    alone: dict[int, tuple[_Part, ...]]
    bases: dict[int, Element | None]
    """By holder, such as a link: a run with the formatting that most of it has."""


class _Runs:
    """The properties of the runs of a paragraph. Each run is searched once, as a search goes
    through all of its parts, which may be thousands.
    """

    def __init__(self, words: ElementNames) -> None:
        self._tag = f"{words.namespace}rPr"
        self._found: dict[Element, Element | None] = {}

    def properties_of(self, run: Element) -> Element | None:
        """The element with the properties of a run, if it has one."""
        if run not in self._found:
            self._found[run] = self._search(run)
        return self._found[run]

    def _search(self, run: Element) -> Element | None:
        return run.find(self._tag)


class ParagraphWriter:
    """Writes the pieces of a segment into a paragraph, whose properties stay."""

    def __init__(self, paragraph: Paragraph) -> None:
        self._paragraph, self._words = paragraph, paragraph.names
        self._runs = _Runs(paragraph.names)

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
        added = new_element(holder, f"{self._words.namespace}r")
        properties = None if run is None else self._runs.properties_of(run)
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


def _content(element: Element, words: ElementNames) -> Element:
    """Where the runs of a holder are: of a content control inside of an element of its own."""
    inner = element.find(f"{words.namespace}sdtContent")
    return element if inner is None else inner


def _clear(element: Element, words: ElementNames) -> None:
    """Take out the content; what describes the element itself stays."""
    for child in list(element):
        if not _is_property(child, words):
            element.remove(child)


def _is_property(child: Element, words: ElementNames) -> bool:
    """Whether an element describes the one around it: pPr, sdtPr, sdtEndPr, endParaRPr."""
    return local_name(child).endswith("Pr") and child.tag.startswith(words.namespace)


_Item = tuple[str | None, _Part]
"""A text with its part, or None with anything else."""
_Atom = tuple[list[Piece], Element | None]
"""Pieces with the run of a text; None for what has no formatting of its own."""


class ParagraphReader:
    """Reads one paragraph, and changes nothing in it."""

    def __init__(self, words: ElementNames, scripts: frozenset[str]) -> None:
        """``scripts``: the styles that raise or lower a text."""
        self._words, self._scripts = words, scripts
        self._next = 0
        self._ranges = Ranges()
        self.opened: dict[int, Element | _Field] = {}
        self.alone: dict[int, tuple[_Part, ...]] = {}
        self.bases: dict[int, Element | None] = {}
        self._runs = _Runs(words)
        self._formats: dict[Element, tuple[bytes, Kind]] = {}
        """By run, the formatting of all of its texts, and their role in a sentence."""

    def pieces_of(self, paragraph: Element) -> list[Piece]:
        """The pieces of a paragraph."""
        return joined(self._merged(self._atoms(list(self._items(paragraph))), OUTERMOST))

    def _number(self) -> int:
        self._next += 1
        return self._next - 1

    def _items(self, holder: Element) -> Iterator[_Item]:
        """The texts of a holder and whatever else is in it, in order."""
        for child in holder:
            name = local_name(child)
            if name and _is_property(child, self._words):
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
            if at in fields:
                end, shown = fields[at]
                begin = None if shown is None else shown + 1 - at
                atoms.append((self._field(items[at : end + 1], begin), None))
                at = end + 1
            else:
                atoms.append(self._atom(*items[at]))
                at += 1
        return atoms

    def _field(self, items: Sequence[_Item], begin: int | None) -> list[Piece]:
        """The pieces of a field, whose text begins at this item and ends before the last."""
        parts = tuple(part for _, part in items)
        if begin is None:
            # What a field shows is computed, such as the number of a page.
            return [self._alone(parts, _shown(items))]
        return self._pair(_Field(parts[:begin], parts[-1:]), items[begin:-1])

    def _atom(self, text: str | None, part: _Part) -> _Atom:
        """The pieces of an item that is no field."""
        if text is not None:
            return [text], part.run
        if self._is_holder(part):
            inner = list(self._items(_content(part.element, self._words)))
            return self._pair(part.element, inner), None

        name = local_name(part.element)
        text = _shown(list(self._items(part.element))) if name == "fldSimple" else ""
        return [self._alone((part,), text, breaks=name in ("br", "cr", "tab"))], None

    def _pair(self, opened: Element | _Field, items: Sequence[_Item]) -> list[Piece]:
        """A pair of marks that stands for ``opened``, around the pieces of items."""
        number = self._number()
        self.opened[number] = opened
        return [Open(number), *self._merged(self._atoms(items), number), Close(number)]

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
        if name == "fldSimple" and not _shows_text(value_of(part.element, "instr")):
            return False
        return not any(local_name(each) == "p" for each in _content(part.element, self._words))

    def _merged(self, atoms: Sequence[_Atom], holder: int) -> list[Piece]:
        """The pieces, with a pair around each stretch whose formatting is not the common one."""
        sizes: dict[bytes, int] = {}
        runs: dict[bytes, Element] = {}
        keys: list[bytes | None] = []
        for pieces, run in atoms:
            if run is not None and run not in self._formats:
                self._formats[run] = self._formatting(run), self._kind(run)
            key = None if run is None else self._formats[run][0]
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
                    merged.append(Open(number, self._formats[run][1]))
                current = wanted
            merged += pieces
        if current != base:
            merged.append(Close(number))
        return merged

    def _kind(self, run: Element) -> Kind:
        """Return the role of a run's text in a sentence: raised, lowered, or in another format."""
        properties = self._runs.properties_of(run)
        if properties is None:
            return "format"
        if properties.get("baseline", "0").strip("0%") not in ("", "-"):
            return "script"
        for child in properties:
            name, value = local_name(child), value_of(child, "val")
            is_raised = name == "vertAlign" and value in ("superscript", "subscript")
            if is_raised or (name == "position" and value.strip("0-")):
                return "script"
            if name == "rStyle" and value in self._scripts:
                return "script"
        return "format"

    def _formatting(self, run: Element) -> bytes:
        """The properties of a run that a reader sees, as bytes to compare."""
        properties = self._runs.properties_of(run)
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


def value_of(element: Element, name: str) -> str:
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
        kind = value_of(part.element, "fldCharType")
        if kind == "begin":
            opened.append((number, [], []))
        elif kind == "separate" and opened:
            opened[-1][2].append(number)
        elif kind == "end" and opened:
            begin, instruction, separators = opened.pop()
            is_text = _shows_text("".join(instruction)) and bool(separators)
            found[begin] = number, separators[0] if is_text else None
    return found
