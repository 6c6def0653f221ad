"""Emoji come back at their place, capitals are read as lower case, symbols are copied."""

import functools
import sys
import unicodedata

import pytest
from emoji_places import EMOJI_PLACES, with_emoji
from small_bundle import small_bundle

from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.odd_lines import OddLine, emoji_of, without_emoji
from pellucid.decoding.requests import Request
from pellucid.decoding.result import Translation
from pellucid.decoding.translator import Translator
from pellucid.documents.aligned import ModelTranslator
from pellucid.phrasebook import generate
from pellucid.text.config import TokenizerConfig
from pellucid.text.edits import moved
from pellucid.text.noise import EMOJI
from pellucid.text.seen_words import SeenWords
from pellucid.text.tokenizers.interface import Tokenizer
from pellucid.text.tokenizers.tokenizer import train_tokenizer

RECASE = DecodingConfig(recase=True)


def restored(source: str, translation: str, settings: DecodingConfig = RECASE) -> tuple[str, str]:
    """What would be searched, and the translation made of ``translation``."""
    line = OddLine.of(Request(source), settings)
    made = Translation(translation, -1.0, (), (), (), line.plain.source)
    return line.plain.source, line.restored(made).text


@pytest.mark.parametrize(
    ("source", "plain", "text"),
    [
        ("A man walks. 😀", "A man walks.", "Ein Mann geht. 😀"),
        ("A man walks 😀.", "A man walks.", "Ein Mann geht 😀."),
        ("😀 A man walks.", "A man walks.", "😀 Ein Mann geht."),
        ("A man walks.😀😃", "A man walks.", "Ein Mann geht.😀😃"),
        ("A man 👍🏽 walks.", "A man walks.", "Ein Mann 👍🏽 geht."),
        ("🇩🇪 A man walks. 👨‍👩‍👧", "A man walks.", "🇩🇪 Ein Mann geht. 👨‍👩‍👧"),
        ("A man😀 walks.", "A man walks.", "Ein Mann😀 geht."),
        # within the source, so never behind the last word
        ("A man walks very far in 😀 town", "A man walks very far in town", "Ein Mann 😀 geht."),
    ],
)
def test_emoji_stand_where_they_stood(source, plain, text):
    assert restored(source, "Ein Mann geht.") == (plain, text)


def test_an_emoji_before_the_final_mark_parts_no_vowel_sign_from_its_word():
    assert restored("A man 😀.", "यह पानी।") == ("A man.", "यह पानी 😀।")


def test_text_without_spaces_needs_none():
    assert restored("你好😀世界", "こんにちは") == ("你好世界", "こん😀にちは")


@pytest.mark.parametrize(("source", "translation", "text"), EMOJI_PLACES)
def test_an_emoji_parts_no_word_number_or_bracket(source: str, translation: str, text: str):
    assert with_emoji(source, translation) == text


def test_a_line_of_hundreds_of_emoji_takes_no_more_for_each():
    """Counted in calls of functions, those of Python's own included."""

    def calls(count: int) -> int:
        seen = 0

        def look(_frame: object, event: str, _argument: object) -> None:
            nonlocal seen
            seen += event in ("call", "c_call")

        before = sys.getprofile()
        sys.setprofile(look)
        try:
            with_emoji("a 😀. " * count, "好. " * count)
        finally:
            sys.setprofile(before)
        return seen

    assert calls(800) < 5 * calls(200)


def test_capitals_whose_accents_are_apart_are_read_as_those_of_one_character():
    words = train_tokenizer(["l'école fermée est là"], TokenizerConfig(kind="bpe"))
    source = unicodedata.normalize("NFD", "L'ÉCOLE EST FERMÉE")
    line = OddLine.of(Request(source), DecodingConfig(), words)
    assert line.plain.source == source.lower()


def test_what_case_lengthens_does_not_move_what_follows():
    """İ has two characters in lower case, ß in upper case."""
    source = "İSTANBUL İÇİN 😀 HABER"
    line = OddLine.of(Request(source), RECASE)
    assert line.plain.source == "istanbul için haber"
    at = moved(line.plain.source.index("haber"), line.source_offsets())
    assert source[at:] == "HABER"

    target = "straße des haber"
    upper = restored(source, target)[1]
    assert upper == "STRASSE DES 😀 HABER"
    assert upper[moved(target.index("haber"), line.target_offsets(target)) :] == "HABER"
    assert upper[moved(target.index("des"), line.target_offsets(target)) :] == "DES 😀 HABER"


def test_an_empty_translation_still_has_the_emoji():
    assert restored("hello 😀", "")[1] == "😀"


@pytest.mark.parametrize(
    ("source", "plain", "text"),
    [
        ("TWO DOGS, 3 CATS.", "two dogs, 3 cats.", "ZWEI HUNDE, STRASSE."),
        ("Two Dogs Play With a Cat", "two dogs play with a cat", "Zwei Hunde, Straße."),
        ("UNESCO", "UNESCO", "Zwei Hunde, Straße."),
        ("Ein Hund im Wasser", "Ein Hund im Wasser", "Zwei Hunde, Straße."),
        ("New York City", "New York City", "Zwei Hunde, Straße."),
        # a word of four letters in lower case: not a title
        ("Two Dogs Play With The cats", "Two Dogs Play With The cats", "Zwei Hunde, Straße."),
        ("TWO DOGS 😀", "two dogs", "ZWEI HUNDE, STRASSE. 😀"),
        # what is no word keeps its case
        ("TWO DOGS XJ900-B", "two dogs XJ900-B", "ZWEI HUNDE, STRASSE."),
        ("TWO SN-4711-ABX, 5TH", "two SN-4711-ABX, 5th", "ZWEI HUNDE, STRASSE."),
        ("CO2-GASES AND CC(=O)O", "CO2-gases and CC(=O)O", "ZWEI HUNDE, STRASSE."),
        ("Salt Is NaCl And CaCO3", "salt is NaCl and CaCO3", "Zwei Hunde, Straße."),
        ("TWO {dogName} DOGS", "two {dogName} dogs", "ZWEI HUNDE, STRASSE."),
        ("TWO DOGS, SEE https://a.org/x", "two dogs, see https://a.org/x", "ZWEI HUNDE, STRASSE."),
        ("TWO <b>DOGS</b> &amp; CATS", "two <b>dogs</b> &amp; cats", "ZWEI HUNDE, STRASSE."),
        ("TWO {DOGS} in it", "TWO {DOGS} in it", "Zwei Hunde, Straße."),
        ("Write To Tom@Example.Org Now", "write to Tom@Example.Org now", "Zwei Hunde, Straße."),
        ("下雨了。", "下雨了。", "Zwei Hunde, Straße."),
    ],
)
def test_capitals_and_titles_are_read_in_lower_case(source, plain, text):
    assert restored(source, "Zwei Hunde, Straße.") == (plain, text)


def test_codes_with_small_letters_stay_in_a_translation_in_capitals():
    """The m of a unit stays behind a number only."""
    source = "TWO %1$s OF {nr}: NaCl, 5 km, 3 m AT https://a.org"
    target = "zwei %1$s {nr} m NaCl: 5\u00a0km, 3 m in https://a.org"
    assert restored(source, target) == (
        "two %1$s of {nr}: NaCl, 5 km, 3 m at https://a.org",
        "ZWEI %1$s {nr} M NaCl: 5\u00a0km, 3 m IN https://a.org",
    )
    line = OddLine.of(Request(source), RECASE)
    assert line.plain_target("ZWEI {nr}, 5 km, M") == "zwei {nr}, 5 km, m"


@functools.cache
def phrases() -> Tokenizer:
    texts = [pair.source for pair in generate(600, seed=1)]
    return train_tokenizer(texts, TokenizerConfig(kind="bpe", vocabulary_size=500))


@pytest.mark.parametrize(
    ("source", "plain", "text"),
    [
        ("CHAT", "chat", "A CAT"),
        ("CHAT !", "chat !", "A CAT"),
        ("je vois un CHAT noir", "je vois un chat noir", "a cat"),
        ("J'AI", "J'ai", "A CAT"),
        # no word of the training text: perhaps an abbreviation
        ("UNESCO", "UNESCO", "a cat"),
        ("la UNESCO dort", "la UNESCO dort", "a cat"),
        ("A", "A", "a cat"),
        ("Chat", "Chat", "a cat"),
    ],
)
def test_a_word_in_capitals_is_read_as_the_model_knows_it(source: str, plain: str, text: str):
    seen = SeenWords(frozenset({"chat", "je", "vois", "un", "noir", "ai", "la", "dort"}))
    line = OddLine.of(Request(source), RECASE, phrases(), seen)
    made = Translation("a cat", -1.0, (), (), (), line.plain.source)
    assert (line.plain.source, line.restored(made).text) == (plain, text)
    assert OddLine.of(Request(source), RECASE).plain.source == source, "without a tokenizer"


@pytest.mark.parametrize(
    ("source", "plain", "text"),
    [
        ("JE VOIS UN CHAT NOIR.", "je vois un chat noir.", "A CAT"),
        ("Je Vois Un Chat Noir", "je vois un chat noir", "a cat"),
        ("JE VOIS LA UNESCO", "je vois la UNESCO", "A CAT"),
        ("un CHAT", "un chat", "a cat"),
        ("un chat", "un chat", "a cat"),
        ("UN CHAT A4", "un chat A4", "A CAT"),
        ("un CHAT3", "un CHAT3", "a cat"),
    ],
)
def test_a_model_without_lower_cased_copies_reads_each_word_as_it_knows_it(
    source: str, plain: str, text: str
):
    seen = SeenWords(frozenset({"chat", "je", "vois", "un", "noir", "la"}))
    line = OddLine.of(Request(source), DecodingConfig(), phrases(), seen)
    made = Translation("a cat", -1.0, (), (), (), line.plain.source)
    assert (line.plain.source, line.restored(made).text) == (plain, text)
    off = OddLine.of(Request(source), DecodingConfig(recase=False), phrases(), seen)
    assert off.plain.source == source


def test_a_word_in_capitals_may_be_a_name_to_a_model_of_much_text():
    """Whose words are not kept; a whole line in capitals is no name."""
    lines = ("un CHAT", "JE VOIS UN CHAT")
    read = [OddLine.of(Request(each), DecodingConfig(), phrases()).plain.source for each in lines]
    assert read == ["un CHAT", "je vois un chat"]


@functools.cache
def german() -> Tokenizer:
    texts = ["Hilfe, ich liebe die Straße sehr.", "Das ist sehr nah, ich heiße Tom."] * 20
    return train_tokenizer(texts, TokenizerConfig(kind="bpe", vocabulary_size=340))


@pytest.mark.parametrize(
    ("source", "plain", "text"),
    [
        ("HILFE!", "Hilfe!", "A CAT"),
        ("Ich LIEBE dich.", "Ich liebe dich.", "a cat"),
        ("Das ist SEHR nah.", "Das ist sehr nah.", "a cat"),
        # too short, or in several pieces in any case: perhaps an abbreviation
        ("Das IST es.", "Das IST es.", "a cat"),
        ("IST?", "ist?", "A CAT"),
        ("ES", "ES", "a cat"),
        ("die UNESCO", "die UNESCO", "a cat"),
        ("die WELTSTRASSE", "die weltstraße", "a cat"),
        ("DIE STRASSE IST NAH", "die Straße ist nah", "A CAT"),
        ("DIE STRAßE IST NAH", "die Straße ist nah", "A CAT"),
        ("ICH HEISSE TOM", "ich heiße Tom", "A CAT"),
        ("저는 HILFE 에서", "저는 Hilfe 에서", "a cat"),
    ],
)
def test_capitals_where_the_words_of_the_training_text_are_not_known(
    source: str, plain: str, text: str
):
    line = OddLine.of(Request(source), DecodingConfig(), german())
    made = Translation("a cat", -1.0, (), (), (), line.plain.source)
    assert (line.plain.source, line.restored(made).text) == (plain, text)


@functools.cache
def of_sentences() -> Tokenizer:
    texts = ["Das ist das Haus.", "Und das ist nah, und das ist gut."] * 20
    return train_tokenizer(texts, TokenizerConfig(kind="bpe", vocabulary_size=340))


@pytest.mark.parametrize(
    ("source", "plain"),
    [
        ("DAS IST DAS HAUS.", "Das ist das Haus."),
        ("Das Ist Das Haus", "Das ist das Haus"),
        ('"DAS IST GUT."', '"Das ist gut."'),
        ("UND?", "Und?"),
        ("Ist DAS gut?", "Ist DAS gut?"),
        ("2. DAS IST GUT", "2. das ist gut"),
        # its capital has more pieces
        ("NAH IST DAS HAUS", "nah ist das Haus"),
    ],
)
def test_the_first_word_of_a_line_in_capitals_keeps_its_own(source: str, plain: str):
    """Sentences of a training text begin with a capital."""
    line = OddLine.of(Request(source), DecodingConfig(copy_symbols=False), of_sentences())
    assert line.plain.source == plain


def test_what_stands_for_two_letters_does_not_move_what_follows():
    source = "DIE STRASSE 😀 IST… NAH"
    line = OddLine.of(Request(source), DecodingConfig(), german())
    assert line.plain.source == "die Straße ist... nah"
    for word, original in (("ist", "IST"), ("nah", "NAH")):
        at = moved(line.plain.source.index(word), line.source_offsets())
        assert source[at:].startswith(original)


def test_capitals_of_turkish():
    languages = ("tr", "tr")
    line = OddLine.of(Request("IŞIK VE ISI"), RECASE, languages=languages)
    assert line.plain.source == "ışık ve ısı"
    made = Translation("iyi günler", -1.0, (), (), (), line.plain.source)
    assert line.restored(made).text == "İYİ GÜNLER"
    assert line.plain_target("İYİ") == "iyi"


def test_signs_that_the_vocabulary_lacks_are_read_as_others_also_with_a_prefix():
    for prefix in ("", "ein"):
        line = OddLine.of(Request("“Tom’s”", prefix=prefix), DecodingConfig(), german())
        assert line.plain.source == '"Tom\'s"'
        made = Translation("„Toms“", -1.0, (), (), (), line.plain.source)
        restored = line.restored(made)
        assert (restored.text, restored.source) == ("„Toms“", "“Tom’s”")


def test_what_is_banned_is_neither_copied_nor_written_in_capitals():
    banned = DecodingConfig(banned=("...", "🙂", "MANN"), recase=True)
    for source in ("...", "🙂", "a 🙂"):
        assert OddLine.of(Request(source), banned).plain.source == source
    assert OddLine.of(Request("🙂!"), DecodingConfig(banned=("x",))).is_copied

    line = OddLine.of(Request("A MAN SLEEPS"), banned)
    for text, wanted in (("Ein Mann", "Ein Mann"), ("Ein Kind", "EIN KIND")):
        made = Translation(text, -1.0, (), (), (), line.plain.source)
        assert line.restored(made).text == wanted


def test_ss_is_no_sharp_s_in_a_language_without_it():
    for language, plain in (("de", "straße"), ("en", "strasse"), ("", "straße")):
        languages = (language, "fr")
        line = OddLine.of(Request("ICH STRASSE"), RECASE, german(), languages=languages)
        assert line.plain.source.lower() == f"ich {plain}"


@pytest.mark.parametrize(
    "source",
    [
        "二○○八年",
        "正解は○です",
        "売上は▲5%です",
        "Das Dreieck △ABC",
        "25◦C",
        "a ● b",
        "约翰•史密斯",
        "-5 men",
        "(see) a man",
        "#man is here",
        "#1 of all",
        "one - two",
        "2.) A man",
        "at http://localhost",
        "C:\\x:(y)",
        "&quot;a&quot;) b",
        "children <3 years of age",
        "<3 mm",
    ],
)
def test_a_sign_within_a_text_is_no_bullet(source: str):
    assert restored(source, "x")[0] == source


def test_a_run_of_spaces_is_searched_for_faces_in_linear_time():
    source = "A man" + " " * 100_000 + ":-)"
    assert restored(source, "Ein Mann")[0] == "A man"


@pytest.mark.parametrize("bullet", ["•", "‣", "▪", "●", "■", "○", "►", "\uf0b7", "◦"])
def test_a_bullet_stands_where_it_stood(bullet: str):
    assert restored(f"{bullet} A man", "Ein Mann") == ("A man", f"{bullet} Ein Mann")


def test_an_abbreviation_that_the_model_knows_stays_in_capitals():
    words = train_tokenizer(["le CHU est ici", "le chu dort"], TokenizerConfig(kind="word"))
    read = [
        OddLine.of(Request(text), RECASE, words).plain.source for text in ("CHU", "le ICI", "EST")
    ]
    assert read == ["CHU", "le ici", "est"]


def test_without_the_settings_and_with_a_prefix_nothing_is_changed():
    off = DecodingConfig(copy_symbols=False)
    for request in (Request("TWO DOGS 😀"), Request("...")):
        assert OddLine.of(request, off).plain is request
    prefixed = Request("TWO DOGS 😀", prefix="zwei")
    assert OddLine.of(prefixed, RECASE).plain is prefixed
    usual = Request("Two dogs are in the snow, No. 9.")
    assert OddLine.of(usual, RECASE).plain is usual


def test_a_line_in_capitals_is_read_in_lower_case_with_required_words_too():
    """Which its translation has as they are given, so it is not written in capitals."""
    line = OddLine.of(Request("TWO DOGS 😀", must=("Hund",)), RECASE)
    assert line.plain == Request("two dogs", must=("Hund",))
    assert not line.is_upper


@pytest.fixture(scope="module")
def translator() -> Translator:
    return Translator(small_bundle(), DecodingConfig(beam_size=2, n_best=2, max_length=6))


@pytest.mark.parametrize("source", ["...", " -- ?! ", "😀", "→ 👍🏽 ←"])
def test_a_line_without_a_letter_or_a_digit_is_copied(translator, source):
    found = translator.translate(source)
    assert (found.text, found.source, found.tokens) == (source.strip(), source, ())
    assert [each.text for each in found.n_best] == [source.strip()]


def test_no_emoji_of_a_thousand_is_lost_and_the_words_are_those_without(translator):
    plain = translator.translate("il pleut")
    lines = [f"il {EMOJI[number % len(EMOJI)]} pleut" for number in range(1000)]
    for line, found in zip(lines, translator.translate(lines), strict=True):
        assert emoji_of(found.text) == emoji_of(line)
        assert without_emoji(found.text).split() == plain.text.split()
        assert (found.tokens, found.source) == (plain.tokens, line)
        assert len(found.n_best) == 2


def test_words_are_aligned_by_their_numbers_among_emoji():
    small = Translator(small_bundle(), DecodingConfig(beam_size=2, max_length=6, align=True))
    plain, odd = small.translate(["il pleut", "😀 il 😀 pleut"])
    # 0 and 1 became 1 and 3 in the source.
    numbers = [1, 3]
    assert odd.word_alignment is not None
    assert [source for source, _ in odd.word_alignment] == [
        numbers[source] for source, _ in plain.word_alignment or ()
    ]
    words, without = odd.text.split(), plain.text.split()
    assert [words[target] for _, target in odd.word_alignment] == [
        without[target] for _, target in plain.word_alignment or ()
    ]


@pytest.mark.parametrize("changes", [{}, {"recase": True}])
def test_links_of_a_line_with_emoji_or_in_capitals_are_of_its_own_words(changes: dict):
    """As far as the search reads it without the emoji, or in lower case."""
    settings = DecodingConfig(beam_size=2, max_length=6).changed(changes)
    translator = ModelTranslator(Translator(small_bundle(), settings))
    line = "IL PLEUT" if changes else "il pleut"
    odd = line if changes else "😀 il 😀 pleut 😀"
    [plain] = translator.translate(["il pleut"], align=True)
    [found] = translator.translate([odd], align=True)
    assert len(found.links) == len(plain.links)
    for (ours, theirs, weight), (own, their, same) in zip(found.links, plain.links, strict=True):
        assert odd[slice(*ours)].lower()[-1:] == "il pleut"[slice(*own)][-1:]
        assert (
            found.text[slice(*theirs)].strip().lower() == plain.text[slice(*their)].strip().lower()
        )
        assert weight == same
