"""XLIFF: line ends, placeholders and layout within a text, and the language of new targets."""

import pytest

from pellucid.documents.formats import ReadOptions, read_document
from pellucid.documents.markup import Counts
from pellucid.documents.translate import translate_document
from tests.documents.stand_in import Swapping, translated

XLIFF_1 = (
    '<xliff version="1.2"><file source-language="en" original="x" datatype="plaintext"><body>'
    '<trans-unit id="1"><source>red</source></trans-unit></body></file></xliff>'
)
XLIFF_2 = (
    '<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en">'
    '<file id="f"><unit id="u">{}<segment><source>{}</source></segment></unit></file></xliff>'
)


@pytest.mark.parametrize(
    "code",
    [
        '<x id="1" ctype="lb"/>',
        '<x id="LINE_BREAK_1" equiv-text="&lt;br /&gt;"/>',
        '<ph id="1">&lt;br&gt;</ph>',
        '<ph id="1" type="fmt" subType="xlf:lb"/>',
        '<ph id="1" equiv="LINE_BREAK" disp="&lt;br/&gt;"/>',
        '<ph id="1" dataRef="d"/>',
    ],
)
def test_a_line_end_of_xliff_ends_a_sentence(code: str):
    """Its words were one with those of the next line, and it came to stand among them."""
    given = (
        '<originalData><data id="d">&lt;br/&gt;</data></originalData>' if "dataRef" in code else ""
    )
    source = XLIFF_2.format(given, f"the red{code}old house")
    assert f"<target>RED THE{code}HOUSE OLD</target>" in translated(source, "a.xlf")


@pytest.mark.parametrize(
    "code",
    [
        '<x id="INTERPOLATION" equiv-text="{{ name }}"/>',
        '<ph id="1">{{ name }}</ph>',
        '<ph id="1" equiv="INTERPOLATION" disp="{{ name }}"/>',
        '<ph id="1" dataRef="d"/>',
    ],
)
def test_a_placeholder_of_xliff_is_read_as_what_it_stands_for(code: str):
    given = '<originalData><data id="d">{{ name }}</data></originalData>'
    translator = Swapping()
    source = XLIFF_2.format(given, f"the {code}, house").encode()
    found = translate_document(source, translator, "a.xlf").decode()
    assert translator.seen[0] == "the {{ name }}, house"
    assert f"THE {code}, HOUSE</target>" in found


@pytest.mark.parametrize("mark", ['translate="no"', 'mtype="protected"'])
def test_a_name_that_stays_is_read_with_its_sentence(mark: str):
    name = f'<mrk id="m" {mark}>Old Cat</mrk>'
    translator = Swapping()
    source = XLIFF_2.format("", f"the {name}, house").encode()
    found = translate_document(source, translator, "a.xlf").decode()
    assert translator.seen[0] == "the Old Cat, house"
    assert f"THE {name}, HOUSE</target>" in found


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_the_sentences_of_a_divided_unit_keep_their_marks(encoding: str):
    """Programs for translators show each by itself, also where no sentence ends."""
    one, two = '<mrk mtype="seg" mid="1">', '<mrk mtype="seg" mid="2">'
    divided = f'<g id="9">{one}Red <g id="5">cat</g>,</mrk> {two}old house</mrk></g>'
    source = (
        f'<?xml version="1.0" encoding="{encoding}"?>\n<xliff version="1.2"><file><trans-unit'
        ' id="u"><source><g id="9">Red <g id="5">cat</g>, old house</g></source>'
        f"<seg-source>{divided}</seg-source>"
        f"<target>{one}</mrk> {two}</mrk></target></trans-unit></file></xliff>"
    )
    translator = Swapping()
    found = translate_document(source.encode(encoding), translator, "a.xlf").decode()
    assert sorted(translator.seen) == ["Red cat,", "old house"]
    assert f"<seg-source>{divided}</seg-source>" in found
    target = f'<g id="9">{one}<g id="5">CAT</g> rED,</mrk> {two}HOUSE OLD</mrk></g>'
    assert f">{target}</target></trans-unit>" in found
    assert found.count("<target") == found.count("target>") == 1


def test_keys_of_texts_get_no_target():
    """Symfony has such sources; their texts are the targets in the file of another language."""
    counts = Counts()
    source = XLIFF_1.replace("red", "user.login.title").encode()
    assert translate_document(source, Swapping(), "a.xlf", counts=counts) == source
    assert counts.notes == ["1 value left that nobody reads, such as user.login.title"]


@pytest.mark.parametrize(
    ("attribute", "inside", "is_kept"),
    [
        (' xmlns:m="http://www.memsource.com/mxlf/2.0" m:locked="true"', "", True),
        (' xmlns:m="http://www.memsource.com/mxlf/2.0" m:locked="false"', "", False),
        (' xmlns:mq="MQXliff" mq:locked="locked"', "", True),
        ("", '<s:seg-defs xmlns:s="{}"><s:seg id="1" locked="true"/></s:seg-defs>', True),
        ("", '<s:seg-defs xmlns:s="{}"><s:seg id="1" conf="Draft"/></s:seg-defs>', False),
    ],
)
def test_what_a_program_of_translators_locks_stays(attribute: str, inside: str, is_kept: bool):
    definitions = inside.format("http://sdl.com/FileTypes/SdlXliff/1.0")
    source = XLIFF_1.replace(' id="1"', f' id="1"{attribute}')
    source = source.replace("</trans-unit>", f"{definitions}</trans-unit>")
    assert (translated(source, "a.xlf") == source) is is_kept


@pytest.mark.parametrize("source", ["E_xit", "/month", "true"])
def test_words_that_are_values_elsewhere_get_a_target(source: str):
    written = XLIFF_1.replace("red", source).encode()
    assert translate_document(written, Swapping(), "a.xlf") != written


def test_layout_of_xliff_cuts_no_sentence_unless_it_counts():
    """Angular writes a paragraph of several lines with their indent."""
    source = XLIFF_2.format("", "\n   the red\n   <pc id='1'>house\n   stands</pc>\n\n   now\n ")
    translator = Swapping()
    found = translate_document(source.encode(), translator, "a.xlf").decode()
    assert translator.seen == ["the red house stands", "now"]
    assert "<target>\n   RED THE <pc id='1'>STANDS HOUSE</pc>\n\n   NOW\n </target>" in found

    kept = source.replace("<source>", '<source xml:space="preserve">')
    translator = Swapping()
    translate_document(kept.encode(), translator, "a.xlf")
    assert translator.seen == ["the red", "house", "stands", "now"]


def in_language(source: str, language: str) -> tuple[str, list[str]]:
    counts = Counts()
    options = ReadOptions(target_language=language)
    found = translate_document(source.encode(), Swapping(), "a.xlf", counts=counts, options=options)
    return found.decode(), counts.notes


def test_xliff_without_a_target_language_gets_that_of_the_model():
    for source, name in ((XLIFF_1, "target-language"), (XLIFF_2.format("", "red"), "trgLang")):
        found, notes = in_language(source, "pt_BR")
        assert found.count(f'{name}="pt-BR"') == 1
        assert notes == []
        assert in_language(found, "pt")[1] == []

        named = source.replace('ang="en"', f'ang="en" {name}="fr"').replace(
            'age="en"', f'age="en" {name}="fr"'
        )
        found, notes = in_language(named, "pt")
        assert f'{name}="fr"' in found
        assert notes == [f"its {name} is fr, and the model translates into pt"]

    # XLIFF 2 needs one beside targets.
    assert "has no trgLang" in in_language(XLIFF_2.format("", "red"), "")[1][0]
    assert in_language(XLIFF_1, "")[1] == []


def test_xliff_of_another_source_language_is_noted():
    options = ReadOptions(source_language="de")
    for source in (XLIFF_1, XLIFF_2.format("", "red")):
        document = read_document(source.encode(), "xliff", "a.xlf", options)
        assert "its source language is en, and the model translates from de" in document.notes
