"""The rules by which a pair of a corpus is judged.

``pellucid check`` reports what they find, ``prepare`` and ``check --fix`` drop such pairs, and
batches of a table get a column with it.
"""

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from pellucid.text.check.scan import BlockScan, scan_block
from pellucid.text.corpus.rows import RowSet

Reason = Literal[
    "invalid_utf8",
    "empty",
    "too_long",
    "source_equals_target",
    "other_language",
    "overlap",
    "length_ratio",
    "duplicate",
    "near_duplicate",
    "similar",
]
REASONS: tuple[Reason, ...] = get_args(Reason)
"""Why a pair is dropped; of several the first counts."""
_LARGEST_RATIO = 4.0
"""Times the corpus's median ratio of lengths. Larger ratios have 2 of 29,000 pairs of Multi30k
(their translation is "@@"), none of 164,000 of Tatoeba, 11 of 20,000 of Europarl (10 are
misaligned)."""
_PADDING = 10
"""Characters added to both sides before their ratio is taken, so that "Go!" may be "Geh weg!"."""
_SPREAD = 1 << 20
"""Pairs over which the usual ratio is taken, at most."""


def scan_pairs(
    sources: Sequence[str], targets: Sequence[str]
) -> tuple[BlockScan, BlockScan, npt.NDArray[np.bool_]]:
    """The scans of both sides, and a mask of the pairs whose sides are the same once normalized; no
    line end is in a text."""
    source, target = (
        scan_block("".join(f"{text}\n" for text in side).encode("utf-8", "replace"))
        for side in (sources, targets)
    )
    is_copy: npt.NDArray[np.bool_] = source.hashes == target.hashes
    return source, target, is_copy


def far_lengths(
    source: npt.NDArray[np.int32], target: npt.NDArray[np.int32], usual: float
) -> npt.NDArray[np.bool_]:
    """Return a mask of the pairs whose lengths, in characters, are far from the ``usual`` log
    ratio."""
    is_far: npt.NDArray[np.bool_] = np.abs(_log_ratio(source, target) - usual) > np.log(
        _LARGEST_RATIO
    )
    return is_far


def usual_log_ratio(
    source: npt.NDArray[np.int32], target: npt.NDArray[np.int32], rows: npt.NDArray[np.int64]
) -> float:
    """The median log ratio of lengths over these rows, or over a million spread over them."""
    some = rows[:: -(-len(rows) // _SPREAD) or 1]
    return float(np.median(_log_ratio(source[some], target[some]))) if len(some) else 0.0


def _log_ratio(
    source: npt.NDArray[np.int32], target: npt.NDArray[np.int32]
) -> npt.NDArray[np.float32]:
    # The logarithm treats twice as long and half as long alike.
    ratio = np.log(source.astype(np.float32) + _PADDING)
    ratio -= np.log(target.astype(np.float32) + _PADDING)
    return ratio


_Hashes = npt.NDArray[np.int64]

_TOGETHER = 1 << 20
"""Hashes that are sorted together, to bound memory. With more there are several parts, each of
which takes a pass over all hashes."""
_MIXER = np.int64(0x2545F4914F6CDD1D)
"""Odd and irregular (the multiplier of xorshift64*): source and target hash must not cancel."""


def repeated_pairs(source: _Hashes, target: _Hashes, together: int = _TOGETHER) -> RowSet:
    """Rows whose two hashes occur together in an earlier row; ``together`` are sorted at a time."""
    count = len(source)

    # The lowest bits of the mixed hash decide the part, so that equal pairs are in the same one.
    part_count = 1 << max(0, (count - 1).bit_length() - (together - 1).bit_length())
    found = RowSet()
    for part in range(part_count):
        rows, hashes = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for start in range(0, count, together):
            stop = min(count, start + together)
            with np.errstate(over="ignore"):
                mixed = source[start:stop] * _MIXER + target[start:stop]
            here = np.flatnonzero((mixed & (part_count - 1)) == part)
            rows.append(here + start)

            # Rows come in rising order, so that ``repeated_rows`` calls the later of two equal
            # pairs repeated.
            hashes.append(mixed[here])
        found.add(np.concatenate(rows)[repeated_rows(np.concatenate(hashes))])

    return found


def repeated_rows(hashes: _Hashes) -> npt.NDArray[np.int64]:
    """Positions, in rising order, of hashes that also occur at an earlier position."""
    # Stable, so that of equal hashes the first in the file comes first and is not counted.
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    return np.sort(order[1:][ordered[1:] == ordered[:-1]])
