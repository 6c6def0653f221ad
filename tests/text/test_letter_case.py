"""Upper and lower case of Turkish, of German, and of scripts without case."""

import pytest

from pellucid.text.letter_case import is_in_capitals, lower, upper
from pellucid.text.seen_words import WordCollector


@pytest.mark.parametrize(
    ("language", "capitals", "small"),
    [
        ("tr", "IŞIK VE İYİ GÜNLER", "ışık ve iyi günler"),
        ("az-Latn", "QIZIL İLK", "qızıl ilk"),
        ("tur", "ISI", "ısı"),
        ("de", "IST GUT", "ist gut"),
        ("", "IST GUT", "ist gut"),
    ],
)
def test_the_two_letters_i(language: str, capitals: str, small: str):
    assert lower(capitals, language) == small
    assert upper(small, language) == capitals


def test_lower_case_has_as_many_characters():
    assert lower("İSTANBUL") == lower("İSTANBUL", "tr") == "istanbul"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("TWO DOGS, 3 CATS!", True),
        ("DIE STRAßE IST GROß", True),
        ("GROß", True),
        ("ß", False),
        ("Two", False),
        ("TWO dogs", False),
        ("저는 NATO 에서 일합니다", False),
        ("أنا أعمل في NATO اليوم", False),
        ("今天 NATO 開會", False),
        ("他 NATO", True),
        ("下雨了", False),
        ("12", False),
        ("ПРИВЕТ", True),
    ],
)
def test_capitals_are_most_of_the_letters(text: str, expected: bool):
    assert is_in_capitals(text) is expected


def test_a_word_of_turkish_is_seen_in_either_case():
    collector = WordCollector()
    assert [*collector.passing([("İstanbul'da ışık var", "there is light in Istanbul")])]
    assert collector.found is not None
    assert collector.found.unseen("ISTANBUL'DA IŞIK VAR, istanbul İSTANBUL") == []
    assert collector.found.unseen("İZMİR") == ["İZMİR"]
