"""A line of several sentences is translated sentence by sentence, and one line comes out."""

import re

import pytest
from small_bundle import SENTENCES, small_bundle

from pellucid.core.special import EOS_ID
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.requests import Request
from pellucid.decoding.result import Translation
from pellucid.decoding.sentences import (
    SHARE_KEY,
    SplitLine,
    _words_at,
    knows_single_sentences,
)
from pellucid.decoding.translator import Translator

FIRST, SECOND = f"{SENTENCES[0].capitalize()}.", f"{SENTENCES[7].capitalize()}."
LINE = f"{FIRST} {SECOND}"


def translator(*, split: bool = True, **changes: object) -> Translator:
    settings = DecodingConfig.parse({"beam_size": 3, "max_length": 8, **changes})
    return Translator(small_bundle(), settings, split=split, source_language="en")


def test_each_sentence_is_translated_as_if_it_were_alone():
    small = translator(n_best=2)
    first, second = small.translate([FIRST, SECOND])
    found = small.translate(LINE)
    assert found.text == f"{first.text} {second.text}"
    assert found.source == LINE
    assert found.sentences == (first, second)
    assert found.score == first.score + second.score
    assert found.tokens == (*first.tokens, "[EOS]", *second.tokens)
    assert found.token_ids == (*first.token_ids, EOS_ID, *second.token_ids)
    assert found.source_tokens == (*first.source_tokens, "[EOS]", *second.source_tokens)
    assert found.token_log_probs == first.token_log_probs + second.token_log_probs
    assert len(found.token_log_probs) == len(found.tokens) + 1
    assert len(found.n_best) == 2
    assert found.n_best[0].text == found.text
    assert found.n_best[1].score == first.n_best[1].score + second.n_best[1].score


def test_alignments_are_those_of_the_sentences_moved_to_their_place():
    small = translator(align=True)
    first, second = small.translate([FIRST, SECOND])
    found = small.translate(LINE)
    assert found.alignment is not None
    assert first.alignment is not None
    assert second.alignment is not None
    sources, targets = len(first.source_tokens) + 1, len(first.tokens) + 1
    moved = [(source + sources, target + targets) for source, target in second.alignment]
    assert found.alignment == (*first.alignment, *moved)
    assert found.word_alignment is not None
    words = LINE.split(), found.text.split()
    assert {source for source, _ in found.word_alignment} <= set(range(len(words[0])))
    assert {target for _, target in found.word_alignment} <= set(range(len(words[1])))
    assert max(source for source, _ in found.word_alignment) >= len(FIRST.split())


def test_it_is_for_whoever_asks_to_choose():
    """And what is asked of a whole line keeps it whole."""
    whole = translator(split=False).translate(LINE)
    assert whole.sentences == ()
    assert translator().translate(LINE, split=False) == whole
    assert translator(split=False).translate(LINE, split=True) == translator().translate(LINE)
    assert translator().translate(FIRST) == translator(split=False).translate(FIRST)
    for request in (Request(LINE, prefix="le"), Request(LINE, must=("le",))):
        assert SplitLine.of(request, "en").requests == [request]


def test_every_line_gives_one_line_and_warnings_name_it(caplog: pytest.LogCaptureFixture):
    small = translator(max_source_tokens=3, stream_lines=2)
    lines = [SENTENCES[0], LINE, "", f"{LINE}\n{FIRST}", SECOND]
    with caplog.at_level("WARNING", logger="pellucid"):
        found = list(small.translate(iter(lines)))
    assert [each.source for each in found] == lines
    assert [len(each.sentences) for each in found] == [0, 2, 0, 3, 0]
    assert found[1].truncated
    cut = [each for each in caplog.messages if "are read" in each]
    named = [int(re.findall(r"\d+", message)[0]) for message in cut]
    assert named == sorted(named)
    assert set(named) <= {1, 2, 4, 5}
    assert named.count(4) > 1


def written(text: str) -> Translation:
    return Translation(text, 0.0, (), (), (), "")


@pytest.mark.parametrize(
    ("source", "translations", "line"),
    [
        ("One. Two.", ("Eins.", "Zwei."), "Eins. Zwei."),
        ("One.  Two.", ("Eins.", "Zwei."), "Eins.  Zwei."),
        ("One.\nTwo.", ("Eins.", "Zwei."), "Eins.\nZwei."),
        ("One. Two.", ("一。", "二。"), "一。二。"),
        ("一。二。", ("One.", "Two."), "One. Two."),
        ("One. Two.", ("Eins.", "二。"), "Eins.二。"),
        ("One. Two.", ("안녕하세요.", "반갑습니다."), "안녕하세요. 반갑습니다."),
        ("One. Two.", ("一 a", "b"), "一 a b"),
        ("One. Two.", ("一 a", "二。"), "一 a二。"),
        ("One. Two.", ("a 一", "b"), "a 一b"),
        ("One. Two.", ("a", "b 二"), "a b 二"),
        ("One. 😀 Two.", ("Eins.", "😀 Zwei."), "Eins. 😀 Zwei."),
        ("running!A dog.", ("rennt!", "Ein Hund."), "rennt!Ein Hund."),
        ("One cat.The dog is here.", ("Eins.", "Zwei."), "Eins.Zwei."),
        ("One cat.The dog is here.", ("一。", "二。"), "一。二。"),
        ("一!二!", ("One!", "Two!"), "One! Two!"),
        ("一。　二。", ("One.", "Two."), "One. Two."),
        ("一。　二。", ("三。", "四。"), "三。　四。"),
        ("One. Two.", ("Eins.", ""), "Eins."),
        ("One. Two.", ("", "Zwei."), "Zwei."),
    ],
)
def test_the_spacing_suits_the_translation(source: str, translations: tuple[str, str], line: str):
    split = SplitLine.of(Request(source), "zh" if source[0] == "一" else "en")
    assert split.joined([written(text) for text in translations]).text == line


@pytest.mark.parametrize(
    ("language", "source"),
    [
        ("hi", "वह गया।वह आया।"),
        ("am", "እሱ መጣ።እሱ ሄደ።"),
        ("km", "ខ្ញុំទៅ។គាត់មក។"),
        ("my", "သူလာသည်။သူသွားသည်။"),
        ("th", "เขาไป.เขามาเร็ว"),
    ],
)
def test_a_stop_that_needs_no_space_gets_one_in_a_language_with_spaces(language: str, source: str):
    split = SplitLine.of(Request(source), language)
    assert split.joined([written("He went."), written("He came.")]).text == "He went. He came."


def test_old_and_imported_bundles_are_taken_to_know_single_sentences():
    assert knows_single_sentences({})
    assert knows_single_sentences({SHARE_KEY: 0.08})
    assert not knows_single_sentences({SHARE_KEY: 0.4})
    assert knows_single_sentences({SHARE_KEY: "many"})


@pytest.mark.parametrize("split", [True, False])
def test_other_settings_keep_whether_lines_are_split(split):
    small = translator(split=split)
    again = small.with_settings(small.settings.changed({"beam_size": 1}))
    assert bool(again.translate(LINE).sentences) == split


def test_a_code_of_the_target_language_is_in_front_of_every_sentence():
    line = SplitLine.of(Request("One. Two.", code=">>fra<<"), "en")
    assert [each.read for each in line.requests] == [">>fra<< One.", ">>fra<< Two."]
    plain = SplitLine.of(Request(">>fra<< One. Two."), "en")
    assert [each.source for each in plain.requests] == [">>fra<< One.", "Two."]


def test_a_copied_sentence_has_a_probability_for_its_stop():
    found = translator().translate(f"{FIRST} ... {SECOND}")
    assert len(found.sentences) == 3
    assert len(found.token_log_probs) == len(found.tokens) + 1


def test_words_are_numbered_in_one_pass():
    assert _words_at(" a bc  d", [0, 1, 3, 4, 7, 8]) == [0, 0, 1, 1, 2, 3]
