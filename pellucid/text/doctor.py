"""The data doctor: what is wrong with a parallel corpus, before anything is trained on it."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from pellucid.text.doctor_alignment import Misalignment, find_misalignment
from pellucid.text.doctor_blocks import fetch_lines
from pellucid.text.doctor_overlap import overlapping_rows
from pellucid.text.doctor_scan import LINE_FAULTS, LineFault, SideScan, scan

_log = logging.getLogger("pellucid")

Kind = Literal[
    LineFault, "byte_order_mark", "duplicate", "source_equals_target", "length_ratio", "overlap"
]

_Rows = npt.NDArray[np.int64]
_FIRST_LINES = 10
_EXAMPLES = 3
_LARGEST_RATIO = 4.0
"""Times the corpus's usual ratio of lengths. Beyond are 2 of 29,000 pairs of Multi30k (their
translation is "@@"), none of 164,000 of Tatoeba, 11 of 20,000 of Europarl (10 are misaligned)."""
_PADDING = 10
"""Characters added to both sides before their ratio is taken, so that "Go!" may be "Geh weg!"."""
_MOST_COPIES = 0.5
"""Share of copies from which on one file was probably given twice."""
_SHORT_FORM = 200_000
"""Pairs looked at when training starts: less than a second."""
_MIXER = np.int64(0x2545F4914F6CDD1D)
"""Odd and irregular (the multiplier of xorshift64*): source and target hash must not cancel."""


@dataclass(frozen=True)
class Finding:
    """One kind of fault and the pairs that have it."""

    kind: Kind
    rows: _Rows
    """Their rows, from 0, rising; of the test files for ``overlap``."""
    source_count: int | None = None
    """Source lines with it; None where the pair as a whole is at fault."""
    target_count: int | None = None
    examples: dict[int, tuple[str, str]] = field(default_factory=dict)
    """Source and target by line number, from 1, of the first few."""

    @property
    def count(self) -> int:
        """How many pairs have it on either side."""
        return len(self.rows)

    @property
    def first_lines(self) -> list[int]:
        """The first line numbers, from 1."""
        lines: list[int] = (self.rows[:_FIRST_LINES] + 1).tolist()
        return lines


@dataclass(frozen=True)
class Diagnosis:
    """All that was found in a corpus."""

    source_lines: int
    target_lines: int
    misalignment: Misalignment | None
    findings: dict[Kind, Finding]
    """One for each kind looked for, found or not."""

    @property
    def reasons(self) -> list[str]:
        """Why training on it would fail or learn what is wrong; empty if it would not."""
        said = []
        shared = min(self.source_lines, self.target_lines)
        if self.source_lines != self.target_lines:
            said.append(f"{self.source_lines} source lines but {self.target_lines} target lines")
        if self.misalignment is not None:
            said.append(f"the two sides part near line {self.misalignment.line}")
        if invalid := self.findings["invalid_utf8"].count:
            said.append(f"{invalid} lines are not UTF-8")
        usable = shared - self.findings["empty"].count
        if usable <= 0:
            said.append("no pair has text on both sides")
        elif self.findings["source_equals_target"].count > _MOST_COPIES * usable:
            said.append("source and target are the same text")
        return said

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, one entry for each kind of finding."""
        found = self.misalignment
        entries: dict[str, Any] = {
            "lines": {"source": self.source_lines, "target": self.target_lines},
            "misalignment": found
            and {"line": found.line, "last_line": found.last_line, "slip": found.slip},
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
) -> Diagnosis:
    """Look at every pair of two files, or at the first ``most_pairs`` or so.

    ``test`` files are searched for lines that stand in the training files too. Memory is about
    70 bytes a pair. Lines are compared by 64-bit hashes: with 10 million pairs, one corpus in
    300,000 has a pair that is called a duplicate wrongly.

    Raises InputMissingError if a file cannot be read, DataError if it is damaged gzip.
    """
    sides = scan(source, most_pairs), scan(target, most_pairs)
    if most_pairs is not None:
        fewest = min(most_pairs, *(side.line_count for side in sides))
        sides = sides[0].cut(fewest), sides[1].cut(fewest)
    findings = [_by_side(fault, *sides) for fault in LINE_FAULTS]
    findings += [_marks(*sides), *_pair_findings(*sides, findings[LINE_FAULTS.index("empty")])]
    shown = [_with_examples(finding, source, target) for finding in findings]
    if test is not None:
        overlap = [overlapping_rows(*files) for files in zip((source, target), test, strict=True)]
        shown.append(_with_examples(_union("overlap", *overlap), *test))
    return Diagnosis(
        sides[0].line_count,
        sides[1].line_count,
        find_misalignment(*sides),
        {finding.kind: finding for finding in shown},
    )


def warn_of_faults(source: Path, target: Path) -> None:
    """Log a warning for each kind of fault in the first pairs of two training files."""
    diagnosis = examine(source, target, most_pairs=_SHORT_FORM)
    for kind, finding in diagnosis.findings.items():
        if finding.count and kind not in _TOLD_ELSEWHERE:
            _log.warning(
                "%s and %s: %s in %d of %d pairs, first in line %d; see pellucid check",
                source,
                target,
                kind.replace("_", " "),
                finding.count,
                diagnosis.source_lines,
                finding.first_lines[0],
            )


_TOLD_ELSEWHERE: tuple[Kind, ...] = ("empty", "too_long", "crlf", "byte_order_mark", "invalid_utf8")
"""Counted when the corpus is tokenized, harmless, or an error there."""


def _by_side(fault: LineFault, source: SideScan, target: SideScan) -> Finding:
    return _union(fault, source.faults[fault], target.faults[fault])


def _union(kind: Kind, source: _Rows, target: _Rows) -> Finding:
    return Finding(kind, np.union1d(source, target), len(source), len(target))


def _marks(source: SideScan, target: SideScan) -> Finding:
    rows = [np.zeros(int(side.has_byte_order_mark), np.int64) for side in (source, target)]
    return _union("byte_order_mark", *rows)


def _pair_findings(source: SideScan, target: SideScan, empty: Finding) -> list[Finding]:
    """What can be said of pairs only; those with a blank side are left out."""
    shared = min(source.line_count, target.line_count)
    full = np.ones(shared, dtype=np.bool_)
    full[empty.rows[empty.rows < shared]] = False
    hashes = source.hashes[:shared], target.hashes[:shared]
    copies = np.flatnonzero((hashes[0] == hashes[1]) & full)
    ratio = np.log(source.lengths[:shared].astype(np.float32) + _PADDING)
    ratio -= np.log(target.lengths[:shared].astype(np.float32) + _PADDING)
    usual = np.median(ratio[full]) if full.any() else 0.0
    far = (np.abs(ratio - usual) > np.log(_LARGEST_RATIO)) & full
    with np.errstate(over="ignore"):
        duplicates = repeated_rows(hashes[0] * _MIXER + hashes[1])
    return [
        Finding("duplicate", duplicates[full[duplicates]]),
        Finding("source_equals_target", copies),
        Finding("length_ratio", np.flatnonzero(far)),
    ]


def repeated_rows(hashes: npt.NDArray[np.int64]) -> _Rows:
    """Rows, rising, whose hash stands in an earlier row too."""
    ordered = np.sort(hashes)
    repeated = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    del ordered
    candidates = np.flatnonzero(np.isin(hashes, repeated))
    first = np.unique(hashes[candidates], return_index=True)[1]
    return np.delete(candidates, first)


def _with_examples(finding: Finding, source: Path, target: Path) -> Finding:
    rows: Sequence[int] = finding.rows[:_EXAMPLES].tolist()
    sources, targets = fetch_lines(source, rows), fetch_lines(target, rows)
    examples = {
        row + 1: (_readable(sources.get(row, b"")), _readable(targets.get(row, b"")))
        for row in rows
    }
    return Finding(finding.kind, finding.rows, finding.source_count, finding.target_count, examples)


def _readable(line: bytes) -> str:
    return line.decode("utf-8", "backslashreplace")
