"""The building blocks of a walk: pages, steps and symbols, and the labels of words.

A page shows one part of the model in steps. A step is a formula whose symbols are bound to the
matrices of the report, with the arithmetic that gives one value of its result.
"""

import dataclasses
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

from pellucid.core.special import EOS_ID
from pellucid.inspection.parts import Part
from pellucid.inspection.report.mathml import Node, bound, row
from pellucid.inspection.sentence import STOP_MARK, Prediction
from pellucid.text.scripts import SPACELESS_LETTER

HEAD = "{head}"
"""Placeholder for the number of the selected head, in names and formulas."""


@dataclasses.dataclass(frozen=True)
class Symbol:
    """A symbol of a formula and what it stands for in this step."""

    key: str
    """The key that binds it in the formula; unique within the step."""
    letter: Node
    meaning: str
    matrix: str | None = None
    """The name of its matrix in the report."""
    value: str | None = None
    """The value, if it is not a matrix."""


@dataclasses.dataclass(frozen=True)
class Step:
    """One formula, from its input matrices to its result."""

    name: str
    """The name, unique within the page."""
    title: str
    equations: tuple[int, ...]
    """Numbers in docs/EQUATIONS.md."""
    formula: Node
    meaning: str
    symbols: tuple[Symbol, ...]
    """The last one is the result."""
    how: dict[str, Any]
    """How one value of the result is computed from the others; see ui/arithmetic.js."""


PageKind = Literal[
    "embedding",
    "self-attention",
    "cross-attention",
    "feed-forward",
    "ssru",
    "recurrent",
    "described",
    "norm",
    "output",
]
"""How the picture of the model draws a page; see ui/plan.js. ``described`` is any other kind."""


@dataclasses.dataclass(frozen=True)
class Page:
    """One part of the model: an embedding, a sublayer or the output layer."""

    name: str
    """The name as in a capture: ``encoder.layers.0.feed_forward``."""
    kind: PageKind
    title: str
    meaning: str
    steps: tuple[Step, ...]
    head_count: int = 0
    """0 for a part without heads."""
    heading: str = ""
    """The title of its column in the picture of the model; by default that of its kind."""


def step_of(
    part: Part,
    name: str,
    title: str,
    formula: Node,
    symbols: tuple[Symbol, ...],
    how: dict[str, Any],
    *explanations: str,
) -> Step:
    """The step that computes ``part``, with its equations and meaning, and further explanations."""
    # The table of parts comes first, so that a report says what the docs say.
    meaning = " ".join((part.meaning, *filter(None, explanations)))
    return Step(name, title, part.equations, formula, meaning, symbols, how)


def product_step(
    part: Part,
    name: str,
    title: str,
    result: Symbol,
    factors: tuple[Symbol, Symbol, Symbol | None],
    *explanations: str,
) -> Step:
    """The step of a linear map.

    ``factors`` are the hidden states, the learned matrix, and the bias, which may be None.
    """
    rows, weight, bias = factors
    right: list[Node | str] = [use(rows), use(weight)]
    # What the page needs to redo one value: row of the left times column of the right.
    how = {"kind": "product", "left": rows.key, "right": weight.key}
    symbols: tuple[Symbol, ...] = (rows, weight, result)
    if bias is not None:
        right += ["+", use(bias)]
        how["bias"] = bias.key
        symbols = (rows, weight, bias, result)
    return step_of(part, name, title, formula_of(result, *right), symbols, how, *explanations)


def formula_of(result: Symbol, *right: Node | str) -> Node:
    """``result = ...``, with the result bound to its matrix."""
    return row(bound(result.key, result.letter), "=", *right)


def use(symbol: Symbol) -> Node:
    """The symbol inside a formula, bound to its matrix."""
    return bound(symbol.key, symbol.letter)


_SPACE = "▁"
"""SentencePiece's mark for a space."""


_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
"""A token that stands for one byte of UTF-8."""


def label_words(tokens: Sequence[str], label: Callable[[str], str] | None = None) -> list[str]:
    """Short labels of the tokens of a text, each by ``label``, or as ``labeler`` labels them.

    Bytes that spell a character together are labeled with it: ``<0xC3>``, ``<0xA9>`` become
    ``é 1/2`` and ``é 2/2``.
    """
    labels = list(map(label or labeler(tokens), tokens))
    for first, size, character in _characters_of_bytes(tokens):
        parts = range(1, size + 1)
        labels[first : first + size] = [f"{character} {part}/{size}" for part in parts]
    return labels


def labeler(tokens: Sequence[str]) -> Callable[[str], str]:
    """The function that labels a single token among these.

    ``▁see`` becomes ``see``, a piece inside a word ``-ing``, and the byte of a character of ASCII
    that character. Tokens of a tokenizer without marks for spaces are not changed, nor are those
    of a script without spaces.
    """
    # Word tokenizers mark no spaces: there every token is a word of its own.
    return _label if any(token.startswith(_SPACE) for token in tokens) else str


def step_label(read: str, written: str) -> str:
    """The label of a position that reads one token and predicts another, ``read ▸ written``.

    Letters of a script from right to left would put the words behind the arrow before it, so marks
    of direction go along: the label runs from left to right, each word by itself.
    """
    if any(unicodedata.bidirectional(each) in ("R", "AL") for each in read + written):
        return f"\u200e\u2068{read}\u2069 ▸ \u2068{written}\u2069"
    return f"{read} ▸ {written}"


def plain_prediction(word: Prediction, label: Callable[[str], str]) -> list[str | float | int]:
    """A candidate for the next token for JSON: its label, probability and id."""
    token = STOP_MARK if word.id == EOS_ID else label(word.token)
    return [token, word.probability, word.id]


def _label(token: str) -> str:
    if token.startswith(_SPACE):
        return token.removeprefix(_SPACE) or _SPACE
    byte = _BYTE.fullmatch(token)
    if byte and 0x20 < int(byte[1], 16) < 0x7F:
        return chr(int(byte[1], 16))
    # Special tokens such as <s> and [MASK] are no pieces of words.
    is_mark = token[:1] in ("<", "[") and token[-1:] in (">", "]")
    is_inside = token[:1].isalnum() and not SPACELESS_LETTER.match(token)
    return f"-{token}" if is_inside and not is_mark else token


def _characters_of_bytes(tokens: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Where tokens for bytes spell a character of several: the first, how many, the character."""
    found = [_BYTE.fullmatch(token) for token in tokens]
    for first, byte in enumerate(found):
        lead = int(byte[1], 16) if byte else 0
        size = 4 if lead >= 0xF0 else 3 if lead >= 0xE0 else 2 if lead >= 0xC0 else 1
        run = [each for each in found[first : first + size] if each]
        if size == 1 or len(run) < size:
            continue
        try:
            character = bytes(int(each[1], 16) for each in run).decode("utf-8")
        except UnicodeDecodeError:
            continue
        yield first, size, character
