"""Sentences as people type them, and the translations as English is written."""

import re
from collections import defaultdict
from pathlib import Path

import pytest

from pellucid.phrasebook import split
from pellucid.phrasebook.corpus import Pair, Splits, generate
from pellucid.phrasebook.lexicon import EVERYDAY, PHRASES
from pellucid.phrasebook.rules import Said
from pellucid.phrasebook.writing import typed, without_accents

TYPED = Path(__file__).with_name("typed.tsv")


@pytest.fixture(scope="module")
def parts() -> Splits:
    return split(20_000, 400, 3, "typed")


def plain(text: str) -> str:
    """What was said, however it was typed."""
    bare = without_accents(text.lower().replace("\u2019", "'"))
    return " ".join(re.findall(r"[\w'-]+", bare))


def written(french: list[str], english: list[str], *draws: float) -> tuple[str, str]:
    """Case, mark, space, apostrophe, accents: 0 draws what is rare, 0.9 and 1 what is usual."""
    numbers = iter(draws)
    return typed(Said(french, english), lambda: next(numbers))


def test_a_statement_is_written_with_capital_and_full_stop():
    said = ["je", "suis", "Léa"], ["i", "am", "Léa"]
    assert written(*said, 0.9, 1, 1, 1, 1) == ("Je suis Léa.", "I am Léa.")


def test_a_statement_is_typed_without_them_too_and_then_english_has_no_stop_either():
    said = ["je", "aime", "Léa"], ["i", "love", "Léa"]
    assert written(*said, 0, 0, 0, 0, 0) == ("j\u2019aime lea", "I love Léa")
    assert written(*said, 0, 1, 0, 1, 1) == ("j'aime léa.", "I love Léa.")


def test_a_question_keeps_its_mark_unless_its_words_ask():
    asked = ["où", "est", "la", "gare", "?"], ["where", "is", "the", "station", "?"]
    assert written(*asked, 0.9, 1, 1, 1, 1) == ("Où est la gare?", "Where is the station?")
    assert written(*asked, 0.9, 1, 0, 1, 1) == ("Où est la gare ?", "Where is the station?")
    assert written(*asked, 0.9, 0, 0, 1, 1) == ("Où est la gare", "Where is the station?")
    intonation = ["tu", "dors", "?"], ["do", "you", "sleep", "?"]
    assert written(*intonation, 0.9, 0, 0, 1, 1) == ("Tu dors ?", "Do you sleep?")


def test_english_has_capitals_where_it_is_written_so():
    english = ["do", "i", "speak", "english", "on", "mondays", "or", "french", "?"]
    assert written(["?"], english, 0.9, 1, 1, 1, 1)[1] == "Do I speak English on Mondays or French?"


def test_english_is_always_written(parts: Splits):
    for part in parts:
        for pair in part:
            assert re.fullmatch(r"[A-Z0-9][\w',’ é-]*[?!.]?", pair.target), pair
            assert not re.search(r"\bi\b|\b(english|french|marie|paris)\b|  ", pair.target), pair


def test_however_a_sentence_is_typed_it_has_one_translation_and_one_part(parts: Splits):
    def source(pair: Pair) -> str:
        """A statement and the question of the same words are two sentences."""
        return f"{plain(pair.source)} {pair.target.endswith('?')}"

    translations: dict[str, set[str]] = defaultdict(set)
    for pair in (pair for part in parts for pair in part):
        translations[source(pair)].add(plain(pair.target))
    assert {said: both for said, both in translations.items() if len(both) > 1} == {}

    for said in (source, lambda pair: plain(pair.target)):
        train, valid, test = ({said(pair) for pair in part} for part in parts)
        assert not train & valid
        assert not train & test
        assert not valid & test


def test_the_famous_sentence_is_held_out_however_it_is_typed(parts: Splits):
    assert parts.test[0] == Pair("Je suis étudiant.", "I am a student.")
    assert "je suis etudiant" not in {plain(pair.source) for pair in parts.train}


def test_what_is_said_as_a_whole_and_every_word_is_trained_on(parts: Splits):
    everything = " ".join(pair.source.lower().replace("\u2019", "'") for pair in parts.train)
    words = set(re.findall(r"[^\W\d_]+", everything))
    for phrases in PHRASES.values():
        for phrase in phrases:
            assert phrase.french.lower() in everything, phrase
    for noun in (noun for nouns in EVERYDAY.nouns.values() for noun in nouns):
        assert noun.french[0].lower() in words, noun
    for verb in EVERYDAY.verbs:
        assert words & {form.lower() for form in verb.present}, verb


def test_the_inputs_that_people_type_first_are_in_their_file():
    rows = [line.split("\t") for line in TYPED.read_text(encoding="utf-8").splitlines()[1:]]
    assert len(rows) == 60 == len({source for source, *_ in rows})
    assert all(len(row) > 1 for row in rows)


def test_hours_end_at_twelve_and_only_the_living_are_well(parts: Splits):
    pairs = [pair for part in parts for pair in part]
    hours = [int(hour) for pair in pairs for hour in re.findall(r"(\d+) o'clock", pair.target)]
    assert set(hours) == set(range(2, 13))

    things = {noun.french[0] for noun in EVERYDAY.nouns["place"] + EVERYDAY.nouns["text"]}
    well = [pair for pair in pairs if re.search(r"\bva (très )?(bien|mal)\b", pair.source)]
    assert len(well) > 20
    assert not things & {word for pair in well for word in pair.source.lower().split()}


def test_no_bus_is_said_in_one_way():
    pairs = [pair for pair in generate(12_000, 1, "typed") if "pas de bus" in pair.source]
    assert pairs
    assert all("no buses" not in pair.target for pair in pairs)
