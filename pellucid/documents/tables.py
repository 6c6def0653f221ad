"""Columns of tables: CSV as spreadsheets write it, and TSV, in which quotes mean nothing."""

import csv
import io
import re
from collections.abc import Collection, Iterator, Sequence

from pellucid.core.errors import ConfigError, DataError
from pellucid.core.limits import shown
from pellucid.documents.guessed_text import GuessedText
from pellucid.documents.plain import TaggedText
from pellucid.documents.segments import Segment
from pellucid.text.corpus.dialects import SAMPLE, csv_reader, dialect_of

_MOST_CELLS = 2_000_000
_NUMBER = re.compile(r"[0-9]{1,9}")
_SHOWN_COLUMNS = 20
_FEWEST_WORDS = 5
"""Words in the place of a column's name that are rather a sentence."""
_RUN = re.compile(r"""[\s"]*[=+\-@\uff0b\uff0d\uff1d\uff20]|[\t\r]""")
"""The beginning of a cell that spreadsheets may run as a formula, also behind the quotes that a
program takes off, and in the full width of Chinese and Japanese. Source: OWASP, CSV Injection."""
_FORMULA = re.compile(r"=\S.*|[+\-@][A-Za-z.]+\(.*\)", re.DOTALL)
"""A cell that a spreadsheet computes, of which nothing is translated."""
_ESCAPES = re.compile(r"(?P<br>\\[ntr])|\\\\")
"""The escapes of TSV for a line end, a tab and a backslash."""
_PLAIN_NUMBER = re.compile(r"[+-]?[0-9][0-9.,' \u00a0\u202f]*%?")
"""Begins with a sign and is run by nothing."""


class TableDocument:
    """A table with a line of names at its top; the cells of some columns are translated.

    A row in which nothing changes is written as it was read; so are the quotes of other rows, as
    far as they are needed.
    """

    def __init__(
        self,
        data: bytes,
        what: str,
        columns: Sequence[str],
        *,
        is_tsv: bool,
        guard_cells: bool = False,
        language: str = "",
    ) -> None:
        """The delimiter of CSV and the encoding are found out, the latter also by the ``language``
        of the text. Raises DataError, ConfigError.

        With ``guard_cells`` every cell that a spreadsheet may run gets an apostrophe in front.
        """
        self._guards_cells = guard_cells
        self._file = GuessedText(data, what, language)
        self.notes = self._file.notes
        text = self._file.text
        self._dialect = dialect_of(
            text[:SAMPLE].encode(),
            what,
            is_whole=len(text) <= SAMPLE,
            delimiter="\t" if is_tsv else "",
            is_header=lambda names: bool(columns) and all(_places(each, names) for each in columns),
        )
        text = text[len(self._dialect.first_line) :]
        self._delimiter, self._is_tsv = self._dialect.delimiter, is_tsv
        self._rows, self._raw = (
            _read_lines(text, what) if is_tsv else _read_rows(text, self._delimiter, what)
        )
        self._cells: list[tuple[int, int, TaggedText]] = []
        self.segments: list[Segment] = []
        head = next((number for number, row in enumerate(self._rows) if row), None)
        if head is None:
            return

        names = self._rows[head]
        wanted = _chosen(columns, names, what)
        texts = [each for column in wanted if _is_sentence(each := names[column].strip())]
        if texts:
            self.notes.append(
                f"its first row is read as the names of its columns and stays: {shown(texts[0])}"
            )
        for number, row in enumerate(self._rows[head + 1 :], start=head + 1):
            for column in wanted:
                if column < len(row) and row[column].strip():
                    if _FORMULA.fullmatch(row[column]):
                        continue
                    cell = TaggedText(row[column], kept=_ESCAPES if is_tsv else None)
                    self._cells.append((number, column, cell))
                    self.segments.append(cell.segment)

    def write(self, translated: Sequence[Segment]) -> bytes:
        """The table with other cells."""
        changed: dict[int, set[int]] = {}
        """The columns that change, by row."""
        for (number, column, cell), before, after in zip(
            self._cells, self.segments, translated, strict=True
        ):
            if before != after:
                self._rows[number][column] = cell.text_with(after)
                changed.setdefault(number, set()).add(column)

        if self._guards_cells:
            for number, row in enumerate(self._rows):
                for column, value in enumerate(row):
                    if _RUN.match(value) and not _PLAIN_NUMBER.fullmatch(value):
                        row[column] = f"'{value}"
                        changed.setdefault(number, set()).add(column)

        written = []
        for number, raw in enumerate(self._raw):
            if number not in changed:
                written.append(raw)
                continue
            written.append(self._row_with(raw, self._rows[number], changed[number]))
        return self._file.encoded(self._dialect.first_line + "".join(written))

    def _row_with(self, raw: str, row: Sequence[str], columns: Collection[int]) -> str:
        """The source of a row with other cells in some columns; the others stay as written."""
        body = raw.rstrip("\r\n")
        if self._is_tsv:
            cells = body.split("\t")
            for column in columns:
                # In TSV nothing can hold a tab or a line end.
                cells[column] = re.sub(r"[\t\r\n]+", " ", row[column])
            return "\t".join(cells) + raw[len(body) :]

        cells = _cells_of(body, self._delimiter)
        if len(cells) != len(row):  # quotes within a cell without quotes, perhaps
            cells, columns = [""] * len(row), range(len(row))
        written = [
            _cell(value, self._delimiter, cell) if column in columns else cell
            for column, (cell, value) in enumerate(zip(cells, row, strict=True))
        ]
        return self._delimiter.join(written) + raw[len(body) :]


def _cells_of(row: str, delimiter: str) -> list[str]:
    """The cells of a row as they are written; a quote within quotes is doubled."""
    cells: list[str] = []
    at = 0
    while True:
        stop = at
        while row.startswith(" ", stop):
            stop += 1

        if row.startswith('"', stop):
            stop += 1
            while (stop := row.find('"', stop)) >= 0 and row.startswith('""', stop):
                stop += 2

        stop = row.find(delimiter, stop) if stop >= 0 else -1
        if stop < 0:
            return [*cells, row[at:]]
        cells.append(row[at:stop])
        at = stop + len(delimiter)


def _cell(value: str, delimiter: str, before: str) -> str:
    """A cell instead of another one: in quotes if that had them or it needs them."""
    blank = before[: len(before) - len(before.lstrip(" "))]
    is_quoted = before[len(blank) :].startswith('"')
    if is_quoted or any(mark in value for mark in (delimiter, '"', "\r", "\n")):
        return blank + '"' + value.replace('"', '""') + '"'
    return blank + value


def _read_lines(text: str, what: str) -> tuple[list[list[str]], list[str]]:
    """The rows of TSV, and the source of each."""
    raws = [line for line in re.split(r"(?<=\n)", text) if line]
    rows = [line.rstrip("\r\n").split("\t") if line.strip() else [] for line in raws]
    if (cells := sum(map(len, rows))) > _MOST_CELLS:
        raise DataError(f"{what} must have at most {_MOST_CELLS:,} cells, has {cells:,}")
    return rows, raws


def _read_rows(text: str, delimiter: str, what: str) -> tuple[list[list[str]], list[str]]:
    """The rows, and the source of each."""
    taken: list[str] = []

    def noting() -> Iterator[str]:
        for line in io.StringIO(text, newline=""):
            taken.append(line)
            yield line

    rows: list[list[str]] = []
    raws: list[str] = []
    cells = 0
    try:
        for row in csv_reader(noting(), delimiter, strict=True):
            rows.append(row)
            raws.append("".join(taken))
            taken.clear()
            cells += len(row)
            if cells > _MOST_CELLS:
                raise DataError(f"{what} must have at most {_MOST_CELLS:,} cells, has more")
    except csv.Error as error:
        raise DataError(f"{what} is not a table: row {len(rows) + 1}: {error}") from None
    return rows, raws


def _is_sentence(name: str) -> bool:
    """Whether what stands where a column has its name is rather a sentence."""
    words = len(name.split())
    is_ended = name.endswith(("。", "！", "？")) or (
        words > 2 and name.endswith((".", "!", "?", "…"))
    )
    return is_ended or words >= _FEWEST_WORDS


def _chosen(columns: Sequence[str], names: Sequence[str], what: str) -> list[int]:
    """The numbers of the columns to translate, from 0. Raises ConfigError."""
    known = ", ".join(repr(name) for name in names[:_SHOWN_COLUMNS])
    if not columns:
        raise ConfigError(
            f"columns must name those of {what} to translate, or their numbers from 1;"
            f" it has {known}",
            hint="--columns NAME,NAME",
        )

    chosen = []
    for column in columns:
        if places := _places(column, names):
            chosen += places
        elif _NUMBER.fullmatch(column) and 1 <= int(column) <= len(names):
            chosen.append(int(column) - 1)
        else:
            raise ConfigError(f"{what} has no column {column!r}; it has {known}")

    return list(dict.fromkeys(chosen))


def _places(column: str, names: Sequence[str]) -> list[int]:
    """The columns with a name, which may be several; spaces around it do not matter."""
    return [number for number, name in enumerate(names) if name.strip() == column.strip() != ""]
