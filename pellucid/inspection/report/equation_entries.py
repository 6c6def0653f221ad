"""The entry of an EQ number of a page: its function, formula, one sentence, and source.

Read from the text of ``pellucid/equations``, which is where the formulas live: a docstring begins
with a sentence, shows the formula indented, and names its numbers and sources after it.
"""

import ast
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


def entries_of_pages(pages: Iterable[Page]) -> dict[int, dict[str, Any]]:
    """The entries of all equations that the steps of ``pages`` name, ready for JSON.

    Each has the full name of its ``function``, its ``formula`` as the docstring writes it, which
    may be empty, what it ``says``, and its ``source``. A number without a function of its own is
    left out.
    """
    numbers = {number for page in pages for step in page.steps for number in step.equations}
    known = equation_entries()
    return {number: known[number] for number in sorted(numbers) if number in known}


@functools.cache
def equation_entries() -> dict[int, dict[str, Any]]:
    """The entry of every equation that has a function of its own, by its number."""
    found: dict[int, dict[str, Any]] = {}
    ranks: dict[int, tuple[bool, bool, bool, int]] = {}
    for numbers, entry in _read_functions():
        for number in numbers:
            # of several functions the plainest: not another notation, and with the fewest numbers
            rank = (
                not entry["function"].endswith(f".{_CHOSEN.get(number, '')}"),
                entry["formula"] == "",
                ".notation." in entry["function"],
                len(numbers),
            )
            if number not in found or rank < ranks[number]:
                found[number], ranks[number] = entry, rank
    return found


_CHOSEN = {
    93: "layer_norm",
    113: "softmax",
    119: "kl_divergence",
    134: "concatenate_directions",
    136: "attentional_state",
}
"""The functions of numbers that several functions name, where the plainest is not the one meant."""


def _read_functions() -> Iterator[tuple[list[int], dict[str, Any]]]:
    """The numbers and the entry of each function of ``pellucid.equations`` that has numbers."""
    root = importlib.resources.files("pellucid.equations")
    for name, file in _modules(root, "pellucid.equations"):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
                continue
            text = ast.get_docstring(node) or ""
            if (stated := _NUMBERS.search(text)) is not None:
                numbers = [int(each) for each in re.findall(r"\d+", stated[1])]
                yield numbers, _entry(f"{name}.{node.name}", text)


def _modules(folder: Traversable, name: str) -> Iterator[tuple[str, Traversable]]:
    for file in sorted(folder.iterdir(), key=lambda each: each.name):
        # A fused twin computes what another function says.
        if file.is_dir() and file.name not in ("__pycache__", "fused"):
            yield from _modules(file, f"{name}.{file.name}")
        elif file.name.endswith(".py") and file.name != "__init__.py":
            yield f"{name}.{file.name.removesuffix('.py')}", file


def _entry(function: str, docstring: str) -> dict[str, Any]:
    first, *rest = docstring.split("\n\n")
    # the formula is the first indented paragraph
    formula = next((textwrap.dedent(each) for each in rest if each.startswith("    ")), "")
    source = _SOURCE.search(docstring)
    return {
        "function": function,
        "formula": formula.rstrip(),
        "says": _plain(first),
        "source": _plain(source[1]) if source else "",
    }


def _plain(text: str) -> str:
    return " ".join(text.replace("``", "").split())
