"""HTML and XML are taken apart and put together again; only what people read changes."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pellucid.core.errors import DataError
from pellucid.documents.attributes import attributes_of, readable_attributes
from pellucid.documents.formats import read_document
from pellucid.documents.html_files import HtmlDocument
from pellucid.documents.html_parser import PlacedParser
from pellucid.documents.html_rules import PAGE, TagRules
from pellucid.documents.markup import translate_segments
from pellucid.documents.placement import Aligned
from pellucid.documents.plain import TaggedText
from pellucid.documents.translate import translate_document
from tests.documents.stand_in import Swapping

PIECES = st.sampled_from(
    (
        *("<p>", "</p>", "<br/>", "<a href='x&amp;y' title=\"old cat\">", "</a>", "<b", ">", "<"),
        *("&lt;", "&amp", "&#233;", "<!-- a -->", "<!--", "<script>", "</script>", "<code>"),
        *("</code>", "un chat", " ", "\n", "é", '<span translate="no">', "</span>", "<img alt=x>"),
        *("<![CDATA[x]]>", "<!doctype html>", "<?php x?>", "\xa0", "<b>", "</b>", "<i title=a b>"),
        *("<![x]>", "<![ ", "&#;", "&#", "\ue000", "<li translate=no>", "<li>", "</ul>", "<p>"),
    )
)
XML = TagRules(is_xml=True, finds_outline=True)


class Identity(Swapping):
    """Says the same again."""

    def one(self, sentence: str, align: bool) -> Aligned:
        return Aligned(sentence, tuple(((n, n + 1), (n, n + 1), 1.0) for n in range(len(sentence))))


def swapped(source: str, rules: TagRules = TagRules(), **options) -> str:  # noqa: B008
    document = HtmlDocument(source, rules)
    return document.text_with(translate_segments(document.segments, Swapping(), **options))


def texts(source: str, rules: TagRules = TagRules()) -> list[str]:  # noqa: B008
    return [segment.text for segment in HtmlDocument(source, rules).segments]


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("", []),
        ("un chat", ["un chat"]),
        ("<p>Un <b>chat</b> noir.</p>\n", ["Un chat noir."]),
        ("<p>a &lt; b &amp; c &eacute; &#x1F642;</p>", ["a < b & c é 🙂"]),
        ("<p>a\n  b</p><pre>c\n  d</pre>", ["a b", "c\n  d"]),
        ("<script>if (a < b) x()</script><style>p > a {}</style><code>x = 1</code>y", ["y"]),
        ('<span translate="no">:<b>chat</b>:</span> un', [" un"]),
        ('<p translate="no">a<br>b<p>c</p>d</p>e', ["c", "d", "e"]),
        ('<div translate="no">a<div>b</div>c</div>e', ["e"]),
        ('<ul><li translate="no">Marke<li>eins<li>zwei</ul><p>mehr</p>', ["eins", "zwei", "mehr"]),
        ('<ul><li translate="no">Marke<p>x<ul><li>y</ul><li>eins</ul>mehr', ["eins", "mehr"]),
        ('<p>a <span class="notranslate">b</b> c</span> d</p>', ["a  d"]),
        ("<table><tr><td translate=no>x<td>y<tr translate=no><td>z</table>e", ["y", "e"]),
        ("<ul><li><p translate=no>Marke<li>eins<li>zwei</ul>drei", ["eins", "zwei", "drei"]),
        ("<table><tr><td><p class=notranslate>a<td>b<tr><td>c</table>d", ["b", "c", "d"]),
        ("<dl><dt><p translate=no>Marke<dd>eins</dl>", ["eins"]),
        ("<p translate=no>a<center>b</center><p translate=no>c<summary>d</summary>", ["b", "d"]),
        ("<ruby>a<rt>x<rtc>y<rb>b</rb></ruby> c", ["ab c"]),
        ("<table><caption translate=no>a<tr><td>b</table>", ["b"]),
        ("<table><tbody translate=no><tr><td>a<tbody><tr><td>b</table>c", ["b", "c"]),
        ("<head translate=no><title>a</title><body>b<p>c", ["b", "c"]),
        ("<p translate=no>a<select><option>b<hr><option>c</select>d</p>e", ["e"]),
        (f"<ul>{'<li>a' * 70}<li translate=no>b</ul>c", ["a"] * 70 + ["c"]),
        (f"<table>{'<tr><td>a' * 70}<td translate=no>b</table>c", ["a"] * 70 + ["c"]),
        (f"<table><td translate=no><ul>{'<li>a' * 70}</ul><td>b</table>", ["b"]),
        ("<p>a <span translate=no>b</p><p>c<p><code>d<div>e</div></p>f", ["a", "c", "f"]),
        ("<ul><li><span translate=no>a<div>b</div>c<li>d</ul>e", ["e"]),
        ("<b>a<p><i translate=no>b</b> c</i> d", ["a", " d"]),
        ("<p>un<xmp>code</xmp>chat<noframes>x</noframes>noir", ["un", "chat", "noir"]),
        ("<p>Nr &#; un</p><p>chat <b>noir</b></p>", ["Nr &#; un", "chat noir"]),
        ("<p>un &# chat</p><p>&#x; &#12a; &#65</p>&#6", ["un &# chat", "&#x; a; A"]),
        ("<p>a <![x]> b</p><p>c</p><p>d <![ e</p>", ["a  b", "c", "d "]),
        ("<p>a</p><![endif]--><p>b</p>", ["a", "b"]),
        ("<p>caf&#233e &#233; &amp;lt;</p>", ["cafée é &lt;"]),
        ("<!-- un --><!doctype html><?php un?><![CDATA[un]]>", []),
        ("<p>a<!--><p>b<!---><p>c<!-- x --!><p>d<!-- -- x -- ><p>e--><p>f", [*"abcdf"]),
        ("<p>a<!--!><p>b", ["a"]),
        ("<p>un</> chat</p>", ["un chat"]),
        ('<script src="a.js"/>document.write("un")</script><style/>b {}</style>c', ["c"]),
        ('<?xml version="1.0"?><html><script src="a.js"/><p>b</p><script>c</script>', ["b"]),
        ('<html xmlns="http://www.w3.org/1999/xhtml"><style/><p>b<style>c</style>', ["b"]),
        ("<script/><p>b", ["b"]),
        ("<script/>a = '<script>'</script>b", ["b"]),
        ("<br>… — !<hr/>", []),
        ("<P CLASS=x>un", ["un"]),
        ("a < b", ["a < b"]),
        ("un <b", ["un"]),
        ("un &amp", ["un &"]),
        ("a\xa0b", ["a\xa0b"]),
    ],
)
def test_what_a_reader_reads_is_found(source: str, found: list[str]):
    assert texts(source) == found


@given(st.lists(PIECES, max_size=14).map("".join), st.sampled_from((TagRules(), XML)))
@settings(max_examples=300, deadline=None)
def test_whatever_it_is_an_identity_leaves_every_byte_and_no_tag_is_lost(source, rules):
    document = HtmlDocument(source, rules)
    again = translate_segments(document.segments, Identity())
    assert again == document.segments
    assert document.text_with(again) == source

    found = swapped(source, rules)
    for tag in ("<p>", "</p>", "<br/>", "</a>", "<script>", "<!-- a -->", "<?php x?>", "</span>"):
        assert found.count(tag) == source.count(tag)


@pytest.mark.parametrize(
    "source",
    [
        "é<img alt=x>é",
        "Eins<br/>zw<b>ei</b>",
        "H<sub>2</sub>O ist W<i>ass</i>er",
        "ab<a>cd</a>e<!-- x -->f abcdef",
        "<b>ab</b>cd ab<b>cd</b>",
    ],
)
def test_a_mark_within_a_word_stays_there_if_the_word_is_the_same(source: str):
    document = HtmlDocument(source)
    again = translate_segments(document.segments, Identity())
    assert document.text_with(again) == source


def test_a_translation_becomes_text_and_never_markup():
    class Markup(Swapping):
        def one(self, sentence: str, align: bool) -> Aligned:
            return Aligned('<b>&"')

    document = HtmlDocument("<p title='a'>un</p>", TagRules(with_attributes=True))
    found = document.text_with(translate_segments(document.segments, Markup()))
    assert found == "<p title='&lt;b&gt;&amp;&quot;'>&lt;b&gt;&amp;\"</p>"


def test_a_tag_that_never_ends_is_not_tried_again_and_again():
    """Linear, or this would take minutes."""
    for source in ("<a " * 300_000, "<a title='" * 100_000, "<a b=c " * 100_000 + ">"):
        assert HtmlDocument(source, TagRules(with_attributes=True)).text_with([]) == source


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('<img src="red.png" alt="red house">', '<img src="red.png" alt="HOUSE RED">'),
        ("<img alt=red width=3>", '<img alt="RED" width=3>'),
        ("<a title='red &amp; old'>x</a>", "<a title='RED&amp;OLD'>X</a>"),
        ('<input placeholder="a b" value="a b">', '<input placeholder="B A" value="a b">'),
        ('<input type="Submit" value="red house">', '<input type="Submit" value="HOUSE RED">'),
        ('<p aria-label="a b"><b>red</b> house</p>', '<p aria-label="B A">HOUSE <b>RED</b></p>'),
        ('<meta name="description" content="a b">', '<meta name="description" content="B A">'),
        (
            '<meta property="og:image:alt" content="a b">',
            '<meta property="og:image:alt" content="B A">',
        ),
        ('<meta itemprop="headline" content="a b">', '<meta itemprop="headline" content="B A">'),
        ('<iframe title="a b"><p>c d</iframe>', '<iframe title="B A"><p>c d</iframe>'),
        (
            '<svg aria-label="a b"><g aria-label="c d"/></svg>',
            '<svg aria-label="B A"><g aria-label="c d"/></svg>',
        ),
        ('<kbd title="a b">c d</kbd>', '<kbd title="B A">c d</kbd>'),
        ('<meta name="robots" content="a b">', '<meta name="robots" content="a b">'),
        ('<p translate="no" title="a b">c</p>', '<p translate="no" title="a b">c</p>'),
        ('<link rel="stylesheet" title="a b">', '<link rel="stylesheet" title="a b">'),
        ('<p title="12" lang="en">3</p>', '<p title="12" lang="en">3</p>'),
    ],
)
def test_attributes_that_people_read_are_translated_and_others_stay(source: str, found: str):
    assert swapped(source, TagRules(with_attributes=True)) == found
    if "<b>" not in source:
        assert swapped(source).lower() == source.lower()


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("<p>red&zwnj;&nbsp;&zwnj;&#847; &shy;</p>", "<p>RED&zwnj;&nbsp;&zwnj;&#847; &shy;</p>"),
        ("<td>&nbsp;red house\u00a0</td>", "<td>&nbsp;HOUSE RED\u00a0</td>"),
        ("<p>a&shy;b c\u00add</p>", "<p>CD AB</p>"),
        ("old cat\n\n red <b>house</b>\nstands", "CAT OLD\n\n <b>HOUSE</b> RED STANDS"),
        ("<div>old\ncat\r\n\r\nred house</div>", "<div>CAT OLD\r\n\r\nHOUSE RED</div>"),
        # a template left the blank line
        ("<p>old\n\n  cat</p>", "<p>CAT OLD</p>"),
        ("<td>old\n\n  {{ red }}</td>", "<td>OLD {{ red }}</td>"),
    ],
)
def test_what_shows_nothing_and_empty_lines_are_layout(source: str, found: str):
    assert swapped(source) == found


def test_of_two_attributes_of_a_name_the_first_counts():
    rules = TagRules(with_attributes=True)
    assert swapped("<img alt='red house' alt='cat'>", rules) == "<img alt='HOUSE RED' alt='cat'>"


def test_an_address_that_the_parser_resolves_otherwise_hides_no_text():
    """``&region=`` is ``®ion=`` to older versions of Python, and stays in newer ones."""
    source = '<img src="x?a=1&region=2" alt="red house">'
    for address in ("x?a=1®ion=2", "x?a=1&region=2"):
        parsed = [("src", address), ("alt", "red house")]
        [found] = readable_attributes("img", source, parsed)
        assert (found.name, found.value) == ("alt", "red house")


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("<a b='c d' e=f g>", [("b", "c d"), ("e", "f"), ("g", "")]),
        ("<a b = \"c>d\"  E='&amp;' />", [("b", "c>d"), ("e", "&")]),
        ("<a =b=c>", [("=b", "c")]),
        ("<a b='c", [("b", "c")]),
        ("<a/b=c/d>", [("b", "c/d")]),
    ],
)
def test_attributes_are_divided_as_the_standard_says(source: str, found: list):
    assert [(each.name, each.value) for each in attributes_of(source)] == found


class OneSpace(Swapping):
    """Says the words in capitals, in order, with one space between them, as models do."""

    def one(self, sentence: str, align: bool) -> Aligned:
        text, links = "", []
        for word in re.finditer(r"\S+", sentence):
            text += " " if text else ""
            links.append((word.span(), (len(text), len(text) + len(word[0])), 1.0))
            text += word[0].upper()
        return Aligned(text, tuple(links))


@pytest.mark.parametrize(
    "source",
    [
        "red <img> house",
        "red <img> <img> house",
        "red <img><img> house",
        "red house <img>",
        "<img> red house",
        "<b>red house</b> <img> old cat",
        "red house<img>, old cat",
        "red house <img>. old cat",
        "<b>red <img> house</b>",
        "red <!-- a note --> house",
        "red<img> house <img>old",
    ],
)
def test_a_picture_between_words_keeps_the_spaces_beside_it(source: str):
    document = HtmlDocument(source)
    found = document.text_with(translate_segments(document.segments, OneSpace()))
    assert found.lower() == source


def test_in_xml_the_outline_divides_and_names_mean_nothing():
    source = (
        "<doc><title>red house</title><par>old <x:b>cat</x:b> here <note/></par><script>a b"
        "</script></doc>"
    )
    assert texts(source, XML) == ["red house", "old cat here ", "a b"]
    assert swapped(source, XML) == (
        "<doc><title>HOUSE RED</title><par><x:b>CAT</x:b> OLD HERE <note/></par><script>B A"
        "</script></doc>"
    )
    assert texts("red <b>old</b> house", XML) == ["red old house"]
    assert texts(source, TagRules(is_xml=True)) == ["red houseold cat here a b"]
    splits = TagRules(is_xml=True, divides=frozenset(("title", "par")), opaque=frozenset(("x:b",)))
    assert texts(source, splits) == ["red house", "old  here ", "a b"]
    assert "<x:b>cat</x:b>" in swapped(source, splits)


def test_in_xml_no_element_ends_without_its_end_tag():
    source = "<li><li translate='no'>a<li>b</li>c</li><p>d<p>e</p></p>f</li>"
    assert texts(source, TagRules(is_xml=True)) == ["def"]


def test_tags_in_a_script_of_a_string_are_kept():
    text = TaggedText("<script>red <b>old</b></script> <title>a <i>b</i></title>")
    kept = [piece for piece in text.segment.pieces if not isinstance(piece, str)]
    assert len(kept) == 8
    assert text.segment.text == "red old a b"


def test_without_attention_each_text_is_translated_by_itself():
    found = swapped("<p>the red <b>old cat</b> is here</p>", by_text=True)
    assert found == "<p>RED THE <b>CAT OLD</b> HERE IS</p>"


def test_without_splitting_a_text_is_one_sentence():
    stand_in = Swapping()
    document = HtmlDocument("<p>Red house. Old <b>cat</b>.</p>")
    translate_segments(document.segments, stand_in, split=False)
    assert stand_in.seen == ["Red house. Old cat."]


def test_attributes_and_strings_with_a_sign_that_is_no_reference_stay():
    found = swapped('<p title="red house &#;">old cat &#</p><p>x', PAGE)
    assert found == '<p title="HOUSE RED&amp;#;">CAT OLD&amp;#</p><p>X'
    text = TaggedText("nummer &# <b>fett</b> hallo")
    assert text.segment.text == "nummer &# fett hallo"
    assert len(text.segment.marks) == 2
    assert text.text_with(text.segment) == "nummer &# <b>fett</b> hallo"
    assert TaggedText("wert <![x]> <b>hallo</b>").segment.text == "wert <![x]> hallo"


def test_many_signs_that_are_no_references_take_linear_time():
    source = "<p>" + "&#" * 100_000 + " chat</p>"
    assert len(texts(source)) == 1


def test_a_title_and_a_text_area_are_read_where_the_parser_takes_them_for_text(
    monkeypatch: pytest.MonkeyPatch,
):
    """As Python does since 3.11.14, 3.12.12 and 3.13.6."""
    raw = ("script", "style", "title", "textarea", "xmp", "iframe", "noembed", "noframes")
    source = (
        "<title>red &amp; old house</title><textarea title=x>old\n cat &lt;</textarea><p>a b</p>"
        "<xmp><p>c</xmp><iframe>c d</iframe><noembed>c</noembed><noframes>c</noframes>"
        "<script>a b</script>"
    )
    found = ["red & old house", "old\n cat <", "a b"]
    assert texts(source) == found
    monkeypatch.setattr(PlacedParser, "CDATA_CONTENT_ELEMENTS", raw)
    assert texts(source) == found
    assert swapped("<title>red house &amp;</title>") == "<title>HOUSE RED&amp;</title>"
    text = TaggedText("<title>a <i>b</i></title>")
    assert len(text.segment.marks) == 4


@pytest.mark.parametrize(
    ("name", "codec"),
    [
        ("shift_jis", "cp932"),
        ("koi8-r", "koi8-r"),
        ("iso-2022-jp", "iso2022_jp"),
        ("gb2312", "gbk"),
        ("utf-16", "utf-8"),
        ("us-ascii", "ascii"),
        ("{{ charset }}", "utf-8"),
    ],
)
def test_html_stays_in_the_encoding_that_it_names(name: str, codec: str):
    words = {"koi8-r": "дом", "us-ascii": "house"}.get(name, "赤い")
    head = f'<meta charset="{name}"><title>{words} 1</title>'
    source = f"{head}<p>{words} red</p>".encode(codec)
    found = translate_document(source, Swapping(), "a.html")
    assert found == f"{head}<p>RED {words}</p>".replace(
        f"{words} 1", f"1 {words.swapcase()}"
    ).replace(f"RED {words}", f"RED {words.swapcase()}").encode(codec)


@pytest.mark.parametrize("content", ["a; CHARSET=koi8-r", "charset = 'koi8-r'; b"])
def test_html_is_read_by_the_older_form_of_its_meta_element(content: str):
    source = f'<meta http-equiv=x content="{content}"><p>red дом</p>'
    found = translate_document(source.encode("koi8-r"), Swapping(), "a.html")
    assert found == source.replace("red дом", "ДОМ RED").encode("koi8-r")


def test_html_is_read_by_its_byte_order_mark_and_by_the_declaration_of_xml():
    for codec in ("utf-16-le", "utf-16-be", "utf-8"):
        source = '\ufeff<meta charset="koi8-r"><p>red zoë</p>'.encode(codec)
        found = translate_document(source, Swapping(), "a.html")
        assert found == '\ufeff<meta charset="koi8-r"><p>ZOË RED</p>'.encode(codec)

    source = "<?xml version='1.0' encoding='ISO-8859-1'?><p>red zoë</p>".encode("latin-1")
    found = translate_document(source, Swapping(), "a.xhtml")
    assert found == source.replace("red zoë".encode("latin-1"), "ZOË RED".encode("latin-1"))


@pytest.mark.parametrize(
    ("source", "message", "hint"),
    [
        (
            b"<meta charset=utf-7><p>+ADw-",
            "is in the encoding utf-7, which is not supported",
            "iconv",
        ),
        (b"<meta charset=foo><p>un", "is in the encoding foo, which is not supported", "-f foo -t"),
        (b"<meta charset=us-ascii>\xe9", "must be text in ascii, and is not", "charset"),
        (b"\xff\xfe\x00\xd8", "must be text in utf-16-le, and is not", "charset"),
        (
            b"<meta charset=shift_jis>\x87\x90",
            "cannot be written again in cp932 to the same bytes",
            "iconv -f cp932 -t UTF-8",
        ),
    ],
)
def test_html_in_another_encoding_is_refused_by_name(source: bytes, message: str, hint: str):
    """In UTF-8, say, the ASCII of ISO-2022-JP would be text to translate."""
    with pytest.raises(DataError) as refused:
        read_document(source, "html", "a.html")
    assert str(refused.value) == f"a.html {message}"
    assert hint in refused.value.hint


@pytest.mark.parametrize(("old", "new"), [("del", "ins"), ("s", "u"), ("strike", "u")])
def test_a_deleted_word_and_the_one_that_replaces_it_are_two(old: str, new: str):
    source = f"<p>It cost <{old}>ten</{old}><{new}>twenty</{new}> euros.</p>"
    translator = Swapping()
    translate_document(source.encode(), translator, "a.html")
    assert translator.seen == ["It cost ten twenty euros."]


@pytest.mark.parametrize(
    ("source", "read"),
    [
        # as Word saves two spaces, and one in another format
        ('A cat<span style="mso-spacerun:yes">&nbsp; </span>came.', ["A cat\xa0 came."]),
        ("A cat came.<b> </b>Dogs left.", ["A cat came.", "Dogs left."]),
        ("a <b>cat</b><i>&nbsp;&nbsp;&nbsp; </i>came", ["a cat came"]),
        ("<input type=radio> Red <input checked type='checkbox'>house", ["Red", "house"]),
        ("Send <input type=number> cats", ["Send  cats"]),
    ],
)
def test_an_element_of_white_space_parts_two_words_and_a_choice_two_texts(
    source: str, read: list[str]
):
    translator = Swapping()
    translate_document(f"<p>{source}</p>".encode(), translator, "a.html")
    assert translator.seen == read


@pytest.mark.parametrize(
    "picture",
    [
        '<i class="material-icons">home</i>',
        '<span class="material-symbols-outlined">arrow_back</span>',
        "<mat-icon>search</mat-icon>",
        '<font face="Wingdings">ü</font>',
        "<span style='font-family:Wingdings;color:red'>Ø</span>",
        "<span style='font-family: \"Symbol\"'>a</span>",
    ],
)
def test_the_name_of_a_picture_is_no_word(picture: str):
    translator = Swapping()
    source = f"<p>{picture} red house</p><p>old {picture}</p><button>{picture}</button>"
    found = translate_document(source.encode(), translator, "a.html").decode()
    assert translator.seen == ["red house", "old"]
    assert found.count(picture) == 3


def test_the_text_of_other_fonts_is_translated():
    for font in ("style='font-family: Segoe UI Symbol'", "style='font-family:Arial'"):
        translator = Swapping()
        translate_document(f"<p><span {font}>red</span></p>".encode(), translator, "a.html")
        assert translator.seen == ["red"]
