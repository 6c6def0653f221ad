"""Each format gives back all that is no text as it was, and its text translated."""

import dataclasses
import io
import json
import re
import zipfile

import docx
import odfdo
import polib
import pptx
import pytest
import yaml

from pellucid.core.errors import ConfigError, DataError
from pellucid.documents.formats import ReadOptions, read_document
from pellucid.documents.markup import Counts
from pellucid.documents.names import format_of, is_document
from pellucid.documents.placement import Aligned
from pellucid.documents.segments import Segment
from pellucid.documents.subtitles import _divided
from pellucid.documents.translate import translate_document
from tests.documents.stand_in import Swapping, translated
from tests.faults.document_grammar import file_of


def office(document, name: str, **options) -> io.BytesIO:
    data = io.BytesIO()
    document.save(data)
    return io.BytesIO(translate_document(data.getvalue(), Swapping(), name, **options))


def test_html_keeps_every_byte_but_its_text():
    source = (
        "<!DOCTYPE html>\n<html><!-- a note --><head><title>red house</title>"
        '<style>p > a {color: red}</style></head>\n<body class="x">\n'
        '  <p>The <A HREF="x?a=1&amp;b">red <i>old</i></A> house,\n  <code>f(x)</code> &amp; more'
        "<br/>second line</p>\n<script>if (a < b) say('text');</script>"
        '<div translate="no">not this</div>\n<p>1 &lt; 2</p></body></html>\n'
    )
    assert translated(source, "a.html") == (
        "<!DOCTYPE html>\n<html><!-- a note --><head><title>HOUSE RED</title>"
        '<style>p > a {color: red}</style></head>\n<body class="x">\n'
        '  <p><A HREF="x?a=1&amp;b">RED tHE HOUSE <i>OLD</i></A>, <code>f(x)</code> &amp;MORE'
        "<br/>LINE SECOND</p>\n<script>if (a < b) say('text');</script>"
        '<div translate="no">not this</div>\n<p>1 &lt; 2</p></body></html>\n'
    )


def test_html_that_is_not_well_formed_keeps_its_tags():
    source = "<p>red <b>house <i>old</b> cat</i> x<p></div>dog <b>unclosed"
    found = translated(source, "a.htm")
    for tag in ("<p>", "<b>", "<i>", "</b>", "</i>", "</div>"):
        assert found.count(tag) == source.count(tag)
    assert "HOUSE" in found
    assert "UNCLOSED" in found


def test_html_in_an_older_encoding_stays_in_it():
    source = '<meta charset="iso-8859-1"><p>élan vital</p>'.encode("cp1252")
    found = translate_document(source, Swapping(), "a.html")
    assert found == '<meta charset="iso-8859-1"><p>VITAL ÉLAN</p>'.encode("cp1252")


def test_markdown_keeps_blocks_and_marks():
    source = (
        "---\ntitle: red house\n---\n# Red *old* house\n\n> quoted text\n> goes **on** here\n\n"
        '- [x] do `code`\n- see all [the link](http://x.y/z "t") and <http://a.b>\n\n'
        "| a b | c |\n|-----|---|\n| one *two* | x |\n\n```\ncode here\n```\n\n"
        "line one  \nline two\n\n    indented code\n\n![image](a.png) text [ref][1]\n\n"
        "[1]: http://c.d\n"
    )
    assert translated(source, "a.md") == (
        "---\ntitle: HOUSE RED\n---\n# *OLD* rED HOUSE\n\n> TEXT QUOTED **ON** GOES HERE\n\n"
        '- [x] DO `code`\n- ALL SEE [LINK THE](http://x.y/z "T") AND <http://a.b>\n\n'
        "| B A | C |\n|-----|---|\n| *TWO* ONE | X |\n\n```\ncode here\n```\n\n"
        "ONE LINE  \nTWO LINE\n\n    indented code\n\n![IMAGE](a.png) [REF][1] TEXT\n\n"
        "[1]: http://c.d\n"
    )


def test_stars_that_would_meet_are_kept_apart():
    """Seed 3706 of benchmarks/documents.py: two marks of one star became one of two."""
    document = read_document(b"# **x *red cat. mixed* *river old.* garden**\n", "md", "a.md")
    [segment] = document.segments
    strong, text, first, _, first_end, _, second, _, *rest = segment.pieces
    pieces = (strong, text, first, "RED CAT. ", first_end, second, "MIXED RIVER OLD.", *rest)
    [written] = document.write([Segment(pieces)]).decode().splitlines()
    assert written == "# **x  *RED CAT.*  *MIXED RIVER OLD.*  garden**"


def test_a_link_whose_address_is_elsewhere_stays_one():
    source = "a garden, [*red* house][1]\n\n[1]: http://x.y\n"
    assert translated(source, "a.md") == "GARDEN A, [*RED* HOUSE][1]\n\n[1]: http://x.y\n"


def test_markdown_text_begins_no_mark():
    """A translation may bring signs that the original had not."""

    class Signs(Swapping):
        def one(self, sentence, align):
            from pellucid.documents.placement import Aligned

            return Aligned("1. *not* a [list](x) of `code` <b>")

    found = translate_document(b"plain text\n", Signs(), "a.md").decode()
    assert found == "1\\. \\*not\\* a \\[list\\](x) of \\`code\\` \\<b>\n"


class InPlace(Swapping):
    """Says ordinary words in capitals where they stand, and copies what is not translated."""

    def one(self, sentence, align):
        text = re.sub(r"(?<![^ ])[a-z]+(?=[ .]|$)", lambda found: found[0].upper(), sentence)
        return Aligned(text, tuple(((n, n + 1), (n, n + 1), 1.0) for n in range(len(text))))


@pytest.mark.parametrize(
    ("source", "found"),
    [
        (
            "see https://en.example.org/Foo_(bar) here",
            "SEE https://en.example.org/Foo_(bar) HERE",
        ),
        ("write to foo_@bar.org now", "WRITE TO foo_@bar.org NOW"),
        ("see *all* of ${A_*} here", "SEE *ALL* OF ${A_*} HERE"),
        ("a note. [^1]", "A NOTE. [^1]"),
        ("[^1]: a note\n[^2]: two here", "[^1]: A NOTE\n[^2]: TWO HERE"),
        ("> [!NOTE]\n> red house\n> old cat", "> [!NOTE]\n> RED HOUSE OLD CAT"),
        ("> [!tip]- red\n> old\n> cat", "> [!tip]- RED\n> OLD CAT"),
        (
            "| a \\| b | c |\n|--|--|\n| `x\\|y` z | d |",
            "| A \\| B | C |\n|--|--|\n| `x\\|y` Z | D |",
        ),
        # Escaped where it was.
        ("see ${A_\\*} here", "SEE ${A\\_\\*} HERE"),
    ],
)
def test_what_is_not_translated_in_markdown_is_written_as_it_was(source: str, found: str):
    assert translate_document(source.encode(), InPlace(), "a.md").decode() == found


def test_a_literal_of_markdown_is_escaped_where_it_would_make_a_mark():
    """In the source the star that ends a mark stands before the one that begins it."""

    class Other(Swapping):
        def one(self, sentence, align):
            return Aligned("${*a} x ${b*}")

    found = translate_document(b"red ${b*} cat ${*a}", Other(), "a.md")
    assert read_document(found, "md", "a.md").segments == [Segment(("${*a} x ${b*}",))]


def test_subtitles_keep_times_and_the_number_of_lines():
    source = (
        "1\r\n00:00:01,000 --> 00:00:02,000\r\n<i>the red\r\nold house</i>\r\n\r\n"
        "2\r\n00:00:03,000 --> 00:00:04,000\r\n- red house\r\n- old cat\r\n"
    )
    assert translated(source, "a.srt") == (
        "1\r\n00:00:01,000 --> 00:00:02,000\r\n<i>RED THE\r\nHOUSE OLD</i>\r\n\r\n"
        "2\r\n00:00:03,000 --> 00:00:04,000\r\n- HOUSE RED\r\n- CAT OLD\r\n"
    )


def test_a_subtitle_keeps_what_separates_words_and_is_divided_in_linear_time():
    found = translated("1\n00:00:01,000 --> 00:00:02,000\nred.\u2028house\n", "a.srt")
    assert found.endswith("\nRED.\u2028HOUSE\n")
    head = "1\n00:00:01,000 --> 00:00:02,000\n"
    lines = translated(head + "a b\n" * 20_000, "a.srt").removeprefix(head)
    assert lines.count("\n") == 20_000


def test_a_subtitle_in_a_script_without_spaces_keeps_its_lines():
    lines = ["ab\n", "cd\n", "ef\n"]
    assert _divided("今日はとても良い天気です", lines) == ["今日はと\n", "ても良い\n", "天気です\n"]
    assert _divided("今日は 良い", lines[:2]) == ["今日は\n", "良い\n"]
    assert _divided("한국어는 단어를 띄어씁니다", lines[:2]) == [
        "한국어는 단어를\n",
        "띄어씁니다\n",
    ]


def test_webvtt_keeps_its_head_and_settings():
    source = "WEBVTT\n\nNOTE red\n\n00:01.000 --> 00:02.000 align:start\n<v Ann>red house\n"
    assert translated(source, "a.vtt") == source.replace("red house", "HOUSE RED")


def test_webvtt_keeps_times_within_a_text_and_reads_entities():
    head = "WEBVTT\n\n00:01.000 --> 00:02.000\n"
    stand_in = Swapping()
    source = f"{head}Rock &amp; roll<00:00:01.480><c> red &lt;old&gt;</c><01:02:03.000> cat\n"
    found = translate_document(source.encode(), stand_in, "a.vtt").decode()
    assert stand_in.seen == ["Rock & roll red <old> cat"]
    assert found.count("<00:00:01.480>") == found.count("<01:02:03.000>") == 1
    assert re.sub("<[^>]*>", "", found.removeprefix(head)) == "rOCK&amp;RED ROLL&lt;OLD&gt;CAT\n"
    # In SubRip a sign is a sign, and {\\i1} begins what {\\i0} ends.
    assert "{\\i1}HOUSE RED{\\i0} CAT" in translated(
        "1\n0 --> 1\n{\\i1}red house{\\i0} cat\n", "a.srt"
    )
    assert "\n♪ HOUSE RED ♪" in translated("1\n0 --> 1\n♪ red house ♪\n", "a.srt")
    assert "rOCK&amp;ROLL" in translated("1\n0 --> 1\nRock &amp; roll\n", "a.srt")


def test_plain_text_keeps_lines_and_white_space():
    assert translated("  red house \r\n\r\nold\u2028cat\n", "a.txt") == (
        "  HOUSE RED \r\n\r\nOLD\u2028CAT\n"
    )


def test_docx_keeps_formatting_links_tables_pictures_notes_and_styles():
    document = docx.Document()
    document.add_heading("Red house", 1)
    paragraph = document.add_paragraph("the ")
    paragraph.add_run("red").bold = True
    paragraph.add_run(" house ")
    paragraph.add_run("st")
    paragraph.add_run("ands").font.name = None
    paragraph.add_run().add_break()
    paragraph.add_run("old cat").italic = True
    document.add_paragraph("item one", style="List Bullet")
    table = document.add_table(rows=1, cols=2)
    table.cell(0, 0).text, table.cell(0, 1).text = "red house", "42"
    document.sections[0].header.paragraphs[0].text = "head line"

    found = docx.Document(office(document, "a.docx"))
    heading, body, item = found.paragraphs
    assert (heading.text, heading.style.name) == ("HOUSE rED", "Heading 1")
    assert [(run.text, run.bold, run.italic) for run in body.runs] == [
        ("RED", True, None),
        (" THE STANDS HOUSE", None, None),
        ("\n", None, None),
        ("CAT OLD", None, True),
    ]
    assert (item.text, item.style.name) == ("ONE ITEM", "List Bullet")
    assert [cell.text for cell in found.tables[0].rows[0].cells] == ["HOUSE RED", "42"]
    assert found.sections[0].header.paragraphs[0].text == "LINE HEAD"


_DOCX = """<w:document xmlns:w="{namespace}"><w:body>{body}</w:body></w:document>"""
_TRANSITIONAL = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def docx_of(body: str, namespace: str = _TRANSITIONAL) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("word/document.xml", _DOCX.format(namespace=namespace, body=body))
    return data.getvalue()


def body_of(data: bytes) -> str:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        text = archive.read("word/document.xml").decode()
    return text[text.index("<w:body>") + 8 : text.index("</w:body>")]


def run(text: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


def test_hidden_text_within_a_sentence_stays_and_hides_no_other_word():
    """``red`` became a word with it, and was hidden too; a paragraph that is all hidden is read."""

    def written(body: str) -> str:
        return body_of(translate_document(docx_of(f"<w:p>{body}</w:p>"), Swapping(), "a.docx"))

    hidden = '<w:r><w:rPr><w:vanish/></w:rPr><w:t xml:space="preserve">{}</w:t></w:r>'
    assert written(hidden.format("note") + run("red house")) == (
        f"<w:p>{hidden.format('note')}{run('HOUSE RED')}</w:p>"
    )
    assert written(hidden.format("red house")) == f"<w:p>{hidden.format('HOUSE RED')}</w:p>"
    shown = hidden.replace("<w:vanish/>", '<w:vanish w:val="0"/>')
    assert "HOUSE" in written(shown.format("red ") + run("house"))


def test_strict_docx_is_read_too():
    source = docx_of(
        f"<w:p>{run('red house')}</w:p>", "http://purl.oclc.org/ooxml/wordprocessingml/main"
    )
    assert run("HOUSE RED") in body_of(translate_document(source, Swapping(), "a.docx"))


def test_docx_reads_runs_of_either_direction_and_below_readings_and_no_computed_field():
    ruby = (
        "<w:r><w:ruby><w:rt><w:r><w:t>aka</w:t></w:r></w:rt>"
        "<w:rubyBase><w:r><w:t>red</w:t></w:r></w:rubyBase></w:ruby></w:r>"
    )
    body = (
        f'<w:p><w:bdo w:val="rtl">{run("old cat")}</w:bdo></w:p><w:p>{ruby}{run(" house")}</w:p>'
        f'<w:p>{run("today ")}<w:fldSimple w:instr=" DATE ">{run("5. may")}</w:fldSimple></w:p>'
        f'<w:p><w:fldSimple w:instr="QUOTE x">{run("red dog")}</w:fldSimple></w:p>'
    )
    found = body_of(translate_document(docx_of(body), Swapping(), "a.docx"))
    assert f'<w:bdo w:val="rtl">{run("CAT OLD")}</w:bdo>' in found
    assert run("HOUSE RED") in found
    assert f'<w:fldSimple w:instr=" DATE ">{run("5. may")}</w:fldSimple>' in found
    assert f'<w:fldSimple w:instr="QUOTE x">{run("DOG RED")}</w:fldSimple>' in found


@pytest.mark.parametrize("bold", [(), ("red",), ("house",)])
@pytest.mark.parametrize("name", ["bookmark", "commentRange"])
def test_a_range_of_docx_begins_before_it_ends_whatever_the_order_of_words(name: str, bold: tuple):
    """Words in pairs change places, and with them the marks beside them."""
    start, end = (f'<w:{name}{side} w:id="7"/>' for side in ("Start", "End"))
    words = {word: run(word) for word in ("red", "house")}
    for word in bold:
        words[word] = words[word].replace("<w:r>", "<w:r><w:rPr><w:b/></w:rPr>")
    parts = [run("the one "), start, words["red"], run(" "), words["house"], end, run(" stands")]
    source = docx_of(f"<w:p>{''.join(parts)}</w:p>")
    found = body_of(translate_document(source, Swapping(), "a.docx"))
    assert re.sub("<[^>]*>", "", found) == "ONE THE HOUSE RED STANDS"
    within = found[found.index(start) : found.index(end)]
    assert re.sub("<[^>]*>", "", within).strip() == "HOUSE RED"


@pytest.mark.parametrize("side", [0, 1])
def test_a_range_that_begins_or_ends_within_a_link_begins_before_it_ends(side: int):
    """The link moves, and what is outside of it goes to its end."""
    start, end = '<w:bookmarkStart w:id="7"/>', '<w:bookmarkEnd w:id="7"/>'
    red, house = run("red"), run("house")
    linked = f"<w:hyperlink>{start}{red}</w:hyperlink>{run(' ')}{house}{end}"
    if side:
        linked = f"{start}{red}{run(' ')}<w:hyperlink>{house}{end}</w:hyperlink>"
    source = docx_of(f"<w:p>{run('the one ')}{linked}{run(' stands')}</w:p>")
    found = body_of(translate_document(source, Swapping(), "a.docx"))
    assert re.sub("<[^>]*>", "", found) == "ONE THE HOUSE RED STANDS"
    assert 0 < found.index(start) < found.index(end)


def runs_of(*parts: tuple[str, str]) -> str:
    """A paragraph of texts, each with the properties of its run."""
    return (
        "<w:p>"
        + "".join(run(text).replace("<w:t", f"<w:rPr>{has}</w:rPr><w:t", 1) for text, has in parts)
        + "</w:p>"
    )


def field(instruction: str, shown: str = "") -> str:
    """A field of Word, around runs."""
    sides = [
        f'<w:r><w:fldChar w:fldCharType="{side}"/></w:r>' for side in ("begin", "separate", "end")
    ]
    begin, separate, end = sides
    told = f'<w:r><w:instrText xml:space="preserve">{instruction}</w:instrText></w:r>'
    return f"{begin}{told}{separate}{shown}{end}"


def written_docx(body: str, **parts: str) -> tuple[str, Swapping, Counts]:
    """The body of a translated docx, with what the stand-in has seen and the notes."""
    data, stand_in, counts = io.BytesIO(docx_of(body)), Swapping(), Counts()
    if parts:
        with zipfile.ZipFile(data, "a") as archive:
            related = relations(*((kind, f"{kind}.xml") for kind in parts))
            archive.writestr("word/_rels/document.xml.rels", related)
            for kind, content in parts.items():
                archive.writestr(f"word/{kind}.xml", content)
    written = translate_document(data.getvalue(), stand_in, "a.docx", counts=counts)
    return body_of(written), stand_in, counts


def test_a_line_below_words_goes_below_no_space_beside_them():
    """Most of the letters have it, and the spaces around them had it too."""
    line = '<w:u w:val="single"/>'
    found, _, _ = written_docx(runs_of(("by a ", ""), ("Ann Lee old cat", line), (" now", "")))
    assert '<w:t xml:space="preserve">lEE aNN CAT OLD</w:t>' in found
    assert not re.search(r"<w:u [^>]*/></w:rPr><w:t [^>]*>(?: |[^<]* </w:t>)", found)


@pytest.mark.parametrize(
    "format",
    [
        '<w:rFonts w:hint="eastAsia"/>',
        '<w:szCs w:val="24"/><w:bCs/>',
        '<w:spacing w:val="-2"/><w:w w:val="105"/>',
        '<w:kern w:val="0"/>',
    ],
)
def test_a_format_that_nobody_sees_divides_no_text(format: str):
    """Word and programs that convert a page write such within words."""
    found, _, _ = written_docx(runs_of(("re", ""), ("d ho", format), ("use", "")))
    assert re.sub("<[^>]*>", "", found) == "HOUSE RED"
    assert found.count("<w:r>") == 1
    seen, _, _ = written_docx(runs_of(("re", ""), ("d ho", '<w:spacing w:val="60"/>'), ("use", "")))
    assert seen.count("<w:r>") > 1


def test_symbols_of_word_are_read_as_the_letters_that_they_are():
    """The temperature was read as 20C; a box to check began no text."""
    symbol = '<w:r><w:sym w:font="{}" w:char="{}"/></w:r>'
    degree, alpha = symbol.format("Symbol", "F0B0"), symbol.format("Symbol", "0061")
    box = symbol.format("Wingdings", "F0A8")
    body = f"<w:p>{run('at 20')}{degree}{run('C an ')}{alpha}{run('-helix')}</w:p>"
    _, seen, _ = written_docx(f"{body}<w:p>{run('red house ')}{box}{run(' old cat')}</w:p>")
    assert sorted(seen.seen) == ["at 20°C an α-helix", "old cat", "red house"]


def test_letters_of_a_font_of_pictures_stay():
    smile = '<w:rFonts w:ascii="Wingdings"/>'
    found, seen, _ = written_docx(runs_of(("red house ", ""), ("J", smile)))
    assert seen.seen == ["red house"]
    assert ">J</w:t>" in found


def test_the_own_mark_of_a_note_stays_in_the_run_of_its_reference():
    mark = '<w:r><w:footnoteReference w:customMarkFollows="1" w:id="3"/><w:t>a</w:t></w:r>'
    found, seen, _ = written_docx(f"<w:p>{run('red house')}{mark}{run(' stands')}</w:p>")
    assert mark in found
    assert seen.seen == ["red house stands"]


def test_code_by_its_style_is_not_translated():
    """As Pandoc and Word name the styles of code."""
    styles = "".join(
        f'<w:style w:styleId="{key}"><w:name w:val="{name}"/></w:style>'
        for key, name in {"A": "Source Code", "B": "Verbatim Char", "C": "Dress code"}.items()
    )
    listing = f'<w:p><w:pPr><w:pStyle w:val="A"/></w:pPr>{run("print house")}</w:p>'
    words = runs_of(("red ", ""), ("git pull", '<w:rStyle w:val="B"/>'), (" house", ""))
    found, _, _ = written_docx(
        listing + words + listing.replace('"A"', '"C"'),
        styles=f'<w:styles xmlns:w="{_TRANSITIONAL}">{styles}</w:styles>',
    )
    assert found.startswith(listing)
    assert '<w:rStyle w:val="B"/></w:rPr><w:t xml:space="preserve">git pull</w:t>' in found
    assert "HOUSE PRINT" in found


def test_what_computed_fields_show_is_read_without_what_their_instruction_does_and_told():
    inner = field(" MERGEFIELD Sex ", run("M"))
    begin, rest = field(" IF ", run("Dear Sir")).split("</w:instrText></w:r>", 1)
    nested = f"{begin}</w:instrText></w:r>{inner}{rest}"
    button = field(" MACROBUTTON No [your name] ")
    name = field(" MERGEFIELD Name ", run("«Name»"))
    _, seen, counts = written_docx(f"<w:p>{nested}{run(', we write ')}{name}{button}</w:p>")
    assert seen.seen[0] == "Dear Sir, we write «Name»"
    assert counts.notes == ["2 texts of computed fields not translated: 'Dear Sir', '[your name]'"]


def test_what_a_link_in_the_older_way_shows_is_translated():
    link = field(' HYPERLINK "https://example.org" \\o "red house: old" ', run("old cat"))
    found, _, _ = written_docx(f"<w:p>{link}</w:p>")
    assert ' HYPERLINK "https://example.org" \\o "HOUSE RED: OLD" ' in found
    assert run("CAT OLD") in found


def test_a_bookmark_of_odt_begins_before_it_ends():
    document = odfdo.Document("text")
    document.body.clear()
    paragraph = odfdo.Paragraph("the one red house stands")
    paragraph.set_bookmark("here", content="red house")
    document.body.append(paragraph)
    data = io.BytesIO()
    document.save(data)
    written = translate_document(data.getvalue(), Swapping(), "a.odt")
    with zipfile.ZipFile(io.BytesIO(written)) as archive:
        found = archive.read("content.xml").decode()
    assert "HOUSE" in found
    assert 0 < found.index("<text:bookmark-start") < found.index("<text:bookmark-end")


_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_TYPES = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_A = "http://schemas.openxmlformats.org/drawingml/2006/main"
_C = "http://schemas.openxmlformats.org/drawingml/2006/chart"


def relations(*found: tuple[str, str]) -> str:
    inner = "".join(
        f'<Relationship Id="r{number}" Type="{kind if ":" in kind else f"{_TYPES}/{kind}"}"'
        f' Target="{target}"/>'
        for number, (kind, target) in enumerate(found)
    )
    return f'<Relationships xmlns="{_RELATIONS}">{inner}</Relationships>'


def test_parts_of_office_are_found_by_relationships_and_what_stays_is_told():
    """Word on the web writes word/document2.xml, and no name says what a part is."""
    body = _DOCX.format(
        namespace=_TRANSITIONAL,
        body=f'<w:p>{run("red house")}<w:r><w:drawing><docPr descr="old cat" title="a.png"/>'
        f"</w:drawing></w:r></w:p><w:sdt><w:sdtPr><w:dataBinding/></w:sdtPr></w:sdt>",
    )
    text = f'<p xmlns="{_A}"><r><t>red house</t></r></p>'
    name = "<c:strRef><c:f>A1</c:f><c:strCache><c:pt><c:v>red house</c:v></c:pt></c:strCache>"
    chart = (
        f'<c:chartSpace xmlns:c="{_C}"><c:title>{text}</c:title><c:ser><c:tx>{name}</c:strRef>'
        "</c:tx><c:cat><c:multiLvlStrRef><c:multiLvlStrCache><c:lvl><c:pt><c:v>old cat</c:v></c:pt>"
        "</c:lvl></c:multiLvlStrCache></c:multiLvlStrRef></c:cat><c:val><c:numCache><c:pt>"
        "<c:v>NaN</c:v></c:pt></c:numCache></c:val></c:ser></c:chartSpace>"
    )
    level = f'<w:numbering xmlns:w="{_TRANSITIONAL}"><w:lvlText w:val="Chapter %1."/></w:numbering>'
    drawing = "http://schemas.microsoft.com/office/2007/relationships/diagramDrawing"
    parts = {
        "_rels/.rels": relations(("officeDocument", "/word/document2.xml")),
        "word/document2.xml": body,
        "word/_rels/document2.xml.rels": relations(
            ("header", "x.xml"),
            ("chart", "charts/chart1.xml"),
            ("diagramData", "d1.xml"),
            (drawing, "d2.xml"),
            ("numbering", "n.xml"),
            ("header", "missing.xml"),
        ),
        "word/x.xml": f'<w:hdr xmlns:w="{_TRANSITIONAL}"><w:p>{run("old cat")}</w:p></w:hdr>',
        "word/header9.xml": f'<w:hdr xmlns:w="{_TRANSITIONAL}"><w:p>{run("other")}</w:p></w:hdr>',
        "word/charts/chart1.xml": chart,
        "word/charts/_rels/chart1.xml.rels": relations(("package", "../sheet.xlsx")),
        "word/sheet.xlsx": "x",
        "word/d1.xml": f"<dataModel>{text}</dataModel>",
        "word/d2.xml": f"<drawing>{text}</drawing>",
        "word/n.xml": level,
    }
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for part, content in parts.items():
            archive.writestr(part, content)
    counts = Counts()
    written = translate_document(data.getvalue(), Swapping(), "a.docx", counts=counts)
    with zipfile.ZipFile(io.BytesIO(written)) as archive:
        found = {part: archive.read(part).decode() for part in parts}

    kept = ("word/header9.xml", "word/n.xml", "word/sheet.xlsx")
    assert {part: found[part] for part in kept} == {part: parts[part] for part in kept}
    assert 'descr="CAT OLD" title="a.png"' in found["word/document2.xml"]
    assert "CAT OLD" in found["word/x.xml"]
    for part in ("word/document2.xml", "word/d1.xml", "word/d2.xml"):
        assert "HOUSE RED" in found[part]
    assert re.findall("<c:v>(.*?)</c:v>", found["word/charts/chart1.xml"]) == [
        "HOUSE RED",
        "CAT OLD",
        "NaN",
    ]
    assert counts.notes == [
        "1 embedded file not translated, the worksheets of charts among them",
        "1 numbering not translated: 'Chapter %1.'",
        "1 field bound to data of the file: Word may show the original",
    ]


def test_what_a_layout_shows_itself_is_translated_and_no_prompt():
    slides = pptx.Presentation()
    slides.slides.add_slide(slides.slide_layouts[6])
    layout = slides.slide_layouts[6]
    shape = slides.slides[0].shapes.add_textbox(0, 0, 9, 9)
    shape.text_frame.text = "red house"
    layout.shapes._spTree.append(shape._element)
    found = pptx.Presentation(office(slides, "a.pptx"))
    texts = [
        shape.text_frame.text for shape in found.slide_layouts[6].shapes if shape.has_text_frame
    ]
    assert "HOUSE RED" in texts
    before = [shape.text_frame.text for shape in slides.slide_layouts[0].placeholders]
    assert [shape.text_frame.text for shape in found.slide_layouts[0].placeholders] == before


def test_a_file_with_the_name_of_another_format_is_refused_by_its_main_part():
    data = io.BytesIO()
    pptx.Presentation().save(data)
    with pytest.raises(DataError, match=r"must hold <document> in its main part, which is <pres"):
        translate_document(data.getvalue(), Swapping(), "a.docx")


def test_docx_parts_without_text_are_byte_equal():
    document = docx.Document()
    document.add_paragraph("red house")
    data = io.BytesIO()
    document.save(data)
    with (
        zipfile.ZipFile(data) as before,
        zipfile.ZipFile(office(document, "a.docx")) as after,
    ):
        assert before.namelist() == after.namelist()
        for name in before.namelist():
            if name != "word/document.xml":
                assert before.read(name) == after.read(name)


def test_pptx_keeps_runs_and_notes():
    slides = pptx.Presentation()
    slide = slides.slides.add_slide(slides.slide_layouts[1])
    slide.shapes.title.text = "red house"
    paragraph = slide.placeholders[1].text_frame.paragraphs[0]
    for text, bold in (("old", True), (" cat sleeps here", None)):
        run = paragraph.add_run()
        run.text, run.font.bold = text, bold
    slide.notes_slide.notes_text_frame.text = "my notes"

    found = pptx.Presentation(office(slides, "a.pptx")).slides[0]
    assert found.shapes.title.text == "HOUSE RED"
    runs = found.placeholders[1].text_frame.paragraphs[0].runs
    assert [(r.text, r.font.bold) for r in runs] == [
        ("CAT ", None),
        ("OLD", True),
        (" HERE SLEEPS", None),
    ]
    assert found.notes_slide.notes_text_frame.text == "NOTES MY"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.pdf", "docx or html"),
        ("a.doc", "save it as docx"),
        ("a.docm", "macros"),
        ("README.rst", "pandoc converts it to md"),
        ("a.adoc", "downdoc"),
        ("a.ttml", "converts it to srt"),
        ("a.tmx", "export those to translate as xliff"),
        ("a.jsonl", "jq"),
        ("a.dotx", "save it as docx"),
        ("a.ipynb", "nbconvert"),
        ("train.ts", "lconvert .* --format lines reads Tsonga"),
        ("a", "its name has no end"),
    ],
)
def test_other_formats_are_refused_by_name_with_what_to_do(name: str, message: str):
    with pytest.raises(DataError, match=message):
        format_of(name)


def test_names_of_documents():
    assert all(map(is_document, ("x/Report.DOCX", "a.pdf", "a.Rmd", "a.tex")))
    assert not any(map(is_document, ("test.en", "train.mkd", "a.txt", "-")))


def test_tables_keep_other_columns_and_rows_without_a_change():
    source = 'id,text,"note"\r\n1,"red, house","x"\r\n"2",,"keep ""this"""\r\n3,old cat,y\r\n'
    found = translated(source, "a.csv", options=ReadOptions(columns=("text",)))
    assert found == (
        'id,text,"note"\r\n1,"RED, HOUSE","x"\r\n"2",,"keep ""this"""\r\n3,CAT OLD,y\r\n'
    )
    assert translated("a\tb\nx\tred house\n", "a.tsv", options=ReadOptions(columns=("2",))) == (
        "a\tb\nx\tHOUSE RED\n"
    )


@pytest.mark.parametrize(
    ("cell", "guarded"),
    [
        ("=1+1", "'=1+1"),
        ("+SUM(A1)", "'+SUM(A1)"),
        ("-1+cmd|' /C calc'!A0", "'-1+cmd|' /C calc'!A0"),
        (' "@red"', ' "\'@red"'),
        ('"\t=1"', '"\'\t=1"'),
        ("＝1", "'＝1"),
        ("-5", "-5"),
        ("+1.250", "+1.250"),
        ("a=1", "a=1"),
    ],
)
def test_cells_that_a_spreadsheet_may_run_are_guarded_on_request(cell: str, guarded: str):
    """In the columns that are not translated and in the names, too; numbers stay."""
    source = f"@a,text\n{cell},red house\n{cell},\n"
    columns = ReadOptions(columns=("text",))
    assert translated(source, "a.csv", options=columns) == (f"@a,text\n{cell},HOUSE RED\n{cell},\n")
    options = dataclasses.replace(columns, guard_cells=True)
    assert translated(source, "a.csv", options=options) == (
        f"'@a,text\n{guarded},HOUSE RED\n{guarded},\n"
    )


def test_translations_and_quoted_cells_of_tsv_are_guarded():
    options = ReadOptions(columns=("b",), guard_cells=True)
    assert translated('a\tb\n"=1"\t= red\n', "a.tsv", options=options) == ("a\tb\n'\"=1\"\t'=RED\n")


def test_formulas_of_tables_and_escapes_of_tsv_stay():
    options = ReadOptions(columns=("b",))
    assert translated("b\n=SUM(A1)\n@MAX(A1)\n", "a.csv", options=options) == (
        "b\n=SUM(A1)\n@MAX(A1)\n"
    )
    source = "b\nred house\\nold cat\\tis\n"
    assert translated(source, "a.tsv", options=options) == "b\nHOUSE RED\\nCAT OLD\\tIS\n"


@pytest.mark.parametrize(
    ("first", "is_named"),
    [
        ("text", False),
        ("Part No.", False),
        ("Text of the label", False),
        ("Je vois un chat.", True),
        ("我看见一只猫。", True),
        ("Un chat noir dans le jardin", True),
    ],
)
def test_a_first_row_that_reads_like_a_sentence_is_named(first: str, is_named: bool):
    document = read_document(
        f"{first}\tb\nred\tc\n".encode(), "tsv", "a.tsv", ReadOptions(columns=("1",))
    )
    note = f"its first row is read as the names of its columns and stays: {first!r}"
    assert list(document.notes) == [note] * is_named


def test_columns_of_a_table_must_be_named_and_known():
    with pytest.raises(ConfigError, match="it has 'id', 'text'"):
        translated("id,text\n1,red\n", "a.csv")
    with pytest.raises(ConfigError, match="no column 'txt'"):
        translated("id,text\n1,red\n", "a.csv", options=ReadOptions(columns=("txt",)))


def test_json_keeps_keys_layout_and_escapes():
    source = (
        '{"red house": "red house",\n  "b" : [1.50, "old <b>cat</b> here"], "c": "caf\\u00e9 noir"}'
    )
    assert translated(source, "a.json") == (
        '{"red house": "HOUSE RED",\n  "b" : [1.50, "<b>CAT</b> OLD HERE"], "c": "NOIR CAF\\u00c9"}'
    )
    found = translated(source, "a.json", options=ReadOptions(columns=("c",)))
    assert found == source.replace("caf\\u00e9 noir", "NOIR CAF\\u00c9")


@pytest.mark.parametrize(
    ("source", "found"),
    [
        # react-i18next and Lingui
        ("the <0>red</0> house<1/> here", "<0>RED</0> THE HERE HOUSE<1/>"),
        ("the <b>red</b> house", "<b>RED</b> THE HOUSE"),
        # Angular
        ("the {$startTagB}red{$closeTagB} house", "{$startTagB}RED{$closeTagB} THE HOUSE"),
        ("the {START_LINK}red{CLOSE_LINK} house", "{START_LINK}RED{CLOSE_LINK} THE HOUSE"),
        # Ruby's placeholders look like tags.
        ("red %<n>d house %<of>.1f, 5%<b>x</b>", "RED %<n>d HOUSE %<of>.1f, 5%<b>X</b>"),
        # Android
        (
            'the red <xliff:g id="x" example="old cat">old %1$s</xliff:g> house',
            'RED THE <xliff:g id="x" example="old cat">old %1$s</xliff:g> HOUSE',
        ),
        # HTML
        ("press <kbd>Ctrl</kbd> x", "PRESS <kbd>Ctrl</kbd> X"),
        ("red <code>a</code> b <code>c", "RED <code>a</code> B <code>C"),
    ],
)
def test_tags_of_frameworks_are_marks(source: str, found: str):
    written = json.loads(translated(json.dumps({"k": source}), "a.json"))["k"]
    assert sorted(re.findall("<[^>]*>|[A-Z]+", written)) == sorted(
        re.findall("<[^>]*>|[A-Z]+", found)
    )
    for tag in re.findall(
        r"\{.*\}|%<\w+>[.\d]*[df]|<(?:0|b|kbd|code|xliff:g)\b[^>]*>[^<]*</[^>]*>", found
    ):
        assert tag in written


def test_what_json_says_to_translators_stays():
    source = (
        '{"@@locale": "en", "title": "red house", "@title": {"description": "an old cat",'
        ' "placeholders": {"n": {"example": "two cats"}}}, "more": "small dog"}'
    )
    found = source.replace("red house", "HOUSE RED").replace("small dog", "DOG SMALL")
    assert translated(source, "a.arb") == found
    named = translated(source, "a.arb", options=ReadOptions(columns=("@title",)))
    assert '"title": "red house"' in named
    assert "CAT" in named


MESSAGES = [
    # FormatJS, Flutter, Lingui, i18next-icu: forms within forms
    (
        "you have {n, plural, =0 {no cats} one {# cat} other {# old cats}} here",
        "HAVE YOU {n, plural, =0 {CATS NO} one {CAT #} other {OLD # CATS}} HERE",
    ),
    (
        "{g, select, male {{n, plural, offset:1 one {his red house} other {his # houses}}}"
        " other {{m, selectordinal, two {{m, number} cat} other {{k, plural, other {<b>red"
        " cat</b> here}}}}}}",
        "{g, select, male {{n, plural, offset:1 one {RED HIS HOUSE} other {# HIS HOUSES}}}"
        " other {{m, selectordinal, two {{m, number} CAT} other {{k, plural, other {<b>CAT"
        " RED</b> HERE}}}}}}",
    ),
    # An apostrophe would begin a quotation; one that is written twice is one.
    ("{n, plural, other {it's red}}", "{n, plural, other {IT’RED S}}"),
    ("{0}''s red house", "{0}''S HOUSE RED"),
    (
        "{n, plural, one {red '{name}'} other {it''s}}",
        "{n, plural, one {RED '{name}'} other {IT''S}}",
    ),
    # Vue I18n, Laravel and Symfony
    ("no cats | one red cat | {n} old cats", "CATS NO | RED ONE CAT | {n} CATS OLD"),
    (
        "{0} no cats|[1,19] some cats|[20,*] old cats",
        "{0} CATS NO|[1,19] CATS SOME|[20,*] CATS OLD",
    ),
    ("<b>red | house</b> | old cat", "<b>RED | HOUSE</b> | CAT OLD"),
]


@pytest.mark.parametrize(("source", "found"), MESSAGES)
def test_each_form_of_a_message_is_translated_by_itself(source: str, found: str):
    def spaceless(text: str) -> str:
        return text.replace(" ", "")

    data = json.dumps({"key": source}, ensure_ascii=False)
    written = json.loads(translated(data, "a.json"))["key"]
    # The stand-in writes no space behind a sign.
    assert spaceless(written) == spaceless(found)


def test_a_form_is_read_with_a_number_that_it_is_for():
    swapping = Swapping()
    source = "{n, plural, =0 {# cats} one {# cat} few {# dogs} other {{g, select, other {# red}}}}"
    translate_document(json.dumps({"k": source}).encode(), swapping, "a.json")
    assert {"0 cats", "1 cat", "3 dogs", "5 red"} <= set(swapping.seen)


@pytest.mark.parametrize(
    "source",
    [
        "{n, plural, one {<b>red} other {house</b>}}",
        "{n, plural, one {red house}",
        "{n, plural, one red house}",
        "{n, plural, one {red '{house}} other {cat}} x",
        "{n, plural, other {a}} }",
        "{0,choice,0#no cats|1#one cat|1<{0} cats}",
        "{n, plural, other {" * 30 + "cat" + "}}" * 30,
    ],
)
def test_a_message_that_cannot_be_read_is_left_whole_and_said(source: str):
    data = json.dumps({"a": "red house", "key": source}).encode()
    counts = Counts()
    found = json.loads(translate_document(data, Swapping(), "a.json", counts=counts))
    assert found == {"a": "HOUSE RED", "key": source}
    assert counts.notes == [
        "1 string with plural or select forms is as in the source: its braces cannot be read"
        f" as ICU's format: {re.sub('<[^>]*>', '', source)[:40]!r}"
    ]


def test_braces_of_the_model_do_not_break_a_message():
    class Braces(Swapping):
        def one(self, sentence, align):
            return Aligned("a } b")

    counts = Counts()
    source = b'{"k": "{n, plural, other {red house}}"}'
    assert translate_document(source, Braces(), "a.json", counts=counts) == source
    assert len(counts.notes) == 1


def test_an_apostrophe_of_the_model_begins_no_quotation():
    class Article(Swapping):
        def one(self, sentence, align):
            return Aligned(f"l'{sentence}")

    assert translate_document(b'{"k": "{name} red"}', Article(), "a.json") == (
        '{"k": "l’{name} red"}'.encode()
    )
    # A file of ICU's messages: there one before a tag begins a quotation too.
    for plural, is_quotation in (("{n, plural, other {#}}", False), ("none", True)):
        source = json.dumps({"a": plural, "k": "<b>red</b> house"}).encode()
        found = json.loads(translate_document(source, Article(), "a.json"))["k"]
        assert re.sub("<[^>]*>", "", found).replace("’", "'") == "l'red house"
        assert ("'" in found) == is_quotation


def test_forms_in_the_xliff_of_angular_are_translated_with_their_elements():
    unit = (
        '<trans-unit id="1"><source>{VAR_PLURAL, plural, =0 {red house} other {<x id="I"/> old'
        " cats}}</source>"
    )
    target = '{VAR_PLURAL, plural, =0 {HOUSE RED} other {<x id="I"/> CATS OLD}}</target>'
    source = XLIFF_1.replace(
        '<trans-unit id="1"><source>', unit + '</trans-unit><trans-unit id="0"><source>'
    )
    found = translated(source, "a.xlf")
    assert target.replace(" CATS", "CATS") in found.replace("> CATS", ">CATS")


def test_halves_of_characters_stay_and_pairs_of_them_are_one():
    source = '{"a": "Grüße \\ud83d hallo", "b": "red \\ud83d\\ude00 house", "c": "red house"}'
    found = translated(source, "a.json")
    assert '"a": "Grüße \\ud83d hallo"' in found
    assert '"c": "HOUSE RED"' in found
    yaml = 'a: "red house \\ud83d\\ude00"\nb: "half \\ud83d"\n'
    found = translated(yaml, "a.yaml")
    assert "HOUSE RED" in found
    assert "😀" in found
    assert found.endswith('b: "half \\ud83d"\n')


def test_yaml_keeps_comments_quotes_blocks_anchors_and_other_types():
    source = (
        "# note\nen:\n  a: red house   # note\n  list:\n    - \"old cat\"\n    - 'it is'\n"
        "    - 42\n"
        "    - yes\n  block: |\n    first line\n    second line\n  fold: >-\n    one two\n"
        "    three four\n\n    five six\n  anchor: &a some text\n  alias: *a\n"
    )
    assert translated(source, "a.yaml") == (
        "# note\nen:\n  a: HOUSE RED   # note\n  list:\n    - \"CAT OLD\"\n    - 'IS IT'\n"
        "    - 42\n"
        "    - yes\n  block: |\n    LINE FIRST\n    LINE SECOND\n"
        "  fold: >-\n    TWO ONE FOUR THREE\n"
        "\n    SIX FIVE\n  anchor: &a TEXT SOME\n  alias: *a\n"
    )


def test_a_block_of_yaml_keeps_its_line_ends_and_its_indent():
    source = (
        "a: |2\r\n    red house\r\n  old cat\r\nb: >-\r\n  x y\r\n\r\n  z w\r\n"
        "c:\r\n  d: |1-\r\n   r\u00e9d house\r\ne: 1\r\n"
    )
    found = translated(source, "a.yaml")
    assert found == (
        "a: |2\r\n    HOUSE RED\r\n  CAT OLD\r\nb: >-\r\n  Y X\r\n\r\n  W Z\r\n"
        "c:\r\n  d: |1-\r\n   HOUSE R\u00c9D\r\ne: 1\r\n"
    )
    assert yaml.safe_load(found) == {
        "a": "  HOUSE RED\nCAT OLD\n",
        "b": "Y X\nW Z",
        "c": {"d": "HOUSE R\u00c9D"},
        "e": 1,
    }


def test_yaml_strings_are_quoted_where_they_would_be_something_else():
    class Number(Swapping):
        def one(self, sentence, align):
            from pellucid.documents.placement import Aligned

            return Aligned("42: # no")

    assert translate_document(b"a: red\n", Number(), "a.yml") == b'a: "42: # no"\n'


def test_po_fills_what_is_empty_and_keeps_what_is_translated():
    source = (
        'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
        '"Plural-Forms: nplurals=2; plural=(n != 1);\\n"\n\n#: a.c:1\n#, c-format\n'
        'msgid "red house %s\\n"\nmsgstr ""\n\nmsgid "%d old cat"\nmsgid_plural "%d old cats"\n'
        'msgstr[0] ""\nmsgstr[1] ""\n\nmsgid "done"\nmsgstr "fertig"\n'
    )
    found = {entry.msgid: entry for entry in polib.pofile("\n" + translated(source, "a.po"))}
    assert found["red house %s\n"].msgstr == "HOUSE RED %s\n"
    assert found["%d old cat"].msgstr_plural == {0: "%d CAT OLD", 1: "%d CATS OLD"}
    assert found["done"].msgstr == "fertig"


def test_a_language_with_one_plural_form_gets_the_plural():
    head = 'msgid ""\nmsgstr ""\n"Plural-Forms: nplurals=1; plural=0;\\n"\n\n'
    source = 'msgid "one cat"\nmsgid_plural "%d cats"\nmsgstr[0] ""\n'
    assert 'msgstr[0] "%d CATS"' in translated(head + source, "a.po")


def test_a_po_file_that_cannot_be_read_is_told_with_its_line():
    with pytest.raises(DataError, match=r"a.po is not a po file: .*line 3\b"):
        translated('msgid "a"\nmsgstr "b"\nnonsense\n', "a.po")


XLIFF_1 = """<?xml version="1.0" encoding="UTF-8"?>
<xliff xmlns="urn:oasis:names:tc:xliff:document:1.2" version="1.2"><file source-language="en" \
original="x" datatype="plaintext"><body>
<trans-unit id="1"><source>the <g id="1">red</g> house <x id="2"/>&lt;br&gt; stands</source>
</trans-unit>
<trans-unit id="2" translate="no"><source>not this</source></trans-unit>
<trans-unit id="3"><source>has one</source><target>hat eins</target></trans-unit>
</body></file></xliff>"""


def test_xliff_1_gets_targets_with_the_inline_elements():
    target = (
        '<target state="needs-review-translation" state-qualifier="leveraged-mt"><g id="1">RED</g>'
        ' THE HOUSE <x id="2"/>&lt;br&gt; STANDS</target>'
    )
    assert translated(XLIFF_1, "a.xlf") == XLIFF_1.replace("</source>", "</source>\n" + target, 1)


def test_xliff_2_gets_targets_with_the_inline_elements():
    source = (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0"'
        ' version="2.0" srcLang="en"><file id="f"><unit id="u"><segment><source>the <pc id="1">red'
        '</pc> house <ph id="2"/> stands</source></segment></unit></file></xliff>'
    )
    assert translated(source, "a.xliff") == source.replace(
        "<segment>", '<segment state="translated">'
    ).replace(
        "</source>",
        '</source><target><pc id="1">RED</pc> THE STANDS HOUSE <ph id="2"/></target>',
    )


def test_spaces_that_are_an_element_of_odt_are_read_as_one():
    """``text:s``, which programs write without a space before it too."""
    translator = Swapping()
    body = '<text:p>red<text:s text:c="2"/>house <text:s/>old cat<text:s/></text:p>'
    translate_document(file_of("odt", body), translator, "a.odt")
    assert translator.seen == ["red house old cat"]


def test_odt_keeps_spans_links_notes_and_parts_without_text():
    document = odfdo.Document("text")
    document.body.clear()
    paragraph = odfdo.Paragraph("the red house stands")
    paragraph.set_span("bold", regex="red")
    document.body.append(odfdo.Header(1, "red house"))
    document.body.append(paragraph)
    paragraph.insert_note(after="stands", note_id="n1", citation="1", body="old cat")
    data = io.BytesIO()
    document.save(data)

    written = io.BytesIO(translate_document(data.getvalue(), Swapping(), "a.odt"))
    found = odfdo.Document(written)
    assert found.body.get_headers()[0].inner_text == "HOUSE RED"
    body = next(each for each in found.body.get_paragraphs() if each.get_spans())
    assert body.get_spans()[0].inner_text == "RED"
    assert "CAT OLD" in body.serialize()
    assert body.serialize().count("<text:note ") == 1
    with zipfile.ZipFile(data) as before, zipfile.ZipFile(written) as after:
        assert after.infolist()[0].filename == "mimetype"
        assert after.infolist()[0].compress_type == zipfile.ZIP_STORED
        assert before.read("settings.xml") == after.read("settings.xml")


def book(chapter: str) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("mimetype", "application/epub+zip")
        archive.writestr("META-INF/container.xml", "<container/>")
        archive.writestr("OEBPS/one.xhtml", chapter)
        archive.writestr(
            "OEBPS/toc.ncx",
            '<?xml version="1.0"?><!DOCTYPE ncx PUBLIC "-//NISO//DTD ncx 2005-1//EN" "ncx.dtd">'
            '<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><navLabel><text>red house</text>'
            "</navLabel></ncx>",
        )
        archive.writestr("OEBPS/picture.png", bytes(range(256)))
    return data.getvalue()


def test_epub_translates_chapters_and_contents_and_keeps_pictures():
    chapter = (
        '<html xmlns="http://www.w3.org/1999/xhtml"><body><p>red <i>house</i></p></body></html>'
    )
    with zipfile.ZipFile(
        io.BytesIO(translate_document(book(chapter), Swapping(), "a.epub"))
    ) as found:
        text = found.read("OEBPS/one.xhtml").decode()
        assert text == chapter.replace("red <i>house</i>", "<i>HOUSE</i> RED")
        assert b"<text>HOUSE RED</text>" in found.read("OEBPS/toc.ncx")
        assert found.read("OEBPS/picture.png") == bytes(range(256))


def test_the_chapters_of_a_book_are_those_that_its_package_lists():
    chapter = "<html xmlns='http://www.w3.org/1999/xhtml'><body><p>red house</p></body></html>"
    parts = {
        "META-INF/container.xml": (
            "<container xmlns='urn:oasis:names:tc:opendocument:xmlns:container'><rootfiles>"
            "<rootfile full-path='OPS/package.opf'/><rootfile full-path='none.opf'/></rootfiles>"
            "</container>"
        ),
        "OPS/package.opf": (
            "<package xmlns='http://www.idpf.org/2007/opf'><manifest>"
            "<item href='text/main%200.xml' media-type='application/xhtml+xml'/>"
            "<item href='../data.xml' media-type='application/xml'/></manifest></package>"
        ),
        "OPS/text/main 0.xml": chapter,
        "data.xml": chapter,
    }

    def found(parts: dict[str, str]) -> dict[str, str]:
        data = io.BytesIO()
        with zipfile.ZipFile(data, "w") as archive:
            for name, text in parts.items():
                archive.writestr(name, text)
        written = io.BytesIO(translate_document(data.getvalue(), Swapping(), "a.epub"))
        with zipfile.ZipFile(written) as archive:
            return {name: archive.read(name).decode() for name in archive.namelist()}

    changed = chapter.replace("red house", "HOUSE RED")
    assert found(parts) == {**parts, "OPS/text/main 0.xml": changed}
    # Of a package that cannot be read the endings tell.
    broken = {**parts, "OPS/package.opf": "<package>", "a.xhtml": chapter}
    assert found(broken) == {**broken, "a.xhtml": changed}


@pytest.mark.parametrize(
    ("stored", "name"),
    [
        ("é".encode(), "é"),
        (b"\x81\x82", "üé"),
        ("章".encode("gbk"), "╒┬"),
        ("表".encode("cp932"), "ò\\"),
    ],
)
def test_names_without_a_flag_are_read_as_utf_8_or_else_as_zip_has_them(stored: bytes, name: str):
    """Many programs leave out the flag; the package of a book and its pages name parts in UTF-8."""
    chapter = "<html xmlns='http://www.w3.org/1999/xhtml'><body><p>red house</p></body></html>"
    package = (
        "<package xmlns='http://www.idpf.org/2007/opf'><manifest>"
        f"<item href='{name}.xml' media-type='application/xhtml+xml'/></manifest></package>"
    )
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        container = "<container><rootfile full-path='a.opf'/></container>"
        archive.writestr("META-INF/container.xml", container)
        archive.writestr("a.opf", package)
        archive.writestr("@@.xml", chapter)
    unflagged = data.getvalue().replace(b"@@", stored)

    written = translate_document(unflagged, Swapping(), "a.epub")
    with zipfile.ZipFile(io.BytesIO(written)) as archive:
        assert archive.namelist() == ["META-INF/container.xml", "a.opf", f"{name}.xml"]
        assert "HOUSE RED" in archive.read(f"{name}.xml").decode()
    assert written.count(stored + b".xml") == unflagged.count(stored + b".xml")


def _encrypted_by(algorithm: str) -> str:
    return f"<encryption><e:EncryptionMethod xmlns:e='e' Algorithm='{algorithm}'/></encryption>"


@pytest.mark.parametrize(
    ("encryption", "is_locked"),
    [
        (_encrypted_by("http://www.w3.org/2001/04/xmlenc#aes256-cbc"), True),
        (_encrypted_by("http://www.idpf.org/2008/embedding"), False),  # fonts alone
        ("<damaged", False),
    ],
)
def test_a_book_whose_chapters_are_encrypted_is_refused_as_locked(encryption: str, is_locked: bool):
    data = io.BytesIO(book("<p>red house</p>"))
    with zipfile.ZipFile(data, "a") as archive:
        archive.writestr("META-INF/encryption.xml", encryption)
    if is_locked:
        with pytest.raises(DataError, match="is locked by its seller or library"):
            translate_document(data.getvalue(), Swapping(), "a.epub")
    else:
        assert b"HOUSE RED" in translate_document(data.getvalue(), Swapping(), "a.epub")


def test_a_document_type_without_entities_is_harmless_and_an_error_of_xml_is_one_line():
    source = "<!DOCTYPE resources><resources><string name='a'>red house</string></resources>"
    found = translate_document(source.encode(), Swapping(), "strings.xml", kind="android")
    assert found.decode() == source.replace("red house", "HOUSE RED")
    with pytest.raises(DataError) as caught:
        read_document(b"<xliff>\0</xliff>", "xliff", "a.xliff")
    assert "\n" not in str(caught.value)
    assert str(caught.value).count("line 1") == 1


def test_a_book_says_its_new_language_and_keeps_pages_and_names():
    chapter = (
        '<?xml version="1.0" encoding="{codec}"?><html lang="de" xml:lang="de-AT"><p>r\u00e9d'
        ' house<span role="doc-pagebreak">xii</span></p></html>'
    )
    ncx = (
        "<ncx xmlns='http://www.daisy.org/z3986/2005/ncx/' xml:lang='de'><docTitle><text>red house"
        "</text></docTitle><docAuthor><text>Old Cat</text></docAuthor><pageList><pageTarget>"
        "<navLabel><text>Page xii</text></navLabel></pageTarget></pageList></ncx>"
    )
    package = (
        "<package xmlns:dc='x'><dc:title>Red house</dc:title><dc:creator>Old Cat</dc:creator>"
        "<dc:language id='l'> de </dc:language><dc:language>fr</dc:language></package>"
    )
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr(
            "META-INF/container.xml",
            "<container><rootfile full-path='a.opf'/></container>",
        )
        archive.writestr("a.opf", package)
        archive.writestr("toc.ncx", ncx)
        for codec in ("utf-16", "iso-8859-1"):
            archive.writestr(f"{codec}.xhtml", chapter.format(codec=codec).encode(codec))
    options = ReadOptions(target_language="en")
    written = translate_document(data.getvalue(), Swapping(), "a.epub", options=options)
    with zipfile.ZipFile(io.BytesIO(written)) as archive:
        assert archive.read("a.opf").decode() == package.replace(" de ", " en ")
        found = archive.read("toc.ncx").decode()
        assert "<docTitle><text>HOUSE RED</text>" in found
        assert 'xml:lang="en"' in found
        assert "<text>Old Cat</text>" in found
        assert "<text>Page xii</text>" in found
        for codec in ("utf-16", "iso-8859-1"):
            text = chapter.replace('"de"', '"en"').replace("de-AT", "en")
            text = text.replace("r\u00e9d house", "HOUSE R\u00c9D")
            assert archive.read(f"{codec}.xhtml").decode(codec) == text.format(codec=codec)
    # Without a known language nothing but the texts changes.
    written = translate_document(data.getvalue(), Swapping(), "a.epub")
    with zipfile.ZipFile(io.BytesIO(written)) as archive:
        assert archive.read("a.opf").decode() == package
        assert b'lang="de"' in archive.read("iso-8859-1.xhtml")
        assert b'lang="de"' in archive.read("toc.ncx")


def test_a_page_says_its_new_language():
    options = ReadOptions(target_language="en")
    for source, wanted in (
        ("<html lang=de title='a b'>", "<html lang=en title='B A'>"),
        ("<html lang=de><p lang=de>", "<html lang=en><p lang=de>"),
        ('<html lang="en-GB">', '<html lang="en-GB">'),
    ):
        assert translated(source, "a.html", options=options) == wanted


@pytest.mark.parametrize(
    ("written", "target", "stays"),
    [
        ("zh-Hans", "zh-Hant", False),
        ("sr-Cyrl", "sr-Latn", False),
        ("pt-BR", "pt-PT", False),
        ("pt", "pt-BR", False),
        ("en-GB", "EN", True),
        ("de-AT", "de-at", True),
        ("fil", "fi", False),
    ],
)
def test_a_page_keeps_its_language_only_if_it_is_the_new_one(
    written: str, target: str, stays: bool
):
    options = ReadOptions(target_language=target)
    found = translated(f'<html lang="{written}">', "a.html", options=options)
    assert found == f'<html lang="{written if stays else target}">'


def test_as_many_segments_are_needed_as_were_read():
    document = read_document(b"red house\n", "md", "a.md")
    with pytest.raises(ValueError, match="1 segments are needed, got 2"):
        document.write([*document.segments, *document.segments])
