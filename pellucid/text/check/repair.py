"""Writes a cleaned copy of a corpus, and a log of every line that was dropped."""

import contextlib
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pellucid.core.errors import DataError, OutputExistsError
from pellucid.core.files import write_folder
from pellucid.text.check.check import Diagnosis, Kind
from pellucid.text.check.scan import without_marks
from pellucid.text.corpus.addresses import plain_stem
from pellucid.text.corpus.lines import iterate_raw_lines
from pellucid.text.normalization import compose

DROPPED_NAME = "dropped.jsonl"
DROPPING: tuple[Kind, ...] = (
    "empty",
    "invalid_utf8",
    "duplicate",
    "source_equals_target",
    "length_ratio",
    "too_long",
    "other_language",
)
"""Problems for which a pair is dropped; the others are repaired in the line or left."""
_BLOCK = 1 << 16
"""Pairs whose findings are looked up together."""


@dataclass(frozen=True)
class Repair:
    """The files that were written."""

    source: Path
    target: Path
    dropped: Path
    """One JSON object per line: ``line`` (from 1), ``reasons``, ``source``, ``target``."""
    kept_count: int
    dropped_count: int


def repair(diagnosis: Diagnosis, source: Path, target: Path, folder: Path) -> Repair:
    """Write the good pairs of both files, and the log of the others, into a new folder.

    Line ends, byte order marks, NUL, control characters and unusual separators are repaired, and
    letters and their accents are composed (NFC). A
    misaligned corpus is refused, because it is not known which line is missing.

    Raises DataError, OutputExistsError if the folder holds anything, WriteError.
    """
    if diagnosis.misalignment is None and diagnosis.source_lines != diagnosis.target_lines:
        raise DataError(f"a misaligned corpus cannot be cleaned: {'; '.join(diagnosis.reasons)}")
    if diagnosis.misalignment is not None:
        raise DataError(
            f"a misaligned corpus cannot be cleaned: {diagnosis.reasons[0]}",
            hint=f"put it right around line {diagnosis.misalignment.line} first",
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputExistsError(f"{folder} already holds something", hint="name a new folder")

    # The copies are plain text, whatever the originals are.
    names = [plain_stem(path.name) for path in (source, target)]
    if names[0] == names[1]:
        names = [f"source-{names[0]}", f"target-{names[1]}"]
    counts = {"kept": 0, "dropped": 0}

    def fill(temporary: Path) -> None:
        """Write the pairs that are kept, and a line with its reasons for each that is not."""
        with (
            (temporary / names[0]).open("xb") as good_sources,
            (temporary / names[1]).open("xb") as good_targets,
            (temporary / DROPPED_NAME).open("xb") as dropped,
            contextlib.closing(iterate_raw_lines(source)) as sources,
            contextlib.closing(iterate_raw_lines(target)) as targets,
        ):
            # Read as bytes: an invalid line must reach the log as it is.
            reasons = _reasons(diagnosis)
            for row, (source_line, target_line) in enumerate(zip(sources, targets, strict=True)):
                # A line of nothing but marks is blank only now.
                mended = _mended(source_line), _mended(target_line)
                why = next(reasons) or ([] if all(map(bytes.strip, mended)) else ["empty"])
                counts["dropped" if why else "kept"] += 1
                if why:
                    dropped.write(_log_entry(row, why, source_line, target_line))
                else:
                    good_sources.write(mended[0] + b"\n")
                    good_targets.write(mended[1] + b"\n")

        # Raised inside ``write_folder``, so that no empty corpus is left behind.
        if not counts["kept"]:
            raise DataError(f"no pair of {source} and {target} is good enough to keep")

    write_folder(folder, fill, details={"kind": "corpus", "pairs": counts})
    return Repair(
        source=folder / names[0],
        target=folder / names[1],
        dropped=folder / DROPPED_NAME,
        kept_count=counts["kept"],
        dropped_count=counts["dropped"],
    )


def _mended(line: bytes) -> bytes:
    """A line without marks and in NFC; one that is not UTF-8 is dropped anyway."""
    line = without_marks(line)
    try:
        return compose(line.decode("utf-8")).encode()
    except UnicodeDecodeError:
        return line


def _reasons(diagnosis: Diagnosis) -> Iterator[list[Kind]]:
    """For each row in order the reasons to drop it; an empty list if there are none."""
    kinds = [kind for kind in DROPPING if kind in diagnosis.findings]
    for start in itertools.count(0, _BLOCK):
        # A mask for each kind and block: asking ten sets for every single row would take minutes.
        masks = [diagnosis.findings[kind].rows.mask(start, start + _BLOCK) for kind in kinds]
        is_bad = np.logical_or.reduce(masks).tolist()
        for place, bad in enumerate(is_bad):
            yield (
                [kind for kind, mask in zip(kinds, masks, strict=True) if mask[place]]
                if bad
                else []
            )


def _log_entry(row: int, reasons: list[Kind], source: bytes, target: bytes) -> bytes:
    entry = {
        "line": row + 1,
        "reasons": reasons,
        "source": source.decode("utf-8", "backslashreplace"),
        "target": target.decode("utf-8", "backslashreplace"),
    }
    return json.dumps(entry, ensure_ascii=False).encode() + b"\n"
