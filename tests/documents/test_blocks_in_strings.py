"""Blocks of HTML within a string or a line of Markdown: each is a sentence of its own."""

import json

import pytest

from pellucid.documents.formats import ReadOptions
from pellucid.documents.translate import translate_document
from tests.documents.stand_in import Swapping
from tests.documents.test_untouched_bytes import Capitals, Identity

PO = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid {}\nmsgstr ""\n'
XLIFF = (
    '<xliff version="1.2"><file source-language="en" original="x" datatype="plaintext"><body>'
    '<trans-unit id="1"><source>{}</source></trans-unit></body></file></xliff>'
)


def seen(source: str, name: str, *columns: str) -> list[str]:
    """The sentences that reach a translator; one that says the same changes nothing."""
    options = ReadOptions(columns=columns)
    said = translate_document(source.encode(), Identity(), name, options=options).decode()
    if not name.endswith((".po", ".xlf")):
        assert said == source
    swapping = Swapping()
    translate_document(source.encode(), swapping, name, options=options)
    return list(dict.fromkeys(swapping.seen))


BLOCKS = [
    (
        "<h2>A dog</h2><p>A man runs.</p><ul><li>A red car</li><li>Two cats</li></ul>",
        ["A dog", "A man runs.", "A red car", "Two cats"],
    ),
    ("<P>A dog</P> <P>Yes</P>", ["A dog", "Yes"]),
    ("<p>A dog<p>A man", ["A dog", "A man"]),
    ("<table><tr><td>A dog</td><td>a cat</td></tr></table>", ["A dog", "a cat"]),
    ("<p>A <b>dog</b> runs</p><p>Yes</p>", ["A dog runs", "Yes"]),
    ("A dog<hr/>A man", ["A dog", "A man"]),
    ("A dog<div class='x'>A man", ["A dog", "A man"]),
    ("<div>A dog <b>runs<p>and a cat</p></b> goes</div>", ["A dog runs", "and a cat", "goes"]),
    ("<p><code>ls</code> is</p><p>A dog</p>", ["ls is", "is", "A dog"]),
    # what is within a sentence stays in it
    ("A <b>red</b><i>dish</i> <a href='x'>dog</a>", ["A reddish dog"]),
    ("<p>A red dog</p>", ["A red dog"]),
]


@pytest.mark.parametrize(("text", "found"), BLOCKS)
def test_a_block_in_a_string_is_a_sentence_in_every_format(text: str, found: list[str]):
    escaped = text.replace("<", "&lt;").replace(">", "&gt;")
    sources = {
        "a.json": json.dumps({"a": text}),
        "a.yaml": f"a: {json.dumps(text)}\n",
        "a.po": PO.format(json.dumps(text)),
        "a.properties": f"a={text}\n",
        "a.strings": f'"a" = {json.dumps(text)};\n',
        "a.xlf": XLIFF.format(escaped),
        "strings.xml": f'<resources><string name="a"><![CDATA[{text}]]></string></resources>',
    }
    for name, source in sources.items():
        assert sorted(seen(source, name)) == sorted(found), name
    cell = text.replace("'", "")
    assert sorted(seen(f"a;b\n1;{cell}\n", "a.csv", "b")) == sorted(found)


def test_a_block_that_is_escaped_in_android_is_a_sentence():
    text = "&lt;p>A dog&lt;/p>&lt;p>A man&lt;/p>"
    source = f'<resources><string name="a">{text}</string></resources>'
    assert seen(source, "strings.xml") == ["A dog", "A man"]


def test_a_name_in_angle_brackets_is_no_block():
    """Programs write ``<dir>`` for what a user gives."""
    source = json.dumps({"a": "Move the <dir> to <template> here"})
    assert seen(source, "a.json") == ["Move the  to  here"]


def test_blocks_in_forms_of_a_plural():
    text = "{n, plural, one {<p># dog</p><p>runs</p>} other {<p># dogs</p><p>run</p>}}"
    assert set(seen(json.dumps({"a": text}), "a.json")) == {"1 dog", "runs", "5 dogs", "run"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "{$START_PARAGRAPH}A dog{$CLOSE_PARAGRAPH}{$START_PARAGRAPH}A cat{$CLOSE_PARAGRAPH}",
            ["A dog", "A cat"],
        ),
        ("{START_LIST_ITEM}A dog{CLOSE_LIST_ITEM}{START_LIST_ITEM_1}B", ["A dog", "B"]),
        ("{$startTagDiv}A dog{$closeTagDiv}{$startTagB}old{$closeTagB}", ["A dog", "old"]),
        ("{$START_TAG_B}A{$CLOSE_TAG_B} dog", ["A dog"]),
    ],
)
def test_blocks_of_angular(text: str, found: list[str]):
    assert sorted(seen(json.dumps({"a": text}), "a.json")) == sorted(found)


@pytest.mark.parametrize(
    "source",
    [
        '<x id="START_PARAGRAPH" equiv-text="&lt;p&gt;"/>A dog<x id="E" equiv-text="&lt;/p&gt;"/>'
        '<x id="S" equiv-text="&lt;p class=&quot;x&quot;&gt;"/>A cat',
        '<bpt id="1">&lt;p&gt;</bpt>A dog<ept id="1">&lt;/p&gt;</ept><bpt id="2">&lt;p&gt;</bpt>'
        'A cat<ept id="2">&lt;/p&gt;</ept>',
        '<g id="1" ctype="x-p">A dog</g><g id="2" ctype="x-html-li">A cat</g>',
        '<pc id="1" dispStart="&lt;p&gt;">A dog</pc><pc id="2" dispStart="&lt;p&gt;">A cat</pc>',
    ],
)
def test_elements_of_xliff_that_stand_for_blocks(source: str):
    assert seen(XLIFF.format(source), "a.xlf") == ["A dog", "A cat"]
    written = translate_document(XLIFF.format(source).encode(), Capitals(), "a.xlf").decode()
    assert source.replace("A dog", "A DOG").replace("A cat", "A CAT") in written


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("- A <b>dog</b><p>runs</p>\n", ["A dog", "runs"]),
        ("A line <div>with block</div> here\n", ["A line", "with block", "here"]),
        ("| a |\n|---|\n| A dog<p>A cat</p> |\n", ["a", "A dog", "A cat"]),
        ("| a |\n|---|\n| <ul><li>red</li><li>old</li></ul> |\n", ["a", "red", "old"]),
        # a block of HTML behind the mark of a list or of a quote
        ("- <div>A dog</div><div>A cat</div>\n", ["A dog", "A cat"]),
        (
            "1. <details>\n   <summary>Old</summary>\n\n   A cat\n\n   </details>\n",
            ["Old", "A cat"],
        ),
        ("> <div>\n> A red\n> dog\n>\n> <p>Two cats</p>\n> </div>\n", ["A red dog", "Two cats"]),
        ("> - <p>A dog</p>\n", ["A dog"]),
    ],
)
def test_a_block_in_a_line_of_markdown_is_a_sentence(source: str, found: list[str]):
    assert sorted(seen(source, "a.md")) == sorted(found)
    capitals = translate_document(source.encode(), Capitals(), "a.md").decode()
    for sign in (" ", "\n>", "\n"):
        capitals, source = capitals.replace(sign, ""), source.replace(sign, "")
    assert capitals.lower() == source.lower()


def test_a_block_of_html_in_a_quote_keeps_the_marks_of_its_lines():
    source = "> <p>\r\n> A red\r\n> dog\r\n> </p>\r\n"
    found = translate_document(source.encode(), Capitals(), "a.md").decode()
    assert found == "> <p>\r\n> A RED DOG\r\n> </p>\r\n"
