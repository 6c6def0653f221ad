"""The runs of a paragraph as the pieces of a segment, with marks where the formatting changes."""

import dataclasses
import re
from collections.abc import Iterator, Sequence

from pellucid.documents.containers import Element, local_name
from pellucid.documents.office_paragraphs import (
    ElementNames,
    Field,
    Paragraph,
    Part,
    Runs,
    Styles,
    content_of,
    has_pictures_for_letters,
    is_box,
    is_property,
    symbol_of,
    value_of,
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
from pellucid.text.scripts import is_of_word

_JOINERS = [["'"], ["’"], ["-"], ["‐"], ["‑"], ["–"], ["·"]]
"""The pieces of signs that make one word of two."""
_SEEN_BLANKS = frozenset(("u", "strike", "dstrike", "highlight", "shd", "bdr"))
"""The properties of a run that are seen where it has no letter."""
_ON = frozenset(("1", "true", "on"))
_UNSEEN = frozenset(("none", "noStrike", "nil", "auto", "false", "0", "off"))
"""The values that take such a property away."""
_SHOW_TEXT = frozenset(("HYPERLINK", "TOC", "QUOTE", "FORMTEXT"))
"""Fields that show text that people wrote; Word reads their names in upper and lower case."""
_BREAKS = frozenset(("br", "cr", "tab", "ptab"))
"""The ends of a line, and tabs, which divide columns."""
_BUTTON = re.compile(r"\s*MACROBUTTON\s+\S+\s+(.*)", re.IGNORECASE | re.DOTALL)
_COMPUTED = frozenset(("fldSimple", "fld"))
"""Fields that are one element, in Word's text and in drawings."""
_LINE_END = re.compile(r"[\r\n][\t\r\n ]*")
"""A line end of the file within a text, and its indent, which are shown as a space."""
_LEAST_BASELINE, _LEAST_POSITION = 10_000, 4
"""The shift that raises or lowers a text, in thousandths of a percent and in half points; a smaller
one only levels it with what stands beside it."""
_UNITS = {None: 1, "%": 1000, "pt": 2}
_SLIGHT = {"spacing": range(-10, 11), "spc": range(-50, 51), "w": range(90, 111)}
"""Half a point between letters, in twentieths and in hundredths; a tenth of their width."""
_OF_COMPLEX_SCRIPTS = frozenset(("bCs", "iCs", "szCs"))
"""Properties that only text of Arabic, Hebrew, Thai and the like has."""

_Item = tuple[str | None, Part]
"""A text with its part, or None with anything else."""
_Atom = tuple[list[Piece], Element | None]
"""Pieces with the run of a text; None for what has no formatting of its own."""


class ParagraphReader:
    """Reads one paragraph, and changes nothing in it."""

    def __init__(self, names: ElementNames, styles: Styles) -> None:
        self._names, self._styles = names, styles
        self._next = 0
        self._ranges = Ranges()
        self._opened: dict[int, Element | Field] = {}
        self._alone_parts: dict[int, tuple[Part, ...]] = {}
        self._bases: dict[int, Element | None] = {}
        self._computed: list[str] = []
        self._runs = Runs(names)
        self._hidden: frozenset[Element] = frozenset()
        """Runs that are hidden between others: they stay, as they are no part of a sentence."""
        self._formats: dict[Element, tuple[bytes, Kind]] = {}
        """By run, the formatting of all of its texts, and their role in a sentence."""

    def read(self, paragraph: Element) -> Paragraph:
        """The paragraph, as a segment and what stands behind its marks."""
        self._hidden = self._hidden_runs(paragraph)
        pieces = joined(self._merged(self._atoms(list(self._items(paragraph))), OUTERMOST))
        segment = Segment(tuple(pieces))
        return Paragraph(
            paragraph,
            self._names,
            segment,
            self._opened,
            self._alone_parts,
            self._bases,
            self._computed,
        )

    def _number(self) -> int:
        self._next += 1
        return self._next - 1

    def _hidden_runs(self, paragraph: Element) -> frozenset[Element]:
        """The hidden runs of a paragraph; none if all of its text is hidden, and is a text then."""
        name = self._names.namespace
        if next(paragraph.iter(f"{name}vanish"), None) is None:
            return frozenset()
        runs = list(paragraph.iter(f"{name}r"))
        hidden = frozenset(filter(self._is_hidden, runs))
        shown = (each for run in runs if run not in hidden for each in run.iter(f"{name}t"))
        return hidden if any((each.text or "").strip() for each in shown) else frozenset()

    def _is_hidden(self, run: Element) -> bool:
        properties = self._runs.properties_of(run)
        return properties is not None and any(
            local_name(each) == "vanish" and value_of(each, "val") not in _UNSEEN
            for each in properties
        )

    def _items(self, holder: Element) -> Iterator[_Item]:
        """The texts of a holder and whatever else is in it, in order."""
        for child in holder:
            name = local_name(child)
            if name and is_property(child, self._names):
                continue
            if name != "r":
                if name not in self._names.dropped:
                    yield None, Part(child)
                continue

            if any(value_of(part, "customMarkFollows") in _ON for part in child):
                yield None, Part(child)  # the mark of a note, which its run shows behind it
                continue
            for part in child:
                kind = local_name(part)
                if kind in ("rPr", "softHyphen") or kind in self._names.dropped:
                    continue
                if kind == "t" and child in self._hidden:
                    yield None, Part(part, child)
                elif kind == "t":
                    if part.text:
                        yield _LINE_END.sub(" ", part.text), Part(part, child)
                elif kind == "noBreakHyphen":
                    yield "\u2011", Part(part, child)
                elif text := _base_text(part) if kind == "ruby" else symbol_of(part):
                    yield text, Part(part, child)
                else:
                    yield None, Part(part, child)

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
                before = items[at - 1][0] if at else None
                atoms.append(self._atom(*items[at], before or ""))
                at += 1
        return atoms

    def _field(self, items: Sequence[_Item], begin: int | None) -> list[Piece]:
        """The pieces of a field, whose text begins at this item and ends before the last."""
        parts = tuple(part for _, part in items)
        if begin is None:
            # What a field shows is computed, such as the number of a page.
            shown = _shown(items)
            self._computed.append(shown or _button_of(items))
            return [self._alone(parts, shown)]
        return self._pair(Field(parts[:begin], parts[-1:]), items[begin:-1])

    def _atom(self, text: str | None, part: Part, before: str) -> _Atom:
        """The pieces of an item that is no field, behind the text ``before``."""
        if text is not None:
            properties = None if part.run is None else self._runs.properties_of(part.run)
            if properties is not None and self._styles.is_code(properties):
                return [self._alone((part,), text)], part.run
            has_letters = any(map(str.isalnum, text))
            if properties is not None and has_letters and has_pictures_for_letters(properties):
                return [self._alone((part,))], part.run
            if len(text) > 1 and text.isspace() and self._shows_blanks(part.run):
                return [self._alone((part,), breaks=before.rstrip().endswith(":"))], part.run
            return [text], part.run
        if self._is_holder(part):
            inner = list(self._items(content_of(part.element, self._names)))
            return self._pair(part.element, inner), None

        name = local_name(part.element)
        text = self._shown_by(part.element) if name in _COMPUTED else ""
        breaks = name in _BREAKS or (name == "sym" and is_box(part.element))
        return [self._alone((part,), text, breaks=breaks)], None

    def _shown_by(self, field: Element) -> str:
        """Return the text of a computed field that is one element."""
        # In a drawing it holds the text itself, in Word runs.
        texts = field.iterchildren(f"{self._names.namespace}t")
        shown = _shown(list(self._items(field))) or "".join(each.text or "" for each in texts)
        self._computed.append(shown)
        return shown

    def _pair(self, opened: Element | Field, items: Sequence[_Item]) -> list[Piece]:
        """A pair of marks that stands for ``opened``, around the pieces of items."""
        number = self._number()
        self._opened[number] = opened
        return [Open(number), *self._merged(self._atoms(items), number), Close(number)]

    def _alone(self, parts: tuple[Part, ...], text: str = "", *, breaks: bool = False) -> Alone:
        number = self._number()
        self._alone_parts[number] = parts
        ends = self._ranges.ended_by(number, _range_of(parts[0]))
        # Those of a field that ends in another holder or paragraph: it begins before it ends.
        is_field = len(parts) == 1 and local_name(parts[0].element) in ("fldChar", "instrText")
        return Alone(number, text, breaks, ends, in_order=is_field)

    def _is_holder(self, part: Part) -> bool:
        """Whether it holds runs of this paragraph, and no paragraph of its own."""
        name = local_name(part.element)
        if part.run is not None or name not in self._names.containers:
            return False
        if name == "fldSimple" and not _shows_text(value_of(part.element, "instr")):
            return False
        return not any(local_name(each) == "p" for each in content_of(part.element, self._names))

    def _merged(self, atoms: Sequence[_Atom], holder: int) -> list[Piece]:
        """The pieces, with a pair around each stretch whose formatting is not the common one."""
        for _, run in atoms:
            if run is not None and run not in self._formats:
                self._formats[run] = self._formatting(run), self._kind(run)
        base = self._commonest(atoms)
        self._bases[holder] = base
        common = None if base is None else self._formats[base][0]

        merged: list[Piece] = []
        number = -1
        current = common
        for at, (pieces, run) in enumerate(atoms):
            # White space has no formatting that a reader sees, so it ends no stretch; a line to
            # write on is no text.
            is_blank = all(isinstance(piece, str) and not piece.strip() for piece in pieces)
            if is_blank or self._is_within_word(atoms, at):
                merged += pieces
                continue

            wanted, kind = (common, None) if run is None else self._formats[run]
            if wanted != current:
                if current != common:
                    merged.append(Close(number))
                if wanted != common:
                    assert run is not None
                    assert kind is not None
                    number = self._number()
                    self._opened[number] = run
                    merged.append(Open(number, kind))
                current = wanted
            merged += pieces

        if current != common:
            merged.append(Close(number))
        return merged

    def _is_within_word(self, atoms: Sequence[_Atom], at: int) -> bool:
        """Whether an atom is a sign between two letters or digits: Word takes those that a font
        lacks, such as the apostrophe of "don’t", from another one. One that is raised, or has the
        format of what stands on a side of it, keeps its format.
        """
        if not 0 < at < len(atoms) - 1 or atoms[at][0] not in _JOINERS:
            return False
        around = atoms[at - 1 : at + 2]
        before, after = around[0][0][-1:], around[2][0][:1]
        texts = [each for each in (*before, *after) if isinstance(each, str)]
        if len(texts) != 2 or not (is_of_word(texts[0][-1:]) and is_of_word(texts[1][:1])):
            return False

        formats = [None if run is None else self._formats[run] for _, run in around]
        left, own, right = formats
        return own not in (left, right) and own is not None and own[1] != "script"

    def _commonest(self, atoms: Sequence[_Atom]) -> Element | None:
        """The first run with the formatting that most characters have; None without any run. One
        that is seen in the spaces around it, such as a line below, is so only without another.
        """
        sizes: dict[bytes, int] = {}
        runs: dict[bytes, Element] = {}
        for pieces, run in atoms:
            if run is None:
                continue
            key, _ = self._formats[run]
            size = sum(len(piece.strip()) for piece in pieces if isinstance(piece, str))
            sizes[key] = sizes.get(key, 0) + size
            runs.setdefault(key, run)

        def rank(key: bytes) -> tuple[bool, int]:
            return sizes[key] > 0 and not self._shows_blanks(runs[key]), sizes[key]

        # Of equals the first, so that a file is read the same way every time.
        return runs[max(sizes, key=rank)] if sizes else None

    def _kind(self, run: Element) -> Kind:
        """Return the role of a run's text in a sentence: raised, lowered, or in another format."""
        properties = self._runs.properties_of(run)
        if properties is None:
            return "format"
        if _is_far(properties.get("baseline", ""), _LEAST_BASELINE):
            return "script"
        for child in properties:
            name, value = local_name(child), value_of(child, "val")
            is_raised = name == "vertAlign" and value in ("superscript", "subscript")
            if is_raised or (name == "position" and _is_far(value, _LEAST_POSITION)):
                return "script"
            if name == "rStyle" and value in self._styles.scripts:
                return "script"
        return "format"

    def _shows_blanks(self, run: Element | None) -> bool:
        """Whether the white space of a run is seen: as a line to write on, or as a stripe."""
        properties = None if run is None else self._runs.properties_of(run)
        if properties is None:
            return False
        if {properties.get("u", "none"), properties.get("strike", "noStrike")} - _UNSEEN:
            return True
        return any(
            value_of(each, "fill" if name == "shd" else "val") not in _UNSEEN
            for each in properties
            if (name := local_name(each)) in _SEEN_BLANKS
        )

    def _formatting(self, run: Element) -> bytes:
        """The properties of a run that a reader sees, as bytes to compare."""
        properties = self._runs.properties_of(run)
        if properties is None:
            return b""
        ignored = self._names.ignored
        if not {"rtl", "cs"} & {local_name(child) for child in properties}:
            ignored |= _OF_COMPLEX_SCRIPTS
        attributes = sorted(
            f"{name}={value}"
            for name, value in properties.attrib.items()
            if name not in ignored and not _is_slight(name, value)
        )
        children = sorted(
            "".join(f"{each.tag}{_seen_attributes(each)}" for each in child.iter())
            for child in properties
            if (name := local_name(child)) not in ignored
            and not _is_slight(name, value_of(child, "val"))
            and (name != "rFonts" or _seen_attributes(child))
        )
        return "\n".join([*attributes, *children]).encode()


def _is_far(shift: str, least: int) -> bool:
    """Whether a text is raised or lowered by so much, or by as much in percent or points."""
    found = re.fullmatch(r"[+-]?(\d{1,9}(?:\.\d{0,9})?)(%|pt)?", shift)
    return found is not None and float(found[1]) * _UNITS[found[2]] >= least


def _seen_attributes(child: Element) -> list[tuple[str, str]]:
    """The attributes of a property, without the side from which Word takes signs of either."""
    return sorted(each for each in child.attrib.items() if not each[0].endswith("}hint"))


def _is_slight(name: str, value: str) -> bool:
    """Whether a property spaces or widens letters by so little that nobody sees it, as programs do
    that convert a page: they would divide every word.
    """
    slight = _SLIGHT.get(name)
    return slight is not None and bool(re.fullmatch(r"-?\d{1,4}", value)) and int(value) in slight


def _shows_text(instruction: str) -> bool:
    """Whether a field shows text that people wrote, and nothing that is computed."""
    name = instruction.split(maxsplit=1)[:1]
    return bool(name) and name[0].upper() in _SHOW_TEXT


def _shown(items: Sequence[_Item]) -> str:
    """Return the text of a computed field, which is read as a word: the 1 of "Figure 1". What the
    fields in its instruction show is none of it.
    """
    shown: list[str] = []
    instructions: list[bool] = []
    hidden = 0
    for text, part in items:
        kind = value_of(part.element, "fldCharType")
        if kind == "begin":
            instructions.append(True)
            hidden += 1
        elif kind in ("separate", "end") and instructions:
            hidden -= instructions.pop()
            if kind == "separate":
                instructions.append(False)
        elif text is not None and not hidden:
            shown.append(text)
    return "".join(shown)


def _button_of(items: Sequence[_Item]) -> str:
    """Return the words that a field shows in its instruction, such as "Type a name here"."""
    parts = (part.element for _, part in items)
    text = "".join(each.text or "" for each in parts if local_name(each) == "instrText")
    found = _BUTTON.match(text)
    return found[1].strip() if found is not None else ""


def _base_text(ruby: Element) -> str:
    """The words below a reading; the reading says how those of the original are spoken."""
    texts = (
        _LINE_END.sub(" ", each.text or "")
        for base in ruby
        if local_name(base) == "rubyBase"
        for each in base.iter()
        if local_name(each) == "t"
    )
    return "".join(texts)


def _range_of(part: Part) -> Range | None:
    """The bookmark, comment, move or permission that an element begins or ends."""
    name = local_name(part.element)
    kind = name.removesuffix("Start").removesuffix("End")
    if part.run is not None or kind == name:
        return None
    ids = [value for key, value in part.element.attrib.items() if key.endswith("}id")]
    return (kind, ids[0], name.endswith("End")) if ids else None


@dataclasses.dataclass
class _OpenField:
    """A field whose end was not read yet."""

    begin: int
    instruction: list[str] = dataclasses.field(default_factory=list)
    """Pieces of its text, joined once: growing a text by each takes quadratic time."""
    separator: int | None = None
    """The item between the instruction and what the field shows."""


def _fields(items: Sequence[_Item]) -> dict[int, tuple[int, int | None]]:
    """By the item that begins a field: its last item, and where the text that it shows begins;
    None if that is computed. A field that ends in another paragraph is not among them.
    """
    found: dict[int, tuple[int, int | None]] = {}
    opened: list[_OpenField] = []
    for number, (_, part) in enumerate(items):
        name = local_name(part.element)
        kind = value_of(part.element, "fldCharType") if name == "fldChar" else ""

        if kind == "begin":
            opened.append(_OpenField(number))
        elif not opened:
            continue
        elif name == "instrText":
            opened[-1].instruction.append(part.element.text or "")
        elif kind == "separate":
            if opened[-1].separator is None:
                opened[-1].separator = number
        elif kind == "end":
            field = opened.pop()
            is_text = _shows_text("".join(field.instruction))
            found[field.begin] = number, field.separator if is_text else None
    return found
