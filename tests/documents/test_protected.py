"""Each form of the table of what is not translated is found whole, and nothing around it."""

import re

import pytest

from pellucid.documents.copies import cut_out
from pellucid.documents.protected import FORMS, Form, protect
from pellucid.documents.segments import Segment


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
