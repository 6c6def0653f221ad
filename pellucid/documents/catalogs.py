"""Catalogs of translators: XLIFF 1.2 and 2.

What has a translation keeps it. The new ones are marked as made by a machine where the format has a
mark for that, and a file that names no target language gets that of the model.
"""

import html
import re
from collections.abc import Iterator, Mapping, Sequence

from pellucid.core.errors import DataError
from pellucid.documents.containers import Element, local_name, written_element
from pellucid.documents.html_rules import BLOCKS
from pellucid.documents.mixed import MixedText, Role, read_mixed
from pellucid.documents.plain import divide_at_tags, edited
from pellucid.documents.program_values import is_key
from pellucid.documents.protected import literals_in
from pellucid.documents.segments import (
    Alone,
    Close,
    Kind,
    Languages,
    Open,
    Range,
    Segment,
    in_one_line,
)
from pellucid.documents.strings import note_of_left
from pellucid.documents.xml_places import PlacedXml, with_attributes
from pellucid.text.languages import UNKNOWN, base_code

_PAIRS = frozenset(("g", "mrk", "pc"))
_OLD_STATES = frozenset(("new", "needs-translation", "initial"))
"""States in which what stands in a target is no translation yet."""
_LOCKED = frozenset(("locked", "true"))


class XliffDocument:
    """An XLIFF file, version 1.2 or 2."""

    def __init__(self, data: bytes, what: str, languages: Languages) -> None:
        """``languages`` are those of the model.

        Raises DataError for what is not XLIFF.
        """
        self._file = PlacedXml(data, what)
        root = self._file.root
        if local_name(root) != "xliff":
            raise DataError(f"{what} must begin with <xliff>, begins with <{local_name(root)}>")

        self._is_new = root.get("version", "1.2").startswith("2")
        self._texts: list[tuple[Element, MixedText]] = []
        left: list[str] = []
        """Keys of texts and other values that nobody reads."""
        given: dict[str, str] = {}
        """In XLIFF 2 what the codes of a unit were in the original, by their ids."""
        given_in: dict[Element, dict[str, str]] = {}

        def role_of(element: Element) -> Role:
            return _role_of(element, given)

        def read_as(element: Element) -> str:
            return _placeholder(element, given)

        for unit in root.iterdescendants():
            if local_name(unit) != ("segment" if self._is_new else "trans-unit"):
                continue
            source = _source_of(unit)
            if source is not None and self._is_open(unit):
                holder = unit.getparent()
                if holder not in given_in:
                    data_of = holder.iterfind("{*}originalData/{*}data")
                    given_in[holder] = {each.get("id"): each.text or "" for each in data_of}
                given = given_in[holder]
                if is_key(words := "".join(source.itertext()).strip()):
                    left.append(words)
                    continue
                text = read_mixed(source, role_of, divide_at_tags, _range_of, _kind_of, read_as)
                self._texts.append((unit, text))

        self.segments = [_without_layout(text) for _, text in self._texts]
        self._languages = languages
        self._unnamed: dict[Element, dict[str, str]] = {}
        """Elements that lack the language of the new targets, and the attribute for it."""
        self.notes = [*self._check_language(), *note_of_left(left)]

    def write(self, translated: Sequence[Segment]) -> bytes:
        """The file with targets; every other byte stays."""
        # What is as it was has its white space as it was.
        translated = [
            text.segment if before == after else after
            for (_, text), before, after in zip(self._texts, self.segments, translated, strict=True)
        ]
        file, places = self._file, self._file.places
        edits: list[tuple[int, int, bytes]] = []
        for element, language in self._unnamed.items():
            start, stop = places[element].start, places[element].inner_start
            tag = with_attributes(file.text(start, stop), language)
            edits.append((start, stop, file.encoded(tag)))
        for (unit, text), segment in zip(self._texts, translated, strict=True):
            source, target = places[text.element], _child(unit, "target")
            states = {"state": "needs-review-translation", "state-qualifier": "leveraged-mt"}
            if self._is_new:
                states = {}
                start, stop = places[unit].start, places[unit].inner_start
                tag = with_attributes(file.text(start, stop), {"state": "translated"})
                edits.append((start, stop, file.encoded(tag)))

            if target is not None:
                place = places[target]
                name, start, stop = place.name, place.start, place.end
                tag = file.text(start, place.inner_start)
                blank = b""
            else:
                before = _child(unit, "seg-source")
                start = stop = places[text.element if before is None else before].end
                name = source.name.removesuffix("source").removesuffix("seg-") + "target"
                tag = f"<{name}>"
                # With the white space that comes after the one before it.
                rest = file.data[start : places[unit].inner_end]
                blank = rest[: len(rest) - len(rest.lstrip(b" \t\r\n"))]
            content = b"".join(self._content(text, segment))
            opening = file.encoded(with_attributes(tag, states))
            edits.append((start, stop, blank + opening + content + file.encoded(f"</{name}>")))
        return edited(file.data, edits)

    def _content(self, text: MixedText, segment: Segment) -> Iterator[bytes]:
        """A segment with the inline elements of the source as they are written."""
        for piece in segment.pieces:
            if (translation := text.text_of(piece)) is not None:
                yield self._file.encoded(
                    html.escape(translation, quote=False).replace("\r", "&#13;")
                )
                continue

            assert isinstance(piece, Open | Close | Alone)
            element = text.elements[piece.number]
            if element not in self._file.places:  # a comment or an instruction
                yield self._file.encoded(written_element(element))
                continue

            # A mark of a pair is one tag; a mark that stands alone is the whole element.
            place = self._file.places[element]
            start = place.inner_end if isinstance(piece, Close) else place.start
            yield self._file.data[
                start : place.inner_start if isinstance(piece, Open) else place.end
            ]

    def _check_language(self) -> list[str]:
        """Note the elements without a target language, and return the notes on another one."""
        name = "trgLang" if self._is_new else "target-language"
        holders = dict.fromkeys(
            self._file.root if self._is_new else each
            for unit, _ in self._texts
            for each in unit.iterancestors()
            if local_name(each) == "file"
        )
        notes: dict[str, None] = {}
        source, target = self._languages.source, self._languages.target
        for holder in holders:
            read = holder.get("srcLang" if self._is_new else "source-language", "").strip()
            if read not in ("", UNKNOWN) and source and base_code(read) != base_code(source):
                notes[f"its source language is {read}, and the model translates from {source}"] = (
                    None
                )

            named = holder.get(name, "").strip()
            if named and target and base_code(named) != base_code(target):
                notes[f"its {name} is {named}, and the model translates into {target}"] = None
            elif not named and target:
                self._unnamed[holder] = {name: target.replace("_", "-")}
            elif not named and self._is_new:
                notes["it has no trgLang, which XLIFF 2 needs beside targets: add it"] = None
        return list(notes)

    def _is_open(self, unit: Element) -> bool:
        """Whether it waits for a translation, and may have one."""
        holders = [unit, *unit.iterancestors()]
        answer = next((each.get("translate") for each in holders if each.get("translate")), "yes")
        if _is_locked(unit):
            return False
        target = _child(unit, "target")
        is_empty = target is None or not "".join(target.itertext()).strip()
        holder = unit if self._is_new else target
        waits = is_empty or (holder is not None and holder.get("state") in _OLD_STATES)
        return answer != "no" and unit.get("approved") != "yes" and waits


def _is_locked(unit: Element) -> bool:
    """Whether a program for translators keeps it from changes: Trados, memoQ, Phrase. Of Trados all
    the sentences of the unit must be locked.
    """
    if any(key.endswith("}locked") and value in _LOCKED for key, value in unit.attrib.items()):
        return True
    sentences = list(unit.iterfind("{http://sdl.com/FileTypes/SdlXliff/1.0}seg-defs/{*}seg"))
    return bool(sentences) and all(each.get("locked") in _LOCKED for each in sentences)


def _child(unit: Element, name: str) -> Element | None:
    return next((each for each in unit if local_name(each) == name), None)


def _source_of(unit: Element) -> Element | None:
    """The text of a unit, with the marks of its sentences where a program divided it."""
    divided = _child(unit, "seg-source")
    is_divided = divided is not None and any(map(_is_sentence, divided.iter("{*}mrk")))
    return divided if is_divided else _child(unit, "source")


def _is_sentence(element: Element) -> bool:
    """Whether an element is around a sentence, which programs for translators show by itself."""
    return local_name(element) == "mrk" and element.get("mtype") == "seg"


_BEGINS = {"bpt": "ept", "bx": "ex", "sc": "ec", "sm": "em"}
_ENDS = {end: begin for begin, end in _BEGINS.items()}
_RANGES = frozenset((*_BEGINS, *_ENDS))
"""Elements that are one end of a range."""
_ANGULAR = re.compile(r"(START|CLOSE)_([A-Z0-9_]*?)(?:_\d+)?")
"""Marks of Angular for the tags around a text. Of ``START_LINK`` and ``START_LINK_1`` the end is
``CLOSE_LINK``."""
_SCRIPTS = frozenset(("superscript", "subscript", "x-sup", "x-sub", "x-html-sup", "x-html-sub"))
_LABELS = frozenset(("link", "x-a", "x-html-a", "x-button"))
_BOXES = re.compile(
    r"link|button|paragraph|heading_level\d|(?:un)?ordered_list|list_item|table.*|tag_(?:div|li|td)"
)
"""Tags of Angular with a text of their own."""


def _range_of(element: Element) -> Range | None:
    """Return the range that an element without text begins or ends: a code, a marker, a tag of
    Angular."""
    name = local_name(element)
    ids = element.get("rid") or element.get("startRef") or element.get("id") or ""
    if name in _BEGINS:
        return name, ids, False
    if name in _ENDS:
        return _ENDS[name], ids, True
    angular = _ANGULAR.fullmatch(element.get("id") or element.get("equiv") or "")
    if name in ("x", "ph") and angular:
        return "angular", angular[2], angular[1] == "CLOSE"
    return None


def _kind_of(element: Element) -> Kind:
    """Return the kind of an element in a sentence, as far as its attributes tell."""
    names = {element.get("ctype", ""), element.get("type", ""), element.get("subType", "")}
    tag = re.sub(r"^START_|_\d+$", "", element.get("id") or "").lower()
    if names & _SCRIPTS or tag.removeprefix("tag_") in (
        *("sup", "sub", "superscript", "subscript"),
    ):
        return "script"
    if names & _LABELS or _BOXES.fullmatch(tag):
        return "label"
    return "format"


_LINE_ENDS = frozenset(("lb", "xlf:lb", "x-br", "x-html-br"))
_LINE_END = re.compile(r"LINE_BREAK(?:_\d+)?|<br\s*/?>|\\n|\n", re.IGNORECASE)
"""The name of a line end in Angular, and what programs write for one."""
_TAG = re.compile(r"</?([A-Za-z][A-Za-z0-9-]*)(?:\s[^<>]*)?/?>")


def _role_of(element: Element, given: Mapping[str, str]) -> Role:
    if local_name(element) not in _PAIRS and _ends_line(element, given):
        return "break"
    is_kept = element.get("mtype") == "protected" or element.get("translate") == "no"
    is_block = _is_sentence(element) or _is_block(element, given)
    if local_name(element) in _PAIRS and not is_kept and is_block:
        return "block"
    return "pair" if local_name(element) in _PAIRS and not is_kept else "alone"


def _is_block(element: Element, given: Mapping[str, str]) -> bool:
    """Whether an element around a text is a paragraph, an item or the like in the original."""
    kinds = (element.get(name, "") for name in ("ctype", "type", "subType"))
    names = {re.sub(r"^(?:x-(?:html-)?|html:)", "", kind) for kind in kinds}
    begins = element.get("dispStart", ""), given.get(element.get("dataRefStart", ""), "")
    tags = filter(None, map(_TAG.fullmatch, begins))
    return bool(names & BLOCKS) or any(tag[1].lower() in BLOCKS for tag in tags)


def _ends_line(element: Element, given: Mapping[str, str]) -> bool:
    """Whether an element without text to translate is the end of a line, or of a paragraph."""
    kinds = {element.get("ctype"), element.get("type"), element.get("subType")}
    shown = (element.get("id", ""), *_shown(element, given))
    if kinds & _LINE_ENDS or any(map(_LINE_END.fullmatch, shown)):
        return True
    tags = filter(None, map(_TAG.fullmatch, shown))
    return any(tag[1].lower() in BLOCKS for tag in tags)


def _placeholder(element: Element, given: Mapping[str, str]) -> str:
    """The placeholder of a program that an element is in the text, such as ``%s``, or the name that
    must not be translated; empty for a tag, or if the file does not say it.
    """
    if local_name(element) in _RANGES:
        return ""
    if local_name(element) in _PAIRS:
        return "".join(element.itertext())
    shown = _shown(element, given)
    return next((each for each in shown if literals_in(each) == [(0, len(each))]), "")


def _shown(element: Element, given: Mapping[str, str]) -> tuple[str, ...]:
    """The texts that an element stands for in the original, as far as the file says them.

    ``given`` are the texts that codes refer to by ``dataRef``.
    """
    return (
        "".join(element.itertext()),
        given.get(element.get("dataRef", ""), ""),
        *(element.get(name, "") for name in ("equiv-text", "disp", "equiv")),
    )


_SPACE = "{http://www.w3.org/XML/1998/namespace}space"


def _without_layout(text: MixedText) -> Segment:
    """The segment of a source, in which layout is a space unless the file says that it counts."""
    holders = [text.element, *text.element.iterancestors()]
    spaces = next((each.get(_SPACE) for each in holders if each.get(_SPACE)), "default")
    return text.segment if spaces == "preserve" else in_one_line(text.segment)
