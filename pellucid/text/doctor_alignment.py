"""Where two files stop belonging together line by line, from the looks of their lines.

A translation resembles its source in its length, its numbers, the sign it ends in, its commas and
capitals. Where one side has slipped, neighbors look like strangers and lines one apart like
translations.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from pellucid.text.doctor_likeness import Likeness, Scores
from pellucid.text.doctor_scan import SideScan

_LARGEST_SLIP = 3
"""Lines, for files with as many lines; slips of more are rare, and each one tried costs time."""
_ALARM = 15.0
"""Nats. Over fourteen parallel corpora of 1,000 to 164,000 lines the right alignment reached -1
at most; see ``_surprise``."""
_ROUNDS = 2
"""Scores learned from files that part are half wrong; those learned again with the parting known
place it better in small files."""
_TRIAL = 1 << 16
"""Lines by which the best slip is chosen."""
_BLOCK = 1 << 18
"""Lines looked at together, to bound memory."""


@dataclass(frozen=True)
class Misalignment:
    """A stretch of lines that do not belong together."""

    line: int
    """The first that is wrong, from 1."""
    last_line: int
    """The last that is wrong."""
    slip: int
    """How many lines further down in the source file (up, if negative) the right ones stand."""


def find_misalignment(source: SideScan, target: SideScan) -> Misalignment | None:
    """The most likely place where the files part, or None if they agree.

    Files of different line counts always part somewhere. A slip is named within a few dozen
    lines, and found if it holds for some dozens; where lines have nothing to tell them apart,
    nothing is found.
    """
    surplus = source.line_count - target.line_count
    shared = min(source.line_count, target.line_count)
    longer = max(source.line_count, target.line_count)
    if not shared:
        return Misalignment(1, longer, surplus) if surplus else None
    if surplus:
        parting = 0
        scores = _learn(source, target, (0, surplus))
        for _ in range(_ROUNDS):
            parting = _parting(scores, surplus, shared)
            scores = Likeness.learn(source, target, surplus, parting)
        return Misalignment(parting + 1, longer, surplus)
    scores = _learn(source, target, range(-_LARGEST_SLIP, _LARGEST_SLIP + 1))
    for start in range(0, shared, _BLOCK):
        found = None
        earlier = _slipped_stretch(scores, start, min(shared, start + _BLOCK))
        while earlier is not None:  # the longest is found first
            found = earlier
            earlier = _slipped_stretch(scores, start, found.line - 1)
        if found is not None:
            return found
    return None


def _learn(source: SideScan, target: SideScan, slips: Iterable[int]) -> Likeness:
    """Scores learned at the slip, of these, that makes the two sides most alike."""
    shared = min(source.line_count, target.line_count)
    sample = min(shared, _TRIAL)
    learned = {slip: Likeness.learn(source, target, slip) for slip in slips}
    best = max(learned, key=lambda slip: float(learned[slip].of(slip, 0, sample).sum()))
    return learned[best]


def _parting(scores: Likeness, surplus: int, shared: int) -> int:
    """The row up to which lines agree as they stand and after which they agree slipped."""
    total = highest = 0.0
    parting = 0
    for start in range(0, shared, _BLOCK):
        stop = min(shared, start + _BLOCK)
        gain = scores.of(0, start, stop) - scores.of(surplus, start, stop)
        totals = total + np.cumsum(gain, dtype=np.float64)
        row = int(np.argmax(totals))
        if totals[row] > highest:
            highest, parting = float(totals[row]), start + row + 1
        total = float(totals[-1])
    return parting


def _slipped_stretch(scores: Likeness, start: int, stop: int) -> Misalignment | None:
    """The stretch of rows ``start`` to ``stop`` that gains most by a slip, if any gains enough."""
    if start == stop:
        return None
    window = scores.window(start, stop, reach=_LARGEST_SLIP)
    in_place = window.of(0)
    slips = [slip for slip in range(-_LARGEST_SLIP, _LARGEST_SLIP + 1) if slip]
    height, first, last, slip = max(
        (*_largest_sum(window.of(slip) - in_place), slip) for slip in slips
    )
    in_place[first:last] = window.of(slip)[first:last]
    away = scores.source.line_count // 2 + _LARGEST_SLIP + 1
    if height == 0.0 or _surprise(height, scores.of(away, start, stop) - in_place) < _ALARM:
        return None
    return Misalignment(start + first + 1, start + last, slip)


def _largest_sum(gain: Scores) -> tuple[float, int, int]:
    """The stretch ``gain[first:last]`` with the largest sum, as (sum, first, last)."""
    totals = np.concatenate(([0.0], np.cumsum(gain, dtype=np.float64)))
    rises = totals - np.minimum.accumulate(totals)
    last = int(np.argmax(rises))
    first = int(np.argmin(totals[: last + 1]))
    return float(rises[last]), first, last


def _surprise(height: float, walk: Scores) -> float:
    """How much against chance a rise of ``height`` is in the gain of a slip, in nats.

    The gain sums up like a random walk: downhill if the lines belong together. Such a walk with
    mean -m and variance v climbs to h with a chance of about exp(-2 h m / v), so the height is
    measured in units of v / 2m, with ln(number of lines) for as many tries. ``walk``, from the
    lines where they belong to strangers, stands for it.
    """
    slope, variance = -float(walk.mean()), float(walk.var())
    if slope <= 0.0 or variance == 0.0:
        return 0.0  # neighbors fit no better than strangers: the traits say nothing here
    return 2 * height * slope / variance - float(np.log(len(walk)))
