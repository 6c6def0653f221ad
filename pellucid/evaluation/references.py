"""References that are blank: which lines of a test set can be scored, and against what."""

import logging
from collections.abc import Sequence

from pellucid.core.errors import DataError
from pellucid.core.texts import counted
from pellucid.text.normalization import normalize

_log = logging.getLogger("pellucid")


def with_references(
    sources: Sequence[str], references: Sequence[Sequence[str]]
) -> tuple[list[list[str]], list[int]]:
    """The accepted references of each line, without blank ones, and the rows that can be scored.

    A blank reference says that there is none, unless the source is blank as well. Of several the
    others remain; a line with none but blank ones keeps the first and can not be scored: any words
    of its translation would count as wrong. Warns of such lines, as test sets have a reference
    for each line.

    Raises DataError if no line can be scored.
    """
    filled = [
        [each for each in line if has_text(each) or not has_text(source)] or list(line[:1])
        for source, line in zip(sources, references, strict=True)
    ]
    rows = [
        row
        for row, (source, line) in enumerate(zip(sources, filled, strict=True))
        if has_text(line[0]) or not has_text(source)
    ]
    warn_of_unscored(rows, len(sources))
    if not any(has_text(sources[row]) for row in rows):
        raise DataError(
            f"no line with a source has a reference, got {counted(len(sources), 'line')}",
            hint="is the file of references the right one?",
        )
    return filled, rows


def has_text(line: str) -> bool:
    """Whether anything is left of the line once it is normalized."""
    return bool(line.strip()) and bool(normalize(line))


def warn_of_unscored(rows: Sequence[int], line_count: int) -> None:
    """Log how many lines are not among the ``rows`` that are scored."""
    missing = sorted({*range(line_count)} - {*rows})
    if missing:
        _log.warning(
            "%s of %s have no reference and are left out of the scores, the first is line %d",
            f"{len(missing):,}",
            counted(line_count, "line"),
            missing[0] + 1,
        )
