"""Texts as a caller gives them: lists, arrays, columns of tables; and counts in messages.

The packages of arrays and tables are not imported here.
"""

import codecs
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from pellucid.core.errors import DataError

TO_UTF_8 = (
    "convert the file from its encoding, for example: iconv -f WINDOWS-1252 -t UTF-8 (Russian may"
    " be in CP1251 or KOI8-R, Japanese in SHIFT_JIS, Chinese in GB18030)"
)
"""The hint for text that is not UTF-8, whichever encoding it is in."""


def counted(count: int, noun: str) -> str:
    """``1 token``, ``2,000 tokens``: a count with its noun, which takes an s."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def words_in(text: str) -> frozenset[str]:
    """The words of a text as a set: a long list of names in a few lines."""
    return frozenset(text.split())


def codec_of(encoding: str) -> str:
    """The name that Python has for an encoding; empty for one that it does not know."""
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        return ""


def lines_of(texts: object, what: str = "texts") -> list[str]:
    """The texts as a list of strings. Raises as ``texts_among`` and ``check_texts`` do."""
    lines = list(texts_among(texts, what))
    check_texts(lines, 1)
    return lines


def check_texts(texts: Sequence[object], first_line: int) -> None:
    """Raise DataError, with the number of the line, unless every text is a string."""
    for number, text in enumerate(texts, start=first_line):
        if not isinstance(text, str):
            raise DataError(
                f"line {number} must be a string, got {type(text).__name__}",
                hint="an empty cell is no text: fill it, for example series.fillna('')"
                if _is_missing(text)
                else "",
            )


def _is_missing(cell: object) -> bool:
    """Whether a cell of a table is empty: None, NaN, which alone differs from itself, or what
    pandas has for it, whose ``!=`` is neither true nor false."""
    if isinstance(cell, float):
        return cell != cell
    return cell is None or type(cell).__name__ in ("NAType", "NaTType")


def texts_among(texts: object, what: str = "texts") -> Iterable[Any]:
    """The texts that a caller gave in a list, an array, a column of a table or any iterable.

    A column of pandas or NumPy is read as it is, one of Arrow as Python's values. Raises DataError
    for one string, and for what has no order or no single column of texts.
    """
    if isinstance(texts, str | bytes | bytearray):
        raise DataError(f"{what} must be a list of strings, got one {type(texts).__name__}")

    # Arrays of NumPy and tables of pandas have dimensions; neither package is imported here.
    dimensions = getattr(texts, "ndim", 1)
    if dimensions == 2 or hasattr(texts, "column_names"):
        raise DataError(
            f"{what} must be one column of strings, got a table ({type(texts).__name__})",
            hint="name the column, for example table['source']",
        )

    if (
        dimensions != 1
        or not isinstance(texts, Iterable)
        or isinstance(texts, Mapping | AbstractSet)
    ):
        raise DataError(
            f"{what} must be strings in a list or another sequence, got {type(texts).__name__}"
        )

    return texts.to_pylist() if hasattr(texts, "to_pylist") else texts
