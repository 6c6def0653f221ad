"""The parts of a worked example, and the way it is printed."""

import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from book.examples.names import LINES, ExampleName

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
    """A remark on the numbers, and on errors of the text."""


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
    rows: Sequence[Sequence[Cell]] | Tensor,
    columns: Sequence[str] = (),
    *,
    labels: Sequence[str] = (),
    digits: int = 4,
) -> Table:
    """A step: rows of numbers, with a word before each row if there are ``labels``."""
    cells: Sequence[Sequence[Cell]] = rows.tolist() if isinstance(rows, Tensor) else rows
    if labels:
        cells = [(label, *row) for label, row in zip(labels, cells, strict=True)]
    heads = ("", *columns) if labels and columns else tuple(columns)
    return Table(title, tuple(tuple(row) for row in cells), heads, digits)


def matrix(*rows: Sequence[float]) -> Tensor:
    """Rows of numbers in float64."""
    return torch.tensor(rows, dtype=torch.float64)


def numbered(count: int, name: str) -> list[str]:
    """Labels such as ``key 0``, ``key 1``, ..."""
    return [f"{name} {index}" for index in range(count)]
