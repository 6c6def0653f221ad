"""Pairs that are similar to an earlier one: MinHash of shingles, in bands (LSH), by integers alone.

A pair is the set of its shingles: each five characters in a row of its letters, source and target
one after the other. Two pairs are as similar as the share of shingles that they have in common
(Jaccard's index). A signature of 64 bytes estimates it: byte i is the lowest byte of the smallest
value that hash function i gives to a shingle of the pair, and two pairs have the same smallest
value with that probability (Broder, 1997). Eight bytes side by side are a band: pairs with an equal
band are compared, which finds 77% of pairs as similar as 0.8 and 99% of 0.9 (Leskovec et al.,
Mining of Massive Datasets, chapter 3).

All of it is arithmetic of whole numbers over blocks of lines, so signatures are the same on every
machine and for every division into blocks.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from pellucid.text.shuffling import WEYL, mixed

_Words = npt.NDArray[np.uint64]
_Rows = npt.NDArray[np.int64]

BANDS = 8
"""Numbers of 64 bits in a signature; each is a band of eight bytes."""
_HASHES = BANDS * 8
"""Hash functions, one for each byte of a signature."""
_SHINGLE = 5
"""Characters; about a word of English, as is usual for finding duplicates."""
_END = 0x10FFFF + 1
"""Stands behind each side; no character has this number."""
_LARGEST = np.uint64(0xFFFFFFFFFFFFFFFF)
_TOGETHER = 1 << 20
"""Rows whose bands are sorted together, to bound memory, as for equal pairs."""
_COMPARED = 1 << 16
"""Rows whose signatures are compared at once, to bound memory."""
_LEADERS = 16
"""The most pairs of a group with an equal band that each other one of it is compared with."""


def _keys() -> _Words:
    """An odd number for each hash function, drawn as by SplitMix64: products lose no bit."""
    numbers = []
    number = np.array([1], np.uint64)
    for _ in range(_HASHES):
        number = mixed(number, turn=np.uint64(1))
        numbers.append(number[0] | np.uint64(1))
    return np.array(numbers, np.uint64)


_KEYS = _keys()


def signatures(texts: Sequence[tuple[str, str]]) -> npt.NDArray[np.int64]:
    """The signature of each pair of texts: (pairs, bands).

    All its bands are 0 for a pair of fewer than five characters, which has no shingle.
    """
    lengths = np.array([len(a) + len(b) + 2 for a, b in texts], np.int64)
    if not len(lengths):
        return np.empty((0, BANDS), np.int64)

    # One array of characters for all pairs, so that NumPy walks it and not Python.
    joined = "\n".join(side for pair in texts for side in pair) + "\n"
    letters = np.frombuffer(joined.encode("utf-32-le", "replace"), np.uint32).astype(np.uint64)
    starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)[:-1]))
    letters[starts + lengths - 1] = _END
    letters[starts + np.array([len(a) for a, _ in texts], np.int64)] = _END

    with np.errstate(over="ignore"):
        # A shingle is a number of five digits to the base ``WEYL``, the first letter in front.
        shingles = letters.copy()
        for place in range(1, _SHINGLE):
            shingles *= WEYL
            shingles[:-place] += letters[place:]
        shingles = mixed(shingles)

        # Shingles that reach into the next pair are marked by 0. ``raised`` makes their values the
        # largest number, so that they are never the smallest of a pair.
        for place in range(1, _SHINGLE):
            shingles[starts + np.maximum(lengths - place, 0)] = 0
        raised = np.where(shingles == 0, _LARGEST, np.uint64(0))

        smallest = np.empty((len(texts), BANDS * 8), np.uint8)
        values, shifted = np.empty_like(shingles), np.empty_like(shingles)
        for number, key in enumerate(_KEYS):
            # In place: the arrays are larger than a processor's caches.
            np.multiply(shingles, key, out=values)
            np.right_shift(values, np.uint64(32), out=shifted)
            np.bitwise_xor(values, shifted, out=values)
            np.bitwise_or(values, raised, out=values)
            smallest[:, number] = np.minimum.reduceat(values, starts).astype(np.uint8)

    smallest[lengths < _SHINGLE + 2] = 0  # the length counts the two ends
    return smallest.view("<u8").astype(np.int64)


def similarity(one: npt.NDArray[np.int64], other: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Estimates of how similar pairs are, by their signatures: (pairs, bands) each."""
    equal = one.astype("<i8").view(np.uint8) == other.astype("<i8").view(np.uint8)
    share = equal.reshape(len(one), _HASHES).mean(axis=1)
    # Of 256 different values one has the same byte by chance.
    estimates: npt.NDArray[np.float64] = (share - 1 / 256) / (1 - 1 / 256)
    return estimates


def similar_rows(
    bands: Sequence[npt.NDArray[np.int64]],
    rows: _Rows,
    least: float,
    together: int = _TOGETHER,
) -> _Rows:
    """The rows of ``rows`` (rising) that are similar to an earlier one that stays.

    ``bands`` has the columns of the signatures, ``least`` is the smallest similarity. A row that is
    dropped takes none along: of a, b and c, of which b is similar to both others but a not to c,
    b is dropped and c stays.
    """
    edges = [np.empty((0, 2), np.int64)]
    for band in bands:
        for group in _groups(band, rows, together):
            edges += _compared(bands, *group, least)
    found = np.unique(np.concatenate(edges), axis=0)

    # In the order of the rows, so that it is known of each earlier one whether it stays.
    dropped: set[int] = set()
    for row, earlier in found.tolist():
        if earlier not in dropped:
            dropped.add(row)
    return np.array(sorted(dropped), np.int64)


def _groups(
    band: npt.NDArray[np.int64], rows: _Rows, together: int
) -> Iterator[tuple[_Rows, npt.NDArray[np.int64]]]:
    """The rows that share their value of a band with others, and the values, sorted by value.

    Yields them in parts of about ``together`` rows, to bound memory; equal values are in one part.
    Rows without a shingle are in none.
    """
    parts = 1 << max(0, (len(rows) - 1).bit_length() - (together - 1).bit_length())
    for part in range(parts):
        kept_rows, kept_values = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for start in range(0, len(rows), together):
            some = rows[start : start + together]
            values = band[some]
            here = values != 0
            # The part of a value is decided by its lower bits, mixed with higher ones.
            here &= (values ^ values >> 29) & (parts - 1) == part
            kept_rows.append(some[here])
            kept_values.append(values[here])

        of_part, values = np.concatenate(kept_rows), np.concatenate(kept_values)

        # Stable, so that the rows of a value stay in order.
        order = np.argsort(values, kind="stable")
        of_part, values = of_part[order], values[order]
        yield _shared(of_part, values)


def _shared(rows: _Rows, values: npt.NDArray[np.int64]) -> tuple[_Rows, npt.NDArray[np.int64]]:
    """The rows that share their value with a neighbor, and their values."""
    is_like_last = np.concatenate(([False], values[1:] == values[:-1]))
    is_shared = is_like_last | np.concatenate((is_like_last[1:], [False]))[: len(values)]
    return rows[is_shared], values[is_shared]


def _compared(
    bands: Sequence[npt.NDArray[np.int64]],
    rows: _Rows,
    values: npt.NDArray[np.int64],
    least: float,
) -> list[npt.NDArray[np.int64]]:
    """The similar pairs of rows with equal values, in blocks: (pairs, 2), the later row first.

    Each row is compared with the first of its group, its leader. Those that are not similar to it
    are the groups of the next round, so that no group needs all its pairs compared.
    """
    edges = []

    for _ in range(_LEADERS):
        if not len(rows):
            break
        is_first = np.concatenate(([True], values[1:] != values[:-1]))
        leaders = rows[np.maximum.accumulate(np.where(is_first, np.arange(len(rows)), 0))]
        others = np.flatnonzero(~is_first)

        is_similar = np.zeros(len(rows), np.bool_)
        for start in range(0, len(others), _COMPARED):
            some = others[start : start + _COMPARED]
            one, other = (
                np.stack([band[each[some]] for band in bands], axis=1) for each in (rows, leaders)
            )
            is_similar[some] = similarity(one, other) >= least
        edges.append(np.stack((rows[is_similar], leaders[is_similar]), axis=1))

        left = ~(is_first | is_similar)
        rows, values = _shared(rows[left], values[left])

    return edges
