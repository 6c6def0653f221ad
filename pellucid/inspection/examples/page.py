"""The names of the worked examples, what one consists of, and how it is printed.

Imports no torch, so that a list of the examples is fast.
"""

import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from pellucid.core.config import did_you_mean
from pellucid.core.errors import ConfigError

ExampleName = Literal[
    "tokenization",
    "subwords",
    "bert-tokenizer",
    "vocabulary",
    "skip-gram",
    "embedding",
    "positional-encoding",
    "wavelengths",
    "softmax",
    "softmax-scale",
    "softmax-jacobian",
    "attention",
    "why-divide",
    "two-words",
    "nine-words",
    "exp-cosine",
    "masked-softmax",
    "masked-attention",
    "parameters",
    "layer-norm",
    "feed-forward",
    "right-shift",
    "teacher-forcing",
    "cross-entropy",
    "learning-rate",
    "inference",
    "re-predicting",
    "beam-search",
]
EXAMPLE_NAMES: tuple[ExampleName, ...] = get_args(ExampleName)

LINES: dict[ExampleName, str] = {
    "tokenization": "one sentence split in four ways",
    "subwords": "a rare word in known pieces",
    "bert-tokenizer": "longest match first, and a vocabulary that cannot be",
    "vocabulary": "tokens to ids, and what becomes UNK",
    "skip-gram": "the pairs that word vectors learn from",
    "embedding": "one-hot rows times a matrix, times √d_model",
    "positional-encoding": "sines and cosines of the first positions",
    "wavelengths": "how long the waves of the encoding are",
    "softmax": "(1, 0, 0), (10, 0, 0) and (a, a, a)",
    "softmax-scale": "(1, 2) and ten times (1, 2)",
    "softmax-jacobian": "how large gradients saturate away, and 1/√dₖ",
    "attention": "two queries, three keys: scores, weights, output",
    "why-divide": "the variance of q · k is dₖ",
    "two-words": "attention in columns, one head, two words",
    "nine-words": "the quick brown fox and what it attends to",
    "exp-cosine": "where exp cos θ is larger than |cos θ|",
    "masked-softmax": "a 4 × 4 example whose printed result is wrong",
    "masked-attention": "no query attends to a later key",
    "parameters": "head sizes and parameters of the base model",
    "layer-norm": "(1, 2, 3, 4) normalized in three ways",
    "feed-forward": "one row through ReLU and two matrices",
    "right-shift": "what the decoder reads and what it must predict",
    "teacher-forcing": "the table of “I live in Paris”",
    "cross-entropy": "the loss of two words, and smoothed labels",
    "learning-rate": "the schedule of the paper at eight steps",
    "inference": "the table of predictions that are fed back",
    "re-predicting": "“he” becomes “i am a good student”",
    "beam-search": "greedy search finds .24 where .36 can be found",
}
"""The examples in the order of the paper, each with a line."""

WIDTH = 80
"""Columns of a terminal that an example fits into."""

Cell = str | float


@dataclass(frozen=True)
class Table:
    """One step of an example."""

    title: str
    rows: tuple[tuple[Cell, ...], ...]
    columns: tuple[str, ...] = ()
    digits: int = 4
    """Decimals of the numbers that are no whole ones."""


@dataclass(frozen=True)
class Example:
    """A worked example: what a text says, and what the functions of Pellucid compute."""

    name: ExampleName
    source: str
    entries: str
    """The numbers of its entries in docs/EQUATIONS.md and docs/ERRATA.md."""
    says: str
    formula: tuple[str, ...]
    tables: tuple[Table, ...]
    note: str = ""
    """What the numbers show, and where the text is wrong."""


def check_name(name: str) -> ExampleName:
    """``name`` itself. Raises ConfigError if there is no such example."""
    for known in EXAMPLE_NAMES:
        if known == name:
            return known
    meant = did_you_mean(name, EXAMPLE_NAMES, " ({})")
    raise ConfigError(
        f"there is no example {name!r}{meant}", hint="pellucid examples lists all of them"
    )


def list_examples() -> str:
    """All names, each with its description."""
    width = max(map(len, EXAMPLE_NAMES))
    return "\n".join(f"{name:{width}}  {LINES[name]}" for name in EXAMPLE_NAMES)


def print_example(example: Example) -> str:
    """The example as text of at most ``WIDTH`` columns."""
    return "\n".join(_lines(example))


def _lines(example: Example) -> Iterator[str]:
    yield f"{example.name}: {LINES[example.name]}"
    yield from _wrapped(example.source, "  ")
    yield from _wrapped(example.entries, "  ")
    yield ""
    yield from _wrapped(example.says)
    yield ""
    yield from (f"    {line}" for line in example.formula)
    for table in example.tables:
        yield ""
        yield from _wrapped(table.title)
        yield from _table(table)
    if example.note:
        yield ""
        yield from _wrapped(example.note)


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent)


def _table(table: Table) -> Iterator[str]:
    """The rows as lines: numbers are aligned to the right, words to the left."""
    columns = [_column(cells, table.digits) for cells in zip(*table.rows, strict=True)]
    if table.columns:
        columns = [[head, *texts] for head, texts in zip(table.columns, columns, strict=True)]

    widths = [max(map(len, texts)) for texts in columns]
    is_number = [
        not any(isinstance(cell, str) for cell in cells) for cells in zip(*table.rows, strict=True)
    ]

    for row in zip(*columns, strict=True):
        cells = [
            f"{text:>{width}}" if number else f"{text:{width}}"
            for text, width, number in zip(row, widths, is_number, strict=True)
        ]
        yield f"    {'  '.join(cells)}".rstrip()


def _column(cells: Sequence[Cell], digits: int) -> list[str]:
    """The cells of a column as text, in powers of ten if the digits would all be zero."""
    numbers = [abs(cell) for cell in cells if isinstance(cell, float) and cell]
    form = ".3e" if numbers and max(numbers) < 10.0**-digits else f",.{digits}f"
    return [_text(cell, form) for cell in cells]


def _text(cell: Cell, form: str) -> str:
    if isinstance(cell, str):
        return cell
    if math.isinf(cell):
        return "-∞" if cell < 0 else "∞"
    if isinstance(cell, int):
        return f"{cell:,}"

    text = f"{cell or 0.0:{form}}"
    return text if text.strip("-0.") else text.removeprefix("-")  # no -0.00


def table(
    title: str,
    rows: Sequence[Sequence[Cell]],
    columns: Sequence[str] = (),
    *,
    labels: Sequence[str] = (),
    digits: int = 4,
) -> Table:
    """A step: rows of numbers, with a word before each row if there are ``labels``."""
    labelled = [(label, *row) for label, row in zip(labels, rows, strict=True)] if labels else rows
    heads = ("", *columns) if labels and columns else tuple(columns)
    return Table(title, tuple(tuple(row) for row in labelled), heads, digits)
