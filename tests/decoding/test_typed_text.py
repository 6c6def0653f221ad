"""Text in another form of Unicode, with odd spaces or invisible characters, is the same text.

The translation is equal and the alignment points into the text that was given.
"""

import unicodedata

import pytest
from small_bundle import small_bundle

from pellucid.decoding.attention import given_words
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.requests import Request
from pellucid.decoding.translator import Translator
from pellucid.documents.aligned import ModelTranslator
from pellucid.text.glossary import Glossary, Term, holds_phrase

TEXT = "où est la maison de mon père et de ma mère ?"
FORMS = {
    "decomposed": unicodedata.normalize("NFD", TEXT),
    "no-break spaces": TEXT.replace(" ?", "\u00a0?").replace("mon ", "mon\u202f"),
    "tab, thin space and line end": TEXT.replace("est ", "est\t").replace("de ", "de\u2009\n"),
    "soft hyphens": TEXT.replace("maison", "mai\u00adson"),
    "invisible characters": f"\ufeff{TEXT}\u200e".replace("où", "\u200bo\u2060ù"),
    "a word of nothing": TEXT.replace(" la ", " \u00ad la \u200b "),
}


@pytest.fixture(scope="module")
def translator() -> Translator:
    settings = DecodingConfig(beam_size=2, max_length=12, align=True)
    return Translator(small_bundle(), settings)


@pytest.mark.parametrize("form", FORMS)
def test_the_translation_is_that_of_the_usual_form(translator: Translator, form: str):
    expected, found = translator.translate([TEXT, FORMS[form]])
    assert found.text == expected.text
    assert found.token_ids == expected.token_ids
    assert found.score == pytest.approx(expected.score)
    assert found.source == FORMS[form]
    assert translator.score([FORMS[form]], [found.text])[0].score == pytest.approx(
        translator.score([TEXT], [found.text])[0].score
    )


@pytest.mark.parametrize("form", FORMS)
def test_the_words_of_an_alignment_are_those_that_were_given(translator: Translator, form: str):
    expected, found = translator.translate([TEXT, FORMS[form]])
    usual, given = TEXT.split(), FORMS[form].split()
    assert expected.word_alignment
    assert found.word_alignment is not None
    for (ours, target), (theirs, other) in zip(
        expected.word_alignment, found.word_alignment, strict=True
    ):
        assert target == other
        shown = unicodedata.normalize("NFC", given[theirs])
        letters = "".join(each for each in shown if each.isalnum() or each == "?")
        assert letters == usual[ours]


def test_words_are_counted_as_they_were_given():
    assert given_words("a \u00ad b\u00a0c") == [0, 2, 3]
    assert given_words("\u200b") == [0]


@pytest.mark.parametrize("form", FORMS)
def test_a_document_s_marks_find_the_characters_that_were_given(translator: Translator, form: str):
    documents = ModelTranslator(translator)
    expected, found = documents.translate([TEXT, FORMS[form]], align=True)
    assert found.text == expected.text
    assert len(found.links) == len(expected.links) > 0
    for (ours, _, _), (theirs, _, _) in zip(expected.links, found.links, strict=True):
        shown = unicodedata.normalize("NFC", FORMS[form][slice(*theirs)])
        letters = "".join(each for each in shown if each.isalnum() or each == "?")
        assert letters == TEXT[slice(*ours)].strip()


def test_required_and_banned_words_may_be_typed_in_any_form(translator: Translator):
    decomposed = unicodedata.normalize("NFD", "père")
    usual = translator.translate(Request(TEXT, must=("père",)))
    assert translator.translate(Request(TEXT, must=(decomposed,))).text == usual.text
    assert "père" in usual.text

    banned = translator.settings.changed({"banned": ["étudiant"]})
    other = translator.settings.changed({"banned": [unicodedata.normalize("NFD", "étudiant")]})
    assert (
        translator.translate("je suis étudiant", banned).text
        == translator.translate("je suis étudiant", other).text
    )

    prefix = translator.translate(Request(TEXT, prefix=f"\u00a0{decomposed}"))
    assert prefix.text == translator.translate(Request(TEXT, prefix="père")).text


@pytest.mark.parametrize("term", ["père", unicodedata.normalize("NFD", "père")])
def test_a_glossary_s_terms_are_found_in_any_form(term: str):
    glossary = Glossary([Term((term, "mai\u00adson"), ("Vater",))])
    for form in FORMS.values():
        found = glossary.matches(form)
        shown = [unicodedata.normalize("NFC", form[each.start : each.end]) for each in found]
        assert [each.replace("\u00ad", "") for each in shown] == ["maison", "père"]
        marked = glossary.marked(form)
        assert marked.count("⟦Vater⟧") == 2
        assert marked.replace(" ⟦Vater⟧", "") == form
    assert holds_phrase(f"un\u00a0{term}", ["père"])
