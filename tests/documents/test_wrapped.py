"""Lines of plain text that a program wrapped are one text, and others are not."""

import pytest

from pellucid.documents.markup import translate_segments
from pellucid.documents.plain import TextDocument
from pellucid.documents.wrapped import wrapped_paragraphs
from tests.documents.stand_in import Swapping, translated

MAIL = (
    "Hi Bob,\n\n"
    "I wrote all of this in lines of seventy columns so that a sentence of\n"
    "mine goes on in the next line, and here at the end of one is a well-\n"
    "known word\n\n"
    "> the lines that somebody quotes have a sign before each of them, which\n"
    "> is no word\n"
    ">> and so on\n\n"
    "  * the first item of a list, which goes on in a second line with some\n"
    "    more words\n"
    "  * the second item\n"
)


def texts_of(source: str) -> list[str]:
    return [segment.text for segment in TextDocument(source.encode(), "a.txt").segments]


def test_a_wrapped_paragraph_is_one_text_without_the_marks_of_quotes():
    assert texts_of(MAIL) == [
        "Hi Bob,",
        "I wrote all of this in lines of seventy columns so that a sentence of mine goes on in the"
        " next line, and here at the end of one is a well-known word",
        "the lines that somebody quotes have a sign before each of them, which is no word",
        ">> and so on",
        "the first item of a list, which goes on in a second line with some more words",
        "* the second item",
    ]


def test_a_translation_is_wrapped_at_the_same_column_behind_the_same_marks():
    found = translated(MAIL.replace("seventy", "seven"), "a.txt", kind="txt")
    lines = found.splitlines()
    assert max(map(len, lines)) <= max(map(len, MAIL.splitlines()))
    assert sum(line.startswith("> ") for line in lines) == 2
    assert [line[:4] for line in lines if line.startswith(" ")] == ["  * ", "    ", "  * "]


@pytest.mark.parametrize("end", ["\n", "\r\n", " \n"])
def test_lines_that_stay_the_same_stay_to_the_byte(end: str):
    source = MAIL.replace("\n", end).encode()
    document = TextDocument(source, "a.txt")
    assert document.write(document.segments) == source
    [first, *rest] = translate_segments(document.segments, Swapping())
    assert document.write([document.segments[0], *rest]).startswith(b"Hi Bob,")
    assert first.text != "Hi Bob,"


@pytest.mark.parametrize(
    "lines",
    [
        # one sentence a line, a poem, a table, a list of settings, short lines
        ["A man in a blue shirt stands on a ladder and cleans a window.", "two dogs are running"],
        ["Shall I compare thee to a day in summer", "thou art more lovely", "and more temperate"],
        ["name of the thing that we have here today     price of it", "red house     5"],
        ["a line that is not so long", "and has space for words", "as the widest of them is" * 3],
        ["x" * 120, "y"],
        # commands, one a line, of which the longest two come first
        ["turn left after you look right and walk to the house twice"] * 2
        + ["walk to the red house"] * 16,
    ],
)
def test_other_lines_are_as_many_texts(lines: list[str]):
    assert not wrapped_paragraphs([f"{line}\n" for line in lines])


@pytest.mark.parametrize(
    ("end", "start", "joined"),
    [
        ("well-", "known", "well-known"),
        ("Vor-", "und Nachteile", "Vor- und Nachteile"),
        ("voor-", "en nadelen", "voor- en nadelen"),
    ],
)
def test_a_hyphen_at_the_end_of_a_line(end: str, start: str, joined: str):
    line = f"{'word ' * 12}{end}"
    assert texts_of(f"{line}\n{start}\n") == [f"{'word ' * 12}{joined}"]
