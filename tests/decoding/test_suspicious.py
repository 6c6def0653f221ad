"""Warnings of translations: each kind where it is due, and not where it is not."""

import dataclasses
import logging
import math
from typing import Any

import pytest
from small_bundle import small_bundle, tokenizer

from pellucid.bundle import LONGEST_KEY, UNSURE_KEY
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.requests import Request
from pellucid.decoding.result import Translation
from pellucid.decoding.rewriting import Judgement
from pellucid.decoding.sentences import SplitLine
from pellucid.decoding.suspicious import (
    USUAL_KEY,
    compare,
    judged,
    source_warnings,
    unsure_below,
    unsure_message,
    usual_kinds,
    usual_of,
)
from pellucid.decoding.translator import Translator
from pellucid.decoding.warnings import KINDS, TranslationWarning, WarningLog, in_words
from pellucid.documents.protected import literals_in
from pellucid.text.config import TokenizerConfig
from pellucid.text.seen_words import SeenWords
from pellucid.text.tokenizers.tokenizer import train_tokenizer


def kinds(source: str, target: str) -> list[str]:
    """The kinds of warnings, with words as tokens."""
    return [each.kind for each in compare(source, target, source.split(), target.split())]


def message(source: str, target: str) -> str:
    [found] = compare(source, target, source.split(), target.split())
    return found.message


def written(source: str, text: str) -> Translation:
    tokens = tuple(text.split())
    return Translation(text, 0.0, tokens, (), (), source, source_tokens=tuple(source.split()))


def kinds_found(translation: Translation) -> list[str]:
    return [each.kind for each in translation.warnings]


def test_a_translation_far_shorter_than_its_source_is_suspicious():
    """Eight tokens or more, and fewer than a quarter as many."""
    assert kinds("a b c d e f g h", "x") == ["short"]
    assert kinds("a b c d e f g h", "x y") == []
    assert kinds("a b c d e f g", "x") == []
    said = "the translation is suspiciously short (1 token from 8)"
    assert message("a b c d e f g h", "x") == said


def test_a_translation_far_longer_than_its_source_is_suspicious():
    """More than four times as many tokens and ten: a word may well have a paragraph's letters."""
    words = " ".join(map(chr, range(0x3B1, 0x3B1 + 15)))
    assert kinds("a", words) == ["long"]
    assert kinds("a", " ".join(words.split()[:14])) == []
    said = "the translation is suspiciously long (15 tokens from 1)"
    assert message("a", words) == said


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("no " * 8, ["loop"]),
        ("no " * 7, []),
        ("he said " * 4, ["loop"]),
        ("he said " * 3 + "he", []),
        ("well " + "a b c " * 4 + "then", ["loop"]),
        ("a b c d e f g h " * 3 + "a b", []),
        ("a b a b a c a b a b a", []),
    ],
)
def test_a_translation_that_repeats_itself_is_suspicious(target: str, expected: list[str]):
    assert kinds("one two three four", target) == expected
    assert kinds("ha " * 9, target) == [], "the source repeats itself, too"


@pytest.mark.parametrize("text", ["", " ", "…", "?!", "🙂"])
def test_nothing_left_of_a_text_with_letters_or_digits_is_said(text: str):
    assert kinds("Je suis étudiant.", text) == ["empty"]
    assert kinds("猫", text) == kinds("42", text) == ["empty"]
    assert kinds("?!", text) == [], "nothing was there to be translated"
    assert "neither a letter nor a digit" in message("oui", text)


@pytest.mark.parametrize(
    ("source", "target", "said"),
    [
        ("Im Jahr 1998", "In 1988", "the text has “1998”, and the translation has “1988” instead"),
        ("42", "the answer", "the text has no letters, and the translation has some"),
        ("q = 4711", "q", "“4711” of the text is not in the translation"),
        ("Call me", "Ruf 4711 an", "the translation has “4711”, which the text does not have"),
        ("17 Uhr, 23 Leute", "5 pm, 24 people", "the text has “23”, and the translation has “24”"),
        ("3 cats, 5 dogs", "3 Katzen, 4 Hunde", "the text has “5”, and the translation has “4”"),
        ("1000 Euro", "100 euros", "the text has “1000”, and the translation has “100” instead"),
        ("Nimm 2,5 mg", "Take 25 mg", "the text has “2,5”, and the translation has “25” instead"),
        ("Take 5 mg", "Nimm 0,5 mg", "the text has “5”, and the translation has “0,5” instead"),
        ("服用2.5毫克", "Take 25 mg", "the text has “2.5”, and the translation has “25” instead"),
        ("٢٫٥ ملغ", "25 mg", "the text has “٢٫٥”, and the translation has “25” instead"),
        ("Ein Hund.[1]", "A dog.", "“[1]” of the text is not in the translation"),
        ("Ein Hund [1, 2].", "A dog [1].", "“[1, 2]” of the text is not in the translation"),
        ("Ein Hund. (1)", "A dog.", "“(1)” of the text is not in the translation"),
        ("Sie kamen.1", "They came.", "“1” of the text is not in the translation"),
        ("„Ja.“12", "“Yes.”", "“12” of the text is not in the translation"),
        ("Anderen3 nicht.", "Not others.", "“3” of the text is not in the translation"),
        ("Sie kamen.¹²", "They came.", "“¹²” of the text is not in the translation"),
        ("Anderen³ nicht.", "Not others.", "“³” of the text is not in the translation"),
        ("令和2年に", "in 2021", "the translation has “2021”, which the text does not have"),
        ("500 Euro", "5 euros", "the text has “500”, and the translation has “5” instead"),
        ("60,000 men", "600 000 hommes", "the text has “60,000”, and the translation has"),
        ("7" * 5000, "7" * 5000 + "0", "the text has “777777777777777777777777777777…”, and"),
        ("at 5:30 pm", "um 17.20 Uhr", "the text has “5:30”, and the translation has “17.20”"),
        ("am 7.12.1941", "on December 7, 1914", "the text has “12”, “1941”, and the"),
        ("am 25.8.", "on August 24", "the text has “25”, and the translation has “24” instead"),
        ("in den 90er Jahren", "in the 1980s", "the translation has “1980”"),
        ("It costs 12.50.", "Es kostet viel.", "“12.50” of the text is not in the translation"),
        ("1,5 mm", "15 mm", "the text has “1,5”, and the translation has “15” instead"),
        ("It is -5 °C.", "Es sind 5 °C.", "“-5” of the text has no minus in the translation"),
        ("−18 °C or less", "18 °C oder weniger", "“−18” of the text has no minus"),
        ("–5 °C today", "heute 5 °C", "“–5” of the text has no minus in the translation"),
        ("-$5 a day", "5 $ am Tag", "“-$5” of the text has no minus in the translation"),
        ("-20 °C to -10 °C", "von -20 °C bis 10 °C", "“-10” of the text has no minus"),
        ("Es sind 5 °C.", "It is -5 °C.", "“-5” of the translation has no minus in the text"),
        ("Le 24/12", "On December 25", "the text has “24”, “12”, and the translation has “25”"),
        (
            "2020/5/12に",
            "on May 13, 2020",
            "the text has “12”, and the translation has “13” instead",
        ),
        ("version 1.2.10", "Version 1.2.11", "the translation has “1.2.11”"),
        ("Q1 2020", "Q2 2020", "“1 2020” of the text is not in the translation"),
        ("à 14h30", "at 3:30 p.m.", "“14:30” of the text is not in the translation"),
        ("um 10.30 Uhr", "at half past 11:45", "the translation has “11:45”"),
        ("pp. 123-5", "S. 123-126", "the translation has “126”, which the text does not have"),
    ],
)
def test_changed_lost_and_invented_numbers_are_named(source: str, target: str, said: str):
    assert message(source, target).startswith(said)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("about 1,234.5 km", "etwa 1.234,5 km"),
        ("1 234 567 Einwohner", "1,234,567 people"),
        ("100 people", "hundert Leute"),
        ("2,000,000 yen", "2 Millionen Yen"),
        ("12,000 yen", "1.2万円"),
        ("3 dogs and 12 cats", "drei Hunde und zwölf Katzen"),
        ("two dogs", "2 Hunde"),
        ("at 07:30", "um 7.30 Uhr"),
        ("year ١٩٩٨", "Jahr 1998"),
        ("１９９８年", "the year 1998"),
        ("B52, H2O, mp3", "B52, H2O, mp3"),
        ("12:30", "12.30"),
        ("at 5:30 pm", "um 17.30 Uhr"),
        ("open from 8.30 to 11 pm", "von 8.30 Uhr bis 23:00 Uhr"),
        ("half past midnight, 12:30 am", "halb eins, 0.30 Uhr"),
        ("at 3 o'clock on the 5.6.", "am 5. Juni um 15 Uhr"),
        ("am 7.12.1941, 31.12.", "on December 7, 1941, and December 31"),
        ("on 12/31/1999", "am 31. Dezember 1999"),
        ("in the 1990s and '80s", "in den 90er und 1980er Jahren"),
        ("from 1939 to 1945", "1939/45 dauerte er"),
        ("250 thousand", "250.000 Leute"),
        ("100 lakh", "10 million"),
        ("100万人", "1 million people"),
        ("3億円", "300 million yen"),
        ("half past 3", "um halb 4"),
        ("Nimm 0,5 mg und 12½ %", "Take .5 mg and 12.5%"),
        ("Ein Hund[3].", "A dog (3)."),
        ("Ein Hund [1, 2].", "A dog [1][2]."),
        ("Sie kamen.1 Dann", "They came.¹ Then"),
        ("Nr.1 ist 3 km² groß", "The first is three square kilometers"),
        ("Zwei (2) Hunde.3,5 Euro", "Two dogs.3.5 euros"),
        ("in 3 1/2 hours", "in 3,5 Stunden"),
        ("Seite 1 von 2,5 und 25", "page 1 of 25 and 2.5"),
        ("1.5万人", "15 thousand people"),
        ("二○二四年五月", "May 2024"),
        ("一百二十三人、三万五千六百元", "123 people, 35,600 yuan"),
        ("一百二十三人", "a hundred and twenty-three people"),
        ("令和2年と令和元年に", "in 2020 and 2019"),
        ("令和2年に", "in Reiwa 2"),
        ("in 2024", "民國113年"),
        ("ในปี 2567", "in 2024"),
        ("in 2024", "ในปี พ.ศ. 2567"),
        ("halv 4", "half past 3"),
        ("1,50 m", "150 centimeters"),
        ("It costs $2.50.", "Es kostet 250 Cent."),
        ("It is -5 °C.", "Es sind minus 5 Grad."),
        ("It is -5 °C.", "Es sind 5 Grad unter null."),
        ("It is −5 °C.", "Es sind - 5 °C."),
        ("-5 apples", "5 Äpfel"),
        ("pages 10 -15, COVID-19", "Seite 10 bis 15, COVID 19"),
        ("from -5 to 5", "von -5 bis 5"),
        ("number " + "7" * 5000, "Nummer " + "7" * 5000),
        ("vom 05.12.20 und 24.12.99", "of December 5, 2020, and December 24, 1999"),
        ("Le 24/12, le 31/10/19", "On December 24, on October 31, 2019"),
        ("会議は2020/12/5です。", "The meeting is on December 5, 2020."),
        ("2020.05.12-én", "on 12 May 2020"),
        ("Open 24/7.", "Rund um die Uhr geöffnet."),
        ("Q1 2020", "das erste Quartal 2020"),
        ("In 2020 3 people came.", "Im Jahr 2020 kamen drei Leute."),
        ("à 14h30", "at 2:30 p.m."),
        ("um 14 Uhr 25", "2:25 p.m."),
        ("在下午2点25分", "at 14:25"),
        ("в 14 ч. 25 мин.", "at 2:25 p.m."),
        ("um 10.30 Uhr", "at half past ten"),
        ("um 18:45 Uhr", "a quarter to seven"),
        ("pp. 123–5 and 1001–8", "S. 123–125 und 1001–1008"),
        ("-20 % auf alles", "20% off everything"),
        ("jusqu'à −50 %", "bis zu 50 % Rabatt"),
    ],
)
def test_numbers_written_another_way_are_no_changed_numbers(source: str, target: str):
    assert kinds(source, target) == kinds(target, source) == []


def test_words_that_the_vocabulary_lacks_are_named():
    """A few of them, each once; characters where words are cut into pieces."""
    words = train_tokenizer(["je suis là"], TokenizerConfig(kind="word", vocabulary_size=20))
    text = "je suis étudiant ici et là ici ou ailleurs"
    [found] = source_warnings(text, words.encode(text), 99, words)
    assert found.kind == "unknown"
    assert str(found) == "the model does not know “étudiant”, “ici”, “et” and 2 more"
    assert source_warnings("je suis là", words.encode("je suis là"), 99, words) == []

    for kind in ("wordpiece", "character"):
        pieces = train_tokenizer(["je suis là"], TokenizerConfig(kind=kind, vocabulary_size=30))
        [found] = source_warnings("je suis ξ", pieces.encode("je suis ξ"), 99, pieces)
        assert found.message == "the model does not know “ξ”"


def test_a_script_that_is_spelled_in_bytes_is_said_and_a_rare_letter_is_not():
    pieces = tokenizer("bpe")
    [found] = source_warnings("Привет, мир", pieces.encode("Привет, мир"), 99, pieces)
    said = "the model hardly knows the script of “П”, “р”, “и” and 4 more"
    assert (found.kind, found.message) == ("unknown", said)
    for text in ("le cœur", "quoi ? ;"):
        assert source_warnings(text, pieces.encode(text), 99, pieces) == []


@pytest.mark.parametrize(
    ("text", "signs"),
    [
        ("€ 5", "“€”"),
        ("le § et le ¶, le §", "“§”, “¶”"),
        ("quoi ? “", "““”"),
        ("5 m² ½", "“²”, “½”"),
        ("je vois un chat ici 猫", "“猫”"),
    ],
)
def test_a_sign_that_is_spelled_in_several_bytes_is_named(text: str, signs: str):
    pieces = tokenizer("bpe")
    [found] = source_warnings(text, pieces.encode(text), 99, pieces)
    assert (found.kind, found.message) == ("unknown", f"the model hardly knows {signs}")


def test_bytes_that_are_no_character_are_named():
    [found] = judged(written("a cat", "eine Katz\ufffd")).warnings
    said = "the translation has “\ufffd”, bytes that are no whole character"
    assert (found.kind, found.message) == ("unknown", said)
    assert judged(written("a cat\ufffd", "eine Katze\ufffd")).warnings == ()


def test_a_cut_source_is_a_warning_of_its_translation():
    text = "le petit chat"
    ids = tokenizer().encode(text)
    [found] = source_warnings(text, ids, 2, tokenizer())
    said = f"only the first 2 of its {len(ids)} tokens are read"
    assert (found.kind, found.message) == ("truncated", said)


def test_an_unknown_word_in_the_translation_is_said():
    found = judged(written("a b", "x [UNK]"))
    said = "the translation has [UNK] for words that the model cannot write"
    assert [each.message for each in found.warnings] == [said]
    assert judged(written("a b", "x y")).warnings == ()
    replaced = dataclasses.replace(written("a b", "x [UNK]"), text="x b")
    assert judged(replaced).warnings == ()


def test_what_a_request_demands_is_not_invented():
    assert judged(written("call", "ruf 4711 an"), demanded=["4711"]).warnings == ()
    assert judged(written("call", "ruf 4711 an")).warnings
    forms = ["Windows 2019", "Windows"]
    assert judged(written("I use Windows", "Ich nutze Windows"), demanded=forms).warnings == ()
    assert judged(written("42", "forty-two"), demanded=["forty-two"]).warnings == ()


def test_a_split_line_has_the_warnings_of_its_sentences_each_once():
    good, bad = (judged(written("a b c d", text)) for text in ("x y", "no " * 9))
    split = SplitLine.of(Request("One. Two."), "en")
    assert [each.kind for each in split.joined([good, bad]).warnings] == ["loop"]
    assert split.joined([bad, bad]).warnings == bad.warnings
    assert split.joined([good, good]).warnings == ()
    assert math.isnan(good.perplexity)


def test_what_the_training_pairs_do_themselves_means_nothing():
    """Commands as SCAN's repeat by rule; numbers that are read out have letters by rule."""

    def pairs(*given: tuple[str, str]):
        return [(source, target, source.split(), target.split()) for source, target in given]

    fine = pairs(*[("a b", "x y")] * 95)
    loops = pairs(*[("walk thrice", "WALK " * 9)] * 5)
    assert usual_kinds(fine + loops) == []
    assert usual_kinds(fine + 3 * loops) == ["long", "loop"]
    assert usual_kinds(fine + pairs(*[("42", "zweiundvierzig")] * 5)) == ["digits"]
    assert usual_kinds(fine + pairs(*[("42", "zweiundvierzig")] * 4)) == []
    assert usual_kinds(fine + pairs(*[("42", "42")] * 5)) == []
    assert usual_kinds([]) == []

    loop = written("a b c d", "no " * 9)
    assert judged(loop, usual_of({USUAL_KEY: ["loop", "what"]})).warnings == ()
    assert usual_of({}) == usual_of({USUAL_KEY: "loop"}) == frozenset()


def test_a_log_shows_the_first_of_each_kind_and_counts_the_others(
    caplog: pytest.LogCaptureFixture,
):
    """Many unknown words do not hide a line that was lost."""
    log = WarningLog()
    unknown = TranslationWarning("unknown", "the model does not know “x”")
    for number in range(1, 9):
        log.look(number, dataclasses.replace(written("a", "b"), warnings=(unknown,)))
    log.look(9, judged(written("a b", "")))
    split = SplitLine.of(Request("One. Two."), "en")
    log.look(10, split.joined([judged(written("a b c d", each)) for each in ("x", "no " * 9)]))
    log.end()
    said = [each for each in caplog.messages if "“x”" in each]
    assert said == [f"line {number}: the model does not know “x”" for number in range(1, 6)]
    assert caplog.messages[5].startswith("line 9: nothing is left of it")
    assert caplog.messages[6].startswith("line 10, sentence 2: the translation repeats itself")
    assert caplog.messages[7:] == ["more such warnings: unknown 3"]
    assert in_words(log.counts) == "empty 1, unknown 8, loop 1"


def test_a_translator_logs_the_warnings_of_a_call_once(caplog: pytest.LogCaptureFixture):
    translator = Translator(small_bundle(kind="word"), DecodingConfig(beam_size=2, n_best=2))
    with caplog.at_level(logging.WARNING, logger="pellucid"):
        found = translator.translate(["je suis content"] * 7)
    about = [each for each in caplog.messages if "“content”" in each]
    assert about == [f"line {n}: the model does not know “content”" for n in range(1, 6)]
    assert all("unknown" in [each.kind for each in one.warnings] for one in found)
    assert found[0].n_best[0].warnings == found[0].warnings
    assert any(each.startswith("more such warnings: unknown 2") for each in caplog.messages)

    caplog.clear()
    streamed = translator.translate(iter(["je suis content"] * 7))
    assert next(streamed).warnings == found[0].warnings
    streamed.close()
    assert any("more such" in each for each in caplog.messages), "also if the end is not asked for"

    caplog.clear()
    assert translator.without_log().translate("je suis content").warnings
    [scored] = translator.without_log().score(["je suis content"], ["je"])
    assert [each.kind for each in scored.warnings] == ["unknown"]
    assert caplog.messages == []


@pytest.mark.parametrize(
    "text",
    ["42", "12:30", " 3,5 % ", "+49 (30) 1234-5", "1998–2003", "٤٢", "I.", "b)", "(iv)", " XIV. "],
)
def test_a_line_of_numbers_or_an_ordinal_is_its_own_translation(text: str):
    small = Translator(small_bundle(), DecodingConfig(beam_size=1))
    found = small.translate(text)
    assert (found.text, found.source, found.warnings) == (text.strip(), text, ())
    reads_out = Translator(
        small_bundle(), DecodingConfig(beam_size=1), usual_warnings=frozenset(["digits"])
    )
    assert reads_out.translate(text).token_ids
    asked = small.translate(text, DecodingConfig(beam_size=1, copy_symbols=False))
    assert asked.token_ids


def test_words_that_the_training_text_never_had_are_named_unless_they_are_copied():
    seen = SeenWords(frozenset({"je", "vois", "un", "chat"}))
    found = judged(written("Je vois un xylophone", "I see a cow"), seen=seen)
    [warning] = found.warnings
    assert warning.kind == "unseen"
    assert warning.message == (
        "the training text never had “xylophone”: what stands for it is a guess"
    )
    assert judged(written("Je vois Zorblax", "I see Zorblax."), seen=seen).warnings == ()
    assert judged(written("je vois un CHAT", "i see a cat"), seen=seen).warnings == ()
    assert judged(written("Je vois un xylophone", "I see a cow")).warnings == ()


def test_a_translator_knows_the_words_of_its_bundle():
    bundle = dataclasses.replace(small_bundle(), seen_words=SeenWords(frozenset({"le", "chat"})))
    found = Translator(bundle, DecodingConfig(max_length=3)).translate(["le chat", "le dragon"])
    assert ["unseen" in [each.kind for each in line.warnings] for line in found] == [False, True]


def test_a_source_longer_than_any_that_was_learned_from_is_said():
    bundle = small_bundle()
    texts = ["le chat", "le chat noir"]
    lengths = [len(bundle.source_tokenizer.encode(text)) for text in texts]
    bundle = dataclasses.replace(bundle, manifest={LONGEST_KEY: lengths[0]})
    translator = Translator(bundle, DecodingConfig(max_length=3))
    said = (
        f"its {lengths[1]} tokens are more than the {lengths[0]} of the longest lines that the"
        " model learned from: parts of it may be lost"
    )
    for found in (translator.translate(texts), translator.score(texts, texts)):
        warnings = [list(map(str, line.warnings)) for line in found]
        assert said not in warnings[0]
        assert said in warnings[1]
    # a source that is cut has another warning
    cut = DecodingConfig(max_length=3, max_source_tokens=lengths[0])
    [found] = translator.translate(texts[1:], cut)
    assert [each.kind for each in found.warnings if each.kind != "unknown"][:1] == ["truncated"]


def test_a_sign_that_the_training_text_hardly_had_is_named_and_hides_no_word():
    seen = SeenWords(frozenset({"le", "chat"}), frozenset("."))
    bundle = dataclasses.replace(small_bundle(), seen_words=seen)
    translator = Translator(bundle, DecodingConfig(max_length=3))
    texts = ["le chat.", "le chat/le chat", "le dragon ; le chat"]
    found = translator.translate(texts)
    rare = [[str(each) for each in line.warnings if each.kind == "unknown"] for line in found]
    assert rare == [[], ["the model hardly knows “/”"], ["the model hardly knows “;”"]]
    assert "unseen" in [each.kind for each in found[2].warnings]
    scored = translator.score(texts[:2], texts[:2])
    assert [[each.kind for each in line.warnings] for line in scored] == [[], ["unknown"]]


@pytest.mark.parametrize(
    ("source", "lost"),
    [
        ("see https://example.org/a", ["“https://example.org/a”"]),
        ("mail me@example.org", ["“me@example.org”"]),
        ("a man {name} stands", ["“{name}”"]),
        ("{0} dogs and %(cats)s cats", ["“{0}”", "“%(cats)s”"]),
        ("a <b>man</b> stands <0/>", ["“<b>”", "“</b>”", "“<0/>”"]),
        ("a < b, <Next> and List<String>", []),
        ("a dog costs $3", []),
        ("a man – a tall one – stands", []),
    ],
)
def test_a_lost_address_or_placeholder_is_named(source: str, lost: list[str]):
    judge = Judgement(frozenset(), None, literals_in=literals_in)

    def said(text: str) -> list[str]:
        [judged_one] = judge([Request(source)]).back([written(source, text)])
        return [each.message for each in judged_one.warnings if each.kind == "literals"]

    message = f"{', '.join(lost)} of the text is not in the translation"
    assert said("ein Mann steht") == ([message] if lost else [])
    assert said(f"ein Mann: {source}") == []


def test_an_unsure_translation_is_marked_unless_something_else_is_wrong():
    """Below what 98 of 100 translations of the validation text reach."""
    assert unsure_below([-0.1] * 99) is None, "too few to tell"
    bound = unsure_below([-n / 100 for n in range(200)])
    assert bound == pytest.approx(-1.95)
    assert unsure_message(-1.9, bound) is None
    assert unsure_message(-3.0, None) is None
    said = unsure_message(-3.0, bound)
    assert said == (
        "the model is unsure of it: its tokens have a probability of 5% on average, those of 98%"
        " of the validation text 14% or more"
    )
    [warning] = judged(written("Je vois un chat", "I see a cow"), unsure=said).warnings
    assert (warning.kind, warning.message) == ("unsure", said)
    assert kinds_found(judged(written("Je vois 123", "I see"), unsure=said)) == ["digits"]


def test_a_translator_says_of_what_its_bundle_is_unsure():
    settings = DecodingConfig(max_length=3, beam_size=2, n_best=2)
    sure = Translator(small_bundle(), settings).translate("le chat")
    mean = sure.mean_log_prob(settings.penalty)
    assert mean == pytest.approx(sum(sure.token_log_probs) / len(sure.token_log_probs))
    without = dataclasses.replace(sure, token_log_probs=())
    assert without.mean_log_prob(settings.penalty) == pytest.approx(mean), "as its score says"

    def found(bound: object, text: str | Request = "le chat", **changes: Any) -> Translation:
        bundle = dataclasses.replace(small_bundle(), manifest={UNSURE_KEY: bound})
        # What random weights write is wrong in other ways too.
        usual = frozenset(KINDS) - {"unsure"}
        own = settings.changed(changes)
        return Translator(bundle, own, usual_warnings=usual).translate(text)

    assert "unsure" not in kinds_found(sure)
    assert "unsure" not in kinds_found(found(mean - 0.01))
    marked = found(mean + 0.01)
    assert kinds_found(marked) == kinds_found(marked.n_best[0]) == ["unsure"]
    assert kinds_found(marked.n_best[1]) == [], "less likely by what it is"
    # What was asked for is not the model's choice; and a manifest may hold anything.
    assert "unsure" not in kinds_found(found(mean + 0.01, Request("le chat", prefix="un")))
    assert "unsure" not in kinds_found(
        found(mean + 0.01, sampling={"seed": 1}, beam_size=1, n_best=1)
    )
    assert "unsure" not in kinds_found(found("low"))


def test_words_of_a_source_that_the_model_cannot_read_are_named_once():
    bundle = dataclasses.replace(small_bundle(), seen_words=SeenWords(frozenset({"un"})))
    found = kinds_found(Translator(bundle, DecodingConfig(max_length=3)).translate("любовь"))
    assert "unknown" in found
    assert "unseen" not in found
