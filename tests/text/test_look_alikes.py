"""Signs that a vocabulary lacks are read as those that look alike; what it has stays."""

import pytest

from pellucid.text.config import TokenizerConfig
from pellucid.text.edits import composed, edited, moved
from pellucid.text.look_alikes import LookAlikes
from pellucid.text.normalization import normalize
from pellucid.text.tokenizers.tokenizer import train_tokenizer

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ."


def read(text: str, known: str, *, has_bytes: bool = False) -> str:
    return LookAlikes.of(frozenset(LETTERS + known), normalize, has_bytes=has_bytes)(text).text


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("the bride’s veil", "the bride's veil"),
        ("rock ‘n’ roll, don`t, don´t, 5′", "rock 'n' roll, don't, don't, 5'"),
        ("“A dog”, „ein Hund“, »Hund«, «chien»", '"A dog", "ein Hund", "Hund", "chien"'),
        ("a – b — c ― d −5", "a - b - c - d -5"),
        ("well…", "well..."),
        ("２ dogs，ＡＢ！", "2 dogs,AB!"),
        ("٣ ३ 𝟘", "3 3 0"),
        ("Ⅳ № 5 ℃ 𝐀", "IV No 5 ℃ A"),
        # another meaning, and no form of another sign
        ("m² ½ ① ™", "m² ½ ① ™"),
        # normalization replaces it
        ("un eﬀet", "un eﬀet"),
        ("לוז׳ צה״ל", "לוז' צה\"ל"),
        # of Windows-1252, read as Latin-1
        ("a man\x92s \x93dog\x94 \x97 yes", 'a man\'s "dog" - yes'),
        ("5 \x80\x85 \x81", "5 €\x85 \x81"),
    ],
)
def test_a_sign_that_is_not_known_is_read_as_its_look_alike(text: str, plain: str):
    assert read(text, "'\"-!,") == plain


@pytest.mark.parametrize(
    ("text", "known", "plain"),
    [
        ("the bride's veil", "’", "the bride’s veil"),
        ('He said "yes".', "“”", "He said “yes”."),
        ('Er sagte: "Ja".', "„“", "Er sagte: „Ja“."),
        ("„Ja“ («oui»)", "«»", "«Ja» («oui»)"),
        ("a—b", "–-", "a–b"),
        ("a - b", "–", "a – b"),
        ("你好,世界!", "，！", "你好，世界！"),
        ("și țară", "şţ", "şi ţară"),
        ("كي", "کی", "کی"),
        ("ｶﾞｱ", "ガアカ", "ガア"),
    ],
)
def test_the_nearest_sign_that_is_known_stands_for_it(text: str, known: str, plain: str):
    assert read(text, known) == plain


@pytest.mark.parametrize("text", ["“A dog’s life” – yes…", "２，！", "ｶ ș ي"])
def test_a_known_sign_stays_and_so_does_one_without_a_look_alike(text: str):
    assert read(text, text + "'\"-!,2カşی") == text
    assert read(text, "") == text.replace("…", "...").replace("２", "2")


def test_a_sign_of_one_byte_is_known_to_a_tokenizer_that_spells_in_bytes():
    assert read("2’ – “a”", "", has_bytes=True) == '2\' - "a"'
    assert read('2\' "a"', "", has_bytes=True) == '2\' "a"'


@pytest.mark.parametrize(
    "kind", ["bpe", "unigram", "wordpiece", "word", "punctuation", "character"]
)
def test_every_kind_of_tokenizer_names_its_characters(kind: str):
    texts = ['don\'t say "no" - or say it', "the dog's home is here", "it is what it is"]
    config = TokenizerConfig.model_validate({"kind": kind, "vocabulary_size": 300})
    tokenizer = train_tokenizer(texts, config)
    assert set("dontsay'\"-") <= tokenizer.characters
    assert "’" not in tokenizer.characters

    text = "the dog’s home – “here”"
    plain = tokenizer.look_alikes(text).text
    assert plain == 'the dog\'s home - "here"'
    assert tokenizer.encode(plain) != tokenizer.encode(text)


def test_positions_lead_back_to_what_was_written():
    alike = LookAlikes.of(frozenset(f"{LETTERS}-"), normalize, has_bytes=False)
    text = "a… b – c№ d"
    found = alike(text)
    assert found.text == "a... b - cNo d"
    for word in ("b", "c", "d"):
        assert moved(found.text.index(word), found.offsets) == text.index(word)
    dots = [moved(at, found.offsets) for at in range(1, 4)]
    assert dots == [1, 1, 1]


def test_edits_compose():
    import re

    text = "one two three"
    first = edited(re.compile("one"), lambda _: "1", text)
    second = edited(re.compile("three"), lambda _: "drei, drei", first.text)
    assert second.text == "1 two drei, drei"
    offsets = composed(first.offsets, second.offsets, len(second.text))
    assert moved(second.text.index("two"), offsets) == text.index("two")
    assert moved(second.text.index("drei"), offsets) == text.index("three")
    assert moved(len(second.text) - 1, offsets) == len(text) - 1
    assert moved(0, offsets) == len("one") - 1
