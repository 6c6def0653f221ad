"""Mojibake is found and read again, in every script, and right text is not called so."""

import pytest

from pellucid.text.check.check import examine
from pellucid.text.check.mojibake import is_mojibake, read_again
from pellucid.text.check.scan import repaired, scan_block


def misread(text, codec="cp1252"):
    """UTF-8 as this encoding shows it; a byte without a character there is a C1 control."""
    return "".join(bytes([byte]).decode(codec, "ignore") or chr(byte) for byte in text.encode())


TEXTS = (
    "Привет",
    "Привет, как дела?",
    "У Маши новый дом.",
    "Україна",
    "你好",
    "谢谢你!",
    "Tiếng Việt",
    "Xin chào các bạn",
    "Καλημέρα",
    "مرحبا بالعالم",
    "שלום עולם",
    "ÄPFEL ÖL ÜBER SPAß",
    "SCHÖN",
    "schön",
    "Die Größe ist über 5 m",
    "là",
    "À la carte",
    "naïve café",
    "日本語",
    "こんにちは",
    "한국어",
    "안녕하세요",
    "हिन्दी",
    "தமிழ்",
    "ไทย",
    "ភាសាខ្មែរ",
    "မြန်မာ",
    "ქართული",
    "Հայերեն",
    "proszę",
    "świat",
    "żółw",
    "Čeština",
    "İstanbul",
    "árvíztűrő",
    "“quoted”",
    "it’s",
    "wait…",
    "20 °C",
    "😀",
)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("codec", ["cp1252", "latin-1"])
def test_utf_8_read_as_windows_1252_or_latin_1_is_found_and_read_again(text, codec):
    shown = misread(text, codec)
    assert is_mojibake(shown)
    assert read_again(shown) == text
    assert repaired(shown) == text


@pytest.mark.parametrize("text", ["schön", "Привет", "你好", "Tiếng Việt", "Größe über"])
def test_a_part_of_a_line_is_read_again(text):
    assert read_again(f"ä–x “é” {misread(text)} ü…") == f"ä–x “é” {text} ü…"


@pytest.mark.parametrize("text", ["schön", "Привет", "it’s", "你好", "Größe"])
def test_text_that_was_read_wrongly_twice_is_read_twice_again(text):
    assert read_again(misread(misread(text))) == text


@pytest.mark.parametrize(
    ("text", "codec"),
    [
        ("schön", "cp1250"),
        ("Größe", "iso8859_2"),
        ("żółw", "cp1250"),
        ("Привет, как дела?", "cp1251"),
        ("Größe", "cp1251"),
        ("it’s", "cp1251"),
        ("déjà vu", "mac_roman"),
        ("it’s", "mac_roman"),
        ("schön", "cp850"),
        ("déjà vu", "cp437"),
        ("it’s", "cp437"),
    ],
)
def test_other_encodings_are_found_and_left(text, codec):
    """A letter of theirs is one byte in one of them and another byte in another."""
    assert is_mojibake(misread(text, codec))
    assert read_again(misread(text, codec)) == misread(text, codec)


@pytest.mark.parametrize("text", ["â€", "say â€hiâ€", "вЂ"])
def test_a_quotation_mark_that_lost_a_character_is_found(text):
    assert is_mojibake(text)
    assert read_again(text) == text


RIGHT = (
    *TEXTS,
    "« Il a été préparé\xa0»",
    "«está»… pero",
    "sé…¿y tú?",
    "está…¡vamos!",
    "AMANHÃ”",
    "AMANHÃ…",
    "DE MANHÃ\xa0À NOITE",
    "“CAFÉ”",
    "É–É…",
    "the CAFÉ’s door",
    "CAFÉ–BAR",
    "NIÑO… NIÑO… NIÑO…",
    "groß“",
    "„Co máš“",
    "„Umíš“, řekl",
    "KÉŽ BY",
    "coût\xa0: à\xa0½ prix, à\xa0€5",
    "3\xa0×\xa04\xa0×\xa05",
    "2×½",
    "Ø¾ inch, Ø½ inch",
    "Å±0,1",
    "DĹŽKA",
    "STRĂŞENI",
    "ŻÓŁĆ",
    "TŁUMACZYĆ OBRÓT, ŻÓŁW",
    "кВ·ч, Н·м, 220 В±10 %, 20 °С",
    "НІ, НІ, НІ",
    "лінії в Німеччині",
    "СЉЕДЕЋИ",
    "√2, √π, ├── a, │ b",
    "Windows® и «ТЕСТ»",
    "Þór sagði: „ORÐ“",
    "l’été — où ?",
)


@pytest.mark.parametrize("text", RIGHT)
def test_right_text_is_no_mojibake(text):
    assert not is_mojibake(text)
    assert read_again(text) == text


def test_the_lines_of_a_block_are_found():
    lines = ["schön", misread("schön"), "a", misread("Привет"), "été\xa0»", misread("é", "cp850")]
    found = scan_block("\n".join(lines).encode()).problems
    assert found["mojibake"].tolist() == [1, 3, 5]


def test_a_side_that_was_read_wrongly_is_not_good(tmp_path):
    words = ["Привет", "дом", "собака", "вода", "книга"]
    source, target = tmp_path / "m.ru", tmp_path / "m.en"
    source.write_text("".join(f"{misread(word)} {n}\n" for n in range(9) for word in words))
    target.write_text("".join(f"word {n} {len(word)}\n" for n in range(9) for word in words))
    assert examine(source, target).findings["mojibake"].source_count == 45


@pytest.mark.parametrize(
    ("line", "right"),
    [
        ("A man\x92s dog runs.", "A man’s dog runs."),
        ("one \x97 two \x96 three", "one — two – three"),
        ("wait\x85", "wait…"),
        ("\x93so\x94 \x91x\x92 \x84y\x94", "“so” ‘x’ „y”"),
        ("\x80 5, 1\x89, \x9cuvre, \x8aárka", "€ 5, 1‰, œuvre, Šárka"),
        ("a\x81b\x8d\x8f\x90\x9d", "ab"),
    ],
)
def test_controls_that_are_characters_in_windows_1252_become_these(line, right):
    assert repaired(line) == right
    kind = "control" if right == "ab" else "windows_1252"
    found = scan_block(line.encode()).problems
    assert {name for name, rows in found.items() if len(rows)} == {kind}


@pytest.mark.parametrize(
    "line",
    [
        "A letra “Ã” tem til.",
        "Chữ “Â” và “Ã”",
        "Letras “ã”, “Ã”, “õ”",
        "IRMÃ® é marca",
        "A tecla Ã… e mais",
        "Comprimento 1,5 Å± 0,1",
    ],
)
def test_a_letter_and_the_mark_behind_it_are_no_mojibake(line: str):
    assert not is_mojibake(line)
    assert read_again(line) == line


@pytest.mark.parametrize(
    ("line", "right"), [("isto Ã© bom", "isto é bom"), ("20Â° hoje", "20° hoje"), ("Ã\x87", "Ç")]
)
def test_a_letter_that_is_a_word_is_read_again(line: str, right: str):
    assert is_mojibake(line)
    assert read_again(line) == right
