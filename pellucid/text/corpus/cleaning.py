"""Cleans a corpus of any size, chunk by chunk, on whatever runs functions in order.

Two passes read the text in chunks of whole lines. In the first every chunk is scanned beside all
others, and some 25 bytes a pair are kept of it: lengths and two hashes, and 64 more for a
signature if similar pairs are dropped. From these it is decided which pairs are dropped, and the
second pass writes the others. What is written depends on the text and the rules alone, not on
chunks or on who works on them.
"""

import contextlib
import dataclasses
import functools
import hashlib
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pellucid.core.errors import DataError, InputMissingError, OutputExistsError
from pellucid.core.files import read_manifest, refuse_to_overwrite, verify_folder, write_folder
from pellucid.core.phases import begin_phase
from pellucid.core.texts import TO_UTF_8
from pellucid.text.check.rules import (
    REASONS,
    far_lengths,
    repeated_pairs,
    scan_pairs,
    usual_log_ratio,
)
from pellucid.text.check.scan import LONGEST_LINE, Column, repaired
from pellucid.text.config import file_format
from pellucid.text.corpus.addresses import plain_stem
from pellucid.text.corpus.chunks import CHUNK, Chunk, InOrder, read_chunks
from pellucid.text.corpus.pairs import PairFiles
from pellucid.text.corpus.readers import hashes_of_inputs
from pellucid.text.corpus.rows import RowSet
from pellucid.text.corpus.similar import BANDS, signatures, similar_rows
from pellucid.text.detection import check_languages, pairs_in_other_languages
from pellucid.text.normalization import compose, normalize
from pellucid.text.scripts import combining_marks

DROPPED_NAME = "dropped.jsonl"
_VERSION = 7
"""The version of the rules, which is hashed into the fingerprint of cleaned pairs."""
_MOST_INVALID = 0.01
"""With a larger share of lines that are not UTF-8, the file is in another encoding."""
_FEW = 10
"""Lines that are dropped whatever their share."""


def is_other_encoding(invalid: int, count: int) -> bool:
    """Whether so many of ``count`` lines are not UTF-8 that the file is in another encoding."""
    return invalid > max(_FEW, _MOST_INVALID * count)


@dataclasses.dataclass(frozen=True)
class Rules:
    """The rules by which pairs are dropped."""

    longest: int = LONGEST_LINE
    """Characters of a side; about as many as 256 tokens."""
    near_duplicates: bool = True
    """Whether a pair is dropped whose letters are those of an earlier one: case, digits, spaces
    and punctuation do not count."""
    languages: tuple[str, str] | None = None
    """The languages of both sides: a pair is dropped if one is certainly in another. None does not
    look."""
    least_similarity: float | None = None
    """A pair is dropped that is as similar as this to an earlier one
    (``pellucid.text.corpus.similar``); None does not look."""


@dataclasses.dataclass(frozen=True)
class CleanText:
    """The cleaned text."""

    files: PairFiles
    read: int
    kept: int
    dropped: dict[str, int]
    """How many pairs were dropped for each of ``REASONS``."""


@dataclasses.dataclass(frozen=True)
class ScanChunk:
    """Scans the pairs of a chunk; sent to whoever does it."""

    rules: Rules

    def __call__(self, chunk: Chunk) -> "ScannedChunk":
        """Lengths, hashes and problems of each pair, as it would be written."""
        valid, invalid_rows = chunk.without_invalid()
        pairs = clean_pairs(valid)
        sides = ([pair[side] for pair in pairs] for side in (0, 1))
        source, target, is_copy = scan_pairs(*sides)

        problem = np.zeros(len(pairs), np.uint16)  # 0 is none
        is_long = np.maximum(source.lengths, target.lengths) > self.rules.longest
        problem[is_long] = 1 + REASONS.index("too_long")
        problem[np.union1d(source.problems["empty"], target.problems["empty"])] = 1 + REASONS.index(
            "empty"
        )
        problem[invalid_rows] = 1 + REASONS.index("invalid_utf8")
        problem[is_copy & (problem == 0)] = 1 + REASONS.index("source_equals_target")

        if self.rules.languages is not None:
            # Only of what is left: detecting takes longer than all else.
            left = np.flatnonzero(problem == 0)
            is_other = pairs_in_other_languages([pairs[row] for row in left], self.rules.languages)
            problem[left[is_other]] = 1 + REASONS.index("other_language")

        # Normalized, as ``pellucid check`` compares them.
        exact = [_hash(f"{normalize(a)}\n{normalize(b)}") for a, b in pairs]
        near = [_near_hash(a, b) for a, b in pairs] if self.rules.near_duplicates else exact
        signature = np.empty((len(pairs), 0), np.int64)
        if self.rules.least_similarity is not None:
            signature = signatures([(_letters(a), _letters(b)) for a, b in pairs])
        return ScannedChunk(
            problem,
            source.lengths,
            target.lengths,
            np.array(exact, np.int64),
            np.array(near, np.int64),
            signature,
        )


@dataclasses.dataclass(frozen=True)
class ScannedChunk:
    """The facts that the first pass keeps of each pair of a chunk."""

    problem: npt.NDArray[np.uint16]
    """One more than the index of its problem in ``REASONS``; 0 if it has none by itself."""
    source_lengths: npt.NDArray[np.int32]
    target_lengths: npt.NDArray[np.int32]
    exact: npt.NDArray[np.int64]
    near: npt.NDArray[np.int64]
    signature: npt.NDArray[np.int64]
    """(pairs, bands), or (pairs, 0) if similar pairs stay."""


@dataclasses.dataclass(frozen=True)
class WriteChunk:
    """Writes what is left of a chunk; sent to whoever does it."""

    logs: bool
    """Whether dropped lines are written, too."""

    def __call__(
        self, chunk_and_problem: tuple[Chunk, npt.NDArray[np.uint16]]
    ) -> tuple[bytes, bytes, bytes]:
        """The lines of both sides of the pairs that are kept, and the log of the others."""
        chunk, problem = chunk_and_problem
        pairs = clean_pairs(chunk.without_invalid()[0])
        kept = list(itertools.compress(pairs, (problem == 0).tolist()))
        source, target = ("".join(f"{pair[side]}\n" for pair in kept).encode() for side in (0, 1))
        dropped = np.flatnonzero(problem).tolist() if self.logs else []

        # As they were, whatever is wrong with them.
        lines = [side.split(b"\n") if dropped else [] for side in (chunk.source, chunk.target)]
        entries = [
            {
                "line": chunk.first + row,
                "reason": REASONS[problem[row] - 1],
                "source": lines[0][row].decode("utf-8", "backslashreplace"),
                "target": lines[1][row].decode("utf-8", "backslashreplace"),
            }
            for row in dropped
        ]
        log = "".join(f"{json.dumps(entry, ensure_ascii=False)}\n" for entry in entries)
        return source, target, log.encode()


def clean_pairs(chunk: Chunk) -> list[tuple[str, str]]:
    """The pairs of a chunk with control characters, odd separators and marks repaired, in NFC.

    Raises DataError if a line is not a pair or not UTF-8.
    """
    return [(_repaired(source), _repaired(target)) for source, target in chunk.pairs()]


def cleaned_files(files: PairFiles, folder: Path) -> PairFiles:
    """The files of ``folder`` that ``clean_corpus`` writes for a corpus."""
    # A table has both sides in one file.
    paths = files.sources[0], *files.targets[:1]
    names = [Path(plain_stem(str(path))).name for path in paths]
    if len(set(names)) < 2:
        names = [f"source-{names[0]}", f"target-{names[0]}"]

    # The text is plain, and a name that ends as another format does would be read as that.
    names = [f"{name}.txt" if file_format(name) != "plain" else name for name in names]
    return PairFiles((folder / names[0],), (folder / names[1],))


def clean_corpus(
    files: PairFiles,
    folder: Path,
    rules: Rules,
    in_order: InOrder = map,
    chunk_bytes: int = CHUNK,
    *,
    logs: bool = False,
    overlap: RowSet | None = None,
) -> CleanText:
    """Write the good pairs of a corpus into the new folder ``folder``, or find them there.

    Its files are ``cleaned_files`` and, with ``logs``, which is for two plain files,
    ``DROPPED_NAME`` with a JSON object for each line that was dropped. The rows ``overlap``, which
    test files have too, are dropped. A folder that an earlier call with the same text, rules and
    rows wrote is used again.

    Raises as ``iterate_pairs`` does, except that lines which are not UTF-8 are dropped;
    OutputExistsError for a folder with anything else, DataError if no pair is left or a file is in
    another encoding, WriteError.
    """
    if rules.languages is not None:
        check_languages(rules.languages)
    overlap = overlap or RowSet()
    fingerprint = _fingerprint(files, rules, overlap, logs=logs)
    clean = cleaned_files(files, folder)

    try:
        manifest = read_manifest(folder)
        if manifest.get("fingerprint") != fingerprint:
            raise OutputExistsError(
                f"{folder} was made from other text or by other rules",
                hint="name another folder, or remove it",
            )
        verify_folder(folder)
    except InputMissingError:
        refuse_to_overwrite(folder)
        counts: dict[str, Any] = {}

        def fill(temporary: Path) -> None:
            names = [clean.sources[0].name, clean.targets[0].name, *[DROPPED_NAME] * logs]
            out = [temporary / name for name in names]
            counts.update(_clean(files, out, rules, overlap, in_order, chunk_bytes))

        details = {"kind": "corpus", "fingerprint": fingerprint, "pairs": counts}
        write_folder(folder, fill, details=details)
        manifest = read_manifest(folder)

    pairs = manifest["pairs"]
    return CleanText(clean, pairs["read"], pairs["kept"], dict(pairs["dropped"]))


def _clean(
    files: PairFiles,
    out: Sequence[Path],
    rules: Rules,
    overlap: RowSet,
    in_order: InOrder,
    chunk_bytes: int,
) -> dict[str, Any]:
    begin_phase("scanning the text")
    problems: Column[np.uint16] = Column(np.uint16)
    lengths: tuple[Column[np.int32], Column[np.int32]] = Column(np.int32), Column(np.int32)
    hashes: tuple[Column[np.int64], Column[np.int64]] = Column(np.int64), Column(np.int64)
    similar = rules.least_similarity is not None
    bands: list[Column[np.int64]] = [Column(np.int64) for _ in range(BANDS if similar else 0)]
    columns: tuple[Column[Any], ...] = (problems, *lengths, *hashes, *bands)
    try:
        for scanned in in_order(ScanChunk(rules), read_chunks(files, chunk_bytes)):
            problems.append(scanned.problem)
            lengths[0].append(scanned.source_lengths)
            lengths[1].append(scanned.target_lengths)
            hashes[0].append(scanned.exact)
            hashes[1].append(scanned.near)
            for column, values in zip(bands, scanned.signature.T, strict=True):
                column.append(np.ascontiguousarray(values))

        begin_phase("finding duplicates")
        problem = np.array(problems.read())
        _refuse_other_encoding(files, problem)
        problem[overlap.mask(0, len(problem)) & (problem == 0)] = 1 + REASONS.index("overlap")
        sides = lengths[0].read(), lengths[1].read()
        usual = usual_log_ratio(*sides, np.flatnonzero(problem == 0))
        problem[far_lengths(*sides, usual) & (problem == 0)] = 1 + REASONS.index("length_ratio")

        for reason, column in (("duplicate", hashes[0]), ("near_duplicate", hashes[1])):
            # Among the pairs that are left: a pair that is dropped must not take another along.
            left = np.flatnonzero(problem == 0)
            values = column.read()[left]
            repeats = repeated_pairs(values, np.zeros_like(values))
            problem[left[repeats.mask(0, len(left))]] = 1 + REASONS.index(reason)

        if rules.least_similarity is not None:
            left = np.flatnonzero(problem == 0)
            rows = similar_rows([each.read() for each in bands], left, rules.least_similarity)
            problem[rows] = 1 + REASONS.index("similar")
    finally:
        for each in columns:
            each.close()

    if problem.all():
        raise DataError(f"no pair of {files.sources[0]} is good enough to keep")

    begin_phase("writing the text")
    work = _beside(read_chunks(files, chunk_bytes), problem)
    with contextlib.ExitStack() as opened:
        written = [opened.enter_context(path.open("xb")) for path in out]
        for parts in in_order(WriteChunk(logs=len(out) > 2), work):
            for file, part in zip(written, parts, strict=False):
                file.write(part)

    counts = np.bincount(problem, minlength=len(REASONS) + 1).tolist()
    return {
        "read": len(problem),
        "kept": counts[0],
        "dropped": dict(zip(REASONS, counts[1:], strict=True)),
    }


def _refuse_other_encoding(files: PairFiles, problem: npt.NDArray[np.uint16]) -> None:
    count = int((problem == 1 + REASONS.index("invalid_utf8")).sum())
    if is_other_encoding(count, len(problem)):
        raise DataError(
            f"{count:,} of {len(problem):,} pairs of {', '.join(map(str, files.all))} are not"
            " UTF-8",
            hint=TO_UTF_8,
        )


def _beside(
    chunks: Iterable[Chunk], problem: npt.NDArray[np.uint16]
) -> Iterator[tuple[Chunk, npt.NDArray[np.uint16]]]:
    """Each chunk with the part of ``problem`` for its pairs."""
    first = 0
    for chunk in chunks:
        # As many as ``Chunk.pairs`` has: the last line of a file may lack its end.
        count = chunk.source.count(b"\n") + (not chunk.source.endswith(b"\n"))
        yield chunk, problem[first : first + count]
        first += count


def _repaired(line: str) -> str:
    return compose(repaired(line.encode("utf-8", "replace").decode()))


def _hash(text: str) -> int:
    """The same on every machine, which Python's own hash is not."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), signed=True)


def _near_hash(source: str, target: str) -> int:
    letters = [_letters(source), _letters(target)]
    # Two pairs of numbers are not alike because both have no letters.
    return _hash("\n".join(letters) if all(letters) else f"{source}\n\n{target}")


def _letters(text: str) -> str:
    return _no_letters().sub("", text.casefold())


@functools.cache
def _no_letters() -> re.Pattern[str]:
    return re.compile(rf"(?:[^\w{combining_marks()}]|[\d_])+")


def _fingerprint(files: PairFiles, rules: Rules, overlap: RowSet, *, logs: bool) -> str:
    """SHA-256 over everything that decides what is written."""
    recipe = {
        "version": _VERSION,
        "inputs": hashes_of_inputs(files.all),
        "format": files.format,
        "rules": dataclasses.asdict(rules),
        "overlap": overlap.tolist(),
        "logs": logs,
    }
    return hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()
