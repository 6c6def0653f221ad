"""Prepare the pages of the site: docs/ as Markdown that a site builder reads without a warning.

    make site            prepares build/pages and builds build/site from them

What changes on the way: formulas become MathML, which browsers draw without a script or a font;
links to source code lead to pages of the site that show these very lines; pictures follow the
palette that the reader chose; the notebooks become pages; entries of the book of equations get
their toys and parts of a live model, exercises a cell that says right or wrong; a page is added on
which one searches all entries; and the first screen is the model at work of docs/live.html, whose
steps and equations then lead to the chapters.
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

from book.exercises import exercises

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = ROOT / "build" / "pages"
LIVE = DOCS / "live.html"
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
_WEIGHTS = "encoder.layers.0.self_attention.heads.0.weights"
LIVE_PARTS = {
    ("masks", "Causal mask"): (
        "decoder.layers.0.self_attention.heads.0.weights",
        "Press *Drop the mask*: every row may now look at rows that follow, and the weights above"
        " the diagonal are no longer 0. What the model says then stands beside what it said: mostly"
        " the same, as nothing follows the newest word while it is written. It is for training.",
    ),
    ("attention", "Attention weights"): (
        _WEIGHTS,
        "Hold a row by hand: drag a bar below the matrix, and the other weights of the row give way"
        " so that their sum stays 1. The model goes on with the row as you hold it.",
    ),
    ("attention", "Temperature"): (
        "output",
        "Move *Temperature* below the picture: each word is then drawn from the softmax of its"
        " logits divided by it, and the higher it is, the more often an unlikely one comes.",
    ),
    ("positions", "Why positions are needed"): (
        "encoder.embedding",
        "Press *Drop the positions*: what is left of the sentence is a bag of words. Four or five"
        " fit in one order only; with *est-ce que tu veux me voir sous leur table ?* the model no"
        " longer knows who sees whom.",
    ),
    ("heads", "What each head adds"): (
        "decoder.layers.1.cross_attention",
        "Press *Switch parts off* and click the small squares of a layer, one head after the other:"
        " some the translation needs, others it does not.",
    ),
}
"""Chapter and entry for each part of the live model: what it opens, and what to do there."""
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


def prepare(out: Path) -> None:
    """Write the pages to ``out``, whatever it held before."""
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(DOCS, out, ignore=shutil.ignore_patterns("*.md", "*.toml", "*.ipynb"))

    texts = {path.relative_to(DOCS): path.read_text("utf-8") for path in DOCS.rglob("*.md")}
    for path in sorted(DOCS.rglob("*.ipynb")):
        texts[path.relative_to(DOCS).with_suffix(".md")] = notebook_page(path)
    chapters = {name: text for name, text in texts.items() if name.parent.name == "equations"}
    texts[Path("equations/find.md")] = search_page(
        [entry for name, text in sorted(chapters.items()) for entry in entries_of(name.stem, text)]
    )

    live = LIVE.read_text("utf-8")
    (out / LIVE.name).write_text(with_address_of_the_book(live), "utf-8")
    first = Path("index.md")
    texts[first] = with_live(texts[first], LIVE.name)

    sources: set[Path] = set()
    for name, text in texts.items():
        page = with_played(name.stem, text) if name in chapters else text
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
    """The first page, whose first screen is the model at work, without menus beside it."""
    frame = f'<iframe class="live" src="{address}" title="A translation model at work"></iframe>'
    return f"---\nhide:\n  - navigation\n  - toc\n---\n\n{frame}\n\n{text}"


def with_address_of_the_book(page: str) -> str:
    """The page of a model, whose steps and equations then lead to the chapters beside it."""
    unknown, here = (f'<meta name="pellucid-book" content="{each}">' for each in ("", "."))
    assert unknown in page
    return page.replace(unknown, here)


def with_played(chapter: str, text: str) -> str:
    """The page of a chapter with its toys, its live parts and the cells of its exercises."""
    for (place, title), (part, task) in LIVE_PARTS.items():
        if place == chapter:
            address = f"../{LIVE.name}#part={part}&amp;embedded"
            frame = f'<iframe class="live-part" loading="lazy" src="{address}" title="{title}">'
            text = _after_formula(text, title, f"{task}\n\n{frame}</iframe>")
    for (place, title), toy in TOYS.items():
        if place == chapter:
            text = _after_formula(text, title, f'<div class="toy" data-toy="{toy}"></div>')
    return with_cells(chapter, text)


def _after_formula(text: str, title: str, addition: str) -> str:
    """``text`` with the addition behind the first formula of an entry, or at its end."""
    start = text.index(f"## {title}\n")
    end = text.index("\n## ", start)
    formula_of_entry = MATH.search(text, start, end)
    place = (
        text.index("\n\n<details", start) if formula_of_entry is None else formula_of_entry.end()
    )
    return f"{text[:place]}\n\n{addition}{text[place:]}"


def with_cells(chapter: str, text: str) -> str:
    """The page of a chapter, with a cell below each exercise that says right or wrong."""
    if chapter in ("index", "find"):
        return text
    for each in exercises(chapter):
        question = f"**{each.number}.** {each.question}\n"
        assert question in text, f"{chapter}: no exercise {each.number}"
        answer = html.escape(json.dumps(each.answer))
        cell = f'<form class="cell" data-number="{each.number}" data-answer="{answer}"></form>'
        text = text.replace(question, f"{question}\n{cell}\n")
    return text


def notebook_page(path: Path) -> str:
    """A notebook as Markdown: its text, and its code in blocks with what it printed."""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    parts = []
    for cell in cells:
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        for output in cell.get("outputs", ()):
            parts.append(f"```text\n{''.join(output['text'])}```")
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    main()
