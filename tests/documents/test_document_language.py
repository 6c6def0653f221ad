"""A translated document says its new language, and is read from the right side if that is."""

import io
import re
import zipfile

import docx
import odfdo
import pptx
import pytest
from docx.enum.text import WD_ALIGN_PARAGRAPH
from docx.oxml.ns import qn

from pellucid.documents.document_language import names_source, turns_right_to_left
from pellucid.documents.formats import ReadOptions
from pellucid.documents.segments import Languages
from pellucid.documents.translate import translate_document
from pellucid.text.languages import is_right_to_left, with_country
from tests.documents.stand_in import Swapping, translated

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"


def into(data: bytes, name: str, source: str, target: str) -> bytes:
    options = ReadOptions(source_language=source, target_language=target)
    return translate_document(data, Swapping(), name, options=options)


def saved(document) -> bytes:
    data = io.BytesIO()
    document.save(data)
    return data.getvalue()


@pytest.mark.parametrize(
    ("language", "wanted"),
    [
        *((each, True) for each in ("ar", "he", "fa", "ur", "arb", "heb", "ckb", "AR", "ar-EG")),
        *((each, True) for each in ("az-Arab", "pes_Arab", "ydd_Hebr", "ks_Arab", "uz-Arab-AF")),
        *((each, False) for each in ("de", "en", "zh", "az", "az_Latn", "ks_Deva", "und", "")),
        *((each, False) for each in ("ug-Latn", "kas_Deva", "arg", "heu")),
    ],
)
def test_which_languages_are_written_from_right_to_left(language: str, wanted: bool):
    assert is_right_to_left(language) is wanted


@pytest.mark.parametrize(
    ("language", "wanted"),
    [
        ("de", "de-DE"),
        ("deu", "de-DE"),
        ("en", "en-US"),
        ("en-GB", "en-GB"),
        ("pt_BR", "pt-BR"),
        ("no", "nb-NO"),
        ("zh", "zh-CN"),
        ("zh-Hant", "zh-TW"),
        ("zh-Hans", "zh-CN"),
        ("sr", "sr-RS"),
        ("sr_Latn", "sr-Latn-RS"),
        ("eng_Latn", "en-US"),
        ("ast", "ast"),
        ("", ""),
    ],
)
def test_the_country_that_an_office_program_takes(language: str, wanted: str):
    assert with_country(language) == wanted


@pytest.mark.parametrize(
    ("source", "target", "wanted"),
    [
        ("en", "ar", True),
        ("ar", "en", False),
        ("en", "de", None),
        ("ar", "fa", None),
        ("", "ar", True),
        ("", "en", None),
        ("ar", "", None),
    ],
)
def test_which_translations_turn_the_text(source: str, target: str, wanted: bool | None):
    assert turns_right_to_left(Languages(source, target)) is wanted


def test_a_document_names_the_source_s_language_of_any_country():
    both = Languages("de", "en")
    assert names_source("de-AT", both)
    assert names_source("deu", both)
    assert not names_source("fr-FR", both)
    assert not names_source(None, both)
    assert not names_source("de", Languages("de", ""))
    assert not names_source("de", Languages("", "en"))


@pytest.mark.parametrize(
    ("source", "target", "wanted"),
    [
        ("<html><p>a b", "ar", '<html dir="rtl"><p>B A'),
        ('<html class="x"><p>a b', "he", '<html dir="rtl" class="x"><p>B A'),
        ('<html lang="en" dir="ltr"><p>a b', "fa", '<html lang="fa" dir="rtl"><p>B A'),
        ('<html dir="auto"><p>a b', "ar", '<html dir="auto"><p>B A'),
        ("<HTML DIR=RTL LANG=ar><p>a b", "en", "<HTML DIR=ltr LANG=en><p>B A"),
        ('<html><body dir="rtl"><p>a b', "en", '<html><body dir="ltr"><p>B A'),
        ('<html dir="rtl"><p dir="ltr">a b', "ar", '<html dir="rtl"><p dir="ltr">B A'),
        ('<html dir="ltr"><p>a b', "en", '<html dir="ltr"><p>B A'),
        ("<p>a b", "ar", "<p>B A"),
        ("<html><p>a b", "", "<html><p>B A"),
    ],
)
def test_a_page_says_the_direction_of_its_text(source: str, target: str, wanted: str):
    assert translated(source, "a.html", options=ReadOptions(target_language=target)) == wanted


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ('<p lang="de-AT">a b</p>', '<p lang="en">B A</p>'),
        ("<html lang=de><body lang=de>a b", "<html lang=en><body lang=en>B A"),
        ('<p>a <i lang="de" xml:lang="de">b</i></p>', '<p><i lang="en" xml:lang="en">B</i> A</p>'),
        ('<p lang="fr">a b</p>', '<p lang="fr">B A</p>'),
        # A phrase stays, but for one that says to be translated, or is marked by a program.
        ('<p>a <i lang="fr">b c</i></p>', '<p>A <i lang="fr">b c</i></p>'),
        ('<a lang="en-GB" title="e f">a b</a>', '<a lang="en-GB" title="e f">a b</a>'),
        ('<em lang="la" translate="yes">a b</em>', '<em lang="la" translate="yes">B A</em>'),
        ('<span lang="fr-fonipa">a b</span>', '<span lang="fr-fonipa">a b</span>'),
        ('<span lang="EN-US">a b</span>', '<span lang="EN-US">B A</span>'),
        ('<p lang="de" translate="no">a b</p>', '<p lang="de" translate="no">a b</p>'),
        ('<code lang="de">a b</code>', '<code lang="de">a b</code>'),
        ('<code lang="de" title="a b">c</code>', '<code lang="de" title="B A">c</code>'),
        (
            '<meta http-equiv="Content-Language" content="de-AT"><meta name=a content=de>',
            '<meta http-equiv="Content-Language" content="en"><meta name=a content=de>',
        ),
        ('<a hreflang="de" lang="">a b</a>', '<a hreflang="de" lang="">B A</a>'),
    ],
)
def test_an_element_says_the_new_language_where_it_said_that_of_the_source(source, wanted):
    found = into(source.encode(), "a.html", "de", "en").decode()
    assert found == wanted


@pytest.mark.parametrize(
    ("version", "spine", "target", "wanted"),
    [
        ("3.0", "<spine toc='n'>", "ar", "<spine page-progression-direction=\"rtl\" toc='n'>"),
        ("3.0", "<spine page-progression-direction='ltr'>", "he",
         "<spine page-progression-direction='rtl'>"),
        ("3.0", "<spine page-progression-direction='rtl'>", "en",
         "<spine page-progression-direction='ltr'>"),
        ("3.0", "<spine toc='n'>", "en", "<spine toc='n'>"),
        ("2.0", "<spine toc='n'>", "ar", "<spine toc='n'>"),
    ],
)  # fmt: skip
def test_a_book_begins_on_the_side_of_its_language(version, spine, target, wanted):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr(
            "META-INF/container.xml", "<container><rootfile full-path='a.opf'/></container>"
        )
        archive.writestr("a.opf", f"<package version='{version}'>{spine}</spine></package>")
    written = into(data.getvalue(), "a.epub", "", target)
    with zipfile.ZipFile(io.BytesIO(written)) as archive:
        package = archive.read("a.opf").decode()
    assert package == f"<package version='{version}'>{wanted}</spine></package>"


def word_file() -> docx.document.Document:
    """One paragraph with a bold word, one in another language, and a table."""
    document = docx.Document()
    paragraph = document.add_paragraph("the red ")
    paragraph.add_run("house").bold = True
    paragraph.alignment = WD_ALIGN_PARAGRAPH.LEFT
    paragraph.paragraph_format.left_indent = 9
    foreign = document.add_paragraph().add_run("chat noir")
    for run, name in ((paragraph.runs[0], "en-GB"), (foreign, "fr-FR")):
        language = run._r.get_or_add_rPr().makeelement(f"{_W}lang", {f"{_W}val": name})
        run._r.rPr.append(language)
    document.add_table(1, 2).rows[0].cells[0].text = "old cat"
    return document


def languages_in(document) -> list[str | None]:
    return [each.get(f"{_W}val") for each in document.element.body.iter(f"{_W}lang")]


def test_word_says_the_new_language_where_it_said_the_old_one():
    document = word_file()
    defaults = document.styles.element.find(f".//{_W}rPrDefault//{_W}lang")
    assert defaults.get(f"{_W}val") == "en-US"

    found = docx.Document(io.BytesIO(into(saved(document), "a.docx", "en", "de")))
    assert found.styles.element.find(f".//{_W}rPrDefault//{_W}lang").get(f"{_W}val") == "de-DE"
    assert languages_in(found) == ["de-DE", "fr-FR"]
    assert not list(found.element.iter(f"{_W}bidi", f"{_W}rtl", f"{_W}bidiVisual"))

    # Japanese and Arabic have attributes of their own, beside that of Latin letters.
    for target, attribute, name in (("ja", "eastAsia", "ja-JP"), ("ar", "bidi", "ar-SA")):
        found = docx.Document(io.BytesIO(into(saved(document), "a.docx", "en", target)))
        language = next(found.element.body.iter(f"{_W}lang"))
        assert dict(language.attrib) == {f"{_W}val": "en-GB", f"{_W}{attribute}": name}


def test_without_known_languages_and_without_a_change_word_stays_as_it_was():
    data = saved(word_file())
    for source, target in (("und", "de"), ("en", ""), ("und", "und")):
        found = docx.Document(io.BytesIO(into(data, "a.docx", source, target)))
        assert languages_in(found) == ["en-GB", "fr-FR"]

    numbers = docx.Document()
    numbers.add_paragraph("42")
    data = saved(numbers)
    assert into(data, "a.docx", "en", "ar") == data


def names_of(properties) -> list[str]:
    return [each.tag.removeprefix(_W) for each in properties]


def test_word_turns_paragraphs_runs_and_tables():
    document = word_file()
    document.add_paragraph("42")
    turned = into(saved(document), "a.docx", "en", "ar")
    found = docx.Document(io.BytesIO(turned))

    first = found.paragraphs[0]
    assert names_of(first._p.pPr) == ["bidi", "ind", "jc"]  # as the schema orders them
    assert first._p.pPr.jc.get(qn("w:val")) == "left"  # the side where a line begins
    bold = next(each for each in first.runs if each.bold)
    assert bold.text.strip() == "HOUSE"
    assert names_of(bold._r.rPr) == ["b", "bCs", "rtl"]
    plain = next(each for each in first.runs if not each.bold)
    assert names_of(plain._r.rPr) == ["rtl", "lang"]
    assert names_of(found.tables[0]._tbl.tblPr)[:2] == ["bidiVisual", "tblW"]
    assert not list(found.paragraphs[-1]._p.iter(f"{_W}bidi", f"{_W}rtl"))  # not translated

    # and back: what was on is off, whatever a style says
    back = docx.Document(io.BytesIO(into(turned, "a.docx", "ar", "en")))
    switches = list(back.element.body.iter(f"{_W}bidi", f"{_W}rtl", f"{_W}bidiVisual"))
    assert {each.get(qn("w:val")) for each in switches} == {"0"}
    assert len(switches) >= 6
    assert any(each.bold for each in back.paragraphs[0].runs)


def test_a_text_box_turns_by_itself():
    box = (
        f'<w:document xmlns:w="{_W[1:-1]}"><w:body><w:p><w:r><w:t>red house</w:t></w:r><w:r>'
        "<w:txbxContent><w:p><w:r><w:t>42</w:t></w:r></w:p></w:txbxContent></w:r></w:p>"
        "</w:body></w:document>"
    )
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("word/document.xml", box)
    with zipfile.ZipFile(io.BytesIO(into(data.getvalue(), "a.docx", "en", "ar"))) as archive:
        text = archive.read("word/document.xml").decode()
    assert "<w:p><w:r><w:t>42</w:t></w:r></w:p>" in text
    assert text.count("<w:rtl/>") == text.count("<w:bidi/>") == 1


def slides_file() -> bytes:
    slides = pptx.Presentation()
    slide = slides.slides.add_slide(slides.slide_layouts[5])
    slide.shapes.title.text = "red house"
    frame = slide.shapes.add_textbox(0, 0, 9, 9).text_frame
    frame.text = "old cat"
    frame.paragraphs[0].runs[0].font.language_id = pptx.enum.lang.MSO_LANGUAGE_ID.ENGLISH_UK
    frame.paragraphs[0].alignment = pptx.enum.text.PP_ALIGN.LEFT
    slide.shapes.add_table(1, 1, 0, 0, 9, 9).table.cell(0, 0).text = "black dog"
    return saved(slides)


def test_slides_say_the_new_language_and_turn():
    data = slides_file()
    found = pptx.Presentation(io.BytesIO(into(data, "a.pptx", "en", "ar")))
    title, box, table = found.slides[0].shapes
    paragraph = box.text_frame.paragraphs[0]
    assert paragraph.runs[0]._r.rPr.get("lang") == "ar-SA"
    assert dict(paragraph._p.pPr.attrib) == {"algn": "r", "rtl": "1"}
    assert dict(title.text_frame.paragraphs[0]._p.pPr.attrib) == {"rtl": "1"}
    assert table._element.graphic.graphicData.tbl.tblPr.get("rtl") == "1"
    level = found.slide_master.element.find(".//{*}bodyStyle/{*}lvl1pPr")
    assert (level.get("algn"), level.get("rtl")) == ("r", "1")

    found = pptx.Presentation(io.BytesIO(into(data, "a.pptx", "en", "de")))
    paragraph = found.slides[0].shapes[1].text_frame.paragraphs[0]
    assert paragraph.runs[0]._r.rPr.get("lang") == "de-DE"
    assert dict(paragraph._p.pPr.attrib) == {"algn": "l"}
    level = found.slide_master.element.find(".//{*}bodyStyle/{*}lvl1pPr")
    assert (level.get("algn"), level.get("rtl")) == ("l", "0")


def styles_of_odt(target: str) -> str:
    document = odfdo.Document("text")
    document.body.clear()
    document.body.append(odfdo.Paragraph("the red house stands"))
    written = into(saved(document), "a.odt", "fr", target)
    with zipfile.ZipFile(io.BytesIO(written)) as archive:
        return archive.read("styles.xml").decode()


def test_opendocument_says_the_new_language_and_turns():
    before = styles_of_odt("")
    attributes = set(re.findall(r'\S+="[^"]*"', before))
    assert {'fo:language="fr"', 'style:writing-mode="lr-tb"'} <= attributes

    german = styles_of_odt("de")
    assert 'fo:language="fr"' not in german
    assert 'fo:language="de" fo:country="DE"' in german
    assert german.count("lr-tb") == before.count("lr-tb")

    arabic = styles_of_odt("ar")
    assert 'style:language-complex="ar" style:country-complex="SA"' in arabic
    assert "lr-tb" not in arabic
    pages = re.findall("<style:page-layout-properties[^>]*>", arabic)
    assert pages
    assert all('style:writing-mode="rl-tb"' in page for page in pages)
