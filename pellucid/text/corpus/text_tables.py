"""The rows of tables that are text: CSV, TSV and lines of JSON."""

import codecs
import csv
import io
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO

from pellucid.core.errors import DataError
from pellucid.core.limits import parse_json
from pellucid.core.texts import TO_UTF_8
from pellucid.text.corpus.addresses import Address
from pellucid.text.corpus.cells import ONE_PAIR, line_of_cells, line_of_object, say_once, say_pair
from pellucid.text.corpus.dialects import SAMPLE, csv_reader, dialect_of, pair_columns
from pellucid.text.corpus.unpacking import ReadBy

_LONGEST_ROW = 1 << 22
"""Characters of a line of CSV."""
_LONGEST_LINE = 1 << 24
"""Bytes of a line of JSON, as of any line of text (``pellucid.text.corpus.lines``)."""
_MOST_VALUES = 1_000_000
"""The limit on values in a line of JSON, as for pairs."""


def csv_rows(file: BinaryIO, address: Address) -> Iterator[bytes]:
    """The rows of CSV or TSV below their header, however they were written."""
    begin = _beginning(file)
    dialect = dialect_of(
        begin,
        address.location,
        is_whole=len(begin) < SAMPLE,
        delimiter="\t" if address.table == "tsv" else "",
        is_header=lambda names: bool(_columns(names, address)),
    )
    if dialect.encoding == "cp1252":
        say_once(
            logging.WARNING,
            f"{address.location} is not UTF-8 and is read as Windows-1252, for example"
            f" {_foreign_word(begin)}; if that is wrong, convert it: iconv -f ... -t UTF-8",
        )

    # A line of TSV ends at a line feed alone, as everywhere; csv itself looks after its line ends.
    newline = "\n" if address.table == "tsv" else ""
    read = io.BytesIO(begin[len(dialect.mark) :])
    whole = io.BufferedReader(ReadBy(lambda size: read.read(size) or file.read(size)))
    lines = io.TextIOWrapper(whole, encoding=dialect.encoding, newline=newline)
    bounded = _BoundedLines(lines, address)

    try:
        lines.read(len(dialect.first_line))  # sep=;
        rows = (
            _tsv_rows(bounded)
            if address.table == "tsv"
            else csv_reader(bounded, dialect.delimiter, strict=True)
        )
        header = next(rows, [])
        columns = _chosen_columns(header, address, dialect.delimiter)

        for number, row in enumerate(rows, start=1):
            bounded.taken = 0
            if not row:
                row = [""] * len(header)  # a blank line
            if len(row) != len(header):
                raise DataError(
                    f"{address.location}, row {number}: must have {len(header)} columns as the"
                    f" header has, got {len(row)}"
                )
            yield line_of_cells([row[column] for column in columns], address, number)

    except csv.Error as error:
        raise DataError(f"{address.location}, line {bounded.count}: {error}") from error
    except UnicodeError as error:
        reason = getattr(error, "reason", str(error))
        raise DataError(
            f"{address.location} is not {dialect.encoding.upper()} behind line {bounded.count}:"
            f" {reason}",
            hint=f"a file must be in one encoding; {TO_UTF_8}",
        ) from None


def _beginning(file: BinaryIO) -> bytes:
    begin = b""
    while len(begin) < SAMPLE and (more := file.read(SAMPLE - len(begin))):
        begin += more
    return begin


def _foreign_word(begin: bytes) -> str:
    """The first word of a text in Windows-1252 by which a reader sees whether it is that."""
    text = begin.decode("cp1252")
    words = re.findall(r"\w+", text) + text.split()  # in Mac Roman Äpfel is €pfel
    return next((word for word in words if not word.isascii()), "")[:40]


def _tsv_rows(lines: Iterable[str]) -> Iterator[list[str]]:
    """The rows of TSV like those of ``csv.reader``; a lone carriage return at its end is no part of
    a row.
    """
    for line in lines:
        line = line.removesuffix("\n").removesuffix("\r")
        yield line.split("\t") if line else []


class _BoundedLines:
    """The lines of a file; a row may have several, which together are bounded."""

    def __init__(self, lines: io.TextIOWrapper, address: Address) -> None:
        self._lines, self._address = lines, address
        self.taken = 0
        """Characters since the last row ended; whoever reads the rows sets it to 0."""
        self.count = 0
        """Lines so far."""

    def __iter__(self) -> Iterator[str]:
        while line := self._lines.readline(_LONGEST_ROW):
            self.taken += len(line)
            self.count += 1
            if self.taken >= _LONGEST_ROW:
                raise DataError(
                    f"{self._address.location}: a row must have less than {_LONGEST_ROW:,}"
                    " characters"
                )
            yield line


def _columns(names: Sequence[str], address: Address) -> tuple[int, ...]:
    """Positions of the column that is named, or of source and target; none if that is unclear."""
    plain = [name.strip() for name in names]
    if not address.column:
        return pair_columns(plain) or ()
    if plain.count(address.column) == 1:
        return (plain.index(address.column),)
    folded = [name.casefold() for name in plain]
    wanted = address.column.casefold()
    return (folded.index(wanted),) if folded.count(wanted) == 1 else ()


def _chosen_columns(names: Sequence[str], address: Address, delimiter: str) -> tuple[int, ...]:
    """Choose columns as ``_columns`` does, and log a choice that is a guess. Raises DataError where
    the names are unclear."""
    found = _columns(names, address)
    if not found:
        shown = ", ".join(name.strip()[:40] for name in names[:20])
        wanted = f"the column {address.column} once" if address.column else ONE_PAIR
        hint = "name a column as in pairs.csv#en"
        if not address.column and len(names) == 2:
            hint = (
                "if that is the first pair already, write source"
                f"{delimiter.replace(chr(9), '(tab)')}target on a line above it; or name columns as"
                " in pairs.csv#en"
            )
        raise DataError(
            f"{address.location} must have {wanted}, named in its first line, which has: {shown}",
            hint=hint,
        )

    if len(found) == 2:
        say_pair(address.location, *(names[column].strip() for column in found))
    return found


def json_rows(file: BinaryIO, address: Address) -> Iterator[bytes]:
    """The rows of lines of JSON, each of which is an object. Raises DataError."""
    number = 0
    while line := file.readline(_LONGEST_LINE + 1):
        number += 1
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        if len(line) > _LONGEST_LINE:
            raise DataError(
                f"{address.location}, line {number}: a line must have at most"
                f" {_LONGEST_LINE:,} bytes"
            )
        if not line.strip():
            yield b"\n"
            continue

        try:
            row = parse_json(line, _MOST_VALUES)
        except ValueError as error:
            raise DataError(f"{address.location}, line {number}: not JSON ({error})") from None
        if not isinstance(row, dict):
            raise DataError(f"{address.location}, line {number}: must be an object")
        yield line_of_object(row, address, number)
