"""Prepare the pages of the site: docs/ as Markdown that a site builder reads without a warning.

    make site            prepares build/pages and builds build/site from them

What changes on the way: formulas become MathML, which browsers draw without a script or a font;
links to source code lead to pages of the site that show these very lines; pictures follow the
palette that the reader chose; the notebooks become pages; entries of the book of equations get
their toys; a page is added on which one searches all entries; and the first page opens with the
model that `make live` has made, where there is one.
"""

import argparse
import html
import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from latex2mathml.converter import convert

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = ROOT / "build" / "pages"
LIVE = ROOT / "build" / "live.html"
"""A page with a model at work, made by `make live`."""
TOYS = {
    ("attention", "Temperature"): "softmax",
    ("attention", "Attention"): "attention",
    ("positions", "Sinusoidal positional encoding"): "positions",
    ("regularization", "Label smoothing"): "smoothing",
    ("optimizer", "Learning rate of the paper, eq. (3)"): "warmup",
    ("search", "Length penalty"): "penalty",
}
"""Chapter and entry of the book for each toy of docs/site/toys.js."""
MATH = re.compile(r"^```math\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^(```|~~~).*?^\1$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
PICTURE = re.compile(
    r'<picture>\s*<source [^>]*srcset="([^"]+)">\s*<img alt="([^"]*)" src="([^"]+)">\s*</picture>'
)
SOURCE_PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{name}</title>
<link rel="stylesheet" href="{up}site/source.css">
<h1>{name}</h1>
{body}
<script src="{up}site/source.js"></script>
</html>
"""


@dataclass(frozen=True)
class Entry:
    """The part of an entry of the book that the page of all equations shows."""

    chapter: str
    """Name of its page without the ending."""
    title: str
    anchor: str
    sentence: str
    formulas: tuple[str, ...]
    """LaTeX."""
    functions: tuple[tuple[str, str], ...]
    """Names and links to their lines."""
    tests: tuple[tuple[str, str], ...]
    """Names and links of the tests by hand."""
    numbers: tuple[str, ...]


def main() -> None:
    """Write all pages."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=PAGES)
    prepare(parser.parse_args().out.resolve())


def prepare(out: Path, live: Path = LIVE) -> None:
    """Write the pages to ``out``, whatever it held before; ``live`` need not exist."""
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(DOCS, out, ignore=shutil.ignore_patterns("*.md", "*.toml", "*.ipynb"))

    texts = {path.relative_to(DOCS): path.read_text("utf-8") for path in DOCS.rglob("*.md")}
    for path in sorted(DOCS.rglob("*.ipynb")):
        texts[path.relative_to(DOCS).with_suffix(".md")] = notebook_page(path)
    chapters = {name: text for name, text in texts.items() if name.parent.name == "equations"}
    texts[Path("equations/find.md")] = search_page(
        [entry for name, text in sorted(chapters.items()) for entry in entries_of(name.stem, text)]
    )

    if live.is_file():
        shutil.copyfile(live, out / live.name)
        first = Path("index.md")
        texts[first] = with_live(texts[first], live.name)

    sources: set[Path] = set()
    for name, text in texts.items():
        page = with_toys(name.stem, text) if name in chapters else text
        page = outside_fences(page, partial(with_links, page=name, sources=sources))
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text(MATH.sub(lambda match: formula(match[1]), page), "utf-8")
    for source in sources:
        write_source(source, out)


def formula(latex: str) -> str:
    """A block of MathML. Raises ValueError for a command that would be shown as it is written."""
    known = latex.strip().replace(r"\arg\max", r"\operatorname*{argmax}")
    drawn = convert(known, display="block")
    if unknown := re.search(r">(\\[a-zA-Z]+)", drawn):
        raise ValueError(f"no MathML for {unknown[1]} in {latex}")
    return f'<div class="formula">{drawn}</div>'


def outside_fences(text: str, change: Callable[[str], str]) -> str:
    """``text`` with everything but its blocks of code changed."""
    parts, end = [], 0
    for fence in FENCE.finditer(text):
        parts += [change(text[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, change(text[end:])])


def with_links(text: str, page: Path, sources: set[Path]) -> str:
    """Links that leave docs/ lead to pages of source; those sources are added to ``sources``."""

    def lead(match: re.Match[str]) -> str:
        target, mark, lines = match[2].partition("#")
        if not target or "://" in target:
            return match[0]
        path = Path(os.path.normpath(DOCS / page.parent / target))
        if path.is_relative_to(DOCS):
            if path.is_dir():
                return f"{match[1]}{target.rstrip('/')}/index.md{match[3]}"
            return match[0].replace(".ipynb", ".md")
        source = path.relative_to(ROOT)
        sources.add(source)
        up = "../" * len(page.parent.parts)
        return f"{match[1]}{up}source/{source_page(source)}{mark}{lines}{match[3]}"

    def follow_palette(match: re.Match[str]) -> str:
        dark, alt, light = match.groups()
        return f"![{alt}]({light}#only-light)\n![{alt}]({dark}#only-dark)"

    return PICTURE.sub(follow_palette, LINK.sub(lead, text))


def source_page(source: Path) -> str:
    """Where the page of a file or folder of the repository stands below ``source``."""
    return f"{source.as_posix()}{'/index' if (ROOT / source).is_dir() else ''}.html"


def write_source(source: Path, out: Path) -> None:
    """A page that shows a file with numbered lines, or a folder with its files."""
    path, to = ROOT / source, out / "source" / source_page(source)
    if path.is_dir():
        names = sorted(each.name for each in path.iterdir() if not each.name.startswith("__"))
        body = "<ul>" + "".join(f"<li>{html.escape(name)}" for name in names) + "</ul>"
    else:
        lines = path.read_text("utf-8").splitlines()
        numbered = (
            f'<span id="L{number}">{html.escape(line)}\n</span>'
            for number, line in enumerate(lines, 1)
        )
        body = f"<pre>{''.join(numbered)}</pre>"
    to.parent.mkdir(parents=True, exist_ok=True)
    up = "../" * len(to.relative_to(out).parent.parts)
    to.write_text(SOURCE_PAGE.format(name=source.as_posix(), up=up, body=body), "utf-8")


def sections(text: str) -> list[tuple[str, str]]:
    """The entries of a chapter: title and text."""
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2], strict=True))


def entries_of(chapter: str, text: str) -> list[Entry]:
    """The entries of a chapter of the book, read from its page; none of its index."""
    return [
        Entry(
            chapter,
            title,
            anchor_of(title),
            body.strip().split("\n\n")[0].replace("\n", " "),
            tuple(each.strip() for each in MATH.findall(body)),
            tuple(re.findall(r"^\[`([^`]+)`\]\(([^)]+)\) in ", body, re.MULTILINE)),
            _tests_by_hand(body),
            tuple(dict.fromkeys(re.findall(r"EQ-\d+", body.partition("Numbers:")[2]))),
        )
        for title, body in sections(text)
        if "- **Tests.**" in body or MATH.search(body)
    ]


def _tests_by_hand(body: str) -> tuple[tuple[str, str], ...]:
    listed = re.search(r"\*\*Tests\.\*\*.*?by hand (.*?)(?:;|\.?$)", body, re.MULTILINE)
    return tuple(re.findall(r"\[`([^`]+)`\]\(([^)]+)\)", listed[1])) if listed else ()


def anchor_of(title: str) -> str:
    """The anchor of a heading, as GitHub and the site write it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def search_page(entries: list[Entry]) -> str:
    """A page with all entries of the book and a field that narrows them down."""
    lines = [
        "# Find an equation",
        "",
        f"{len(entries)} entries: the formula, what it says, its source lines and the tests whose"
        " expected numbers are worked out by hand. Type a name or a number such as EQ-50.",
        "",
        '<label class="find">Find <input id="find-equation" type="search" autocomplete="off"'
        ' placeholder="attention, softmax, EQ-50 ..."></label>'
        '<p id="found-equations" role="status"></p>',
        "",
    ]
    for entry in entries:
        words = " ".join(
            [entry.title, entry.chapter, *entry.numbers, *(n for n, _ in entry.functions)]
        )
        lines += [
            f'<div class="equation" data-words="{html.escape(words.lower())}" markdown>',
            "",
            f"**[{entry.title}]({entry.chapter}.md#{entry.anchor})** {' '.join(entry.numbers)}",
            "",
            entry.sentence,
            "",
            *(f"```math\n{latex}\n```\n" for latex in entry.formulas[:1]),
            _links("Source", entry.functions),
            _links("By hand", entry.tests),
            "</div>",
            "",
        ]
    return "\n".join(lines)


def _links(title: str, links: tuple[tuple[str, str], ...]) -> str:
    if not links:
        return ""
    return f"{title}: " + ", ".join(f"[`{name}`]({link})" for name, link in links) + "\n"


def with_live(text: str, address: str) -> str:
    """The first page with the model at work below its title, before any code."""
    title, _, rest = text.partition("\n")
    frame = (
        f'<iframe class="live" src="{address}" title="A translation model at work"></iframe>\n\n'
        f"A model of 0.5 million parameters, at work in your browser: change a word, click a layer."
        f' <a href="{address}">Open it alone</a>; [what it shows](web.md).'
    )
    return f"{title}\n\n{frame}\n{rest}"


def with_toys(chapter: str, text: str) -> str:
    """The page of a chapter, with a toy behind the first formula of each entry that has one."""
    for (place, title), toy in TOYS.items():
        if place == chapter:
            start = text.index(f"## {title}\n")
            end = MATH.search(text, start)
            assert end is not None, f"{chapter}: {title} has no formula"
            box = f'\n\n<div class="toy" data-toy="{toy}"></div>'
            text = text[: end.end()] + box + text[end.end() :]
    return text


def notebook_page(path: Path) -> str:
    """A notebook as Markdown: its text, and its code in blocks."""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    parts = []
    for cell in cells:
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    main()
