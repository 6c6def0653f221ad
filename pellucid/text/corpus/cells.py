"""Cells of a table as lines of text, and the columns that are source and target."""

import functools
import json
import logging
from collections.abc import Sequence
from typing import Any

from pellucid.core.errors import DataError
from pellucid.text.corpus.addresses import Address

ONE_LINE = str.maketrans("\n\r", "  ")
"""For ``str.translate``: makes spaces of line ends, so that a text is one line."""

ONE_PAIR = "one pair of columns (source and target, or two languages)"
"""The columns that a table of pairs must have, for messages."""
_log = logging.getLogger("pellucid")


def _cell(value: Any, place: str) -> bytes:
    """A cell as a line."""
    if value is None:
        return b"\n"
    if isinstance(value, bytes):  # Parquet of programs that do not say which bytes are text
        try:
            value = value.decode()
        except UnicodeDecodeError:
            raise DataError(f"{place}: not UTF-8") from None
    if not isinstance(value, str):
        raise DataError(f"{place}: a cell must be text, got {str(value)[:60]!a}")
    try:
        return f"{value.translate(ONE_LINE)}\n".encode()
    except UnicodeEncodeError:
        raise DataError(f"{place}: a cell must not hold a lone surrogate") from None


def line_of_cells(cells: Sequence[Any], address: Address, number: int) -> bytes:
    """The one cell that is named, or source and target as a line of JSON."""
    place = f"{address.location}, row {number}"
    texts = [_cell(cell, place)[:-1].decode() for cell in cells]
    if len(texts) == 1:
        return f"{texts[0]}\n".encode()
    return json.dumps(dict(zip(("source", "target"), texts, strict=True))).encode() + b"\n"


def line_of_object(row: dict[str, Any], address: Address, number: int) -> bytes:
    """One row as a line."""
    place = f"{address.location}, row {number}"
    if not address.column:
        try:
            return json.dumps(row, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        except (TypeError, ValueError) as error:
            raise DataError(f"{place}: the cells must be text ({error})") from None

    # translation.de is the text "de" of the object "translation".
    value: Any = row
    for part in [address.column] if address.column in row else address.column.split("."):
        if not isinstance(value, dict) or part not in value:
            known = ", ".join(map(str, list(value)[:20])) if isinstance(value, dict) else "none"
            raise DataError(f"{place}: there is no column {address.column}; there are: {known}")
        value = value[part]
    return _cell(value, place)


@functools.lru_cache(maxsize=256)
def say_once(level: int, message: str) -> None:
    """Log a message about an input; a corpus is read several times."""
    _log.log(level, "%s", message)


def say_pair(name: str, source: str, target: str) -> None:
    """Log once which columns of a table are source and target, unless they are called so."""
    if (source.casefold(), target.casefold()) != ("source", "target"):
        say_once(
            logging.INFO, f"{name}: the column {source!r} is the source, {target!r} the target"
        )
