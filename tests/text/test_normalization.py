"""Text as people have it reads as the same text in its usual form, and nothing else changes."""

import random
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pellucid.core.errors import DataError
from pellucid.text.config import TokenizerConfig
from pellucid.text.normalization import (
    CLASSES,
    check_text,
    normalize,
    normalize_with_positions,
)
from pellucid.text.tokenizers.tokenizer import load_tokenizer, train_tokenizer

ODD = re.findall(
    f"[{CLASSES['odd']}{CLASSES['directions']}{CLASSES['later']} ]",
    "".join(map(chr, range(0xE0201))),  # beyond the selectors only unassigned ones
)
MARKS = [chr(code) for code in range(0x20000) if unicodedata.combining(chr(code))]
NEAR = [*"aeoAEO1#*. -é", *"\u1100\u1161\u11a8가ᠠابन\u094dക\u0d4dက", *"👩🔬❤🏴", "\u20e3", "\u05e2"]
ANY = st.text(st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from([*ODD, *NEAR])))

KINDS = ("bpe", "unigram", "word", "punctuation", "rules", "character", "wordpiece")
CORPUS = ["Tôi thích cà phê sữa đá ở Việt Nam .", "a blue shirt and a ladder", "un chat noir !"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\u00a0blue shirt", "a blue shirt"),
        ("je vois un chat\u00a0noir", "je vois un chat noir"),
        ("chat\u202fnoir", "chat noir"),
        ("chat\u2009noir\u3000!", "chat noir !"),
        ("a\tb\r\nc\u2028d\u2029e\x85f\x0bg", "a b c d e f g"),
        ("  a   b  ", "a b"),
        ("lad\u00adder", "ladder"),
        ("\ufefflad\u200bder\u2060s", "ladders"),
        ("a \u00ad b", "a b"),
        ("a\0b\x07c\x9bd", "abcd"),
        ("Việt Nam", "Việt Nam"),
        (unicodedata.normalize("NFD", "Việt Nam"), "Việt Nam"),
        ("Cafe\u0301", "Café"),
        ("cafe\u00ad\u0301", "café"),
        ("\u1112\u1161\u11ab", "한"),
        ("\u2126 \u212b", "Ω Å"),
        ("e\u2011mail, e\u2010mail", "e-mail, e-mail"),
        ("\ufb01nd the o\ufb03ce", "find the office"),
        ("x² ½ ™ ﷺ ＡＢ", "x² ½ ™ ﷺ ＡＢ"),
        ("„Ja“ – l’été…", "„Ja“ – l’été…"),
    ],
)
def test_what_people_have_in_their_text(text: str, expected: str):
    assert normalize(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Persian: a letter keeps its final form, also behind Latin letters
        ("می\u200cروم", "می\u200cروم"),
        ("PDF\u200cها", "PDF\u200cها"),
        ("می\u200c\u200cروم", "می\u200cروم"),
        # Bengali and Malayalam: the shape of a conjunct
        ("ক\u09cd\u200dষ", "ক\u09cd\u200dষ"),
        ("ന\u0d4d\u200d", "ന\u0d4d\u200d"),
        ("auf\u200cfinden, a\u200db", "auffinden, ab"),
        # Khmer and Thai: a break that is not seen
        ("ខ្ញុំ\u200bស្រឡាញ់", "ខ្ញុំស្រឡាញ់"),
        ("ฉัน\u200bรัก", "ฉันรัก"),
        # emoji: joined, with a tone of skin, in color, a key, a flag made of tags
        ("👩\u200d🔬 👩🏽\u200d🔬", "👩\u200d🔬 👩🏽\u200d🔬"),
        ("❤\ufe0f\u200d🔥", "❤\ufe0f\u200d🔥"),
        ("1\ufe0f\u20e3 1\ufe0f a\ufe0f", "1\ufe0f\u20e3 1 a"),
        (
            "🏴\U000e0067\U000e0062\U000e007f a\U000e0067",
            "🏴\U000e0067\U000e0062\U000e007f a",
        ),
        ("葛\U000e0100", "葛"),
        # directions: in Hebrew and Arabic alone
        ("C++\u200e עברית", "C++\u200e עברית"),
        ("\u202acat\u202c \u200edog\u061c", "cat dog"),
        # Mongolian
        ("ᠠ\u180bᠠ\u180eᠠ a\u180e", "ᠠ\u180bᠠ\u180eᠠ a"),
        # fillers of Korean
        ("\u115f\u1161 \u1100\u1160 \u3164\uffa0x\u1160", "\u115f\u1161 \u1100\u1160 x"),
    ],
)
def test_what_decides_about_letters_stays(text: str, expected: str):
    assert ascii(normalize(text)) == ascii(expected)


@given(text=ANY)
def test_a_second_time_nothing_changes_and_every_position_is_of_its_character(text: str):
    made = normalize_with_positions(text)
    assert made.text == normalize(text) == normalize(made.text)

    positions = list(made.positions)
    assert positions == sorted(positions)
    assert len(positions) == len(made.text) + 1
    assert positions[-1] == len(text)
    for letter, position in zip(made.text, positions, strict=False):
        if letter.isascii() and letter.isalnum() and text[position] not in "ﬀﬁﬂﬃﬄﬅﬆ":
            assert unicodedata.normalize("NFD", text[position])[0] == letter


def test_text_that_seems_usual_at_first_sight_is():
    """The quick test and the rule agree about every character, alone and beside others."""
    draw = random.Random(2)
    assigned = [chr(c) for c in range(0x110000) if unicodedata.category(chr(c)) not in ("Cs", "Cn")]
    single = [*ODD, *MARKS, *(each for each in assigned if ord(each) < 0x3000), *assigned[::53]]
    texts = [f"a{each}b" for each in single]
    pools = ODD, MARKS, NEAR, assigned
    for _ in range(1500):
        length = draw.randint(1, 9)
        texts.append("".join(draw.choice(draw.choice(pools)) for _ in range(length)))

    for text in texts:
        # "~" is changed by nothing; two spaces in front make the rule look closer
        closely = normalize(f"  ~{text}")[1:]
        if not text.startswith(" "):
            assert ascii(normalize(f"~{text}")[1:]) == ascii(closely)


def test_ordinary_text_is_in_nfc_afterwards():
    later = re.compile(f"[{CLASSES['later']}]")
    for code in range(0x110000):
        letter = chr(code)
        if unicodedata.normalize("NFC", letter) != letter and not later.match(letter):
            assert unicodedata.is_normalized("NFC", normalize(f"x{letter}y"))


def test_a_position_behind_an_accent_that_was_typed_apart():
    made = normalize_with_positions("a e\u0301\u00ad  b")
    assert made.text == "a é b"
    assert list(made.positions) == [0, 1, 2, 5, 7, 8]


def test_half_a_character_is_refused():
    for call in (normalize, normalize_with_positions, check_text):
        with pytest.raises(DataError, match=r"lone surrogate U\+D800 at character 3"):
            call("ab\ud800")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_tokenizer_reads_all_forms_as_one(kind, tmp_path):
    config = TokenizerConfig(kind=kind, vocabulary_size=400)
    made = train_tokenizer([unicodedata.normalize("NFD", line) for line in CORPUS], config)
    assert made.fingerprint == train_tokenizer(CORPUS, config).fingerprint  # learned from one form

    made.save(tmp_path, "shared")
    loaded = load_tokenizer(tmp_path, "shared")
    assert (loaded.normalization, loaded.fingerprint) == ("nfc", made.fingerprint)
    for tokenizer in (made, loaded):
        expected = tokenizer.encode_batch(CORPUS)
        for form in ("NFC", "NFD"):
            texts = [unicodedata.normalize(form, line) for line in CORPUS]
            odd = [f" {text} ".replace(" ", "\u00a0\u00ad ") for text in texts]
            assert tokenizer.encode_batch(texts) == tokenizer.encode_batch(odd) == expected
            assert [tokenizer.encode(text) for text in odd] == expected


@pytest.mark.parametrize("kind", KINDS)
def test_without_normalization_text_is_read_as_it_is(kind, tmp_path):
    config = TokenizerConfig(kind=kind, vocabulary_size=400, normalization="none")
    made = train_tokenizer(CORPUS, config)
    made.save(tmp_path, "shared")
    loaded = load_tokenizer(tmp_path, "shared")
    assert loaded.normalization == "none"
    assert loaded.fingerprint == made.fingerprint
    assert "nfc" not in "".join(path.read_text("latin-1") for path in tmp_path.glob("*.json"))
    decomposed = unicodedata.normalize("NFD", CORPUS[0])
    assert loaded.encode(decomposed) != loaded.encode(CORPUS[0])

    normalized = train_tokenizer(CORPUS, config.model_copy(update={"normalization": "nfc"}))
    assert normalized.fingerprint != made.fingerprint
