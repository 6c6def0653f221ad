"""Long texts are cut into sentences, and nothing of them is lost."""

import pytest
import sentencex
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pellucid.core.errors import ConfigError
from pellucid.text import splitting
from pellucid.text.languages import languages_of
from pellucid.text.sentence_ends import HAVE_ORDINALS
from pellucid.text.splitting import (
    ABBREVIATIONS,
    Sentence,
    add_abbreviations,
    split_sentences,
)


def join_sentences(sentences: list[Sentence], translations: list[str]) -> str:
    """With the white space around the original sentences."""
    pairs = zip(sentences, translations, strict=True)
    return "".join(f"{each.before}{text}{each.after}" for each, text in pairs)


TEXTS = st.text(
    st.sampled_from("aÉß.?!…。 \n\t\r\u2028\u00a0\u200b\u0301“”()\x00🙂MrDr1"), max_size=60
)


@given(TEXTS | st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
@example("D\u00a0.")
@example("Plan B\u202f\u00a0 . And\u3000C\u2003.")
@settings(max_examples=400, deadline=None)
def test_sentences_and_what_is_between_them_are_the_text(text: str):
    sentences = split_sentences(text, "en")
    assert join_sentences(sentences, [each.text for each in sentences]) == text
    for each in sentences:
        assert each.text == each.text.strip()
        assert text[each.start : each.start + len(each.text)] == each.text
        assert not (each.before + each.after).strip()


def test_sentences_end_where_people_end_them():
    text = "Dr. Smith sleeps.  Who? “Me!” he said.\n\nThe end"
    found = [each.text for each in split_sentences(text, "en")]
    assert found == ["Dr. Smith sleeps.", "Who?", "“Me!” he said.", "The end"]


def test_an_abbreviation_ends_no_sentence_and_a_list_of_them_can_be_extended(
    monkeypatch: pytest.MonkeyPatch,
):
    text = "Die Fa. Müller baut.  Der Kfz. Meister der Fa.\nEr geht."
    found = [each.text for each in split_sentences(text, "de")]
    assert found == ["Die Fa. Müller baut.", "Der Kfz.", "Meister der Fa.", "Er geht."]
    monkeypatch.setitem(ABBREVIATIONS, "de", {*ABBREVIATIONS["de"], "Kfz."})
    sentences = split_sentences(text, "de")
    found = [each.text for each in sentences]
    assert found == ["Die Fa. Müller baut.", "Der Kfz. Meister der Fa.", "Er geht."]
    assert join_sentences(sentences, found) == text
    assert len(split_sentences(text, "en")) == 5  # the list is that of German alone


def test_abbreviations_of_every_language_are_words_with_a_full_stop(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setitem(ABBREVIATIONS, "", set())
    add_abbreviations(["Kfz.", "éd."])
    assert len(split_sentences("Der Kfz. Meister. La éd. Paris.", "fr")) == 2
    for word in ("Kfz", "z. B.", "", "."):
        with pytest.raises(ConfigError, match="must be one word that ends with a full stop, got"):
            add_abbreviations([word])


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\u2028", "\n\n", "\r\n \r\n", "\n\n\n"])
def test_a_line_end_ends_a_sentence_and_stays(end: str):
    text = f"A dog runs{end}A cat sleeps{end}"
    found = split_sentences(text, "en")
    assert [each.text for each in found] == ["A dog runs", "A cat sleeps"]
    assert join_sentences(found, ["Un", "Deux"]) == f"Un{end}Deux{end}"


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Red house\tOld cat", ["Red house", "Old cat"]),
        ("Red\t12\tOld", ["Red", "12", "Old"]),
        ("a red\thouse", ["a red\thouse"]),
        ("red\t\tcat", ["red", "cat"]),
    ],
)
def test_a_tab_between_columns_ends_a_sentence_and_one_within_a_sentence_does_not(
    text: str, sentences: list[str]
):
    """The second column was lost without a word."""
    assert [each.text for each in split_sentences(text, "en")] == sentences


@pytest.mark.parametrize("language", ["de", "ja", "und", "", "xx-yy", "\x00"])
def test_an_unknown_language_is_cut_as_well(language: str):
    assert len(split_sentences("Un. Deux! Trois?", language)) >= 2


def test_a_text_without_a_word_is_one_sentence_without_words():
    for text in ("", " \n"):
        [sentence] = split_sentences(text, "en")
        assert (sentence.before + sentence.text + sentence.after, sentence.text) == (text, "")


@pytest.mark.parametrize("blank", ["\u3000", "\xa0", " ", "\xa0 "])
def test_long_runs_of_spaces_take_linear_time(blank: str):
    """5,000 of them, as many as a text on a server may have, took minutes."""
    text = f"Ein Hund{blank * 100_000}läuft{blank * 100_000}."
    assert (
        "".join(each.before + each.text + each.after for each in split_sentences(text, "de"))
        == text
    )


@pytest.mark.parametrize(
    ("language", "text", "count"),
    [
        ("de", "Im 2. Weltkrieg und im 19. Jahrhundert spielte der 1. FC Köln.", 1),
        ("de", "Die 2. Auflage ist da. Sie kostet 20. Wir kaufen sie.", 3),
        ("de", "Er wurde 12. Dann zog er um.", 2),
        ("de", "Das war 1995. Österreich trat bei.", 2),
        ("da", "Den 3. maj og det 19. århundrede.", 1),
        ("da", "Han blev 12. Så rejste han.", 2),
        ("en", "He was 12. Then he left.", 2),
        ("fr", "M. Dupont est là. MM. Durand et Petit aussi.", 2),
        ("nl", "Dhr. Jansen en mevr. De Vries.", 1),
        ("pl", "W XIX w. było tak.", 1),
    ],
)
def test_ordinals_and_titles_end_no_sentence(language: str, text: str, count: int):
    assert len(split_sentences(text, language)) == count


@pytest.mark.parametrize(
    ("name", "languages"),
    [
        ("opus-mt-en-de", ("en", "de")),
        ("en-DE", ("en", "de")),
        ("en_US-de_DE", ("en", "de")),
        ("de-DE-en-US", ("de", "en")),
        ("de_DE_to_en_US", ("de", "en")),
        ("fr_FR-en_US", ("fr", "en")),
        ("en_CA-fr_CA", ("en", "fr")),
        ("pt-br-en", ("pt", "en")),
        ("zh-cn-en", ("zh", "en")),
        ("de-de", ("und", "und")),
        ("model.en.de", ("und", "und")),
    ],
)
def test_a_name_with_locales_names_two_languages(name: str, languages: tuple[str, str]):
    assert languages_of({}, name) == languages


@pytest.mark.parametrize(
    ("file", "language"),
    [
        ("a.pt-BR", "pt"),
        ("a.eng", "en"),
        ("a.ger", "de"),
        ("a.eng_Latn", "en"),
        ("a.cmn_Hans.gz", "zh"),
        ("train.en.txt", "en"),
        ("corpus.en.jsonl", "en"),
        ("en.txt", "und"),
        ("a.txt", "und"),
    ],
)
def test_a_file_names_its_language(file: str, language: str):
    assert languages_of({"data": {"source": file, "target": "b.fr"}}, "") == (language, "fr")


def test_every_language_with_ordinals_can_be_inferred():
    for code in ("cs", "da", "de", "et", "eu", "fi", "hr", "hu", "is", "lv", "mk", "sr", "tr"):
        assert code in HAVE_ORDINALS
        names = {"source": [f"train.{code}"], "target": ["train.en"]}
        assert languages_of({"data": names}, "run")[0] == code


def test_no_word_is_torn_where_a_sentence_is_longer_than_a_window():
    """The window ends between « Mr » and its full stop."""
    long = "a " * (splitting._WINDOW // 2 - 1) + "Mr. Smith went home."
    assert long[: splitting._WINDOW].endswith(" Mr")
    found = split_sentences(f"{long} Then he slept.", "en")
    assert [each.text for each in found] == [long, "Then he slept."]


@pytest.mark.parametrize("words", ["红房子。", "Red House. ", "Das ist z. B. alt. ", "a", "“a b "])
def test_long_lines_are_cut_as_short_ones_and_read_a_window_at_a_time(
    words: str, monkeypatch: pytest.MonkeyPatch
):
    """sentencex takes quadratic time where letters or quotation marks are not ASCII."""
    read: list[int] = []
    segment = sentencex.segment

    def counted(language: str, text: str) -> list[str]:
        read.append(len(text))
        return segment(language, text)

    monkeypatch.setattr(sentencex, "segment", counted)
    line = words * (6000 // len(words))
    pieces = [each.before + each.text + each.after for each in split_sentences(line, "de")]
    assert "".join(pieces) == line
    assert max(read) <= splitting._WINDOW
    assert sum(read) <= 2 * len(line)
    if "“" not in words:
        monkeypatch.setattr(splitting, "_WINDOW", len(line))
        assert [each.text for each in split_sentences(line, "de")] == [p.strip() for p in pieces]


def test_abbreviations_and_blank_lines_by_the_thousand_are_kept():
    text = "Abb. " * 1000 + "x" + "\n" * 1000 + "y"
    found = split_sentences(text, "de")
    assert [(each.text[-6:], len(each.after)) for each in found] == [("Abb. x", 1000), ("y", 0)]


def test_a_mark_that_is_not_seen_is_no_sentence():
    """Word ends a direction behind the last stop of a text."""
    assert [each.text for each in split_sentences("\u202bHe ran.\u202c", "en")] == [
        "\u202bHe ran.\u202c"
    ]
    assert len(split_sentences("He ran.\u200f He slept.\u200b", "en")) == 2
