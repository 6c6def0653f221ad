"""Strange characters are found in bytes, the same as a pattern over every byte finds them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pellucid.text.check import scan
from pellucid.text.check.scan import LineProblem, find_marks, repaired, scan_block

CASES = {
    "\0": "nul",
    "a\rb": "carriage_return",
    "\x0b": "odd_separator",
    "\x1d": "odd_separator",
    "\x85": "windows_1252",
    "\u2028": "odd_separator",
    "\u2029": "odd_separator",
    "\x1b": "control",
    "\x7f": "control",
    "\x96": "windows_1252",
    "\x9d": "control",
    "\ue000": "unusual",
    "\uf8ff": "unusual",
    "\ufffd": "unusual",
    "\uffff": "unusual",
    "\U000f0000": "unusual",
    "\U00100000": "unusual",
}
CLEAN = (
    "Größe, déjà vu\t«naïve» “so” – ‘x’ … l’été ça 日本語、「はい」 ２ привет\u200cی  a\xa0b 👍 €\n"
)


@pytest.mark.parametrize(("text", "mark"), CASES.items(), ids=[ascii(text) for text in CASES])
def test_each_kind_is_found_and_named(text, mark):
    before = "ä–x "
    found = find_marks((before + text + " y").encode())
    assert list(found) == [mark]
    assert found[mark][0] >= len(before.encode())


def test_text_of_many_scripts_is_clean():
    assert find_marks(CLEAN.encode()) == {}


@pytest.mark.parametrize(
    ("block", "problem", "rows"),
    [
        (b"a\r\nb\r", "crlf", [0]),
        (b"a\r\nb\r", "carriage_return", [1]),
        (b"abc\r", "crlf", []),
        (b"abc\r", "carriage_return", [0]),
        ("a\n\u200b\n\n\u3000\nb\u200b\n\u00ad\u2060".encode(), "empty", [1, 2, 3, 5]),
        (b"", "empty", [0]),
        (b"\r\n\x80", "empty", [0]),
        ("a\n\ufdd0\nb\ufdef\n\ufdf0".encode(), "unusual", [1, 2]),
        ("a\ufeffb".encode(), "invisible", [0]),
    ],
)
def test_the_lines_with_a_problem_are_found(block: bytes, problem: LineProblem, rows: list[int]):
    assert scan_block(block).problems[problem].tolist() == rows


def test_a_character_cut_at_the_end_is_no_mark():
    assert find_marks(b"a\xe2\x80") == {}
    assert find_marks(b"a\xe2") == {}
    assert find_marks(b"\xc2") == {}


ODD_BYTES = st.sampled_from([*(text.encode() for text in CASES), b"\xe2", b"\xc3", b"\xef", b"a\n"])


@settings(deadline=None)
@given(st.lists(st.one_of(ODD_BYTES, st.binary(max_size=3), st.text(max_size=3).map(str.encode))))
def test_the_tables_overlook_nothing_the_patterns_see(parts):
    text = b"".join(parts)
    places = [place for found in find_marks(text).values() for place in found]
    every = {p for p in range(len(text)) if scan._ANY.match(text, p)}
    assert set(places) == every


def test_what_is_mended_and_what_is_left():
    line = "a\u2028b\rc\0d\x1be\ufefff\x85g\xadh\u200ei\x9dj"
    assert repaired(line) == "a b cdef…g\xadh\u200eij"
