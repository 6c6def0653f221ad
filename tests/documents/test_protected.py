"""Each form of the table of what is not translated is found whole, and nothing around it."""

import re

import pytest

from pellucid.documents.copies import cut_out
from pellucid.documents.markup import translate_segments
from pellucid.documents.placement import Aligned
from pellucid.documents.protected import FORMS, Form, literals_in, protect
from pellucid.documents.segments import Alone, Segment
from tests.documents.stand_in import Swapping


@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.dialect} {form.example}")
def test_the_example_of_a_form_is_kept_and_the_words_around_it_are_not(form: Form):
    before = "" if form.kind == "bullet" else "say "
    segment, kept = protect(Segment((f"{before}{form.example} twice",)), keep_numbers=False)
    assert [*kept.values()] == [form.example]
    assert [piece for piece in segment.pieces if isinstance(piece, str)] == [
        piece for piece in (before, " twice") if piece
    ]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.dialect} {form.example}")
def test_no_form_stands_in_the_table_for_nothing(form: Form):
    """Its own pattern matches its example, all of it but for what braces enclose."""
    found = re.match(form.pattern, f"{form.example} twice")
    assert found is not None
    assert found[0] == ("${" if form.kind == "braces" else form.example)


@pytest.mark.parametrize("word", ["house", "पानी"])
def test_two_words_that_a_placeholder_divides_are_two_without_it(word: str):
    text = f"{word}%s{word}"
    shorter, places = cut_out(text, [(len(word), len(word) + 2)])
    assert shorter == f"{word} {word}"
    assert [text[place] for place in places if place != len(word) + 1] == [*word, *word]


class Forgetful(Swapping):
    """Copies no placeholder, and says the rest again in capitals."""

    def one(self, sentence: str, align: bool) -> Aligned:
        if literals_in(sentence):
            return Aligned("lost")
        links = tuple((found.span(), found.span(), 1.0) for found in re.finditer(r"\S", sentence))
        return Aligned(sentence.upper(), links)


def written(text: str) -> str:
    [found] = translate_segments([Segment((text,))], Forgetful())
    return found.text


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("%s (optional)", "%s (OPTIONAL)"),
        ("{name} & friends", "{name} & FRIENDS"),
        ("at 0x%lx bytes", "AT 0X%lx BYTES"),
        ("size:    %d\tof", "SIZE:    %d\tOF"),
        ("the {n}-day trial", "THE {n}-DAY TRIAL"),
        ("{a}  {b} files", "{a}  {b} FILES"),
        ("{n}\u00a0: files", "{n}\u00a0: FILES"),
        ("%s : nothing", "%s : NOTHING"),
        ("第{n}章", "第{n}章"),
        ("猫が{n}匹います", "猫が{n}匹います"),
        ("{prefix}filename", "{prefix}FILENAME"),
        ("%dx%d files", "%dx%d FILES"),
    ],
)
def test_a_placeholder_that_is_put_back_has_the_white_space_that_it_had(source: str, found: str):
    assert written(source) == found


def test_a_placeholder_touches_the_word_that_it_touched_wherever_that_stands():

    class Turned(Forgetful):
        def one(self, sentence: str, align: bool) -> Aligned:
            if literals_in(sentence):
                return Aligned("lost")
            return Aligned("HAUS DAS", (((0, 3), (5, 8), 1.0), ((4, 9), (0, 4), 1.0)))

    [found] = translate_segments([Segment(("the%s house",))], Turned())
    assert found.text == "HAUS DAS%s"
    [found] = translate_segments([Segment(("the %shouse",))], Turned())
    assert found.text == "%sHAUS DAS"


@pytest.mark.parametrize(
    "source",
    [
        "read %{link_start}our guide%{link_end} now",
        "%(linkStart)shere%(linkEnd)s or %(a_open)sthere%(a_close)s",
        "{linkstart}our guide.{linkend}",
        "see %1$sour guide%2$s",
        "see %sour guide%s",
        "{0}here{1} for {2}",
        "a {{b}}big {{name}} man{{/b}} here",
        "点击%1$s这里%2$s继续",
    ],
)
def test_two_placeholders_around_words_are_a_pair(source: str):
    """The first word was left as it was: up to four letters behind a placeholder may be a unit."""
    words = re.sub(r"%\d\$s|%?\{[^{}]*\}|%\(\w+\)s|%s|[{}]", " ", source)
    found = written(source)
    placeholders = re.findall(r"%\d\$s|%?\{+[^{}]*\}+|%\(\w+\)s|%s", source)
    assert re.findall(r"%\d\$s|%?\{+[^{}]*\}+|%\(\w+\)s|%s", found) == placeholders
    assert found.upper() == source.upper()
    assert all(word.upper() in found for word in re.findall(r"\w+", words))


@pytest.mark.parametrize(
    "text",
    [
        "from {start_date} to {end_date}",
        "'%s' is not '%s'",
        'role "%1$s" of "%2$s"',
        "%dx%d",
        "{0}px{1}",
        "%s: %sold%s house",
        "%1$sold%3$s house",
        "{{#if x}}yes{{/if}}",
    ],
)
def test_other_placeholders_are_no_pair(text: str):
    segment, _ = protect(Segment((text,)), keep_numbers=False)
    assert all(isinstance(mark, Alone) for mark in segment.marks)
