"""What a walk is made of: pages of steps, each a formula whose symbols are bound to matrices."""

import dataclasses
from typing import Any

from pellucid.inspection.parts import Part
from pellucid.inspection.report.mathml import Node, bound, row

HEAD = "{head}"
"""Stands for the number of the head that is looked at, in names and in formulas."""


@dataclasses.dataclass(frozen=True)
class Symbol:
    """One letter of a formula and what it is at this step."""

    key: str
    """By this it is bound in the formula; unique within the step."""
    letter: Node
    meaning: str
    matrix: str | None = None
    """A matrix of the report."""
    value: str | None = None
    """What it is if it is not a matrix."""


@dataclasses.dataclass(frozen=True)
class Step:
    """One formula, from the matrices that enter to the one that comes out."""

    name: str
    """Unique within the page."""
    title: str
    equations: tuple[int, ...]
    """Numbers in docs/EQUATIONS.md."""
    formula: Node
    meaning: str
    symbols: tuple[Symbol, ...]
    """The last one is the result."""
    how: dict[str, Any]
    """How one number of the result follows from the others; see assets/arithmetic.js."""


@dataclasses.dataclass(frozen=True)
class Page:
    """One part of the model: an embedding, a sublayer, the last linear map."""

    name: str
    """As in the names of a capture: ``encoder.layers.0.self_attention``."""
    title: str
    meaning: str
    steps: tuple[Step, ...]
    head_count: int = 0
    """0 for a part without heads."""


def step_of(
    part: Part,
    name: str,
    title: str,
    formula: Node,
    symbols: tuple[Symbol, ...],
    how: dict[str, Any],
    *explanations: str,
) -> Step:
    """The step that computes ``part``: its equations and meaning, then what the report explains."""
    meaning = " ".join((part.meaning, *filter(None, explanations)))
    return Step(name, title, part.equations, formula, meaning, symbols, how)


def formula_of(result: Symbol, *right: Node | str) -> Node:
    """``result = …``, the result bound."""
    return row(bound(result.key, result.letter), "=", *right)


def use(symbol: Symbol) -> Node:
    """The symbol inside a formula."""
    return bound(symbol.key, symbol.letter)
