"""Texts of office files that are read outside of runs, and elements within them."""

import io
import re
import zipfile

import pytest

from pellucid.documents.markup import Counts
from pellucid.documents.translate import translate_document
from tests.documents.stand_in import Swapping

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
SLIDES = "http://schemas.openxmlformats.org/presentationml/2006/main"


def archive(parts: dict[str, str]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as written:
        for name, text in parts.items():
            written.writestr(name, text)
    return data.getvalue()


def said(name: str, part: str, source: str) -> tuple[list[str], str, list[str]]:
    """What a translator read of a file with one part, the part that it gave, and the notes."""
    translator, counts = Swapping(), Counts()
    data = translate_document(archive({part: source}), translator, name, counts=counts)
    with zipfile.ZipFile(io.BytesIO(data)) as written:
        return translator.seen, written.read(part).decode(), counts.notes


def docx(paragraph: str) -> tuple[list[str], str, list[str]]:
    spaces = f'xmlns:w="{WORD}" xmlns:v="urn:schemas-microsoft-com:vml"'
    source = f"<w:document {spaces}><w:body><w:p>{paragraph}</w:p></w:body></w:document>"
    return said("a.docx", "word/document.xml", source)


def pptx(paragraph: str) -> tuple[list[str], str, list[str]]:
    spaces = f'xmlns:p="{SLIDES}" xmlns:a="{DRAWING}"'
    source = f"<p:presentation {spaces}><a:p>{paragraph}</a:p></p:presentation>"
    return said("a.pptx", "ppt/presentation.xml", source)


def run(text: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


@pytest.mark.parametrize(
    "between",
    ["<w:tab/>", '<w:ptab w:alignment="center"/>', "<w:br/>", "<w:cr/>", "<w:t>\t</w:t>"],
)
def test_columns_of_docx_are_as_many_texts(between: str):
    seen, found, _ = docx(f"{run('red house')}<w:r>{between}</w:r>{run('old cat')}")
    assert seen == ["red house", "old cat"]
    mark = re.sub("<w:t>|</w:t>|/>", "", between)
    assert found.index("HOUSE RED") < found.index(mark) < found.index("CAT OLD")


@pytest.mark.parametrize(
    ("text", "read", "written"),
    [
        ("Red: ____ Old cat: ........", ["Red:", "Old cat:"], "rED: ____ CAT oLD: ........"),
        ("red house ………… 12", ["red house"], "HOUSE RED ………… 12"),
        ("red house . . . . . . 12", ["red house"], "HOUSE RED . . . . . . 12"),
        ("red house is ____, old", ["red house is ____, old"], "HOUSE RED IS____, OLD"),
        # no lines
        ("red... old", ["red... old"], "RED... OLD"),
        ("red_old", ["red_old"], "RED_OLD"),
    ],
)
def test_a_line_to_write_on_stays_and_ends_a_text_behind_a_colon(
    text: str, read: list[str], written: str
):
    seen, found, _ = docx(run(text))
    assert seen == read
    assert re.sub("<[^<>]*>", "", found).strip() == written

    bold = "<w:r><w:rPr><w:b/></w:rPr><w:t>Red:</w:t></w:r>"
    line = '<w:r><w:rPr><w:u w:val="single"/></w:rPr><w:t xml:space="preserve">    </w:t></w:r>'
    for each in (line, run(" ____ ")):
        seen, found, _ = docx(f"{bold}{each}{run('old cat')}")
        assert seen == ["Red:", "old cat"]
        assert found.index("rED:") < found.index("    " if each == line else "____")


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("a.html", "<p>Red: ____ Old cat: ________</p>"),
        ("a.html", "<p><b>Red:</b> <u>____</u> Old cat: <u>&nbsp;&nbsp;&nbsp;</u></p>"),
        ("a.md", "Red: ____ Old cat: ........"),
        ("a.md", r"Red: \_\_\_\_ Old cat: \_\_\_"),
        ("a.strings", '"a" = "Red: ____ Old cat: -----";'),
        ("a.srt", "1\n0:01 --> 0:02\nRed: ＿＿ Old cat: ______\n"),
    ],
)
def test_a_line_to_write_on_stays_in_every_format(name: str, source: str):
    translator = Swapping()
    found = translate_document(source.encode(), translator, name).decode()
    assert translator.seen == ["Red:", "Old cat:"]
    assert re.sub(r"\\|<[^<>]*>", "", found.replace("\xa0", "&nbsp;")) == re.sub(
        r"\\|<[^<>]*>", "", source.replace("Red", "rED").replace("Old cat", "CAT oLD")
    )


def test_a_line_within_a_sentence_is_a_word_of_it():
    translator = Swapping()
    source = b"I, <u>____</u>, live in <b>........</b> and foo___bar."
    found = translate_document(source, translator, "a.html").decode()
    assert translator.seen[0] == "I, ____, live in ........ and foo___bar."
    assert "<u>____</u>" in found
    assert "<b>........</b>" in found


def test_columns_of_a_text_box_are_as_many_texts():
    seen, found, _ = pptx("<a:r><a:t>red house\told cat\tdogs</a:t></a:r>")
    assert seen == ["red house", "old cat", "dogs"]
    assert "<a:t>HOUSE RED\tCAT OLD\tDOGS</a:t>" in found


def test_a_computed_field_of_a_slide_is_read():
    text = '<a:r><a:t>see {} </a:t></a:r><a:fld type="slidenum"><a:t>7</a:t></a:fld>'
    seen, found, _ = pptx(text.format("page") + "<a:r><a:t> here</a:t></a:r>")
    assert seen[0] == "see page 7 here"
    assert "<a:t>7</a:t>" in found


@pytest.mark.parametrize(
    ("element", "read", "written"),
    [
        ('<v:textpath string="red house"/>', "red house", 'string="HOUSE RED"'),
        ('<v:shape alt="red house"/>', "red house", 'alt="HOUSE RED"'),
        ('<v:rect title="red house"/>', "red house", 'title="HOUSE RED"'),
        ('<w:tblCaption w:val="red house"/>', "red house", 'w:val="HOUSE RED"'),
        ('<w:tblDescription w:val="red house"/>', "red house", 'w:val="HOUSE RED"'),
        ('<w:listItem w:displayText="red house"/>', "red house", 'w:displayText="HOUSE RED"'),
        ('<w:helpText w:type="text" w:val="red house"/>', "red house", 'w:val="HOUSE RED"'),
    ],
)
def test_attributes_of_docx_that_people_read_are_translated(element: str, read: str, written: str):
    seen, found, _ = docx(f"<w:r><w:pict>{element}</w:pict></w:r>")
    assert seen == [read]
    assert written in found


def test_the_name_of_a_file_is_no_description():
    seen, _, _ = docx('<w:r><w:pict><v:shape alt="house.png"/></w:pict></w:r>')
    assert seen == []


def test_what_is_shown_beside_a_link_is_translated():
    link = f'<w:hyperlink w:tooltip="red house">{run("old cat")}</w:hyperlink>'
    seen, found, _ = docx(link)
    assert sorted(seen) == ["old cat", "red house"]
    assert 'w:tooltip="HOUSE RED"' in found
    click = '<a:r><a:rPr><a:hlinkClick tooltip="red house"/></a:rPr><a:t>old cat</a:t></a:r>'
    _, found, _ = pptx(click)
    assert 'tooltip="HOUSE RED"' in found


@pytest.mark.parametrize(
    ("instruction", "read", "written"),
    [
        ([' XE "red house" '], ["red house"], [' XE "HOUSE RED" ']),
        ([' XE "', "red", " house", '" '], ["red house"], [' XE "', "HOUSE RED", "", '" ']),
        (['XE "red house:old cat"'], ["red house", "old cat"], ['XE "HOUSE RED:CAT OLD"']),
        (['XE "red\\: house" \\t "x"'], ["red: house"], ['XE "RED\\: HOUSE" \\t "x"']),
        (['tc "red house" \\l 2'], ["red house"], ['tc "HOUSE RED" \\l 2']),
    ],
)
def test_an_entry_of_an_index_is_translated(
    instruction: list[str], read: list[str], written: list[str]
):
    begin, end = (f'<w:r><w:fldChar w:fldCharType="{each}"/></w:r>' for each in ("begin", "end"))
    parts = "".join(f"<w:r><w:instrText>{each}</w:instrText></w:r>" for each in instruction)
    seen, found, notes = docx(f"{run('dogs')}{begin}{parts}{end}")
    assert seen == ["dogs", *read]
    texts = re.findall(r"<w:instrText(?:/>|[^>]*>([^<]*)</w:instrText>)", found)
    assert texts == written
    assert notes == []


def test_an_entry_of_an_index_that_cannot_be_read_is_told():
    begin, end = (f'<w:r><w:fldChar w:fldCharType="{each}"/></w:r>' for each in ("begin", "end"))
    entry = f"{begin}<w:r><w:instrText> XE red </w:instrText></w:r>{end}"
    assert docx(f"{run('dogs')}{entry}")[2] == ["1 entry of an index not translated"]
    assert docx(f"{entry}{entry}")[2] == ["2 entries of an index not translated"]


SPACES = {
    "office": "office:1.0",
    "text": "text:1.0",
    "draw": "drawing:1.0",
    "table": "table:1.0",
    "svg": "svg-compatible:1.0",
    "form": "form:1.0",
}


def odt(body: str) -> tuple[list[str], str]:
    spaces = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{value}"'
        for name, value in SPACES.items()
    )
    source = f"<office:document-content {spaces}>{body}</office:document-content>"
    seen, found, _ = said("a.odt", "content.xml", source)
    inner = found[found.index(">", found.index("<office:document-content")) + 1 :]
    return seen, inner.removesuffix("</office:document-content>")


@pytest.mark.parametrize(
    ("paragraph", "read", "found"),
    [
        (
            "the <text:ruby><text:ruby-base>cat</text:ruby-base><text:ruby-text>x</text:ruby-text>"
            "</text:ruby> sleeps",
            "the cat sleeps",
            "<text:ruby><text:ruby-base>CAT</text:ruby-base><text:ruby-text>x</text:ruby-text>"
            "</text:ruby> THE SLEEPS",
        ),
        (
            "see <text:text-input>reports</text:text-input> here",
            "see reports here",
            "<text:text-input>REPORTS</text:text-input> SEE HERE",
        ),
        (
            "see <text:placeholder>reports</text:placeholder> here",
            "see reports here",
            "<text:placeholder>REPORTS</text:placeholder> SEE HERE",
        ),
    ],
)
def test_elements_of_odt_that_hold_text_are_read(paragraph: str, read: str, found: str):
    assert odt(f"<text:p>{paragraph}</text:p>") == ([read], f"<text:p>{found}</text:p>")


@pytest.mark.parametrize(
    ("field", "shown"),
    [
        ("<text:page-number>3</text:page-number>", "3"),
        ("<text:author-name>Bob</text:author-name>", "Bob"),
        ("<text:bookmark-ref>Red</text:bookmark-ref>", "Red"),
        ('<text:drop-down><text:label text:value="x"/>Red</text:drop-down>', "Red"),
        ("<text:bibliography-mark>[1]</text:bibliography-mark>", ""),
        ("<text:ruby-text>x</text:ruby-text>", ""),
        ("<text:hidden-text>x</text:hidden-text>", ""),
    ],
)
def test_a_field_of_odt_is_read_as_what_it_shows(field: str, shown: str):
    seen, found = odt(f"<text:p>we see {field} here</text:p>")
    assert seen[0] == f"we see {shown} here"
    assert field in found


@pytest.mark.parametrize(
    ("element", "found"),
    [
        ("<svg:title>red house</svg:title>", "<svg:title>HOUSE RED</svg:title>"),
        ("<svg:desc>red house</svg:desc>", "<svg:desc>HOUSE RED</svg:desc>"),
        ("<table:title>red house</table:title>", "<table:title>HOUSE RED</table:title>"),
        ('<text:a office:title="red house"/>', '<text:a office:title="HOUSE RED"/>'),
        ('<form:button form:label="red house"/>', '<form:button form:label="HOUSE RED"/>'),
        (
            '<text:alphabetical-index-mark text:string-value="red house"/>',
            '<text:alphabetical-index-mark text:string-value="HOUSE RED"/>',
        ),
        (
            '<text:hidden-text text:string-value="red house">red house</text:hidden-text>',
            '<text:hidden-text text:string-value="HOUSE RED">HOUSE RED</text:hidden-text>',
        ),
        (
            '<text:conditional-text text:string-value-if-true="red house"'
            ' text:string-value-if-false="old cat">old cat</text:conditional-text>',
            '<text:conditional-text text:string-value-if-true="HOUSE RED"'
            ' text:string-value-if-false="CAT OLD">CAT OLD</text:conditional-text>',
        ),
    ],
)
def test_what_odt_shows_outside_of_its_text_is_translated(element: str, found: str):
    assert odt(f"<text:p>dogs {element}</text:p>")[1] == f"<text:p>DOGS {found}</text:p>"


@pytest.mark.parametrize(
    "element",
    [
        "red house",
        "<svg:title>red house</svg:title>",
        "<svg:desc>red house</svg:desc>",
        "<table:title>red house</table:title>",
        '<text:a office:title="red house"/>',
        '<form:button form:label="red house"/>',
        '<text:alphabetical-index-mark text:string-value="red house"/>',
        "<!-- red house --><text:span>red house</text:span>",
    ],
)
def test_what_a_tracked_change_took_out_of_odt_stays(element: str):
    deleted = f"<text:deletion><text:p>red {element}</text:p></text:deletion>"
    tracked = f"<text:tracked-changes>{deleted}</text:tracked-changes>"
    seen, found = odt(f"{tracked}<text:p>dogs</text:p><text:p>cats</text:p>")
    assert seen == ["dogs", "cats"]
    assert found == f"{tracked}<text:p>DOGS</text:p><text:p>CATS</text:p>"


def test_a_line_to_write_on_stays_in_odt():
    seen, found = odt("<text:p>Red: ____ Old cat: ________</text:p>")
    assert seen == ["Red:", "Old cat:"]
    assert found == "<text:p>rED: ____ CAT oLD: ________</text:p>"
