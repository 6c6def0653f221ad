"""Write docs/EQUATIONS.md and docs/ERRATA.md from docstrings, tests and two tables of facts.

python scripts/document_equations.py           write both pages
python scripts/document_equations.py --check   fail if a page is not what would be written

What an equation or an erratum says stands in docs/equations.toml and docs/errata.toml; what
implements it and which test settles it is found by reading the code, without running it.
"""

import ast
import functools
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from equation_ties import ILLUSTRATIONS, find_ties
from kinds_of_tests import Kind, kinds

ROOT = Path(__file__).resolve().parents[1]
NOT_YET = "**not yet**"
EQUATION_COUNT, ERRATUM_COUNT = 139, 74
TIES = find_ties()
TIE_SENTENCES = {
    "run": "Run by the program",
    "twin": "Held to the program by a law",
    "notation": "Notation, which nothing runs",
}
MOST_CALLERS = 4
"""Files named beside a function; the program reaches some equations from thirty."""

_DECLARED = re.compile(r"\bEQ: (\d{2,3}\b(?:, \d{2,3}\b)*)")
_LAW = re.compile(r"\bLaw: (tests/[\w/]+\.py)")

EQUATIONS_INTRODUCTION = """\
# Equations

<!-- Written by scripts/document_equations.py: from the code and equations.toml. -->

Every equation, definition and procedure of the five texts that Pellucid was written from, by
number: where it stands, what implements it and which tests hold the code to it. The short names of
the texts, with authors and titles, are in [sources.md](sources.md). Functions declare the numbers
they implement in the line `EQ:` of their docstrings, tests name theirs as `EQ-27`. What is missing
is marked **not yet**. A function that the program calls is *run by* it; one that the program
computes in another, faster way is *held to it by a law*; the rest is *notation*, which is read and
tested and which nothing runs. Where a text is wrong, see [ERRATA.md](ERRATA.md).

A test by hand has what is expected written into it. A referee is what another library answers. The
further tests hold an equation to a property, to another equation, or to the sum written out.
"""
ERRATA_INTRODUCTION = """\
# Errata

<!-- Written by scripts/document_equations.py: from the tests and errata.toml. -->

Pellucid was written from five texts that explain the Transformer: **Agarwal**, **Single Page**,
**Bayesuvius**, **Transformers report** and **Lee**; [sources.md](sources.md) has their authors and
titles. This page lists where these five are wrong, disagree, or leave out what a program needs;
what is right; and the tests that settle it (they name their entry as `ER-05`). It says nothing
about other texts. Every entry has a test, or else the reason why nothing can be tested.
The equations themselves are in [EQUATIONS.md](EQUATIONS.md).
"""


@dataclass(frozen=True)
class Place:
    """Something with a docstring."""

    name: str
    path: str
    """Relative to the repository."""
    docstring: str

    @property
    def area(self) -> str:
        """The part of the package it stands in."""
        return self.path.split("/")[1].removesuffix(".py")

    @property
    def module_name(self) -> str:
        """``module.name``, as ``find_ties`` has it."""
        return f"{self.path.removesuffix('.py').replace('/', '.')}.{self.name}"

    def link(self) -> str:
        """Its name, leading to its file from docs."""
        return f"[`{self.name}`](../{self.path})"


@dataclass
class Evidence:
    """What was found about one equation."""

    functions: list[Place] = field(default_factory=list)
    twins: list[Place] = field(default_factory=list)
    users: list[Place] = field(default_factory=list)
    tests: list[Place] = field(default_factory=list)


def documented(path: Path) -> Iterator[Place]:
    """Everything in a file that has a docstring: itself, classes, functions, constants, fields."""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    name = path.relative_to(ROOT).as_posix()
    module = path.parent.name if path.stem == "__init__" else path.stem
    yield Place(module, name, ast.get_docstring(tree) or "")
    yield from _inside(tree, "", name)


def _inside(node: ast.Module | ast.ClassDef, prefix: str, path: str) -> Iterator[Place]:
    previous: ast.stmt | None = None
    for child in node.body:
        match child:
            case ast.ClassDef():
                yield Place(prefix + child.name, path, ast.get_docstring(child) or "")
                yield from _inside(child, f"{prefix}{child.name}.", path)
            case ast.FunctionDef():
                yield Place(prefix + child.name, path, ast.get_docstring(child) or "")
            case ast.Expr(value=ast.Constant(value=str(text))):
                match previous:
                    case ast.AnnAssign(target=ast.Name(id=name)):
                        yield Place(prefix + name, path, text)
                    case ast.Assign(targets=[ast.Name(id=name)]):
                        yield Place(prefix + name, path, text)
        previous = child


def numbers(kind: str, text: str) -> set[int]:
    """The numbers that a text names: ``EQ-27``, ``EQ-40 to EQ-44``, ``EQ-106, 121.``."""
    found: set[int] = set()
    pattern = rf"{kind}-(\d+)(?: to (?:{kind}-)?(\d+))?((?:, \d{{1,3}}(?=[,.:;)]))*)"
    for first, last, more in re.findall(pattern, text):
        found.update(range(int(first), int(last or first) + 1))
        found.update(int(number) for number in re.findall(r"\d+", more))
    return found


def declared(text: str) -> set[int]:
    """The numbers in the line ``EQ:`` of a docstring."""
    return {int(number) for each in _DECLARED.findall(text) for number in re.findall(r"\d+", each)}


def package() -> list[Place]:
    """Everything documented in pellucid, but for the pictures."""
    paths = sorted((ROOT / "pellucid").rglob("*.py"))
    return [
        each
        for path in paths
        if not ILLUSTRATIONS & set(path.relative_to(ROOT).parts)
        for each in documented(path)
    ]


def tests() -> list[Place]:
    """Every test module and every test in it."""
    paths = sorted((ROOT / "tests").rglob("test_*.py"))
    return [
        each
        for path in paths
        for each in documented(path)
        if each.name.rpartition(".")[2].startswith("test_")
    ]


def evidence() -> dict[int, Evidence]:
    """For each equation: its functions, fast twins, the parts that use it, and its tests."""
    found = {number: Evidence() for number in range(1, EQUATION_COUNT + 1)}
    importers = _importers()
    for place in package():
        own = declared(place.docstring)
        for number in own | numbers("EQ", place.docstring):
            entry = _entry(found, number, place)
            if number in own and place.path.endswith("equations/fused.py"):
                entry.twins.append(place)
            elif number in own and place.area != "model":
                entry.functions.append(place)
            else:
                entry.users.append(place)
    for entry in found.values():
        known = {place.path for place in [*entry.functions, *entry.users]}
        for function in [*entry.functions, *entry.twins]:
            for module in importers.get(function.name, ()):
                if function.area == "equations" and module.path not in known:
                    known.add(module.path)
                    entry.users.append(module)
    for test in tests():
        for number in numbers("EQ", test.docstring) | declared(test.docstring):
            _entry(found, number, test).tests.append(test)
    return found


def _entry(found: dict[int, Evidence], number: int, place: Place) -> Evidence:
    if number not in found:
        raise ValueError(f"{place.path}: {place.name} names EQ-{number}, which does not exist")
    return found[number]


def _importers() -> dict[str, list[Place]]:
    """Which modules outside ``equations`` import which of its functions."""
    found: dict[str, list[Place]] = {}
    for path in sorted((ROOT / "pellucid").rglob("*.py")):
        if "equations" in path.parts or ILLUSTRATIONS & set(path.relative_to(ROOT).parts):
            continue
        module = Place(path.stem, path.relative_to(ROOT).as_posix(), "")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
                "pellucid.equations"
            ):
                for alias in node.names:
                    found.setdefault(alias.name, []).append(module)
    return found


def read_table(name: str, kind: str, count: int) -> dict[int, dict[str, Any]]:
    """The facts of a TOML file, by number; refuses one that is not complete."""
    content: dict[str, Any] = tomllib.loads((ROOT / "docs" / name).read_text(encoding="utf-8"))
    table = {int(number): entry for number, entry in content[kind].items()}
    if sorted(table) != list(range(1, count + 1)):
        raise ValueError(f"docs/{name} must have {kind}-01 to {kind}-{count}, each once")
    return table


def equations_page() -> str:
    """The whole of docs/EQUATIONS.md."""
    table, found = read_table("equations.toml", "EQ", EQUATION_COUNT), evidence()
    built = {n for n, entry in table.items() if _built(found[n]) or "of" in entry}
    tested = {n for n, e in found.items() if e.tests}
    both = built & tested
    by_hand = {n for n, e in found.items() if any(_kind(test).by_hand for test in e.tests)}
    refereed = {n for n, e in found.items() if any(_kind(test).referees for test in e.tests)}
    parts = [
        EQUATIONS_INTRODUCTION,
        f"Of {EQUATION_COUNT} entries, **{len(built)}** have a function, module or command,"
        f" **{len(tested)}** a test that names them, **{len(both)}** both; **{len(by_hand)}** have"
        f" a test by hand, **{len(refereed)}** a referee.\n",
        f"- Without a function: {_listed('EQ', set(found) - built)}",
        f"- Without a test: {_listed('EQ', set(found) - tested)}",
        f"- Without a test by hand: {_listed('EQ', tested - by_hand)}\n",
    ]
    parts += [_equation(number, entry, found[number]) for number, entry in table.items()]
    return "\n".join(parts)


def _built(found: Evidence) -> bool:
    return bool(found.functions or found.twins or found.users)


def _equation(number: int, entry: dict[str, Any], found: Evidence) -> str:
    lines = [f"## EQ-{number:02} {entry['title']}", "", f"$${entry['formula']}$$", ""]
    lines.append(f"- Source: {entry['place']}")
    functions = _links(found.functions)
    if not functions and "of" in entry:
        functions = f"those of EQ-{entry['of']:02}"
    lines.append(f"- Function: {functions or ('see below' if _built(found) else NOT_YET)}")
    ties = [(each, TIES[each.module_name]) for each in found.functions if each.module_name in TIES]
    for kind, sentence in TIE_SENTENCES.items():
        tied = [(function, tie) for function, tie in ties if tie.kind == kind]
        if tied:
            names = ", ".join(f"`{function.name}`" for function, _ in tied)
            by = sorted({path for _, tie in tied for path in tie.by})[:MOST_CALLERS]
            files = ", ".join(f"[{path.removeprefix('pellucid/')}](../{path})" for path in by)
            lines.append(f"- {sentence}: {names}{f' ({files})' if files else ''}")
    users = [each for each in found.users if each.area == "model"]
    if users:
        lines.append(f"- Used by: {_links(users)}")
    if found.twins:
        laws = sorted({law for twin in found.twins for law in _LAW.findall(twin.docstring)})
        proofs = ", ".join(f"[{Path(law).stem}](../{law})" for law in laws)
        lines.append(f"- Fast twin: {_links(found.twins)}; law: {proofs}")
    if "capture" in entry:
        lines.append(f"- Captured as: `{entry['capture']}`")
    return "\n".join([*lines, *_test_lines(found.tests)]) + "\n"


def _test_lines(found: Sequence[Place]) -> list[str]:
    """Tests by hand, those with a referee and which, and the others; each test stands once or, by
    hand and with a referee, twice.
    """
    if not found:
        return [f"- Tests: {NOT_YET}"]
    of = {test: _kind(test) for test in found}
    by_hand = [test for test in found if of[test].by_hand]
    refereed = [
        f"{test.link()} ({', '.join(f'`{name}`' for name in of[test].referees)})"
        for test in found
        if of[test].referees
    ]
    others = [test for test in found if not (of[test].by_hand or of[test].referees)]
    lines = {
        "Tests by hand": _links(by_hand),
        "Referees": ", ".join(dict.fromkeys(refereed)),
        "Further tests": _links(others),
    }
    return [f"- {name}: {links}" for name, links in lines.items() if links]


def _kind(test: Place) -> Kind:
    """What a test compares with; a module named as a whole tells nothing."""
    return kinds(ROOT / test.path).get(test.name.rpartition(".")[2], Kind(False, ()))


def errata_page() -> str:
    """The whole of docs/ERRATA.md; refuses an entry without test and reason, or with both."""
    table = read_table("errata.toml", "ER", ERRATUM_COUNT)
    settled: dict[int, list[Place]] = {number: [] for number in table}
    for test in tests():
        for number in numbers("ER", test.docstring):
            settled[number].append(test)
    tested = {number for number, each in settled.items() if each}
    parts = [
        ERRATA_INTRODUCTION,
        f"Of {ERRATUM_COUNT} entries, **{len(tested)}** are settled by a test.\n",
        f"- Not testable: {_listed('ER', set(table) - tested)}\n",
    ]
    for number, entry in table.items():
        if (number in tested) == ("untested" in entry):
            raise ValueError(
                f"ER-{number:02} must have either a test that names it or, in docs/errata.toml, the"
                f" reason why it is `untested`, got {'both' if number in tested else 'neither'}"
            )
        lines = [
            f"## ER-{number:02} ({entry['kind']}; {entry['source']})",
            "",
            f"- It says: {entry['says']}",
            f"- Right: {entry['right']}",
            f"- Pellucid: {entry['handles']}",
            f"- Test: {_links(settled[number]) or 'none, for this is ' + entry['untested']}",
        ]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def link_numbers(text: str) -> str:
    """``text`` for a page in docs, where each number such as EQ-27 leads to its entry."""
    headings = _headings()
    return re.sub(
        r"\b(?:EQ|ER)-\d{2,3}\b",
        lambda found: f"[{found[0]}]({headings[found[0]]})",
        text,
    )


@functools.cache
def _headings() -> dict[str, str]:
    """For each number the page and anchor of its entry, as GitHub forms it."""
    equations = read_table("equations.toml", "EQ", EQUATION_COUNT)
    errata = read_table("errata.toml", "ER", ERRATUM_COUNT)
    titles = {f"EQ-{number:02}": entry["title"] for number, entry in equations.items()}
    for number, entry in errata.items():
        titles[f"ER-{number:02}"] = f"({entry['kind']}; {entry['source']})"
    pages = {"EQ": "EQUATIONS.md", "ER": "ERRATA.md"}
    return {
        number: f"{pages[number[:2]]}#{_anchor(f'{number} {title}')}"
        for number, title in titles.items()
    }


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _links(places: list[Place]) -> str:
    return ", ".join(dict.fromkeys(place.link() for place in places))


def _listed(kind: str, which: set[int]) -> str:
    return ", ".join(f"{kind}-{number:02}" for number in sorted(which)) or "none"


def pages() -> dict[Path, str]:
    """Both pages, by where they belong."""
    docs = ROOT / "docs"
    return {docs / "EQUATIONS.md": equations_page(), docs / "ERRATA.md": errata_page()}


def main() -> int:
    """Write the pages or check them; the exit code."""
    stale = 0
    for page, text in pages().items():
        if "--check" in sys.argv[1:]:
            fresh = page.is_file() and page.read_text(encoding="utf-8") == text
            stale += not fresh
            print(f"{page.name} is {'up to date' if fresh else 'stale'}")
        else:
            page.write_text(text, encoding="utf-8")
            print(f"wrote {page.relative_to(ROOT)}")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
