"""Checks a parallel corpus before anything is trained on it.

``examine`` gives a ``Diagnosis`` with a ``Finding`` for each kind of problem: those of single
lines (``pellucid.text.check.scan``), misalignment (``pellucid.text.check.alignment``), repeated
pairs, copies, unusual length ratios, and overlap with test files. ``warn_of_problems`` is the short
form that training runs.
"""

import contextlib
import dataclasses
import difflib
import itertools
import logging
import re
import statistics
import string
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from pellucid.core.errors import DataError, WriteError
from pellucid.core.files import temporary_folder
from pellucid.core.texts import counted
from pellucid.text.check.alignment import Misalignment, are_unrelated, find_misalignment
from pellucid.text.check.exchanged import is_exchanged, word_weights
from pellucid.text.check.rules import far_lengths, repeated_pairs, scan_pairs, usual_log_ratio
from pellucid.text.check.scan import (
    LINE_PROBLEMS,
    LONGEST_LINE,
    BlockScan,
    LineProblem,
    SideScan,
    scan,
)
from pellucid.text.check.sides import write_sides
from pellucid.text.config import PairFormat
from pellucid.text.corpus.cells import ONE_LINE
from pellucid.text.corpus.lines import (
    BYTE_ORDER_MARK,
    fetch_lines,
    iterate_blocks,
    iterate_raw_lines,
)
from pellucid.text.corpus.readers import refuse_pipe
from pellucid.text.corpus.rows import RowSet
from pellucid.text.detection import check_languages, other_language
from pellucid.text.normalization import is_normal, normalize

_IGNORED = (string.punctuation + " \t\r\0\v\f").encode()
_OTHER_SPACES = re.compile(b"\xc2\xa0|\xe2\x80[\x80-\x8b\xaf]|\xe3\x80\x80")
"""In UTF-8 the no-break spaces, those from U+2000 to U+200B, and the ideographic one."""


def overlapping_rows(file: Path, other: Path) -> RowSet:
    """Rows of ``file``, from 0, whose text is a line of ``other``.

    The case and punctuation of ASCII, all spacing and the form of Unicode are ignored. Lines are
    compared by 64-bit hashes; only the hashes of ``file`` are kept in memory.

    Raises InputMissingError if a file cannot be read, DataError if it is damaged gzip.
    """
    wanted = np.concatenate([np.empty(0, np.int64), *_hashes(file)])
    found = [block[np.isin(block, wanted)] for block in _hashes(other)]
    known = np.concatenate([np.empty(0, np.int64), *found])
    known = known[known != hash(b"")]  # a blank line is in every file
    return RowSet.of(np.flatnonzero(np.isin(wanted, known)))


def _hashes(path: Path) -> Iterator[npt.NDArray[np.int64]]:
    """The hashes of a file's lines, a block at a time."""
    with contextlib.closing(iterate_blocks(path)) as blocks:
        for number, block in enumerate(blocks):
            if number == 0:
                block = block.removeprefix(BYTE_ORDER_MARK)

            # Bytes and not characters: deleting and lower-casing a megabyte takes milliseconds, and
            # letters beyond ASCII are compared as they are.
            block = _OTHER_SPACES.sub(b"", block)
            block = _in_one_form(block)
            lines = block.translate(None, _IGNORED).lower().split(b"\n")
            if block.endswith(b"\n"):
                lines.pop()
            yield np.fromiter(map(hash, lines), np.int64, len(lines))


def _in_one_form(block: bytes) -> bytes:
    """The lines of a block normalized, where they are not."""
    text = block.decode("utf-8", "replace")
    if is_normal(text.replace("\n", "~")):
        return block
    return "\n".join(map(normalize, text.split("\n"))).encode()


_log = logging.getLogger("pellucid")

Kind = Literal[
    LineProblem,
    "byte_order_mark",
    "duplicate",
    "source_equals_target",
    "length_ratio",
    "other_language",
    "overlap",
    "mixed_forms",
    "other_script",
    "quoted",
    "frequent",
    "exchanged_sides",
]

KEPT_KINDS: frozenset[Kind] = frozenset(
    (
        "unusual",
        "markup",
        "tab",
        "subwords",
        "invisible",
        "other_script",
        "quoted",
        "frequent",
        "exchanged_sides",
    )
)
"""The kinds that ``check --fix`` leaves: they may be intended, or nobody knows what was."""

_FIRST_LINES = 10
_EXAMPLES = 3
_MOST_COPIES = 0.5
"""With a larger share a model learns to copy, which only one that corrects text should."""
_LEAST_DOUBLED, _NEARLY_ALL, _FEWEST_QUOTED = 0.01, 0.95, 20
"""The share of the lines in quotation marks with doubled ones in them, that of all lines in such
marks, and how many lines are needed to tell by the second."""
_FREQUENT, _LEAST_FREQUENT = 0.02, 20
"""The share of the pairs, and their number, from which on one line stands beside too many different
ones. In six corpora no line has 0.5%."""
_EDITS_READ = 200
"""Pairs that differ, of which the text is read."""
_LONGEST_EDIT = 300
_LEAST_ALIKE = 0.7
"""How alike the sides of most pairs that differ are, by the letters that they share in order, where
one corrects the other. Translations are so only between close relatives, as Czech and Slovak."""
_SAMPLED, _LEAST_EXCHANGED = 3000, 3
"""Pairs from which the words of both languages are learned, and how many of them must be exchanged
for the others to be looked at."""
_MOST_EXCHANGED = 0.05
"""With a larger share training would go wrong: a model would learn to write both languages."""
_SHORT_FORM = 1_000_000
"""Pairs that are checked when training starts: about four seconds, less than tokenizing takes."""
_LINES_AT_ONCE = 1 << 12
_BLOCK = 1 << 20
"""Pairs that are compared together, to bound memory."""


UNRELATED = (
    "no line resembles its partner in length, digits or marks; line n of one side must be the"
    " translation of line n of the other"
)
"""The finding for files with as many lines; unusual tasks, such as labels, have it too."""


@dataclasses.dataclass(frozen=True)
class Finding:
    """One kind of problem and the pairs that have it."""

    kind: Kind
    rows: RowSet
    """The rows of these pairs; for ``overlap`` the rows of the test files."""
    source_count: int | None = None
    """Source lines with the problem; None if it is a problem of the pair."""
    target_count: int | None = None
    examples: dict[int, tuple[str, str]] = dataclasses.field(default_factory=dict)
    """Source and target of the first few pairs, by line number from 1."""

    @property
    def count(self) -> int:
        """How many pairs have the problem on either side."""
        return len(self.rows)

    @property
    def first_lines(self) -> list[int]:
        """The first line numbers, from 1."""
        lines: list[int] = (self.rows.first(_FIRST_LINES) + 1).tolist()
        return lines


@dataclasses.dataclass(frozen=True)
class Diagnosis:
    """Everything that was found in a corpus."""

    source_lines: int
    target_lines: int
    misalignment: Misalignment | None
    """None also where the sides are unrelated, as there is no line where they part."""
    is_unrelated: bool
    """Whether lines resemble their partners no more than others, by length, digits and marks."""
    findings: dict[Kind, Finding]
    """One for each kind that was looked for, even if no pair has it."""
    is_correction: bool = False
    """Whether most pairs are equal and the others nearly so, as where a side is the other with its
    spelling put right; there a copy is right."""

    @property
    def reasons(self) -> list[str]:
        """Why training on the corpus would fail or learn wrong pairs; empty if it would not."""
        problems = []
        shared = min(self.source_lines, self.target_lines)

        if self.source_lines != self.target_lines:
            problems.append(
                f"{self.source_lines} source lines but {self.target_lines} target lines"
            )
            if self.is_unrelated:
                problems.append("the lines of both sides do not resemble each other anywhere")
        if self.misalignment is not None:
            problems.append(f"the two sides part near line {self.misalignment.line}")
        if invalid := self.findings["invalid_utf8"].count:
            problems.append(
                f"{counted(invalid, 'line')} {'is' if invalid == 1 else 'are'} not UTF-8"
            )

        empty, too_long = (self.findings[kind].rows for kind in ("empty", "too_long"))
        usable = shared - len(empty)
        short = shared - len(RowSet.union((empty, too_long)))
        if usable <= 0:
            problems.append("no pair has text on both sides")
        elif usable == 1:
            problems.append("one pair has text on both sides, and one to validate on is needed too")
        elif short <= 1:
            problems.append(
                f"{'no' if short <= 0 else 'only one'} pair with text on both sides has at most"
                f" {LONGEST_LINE:,} characters on each, and longer ones are left out"
            )
        elif self.findings["duplicate"].count >= usable - 1:
            problems.append("all pairs are the same, and others to validate on are needed too")
        elif (copies := self.findings["source_equals_target"].count) == usable:
            problems.append("source and target are the same text")
        elif copies > _MOST_COPIES * usable and not self.is_correction:
            problems.append(
                f"{copies:,} of {usable:,} pairs have the same text on both sides, which teaches to"
                " copy"
            )

        if (exchanged := self.findings["exchanged_sides"].count) > _MOST_EXCHANGED * usable > 0:
            problems.append(f"source and target are exchanged in {exchanged:,} of the pairs")

        foreign = self.findings.get("other_language")
        if foreign is not None and 2 * foreign.count > usable > 0:
            problems.append(
                f"{foreign.count} pairs are in other languages; are source and target exchanged?"
            )
        return problems

    def refuse_misaligned(self) -> None:
        """Raise DataError for sides that part, as nobody knows which line is missing."""
        if self.misalignment is not None or self.source_lines != self.target_lines:
            found = self.misalignment
            raise DataError(
                f"a misaligned corpus cannot be cleaned: {'; '.join(self.reasons)}",
                hint=f"put it right around line {found.line} first" if found else "",
            )

    def to_dict(self) -> dict[str, Any]:
        """The diagnosis as plain values, one entry for each kind of finding."""
        found = self.misalignment
        entries: dict[str, Any] = {
            "lines": {"source": self.source_lines, "target": self.target_lines},
            "misalignment": found
            and {"line": found.line, "last_line": found.last_line, "slip": found.slip},
            "unrelated": self.is_unrelated,
            "correction": self.is_correction,
            "reasons": self.reasons,
        }

        for kind, finding in self.findings.items():
            entry: dict[str, Any] = {"count": finding.count, "first_lines": finding.first_lines}
            if finding.source_count is not None:
                entry |= {"source": finding.source_count, "target": finding.target_count}
            entry["examples"] = [
                {"line": line, "source": source, "target": target}
                for line, (source, target) in finding.examples.items()
            ]
            entries[kind] = entry

        return entries


def examine(
    source: Path,
    target: Path,
    *,
    test: tuple[Path, Path] | None = None,
    most_pairs: int | None = None,
    languages: tuple[str, str] | None = None,
) -> Diagnosis:
    """Check every pair of two files, or the first ``most_pairs`` or so.

    With ``languages`` pairs are found of which a side is certainly in another language; this takes
    half a millisecond a pair. ``test`` files are searched for lines that also occur in the training
    files. Both sides are read at the same time. With more than a million pairs, 28 bytes for each
    are kept in the temporary folder, and one bit for each pair and kind of problem in memory. Lines
    are compared by 64-bit hashes: of corpora of 10 million pairs, one in 300,000 has a pair that is
    wrongly called a duplicate.

    Raises InputMissingError if a file cannot be read, DataError if it is damaged gzip, WriteError
    if the temporary folder is full; for ``languages`` as ``check_languages``.
    """
    for path in (source, target, *(test or ())):
        refuse_pipe(path)
    if languages is not None:
        check_languages(languages)
    with ThreadPoolExecutor(1) as beside:
        # A thread is enough: NumPy, hashing and gzip let go of the interpreter lock for most of the
        # time.
        other = beside.submit(scan, target, most_pairs)
        sides = scan(source, most_pairs), other.result()

    # Blocks were read whole, so that the sides may have stopped at different rows.
    if most_pairs is not None:
        fewest = min(most_pairs, *(side.line_count for side in sides))
        sides = sides[0].cut(fewest), sides[1].cut(fewest)

    findings = [
        _union(problem, *(side.problems[problem] for side in sides)) for problem in LINE_PROBLEMS
    ]
    marks = (RowSet.of([0] * side.has_byte_order_mark) for side in sides)
    findings += [
        _union("byte_order_mark", *marks),
        _mixed_forms(*sides),
        _other_scripts(*sides),
        _quoted(*sides),
    ]
    empty = findings[LINE_PROBLEMS.index("empty")]
    findings += [_frequent(*sides, empty.rows), *_pair_findings(*sides, empty)]

    findings.append(_exchanged(source, target, min(side.line_count for side in sides)))
    if languages is not None:
        findings.append(_in_other_languages(source, target, languages, most_pairs))

    shown = _with_examples(findings, source, target)
    if test is not None:
        # The test files are the small ones, whose hashes are kept.
        overlap = [
            overlapping_rows(test[0], source),
            overlapping_rows(test[1], target),
        ]
        shown += _with_examples([_union("overlap", *overlap)], *test)

    misalignment = find_misalignment(*sides)
    is_unrelated = are_unrelated(*sides, misalignment)
    shared = min(side.line_count for side in sides)
    by_kind = {finding.kind: finding for finding in shown}
    return Diagnosis(
        sides[0].line_count,
        sides[1].line_count,
        None if is_unrelated else misalignment,
        is_unrelated,
        by_kind,
        _is_correction(by_kind, source, target, shared),
    )


def _is_correction(findings: dict[Kind, Finding], source: Path, target: Path, shared: int) -> bool:
    """Whether most pairs with text are copies, and the sides of most others nearly the same."""
    copies, empty = findings["source_equals_target"].rows, findings["empty"].rows
    if len(copies) <= _MOST_COPIES * (shared - len(empty)):
        return False

    same = RowSet.union((copies, empty))
    differing = (
        int(row) + start
        for start in range(0, shared, _BLOCK)
        for row in np.flatnonzero(~same.mask(start, min(shared, start + _BLOCK)))
    )
    rows = list(itertools.islice(differing, _EDITS_READ))
    sides = fetch_lines(source, rows), fetch_lines(target, rows)
    alike = []
    for row in rows:
        one, other = (_readable(side[row])[:_LONGEST_EDIT].lower() for side in sides)
        alike.append(difflib.SequenceMatcher(None, one, other, autojunk=False).ratio())
    return bool(alike) and statistics.median(alike) >= _LEAST_ALIKE


def pairing_problem(sources: Sequence[str], targets: Sequence[str]) -> str:
    """Why as many lines in memory are no translations of each other; empty if they may be."""
    lines = [[text.translate(ONE_LINE) for text in side] for side in (sources, targets)]
    source, target, _ = scan_pairs(*lines)
    sides = _in_memory(source), _in_memory(target)
    slipped = find_misalignment(*sides)
    if are_unrelated(*sides, slipped):
        return UNRELATED
    return "" if slipped is None else _shifted(slipped)


def _in_memory(side: BlockScan) -> SideScan:
    empty = RowSet.of(side.problems["empty"])
    columns = side.lengths, side.hashes, side.traits
    return SideScan(Path(), *columns, {"empty": empty}, has_byte_order_mark=False)


def _shifted(slipped: Misalignment) -> str:
    return (
        f"from line {slipped.line} to {slipped.last_line} the two sides look shifted against each"
        " other; see pellucid check"
    )


def warn_of_problems(
    source: Path,
    target: Path | None,
    kinds: Sequence[Kind] | None = None,
    given: PairFormat = "auto",
) -> None:
    """Log a warning for each problem in the first million pairs of two files: of sides that do not
    belong together, and of these ``kinds``, all that are not shown elsewhere if None.

    Without ``target`` the source is a table of both sides, in the format ``given``, which is not
    checked where the temporary folder has no room for them. Raises as ``examine``.
    """
    with contextlib.ExitStack() as opened:
        sides = source, target or source
        if target is None:
            folder = temporary_folder(Path(tempfile.gettempdir()), "pellucid-check-")
            try:
                sides = write_sides(source, opened.enter_context(folder), given, _SHORT_FORM)
            except WriteError as error:
                _log.warning("%s is not checked: %s", source, error)
                return
        diagnosis = examine(*sides, most_pairs=_SHORT_FORM)
    names = f"{source} and {target}" if target else str(source)

    slipped = diagnosis.misalignment
    if slipped is not None:
        _log.warning("%s: %s", names, _shifted(slipped))

    if diagnosis.is_unrelated:
        _log.warning("%s: %s", names, UNRELATED)

    for kind, finding in diagnosis.findings.items():
        if finding.count and (kind not in _SHOWN_ELSEWHERE if kinds is None else kind in kinds):
            _log.warning(
                "%s: %s in %d of %d pairs, first in line %d; see pellucid check",
                names,
                kind.replace("_", " "),
                finding.count,
                diagnosis.source_lines,
                finding.first_lines[0],
            )


_SHOWN_ELSEWHERE: tuple[Kind, ...] = (
    "empty",
    "too_long",
    "crlf",
    "byte_order_mark",
    "invalid_utf8",
    "not_nfc",
    "invisible",
    "mixed_forms",
)
"""Problems that tokenizing counts itself, that are harmless, or that are an error there."""


def _union(kind: Kind, source: RowSet, target: RowSet) -> Finding:
    return Finding(kind, RowSet.union((source, target)), len(source), len(target))


def _mixed_forms(source: SideScan, target: SideScan) -> Finding:
    """The lines that are not NFC, of a side that has composed letters in other lines."""
    rows = [
        side.problems["not_nfc"] if side.has_composed else RowSet() for side in (source, target)
    ]
    return _union("mixed_forms", *rows)


def _other_scripts(source: SideScan, target: SideScan) -> Finding:
    """The lines that are in another script than most lines of their side."""
    rows = []
    for side in (source, target):
        counts = {script: len(lines) for script, lines in side.scripts.items()}
        usual = max(counts, key=lambda script: counts[script], default=None)
        if usual is None or 2 * counts[usual] <= sum(counts.values()):
            rows.append(RowSet())  # a text of several scripts has no usual one
            continue
        others = (lines for script, lines in side.scripts.items() if script != usual)
        rows.append(RowSet.union(others))
    return _union("other_script", *rows)


def _quoted(source: SideScan, target: SideScan) -> Finding:
    """The lines in quotation marks that a spreadsheet or R wrote around them: of a side with marks
    that only CSV doubles, or nearly all of whose lines have them."""
    sides, rows = (source, target), list[RowSet]()
    # Both sides were written by the same program.
    is_csv = any(each.doubled_quotes > _LEAST_DOUBLED * len(each.in_quotes) for each in sides)
    for side in sides:
        is_every = len(side.in_quotes) > _NEARLY_ALL * side.line_count > _FEWEST_QUOTED
        rows.append(side.in_quotes if is_csv or is_every else RowSet())
    return _union("quoted", *rows)


def _frequent(source: SideScan, target: SideScan, empty: RowSet) -> Finding:
    """The lines that stand beside many different ones of the other side, such as N/A and nan, in
    the first million pairs."""
    shared = min(source.line_count, target.line_count, _BLOCK)
    full = np.flatnonzero(~empty.mask(0, shared))
    least = max(_LEAST_FREQUENT, _FREQUENT * len(full))
    found = []
    for own, other in ((source, target), (target, source)):
        hashes, rows = own.hashes[full], RowSet()
        values, counts = np.unique(hashes, return_counts=True)
        for value in values[counts >= least]:
            same = full[hashes == value]
            if len(np.unique(other.hashes[same])) >= least:
                rows.add(same)
        found.append(rows)
    return _union("frequent", *found)


def _pair_findings(source: SideScan, target: SideScan, empty: Finding) -> list[Finding]:
    """The problems of pairs; pairs with a blank side are left out."""
    shared = min(source.line_count, target.line_count)
    every = -(-shared // _BLOCK) or 1
    full_rows = [
        np.flatnonzero(~empty.rows.mask(start, min(shared, start + _BLOCK)))[::every] + start
        for start in range(0, shared, _BLOCK)
    ]
    spread = np.concatenate([np.empty(0, np.int64), *full_rows])
    usual = usual_log_ratio(source.lengths, target.lengths, spread)
    copies, far, full_repeats = RowSet(), RowSet(), RowSet()
    repeats = repeated_pairs(source.hashes[:shared], target.hashes[:shared])

    for start in range(0, shared, _BLOCK):
        rows = np.arange(start, min(shared, start + _BLOCK))

        # Two blank lines are equal, and their ratio is anything: only full pairs are judged.
        full = ~empty.rows.mask(start, start + len(rows))
        is_copy = source.hashes[rows] == target.hashes[rows]
        copies.add(rows[is_copy & full])

        # Relative to the usual ratio of the two languages: Chinese needs far fewer characters than
        # English.
        is_far = far_lengths(source.lengths[rows], target.lengths[rows], usual)
        far.add(rows[is_far & full])
        full_repeats.add(rows[repeats.mask(start, start + len(rows)) & full])

    return [
        Finding("duplicate", full_repeats),
        Finding("source_equals_target", copies),
        Finding("length_ratio", far),
    ]


def _exchanged(source: Path, target: Path, shared: int) -> Finding:
    """Pairs whose source is of the targets' language, and whose target of the sources'."""
    rows = np.arange(min(shared, _SAMPLED)) * shared // max(1, min(shared, _SAMPLED))
    sides = fetch_lines(source, rows.tolist()), fetch_lines(target, rows.tolist())
    sample = [(_readable(sides[0][row]), _readable(sides[1][row])) for row in rows.tolist()]
    weights = word_weights(sample)
    exchanged = RowSet()
    if sum(is_exchanged(*pair, weights) for pair in sample) >= _LEAST_EXCHANGED:
        for first, pairs in _read_pairs(source, target, shared):
            found = [is_exchanged(*pair, weights) for pair in pairs]
            exchanged.add(np.flatnonzero(found) + first)
    return Finding("exchanged_sides", exchanged)


def _in_other_languages(
    source: Path, target: Path, languages: tuple[str, str], most_pairs: int | None
) -> Finding:
    sides = RowSet(), RowSet()
    for first, pairs in _read_pairs(source, target, most_pairs):
        for side, rows in enumerate(sides):
            found = [other_language(pair[side], languages[side]) is not None for pair in pairs]
            rows.add(np.flatnonzero(found) + first)
    return _union("other_language", *sides)


def _read_pairs(
    source: Path, target: Path, most_pairs: int | None
) -> Iterator[tuple[int, list[tuple[str, str]]]]:
    """The pairs, some thousand at a time, each time with the row of the first."""
    with (
        contextlib.closing(iterate_raw_lines(source)) as sources,
        contextlib.closing(iterate_raw_lines(target)) as targets,
    ):
        pairs = itertools.islice(zip(sources, targets, strict=False), most_pairs)
        for first in itertools.count(0, _LINES_AT_ONCE):
            lines = list(itertools.islice(pairs, _LINES_AT_ONCE))
            if not lines:
                break
            yield (
                first,
                [
                    (one.decode("utf-8", "replace"), other.decode("utf-8", "replace"))
                    for one, other in lines
                ],
            )


def _with_examples(findings: Sequence[Finding], source: Path, target: Path) -> list[Finding]:
    """The findings with the text of the first few pairs, for which the files are read again."""
    # All findings together, so that each file is read once.
    shown = [finding.rows.first(_EXAMPLES).tolist() for finding in findings]
    wanted = {row for rows in shown for row in rows}
    sources, targets = fetch_lines(source, wanted), fetch_lines(target, wanted)

    return [
        dataclasses.replace(
            finding,
            examples={
                row + 1: (_readable(sources.get(row, b"")), _readable(targets.get(row, b"")))
                for row in rows
            },
        )
        for finding, rows in zip(findings, shown, strict=True)
    ]


def _readable(line: bytes) -> str:
    return line.decode("utf-8", "backslashreplace")
