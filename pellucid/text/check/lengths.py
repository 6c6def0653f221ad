"""Two parallel files that do not belong together line by line, found by their lengths.

A long sentence has a long translation. Where one side has slipped by a line, the lengths of
neighbors stop agreeing and those one line apart begin to.
"""

import numpy as np
import numpy.typing as npt

Lengths = npt.NDArray[np.integer]
Scores = npt.NDArray[np.float64]

_LARGEST_MISFIT = 3.0
"""Standard deviations; one free translation must not outweigh many lines."""
_LARGEST_SLIP = 3
"""Lines; slips of more are rare, and each one tried may raise a false alarm."""
_ALARM = 25.0
"""Nats. Over nine parallel corpora of 1,000 to 160,000 lines the right alignment reached 9, the
alphabetical cmudict 20; a stretch of 100 lines slipped by one reached 40 to 400."""
_BLOCK = 1 << 18
"""Lines looked at together, to bound memory."""
_MEDIAN_TO_DEVIATION = 1.4826
"""Of a normal distribution: 1 / Φ⁻¹(3/4)."""


def first_suspicious_line(source_lengths: Lengths, target_lengths: Lengths) -> int:
    """Where a file with lines too many or too few goes wrong: a line number, from 1.

    It is the place that best splits the files into a part that agrees line by line and one
    that agrees after the surplus lines are skipped; a few dozen lines off, if lengths say little.
    """
    source, target = _log_lengths(source_lengths), _log_lengths(target_lengths)
    slip = len(source) - len(target)
    shared = min(len(source), len(target))
    if not shared:
        return 1
    begins, ends = source[:shared] - target[:shared], source[-shared:] - target[-shared:]
    begins, ends = begins - np.median(begins), ends - np.median(ends)
    deviation = min(_deviation(begins), _deviation(ends))
    before, after = _misfit(begins, deviation), _misfit(ends, deviation)
    cost = np.concatenate(([0.0], np.cumsum(before - after)))
    return int(np.argmin(cost)) + 1 if slip else shared + 1


def slipped_stretch(source_lengths: Lengths, target_lengths: Lengths) -> tuple[int, int] | None:
    """The stretch of lines, (first, last) from 1, that would agree better if shifted, or None.

    For two files with as many lines: one line lost on one side, and another lost elsewhere on
    the other, leave everything between them wrong. Stretches of a hundred lines are found where
    lengths say as much as they do between languages; where they say nothing, nothing is found.
    """
    for start in range(0, len(source_lengths), _BLOCK):
        block = slice(start, start + _BLOCK)
        found = _slipped_in(
            _log_lengths(source_lengths[block]), _log_lengths(target_lengths[block])
        )
        if found is not None:
            return start + found[0] + 1, start + found[1]
    return None


def _slipped_in(source: Scores, target: Scores) -> tuple[int, int] | None:
    """``slipped_stretch`` for one block, as gain[first:last].

    The gain of a shift sums up like a random walk: downhill if the lines belong together. Such
    a walk with mean -m and variance v climbs to h with a chance of about exp(-2 h m / v), so
    the height is measured in units of v / 2m, with ln(number of lines) for as many tries.
    """
    slips = range(-_LARGEST_SLIP, _LARGEST_SLIP + 1)
    differences = {slip: np.roll(source, slip) - target for slip in slips}
    deviation = min(map(_deviation, differences.values()))
    misfits = {slip: _misfit(difference, deviation) for slip, difference in differences.items()}
    strangers = _misfit(np.roll(source, len(source) // 2 + _LARGEST_SLIP) - target, deviation)
    walk = min(misfits.values(), key=lambda misfit: float(misfit.sum())) - strangers
    slope, variance = -float(walk.mean()), float(walk.var())
    if slope <= 0.0 or variance == 0.0:
        return None  # neighbors fit no better than strangers: lengths say nothing here
    height, first, last = max(_largest_sum(misfits[0] - misfits[slip]) for slip in slips if slip)
    evidence = 2 * height * slope / variance - np.log(len(source))
    return (first, last) if evidence > _ALARM else None


def _log_lengths(lengths: Lengths) -> Scores:
    logs = np.log1p(np.asarray(lengths, dtype=np.float64))
    return logs - (np.median(logs) if len(logs) else 0.0)


def _deviation(difference: Scores) -> float:
    """The standard deviation of differences that belong together, whatever else is among them."""
    return float(np.median(np.abs(difference))) * _MEDIAN_TO_DEVIATION + 1e-3


def _misfit(difference: Scores, deviation: float) -> Scores:
    """How unlikely each difference of log lengths is: half its square in standard deviations."""
    misfit: Scores = np.minimum(np.abs(difference) / deviation, _LARGEST_MISFIT) ** 2 / 2
    return misfit


def _largest_sum(gain: Scores) -> tuple[float, int, int]:
    """The stretch ``gain[first:last]`` with the largest sum, as (sum, first, last)."""
    totals = np.concatenate(([0.0], np.cumsum(gain)))
    rises = totals - np.minimum.accumulate(totals)
    last = int(np.argmax(rises))
    first = int(np.argmin(totals[: last + 1]))
    return float(rises[last]), first, last
