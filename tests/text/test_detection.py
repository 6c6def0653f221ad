"""Languages are detected in real sentences, and other languages are warned of, a few times."""

import logging
import sys

import pytest

from pellucid.core.errors import ConfigError, MissingExtraError
from pellucid.core.installation import install_command
from pellucid.text.detection import (
    OtherLanguages,
    check_languages,
    detect,
    likely_languages,
    other_language,
    pairs_in_other_languages,
)
from pellucid.text.languages import languages_of

SENTENCES = {
    "ar": "هذا الكتاب الجديد على الطاولة في غرفة المعلم.",
    "cs": "Včera večer jsme šli s dětmi na dlouhou procházku kolem řeky.",
    "de": "Gestern Abend sind wir mit den Kindern am Fluss entlang spaziert.",
    "el": "Χθες το βράδυ πήγαμε με τα παιδιά μια μεγάλη βόλτα στο ποτάμι.",
    "en": "Yesterday evening we took the children for a long walk by the river.",
    "es": "Ayer por la noche dimos un largo paseo con los niños por el río.",
    "fi": "Eilen illalla kävimme lasten kanssa pitkällä kävelyllä joen rannalla.",
    "fr": "Hier soir, nous avons fait une longue promenade avec les enfants.",
    "he": "אתמול בערב יצאנו עם הילדים לטיול ארוך ליד הנהר.",
    "hi": "कल शाम हम बच्चों के साथ नदी के किनारे लंबी सैर पर गए।",
    "it": "Ieri sera abbiamo fatto una lunga passeggiata con i bambini.",
    "ja": "昨日の夜、子供たちと川沿いを長く散歩しました。",
    "ko": "어제 저녁에 우리는 아이들과 함께 강가를 오래 걸었다.",
    "nl": "Gisteravond hebben we met de kinderen een lange wandeling gemaakt.",
    "pl": "Wczoraj wieczorem poszliśmy z dziećmi na długi spacer nad rzekę.",
    "pt": "Ontem à noite demos um longo passeio com as crianças junto ao rio.",
    "ru": "Вчера вечером мы с детьми долго гуляли вдоль реки.",
    "sv": "I går kväll gick vi en lång promenad med barnen längs floden.",
    "tr": "Dün akşam çocuklarla birlikte nehir kenarında uzun bir yürüyüş yaptık.",
    "uk": "Учора ввечері ми з дітьми довго гуляли вздовж річки.",
    "zh": "昨天晚上我们带孩子们沿着河边散步了很久。",
}


@pytest.mark.parametrize("language", SENTENCES)
def test_a_sentence_has_its_language_and_is_other_for_another_model(language: str):
    sentence = SENTENCES[language]
    assert detect(sentence)[0].language == language
    assert other_language(sentence, language) is None
    assert other_language(sentence, "fr" if language == "en" else "en") == (
        language if language != "en" else "en"
    )


@pytest.mark.parametrize("text", ["", "   ", "12 345,67", "🙂🙂🙂", "!?", "ok", "HTTP", "Olaf"])
def test_what_is_too_little_to_tell_is_no_other_language(text: str):
    assert other_language(text, "de") is None


def test_probabilities_fall_and_few_languages_are_likely():
    found = detect(SENTENCES["pt"])
    probabilities = [each.probability for each in found]
    assert probabilities == sorted(probabilities, reverse=True)
    assert sum(probabilities) == pytest.approx(1.0, abs=1e-3)
    likely = likely_languages(SENTENCES["pt"])
    assert likely == found[: len(likely)]
    assert 1 <= len(likely) <= 5
    assert all(each.probability >= 0.05 for each in likely)
    assert likely_languages("12 345") == []


def test_a_language_that_is_written_alike_is_no_warning():
    norwegian = "I går kveld gikk vi en lang tur langs elva sammen med barna våre."
    assert detect(norwegian)[0].language == "no"
    assert other_language(norwegian, "da") is None
    assert other_language(norwegian, "sv") == "no"


def test_the_rest_of_a_long_text_is_not_read():
    text = SENTENCES["de"] * 40 + SENTENCES["ru"] * 10_000
    assert detect(text) == detect(text[:2000])
    assert detect(text)[0].language == "de"


def test_pairs_are_judged_by_both_sides():
    german, english, french = (SENTENCES[code] for code in ("de", "en", "fr"))
    pairs = [(english, german), (german, english), (english, english), (french, german), ("ok", "")]
    assert pairs_in_other_languages(pairs, ("en", "de")) == [False, True, True, True, False]


def test_five_lines_are_shown_and_the_others_counted(caplog: pytest.LogCaptureFixture):
    others = OtherLanguages("en")
    with caplog.at_level(logging.WARNING, logger="pellucid"):
        for number, code in enumerate(["en", *["de"] * 5, "fr", "en", "fr", "es"], start=1):
            others.look(number, SENTENCES[code])
        others.end()
    assert caplog.messages == [
        *(
            f"line {number}: looks German (de), and the model reads English (en)"
            for number in (2, 3, 4, 5, 6)
        ),
        "3 more lines in other languages: fr 2, es 1",
    ]


def test_languages_that_cannot_be_detected_are_refused():
    check_languages(["en", "de", "nb"])
    with pytest.raises(ConfigError, match="no language 'xx' can be detected"):
        check_languages(["en", "xx"])
    with pytest.raises(ConfigError, match="needs the language that the model reads") as caught:
        OtherLanguages("und")
    assert "train.en" in caught.value.hint


def test_without_the_package_it_is_said_or_nothing_is_likely(monkeypatch: pytest.MonkeyPatch):
    from pellucid.text import detection

    detection._identifier.cache_clear()
    monkeypatch.setitem(sys.modules, "py3langid.langid", None)
    with pytest.raises(MissingExtraError, match="detecting languages needs py3langid") as caught:
        detect("a")
    assert caught.value.hint == install_command("detect")
    assert likely_languages(SENTENCES["de"]) == []


@pytest.mark.parametrize(
    ("source", "target", "name", "languages"),
    [
        ("train.en", "train.de", "", ("en", "de")),
        ("train.zh-CN.gz", "train.pt_BR", "", ("zh", "pt")),
        ("train.src", "train.de", "en-de", ("und", "de")),
        ("train.txt", "other.txt", "opus-mt-en-de", ("en", "de")),
        ("train.txt", "other.txt", "my_run-fr-en-2", ("fr", "en")),
        ("train.txt", "other.txt", "sixteen-de", ("und", "und")),
    ],
)
def test_languages_are_inferred_from_files_and_names(source, target, name, languages):
    settings = {"data": {"source": [source], "target": [target]}}
    assert languages_of(settings, name) == languages
