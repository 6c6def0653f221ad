"""HTML is taken apart and put together again; only what a reader reads changes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pellucid.serve.html_text import read_html

PIECES = st.sampled_from(
    (
        *("<p>", "</p>", "<br/>", "<a href='x&amp;y'>", "</a>", "<b", ">", "<", "&lt;", "&amp"),
        *("&#233;", "<!-- a -->", "<!--", "<script>", "</script>", "<code>", "</code>", "un chat"),
        *(" ", "\n", "é", '<span translate="no">', "</span>", "<![CDATA[x]]>", "<!doctype html>"),
        *("<?php x?>", "\xa0"),
    )
)


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("", ()),
        ("un chat", ("un chat",)),
        ("<p>Un <b>chat</b> noir.</p>\n", ("Un", "chat", "noir.")),
        ("<p>a &lt; b &amp; c &eacute; &#x1F642;</p>", ("a < b & c é 🙂",)),
        ("<p>a\n  b</p><pre>c\n  d</pre>", ("a b", "c\n  d")),
        ("<script>if (a < b) x()</script><style>p > a {}</style><code>x = 1</code>y", ("y",)),
        ('<span translate="no">:<b>chat</b>:</span> un', ("un",)),
        ('<p translate="no">a<br>b<p>c</p>d</p>e', ("e",)),
        ("<!-- un --><!doctype html><?php un?><![CDATA[un]]>", ()),
        ("<br>… — !<hr/>", ()),
        ("<P CLASS=x>un", ("un",)),
        ("a < b", ("a < b",)),
        ("un <b", ("un <b",)),
        ("un &amp", ("un &",)),
        ("a\xa0b", ("a\xa0b",)),
    ],
)
def test_what_a_reader_reads_is_found(source: str, texts: tuple[str, ...]):
    assert read_html(source).texts == texts


@pytest.mark.parametrize(
    "source",
    [
        '<p class="a">Un <a href="x?a=1&amp;b=2" rel=tag>chat</a>, <br/>noir &amp; beau.</p>',
        "<!DOCTYPE html><!-- a > b --><p>un</p>\n<hr>\n<![if IE]><?x y?><![CDATA[z]]>",
        "<script>a && b < c</script> un <style>a > b</style>",
        '<span translate="no">&lt;un&gt; &amp;</span>\t deux ',
        "<pre>un\n\n  deux</pre>",
    ],
)
def test_with_its_own_texts_it_is_what_it_was(source: str):
    document = read_html(source)
    assert document.with_texts(document.texts).lower() == source.lower()


def test_a_translation_becomes_text_and_never_markup():
    document = read_html("<p>un</p>")
    assert document.with_texts(["<b>&"]) == "<p>&lt;b&gt;&amp;</p>"


@given(st.lists(PIECES, max_size=12).map("".join))
@settings(max_examples=300, deadline=None)
def test_whatever_it_is_a_second_reading_finds_the_same(source: str):
    first = read_html(source)
    assert len(first.markup) == len(first.texts) + 1
    again = first.with_texts(first.texts)
    assert read_html(again).texts == first.texts
    assert read_html(again).with_texts(first.texts) == again


def test_a_tag_that_never_ends_is_not_tried_again_and_again():
    """Linear, or this would take minutes."""
    assert len(read_html("<a " * 300_000).texts) == 1
