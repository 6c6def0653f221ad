"""The language and the direction of the text in Word and PowerPoint files.

Names of the language of the source, by which Office chooses a spelling checker, become those of the
language of the translation. Where one of the two is written from right to left and the other is
not, translated paragraphs, their runs and the tables around them turn.
"""

from collections.abc import Iterable

from pellucid.core.texts import words_in
from pellucid.documents.containers import Element, local_name, new_element
from pellucid.documents.document_language import names_source, script_group, turns_right_to_left
from pellucid.documents.office_paragraphs import PARAGRAPHS
from pellucid.documents.segments import Languages
from pellucid.text.languages import with_country

_ATTRIBUTES = {"western": "val", "asian": "eastAsia", "complex": "bidi"}
"""By group of scripts: the attribute of Word that names the language of such text."""

# The properties that the schemas of Word have behind one that is added: Word refuses a file with
# another order. ISO/IEC 29500-1, 17.3.1.26, 17.3.2.28 and 17.4.59.
_BEHIND = {
    "bidi": words_in(
        "adjustRightInd snapToGrid spacing ind contextualSpacing mirrorIndents suppressOverlap"
        " jc textDirection textAlignment textboxTightWrap outlineLvl divId cnfStyle rPr sectPr"
        " pPrChange"
    ),
    "rtl": words_in("cs em lang eastAsianLayout specVanish oMath rPrChange"),
    "bidiVisual": words_in(
        "tblStyleRowBandSize tblStyleColBandSize tblW jc tblCellSpacing tblInd tblBorders shd"
        " tblLayout tblCellMar tblLook tblCaption tblDescription tblPrChange"
    ),
}
_COMPLEX = {"b": "bCs", "i": "iCs", "sz": "szCs"}
"""Bold, italics and the size of letters, and what says the same of text from right to left."""
_LEVELS = frozenset(("defPPr", *(f"lvl{level}pPr" for level in range(1, 10))))
"""Properties that the paragraphs of slides inherit."""


class OfficeLanguage:
    """Changes the parts of a file that say the language of its text and where a line begins."""

    def __init__(self, languages: Languages) -> None:
        self._languages = languages
        self._turns = turns_right_to_left(languages)
        self._name = with_country(languages.target)
        self._attribute = _ATTRIBUTES[script_group(languages.target)]

    def rename(self, root: Element) -> bool:
        """Let the names of the source's language in a part name that of the translation. Return
        whether there were any."""
        renamed = False
        for element in root.iter():
            if local_name(element) == "lang":
                namespace = element.tag.removesuffix("lang")
                names = [element.get(f"{namespace}{each}") for each in _ATTRIBUTES.values()]
                if any(names_source(each, self._languages) for each in names):
                    element.set(f"{namespace}{self._attribute}", self._name)
                    renamed = True
            elif names_source(element.get("lang"), self._languages):  # of a run in a drawing
                element.set("lang", self._name)
                renamed = True
        return renamed

    def turn_texts(self, paragraphs: Iterable[Element]) -> None:
        """Turn these paragraphs, and the tables that they stand in, if the translation is read in
        the other direction."""
        if self._turns is None:
            return
        tables = {}
        for paragraph in paragraphs:
            namespace = PARAGRAPHS[paragraph.tag].namespace
            if PARAGRAPHS[paragraph.tag].marks_spaces:
                self._turn_in_word(paragraph, namespace)
            else:
                self._turn_properties(_first_child(paragraph, f"{namespace}pPr"))
            for table in paragraph.iterancestors(f"{namespace}tbl"):
                tables[table] = namespace
        for table, namespace in tables.items():
            properties = _first_child(table, f"{namespace}tblPr")
            if PARAGRAPHS[f"{namespace}p"].marks_spaces:
                _switch(properties, namespace, "bidiVisual", on=self._turns)
            else:
                properties.set("rtl", str(int(self._turns)))

    def turn_levels(self, root: Element) -> bool:
        """Turn the properties that the paragraphs of slides inherit. Return whether there were
        any."""
        found = False
        if self._turns is not None:
            for element in root.iter():
                if local_name(element) in _LEVELS:
                    self._turn_properties(element)
                    found = True
        return found

    def _turn_in_word(self, paragraph: Element, namespace: str) -> None:
        assert self._turns is not None
        properties = _first_child(paragraph, f"{namespace}pPr")
        _switch(properties, namespace, "bidi", on=self._turns)
        for run in paragraph.iter(f"{namespace}r"):
            holder = next(run.iterancestors(paragraph.tag))
            if holder is not paragraph or run.find(f"{namespace}t") is None:
                continue  # of a text box in the paragraph, or no text
            properties = _first_child(run, f"{namespace}rPr")
            _switch(properties, namespace, "rtl", on=self._turns)
            _copy_formats(properties, namespace, to_complex=self._turns)

    def _turn_properties(self, properties: Element) -> None:
        """Turn a paragraph of a drawing; what is set flush left is set flush right."""
        properties.set("rtl", str(int(bool(self._turns))))
        old, new = ("l", "r") if self._turns else ("r", "l")
        if properties.get("algn") == old:
            properties.set("algn", new)


def _first_child(parent: Element, tag: str) -> Element:
    """The child with this tag, or a new one in the first place."""
    child = parent.find(tag)
    if child is None:
        child = new_element(parent, tag)
        parent.insert(0, child)
    return child


def _switch(properties: Element, namespace: str, name: str, *, on: bool) -> None:
    """Set a property of Word that is on or off."""
    found = properties.find(f"{namespace}{name}")
    if found is None:
        found = new_element(properties, f"{namespace}{name}")
        behind = [each for each in properties if local_name(each) in _BEHIND[name]]
        if behind:
            behind[0].addprevious(found)
    key = f"{namespace}val"
    if on:
        found.attrib.pop(key, None)
    else:
        found.set(key, "0")


def _copy_formats(properties: Element, namespace: str, *, to_complex: bool) -> None:
    """Let a run look as before: text from right to left has properties of its own for that."""
    for simple, of_complex in _COMPLEX.items():
        old, new = (simple, of_complex) if to_complex else (of_complex, simple)
        source = properties.find(f"{namespace}{old}")
        if source is None or properties.find(f"{namespace}{new}") is not None:
            continue
        added = new_element(properties, f"{namespace}{new}")
        added.attrib.update(source.attrib)
        # each simple one stands before the other
        if to_complex:
            source.addnext(added)
        else:
            source.addprevious(added)
