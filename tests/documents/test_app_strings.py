"""Strings of apps: keys, comments, escapes and forms stay as their programs need them."""

import json
import re

import pytest

from pellucid.core.errors import DataError
from pellucid.documents.formats import ReadOptions, read_document
from pellucid.documents.markup import Counts
from pellucid.documents.placement import Aligned
from pellucid.documents.segments import Segment
from pellucid.documents.translate import translate_document
from tests.documents.stand_in import Swapping, translated
from tests.documents.test_untouched_bytes import Capitals, Identity


def said(source: str, name: str) -> str:
    assert translate_document(source.encode(), Identity(), name) == source.encode()
    return translated(source, name)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("# red\n! old\n\nkey = red house\n", "# red\n! old\n\nkey = HOUSE RED\n"),
        ("a.b:red \\\n   house\n", "a.b:HOUSE RED\n"),
        ("key red house", "key HOUSE RED"),
        ("k\\=\\ x=red\\u0021\r\nempty=\r\n", "k\\=\\ x=RED!\r\nempty=\r\n"),
        ("k=caf\\u00e9 red\n", "k=RED CAF\\u00c9\n"),
        ("k=café red\n", "k=RED CAFÉ\n"),
        ("k=red house\\nold cat\\\\\n", "k=HOUSE RED\\nCAT OLD\\\\\n"),
        ("k={0}: it''s red\n", "k={0}: IT''RED S\n"),
        ("# a comment \\\nk=red\n", "# a comment \\\nk=RED\n"),
        ("red\\\n   old=house cat\n", "red\\\n   old=CAT HOUSE\n"),
        ("a\xa0b=red\nc\x0bd=old", "a\xa0b=RED\nc\x0bd=OLD"),
        ("\\\r\n# x=red\\\r\nk=red", "\\\r\n# x=red\\\r\nk=RED"),
        ("a\\\n  =\\\n  red\nb \\\n : old", "a\\\n  =\\\n  RED\nb \\\n : OLD"),
        ("\\\n\nk=\\\n\nl=red\\", "\\\n\nk=\\\n\nl=RED"),
        ("a \\=red", "a \\=RED"),
    ],
)
def test_properties_of_java(source: str, found: str):
    assert said(source, "a.properties") == found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("k=café: it is {0}", "k=café: c’est {0}"),
        ("k=it is {0,number,integer}", "k=c\\u2019est {0,number,integer}"),
        ("k=it is {name}", "k=c'est {name}"),
        ("k=it is", "k=c'est"),
        ("k=it''s {0}", "k=c''est {0}"),
        ("k=it is '{0}'", "k=c'est '{0}'"),
    ],
)
def test_no_apostrophe_of_a_translation_quotes_an_argument_of_java(source: str, found: str):
    """``MessageFormat`` shows "c'est {0}" as "cest {0}"."""

    class French(Swapping):
        def one(self, sentence: str, align: bool) -> Aligned:
            return Aligned(re.sub("it( is|'s)", "c'est", sentence))

    assert translate_document(source.encode(), French(), "a.properties").decode() == found


def test_properties_that_are_no_utf_8_are_in_latin_1_and_stay_so():
    source = "k=café red\n".encode("latin-1")
    assert translate_document(source, Swapping(), "a.properties") == b"k=RED CAF\\u00c9\n"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('/* red */\n"red key" = "red house %@";\n', '/* red */\n"red key" = "HOUSE RED%@";\n'),
        ('// red\nkey="red \\"cat\\"";', '// red\nkey="RED\\"CAT\\"";'),
        ('"k" = "red house\\nold cat";\n', '"k" = "HOUSE RED\\nCAT OLD";\n'),
        ('"k" = "caf\\U00e9 red";\n', '"k" = "RED CAFÉ";\n'),
        ('"k" = "caf\\335\\041\\40";', '"k" = "CAFÉ! ";'),
        ('"a" /* = */ = // ;\n"red"/**/;//', '"a" /* = */ = // ;\n"RED"/**/;//'),
        (
            "\"red\";old;'k'='\"red\\''; a = cat;",
            '"red" = "RED";old = "OLD";\'k\'=\'"RED\\\'\'; a = "CAT";',
        ),
    ],
)
def test_strings_of_ios(source: str, found: str):
    assert said(source, "a.strings") == found


@pytest.mark.parametrize(
    ("source", "message"),
    [(b'"a" = "b";\n"c" = "d\n', "line 2 does not"), (b"bplist00", "is compiled")],
)
def test_what_is_no_strings_file_is_refused_with_its_line(source: bytes, message: str):
    with pytest.raises(DataError, match=message):
        translate_document(source, Swapping(), "a.strings")


@pytest.mark.parametrize(
    ("inner", "found"),
    [
        ("red house", "HOUSE RED"),
        ("don\\'t &amp; <b>red</b>", "DON\\'T&amp;<b>RED</b>"),
        ('"it\'s red"', '"IT\'RED S"'),
        ("\n  red\n  house\n", "\n  HOUSE RED\n"),
        ("red\\nold cat", "RED\\nCAT OLD"),
        ('<xliff:g id="x">red %s</xliff:g> is', '<xliff:g id="x">red %s</xliff:g> IS'),
        ("<![CDATA[<i>red</i> house]]>", "<![CDATA[HOUSE <i>RED</i>]]>"),
        ("&lt;b>red&lt;/b> house", "HOUSE &lt;b>RED&lt;/b>"),
        ("@string/other_text", "@string/other_text"),
    ],
)
def test_strings_of_android(inner: str, found: str):
    form = (
        '<?xml version="1.0" encoding="utf-8"?>\n<resources xmlns:xliff="x">\n<!-- red -->\n'
        '<string name="a">{}</string><string name="b" translatable="false">old cat</string>'
        "\n</resources>\n"
    )
    assert said(form.format(inner), "values/strings.xml") == form.format(found)


@pytest.mark.parametrize(
    ("inner", "shown", "found"),
    [
        ("? what now", "? what now", r"\? WHAT NOW"),
        (
            "<![CDATA[red]]> &amp; <![CDATA[old <b>cat</b>]]>",
            "red & old cat",
            "RED &amp; OLD &lt;b&gt;CAT&lt;/b&gt;",
        ),
        (
            r"""<![CDATA[<a href=\"x\">red</a> & <font color=\'red\'>old</font>]]>""",
            "red & old",
            r"""<![CDATA[<a href=\"x\">RED</a> & <font color=\'red\'>OLD</font>]]>""",
        ),
        (
            r"&lt;a href=\"x?a&amp;amp;b\"&gt;it\'s&lt;/a&gt;",
            "it's",
            r"&lt;a href=\"x?a&amp;amp;b\"&gt;IT\'S&lt;/a&gt;",
        ),
        (r"\tAdded \\face", "Added face", r"\tADDED \\FACE"),
        (r"Don\u2019t caf\u00e9 \ud83d\ude00", "Don’t café 😀", "DON’T CAFÉ 😀"),
        (r"\u0040red\u0027s \@ a\?", "@red's @ a?", r"\@red\'S @ A?"),
        (r"red\u00a0house:\u0020", "red\xa0house:", "RED\xa0HOUSE:" + r"\u0020"),
        (r"\u200ered\u000aold\ud83d \u003cb>", "redold ", r"\u200eRED\u000aOLD\ud83d \u003cb>"),
        (
            "red <!-- a <b> note --> house <?a b?>",
            "red  house ",
            "RED <!-- a <b> note --> HOUSE <?a b?>",
        ),
        ("red\n \xa0house\xa0", "red \xa0house\xa0", "RED \xa0HOUSE\xa0"),
        ('"red" and  "old"', "red and old", "RED AND OLD"),
        ('"red  <b a="x">it\'s</b>"', "red  it's", '"RED  <b a="x">IT\'S</b>"'),
        (
            'red <string name="c">old</string>',
            "red old",
            'RED <string name="c">OLD</string>',
        ),
        ("@+id/red", None, "@+id/red"),
    ],
)
def test_what_android_shows_is_read_and_the_rest_stays(inner: str, shown: str | None, found: str):
    form = '<resources><string name="a">{}</string></resources>'
    source = form.format(inner).encode()
    document = read_document(source, "android", "strings.xml")
    assert [each.text for each in document.segments] == ([] if shown is None else [shown])
    assert document.write(document.segments) == source
    assert translate_document(source, Capitals(), "strings.xml").decode() == form.format(found)


@pytest.mark.parametrize("word", ["%1$s", "Old Cat"])
def test_what_translators_must_not_change_is_read_with_its_sentence(word: str):
    name = f'<xliff:g id="x">{word}</xliff:g>'
    form = f'<resources xmlns:xliff="x"><string name="a">{{}} {name} now</string></resources>'
    translator = Swapping()
    found = translate_document(form.format("we see").encode(), translator, "strings.xml")
    assert translator.seen[0] == f"we see {word} now"
    assert found.decode() == form.format("SEE WE").replace(" now", " NOW")


def test_a_translation_ends_no_section_of_xml():
    document = read_document(
        b"<resources><string><![CDATA[a]]></string></resources>", "android", "strings.xml"
    )
    written = document.write([Segment(("b]]>c",))])
    again = read_document(written, "android", "strings.xml")
    assert [each.text for each in again.segments] == ["b]]>c"]


def test_plurals_of_android_are_translated_and_missing_forms_are_said():
    item = '<item quantity="other">%d {}</item>'
    form = f'<resources><plurals name="p">{item}</plurals></resources>'
    counts = Counts()
    found = translate_document(
        form.format("red cats").encode(), Swapping(), "strings.xml", counts=counts
    )
    assert found.decode() == form.format("CATS RED")
    assert counts.notes == [
        "forms of plurals that the language has and the file lacks are not added"
    ]


def test_xml_of_another_kind_is_refused():
    with pytest.raises(DataError, match="begins with <article>, which is not read"):
        translated("<article>red</article>", "a.xml")


@pytest.mark.parametrize(
    ("language", "source", "found"),
    [
        (
            "pl",
            "{n, plural, one {# cat} other {# cats}}",
            "{n, plural, one {CAT #} other {CATS #} few {CATS #} many {CATS #}}",
        ),
        ("cs", "{n, plural, other {cats}}", "{n, plural, other {CATS} few {CATS}}"),
        (
            "ru",
            "{n, plural, few {a} many {b} other {c}}",
            "{n, plural, few {A} many {B} other {C}}",
        ),
        ("de", "{n, plural, one {cat} other {cats}}", "{n, plural, one {CAT} other {CATS}}"),
        ("ru", "{n, selectordinal, other {cat}}", "{n, selectordinal, other {CAT}}"),
        ("ru", "{n, select, other {cat}}", "{n, select, other {CAT}}"),
    ],
)
def test_messages_get_the_plural_forms_of_the_language(language: str, source: str, found: str):
    stand_in = Swapping()
    data = json.dumps({"a": source}).encode()
    options = ReadOptions(target_language=language)
    written = json.loads(translate_document(data, stand_in, "a.json", options=options))
    assert written == {"a": found}
    if language == "pl":
        assert {"3 cats", "11 cats"} <= set(stand_in.seen)


@pytest.mark.parametrize("encoding", ["UTF-16", "windows-1252"])
def test_strings_of_android_in_another_encoding_become_utf_8(encoding: str):
    form = (
        '<?xml version="1.0" encoding="{}"?>\n<resources><string name="a">{}</string></resources>'
    )
    source = form.format(encoding, "café red").encode(encoding)
    found = translate_document(source, Swapping(), "strings.xml").decode()
    assert found == form.format("UTF-8", "RED CAFÉ")


@pytest.mark.parametrize(
    ("declared", "encoding"),
    [
        ('<?xml version="1.0" encoding="UTF8"?>\n', "utf-8"),
        ('<?xml version="1.0" encoding="utf-16"?>\n', "utf-8-sig"),
        ('<?xml version="1.0" encoding="latin1"?>\n', "latin-1"),
        ("", "utf-16"),
    ],
)
@pytest.mark.parametrize("name", ["strings.xml", "a.xlf"])
def test_xml_is_read_in_its_encoding_whatever_it_says(declared: str, encoding: str, name: str):
    source = f'{declared}<resources><string name="a">café red</string></resources>'
    if name == "a.xlf":
        unit = '<trans-unit id="1"><source>café red</source><target></target></trans-unit>'
        source = f'{declared}<xliff version="1.2"><file>{unit}</file></xliff>'
    found = translate_document(source.encode(encoding), Swapping(), name)
    written = found.decode("utf-8" if encoding == "utf-16" else encoding)
    assert ">RED CAFÉ<" in written
    if declared:
        assert written.startswith(declared)


def test_a_name_that_only_one_parser_takes_is_refused():
    source = "<resources><string name='a'>red <\U00010330/></string></resources>"
    with pytest.raises(DataError, match=r"strings\.xml is not XML that expat reads"):
        translate_document(source.encode(), Swapping(), "strings.xml")
