"""The code's evidence on the equations: who implements a number, who runs it, who tests it.

Everything is found by reading, without running: docstrings declare numbers in their line ``EQ:``,
tests name them as ``EQ-27``, and ``equation_ties`` knows who calls what.
"""

import ast
import functools
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kinds_of_tests import Kind, kinds

ROOT = Path(__file__).resolve().parents[1]
EQUATION_COUNT, ERRATUM_COUNT = 139, 82

_DECLARED = re.compile(r"\bEQ: (\d{2,3}\b(?:, \d{2,3}\b)*)")


@dataclass(frozen=True)
class Place:
    """Something with a docstring."""

    name: str
    path: str
    """Relative to the repository."""
    docstring: str
    first_line: int = 1
    last_line: int = 1

    @property
    def area(self) -> str:
        """The part of the package it stands in."""
        return self.path.split("/")[1].removesuffix(".py")

    @property
    def module_name(self) -> str:
        """``module.name``, as ``find_ties`` has it."""
        return f"{self.path.removesuffix('.py').replace('/', '.')}.{self.name}"

    def link(self, root: str = "../") -> str:
        """The name as a link to its lines; ``root`` leads from the page to the repository."""
        is_module = Path(self.path).stem == self.name and self.first_line == self.last_line == 1
        lines = "" if is_module else f"#L{self.first_line}-L{self.last_line}"
        return f"[`{self.name}`]({root}{self.path}{lines})"


@dataclass
class Evidence:
    """The evidence on one equation."""

    functions: list[Place] = field(default_factory=list)
    twins: list[Place] = field(default_factory=list)
    users: list[Place] = field(default_factory=list)
    tests: list[Place] = field(default_factory=list)


@functools.cache
def parse(path: Path) -> ast.Module:
    """The syntax of a file."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def documented(path: Path) -> Iterator[Place]:
    """Everything in a file that has a docstring: itself, classes, functions, constants, fields."""
    tree = parse(path)
    name = path.relative_to(ROOT).as_posix()
    module = path.parent.name if path.stem == "__init__" else path.stem
    yield Place(module, name, ast.get_docstring(tree) or "")
    yield from _inside(tree, "", name)


def _inside(node: ast.Module | ast.ClassDef, prefix: str, path: str) -> Iterator[Place]:
    previous: ast.stmt | None = None
    for child in node.body:
        match child:
            case ast.ClassDef() | ast.FunctionDef():
                lines = child.lineno, child.end_lineno or child.lineno
                yield Place(prefix + child.name, path, ast.get_docstring(child) or "", *lines)
                if isinstance(child, ast.ClassDef):
                    yield from _inside(child, f"{prefix}{child.name}.", path)
            case ast.Expr(value=ast.Constant(value=str(text))):
                lines = child.lineno, child.end_lineno or child.lineno
                match previous:
                    case ast.AnnAssign(target=ast.Name(id=name)):
                        yield Place(prefix + name, path, text, *lines)
                    case ast.Assign(targets=[ast.Name(id=name)]):
                        yield Place(prefix + name, path, text, *lines)
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


@functools.cache
def package() -> list[Place]:
    """Everything documented in pellucid."""
    return [each for path in _naming("EQ", "pellucid", "*.py") for each in documented(path)]


def _naming(what: str, folder: str, pattern: str) -> list[Path]:
    """The files that name it at all: most do not, and need not be parsed."""
    paths = sorted((ROOT / folder).rglob(pattern))
    return [path for path in paths if what in path.read_text(encoding="utf-8")]


@functools.cache
def tests() -> list[Place]:
    """Every test in the files that name a number or call a function of equations."""
    paths = _naming("EQ", "tests", "test_*.py") + _naming("ER-", "tests", "test_*.py")
    paths += _naming("pellucid.equations", "tests", "test_*.py")
    return [
        each
        for path in dict.fromkeys(paths)
        for each in documented(path)
        if each.name.rpartition(".")[2].startswith("test_")
    ]


def evidence() -> dict[int, Evidence]:
    """For each equation: its functions, fast twins, the parts that use it, and its tests."""
    found = {number: Evidence() for number in range(1, EQUATION_COUNT + 1)}
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
    for test in tests():
        for number in numbers("EQ", test.docstring) | declared(test.docstring):
            _entry(found, number, test).tests.append(test)
    return found


def _entry(found: dict[int, Evidence], number: int, place: Place) -> Evidence:
    if number not in found:
        raise ValueError(f"{place.path}: {place.name} names EQ-{number}, which does not exist")
    return found[number]


def kind_of(test: Place) -> Kind:
    """Return the kind of comparison of a test; a module named as a whole tells nothing."""
    return _kinds(ROOT / test.path).get(test.name.rpartition(".")[2], Kind(False, ()))


@functools.cache
def _kinds(path: Path) -> dict[str, Kind]:
    return kinds(path)


def read_table(name: str, kind: str, count: int) -> dict[int, dict[str, Any]]:
    """The facts of a TOML file, by number; refuses one that is not complete."""
    content: dict[str, Any] = tomllib.loads((ROOT / "docs" / name).read_text(encoding="utf-8"))
    table = {int(number): entry for number, entry in content[kind].items()}
    if sorted(table) != list(range(1, count + 1)):
        raise ValueError(f"docs/{name} must have {kind}-01 to {kind}-{count}, each once")
    return table
