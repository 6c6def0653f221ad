"""S: documents that a stranger made are translated or refused, in bounded time and memory."""

import contextlib
import functools
import io
import json
import os
import re
import sys
import zipfile
from collections.abc import Callable
from types import FrameType

import docx
import pytest
from document_grammar import file_of, random_files
from limited import run_limited

from pellucid.core.errors import ConfigError, DataError
from pellucid.documents import office_paragraphs
from pellucid.documents.formats import ReadOptions, read_document
from pellucid.documents.markup import translate_segments
from pellucid.documents.names import FORMATS, Format
from pellucid.documents.placement import Aligned
from pellucid.documents.segments import Alone, Close, Open, joined
from pellucid.documents.translate import translate_document

COUNT = int(os.environ.get("PELLUCID_FUZZ_COUNT", "100"))
"""Of files made of tokens, a fourth of this for each of the 16 formats: 5,000 makes 20,000."""
WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


class Upper:
    """Every sentence in upper case, in linear time."""

    source_language = "en"

    def translate(self, sentences, *, align):
        return [Aligned(sentence.upper()) for sentence in sentences]


def options_of(kind: Format) -> ReadOptions | None:
    """The first column of a table; of other formats all that is translated."""
    return ReadOptions(("1",)) if kind in ("csv", "tsv") else None


def archive(members: dict[str, bytes], *, packed: bool = True) -> bytes:
    data = io.BytesIO()
    kind = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    with zipfile.ZipFile(data, "w", kind) as written:
        for name, content in members.items():
            written.writestr(name, content)
    return data.getvalue()


def word(body: str, **others: bytes) -> bytes:
    document = f"<w:document {WORD}><w:body>{body}</w:body></w:document>".encode()
    return archive({"word/document.xml": document, **others})


def plain_word(text: str = "red house") -> bytes:
    document = docx.Document()
    document.add_paragraph(text)
    data = io.BytesIO()
    document.save(data)
    return data.getvalue()


def refused(data: bytes, name: str) -> str:
    outcome = run_limited(lambda: translate_document(data, Upper(), name))
    assert outcome.error == "DataError", outcome
    assert outcome.is_bounded, outcome
    assert "\n" not in outcome.message
    return outcome.message


def accepted(data: bytes, name: str, options: ReadOptions | None = None) -> None:
    outcome = run_limited(lambda: translate_document(data, Upper(), name, options=options))
    assert outcome.error in ("", "DataError", "ConfigError"), outcome
    assert outcome.is_bounded, outcome


ENTITIES = (
    '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">'
    + "".join(
        f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    + "]>"
)


@pytest.mark.parametrize("name", ["a.docx", "a.odt", "a.xliff", "a.epub"])
def test_entity_bombs_and_outside_entities_are_refused(name: str):
    outside = '<!DOCTYPE x [<!ENTITY i SYSTEM "file:///etc/passwd">]>'
    for head, entity in ((ENTITIES, "&i;"), (outside, "&i;")):
        root = f"{head}<xliff {WORD} version='2.0'><w:p>{entity}</w:p></xliff>".encode()
        members = {"word/document.xml": root, "content.xml": root, "META-INF/container.xml": b""}
        data = root if name == "a.xliff" else archive({**members, "a.ncx": root})
        message = refused(data, name)
        assert "document type of its own" in message or "not well-formed" in message


def test_a_zip_bomb_is_refused_before_it_is_unpacked():
    assert "32 MiB" in refused(word("x" * (40 << 20)), "a.docx")
    with zipfile.ZipFile(io.BytesIO(plain_word())) as read:
        members = {name: read.read(name) for name in read.namelist()}
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as written:
        for name, content in members.items():
            written.writestr(name, content)
        written.writestr("word/media/a.png", b"\0" * (64 << 20))
    data = bomb.getvalue()
    # What the directory says is the size, in both of its places.
    size = (64 << 20).to_bytes(4, "little")
    data = data.replace(size, (0x7FFFFFFF).to_bytes(4, "little"))
    assert "unpack to at most" in refused(data, "a.docx")


def test_a_member_that_lies_about_its_size_is_refused():
    data = word("<w:p><w:r><w:t>red house</w:t></w:r></w:p>" * 1000)
    with zipfile.ZipFile(io.BytesIO(data)) as read:
        size = read.getinfo("word/document.xml").file_size
    refused(data.replace(size.to_bytes(4, "little"), (size // 2).to_bytes(4, "little")), "a.docx")


@pytest.mark.parametrize(
    "name", ["../evil.xml", "/etc/evil", "word/../../evil", "..\\evil", "C:/e"]
)
def test_paths_out_of_the_archive_are_refused(name: str):
    assert "outside of its folder" in refused(word("", **{name: b"x"}), "a.docx")


def test_macros_passwords_and_older_formats_are_refused():
    assert "macros" in refused(word("", **{"word/vbaProject.bin": b"x"}), "a.docx")
    assert "password" in refused(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "a.docx")
    assert "macros" in refused(archive({"content.xml": b"<x/>", "Basic/a.xml": b""}), "a.odt")
    locked = {"content.xml": b"\x00", "META-INF/manifest.xml": b"<x encryption-data=''/>"}
    assert "password" in refused(archive(locked), "a.odt")
    drm = {"META-INF/container.xml": b"", "META-INF/rights.xml": b""}
    assert "DRM" in refused(archive(drm), "a.epub")


def test_references_to_the_outside_are_copied_and_not_followed():
    links = b'<R><Relationship TargetMode="External" Target="http://192.0.2.1/a.png"/></R>'
    data = word("<w:p><w:r><w:t>red house</w:t></w:r></w:p>", **{"word/_rels/d.rels": links})
    written = translate_document(data, Upper(), "a.docx")
    with zipfile.ZipFile(io.BytesIO(written)) as found:
        assert found.read("word/_rels/d.rels") == links
        assert b"RED HOUSE" in found.read("word/document.xml")


def test_a_large_picture_is_copied_and_not_opened():
    picture = bytes(range(256)) * (8 << 12)
    data = archive(
        {"word/document.xml": _document("red"), "word/media/a.png": picture}, packed=False
    )
    outcome = run_limited(lambda: translate_document(data, Upper(), "a.docx"))
    assert not outcome.error
    assert outcome.is_bounded
    with zipfile.ZipFile(io.BytesIO(translate_document(data, Upper(), "a.docx"))) as found:
        assert found.read("word/media/a.png") == picture


def _document(text: str) -> bytes:
    body = f"<w:body><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:body>"
    return f"<w:document {WORD}>{body}</w:document>".encode()


def _nested(tag: str, depth: int) -> str:
    return f"<{tag}>" * depth + "red house" + f"</{tag}>" * depth


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("deep.html", lambda: _nested("b", 5000)),
        ("deep-blocks.html", lambda: _nested("div", 5000)),
        ("open.html", lambda: "<b>red " * 5000),
        ("closed.html", lambda: "red</b> " * 5000),
        ("alternating.html", lambda: "<b>red<i>old</b>house</i> " * 2000),
        ("unfinished.html", lambda: "<" * 30000),
        ("comments.html", lambda: "<!--" * 10000),
        ("attributes.html", lambda: "<a " + "x=1 " * 10000),
        ("entities.html", lambda: "&amp;" * 10000 + "a"),
        ("marks.html", lambda: "<p>" + "<b>red</b> house <img>" * 2000),
        ("one-word.html", lambda: "a" * 100000),
        ("emphasis.md", lambda: "*red **house " * 2000),
        ("brackets.md", lambda: "[" * 2000),
        ("links.md", lambda: "[a](" * 2000),
        ("quotes.md", lambda: ">" * 2000 + " red"),
        ("lists.md", lambda: "".join(" " * n + "- red\n" for n in range(1000))),
        ("ticks.md", lambda: "`" * 10000),
        ("braces.txt", lambda: "{" * 10000 + "a"),
        ("pairs.txt", lambda: "{a{" * 3000),
        ("percent.txt", lambda: "%-+0#" * 3000 + "a"),
        ("address.txt", lambda: "a@" * 5000 + "http://" * 2000),
        ("dots.txt", lambda: "a." * 10000),
        ("lines.txt", lambda: "\n" * 100000 + "a"),
        ("arrows.srt", lambda: "-->\n" * 10000 + "red"),
        ("tags.srt", lambda: "1 --> 2\n" + "<i>red</i> " * 2000),
        ("deep.json", lambda: "[" * 10000),
        ("wide.json", lambda: json.dumps(["red house"] * 2000)),
        ("deep.yaml", lambda: "[" * 2000),
        (
            "aliases.yaml",
            lambda: (
                "a: &a [x, x]\n"
                + "".join(
                    f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n"
                    for a, b in zip("abcdefgh", "bcdefghi", strict=True)
                )
            ),
        ),
        ("python.yaml", lambda: "a: !!python/object/apply:os.system [red]\n"),
        ("quotes.csv", lambda: 'a\n"' + "x" * 200000),
        ("wide.csv", lambda: "a," * 10000 + "\n"),
        ("quotes.po", lambda: 'msgid "' + '\\"' * 10000 + '"\nmsgstr ""\n'),
        ("junk.po", lambda: "msgid\n" * 1000),
        ("keys.properties", lambda: "\\\n a " * 20000 + "\\ " * 20000),
        ("comments.strings", lambda: "// /* " * 20000 + "\n/* //" * 20000),
        ("quotes.strings", lambda: '"a" = \'\\' * 20000),
        (
            "strings.xml",
            lambda: (
                "<resources>"
                + "".join(
                    f"<string><![CDATA[{each * 10000}]]></string><string>{safe * 10000}</string>"
                    for each, safe in zip(
                        ("<!-- ", "<? a", '<a "', " \\"),
                        ("&lt;a &amp;", "\\ud83d", '"\\" ', "\\u0020 "),
                        strict=True,
                    )
                )
                + "</resources>"
            ),
        ),
        ("rows.html", lambda: "<table>" + "<tr><td><p translate=no>red<b>" * 2000),
        ("deep.xliff", lambda: _nested("g", 2000)),
        (
            "units.xliff",
            lambda: "<xliff>" + "<trans-unit><source>red</source></trans-unit>" * 5000 + "</xliff>",
        ),
    ],
)
def test_texts_that_grow_are_read_or_refused_in_bounds(name: str, make: Callable[[], str]):
    accepted(make().encode(), name, ReadOptions(("a",)))


@pytest.mark.parametrize(
    "body",
    [
        "<w:p>"
        + "<w:r><w:rPr><w:b/></w:rPr><w:t>red </w:t></w:r><w:r><w:t>old </w:t></w:r>" * 5000
        + "</w:p>",
        "<w:p>"
        + "<w:hyperlink>" * 200
        + "<w:r><w:t>red</w:t></w:r>"
        + "</w:hyperlink>" * 200
        + "</w:p>",
        "<w:p>"
        + '<w:r><w:fldChar w:fldCharType="begin"/></w:r>' * 3000
        + "<w:r><w:t>a</w:t></w:r></w:p>",
        "<w:tbl>" * 300 + "<w:p/>" + "</w:tbl>" * 300,
        "<w:p>" * 240 + "<w:r><w:t>red house</w:t></w:r>" + "</w:p>" * 240,
    ],
    ids=["runs", "links", "fields", "tables", "paragraphs in paragraphs"],
)
def test_word_files_that_grow_are_read_or_refused_in_bounds(body: str):
    accepted(word(body), "a.docx")


@pytest.mark.parametrize("kind", FORMATS)
def test_every_cut_and_changed_byte_is_answered(kind: str):
    """What is damaged is translated or refused with DataError, never anything else."""
    files = {
        "docx": plain_word(),
        "pptx": file_of("pptx", "<a:p><a:r><a:t>red house</a:t></a:r></a:p>"),
        "odt": file_of("odt", "<text:p>red <text:span>house</text:span></text:p>"),
        "epub": archive({"META-INF/container.xml": b"<x/>", "a.xhtml": b"<p>red <b>house</b></p>"}),
        "json": b'{"a": ["red", "house"]}',
        "po": b'msgid "red"\nmsgstr ""\n',
        "xliff": b"<xliff><trans-unit><source>red <g>house</g></source></trans-unit></xliff>",
        "ass": b"[Events]\nFormat: Start, Text\nDialogue: 0:00:01.00,red {\\b1}house\n",
        "yaml": b"a: <b>red</b>\nb: 'house'\n",
        "strings": b'"a" = "red";\n/* b */ "c" = "house %@";\n',
        "android": b"<resources><string name='a'>red <b>house</b></string></resources>",
    }
    data = files.get(kind, b"---\na: <b>red</b>\n\n1 --> 2\nred *house* [a](b)\n")
    assert read_document(data, kind, f"a.{kind}", options_of(kind)).segments, "before it is damaged"

    step = max(1, len(data) // 40)
    for place in range(0, len(data), step):
        for spoilt in (
            data[:place],
            data[:place] + bytes([data[place] ^ 0x21]) + data[place + 1 :],
        ):
            with contextlib.suppress(DataError, ConfigError):
                document = read_document(spoilt, kind, f"a.{kind}", options_of(kind))
                document.write(document.segments)


@pytest.mark.parametrize("kind", FORMATS)
def test_files_of_the_tokens_of_each_format_are_translated_or_refused(kind: Format):
    """No error but those of ours, whatever stands beside what."""
    translated = 0
    for data in random_files(kind, COUNT // 4, seed=0):
        with contextlib.suppress(DataError, ConfigError):
            document = read_document(data, kind, f"a.{kind}", options_of(kind))
            document.write(translate_segments(document.segments, Upper()))
            translated += bool(document.segments)
    assert translated, "some are files of this format"


def repeated(before: str, token: str, after: str = "") -> Callable[[int], str]:
    return lambda count: before + token * count + after


@pytest.mark.parametrize(
    ("kind", "make"),
    [
        ("txt", repeated("", "red house. ")),
        ("txt", repeated("", "{a} ")),
        ("txt", repeated("", "%s a ")),
        ("txt", repeated("a", "\n")),
        ("csv", repeated("", "%<a>d ", "\n")),
        ("md", repeated("", "[")),
        ("md", repeated("", "a<![CDATA[")),
        ("md", repeated("", "![")),
        ("md", repeated("", "*a **b ")),
        ("md", repeated("", "- ")),
        ("html", repeated("", "<b>r<i>o</b>h</i> ")),
        ("html", repeated("", "a<![CDATA[")),
        ("html", repeated("<p translate=no>", "<i>")),
        ("html", repeated("", "<code>")),
        ("html", repeated("<p>", "&amp;", "</p>")),
        ("html", repeated("", "<textarea>")),
        ("epub", repeated("", "<p>red house.</p>")),
        ("srt", repeated("1 --> 2\n", "<i>r</i> ")),
        ("vtt", repeated("WEBVTT\n\n1 --> 2\n", "<00:01.000>a")),
        ("csv", repeated('"', '""', '"')),
        ("tsv", repeated("", "red house\tb\n")),
        ("json", repeated("[", '"red house",', '"a"]')),
        ("json", repeated("[", "[],", "1]")),
        ("yaml", repeated("[", "a,", "a]")),
        ("yaml", repeated("- &a red\n", "- *a\n")),
        ("po", repeated("", '\nmsgid "red"\nmsgstr ""\n')),
        ("po", repeated('msgid "', "a | ", '"\nmsgstr ""\n')),
        ("po", repeated('msgid "a"\nmsgid_plural "b"\n', 'msgstr[0] ""\n')),
        ("xliff", repeated("<trans-unit><source>", "<g>r</g> ", "</source></trans-unit>")),
        ("docx", repeated("<w:p>", "<w:r><w:rPr><w:b/></w:rPr><w:t>r </w:t></w:r>", "</w:p>")),
        ("docx", repeated("<w:p><w:r>", "<w:t>red </w:t><w:br/>", "</w:r></w:p>")),
        ("docx", repeated("<w:p>", '<w:r><w:fldChar w:fldCharType="begin"/></w:r>', "</w:p>")),
        ("pptx", repeated("", "<a:p><a:r><a:t>red</a:t></a:r></a:p>")),
        ("odt", repeated("<text:p>", "<text:span>r </text:span>o ", "</text:p>")),
    ],
)
def test_twice_as_much_takes_twice_the_work(kind: Format, make: Callable[[int], str]):
    """Calls of functions, Python's and C's, while a document is read, translated and written."""
    calls_of(kind, file_of(kind, make(1)))  # imports what reads it
    counts = [calls_of(kind, file_of(kind, make(times))) for times in (50, 100, 200)]
    # Beside what every document takes.
    assert counts[2] - counts[1] <= 2.2 * (counts[1] - counts[0]) + 500, counts


def test_a_run_is_searched_for_its_format_once_however_many_texts_it_has():
    """Each search goes through all parts of the run, in C, where no call is counted."""
    searches = [
        searches_of(f"<w:p><w:r>{'<w:t>red </w:t><w:br/>' * n}</w:r></w:p>") for n in (2, 50)
    ]
    assert searches[0] == searches[1] > 0


def searches_of(body: str) -> int:
    """Searches for the properties of runs while a document is read, translated and written."""
    found = 0

    def count(frame: FrameType, event: str, _argument: object) -> None:
        nonlocal found
        found += event == "call" and frame.f_code is office_paragraphs.Runs._search.__code__

    sys.setprofile(count)
    try:
        document = read_document(word(body), "docx", "a.docx")
        document.write(translate_segments(document.segments, Upper()))
    finally:
        sys.setprofile(None)
    return found


class Grown(str):
    """A text that cannot be added to, which would copy all of it for each piece."""

    __slots__ = ()

    def __add__(self, other: str) -> str:
        raise AssertionError("it is added to")


def test_texts_beside_each_other_are_joined_and_never_added_to():
    pieces = [Grown("a"), Grown(""), Grown("b"), Alone(0), Grown(""), Open(1), Grown("c"), Close(1)]
    assert joined(pieces) == ["ab", Alone(0), Open(1), "c", Close(1)]


class Lengthening:
    """Every sentence with a word more, each word aligned with itself."""

    source_language = "en"

    def translate(self, sentences, *, align):
        return [Aligned(f"{each} x", self.links(each)) for each in sentences]

    def links(self, sentence: str) -> tuple:
        spans = [found.span() for found in re.finditer(r"\S+", sentence)]
        return tuple((span, span, 1.0) for span in spans)


@pytest.mark.parametrize(
    "text",
    [
        "<b>red</b> house ",  # a sentence
        "The <b>Red</b> House. ",  # as many sentences
        "red <img> house ",
        "{a} <b>red</b> house ",
        "r<b>e</b>d ",
        "$a<img>$",  # one token to some tokenizers
    ],
)
def test_twice_as_many_marks_of_a_paragraph_take_twice_the_work(text: str):
    """Lines of our code that are run while all of them are placed by the alignment."""
    translate_document(f"<p>{text}</p>".encode(), Lengthening(), "a.html")  # imports
    documents = [f"<p>{text * times}</p>".encode() for times in (25, 50, 100)]
    counts = [
        lines_of(functools.partial(translate_document, data, Lengthening(), "a.html"))
        for data in documents
    ]
    assert counts[2] - counts[1] <= 2.2 * (counts[1] - counts[0]), counts


def lines_of(case: Callable[[], object]) -> int:
    lines = 0

    def count(_frame: object, event: str, _argument: object) -> object:
        nonlocal lines
        lines += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        case()
    finally:
        sys.settrace(before)
    return lines


def calls_of(kind: Format, data: bytes) -> int:
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        with contextlib.suppress(DataError, ConfigError):
            document = read_document(data, kind, f"a.{kind}", options_of(kind))
            document.write(translate_segments(document.segments, Upper()))
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize(
    ("name", "make", "message"),
    [
        ("a.md", lambda: "a<![CDATA[" * 20_000, "that it takes too long to read"),
        ("a.md", lambda: ("[" * 15_000 + "\n\n") * 6, "up to that in line 9"),
        ("a.po", lambda: 'msgid ""\n' + '"red house "\n' * 20_000, "5,000 lines in an entry"),
        ("a.po", lambda: "# red\n" * 20_000, "5,000 lines in an entry"),
        ("a.yaml", lambda: "[" * 200_000, "nested too deeply"),
    ],
)
def test_what_would_take_quadratic_time_is_refused(
    name: str, make: Callable[[], str], message: str
):
    assert message in refused(make().encode(), name)


@pytest.mark.parametrize(
    "text", ["!!str", "a: !!str", "- !", "&a", "a: &a", "!<a> ", "- !!str\n- b"]
)
def test_a_tag_without_a_value_is_read(text: str):
    document = read_document(text.encode(), "yaml", "a.yaml")
    assert document.write(document.segments) == text.encode()


def test_a_number_of_a_column_that_no_table_has_is_refused():
    for column in ("9" * 5_000, "\u0669", "0", "-1"):
        with pytest.raises(ConfigError, match=r"a\.csv has no column"):
            read_document(b"a,b\n1,2\n", "csv", "a.csv", ReadOptions((column,)))


def test_a_plural_form_with_a_huge_number_is_no_internal_error():
    data = b'msgid "a"\nmsgid_plural "b"\nmsgstr[' + b"9" * 5_000 + b'] ""\n'
    [segment] = (document := read_document(data, "po", "a.po")).segments
    assert document.write([segment]).endswith(b'9] "b"\n')
