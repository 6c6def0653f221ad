"""Files made of the tokens of each format's grammar: well formed, or nearly."""

import io
import json
import zipfile
from collections.abc import Iterator

import numpy as np

from pellucid.documents.names import Format

Random = np.random.Generator
_WORDS = ("red", "Ein Haus.", "Dr. No", "a@b.de", "http://x.y/z", "1", "[1]", "%s", "{0}", "äß")
_SPACES = (" ", "\n", "\r\n", "\t", "\n\n", "\u00a0")
_ODD = (
    "\x00",
    "\u2028",
    "\ufeff",
    "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"),
)
_HTML = (
    *(
        "<p>",
        "</p>",
        "<b>",
        "</b>",
        "<i>",
        "</i>",
        "<a href='x'>",
        "</a>",
        "<br>",
        "<img alt='a b'>",
    ),
    *(
        "<",
        ">",
        "</",
        "/>",
        "<!--",
        "-->",
        "<!",
        "<![CDATA[",
        "]]>",
        "<?",
        "?>",
        "&",
        "&amp;",
        "&#",
    ),
    *(
        "&#65;",
        "&#x",
        "&lt",
        "&#99999999;",
        "<script>",
        "</script>",
        "<pre>",
        "</pre>",
        "<td>",
        "<tr>",
    ),
    *(
        "<code>",
        "</code>",
        "<title>",
        "</title>",
        "<div",
        "</div>",
        ' title="',
        '"',
        "'",
        "=",
        "<li>",
    ),
    *(
        "<span translate=no>",
        "</span>",
        "<table>",
        "</table>",
        "<textarea>",
        "<svg>",
        "</svg>",
        "<![if",
    ),
    *(
        "<meta charset=utf-8>",
        "<ruby>",
        "<rt>",
        "<option>",
        "<select>",
        "<plaintext>",
        "<xmp>",
        "<!DOCTYPE",
    ),
)
_BRACES = (
    "{",
    "}",
    "{{",
    "}}",
    "{n, plural, one {# a} other {# b}}",
    "%(a)s",
    "%d",
    "${a}",
    ":name",
)
_JSON = (
    *(
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        '"',
        '"a"',
        '"a": "red house"',
        "\\",
        "\\u0041",
        "\\ud800",
        "null",
    ),
    *("true", "-1e9", "1e999", "0" * 50, "NaN", '"<b>x</b>"', "//", "/*", "\\n", '"k": ['),
)
_PROPERTIES = (
    "k=",
    "k:",
    "k ",
    "\\\n",
    "\\",
    "\\u00e9",
    "\\uZZ",
    "#",
    "!",
    "\n",
    "\r\n",
    "=",
    "''",
    "\\=",
)
_STRINGS = (
    '"k"',
    "=",
    '"v"',
    ";",
    '"',
    '\\"',
    "/*",
    "*/",
    "//",
    "\n",
    "\\n",
    "\\U00e9",
    "k",
    '"a"="b";',
)
_ANDROID = (
    '<string name="a">',
    "</string>",
    "<plurals>",
    "</plurals>",
    '<item quantity="one">',
    "</item>",
    "<string-array>",
    "</string-array>",
    "\\'",
    '"',
    "\\n",
    "@string/a",
    "<![CDATA[",
    "]]>",
    "&lt;b>",
    "&lt;/b>",
    '<xliff:g xmlns:xliff="x">',
    "</xliff:g>",
    "<!-- c -->",
    "&amp;",
    "\\u00e9",
    "?",
)
_YAML = (
    *(
        "- ",
        "a: ",
        "? ",
        ": ",
        "[",
        "]",
        "{",
        "}",
        ",",
        "&a ",
        "*a",
        "!!str ",
        "!!str",
        "!a ",
        "!<a> ",
        "!!",
    ),
    *(
        "|",
        ">",
        "|2-\n",
        ">+\n",
        "'",
        '"',
        "#",
        " # c",
        "---",
        "...",
        "%YAML 1.1\n",
        "<<: *a",
        "\n  ",
        "\n    ",
    ),
    *(
        "~",
        "2020-01-01",
        "0x1",
        "=",
        "@",
        "`",
        "!!binary ",
        "!!set ",
        "\\x41",
        "\\U0010ffff",
        "&a",
        "!",
    ),
)
_PO = (
    *(
        "msgid ",
        "msgstr ",
        "msgid_plural ",
        "msgstr[0] ",
        "msgstr[1] ",
        "msgctxt ",
        "msgstr[",
        "]",
        '""',
        '"',
    ),
    *(
        '"red"',
        '"a\\n"',
        "\\",
        "#",
        "#, fuzzy",
        "#~ ",
        "#| ",
        "#: a.c:1",
        "#. c",
        "\nmsgid ",
        "\nmsgstr ",
    ),
    *(
        '"Content-Type: text/plain; charset=utf-8\\n"',
        '"Plural-Forms: nplurals=2; plural=n!=1;\\n"',
        '\n"',
    ),
    *(
        "msgid",
        "msgstr",
        "domain ",
        "msgstr[99999999999999999999]",
        "msgstr[-1]",
        "#~ msgid ",
        "#@ x",
        "\n\n",
    ),
)
_MARKDOWN = (
    *(
        "[",
        "]",
        "(",
        ")",
        "[a](b)",
        "![",
        "*",
        "**",
        "_",
        "__",
        "`",
        "``",
        "```\n",
        "~~",
        "#",
        "# ",
        "> ",
        "- ",
    ),
    *(
        "1. ",
        "|",
        "|---|\n",
        "---\n",
        "===\n",
        "<b>",
        "</b>",
        "<!--",
        "-->",
        "\\",
        "&amp;",
        "[^1]",
        "[^1]: ",
    ),
    *(
        "[a]: b\n",
        "  \n",
        "    ",
        "\t",
        "<http://a>",
        '![a](b "c")',
        "[x] ",
        "[!NOTE]\n",
        "$$",
        "$",
        ":::",
        "~~~\n",
    ),
    *("<", ">", "](", "[[", "]]", "<![CDATA[", "<?", "<!A", "{", "}", "+++\n", '"', "'", "!!! a\n"),
)
_SUBTITLES = (
    *(
        "1\n",
        "00:00:01,000 --> 00:00:02,000\n",
        "00:01.000 --> 00:02.000\n",
        "-->",
        "WEBVTT\n",
        "NOTE ",
        "STYLE\n",
    ),
    *(
        "<i>",
        "</i>",
        "<00:00:01.000>",
        "{\\an8}",
        "<v Bob>",
        "- ",
        "&amp;",
        "<c.red>",
        "\n\n",
        "00:",
        "align:start",
    ),
)
_ASS = (
    *(
        "[Script Info]\n",
        "[V4+ Styles]\n",
        "[Events]\n",
        "[Fonts]\n",
        "Format: Start, End, Text\n",
        "\n",
    ),
    *(
        "Format: Text\n",
        "Dialogue: 0,0:00:01.00,0:00:02.00,D,,0,0,0,,red\n",
        "Dialogue: ",
        "Comment: ",
        ",",
    ),
    *("{\\i1}", "{\\k20}", "\\N", "\\n", "\\h", "{", "}", "Style: a,b\n", "red house", "; c\n"),
)
_TABLE = (
    ",",
    ";",
    "\t",
    "|",
    '"',
    '""',
    "a",
    "\n",
    "\r",
    "sep=;\n",
    "=1+1",
    '"a\nb"',
    "a,b\n",
    "'",
)
_W = (
    *(
        "<w:p>",
        "</w:p>",
        "<w:r>",
        "</w:r>",
        "<w:t>red</w:t>",
        "<w:rPr><w:b/></w:rPr>",
        "<w:tab/>",
        "<w:br/>",
    ),
    *(
        "<w:hyperlink r:id='a'>",
        "</w:hyperlink>",
        '<w:fldChar w:fldCharType="begin"/>',
        "<w:tbl>",
        "</w:tbl>",
    ),
    *(
        '<w:fldChar w:fldCharType="separate"/>',
        '<w:fldChar w:fldCharType="end"/>',
        "<w:instrText>x</w:instrText>",
    ),
    *(
        "<w:sdt>",
        "</w:sdt>",
        "<w:sdtContent>",
        "</w:sdtContent>",
        "<w:del>",
        "</w:del>",
        "<w:ins>",
        "</w:ins>",
    ),
    *(
        '<w:bookmarkStart w:id="1" w:name="a"/>',
        '<w:bookmarkEnd w:id="1"/>',
        "<w:pPr/>",
        "<!-- c -->",
        "<?x y?>",
    ),
    *(
        "<mc:AlternateContent>",
        "</mc:AlternateContent>",
        "<w:footnoteReference w:id='1'/>",
        "<w:t/>",
        "&amp;",
    ),
)
_A = (
    *(
        "<a:p>",
        "</a:p>",
        "<a:r>",
        "</a:r>",
        "<a:t>red</a:t>",
        '<a:rPr b="1"/>',
        "<a:br/>",
        "<a:fld>",
        "</a:fld>",
    ),
    *("<a:endParaRPr/>", "<a:pPr/>", "<!-- c -->", "<a:t/>", "&#65;"),
)
_T = (
    *(
        "<text:p>",
        "</text:p>",
        "<text:span>",
        "</text:span>",
        "<text:h>",
        "</text:h>",
        "<text:s/>",
        "<text:tab/>",
    ),
    *(
        "<text:line-break/>",
        "<text:a>",
        "</text:a>",
        "<text:note>",
        "</text:note>",
        "<text:note-body>",
        "</text:note-body>",
    ),
    *(
        '<text:bookmark-start text:name="a"/>',
        '<text:bookmark-end text:name="a"/>',
        "<office:annotation>",
    ),
    *(
        "</office:annotation>",
        "<text:tracked-changes>",
        "</text:tracked-changes>",
        "red",
        "<!-- c -->",
        "<?a b?>",
    ),
)
_XLIFF = (
    *(
        "<trans-unit id='1'>",
        "</trans-unit>",
        "<unit id='1'>",
        "</unit>",
        "<segment>",
        "</segment>",
        "<source>",
    ),
    *(
        "</source>",
        "<target>",
        "</target>",
        "<g id='1'>",
        "</g>",
        "<x id='2'/>",
        "<ph id='3'/>",
        "<pc id='1'>",
        "</pc>",
    ),
    *(
        "<sc id='1'/>",
        "<ec startRef='1'/>",
        "<bpt id='1'>",
        "</bpt>",
        "<ept id='1'>",
        "</ept>",
        "<mrk>",
        "</mrk>",
    ),
    *(
        "<seg-source>",
        "</seg-source>",
        "red",
        "&lt;b&gt;",
        "<!-- c -->",
        "<?a b?>",
        "<![CDATA[x]]>",
        "<note>",
        "</note>",
    ),
)
TOKENS: dict[Format, tuple[str, ...]] = {
    "txt": (*_WORDS, *_BRACES, *_SPACES),
    "md": (*_MARKDOWN, *_BRACES),
    "html": (*_HTML, *_BRACES),
    "docx": _W,
    "pptx": _A,
    "srt": (*_SUBTITLES, *_HTML[:12]),
    "vtt": (*_SUBTITLES, *_HTML[:12]),
    "ass": _ASS,
    "csv": (*_TABLE, *_HTML[:12]),
    "tsv": (*_TABLE, *_HTML[:12]),
    "odt": _T,
    "epub": _HTML,
    "po": (*_PO, *_HTML[:6]),
    "xliff": _XLIFF,
    "json": (*_JSON, *_BRACES),
    "yaml": (*_YAML, *_BRACES),
    "properties": (*_PROPERTIES, *_BRACES),
    "strings": (*_STRINGS, *_HTML[:6]),
    "android": (*_ANDROID, *_HTML[:6]),
}
"""By format, what its files are made of beside words and white space."""
_NAMESPACES = (
    'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    ' xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
    ' xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
    ' xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    ' xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
    ' xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"'
    ' xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"'
)


def file_of(kind: Format, text: str) -> bytes:
    """A file of a format with this text in the part that is translated."""
    match kind:
        case "docx":
            body = f"<w:document {_NAMESPACES}><w:body>{text}</w:body></w:document>"
            return _archive({"word/document.xml": body})
        case "pptx":
            relation = '<R><Relationship Type="/slide" Target="slides/slide1.xml"/></R>'
            return _archive(
                {
                    "ppt/presentation.xml": f"<p:presentation {_NAMESPACES}/>",
                    "ppt/_rels/presentation.xml.rels": relation,
                    "ppt/slides/slide1.xml": f"<p:sld {_NAMESPACES}>{text}</p:sld>",
                }
            )
        case "odt":
            return _archive({"content.xml": f"<office:text {_NAMESPACES}>{text}</office:text>"})
        case "epub":
            return _archive({"META-INF/container.xml": "<x/>", "a.xhtml": text})
        case "xliff":
            return f'<xliff version="{1 + len(text) % 2}.0">{text}</xliff>'.encode()
        case "android":
            return f"<resources>{text}</resources>".encode()
        case "csv" | "tsv":
            return f"a,b;c\td\n{text}".encode("utf-8", "surrogatepass")
        case _:
            return text.encode("utf-8", "surrogatepass")


def _archive(parts: dict[str, str]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as written:
        for name, text in parts.items():
            written.writestr(name, text.encode())
    return data.getvalue()


_IS_XML = ("docx", "pptx", "odt", "xliff", "android")


def random_files(kind: Format, count: int, seed: int) -> Iterator[bytes]:
    """Files of random tokens; those in XML are mostly well formed, or nothing of them is read."""
    random = np.random.Generator(np.random.PCG64([seed, *kind.encode()]))
    assert kind in TOKENS, f"write the tokens of {kind} into TOKENS of {__file__}"
    own = TOKENS[kind]
    others = (*_WORDS, *_SPACES, *_ODD)
    for _ in range(count):
        length = int(random.integers(1, 40))
        tokens = [
            own[int(random.integers(len(own)))]
            if random.random() < 0.7
            else others[int(random.integers(len(others)))]
            for _ in range(length)
        ]
        if random.random() < 0.8:
            tokens = _well_formed(kind, tokens, random)
        yield file_of(kind, "".join(tokens))


def _well_formed(kind: Format, tokens: list[str], random: Random) -> list[str]:
    """Tokens that the format takes, or nothing behind its first rule would ever be read."""
    if kind == "docx":
        return ["<w:p><w:r><w:t>red</w:t></w:r>", *_nested(tokens), "</w:p>"]
    if kind in _IS_XML:
        return _nested(tokens)
    if kind == "strings":
        texts = (json.dumps(token, ensure_ascii=False) for token in tokens)
        return [f"{text} = {text};\n" for text in texts]
    if kind == "json":
        values = [json.dumps(token) for token in tokens]
        body = ", ".join(f"[{each}]" if random.random() < 0.3 else each for each in values)
        return [f'{{"a": [{body}], {values[0]}: {{"b": {values[-1]}}}}}']
    if kind == "yaml":
        return [
            f"- {json.dumps(t)}\n" if random.random() < 0.7 else f"- {t.strip()}\n" for t in tokens
        ]
    if kind == "po":
        entries = ['msgid ""\nmsgstr "Plural-Forms: nplurals=2; plural=n!=1;\\n"\n']
        for token in tokens:
            text = json.dumps(token, ensure_ascii=False)
            extra = random.choice(("", f"msgid_plural {text}\n", "#, fuzzy\n", "#~ "))
            first = "[0]" if extra.startswith("msgid") else ""
            before, after = ("", extra) if first else (extra, "")
            entries.append(f'{before}msgid {text}\n{after}msgstr{first} ""\n')
        return ["\n".join(entries)]
    return tokens


def _nested(tokens: list[str]) -> list[str]:
    """The tokens with every element closed where it must be, and no character that XML has not."""
    opened: list[str] = []
    written: list[str] = []
    for token in tokens:
        name = token.strip("</>").partition(" ")[0]
        if token.startswith("</"):
            if name in opened:
                while (inner := opened.pop()) != name:
                    written.append(f"</{inner}>")
                written.append(token)
            continue
        if token.startswith("<") and token[1].isalpha() and "</" not in token and "/>" not in token:
            opened.append(name)
        if "\x00" not in token:
            written.append(token)
    return [*written, *(f"</{name}>" for name in reversed(opened))]
