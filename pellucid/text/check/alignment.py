"""Finds where two parallel files are misaligned, from surface traits of their lines.

A translation resembles its source in its length, its numbers, its last sign, its commas and its
capitals. Where one side is shifted, lines next to each other do not resemble each other, and lines
at the distance of the shift do. ``Likeness`` learns to score a pair of lines from the files
themselves; ``find_misalignment`` searches for the shift.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from pellucid.text.check.scan import TRAITS, SideScan

Scores = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]

_CODES = 16
"""Values that a trait can have."""
_DOUBT = 3.0
"""A score that was estimated from so many pairs counts half."""
_LARGEST_MISFIT = 3.0
"""Standard deviations; one free translation must not outweigh many lines."""
_LARGEST_CORRELATION = 0.99
"""The density of the normal distribution is infinite at 1."""
_SAMPLE = 200_000
"""Pairs from which scores are learned, spread over the corpus."""


@dataclass(frozen=True)
class Likeness:
    """The score of a source and a target line, positive for translations.

        sum over traits of log p(source trait, target trait) / (p(source trait) p(target trait))

    This is their pointwise mutual information if the traits are independent. The logarithm of the
    length is taken to be normally distributed; the other traits (digits, last sign, capitals,
    signs and commas) have tables of counts.
    """

    source: SideScan
    target: SideScan
    centers: tuple[float, float]
    """Median log length of each side."""
    deviations: tuple[float, float]
    correlation: float
    """The correlation of the log lengths."""
    tables: list[npt.NDArray[np.float32]]
    """(source code, target code) for each counted trait"""

    @classmethod
    def learn(cls, source: SideScan, target: SideScan, slip: int, parting: int = 0) -> Self:
        """Learn from pairs of rows: each target row with the source row ``slip`` rows later.

        Before the target row ``parting`` the slip is 0.
        """
        shared = min(source.line_count, target.line_count)

        # Evenly spread: the beginning of a corpus is often of another kind than its end.
        rows = np.arange(0, shared, shared // _SAMPLE + 1)
        partners = (rows + slip * (rows >= parting)) % source.line_count

        # log(1 + length), because lines may be empty.
        logs = np.log1p(source.lengths[partners]), np.log1p(target.lengths[rows])
        centers = float(np.median(logs[0])), float(np.median(logs[1]))
        deviations = float(logs[0].std()) + 1e-3, float(logs[1].std()) + 1e-3  # never zero
        products = (logs[0] - logs[0].mean()) * (logs[1] - logs[1].mean())
        correlation = float(products.mean()) / (deviations[0] * deviations[1])

        codes = zip(_codes(source, partners), _codes(target, rows), strict=True)
        tables = [_table(one, other) for one, other in codes]

        # A negative correlation would come from misaligned or unrelated text, and would reward long
        # lines beside short ones.
        correlation = min(max(correlation, 0.0), _LARGEST_CORRELATION)
        return cls(source, target, centers, deviations, correlation, tables)

    def of(self, slip: int, start: int, stop: int) -> Scores:
        """The scores of target rows ``start`` to ``stop`` with the source rows ``slip`` later."""
        return self.window(start, stop, slip).of(0)

    def window(self, start: int, stop: int, slip: int = 0, reach: int = 0) -> "Window":
        """Target rows ``start`` to ``stop``, with the source rows ``slip`` rows later.

        ``reach`` more source rows are included at either end. After the last source row the first
        one follows.
        """
        rows = np.arange(start, stop)

        # The sources of all slips at once, normalized and looked up a single time.
        around = np.arange(start + slip - reach, stop + slip + reach) % self.source.line_count
        return Window(
            self,
            reach,
            self._normalized(0, self.source.lengths[around]),
            self._normalized(1, self.target.lengths[rows]),
            [code * np.uint8(_CODES) for code in _codes(self.source, around)],
            _codes(self.target, rows),
        )

    def _normalized(self, side: int, lengths: npt.NDArray[np.int32]) -> Scores:
        """Log lengths in standard deviations from their center."""
        logs = np.log1p(lengths, dtype=np.float32)
        logs -= np.float32(self.centers[side])
        logs /= np.float32(self.deviations[side])
        normalized: Scores = np.clip(logs, -_LARGEST_MISFIT, _LARGEST_MISFIT)
        return normalized


@dataclass(frozen=True)
class Window:
    """Some target rows and the source rows around them, to be compared at several slips."""

    scores: Likeness
    reach: int
    source_lengths: Scores
    """Normalized; at either end ``reach`` rows more than there are target rows."""
    target_lengths: Scores
    source_codes: list[npt.NDArray[np.uint8]]
    """For each trait the codes of the rows of ``source_lengths``, times ``_CODES``."""
    target_codes: list[npt.NDArray[np.uint8]]

    def of(self, slip: int) -> Scores:
        """The score of each target row with the source row ``slip`` later, at most ``reach``."""
        there = slice(self.reach + slip, self.reach + slip + len(self.target_lengths))

        # A slip is another slice of the same arrays, so that trying it costs additions only.
        scores = self._of_lengths(self.source_lengths[there])

        codes = zip(self.source_codes, self.target_codes, strict=True)
        for table, (source, target) in zip(self.scores.tables, codes, strict=True):
            scores += table.reshape(-1)[source[there] + target]  # (source code * 16 + target code)
        return scores

    def _of_lengths(self, x: Scores) -> Scores:
        """log p(x, y) / (p(x) p(y)) of the bivariate normal distribution."""
        y, r = self.target_lengths, self.scores.correlation

        # With x and y in standard deviations this is
        #     (r x y - r² (x² + y²) / 2) / (1 - r²) - ln(1 - r²) / 2
        rest = 1 - r * r
        scores = x * y
        scores *= np.float32(r / rest)
        scores -= np.float32(r * r / (2 * rest)) * (x * x + y * y)
        scores -= np.float32(np.log(rest) / 2)

        floored: Scores = np.maximum(scores, np.float32(-(_LARGEST_MISFIT**2) / 2), out=scores)
        return floored


def _codes(side: SideScan, rows: Rows) -> list[npt.NDArray[np.uint8]]:
    traits = side.traits[rows]
    return [
        (traits >> first_bit & (1 << bits) - 1).astype(np.uint8)
        for first_bit, bits in TRAITS.values()
    ]


def _table(source: npt.NDArray[np.uint8], target: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    """The score of each pair of codes of one trait, in nats, smaller where few were seen."""
    # Each pair of codes is one cell of a table of 16 by 16, counted in one pass.
    cells = source.astype(np.int64) * _CODES + target
    joint = np.bincount(cells, minlength=_CODES * _CODES).reshape(_CODES, _CODES)
    by_chance = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True) / len(cells)

    # A pair of codes that is rare and expected to be rare says little, whatever its quotient is.
    trust = np.maximum(joint, by_chance) / (np.maximum(joint, by_chance) + _DOUBT)
    table: npt.NDArray[np.float32] = (
        trust * np.log((joint + 0.5) / (by_chance + 0.5))  # half a pair more: no log of zero
    ).astype(np.float32)
    return table


_LARGEST_SLIP = 3
"""Lines, for files of equal line counts; larger slips are rare, and each one tried takes time."""
_ALARM = 15.0
"""Nats of evidence. In fourteen parallel corpora of 1,000 to 164,000 lines the right alignment
reached -1 at most; see ``_evidence``."""
_ROUNDS = 2
"""The first scores are learned from pairs of which many are wrong. Learned again when the parting
is known, they find it more precisely in small files."""
_TRIAL = 1 << 16
"""Lines by which the best slip is chosen."""
_BLOCK = 1 << 18
"""Lines that are compared together, to bound memory."""


@dataclass(frozen=True)
class Misalignment:
    """A range of lines that are not translations of each other."""

    line: int
    """The first wrong line, from 1."""
    last_line: int
    """The last wrong line."""
    slip: int
    """How many lines later (earlier, if negative) the right line of the source file is."""


def find_misalignment(
    source: SideScan, target: SideScan, block: int = _BLOCK
) -> Misalignment | None:
    """The most likely misalignment of the files, or None if they agree.

    Files of different line counts are always misaligned somewhere. A slip is located within a few
    dozen lines, and found if it lasts for some dozens. If lines have no traits that distinguish
    them, nothing is found. ``block`` lines are compared at a time, which bounds the memory.
    """
    surplus = source.line_count - target.line_count
    shared = min(source.line_count, target.line_count)
    longer = max(source.line_count, target.line_count)
    if not shared:
        return Misalignment(1, longer, surplus) if surplus else None

    # Different line counts: from one row on, the slip must be the surplus up to the end.
    if surplus:
        parting = 0
        scores = _learn(source, target, (0, surplus))
        for _ in range(_ROUNDS):
            parting = _parting(scores, surplus, shared, block)
            scores = Likeness.learn(source, target, surplus, parting)
        return Misalignment(parting + 1, longer, surplus)

    # Equal line counts: a slip of one side and a later one of the other cancel, so that a range of
    # lines in the middle is shifted.
    scores = _learn(source, target, range(-_LARGEST_SLIP, _LARGEST_SLIP + 1))
    for start in range(0, shared, block):
        found = None
        earlier = _slipped_stretch(scores, start, min(shared, start + block))
        while earlier is not None:  # the range with the largest gain need not be the first
            found = earlier
            earlier = _slipped_stretch(scores, start, found.line - 1)

        if found is not None:
            return found

    return None


_FEWEST_JUDGED = 100
"""Fewer lines may resemble each other by chance, and are not judged."""
_LEAST_CORRELATION, _LEAST_VARIATION = 0.3, 0.1
"""The least correlation and variation of the logarithms of lengths.

Translations have a correlation of 0.77 to 0.96 (Multi30k, Tatoeba, Europarl, SCAN, CMUdict, from
100 lines on), the same lines half a file apart at most 0.42: in Multi30k, whose lengths follow a
pattern through the file. Lengths that vary by less, such as those of labels, say nothing."""
_ORDERS = 4
"""Orders of the lines in which their likeness by chance is measured."""
_LEAST_LIKENESS = 0.035
_LEAST_WITHOUT_LENGTH = 0.1
_TIMES_CHANCE = 3.0
"""Mean scores of lines, in nats. In nine corpora (captions, Tatoeba, Europarl, news, letters to
phones, commands, a grammar, short answers, single words), in samples of 100 to 20,000 lines, they
are 0.041 to 2.6 and at least 9 times those by chance; of the same lines shuffled they are at most
0.035, or at most 2 times those. Where lengths say nothing, as of short sentences in English and
Khmer, digits and marks alone must say more: a year in each sixth line is 0.46."""


def are_unrelated(source: SideScan, target: SideScan, found: Misalignment | None) -> bool:
    """Whether the lines of the files resemble each other no more than lines by chance do.

    ``found`` is what ``find_misalignment`` gave. Few lines are not judged, nor lines that are blank
    on a side, such as strings that are not translated yet. Texts of which one side has neither its
    length nor its numbers from the other, such as labels, are unrelated by this.
    """
    shared = min(source.line_count, target.line_count)
    blank = [side.problems["empty"].mask(0, shared) for side in (source, target)]
    if found is None and np.any(blank):
        full = np.flatnonzero(~(blank[0] | blank[1]))
        source, target = source.rows(full), target.rows(full)
    if min(source.line_count, target.line_count) < _FEWEST_JUDGED:
        return False

    least = _LEAST_LIKENESS
    if found is None and _length_correlation(source, target) < _LEAST_CORRELATION:
        least = _LEAST_WITHOUT_LENGTH

    # Scores are learned from the lines that they then judge, and the place where the sides part is
    # looked for in them, which flatters them: by as much for lines in any other order. Not for
    # lines further on, as some corpora repeat themselves.
    likeness = _likeness(source, target, found)
    random = np.random.default_rng(0)
    by_chance = 0.0
    for _ in range(_ORDERS):
        order = random.permutation(target.line_count)
        mixed = target.rows(order)
        place = None if found is None else find_misalignment(source, mixed)
        by_chance = max(by_chance, _likeness(source, mixed, place))
    return likeness < max(least, _TIMES_CHANCE * by_chance)


def _length_correlation(source: SideScan, target: SideScan) -> float:
    """The correlation of the logarithms of both sides' lengths; 1 where one hardly varies.

    Lines that are blank on a side do not count.
    """
    shared = min(source.line_count, target.line_count, _TRIAL)
    lengths = np.stack([source.lengths[:shared], target.lengths[:shared]]).astype(np.float64)
    logs = np.log(lengths[:, (lengths > 0).all(axis=0)])
    if logs.shape[1] < _FEWEST_JUDGED or logs.std(axis=1).min() < _LEAST_VARIATION:
        return 1.0
    return float(np.corrcoef(logs)[0, 1])


def _likeness(source: SideScan, target: SideScan, found: Misalignment | None) -> float:
    """The mean score of the lines at slip 0, and of those in ``found`` at its slip."""
    slip, first, last = (found.slip, found.line - 1, found.last_line) if found else (0, 0, 0)
    stop = min(source.line_count, target.line_count, _TRIAL)
    first, last = min(first, stop), min(last, stop)
    scores = Likeness.learn(source, target, slip, first)
    parts = [scores.of(0, 0, first), scores.of(slip, first, last), scores.of(0, last, stop)]
    return float(np.concatenate(parts).mean())


def _learn(source: SideScan, target: SideScan, slips: Iterable[int]) -> Likeness:
    """Scores learned at that one of ``slips`` at which both sides resemble each other most."""
    shared = min(source.line_count, target.line_count)
    sample = min(shared, _TRIAL)

    # Each slip is scored by what was learned at that slip: only at the right one do traits agree,
    # which makes its tables sharp.
    learned = {slip: Likeness.learn(source, target, slip) for slip in slips}
    best = max(learned, key=lambda slip: float(learned[slip].of(slip, 0, sample).sum()))
    return learned[best]


def _parting(scores: Likeness, surplus: int, shared: int, block: int) -> int:
    """The row before which slip 0 scores higher, and from which on ``surplus`` does."""
    # The sum of (score at 0 - score at surplus) over all rows before it is largest there.
    total = highest = 0.0
    parting = 0
    for start in range(0, shared, block):
        stop = min(shared, start + block)

        # Before the parting slip 0 is right and the sum rises; behind it the sum falls.
        slipped = scores.of(surplus, start, stop)
        slipped[: max(0, -surplus - start)] = 0.0  # no source row is so much earlier: by chance
        gain = scores.of(0, start, stop) - slipped
        totals = total + np.cumsum(gain, dtype=np.float64)
        row = int(np.argmax(totals))
        if totals[row] > highest:
            highest, parting = float(totals[row]), start + row + 1
        total = float(totals[-1])

    return parting


def _slipped_stretch(scores: Likeness, start: int, stop: int) -> Misalignment | None:
    """The range of rows from ``start`` to ``stop`` that gains most by a slip, if it is enough."""
    if start == stop:
        return None

    window = scores.window(start, stop, reach=_LARGEST_SLIP)
    in_place = window.of(0)
    slips = [slip for slip in range(-_LARGEST_SLIP, _LARGEST_SLIP + 1) if slip]

    # Tuples compare by their first entry, the height of the gain.
    height, first, last, slip = max(
        (*_largest_sum(window.of(slip) - in_place), slip) for slip in slips
    )

    # Chance is measured on the right alignment, as far as it is known, against lines from half the
    # file away, which are unrelated.
    in_place[first:last] = window.of(slip)[first:last]
    away = scores.source.line_count // 2 + _LARGEST_SLIP + 1
    if height == 0.0 or _evidence(height, scores.of(away, start, stop) - in_place) < _ALARM:
        return None

    # In a table that repeats itself, as of the forms of one verb after another, lines of the next
    # verbs resemble these as much.
    found = float(in_place[first:last].mean())
    phases = range(away - _LARGEST_SLIP, away + _LARGEST_SLIP + 1)
    if max(scores.of(each, start + first, start + last).mean() for each in phases) > found / 2:
        return None

    return Misalignment(start + first + 1, start + last, slip)


def _largest_sum(gain: Scores) -> tuple[float, int, int]:
    """The range ``gain[first:last]`` with the largest sum, as (sum, first, last).

    This is the maximum subarray problem (Kadane's algorithm), with cumulative sums.
    """
    totals = np.concatenate(([0.0], np.cumsum(gain, dtype=np.float64)))

    # The largest sum that ends at each row: the total minus the lowest total before it.
    rises = totals - np.minimum.accumulate(totals)

    last = int(np.argmax(rises))
    first = int(np.argmin(totals[: last + 1]))
    return float(rises[last]), first, last


def _evidence(height: float, walk: Scores) -> float:
    """How improbable a rise of ``height`` in the summed gain of a slip is by chance, in nats.

    If the lines are aligned, the sum is a random walk that falls. Such a walk with mean -m and
    variance v ever rises by h with a probability of about exp(-2 h m / v). So the height is
    measured in units of v / 2m, less ln(number of lines) for as many places where a rise may
    begin. The steps of such a walk are estimated from ``walk``, the gains of unrelated lines.
    """
    slope, variance = -float(walk.mean()), float(walk.var())
    if slope <= 0.0 or variance == 0.0:
        return 0.0  # aligned lines score no higher than unrelated ones: the traits tell nothing

    return 2 * height * slope / variance - float(np.log(len(walk)))
