"""Quotations of ICU, and bars that divide nothing."""

import json

import pytest

from pellucid.documents.placement import Aligned
from pellucid.documents.translate import translate_document
from tests.documents.stand_in import Swapping
from tests.documents.test_untouched_bytes import Capitals

PLURAL = "{n, plural, one {# file} other {# files}}"


def said(text: str, *, is_icu: bool) -> str:
    """The translation of a text; ``is_icu``: in a file that has a plural too."""
    data = json.dumps({"a": PLURAL if is_icu else "x", "b": text}).encode()
    return str(json.loads(translate_document(data, Capitals(), "a.json"))["b"])


@pytest.mark.parametrize("is_icu", [True, False])
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Type '{' to begin a list", "TYPE '{' TO BEGIN A LIST"),
        ("Type '}' to end it", "TYPE '}' TO END IT"),
        ("Show '{braces}' literally, {name}", "SHOW '{braces}' LITERALLY, {name}"),
        ("see '{'{name}'}' here", "SEE '{'{name}'}' HERE"),
        ("'{' it is", "'{' IT IS"),
        ("press '<b>Start</b>' now", "PRESS '<b>START</b>' NOW"),
        ("l'{name} is red", "L'{name} IS RED"),
        ("red, '{' | old", "RED, '{' | OLD"),
    ],
)
def test_a_quotation_of_the_source_stays(text: str, found: str, is_icu: bool):
    assert said(text, is_icu=is_icu) == found


def test_a_quotation_beside_a_plural_is_there_also_if_the_model_drops_it():
    class Dropping(Capitals):
        def one(self, sentence, align):
            return super().one(sentence.replace("'{' ", ""), align)

    data = json.dumps({"a": PLURAL, "b": "Type '{' to begin"}).encode()
    written = json.loads(translate_document(data, Dropping(), "a.json"))["b"]
    assert written == "TYPE '{' TO BEGIN"


def test_a_sign_of_number_in_a_quotation_is_none():
    text = "{n, plural, one {the '#' sign # here} other {old # cats}}"
    found = "{n, plural, one {THE '#' SIGN # HERE} other {OLD # CATS}}"
    assert said(text, is_icu=False) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{name} is red", "l’{name} is red"),
        ("it is '{' red", "l'it is '{' red"),
    ],
)
def test_beside_a_plural_an_apostrophe_of_the_model_begins_no_quotation(text: str, found: str):
    class Article(Swapping):
        def one(self, sentence, align):
            whole = (0, len(sentence))
            return Aligned(f"l'{sentence}", ((whole, (2, 2 + len(sentence)), 1.0),))

    data = json.dumps({"a": PLURAL, "b": text}).encode()
    written = json.loads(translate_document(data, Article(), "a.json"))["b"]
    assert written.replace("l’it", "l'it") == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The |version| of the dog is here.", "THE |version| OF THE DOG IS HERE."),
        ("|release|", "|release|"),
        ("(|a-b|, |x.y|) of the |old|_ dog", "(|a-b|, |x.y|) OF THE |old|_ DOG"),
        ("a dog |x| b | c", "A DOG |x| B | C"),
        # bars between forms
        ("no files|one file|red", "NO FILES|ONE FILE|RED"),
        ("car | cars", "CAR | CARS"),
        ("|one|two|", "|ONE|TWO|"),
        ("a | one | b", "A | ONE | B"),
        # targets are no tags
        (
            "See :ref:`the dog <dogs>` or :doc:`/cats` now.",
            "SEE :ref:`the dog <dogs>` OR :doc:`/cats` NOW.",
        ),
        ("Read `a page <https://a.org>`_ now", "READ `a page <https://a.org>`_ NOW"),
        ("an `old <b>tag</b>` here", "AN `OLD <b>TAG</b>` HERE"),
    ],
)
def test_names_and_roles_of_sphinx_stay(text: str, found: str):
    """Sphinx puts another text in their place."""
    quoted = json.dumps(text)
    source = f'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid {quoted}\n'
    written = translate_document(f'{source}msgstr ""\n'.encode(), Capitals(), "a.po").decode()
    assert written.endswith(f"\nmsgstr {json.dumps(found)}\n")
