"""Writes the two sides of a file that holds both into two files, of which ``check`` reads each."""

import contextlib
import itertools
from collections.abc import Generator
from pathlib import Path

from pellucid.core.errors import DataError
from pellucid.core.files import write_errors
from pellucid.text.config import PairFormat, file_format
from pellucid.text.corpus.addresses import plain_stem
from pellucid.text.corpus.lines import iterate_raw_lines
from pellucid.text.corpus.pairs import PairFiles, iterate_pairs, parse_tsv

HAS_TABS = (
    "its lines have tabs: name it .csv if the first line names the columns, or .tsv if each line is"
    " source, tab, target"
)
"""The hint for a table that is named as text."""


def has_tabs(path: Path) -> bool:
    """Whether the first line of a file has a tab. Raises as ``iterate_raw_lines`` does."""
    with contextlib.closing(iterate_raw_lines(path)) as lines:
        return b"\t" in next(lines, b"")


def write_sides(
    path: Path, folder: Path, given: PairFormat = "auto", most_pairs: int | None = None
) -> tuple[Path, Path]:
    """Write source and target of ``path``, or of its first ``most_pairs``, one pair a line, into
    two files in ``folder``. ``given`` is the format that the config names.

    Line n of both is row n of a table without its header, or line n of TSV or JSONL. Of TSV the
    bytes are kept, UTF-8 or not. Raises DataError for plain text and for what is no pair, and as
    ``iterate_pairs``; WriteError.
    """
    kind = file_format(str(path), given)
    if kind == "plain":
        raise DataError(
            f"{path} must hold both sides, as .tsv, .jsonl, .csv and .parquet do, or come with the"
            " file of the other side",
            hint=HAS_TABS if has_tabs(path) else f"pellucid check {path} TARGET",
        )

    stem = Path(plain_stem(str(path))).name.rpartition(".")[0] or path.name
    written = folder / f"{stem}.source", folder / f"{stem}.target"
    pairs = _tsv_pairs(path) if kind == "tsv" else _encoded_pairs(path, given)

    with (
        write_errors(folder),
        written[0].open("xb") as sources,
        written[1].open("xb") as targets,
        contextlib.closing(pairs),
    ):
        for source, target in itertools.islice(pairs, most_pairs):
            sources.write(source + b"\n")
            targets.write(target + b"\n")

    return written


def _encoded_pairs(path: Path, given: PairFormat) -> Generator[tuple[bytes, bytes], None, None]:
    with contextlib.closing(iterate_pairs(PairFiles((path,), format=given))) as pairs:
        for source, target in pairs:
            yield source.encode(), target.encode()


def _tsv_pairs(path: Path) -> Generator[tuple[bytes, bytes], None, None]:
    with contextlib.closing(iterate_raw_lines(path)) as lines:
        for number, line in zip(itertools.count(1), lines):
            columns = line.split(b"\t") if line.strip() else [b"", b""]
            if number == 1 or len(columns) != 2:
                # For its refusals: of a header, and of other numbers of columns.
                parse_tsv(line.decode("utf-8", "replace"), str(path), number)
            yield columns[0], columns[1]
