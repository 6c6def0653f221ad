"""The pages of the book of equations: docs/equations, from book/pages, docstrings, code, tests.

A file of book/pages is a page: its section of the paper, its words, and its entries. An entry
names functions; their docstrings give its sentence, symbols and differences, their source its code.
Its example is run, and what it prints is shown: no number on a page is typed by hand.
"""

import ast
import contextlib
import functools
import io
import itertools
import re
import textwrap
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from draw_architecture import BLOCK_NAMES, DECODER_BLOCK, EDGES, ENCODER_BLOCK, INSIDE
from equation_evidence import (
    EQUATION_COUNT,
    ERRATUM_COUNT,
    ROOT,
    Evidence,
    Place,
    documented,
    kind_of,
    parse,
    read_table,
    tests,
)
from equation_ties import find_ties

from book import complexity, exposure, variations
from book.exercises import Exercise, exercises

SOURCES = ROOT / "book" / "pages"
PAGES = (
    "tokens",
    "stacks",
    "attention",
    "heads",
    "masks",
    "applications",
    "feed-forward",
    "embeddings",
    "positions",
    "complexity",
    "loss",
    "optimizer",
    "regularization",
    "search",
    "variations",
    "before",
    "after",
    "attribution",
    "notation",
)
"""In the order of the index."""
UP = "../../"
"""From docs/equations to the repository."""
LINE_LENGTH = 100
LINES = re.compile(r"#L\d+")
MOST_TESTS, MOST_CALLERS, MOST_PARTS = 3, 2, 4
FOLD = '<details markdown="1"><summary>{}</summary>\n\n{}\n\n</details>'
"""A fold with its title; a site needs the attribute to read Markdown inside."""
_TENSORS = {"Float": "", "Int": "integers", "Bool": "true or false"}
_KEYWORD = re.compile(r"\b(EQ|Source|Symbols|Raises|Differs|Law): ")
_CITED_NUMBER = re.compile(r" \((?:EQ|ER)-\d+(?:, (?:EQ|ER)-\d+)*\)|, (?:EQ|ER)-\d+(?=\))")
"""Numbers of the catalogues in a sentence; what a reader sees of them stands in the fold."""


@dataclass(frozen=True)
class Entry:
    """A section of a page."""

    title: str
    page: str
    facts: dict[str, Any]
    """The facts as in the file of the page."""

    @property
    def anchor(self) -> str:
        """The anchor that GitHub forms from the title."""
        return anchor(self.title)

    @property
    def link(self) -> str:
        """From another page of the book."""
        return f"{self.page}.md#{self.anchor}"

    @property
    def numbers(self) -> list[int]:
        """The numbers in docs/EQUATIONS.md, the most important first."""
        return list(self.facts.get("eq", ()))

    @property
    def shown(self) -> list[str]:
        """The functions whose code it shows."""
        return list(self.facts.get("functions", ()))

    @property
    def functions(self) -> list[str]:
        """All functions that belong to it."""
        return [*self.shown, *self.facts.get("also", ())]


@dataclass(frozen=True)
class Page:
    """A page of the book."""

    name: str
    title: str
    section: str
    """The section of the paper, such as ``§3.2.1``; or its place if the paper has none."""
    about: str
    entries: tuple[Entry, ...]
    thread: dict[str, str] | None
    """The step of the book's one sentence: ``title``, ``text`` and ``example``."""
    exercises: tuple[Exercise, ...]


def anchor(heading: str) -> str:
    """Return the anchor that GitHub forms of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@functools.cache
def book() -> tuple[Page, ...]:
    """Every page in its order; refuses a number or a function that stands twice or nowhere."""
    pages = tuple(_read(name) for name in PAGES)
    entries = [entry for page in pages for entry in page.entries]
    _require_once("EQ", [number for entry in entries for number in entry.numbers])
    missing = set(range(1, EQUATION_COUNT + 1)) - {n for e in entries for n in e.numbers}
    if missing:
        raise ValueError(f"book/pages lacks EQ-{sorted(missing)}")
    _require_once("function", [name for entry in entries for name in entry.functions])
    return pages


def _read(name: str) -> Page:
    facts = tomllib.loads((SOURCES / f"{name}.toml").read_text(encoding="utf-8"))
    entries = tuple(Entry(each["title"], name, each) for each in facts["entry"])
    head = facts["title"], facts["section"], facts["about"].strip()
    return Page(name, *head, entries, facts.get("thread"), exercises(name))


def _require_once(what: str, found: Sequence[object]) -> None:
    twice = sorted({str(each) for each in found if found.count(each) > 1})
    if twice:
        raise ValueError(f"each {what} must stand in one entry of book/pages, got {twice} twice")


def entries_by_number() -> dict[int, Entry]:
    """The entry of each number."""
    return {n: entry for page in book() for entry in page.entries for n in entry.numbers}


def entries_of_erratum(number: int) -> list[Entry]:
    """The entries that tell of it."""
    return [e for page in book() for e in page.entries if number in e.facts.get("er", ())]


def pages_of_the_book(found: dict[int, Evidence]) -> dict[str, str]:
    """The text of every page, by the name of its file."""
    return {f"{page.name}.md": _write_page(page, found) for page in book()} | {
        "index.md": _write_index()
    }


def _write_page(page: Page, found: dict[int, Evidence]) -> str:
    titles = [entry.title for entry in page.entries]
    if page.thread:
        titles.append(f"The sentence: {page.thread['title']}")
    titles += ["Exercises"] if page.exercises else []
    contents = [f"- [{title}](#{anchor(title)})" for title in titles]
    parts = [
        f"# {page.title}",
        f"<!-- Written by scripts/document_equations.py from book/pages/{page.name}.toml. -->",
        f"[The book of equations](index.md) · {page.section}",
        page.about,
        "\n".join(contents),
        *(_write_entry(entry, found) for entry in page.entries),
        *_thread(page),
        *_exercises(page),
        _neighbors(page),
    ]
    return "\n\n".join(parts) + "\n"


def _thread(page: Page) -> list[str]:
    """The step of the one sentence that goes through all chapters."""
    if page.thread is None:
        return []
    title, text = page.thread["title"], page.thread["text"].strip()
    session = run_example(page.thread["example"], f"{page.name}, {title}")
    return [f"## The sentence: {title}", text, f"```pycon\n{session}\n```"]


def _exercises(page: Page) -> list[str]:
    """Questions, each with its answer in a fold; refuses an answer that its solution does not
    print."""
    if not page.exercises:
        return []
    check = f"python -m book check {page.name} NUMBER ANSWER"
    parts = ["## Exercises", f"`{check}` says whether an answer is right, up to three digits."]
    for each in page.exercises:
        session = run_example(each.solution, f"exercise {each.number} of {page.name}")
        printed = session.splitlines()[-1]
        if not each.is_answered_by(printed):
            raise ValueError(
                f"exercise {each.number} of {page.name} has the answer {each.answer}, but its"
                f" solution prints {printed}"
            )
        parts.append(f"**{each.number}.** {each.question}")
        answer = f"Answer: {each.answer}\n\n```pycon\n{session}\n```"
        parts.append(FOLD.format("Answer", answer))
    return parts


def _neighbors(page: Page) -> str:
    index, pages = PAGES.index(page.name), book()
    links = [f"← [{pages[index - 1].title}]({PAGES[index - 1]}.md)"] if index else []
    links.append("[index](index.md)")
    if index + 1 < len(PAGES):
        links.append(f"[{pages[index + 1].title}]({PAGES[index + 1]}.md) →")
    return f"---\n\n{' · '.join(links)}"


def _write_entry(entry: Entry, found: dict[int, Evidence]) -> str:
    facts, places = entry.facts, [find_place(name) for name in entry.shown]
    parts = [f"## {entry.title}"]
    summary = facts.get("summary") or _sentence(places[0].docstring)
    parts.append(summary)
    parts.append(f"```math\n{_formula(entry)}\n```")
    if "text" in facts:
        parts.append(facts["text"].strip())
    parts += _symbols(places[:1])
    for picture in facts.get("pictures", ()):
        parts += _picture(picture["name"], picture["caption"])
    parts += [_code(place) for place in places]
    if "note" in facts:
        parts.append(facts["note"].strip())
    if "measured" in facts:
        parts.append(_measured(facts["measured"]))
    if "example" in facts:
        parts.append(f"```pycon\n{run_example(facts['example'], entry.title)}\n```")
    others = _differences([find_place(name) for name in entry.functions], facts.get("er", ()))
    others += _errata(facts.get("er", ()))
    if others:
        parts.append(FOLD.format("What others compute or say", "\n\n".join(others)))
    if foot := "\n".join(_footer(entry, found)):
        parts.append(FOLD.format("Sources, code that runs it, tests", foot))
    return "\n\n".join(parts)


def _measured(name: str) -> str:
    """A measurement of book/measured as a table."""
    if name == "variations":
        return variations.table_of(variations.stored())
    tables = {
        "complexity": lambda: complexity.table_of(complexity.stored()),
        "exposure": lambda: exposure.table_of(exposure.stored()),
    }
    head, *rows = tables[name]()
    lines = [head, ["---:"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _formula(entry: Entry) -> str:
    if "formula" in entry.facts:
        return str(entry.facts["formula"])
    if not entry.numbers:
        raise ValueError(
            f"{entry.page}, {entry.title}: add a formula = '...' in LaTeX, as its functions have no"
            " number in docs/EQUATIONS.md (EQ: none) that gives one"
        )
    return str(_equations()[entry.numbers[0]]["formula"])


@functools.cache
def _equations() -> dict[int, dict[str, Any]]:
    return read_table("equations.toml", "EQ", EQUATION_COUNT)


@functools.cache
def _errata_table() -> dict[int, dict[str, Any]]:
    return read_table("errata.toml", "ER", ERRATUM_COUNT)


# ---- what docstrings say


@functools.cache
def find_place(name: str) -> Place:
    """A function by ``module.name`` below pellucid/equations, or any of the program by its name.

    Raises ValueError unless there is exactly one.
    """
    module, _, function = name.rpartition(".")
    path = ROOT / "pellucid" / "equations" / f"{module.replace('.', '/')}.py"
    if module and path.is_file():
        found = [each for each in documented(path) if each.name == function]
        found = found[-1:]  # a module may bear the name of its function, and comes first
    else:
        definition = re.compile(rf"^(?:def|class) {name.partition('.')[0]}\b", re.MULTILINE)
        files = sorted((ROOT / "pellucid").rglob("*.py"))
        holders = [path for path in files if definition.search(path.read_text(encoding="utf-8"))]
        found = [each for path in holders for each in documented(path) if each.name == name]
    if len(found) != 1:
        raise ValueError(f"book/pages names {name}, of which there are {len(found)}, not one")
    return found[0]


def plain(text: str) -> str:
    """Docstring markup as Markdown, on one line, without the numbers of the catalogues."""
    return _CITED_NUMBER.sub("", " ".join(text.split()).replace("``", "`"))


def _sentence(docstring: str) -> str:
    return plain(docstring.partition("\n\n")[0])


def section_of(docstring: str, keyword: str) -> str:
    """Return the text after ``Symbols:`` or another keyword, up to the next or the end of the
    paragraph."""
    start = docstring.find(f"{keyword}: ")
    if start < 0:
        return ""
    rest = docstring[start + len(keyword) + 2 :]
    following = _KEYWORD.search(rest)
    ends = [rest.find("\n\n")] + ([following.start()] if following else [])
    return plain(rest[: min([end for end in ends if end >= 0], default=len(rest))])


def _symbols(places: Sequence[Place]) -> list[str]:
    """A table of the arguments with their symbols and shapes, and what else is said of symbols."""
    if not places or (node := _function(places[0])) is None:
        return []
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    names = [each.arg for each in arguments]
    symbols, others = _read_symbols(section_of(places[0].docstring, "Symbols"), names)
    rows = [
        (symbols.pop(each.arg, ""), f"`{each.arg}`", _shape(each.annotation)) for each in arguments
    ]
    rows = [row for row in rows if row[0] or row[2]]
    if (result := _shape(node.returns)) and rows:
        rows.append((symbols.pop("result", ""), "result", result))
    left = [f"{symbol} = {_marked(name)}" for name, symbol in symbols.items()] + others
    if len(rows) < 2 and not left:
        return []
    lines = ["| symbol or meaning | in the code | shape |", "|---|---|---|"]
    lines += [f"| {_raised(symbol)} | {name} | {shape} |" for symbol, name, shape in rows]
    if not any(symbol for symbol, _, _ in rows):
        lines = ["| in the code | shape |", "|---|---|"]
        lines += [f"| {name} | {shape} |" for _, name, shape in rows]
    table = "\n".join(lines) if rows else ""
    note = "; ".join(left) + "." if left else ""
    note = re.sub(r"; (?=(?:A|For|No|The|Of|In|Population|PAD) )", ". ", note)
    return [each for each in (table, _capital(note)) if each]


def _raised(symbol: str) -> str:
    return re.sub(r"\^([A-Z])", r"<sup>\1</sup>", symbol)


def _marked(name: str) -> str:
    return f"`{name}`" if re.fullmatch(r"[\w\[\]]+", name) else name


def _read_symbols(text: str, arguments: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """``query = Q, key = K; rows sum to one`` → what each name stands for, and the rest."""
    symbols: dict[str, str] = {}
    others = []
    for piece in _pieces(text):
        parts = piece.split(" = ")
        names = list(
            itertools.takewhile(lambda part: part.partition("[")[0] in arguments, parts[:-1])
        )
        if not names and len(parts) > 1 and re.fullmatch(r"[a-z]{2,}\w*", parts[0]):
            names = parts[:1]  # the name of an axis, such as key_size
        if names:
            symbol = " = ".join(parts[len(names) :])
            symbols.update({name.partition("[")[0]: symbol for name in names})
        else:
            others.append(piece)
    return symbols, others


_OUTSIDE = r"(?![^(\[]*[)\]])"
"""Not inside of brackets."""


def _pieces(text: str) -> list[str]:
    """Parts between commas outside of brackets; one without ``=`` belongs to the one before it."""
    pieces: list[str] = []
    for part in re.split(rf"(?:;|\.(?= [A-Z`])) {_OUTSIDE}", text.rstrip(".")):
        first, *more = re.split(f", {_OUTSIDE}", part)
        if " = " not in first:
            pieces.append(part)  # a sentence
            continue
        pieces.append(first)
        for piece in more:
            if " = " in piece:
                pieces.append(piece)
            else:
                pieces[-1] += f", {piece}"
    return [piece for piece in pieces if piece]


@functools.cache
def _function(place: Place) -> ast.FunctionDef | None:
    return _functions_by_line(ROOT / place.path).get(place.first_line)


@functools.cache
def _functions_by_line(path: Path) -> dict[int, ast.FunctionDef]:
    nodes = [node for node in ast.walk(parse(path)) if isinstance(node, ast.FunctionDef)]
    return {node.lineno: node for node in nodes}


def _shape(annotation: ast.expr | None) -> str:
    """``Float[Tensor, "*batch query key_size"]`` → ``… × query × key_size``."""
    if annotation is None:
        return ""
    for node in ast.walk(annotation):
        match node:
            case ast.Subscript(
                value=ast.Name(id=kind), slice=ast.Tuple(elts=[_, ast.Constant(value=str(axes))])
            ) if kind in _TENSORS:
                words = [re.sub(r"[{}#]", "", word) for word in axes.split()]
                shape = " × ".join("…" if word.startswith("*") else word for word in words)
                note = f" ({_TENSORS[kind]})" if _TENSORS[kind] else ""
                return (shape or "one number") + note
            case ast.Name(id="Ids"):
                return "sentence × length (integers)"
            case ast.Name(id="Rows"):
                return "sentence × length × d_model"
            case ast.Name(id="Mask"):
                return "sentence × query × key (true or false)"
    return ""


def _differences(places: Sequence[Place], errata: Sequence[int]) -> list[str]:
    """Differences from programs and papers; those that are errata of the entry are told there."""
    found = []
    for place in places:
        text = section_of(place.docstring, "Differs")
        if text and not set(errata) & _errata_in(place.docstring.partition("Differs: ")[2]):
            found.append((place, _capital(text)))

    if len(found) == 1:
        return [f"**Differs.** {found[0][1]}"]
    return [f"**Differs (`{place.name}`).** {text}" for place, text in found]


def _errata_in(text: str) -> set[int]:
    return {int(number) for number in re.findall(r"ER-(\d+)", text)}


def _capital(text: str) -> str:
    """Return the text with a capital, unless it begins with a name such as torch.std."""
    return text[:1].upper() + text[1:] if re.match(r"[a-z]{2,} (?!= )", text) else text


# ---- code, examples, pictures


def _code(place: Place) -> str:
    """The body of a function below a head without annotations, and a link to its lines."""
    node = _function(place)
    if node is None:  # a class, a constant: the link is enough
        return f"In the code: {place.link(UP)}."
    lines = (ROOT / place.path).read_text(encoding="utf-8").splitlines()
    body = [each for each in node.body if not _is_docstring(each)]
    first = node.body[0].end_lineno or 0 if _is_docstring(node.body[0]) else node.body[0].lineno - 1
    text = textwrap.dedent("\n".join(lines[first : node.end_lineno])).strip("\n")
    head = _wrapped(f"def {node.name}(", _arguments(node.args, "\n".join(lines)), "):")
    if not body:
        return f"In the code: {place.link(UP)}."
    code = f"{head}\n{textwrap.indent(text, '    ')}"
    return f"{place.link(UP)} in {place.path.removeprefix('pellucid/')}:\n\n```python\n{code}\n```"


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _arguments(arguments: ast.arguments, source: str) -> list[str]:
    """Names and defaults, without annotations."""
    names = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(names) - len(arguments.defaults)) + list(arguments.defaults)
    pairs = [*zip(names, defaults, strict=True)]
    named = [*zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    written = [
        name.arg + (f"={ast.get_source_segment(source, default)}" if default is not None else "")
        for name, default in [*pairs, *named]
    ]
    return written[: len(pairs)] + (["*"] if named else []) + written[len(pairs) :]


def _wrapped(head: str, parts: Sequence[str], tail: str) -> str:
    """On one line if it fits, else as ruff breaks it."""
    together = ", ".join(parts)
    if len(line := f"{head}{together}{tail}") <= LINE_LENGTH:
        return line
    if len(line := f"    {together}") <= LINE_LENGTH and tail != ")":
        return f"{head}\n{line}\n{tail}"
    return "\n".join([head, *(f"    {part}," for part in parts), tail])


@functools.cache
def _known_names() -> dict[str, str]:
    """Every public function of the equations and of what else the book names, with its module."""
    known = {}
    for name in find_ties_once():
        module, _, function = name.rpartition(".")
        known.setdefault(function, module)
    for page in book():
        for entry in page.entries:
            for each in entry.functions:
                place = find_place(each)
                module = place.path.removesuffix(".py").replace("/", ".")
                known[place.name.partition(".")[0]] = module
    return known


def run_example(source: str, title: str) -> str:
    """A console session: the imports that ``source`` needs, its lines and what they print."""
    import torch

    torch.set_default_dtype(torch.float64)
    torch.set_printoptions(precision=4, sci_mode=False, linewidth=88)
    torch.manual_seed(0)
    imports = _imports(source)
    session = []
    scope: dict[str, Any] = {}
    try:
        for line in imports:
            exec(line, scope)  # noqa: S102  # the text of this repository
            session.append(_prompted(line))
        for statement in ast.parse(source.strip("\n")).body:
            text = ast.get_source_segment(source.strip("\n"), statement) or ""
            session.append(_prompted(text))
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                if isinstance(statement, ast.Expr):
                    value = eval(text, scope)  # noqa: S307
                    if value is not None:
                        print(repr(value))
                else:
                    exec(text, scope)  # noqa: S102
            session += printed.getvalue().rstrip("\n").splitlines()
    except Exception as error:
        raise ValueError(f"the example of {title!r} in book/pages fails: {error!r}") from error
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_printoptions(profile="default")
    return "\n".join(session)


def _prompted(statement: str) -> str:
    return ">>> " + statement.replace("\n", "\n... ")


def _imports(source: str) -> list[str]:
    tree = ast.parse(source)
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    used = {node.id for node in names} - {n.id for n in names if isinstance(n.ctx, ast.Store)}
    lines = [f"import {name}" for name in ("math", "torch") if name in used]
    if "tensor" in used:
        lines.append("from torch import tensor")
    by_module: dict[str, list[str]] = {}
    for name in sorted(used & _known_names().keys()):
        by_module.setdefault(_known_names()[name], []).append(name)
    modules = sorted(by_module.items())
    already = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    for module, wanted in modules:
        if names := [name for name in wanted if name not in already]:
            line = f"from {module} import {', '.join(names)}"
            if len(line) > LINE_LENGTH - 4:
                line = _wrapped(f"from {module} import (", names, ")")
            lines.append(line)
    return lines


def _picture(name: str, caption: str) -> list[str]:
    """The light and the dark form; nothing while the files do not exist."""
    folder = ROOT / "docs" / "pictures" / "equations"
    for kind in ("svg", "png"):
        if (folder / f"{name}-light.{kind}").is_file():
            files = [f"../pictures/equations/{name}-{mode}.{kind}" for mode in ("dark", "light")]
            return [
                "<picture>\n"
                f'  <source media="(prefers-color-scheme: dark)" srcset="{files[0]}">\n'
                f'  <img alt="{caption}" src="{files[1]}">\n'
                "</picture>",
                f"*{caption}.* `python -m book figures {name}` draws it.",
            ]
    return []


# ---- errata


def _errata(which: Sequence[int]) -> list[str]:
    """Return each claim of a source beside the right one; figures as printed beside the computed
    ones."""
    parts = []
    for number in which:
        entry = _errata_table()[number]
        head = _KIND_WORDS[entry["kind"]].format(entry["source"])
        link = f"[{head}](../ERRATA.md#{erratum_anchor(number, entry)})"
        right = "But" if entry["kind"] == "trap" else "Right"
        sentence = f"**{link}**: {entry['says']}. {right}: {entry['right']}."
        lines = [sentence]
        if figures := figures_of(entry):
            lines += ["", "| as printed | computed |", "|---|---|"]
            lines += [f"| {printed} | {computed} |" for printed, computed in figures]
        parts.append("\n".join(lines))
    return parts


_KIND_WORDS = {
    "error": "Wrong in {}",
    "wording": "Loosely said in {}",
    "convention": "Another convention: {}",
    "omission": "Left out in {}",
    "no error": "Right in {}, in spite of its looks",
    "trap": "Right on paper, and a trap in floating point, in {}",
}


def erratum_anchor(number: int, entry: dict[str, Any]) -> str:
    """Return the anchor of an erratum's section in docs/ERRATA.md."""
    return anchor(f"ER-{number:02} ({entry['kind']}; {entry['source']})")


def figures_of(entry: dict[str, Any]) -> list[tuple[str, str]]:
    """Each figure of an erratum as printed, and as the code in ``computes`` gives it."""
    if "computes" not in entry:
        return []
    import torch

    torch.set_default_dtype(torch.float64)
    try:
        scope: dict[str, Any] = {}
        for line in [*_imports(entry["computes"]), "import math"]:
            exec(line, scope)  # noqa: S102
        right = eval(entry["computes"], scope)  # noqa: S307
    finally:
        torch.set_default_dtype(torch.float32)
    return list(zip(entry["printed"], right, strict=True))


# ---- the foot of an entry


def _footer(entry: Entry, found: dict[int, Evidence]) -> Iterator[str]:
    sources = [_source(find_place(name)) for name in entry.shown]
    if not any(sources):
        sources = [str(_equations()[number]["place"]) for number in entry.numbers[:1]]
    sources = list(dict.fromkeys(text for text in sources if text))
    if sources:
        all_numbers = [f"EQ-{number:02}" for number in sorted(entry.numbers)]
        all_numbers += [f"ER-{number:02}" for number in entry.facts.get("er", ())]
        numbered = f" Numbers: {', '.join(all_numbers)}." if all_numbers else ""
        yield f"- **Sources.** {'; '.join(sources)}.{numbered}"
    also = [find_place(name).link(UP) for name in entry.facts.get("also", ())]
    if also:
        yield f"- **See also.** {', '.join(also)}."
    ties = list(_ties(entry))
    if ties:
        yield f"- **Who runs it.** {' '.join(ties)}"
    seen = [name for name, numbers in parts_by_name() if numbers & set(entry.numbers)]
    if seen:
        names = ", ".join(f"`{name}`" for name in seen[:MOST_PARTS])
        more = " and more" if len(seen) > MOST_PARTS else ""
        yield f"- **In a report and a capture.** {names}{more} ([inspection](../inspection.md))."
    if worked := entry.facts.get("worked"):
        names = " and ".join(f"`python -m book examples {name}`" for name in worked)
        yield f"- **Step by step.** {names}."
    settings = entry.facts.get("settings", ())
    if settings:
        names = ", ".join(f"`{name}`" for name in settings)
        yield f"- **Settings.** {names} ([configuration](../configuration.md))."
    labeled = list(_labeled_tests(entry, found))
    if labeled:
        yield f"- **Tests.** {'; '.join(labeled)}."


@functools.cache
def parts_by_name() -> list[tuple[str, set[int]]]:
    """Return the entries of a capture, from the table of parts, and the numbers of each; layers as
    ``*``."""
    from pellucid.inspection.parts import parts_of
    from pellucid.model.config import parse_model_config

    found: dict[str, set[int]] = {}
    for settings in ({}, {"kind": "rnn-attention"}):
        for name, part in parts_of(parse_model_config(settings)).items():
            if ".heads." not in name:  # each head again
                general = re.sub(r"\.\d+\.", ".*.", name)
                found.setdefault(general, set()).update(part.equations)
    return list(found.items())


def _source(place: Place) -> str:
    """Papers and sections, without the sentences that may follow them."""
    return re.split(r"\. (?=[A-Z])", section_of(place.docstring, "Source"))[0].rstrip(".")


def _ties(entry: Entry) -> Iterator[str]:
    ties = find_ties_once()
    places = [find_place(name) for name in entry.functions]
    tied = [(place, ties[place.module_name]) for place in places if place.module_name in ties]
    sentences = {"run": "The program calls {} in {}.", "twin": "A law holds the program to {}: {}."}
    for kind, sentence in sentences.items():
        same_files: dict[str, list[tuple[Place, Any]]] = {}
        for place, tie in tied:
            if tie.kind == kind:
                files = LINES.sub("", _callers(place, tie.by))
                same_files.setdefault(files, []).append((place, tie))
        for group in same_files.values():
            names = _listed([f"`{place.name}`" for place, _ in group])
            yield sentence.format(names, _callers(group[0][0], group[0][1].by))
    notation = [f"`{place.name}`" for place, tie in tied if tie.kind == "notation"]
    if notation:
        yield f"Notation: {_listed(notation)}."


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


@functools.cache
def find_ties_once() -> dict[str, Any]:
    """``find_ties``, read once."""
    return dict(find_ties())


def _callers(place: Place, paths: Sequence[str]) -> str:
    """The files that call it, with the line of the first call; direct callers first."""
    lines = [(path, _line_of_call(path, place.name)) for path in paths]
    direct = [(path, line) for path, line in lines if line]
    chosen = (direct or lines)[:MOST_CALLERS]
    return " and ".join(
        f"[{path.removeprefix('pellucid/')}]({UP}{path}{f'#L{line}' if line else ''})"
        for path, line in chosen
    )


def _line_of_call(path: str, name: str) -> int:
    return _first_lines(path).get(name, 0)


@functools.cache
def _first_lines(path: str) -> dict[str, int]:
    """The first line on which each name is used, imports aside."""
    lines: dict[str, int] = {}
    for node in ast.walk(parse(ROOT / path)):
        match node:
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name):
                lines[name] = min(node.lineno, lines.get(name, node.lineno))
    return lines


def _labeled_tests(entry: Entry, found: dict[int, Evidence]) -> Iterator[str]:
    chosen = [test for number in entry.numbers for test in found[number].tests]
    names = {find_place(name).name for name in entry.functions}
    if not chosen:
        chosen = [test for test in tests() if names & _called(test)]
    chosen = list(dict.fromkeys(chosen))
    of = {test: kind_of(test) for test in chosen}
    groups = {
        "by hand": [test for test in chosen if of[test].by_hand],
        "against another program": [test for test in chosen if of[test].referees],
        "properties": [test for test in chosen if of[test].is_property],
    }
    groups["further"] = [test for test in chosen if not any(test in g for g in groups.values())]
    for label, group in groups.items():
        if group:
            links = ", ".join(test.link(UP) for test in group[:MOST_TESTS])
            more = f" and {len(group) - MOST_TESTS} more" if len(group) > MOST_TESTS else ""
            yield f"{label} {links}{more}"


@functools.cache
def _called(test: Place) -> frozenset[str]:
    """The names that a test loads."""
    if not test.path.startswith(("tests/equations/", "tests/laws/")):
        return frozenset()
    node = _function(test)
    inside = ast.walk(node) if node is not None else ()
    return frozenset(each.id for each in inside if isinstance(each, ast.Name))


# ---- the index


def index_of_names() -> list[tuple[str, Entry]]:
    """Every title and every other name of an entry, in the order of the alphabet."""
    named = [
        (name, entry)
        for page in book()
        for entry in page.entries
        for name in dict.fromkeys([entry.title, *entry.facts.get("names", ())])
    ]
    return sorted(named, key=lambda pair: re.sub(r"\W", "", pair[0].lower()))


def _write_index() -> str:
    text = (SOURCES / "index.md").read_text(encoding="utf-8")
    contents = "\n".join(
        f"| {page.section.removesuffix(' of the paper')} | [{page.title}]({page.name}.md) |"
        f" {', '.join(f'[{entry.title}]({entry.link})' for entry in page.entries)} |"
        for page in book()
    )
    lines = []
    letter = ""
    for name, entry in index_of_names():
        first = re.sub(r"\W", "", name)[0].upper()
        if first != letter:
            letter = first
            lines.append(f"\n**{letter}**\n")
        where = "" if name == entry.title else f" → {entry.title}"
        lines.append(f"- [{name}]({entry.link}){where}")
    written = "<!-- Written by scripts/document_equations.py from book/pages. -->"
    parts = {
        "{written}": written,
        "{map}": _map_in_words(),
        "{contents}": contents,
        "{names}": "\n".join(lines).strip("\n"),
    }
    for mark, part in parts.items():
        text = text.replace(mark, part)
    return text


def _map_in_words() -> str:
    """The boxes of the picture as links, for a picture on a page cannot be clicked."""
    ways = {
        "Input": [EDGES[2], EDGES[0], EDGES[3], EDGES[4]],
        "Encoder block": [BLOCK_NAMES[0], *ENCODER_BLOCK[::-1]],
        "Decoder block": [BLOCK_NAMES[1], *DECODER_BLOCK[::-1]],
        "Inside every attention": INSIDE[::-1],
        "Output": EDGES[5:],
    }
    return "\n".join(
        f"- **{name}**: " + ", ".join(f"[{box.label}]({box.link})" for box in boxes)
        for name, boxes in ways.items()
    )
