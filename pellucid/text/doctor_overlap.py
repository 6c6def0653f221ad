"""Test sentences that stand in the training text too."""

import contextlib
import string
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pellucid.text.doctor_blocks import iterate_blocks

_IGNORED = (string.punctuation + " \t\r\0\v\f").encode()


def overlapping_rows(training: Path, test: Path) -> npt.NDArray[np.int64]:
    """Rows of ``test``, from 0, whose text is a line of ``training``.

    The case and punctuation of ASCII and all spacing are ignored. Lines are compared by 64-bit
    hashes; those of ``test`` alone are kept.

    Raises InputMissingError if a file cannot be read, DataError if it is damaged gzip.
    """
    wanted = np.concatenate([np.empty(0, np.int64), *_hashes(test)])
    found = [block[np.isin(block, wanted)] for block in _hashes(training)]
    known = np.concatenate([np.empty(0, np.int64), *found])
    known = known[known != hash(b"")]
    return np.flatnonzero(np.isin(wanted, known))


def _hashes(path: Path) -> Iterator[npt.NDArray[np.int64]]:
    with contextlib.closing(iterate_blocks(path)) as blocks:
        for block in blocks:
            lines = block.translate(None, _IGNORED).lower().split(b"\n")
            if block.endswith(b"\n"):
                lines.pop()
            yield np.fromiter(map(hash, lines), np.int64, len(lines))
