"""ROT-k: every letter moves in the alphabet of its script and case, and back again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pellucid.core.errors import ConfigError, CorruptError
from pellucid.text.cipher import ALPHABET_FILE, Cipher

ENGLISH = Cipher.of(["The quick brown fox", "jumps over the lazy dog."])


def test_a_letter_becomes_the_one_after_it_and_its_capital_does_so_too():
    assert ENGLISH.cycles == ("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    assert ENGLISH.encipher("A lazy dog, 3 Foxes!", 1) == "B mbaz eph, 3 Gpyft!"
    assert ENGLISH.encipher("A lazy dog, 3 Foxes!", 2) == "C ncba fqi, 3 Hqzgu!"


def test_letters_stay_in_their_script_and_what_is_none_of_them_stays():
    """ß has no capital of one letter, é is a letter of its own, and a combining mark is none."""
    cipher = Cipher.of(["abß Éz", "Ωβα", "犬猫が好き", "e\u0301 नमस्ते 42²"])
    assert cipher.cycles == ("αβω", "ΑΒΩ", "abezé", "ABEZÉ", "好犬猫", "तनमस", "がき", "ß")
    assert cipher.encipher("Éa zß", 1) == "Ab éß"
    assert cipher.encipher("Ωα", 1) == "Αβ"
    assert cipher.encipher("犬猫が好き。", 1) == "猫好き犬が。"
    assert cipher.encipher("b\u0301 ते 42² я", 1) == "e\u0301 ने 42² я"


@given(
    st.lists(st.text(), max_size=5),
    st.text(),
    st.integers(min_value=1, max_value=10**6),
)
def test_enciphering_is_a_bijection_whose_inverse_moves_back(texts, other, key):
    cipher = Cipher.of(texts)
    for text in [*texts, other]:
        there = cipher.encipher(text, key)
        assert len(there) == len(text)
        assert cipher.encipher(there, -key) == text
    letters = "".join(cipher.cycles)
    assert sorted(cipher.encipher(letters, key)) == sorted(letters)


def test_what_was_saved_is_read_again_and_anything_else_is_refused(tmp_path):
    assert Cipher.read(tmp_path) is None
    ENGLISH.save(tmp_path)
    again = Cipher.read(tmp_path)
    assert again == ENGLISH
    assert again.fingerprint == ENGLISH.fingerprint
    assert Cipher(ENGLISH.cycles[:1]).fingerprint != ENGLISH.fingerprint
    for content in (b"ab\ncb\n", b"ab", b"ab\n\n", b"a b\n", b"a1\n", b"\xff\n"):
        (tmp_path / ALPHABET_FILE).write_bytes(content)
        with pytest.raises(CorruptError, match=ALPHABET_FILE):
            Cipher.read(tmp_path)


def test_keys_that_change_nothing_or_that_are_alike_are_refused():
    ENGLISH.check([1, 2, 25])
    with pytest.raises(ConfigError) as caught:
        ENGLISH.check([1, 52])
    assert str(caught.value) == (
        "data.cipher_keys has 52, which changes no letter of the source text"
    )
    with pytest.raises(ConfigError, match="has 2 and 28, which encipher the source text alike"):
        ENGLISH.check([1, 2, 28])
    with pytest.raises(ConfigError, match="has 1, which changes no letter"):
        Cipher.of(["1 2 3"]).check([1])
