"""Pairs that stood in an earlier line, found by their hashes in bounded memory."""

import numpy as np
import numpy.typing as npt

from pellucid.text.row_set import RowSet

_Hashes = npt.NDArray[np.int64]

_TOGETHER = 1 << 20
"""Hashes that are sorted together; of more, as many parts are made as are needed, each in a pass
over all of them."""
_MIXER = np.int64(0x2545F4914F6CDD1D)
"""Odd and irregular (the multiplier of xorshift64*): source and target hash must not cancel."""


def repeated_pairs(source: _Hashes, target: _Hashes) -> RowSet:
    """Rows whose two hashes stand together in an earlier row too."""
    count = len(source)
    part_count = 1 << max(0, (count - 1).bit_length() - (_TOGETHER - 1).bit_length())
    found = RowSet()
    for part in range(part_count):
        rows, hashes = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for start in range(0, count, _TOGETHER):
            stop = min(count, start + _TOGETHER)
            with np.errstate(over="ignore"):
                mixed = source[start:stop] * _MIXER + target[start:stop]
            here = np.flatnonzero((mixed & (part_count - 1)) == part)
            rows.append(here + start)
            hashes.append(mixed[here])
        found.add(np.concatenate(rows)[repeated_rows(np.concatenate(hashes))])
    return found


def repeated_rows(hashes: _Hashes) -> npt.NDArray[np.int64]:
    """Places, rising, of hashes that stand in an earlier place too."""
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    return np.sort(order[1:][ordered[1:] == ordered[:-1]])
