"""What a walk is made of: pages of steps, each a formula whose symbols are bound to matrices."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from pellucid.core.special import STOP_ID
from pellucid.inspection.parts import Part
from pellucid.inspection.report.mathml import Node, bound, row
from pellucid.inspection.sentence import STOP_MARK, Prediction

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


_SPACE = "▁"
"""SentencePiece's mark for a space."""


def label_words(tokens: Sequence[str]) -> list[str]:
    """Tokens short and plain: ``▁see`` is ``see``, and a piece inside a word is ``-ing``.

    Tokens of a tokenizer that marks no spaces stay as they are.
    """
    return list(map(labeler(tokens), tokens))


def labeler(tokens: Sequence[str]) -> Callable[[str], str]:
    """How single tokens are written among these."""
    return _label if any(token.startswith(_SPACE) for token in tokens) else str


def plain_prediction(word: Prediction, label: Callable[[str], str]) -> list[str | float | int]:
    """A word that could come next, as JSON: how it is written, its probability, its id."""
    token = STOP_MARK if word.id == STOP_ID else label(word.token)
    return [token, word.probability, word.id]


def _label(token: str) -> str:
    if token.startswith(_SPACE):
        return token.removeprefix(_SPACE) or _SPACE
    is_mark = token[:1] in ("<", "[") and token[-1:] in (">", "]")
    return token if is_mark or not token[:1].isalnum() else f"-{token}"
