"""The entry of an EQ number of a page: its function, formula, one sentence, and source.

Read from the text of ``pellucid/equations``, which is where the formulas live: a docstring begins
with a sentence, shows the formula indented, and names its numbers and sources after it.
"""

import ast
import dataclasses
import functools
import importlib.resources
import re
import textwrap
from collections.abc import Iterable, Iterator
from importlib.resources.abc import Traversable
from typing import Any

from pellucid.inspection.report.steps import Page

_NUMBERS = re.compile(r"\bEQ: ([\d, ]+)\.")
_SOURCE = re.compile(r"\bSource: (.+?)\.?(?=\n *[A-Z][a-z]+: |\n\n|\Z)", re.DOTALL)


@dataclasses.dataclass(frozen=True)
class EquationEntry:
    """A function of ``pellucid.equations``."""

    function: str
    """The full name, such as ``pellucid.equations.attention.attention``."""
    formula: str
    """The formula as the docstring writes it; empty if it has none."""
    says: str
    source: str
    numbers: tuple[int, ...]


def entries_of_pages(pages: Iterable[Page]) -> dict[int, dict[str, Any]]:
    """The entries of all equations that the steps of ``pages`` name, ready for JSON."""
    return entries_of({n for page in pages for step in page.steps for n in step.equations})


def entries_of(numbers: Iterable[int]) -> dict[int, dict[str, Any]]:
    """The entries of these numbers; a number without a function of its own is left out."""
    known = _entries()
    return {number: known[number] for number in sorted(set(numbers)) if number in known}


@functools.cache
def _entries() -> dict[int, dict[str, Any]]:
    found: dict[int, EquationEntry] = {}
    for entry in _read_functions():
        for number in entry.numbers:
            # of several functions the plainest: not another notation, and with the fewest numbers
            if number not in found or _rank(entry, number) < _rank(found[number], number):
                found[number] = entry

    return {
        number: {
            "function": entry.function,
            "formula": entry.formula,
            "says": entry.says,
            "source": entry.source,
        }
        for number, entry in found.items()
    }


_CHOSEN = {
    93: "layer_norm",
    113: "softmax",
    119: "kl_divergence",
    134: "concatenate_directions",
    136: "attentional_state",
}
"""The functions of numbers that several functions name, where the plainest is not the one meant."""


def _rank(entry: EquationEntry, number: int) -> tuple[bool, bool, bool, int]:
    return (
        not entry.function.endswith(f".{_CHOSEN.get(number, '')}"),
        entry.formula == "",
        ".notation." in entry.function,
        len(entry.numbers),
    )


def _read_functions() -> Iterator[EquationEntry]:
    root = importlib.resources.files("pellucid.equations")
    for name, file in _modules(root, "pellucid.equations"):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
                continue
            text = ast.get_docstring(node) or ""
            if (stated := _NUMBERS.search(text)) is not None:
                numbers = tuple(int(each) for each in re.findall(r"\d+", stated[1]))
                yield _entry(f"{name}.{node.name}", text, numbers)


def _modules(folder: Traversable, name: str) -> Iterator[tuple[str, Traversable]]:
    for file in sorted(folder.iterdir(), key=lambda each: each.name):
        # A fused twin computes what another function says.
        if file.is_dir() and file.name not in ("__pycache__", "fused"):
            yield from _modules(file, f"{name}.{file.name}")
        elif file.name.endswith(".py") and file.name != "__init__.py":
            yield f"{name}.{file.name.removesuffix('.py')}", file


def _entry(function: str, docstring: str, numbers: tuple[int, ...]) -> EquationEntry:
    first, *rest = docstring.split("\n\n")
    # the formula is the first indented paragraph
    formula = next((textwrap.dedent(each) for each in rest if each.startswith("    ")), "")
    source = _SOURCE.search(docstring)
    return EquationEntry(
        function,
        formula.rstrip(),
        _plain(first),
        _plain(source[1]) if source else "",
        numbers,
    )


def _plain(text: str) -> str:
    return " ".join(text.replace("``", "").split())
