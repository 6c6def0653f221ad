"""Sentence pairs from files: two texts side by side, TSV or JSONL, plain or gzipped."""

import contextlib
import itertools
import re
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, assert_never

from pellucid.core.errors import DataError
from pellucid.core.limits import parse_json
from pellucid.text.check.alignment import are_unrelated, find_misalignment
from pellucid.text.check.scan import scan
from pellucid.text.config import DataConfig, PairFormat, file_format
from pellucid.text.corpus.cells import ONE_LINE, say_pair
from pellucid.text.corpus.dialects import pair_columns
from pellucid.text.corpus.lines import decode_lines, iterate_lines, open_lines
from pellucid.text.corpus.readers import refuse_pipe
from pellucid.text.normalization import check_text

_MOST_VALUES = 1_000_000
"""The limit on values in a line of JSON; more would take a hundred megabytes."""

_ADDRESS = re.compile(r"\s*(https?://|www\.)\S*\s*$", re.IGNORECASE)

Pairs = Generator[tuple[str, str], None, None]


@dataclass(frozen=True)
class PairFiles:
    """The files of a corpus; ``targets`` is empty if each source file contains both sides.

    With ``is_text`` they are plain text, and each line is both source and target.
    """

    sources: tuple[Path, ...]
    targets: tuple[Path, ...] = ()
    format: PairFormat = "auto"
    is_text: bool = False

    @property
    def all(self) -> tuple[Path, ...]:
        """Every file."""
        return self.sources + self.targets


@dataclass(frozen=True)
class TextPairs:
    """Sentence pairs in memory, neither side blank."""

    sources: list[str]
    targets: list[str]
    empty: int
    """Pairs dropped because a side was blank."""


def training_files(config: DataConfig) -> PairFiles:
    """The files to train on."""
    if config.text:
        return PairFiles(tuple(map(Path, config.text)), is_text=True)
    if config.both_directions:
        # all pairs as they are, and after them all pairs the other way round
        sides = config.source + config.target, config.target + config.source
        return _files(*sides, config.format)
    return _files(config.source, config.target, config.format)


def validation_files(config: DataConfig) -> PairFiles:
    """The files to validate on; none if the config names none."""
    if config.valid_text:
        return PairFiles(tuple(map(Path, config.valid_text)), is_text=True)
    return _files(config.valid_source, config.valid_target, config.format)


def read_pairs(files: PairFiles) -> TextPairs:
    """All pairs but the blank ones, which are counted. Raises as ``iterate_pairs`` does."""
    sources: list[str] = []
    targets: list[str] = []
    empty = 0

    for source, target in iterate_pairs(files):
        if is_blank_pair(source, target):
            empty += 1
        else:
            sources.append(source)
            targets.append(target)

    return TextPairs(sources, targets, empty)


def iterate_pairs(files: PairFiles) -> Pairs:
    """All pairs of all files in order, blank ones too, one at a time.

    A caller that stops early must call ``close()``, as on a file.

    Raises InputMissingError for a file that cannot be read, and DataError for one that is empty,
    is not UTF-8, has a line that is not a pair, or has another number of lines than its partner.
    """
    # A file of both sides has no target: the shorter tuple is filled up with None.
    for source, target in itertools.zip_longest(files.sources, files.targets):
        pairs = _iterate_file(files, source, target)
        is_empty = True

        with contextlib.closing(pairs):
            for pair in pairs:
                is_empty = False
                yield pair

        if is_empty:
            refuse_pipe(source)  # a pipe that was read before is empty
            raise DataError(f"{source} is empty", hint="a corpus needs at least one sentence pair")


def _iterate_file(files: PairFiles, source: Path, target: Path | None) -> Pairs:
    if files.is_text:
        return _iterate_columns(source, parse_text)
    match file_format(str(source), files.format):
        case "tsv":
            return _iterate_columns(source, parse_tsv)
        case "jsonl":
            return _iterate_jsonl(source)
        case "plain" | "auto":
            assert target is not None
            return _iterate_plain(source, target)
        case unknown:
            assert_never(unknown)


def is_blank_pair(source: str, target: str) -> bool:
    """True if a side is empty or white space, so that nothing can be learned from the pair."""
    return not source.strip() or not target.strip()


def _files(sources: tuple[str, ...], targets: tuple[str, ...], given: PairFormat) -> PairFiles:
    return PairFiles(tuple(map(Path, sources)), tuple(map(Path, targets)), given)


def _iterate_plain(source: Path, target: Path) -> Pairs:
    with (
        contextlib.closing(iterate_lines(source)) as source_lines,
        contextlib.closing(iterate_lines(target)) as target_lines,
    ):
        # Not ``zip``: it would end silently with the shorter file.
        for source_line in source_lines:
            target_line = next(target_lines, None)
            if target_line is None:
                raise count_mismatch(source, target)
            yield source_line, target_line

        if next(target_lines, None) is not None:
            raise count_mismatch(source, target)


def _iterate_columns(path: Path, parse: Callable[[str, str, int], tuple[str, str]]) -> Pairs:
    with contextlib.closing(iterate_lines(path)) as lines:
        for number, line in enumerate(lines, start=1):
            yield parse(line, str(path), number)


def _iterate_jsonl(path: Path) -> Pairs:
    names = None
    # a table is read here as well, as objects of JSON
    with open_lines(path) as file:
        for number, line in enumerate(decode_lines(file, str(path)), start=1):
            if names is None and line.strip():
                names = text_names(line, str(path))
            yield parse_jsonl(line, str(path), number, names)


def count_mismatch(source: Path, target: Path) -> DataError:
    """The error for files of different line counts; both are read again to find where they part."""
    sides = scan(source), scan(target)

    # Worth reading both files again: one missing line among millions is hard to find by hand.
    found = find_misalignment(*sides)
    assert found is not None, "files of different line counts part somewhere"
    line = found.line
    if are_unrelated(*sides, found):
        return DataError(
            f"both sides must have as many lines, got {sides[0].line_count} in {source} and"
            f" {sides[1].line_count} in {target}; their lines do not resemble each other anywhere",
            hint="line n of one file must be the translation of line n of the other: look whether"
            " these are the two sides of one text",
        )

    return DataError(
        f"both sides must have as many lines, got {sides[0].line_count} in {source} and"
        f" {sides[1].line_count} in {target}; they part near line {line}",
        hint=f"compare the files around line {line}: a line was lost, doubled or broken in two",
    )


def parse_text(line: str, name: str, number: int) -> tuple[str, str]:  # noqa: ARG001
    """A line of plain text as source and target."""
    return line, line


def parse_tsv(line: str, name: str, number: int) -> tuple[str, str]:
    """Both columns of a line; two blank texts for a blank line.

    Raises DataError for any other number of columns.
    """
    # A blank line is a blank pair, to be counted and dropped like one of two plain files.
    columns = line.split("\t") if line.strip() else ["", ""]
    if len(columns) != 2:
        raise DataError(
            f"{name}, line {number}: a line must be source, tab, target,"
            f" got {len(columns)} columns",
            hint=f"keep two columns, for example: cut -f{_texts_of(columns)}"
            if len(columns) > 2
            else "",
        )

    # Learned as a pair, a header would do little harm, but it shows that the file was not meant as
    # it is. Beside a third column no ordinary word, such as "no" or "it", counts as a language.
    if number == 1 and (pair_columns(["", *columns]) or pair_columns(["", *columns[::-1]])):
        raise DataError(
            f"{name}, line 1: a file must begin with its first pair, and this line names the"
            " columns",
            hint="remove it, for example: tail -n +2; or name its columns as in pairs.tsv#en",
        )
    return columns[0], columns[1]


def _texts_of(columns: Sequence[str]) -> str:
    """The numbers of the first two columns with letters that are no address; the others may be ids,
    scores and the pages that a text is from."""
    texts = [
        str(number)
        for number, text in enumerate(columns, 1)
        if any(map(str.isalpha, text)) and not _ADDRESS.match(text)
    ]
    return ",".join(texts[:2] if len(texts) > 1 else ("1", "2"))


@dataclass(frozen=True)
class TextNames:
    """The names under which the objects of a file of JSON lines have their texts."""

    source: str
    target: str
    is_nested: bool = False
    """Whether both are languages in an object called ``translation``."""

    def __str__(self) -> str:
        inside = ' in an object "translation"' if self.is_nested else ""
        return f'"{self.source}" and "{self.target}"{inside}'


def text_names(line: str, name: str) -> TextNames | None:
    """The names of the texts of a JSON object; None if the line is not an object with two texts.

    Datasets of Hugging Face have ``{"translation": {"de": ..., "en": ...}}``, others ``{"src": ...,
    "tgt": ...}`` or ``{"de": ..., "en": ...}``. The first line of a file that is not blank decides
    for all: its first language is the source, and in other lines the order does not matter. Logs
    the choice once for each file ``name``.
    """
    try:
        table: Any = parse_json(line, _MOST_VALUES)
    except ValueError:
        return None  # said by ``parse_jsonl``
    if not isinstance(table, dict):
        return None

    if {"source", "target"} <= table.keys():
        return TextNames("source", "target")
    inner = table.get("translation")
    if isinstance(inner, dict) and len(inner) == 2 and "source" not in table:
        # JSON keeps the order of its keys, and so do the files that the datasets library writes.
        source, target = inner
        names = TextNames(source, target, is_nested=True)
    else:
        keys = list(table)
        found = pair_columns(keys)
        if found is None:
            return None
        names = TextNames(keys[found[0]], keys[found[1]])

    say_pair(name, names.source, names.target)
    return names


def parse_jsonl(
    line: str, name: str, number: int, names: TextNames | None = None
) -> tuple[str, str]:
    """Both texts of a JSON object; two blank texts for a blank line.

    ``names`` are those of the file's first line that is not blank. Raises DataError if the line is
    not an object with texts of these names.
    """
    if not line.strip():
        return "", ""
    place = f"{name}, line {number}"
    try:
        table: Any = parse_json(line, _MOST_VALUES)
    except ValueError as error:
        raise DataError(f"{place}: not JSON ({error})") from None

    if names is None:
        raise DataError(
            f'{place}: a line must be an object with the texts "source" and "target", two texts by'
            f' their languages, or "translation" with these, got {line[:60]}'
        )
    if names.is_nested and isinstance(table, dict):
        table = table.get("translation")

    # A null is an empty cell, which makes a blank pair.
    keys = names.source, names.target
    is_object = isinstance(table, dict) and table.keys() >= set(keys)
    source, target = (
        ("" if table[key] is None else table[key] for key in keys) if is_object else (None, None)
    )
    if not isinstance(source, str) or not isinstance(target, str):
        raise DataError(
            f"{place}: an object must have the texts {names}, as the first of the file does, got"
            f" {line[:60]}"
        )

    # JSON can escape a lone surrogate, which no text in UTF-8 can contain.
    for text in (source, target):
        try:
            check_text(text)
        except DataError as error:
            raise DataError(f"{place}: {error}", hint=error.hint) from None
    return source.translate(ONE_LINE), target.translate(ONE_LINE)
