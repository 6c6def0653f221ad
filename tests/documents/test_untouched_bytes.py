"""What comes out differs from what went in by the translations and by nothing else, to the byte."""

import io
import zipfile
from pathlib import Path

import docx
import odfdo
import pptx
import pytest

from pellucid.documents.formats import ReadOptions
from pellucid.documents.markup import Counts
from pellucid.documents.names import ENDINGS, FORMATS, LINES, format_of
from pellucid.documents.placement import Aligned
from pellucid.documents.translate import translate_document
from tests.documents.stand_in import Swapping


class Identity(Swapping):
    """Says the same again."""

    def one(self, sentence: str, align: bool) -> Aligned:
        return Aligned(sentence, tuple(((n, n + 1), (n, n + 1), 1.0) for n in range(len(sentence))))


class Capitals(Identity):
    """Says the same in capitals."""

    def one(self, sentence: str, align: bool) -> Aligned:
        answer = super().one(sentence, align)
        return Aligned(answer.text.upper(), answer.links)


def said(data: bytes, name: str, by: Swapping) -> bytes:
    columns = ("text",) if name.endswith(("csv", "tsv")) else ()
    return translate_document(data, by, name, options=ReadOptions(columns))


PO_HEAD = (
    '#\r\n# A note.  \r\n\r\nmsgid ""\r\nmsgstr ""\r\n"Content-Type: text/plain;'
    ' charset=UTF-8\\n"\r\n"Plural-Forms: nplurals=2; plural=n!=1;\\n"\r\n\r\n\r\n'
)
TEXTS = {
    "a.txt": "  red house \r\n\r\n\told\u2028cat\x0c. Two.  Three\nno end",
    "a.md": (
        "\ufeff---\ntitle: x\n---\nRed *old*   house\n===\n\n* one\n+ two `code`\n\n"
        "|a|b |\n|-|:-|\n"
        "| c d|e|\n\n~~~\ncode\n~~~\n<b>html</b>\n\n1) x  \ny\\\nz\n[a]: <b> 'c'\n\n\n"
    ),
    "a.html": (
        "<!doctype HTML>\n<p CLASS=x\n>Red <B title='an old &quot;cat&quot;' >old</B>\thouse&nbsp;"
        "&eacute; <img ALT=x/ >x<br>\r\ny<!-- c --></p ><P>unclosed <i>a</p>&amp &bogus; <"
    ),
    "a.srt": "1\r\n00:00:01,000 --> 00:00:02,000 \r\n<i>red</i>\r\n  house\r\n\r\n\r\n2\n0 --> 1"
    "\nx",
    "a.vtt": "WEBVTT - x\n\nSTYLE\n::cue{}\n\nid\n00:01.000 --> 00:02.000 align:start\n- a b"
    "\n- c\n",
    "a.ass": "[Script Info]\r\nTitle: x\r\n\r\n[Events]\r\nFormat: Start, Text\r\n"
    "Dialogue: 0:00:01.00,{\\an8}red\\Nhouse \r\n; note\r\nDialogue: 0:00:02.00,cat",
    "a.properties": "# note\r\na = red \\\r\n   house\r\nb:old\\u00e9\n\n! x\nc",
    "a.strings": '/* note */\r\n"a" = "red \\"old\\" house" ;\r\n\nb = "cat";',
    "a.xml": '<?xml version="1.0"?>\r\n<resources >\n <!-- n -->\n'
    "  <string name='a'>red <b >old</b> &amp; x</string>\n</resources>\n\n",
    "a.csv": 'id;text;"note"\r\n1;"red; ""old""";"x"\r\n\r\n2; cat ;\r\n"3";"a\nb";"c"\r\n4;x;y',
    "a.tsv": 'id\ttext\n1\t"red house"\n2\told',
    "a.json": '{ "a" :"red \\u0068ouse\\/" ,\n\t"b":[1.0,-0,1e5 , "x\\ny"],"a b":{"c":""}}\n\n',
    "a.yaml": (
        "%YAML 1.1\n---\n# note\na:   'it''s'  # x\nb: \"old\\tcat\"\nc: |+\n  one\n  two\n\n\n"
        "d: >-\n"
        "  x y\n  z\n? e\n: &f plain text\ng: *f\nh: [a b, {i: j k}]\n...\n"
    ),
    "a.po": PO_HEAD + 'msgid "a"\r\nmsgstr "b"\r\n\r\n#~ msgid "c"\r\n#~ msgstr ""\r\n# end',
}


_ELSEWHERE = {"docx", "pptx", "odt", "epub", "xliff"}
"""Archives, which a test below makes; in XLIFF a unit says that it was translated."""


def test_every_format_has_a_sample():
    missing = {*FORMATS} - {format_of(name) for name in TEXTS} - _ELSEWHERE
    assert not missing, f"add a file of {sorted(missing)} to TEXTS of {__file__}"


def test_the_page_of_documents_names_every_ending():
    page = (Path(__file__).parents[2] / "docs" / "documents.md").read_text("utf-8")
    missing = [f".{each}" for each in ENDINGS if f"`.{each}`" not in page and each not in LINES]
    assert not missing, f"add {missing} to the table of formats in docs/documents.md"


@pytest.mark.parametrize("name", TEXTS)
def test_an_identity_gives_back_every_byte(name: str):
    data = TEXTS[name].encode()
    assert said(data, name, Identity()) == data


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be", "utf-32-le"])
def test_a_text_in_utf_16_or_32_stays_in_it(codec: str):
    data = ("\ufeff1\r\n00:00:01,000 --> 00:00:02,000\r\nzoë\r\n").encode(codec)
    assert said(data, "a.srt", Identity()) == data
    assert said(data, "a.srt", Capitals()) == data.decode(codec).replace("zoë", "ZOË").encode(codec)


def test_cells_beside_a_translation_stay_as_they_are_written():
    table = 'id,text,"note"\r\n1,"red, old","x"\r\n"2",cat,"y ""z"""\r\n3,a"b,c\n'
    assert said(table.encode(), "a.csv", Capitals()).decode() == (
        'id,text,"note"\r\n1,"RED, OLD","x"\r\n"2",CAT,"y ""z"""\r\n3,"A""B",c\n'
    )


@pytest.mark.parametrize(
    ("name", "source", "found"),
    [
        # Quotes mean nothing in TSV, and a line is a row.
        (
            "a.tsv",
            'id\ttext\r\n1\t"red\r\n2\tthe "x" y\r\n',
            'id\ttext\r\n1\t"RED\r\n2\tTHE "X" Y\r\n',
        ),
        ("a.tsv", "text\tid\n\nred \t1\nold\n", "text\tid\n\nRED \t1\nOLD\n"),
        # as spreadsheets write CSV
        ("a.csv", 'sep=;\r\nid;text\r\n1;"a, b"\r\n', 'sep=;\r\nid;text\r\n1;"A, B"\r\n'),
        (
            "a.csv",
            "\ufeffid;text, or so;text\n1;b, c, d;a\n",
            "\ufeffid;text, or so;text\n1;b, c, d;A\n",
        ),
        ("a.csv", "id\ttext\n1\tred, old\n", "id\ttext\n1\tRED, OLD\n"),
        # a line before the names, names with spaces, none, or twice
        ("a.csv", "\n, text ,\n1,red,x\n", "\n, text ,\n1,RED,x\n"),
        ("a.csv", "text,text\nred,old\n", "text,text\nRED,OLD\n"),
        # spaces before a quote
        ("a.csv", 'id, text\n1, "red, ""old"""\n2, x\n', 'id, text\n1, "RED, ""OLD"""\n2, X\n'),
        # rows that are shorter or longer than the names
        ("a.csv", "id,text\n1\n2,red,3\n", "id,text\n1\n2,RED,3\n"),
    ],
)
def test_tables_as_programs_write_them(name: str, source: str, found: str):
    assert said(source.encode(), name, Identity()) == source.encode()
    assert said(source.encode(), name, Capitals()).decode() == found


def test_a_table_stays_in_its_encoding_or_says_so():
    table = "id;text\r\n1;Über den Häusern\r\n"
    for data in (table.encode("cp1252"), ("\ufeff" + table).encode("utf-16-le")):
        codec = "cp1252" if data[0] != 255 else "utf-16-le"
        wanted = data.decode(codec).replace("Über den Häusern", "ÜBER DEN HÄUSERN")
        assert said(data, "a.csv", Capitals()) == wanted.encode(codec)

    class Russian(Identity):
        def one(self, sentence: str, align: bool) -> Aligned:
            return Aligned("дом")

    counts = Counts()
    options = ReadOptions(("text",))
    found = translate_document(
        table.encode("cp1252"), Russian(), "a.csv", options=options, counts=counts
    )
    assert found.decode() == "\ufeffid;text\r\n1;дом\r\n"
    assert [note[:35] for note in counts.notes] == [
        "it is not UTF-8 and was read as Win",
        "it is in UTF-8 now, with a byte ord",
    ]


def test_a_cell_of_tsv_holds_no_tab_and_no_line_end():
    class Lines(Identity):
        def one(self, sentence: str, align: bool) -> Aligned:
            return Aligned("a\tb\nc")

    assert said(b"id\ttext\n1\tred\n", "a.tsv", Lines()) == b"id\ttext\n1\ta b c\n"


def test_a_catalog_changes_in_its_translations_alone():
    entries = (
        '# note\r\n#: a.c:1\r\n#, c-format\r\nmsgctxt "x"\r\nmsgid "red %s"\r\nmsgstr ""'
        '\r\n\r\n\r\n#| msgid "was"\r\nmsgid ""\r\n"one\\n"\r\n"two"\r\nmsgstr ""\r\n""\r\n\r\n'
        'msgid "cat"\r\nmsgid_plural "cats"\r\nmsgstr[0]  ""\r\nmsgstr[1] ""\r\n\r\n'
        'msgid "done"   \r\nmsgstr "fertig"\r\n#~ msgid "old"\r\n#~ msgstr ""'
    )
    found = said((PO_HEAD + entries).encode(), "a.po", Capitals()).decode()
    assert found == PO_HEAD + entries.replace(
        'msgid "red %s"\r\nmsgstr ""', 'msgid "red %s"\r\nmsgstr "RED %s"'
    ).replace('msgstr ""\r\n""', 'msgstr ""\r\n"ONE\\n"\r\n"TWO"').replace(
        'msgstr[0]  ""\r\nmsgstr[1] ""', 'msgstr[0] "CAT"\r\nmsgstr[1] "CATS"'
    )


XLIFF = (
    "<?xml version='1.0' encoding='{codec}' ?>\r\n<!-- note -->\r\n"
    "<x:xliff xmlns:x = 'urn:oasis:names:tc:xliff:document:1.2' version=\"1.2\" >\r\n"
    "<x:file original='a>b'><x:body>\r\n"
    "<x:trans-unit id='1'  ><x:source >red <x:g id='1' >ol\u00e9</x:g > <x:x id='2' /> &#65;"
    "<!-- c --></x:source>\r\n  {first}</x:trans-unit>\r\n"
    "<x:trans-unit id='2'><x:source><![CDATA[cat]]></x:source>{second}</x:trans-unit>\r\n"
    "<x:trans-unit id='3' translate='no'><x:source>b</x:source></x:trans-unit>\r\n"
    "</x:body></x:file></x:xliff>\r\n\r\n<!-- end -->\r\n"
)
STATES = 'state="needs-review-translation" state-qualifier="leveraged-mt"'


@pytest.mark.parametrize("codec", ["UTF-8", "ISO-8859-1"])
def test_xliff_changes_in_its_targets_alone(codec: str):
    source = XLIFF.format(codec=codec, first="", second="<x:target state='new' a=\"b\"/>")
    content = "RED <x:g id='1' >OLÉ</x:g > <x:x id='2' /> A<!-- c -->"
    # The white space after the source is there a second time, and the file's own stays.
    first = f"<x:target {STATES}>{content}</x:target>\r\n  "
    second = (
        '<x:target state=\'needs-review-translation\' a="b" state-qualifier="leveraged-mt">CAT'
        "</x:target>"
    )
    wanted = XLIFF.format(codec=codec, first=first, second=second)
    assert said(source.encode(codec), "a.xlf", Capitals()) == wanted.encode(codec)
    # Nothing waits for a translation now.
    assert said(wanted.encode(codec), "a.xlf", Capitals()) == wanted.encode(codec)


def office(name: str) -> bytes:
    data = io.BytesIO()
    if name == "a.docx":
        document = docx.Document()
        document.add_paragraph("red house ").add_run("old").bold = True
        document.sections[0].header.paragraphs[0].text = "42"
        document.save(data)
    elif name == "a.pptx":
        slides = pptx.Presentation()
        slides.slides.add_slide(slides.slide_layouts[1]).shapes.title.text = "red house"
        slides.save(data)
    elif name == "a.odt":
        text = odfdo.Document("text")
        text.body.append(odfdo.Paragraph("red house"))
        text.save(data)
    else:
        with zipfile.ZipFile(data, "w") as archive:
            archive.writestr("mimetype", "application/epub+zip")
            archive.writestr("META-INF/container.xml", "<container/>")
            archive.writestr("a.xhtml", "<?xml version='1.0'?>\n<p  >red house</p >\n")
            archive.writestr(
                "toc.ncx",
                "<?xml version='1.0'?>\n<ncx xmlns='http://www.daisy.org/z3986/2005/ncx/' >"
                "<text>red</text ></ncx>\n",
            )
    return data.getvalue()


@pytest.mark.parametrize("name", ["a.docx", "a.pptx", "a.odt", "a.epub"])
def test_parts_of_an_archive_without_a_change_are_the_same_bytes(name: str):
    data = office(name)
    for by, most in ((Identity(), 0), (Capitals(), 2)):
        with (
            zipfile.ZipFile(io.BytesIO(data)) as before,
            zipfile.ZipFile(io.BytesIO(said(data, name, by))) as after,
        ):
            assert before.namelist() == after.namelist()
            changed = [each for each in before.namelist() if before.read(each) != after.read(each)]
            assert len(changed) <= most
            assert bool(changed) == bool(most)
