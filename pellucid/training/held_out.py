"""Pairs that are held out for validation: none of their sources stands in the training text.

Sources are compared as ``pellucid check`` compares lines: case, spacing, the punctuation of ASCII
and the form of Unicode do not count.
"""

import string
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from pellucid.core.errors import DataError
from pellucid.text.corpus.store import StoreReport
from pellucid.text.normalization import normalize

_HELD_OUT_SHARE = 0.02
_MOST_HELD_OUT = 1000
_PERMUTED_AT_ONCE = 1 << 20
"""Pairs; with more, candidates are drawn one by one instead of permuting all of them."""
_CANDIDATES = 8
"""Pairs that are drawn for each one that is held out: many may have sources that are frequent."""
_PUNCTUATION = string.punctuation.encode()

_Rows = npt.NDArray[np.int64]


def held_out_count(pairs: int) -> int:
    """How many of ``pairs`` training pairs are held out if no validation file is named."""
    return min(_MOST_HELD_OUT, max(1, round(_HELD_OUT_SHARE * pairs)))


def comparable(text: str) -> bytes:
    """Return the text without differences of case, spacing and punctuation."""
    folded = unicodedata.normalize("NFC", normalize(text).casefold())
    letters = "".join(folded.split()).encode("utf-8", "surrogatepass")
    # A text of nothing but marks is not every other such text.
    return letters.translate(None, _PUNCTUATION) or letters


def keys_of(texts: Iterable[str], count: int) -> _Rows:
    """A number of 64 bits for each of ``count`` texts; equal for texts that are comparable."""
    return np.fromiter((hash(comparable(text)) for text in texts), np.int64, count)


def draw_held_out(keys: _Rows, parts: Sequence[int], seed: int, report: StoreReport) -> _Rows:
    """The rows to validate on, in rising order: about ``held_out_count`` of all.

    ``keys`` has one key for each pair; pairs with equal ones are held out together, or not at all.
    ``parts`` says how many pairs there are of each file, of which none is held out whole.

    Raises DataError if nothing could be learned from then; ``report`` says why there is so little.
    """
    count, total = held_out_count(len(keys)), len(keys)
    random = np.random.Generator(np.random.PCG64(seed))
    if total <= _PERMUTED_AT_ONCE:
        drawn = random.permutation(total)[: _CANDIDATES * count]
    else:
        drawn = random.choice(total, _CANDIDATES * count, replace=False)

    groups = list(_groups(keys, drawn))
    held = _within(count, groups, parts)
    if not held:
        # All are larger than wanted: the smallest, as long as anything is left to learn from.
        held = _within(total - 1, sorted(groups, key=len), parts)[:1]
    if not held:
        raise nothing_is_left(total, report)
    return np.sort(np.concatenate(held))


def _within(most: int, groups: Iterable[_Rows], parts: Sequence[int]) -> list[_Rows]:
    """Groups of ``most`` rows at most together, in order, that leave each part a row."""
    ends, left = np.cumsum(parts), np.array(parts)
    held: list[_Rows] = []
    for rows in groups:
        taken = np.bincount(np.searchsorted(ends, rows, side="right"), minlength=len(left))
        if len(rows) <= most and (taken < np.maximum(left, 1)).all():
            held.append(rows)
            left -= taken
            most -= len(rows)
    return held


def _groups(keys: _Rows, drawn: _Rows) -> Iterator[_Rows]:
    """All rows with the key of each drawn row, in the order of drawing, each group once."""
    wanted, first = np.unique(keys[drawn], return_index=True)
    rows = np.flatnonzero(np.isin(keys, wanted))
    order = np.argsort(keys[rows], kind="stable")
    groups = np.split(rows[order], np.flatnonzero(np.diff(keys[rows][order])) + 1)
    # ``wanted`` and ``groups`` are both in the order of keys.
    yield from (groups[place] for place in np.argsort(first, kind="stable"))


def nothing_is_left(total: int, report: StoreReport) -> DataError:
    """The error for text of which no pair can be held out; ``report`` counts what was dropped."""
    dropped = [
        f"{count:,} {what}"
        for count, what in (
            (report.empty, "are blank on a side"),
            (report.too_long, "have too many tokens (data.max_length) or none"),
        )
        if count
    ]
    usable = f" of {report.read:,}, as {' and '.join(dropped)}" if dropped else ""

    if total == 1:
        message = f"there must be pairs to learn from and one to validate on, got one{usable}"
    else:
        message = (
            "the pairs to validate on must have other sources than those to learn from, and all"
            f" {total:,}{usable} have the same"
        )
    return DataError(message, hint="name text to validate on: --valid SOURCE TARGET")
