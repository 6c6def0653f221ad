"""Formulas as trees of MathML Core, which browsers typeset themselves.

A node is a string or a list ``[tag, attributes, *children]`` and is stored in the report as JSON.
The page builds elements from it and never parses text as markup. A string child becomes a number,
an operator or a name, depending on its characters.
"""

import re
from typing import Any

Node = list[Any]

TRANSPOSE: Node = ["mi", {"mathvariant": "normal"}, "⊤"]

_OPERATORS = frozenset("=+−·×,()[]{}|/∈→↦⋅Σ√:;~∞≤≥…")


def leaf(text: str) -> Node:
    """A number, an operator or a name, by its characters."""
    if text in _OPERATORS:
        return ["mo", {}, text]
    # Before the test for one letter: a digit is a number, which MathML sets upright.
    if text.replace(".", "").isdigit():
        return ["mn", {}, text]
    if len(text) == 1:
        return ["mi", {}, text]
    return ["mi", {"mathvariant": "normal"}, text]


def node(part: Node | str) -> Node:
    """``part`` itself, or the leaf that a string stands for."""
    return leaf(part) if isinstance(part, str) else part


def row(*parts: Node | str) -> Node:
    """Parts side by side."""
    return ["mrow", {}, *map(node, parts)]


def sub(base: Node | str, index: Node | str) -> Node:
    """A base with an index."""
    return ["msub", {}, node(base), node(index)]


def sup(base: Node | str, exponent: Node | str) -> Node:
    """A base with an exponent."""
    return ["msup", {}, node(base), node(exponent)]


def subsup(base: Node | str, index: Node | str, exponent: Node | str) -> Node:
    """A base with an index and an exponent."""
    return ["msubsup", {}, node(base), node(index), node(exponent)]


def fraction(over: Node | str, under: Node | str) -> Node:
    """A fraction."""
    return ["mfrac", {}, node(over), node(under)]


def root(inside: Node | str) -> Node:
    """A square root."""
    return ["msqrt", {}, node(inside)]


def words(text: str) -> Node:
    """Plain words inside a formula."""
    # a browser drops ordinary spaces at both ends
    return ["mtext", {}, re.sub(r"^ +| +$", lambda found: "\u00a0" * len(found[0]), text)]


def call(function: str, *arguments: Node | str) -> Node:
    """A function of its arguments."""
    inside: list[Node | str] = []
    for argument in arguments:
        inside += [argument] if not inside else [",", argument]
    return row(leaf(function), "(", *inside, ")")


def transposed(base: Node | str) -> Node:
    """A matrix, transposed."""
    return sup(base, TRANSPOSE)


def bound(key: str, part: Node | str) -> Node:
    """A part that the page connects with the symbol ``key`` of its step, and so with a matrix."""
    return ["mrow", {"data-symbol": key}, node(part)]
