"""Test sets from files: sources, and for each all translations that are accepted."""

from collections.abc import Sequence
from pathlib import Path

from pellucid.core.errors import DataError
from pellucid.evaluation.metrics import check_lines
from pellucid.text.config import file_format
from pellucid.text.corpus.lines import read_lines


def read_test_set(
    source: Path, references: Sequence[Path] = ()
) -> tuple[list[str], list[list[str]]]:
    """The sources, and beside each all that is accepted as its translation.

    Every file of ``references`` holds one accepted translation a line. Without any, ``source`` is
    TSV: the source, and behind tabs whatever is accepted.

    Raises DataError if the line counts differ or a line accepts nothing, and as ``read_lines``.
    """
    if not references:
        return _read_table(source)
    sources = read_lines(source)
    columns = [read_lines(path) for path in references]
    check_lines({"sources": sources, **_named(columns)})
    return sources, [list(line) for line in zip(*columns, strict=True)]


def _read_table(path: Path) -> tuple[list[str], list[list[str]]]:
    if file_format(path.name) != "tsv":
        raise DataError(
            f"{path} must come with a file of references, or be a .tsv file that holds them",
            hint="each line of it: source, tab, reference, and further references behind tabs",
        )
    rows = [line.split("\t") for line in read_lines(path)]
    bare = [number for number, row in enumerate(rows, start=1) if len(row) == 1]
    if bare:
        raise DataError(
            f"{path}: a line must be source, tab, reference (and more behind tabs);"
            f" {len(bare)} of {len(rows)} have no tab, the first is line {bare[0]}"
        )
    return [row[0] for row in rows], [row[1:] for row in rows]


def _named(columns: Sequence[Sequence[str]]) -> dict[str, Sequence[str]]:
    if len(columns) == 1:
        return {"references": columns[0]}
    return {f"references {number}": column for number, column in enumerate(columns, start=1)}
