"""How good a translation probably is: a number from 0 to 1, calibrated on the validation text.

The scale of a model maps the mean log-probability of a translation's tokens to the mean chrF,
divided by 100, that translations with such a mean had against the references of the validation
text. So a quality of 0.4 says: translations as sure as this one had a chrF of 40.

It is learned by sorting the validation text's translations into groups of equal size by their mean
log-probability. The mean chrF of each group is a point of the scale, made to rise by the method of
pooled adjacent violators (Ayer et al. 1955); between two points it is linear.
"""

import bisect
import dataclasses
import itertools
import math
from collections.abc import Sequence

Points = tuple[tuple[float, float], ...]
"""Mean log-probabilities of a token in nats, rising, each with the quality there."""

MARK = "[?]"
"""The mark before a doubtful translation."""
_MOST_GROUPS, _LEAST_OF_GROUP, LEAST_TRANSLATIONS = 20, 10, 100
"""Twenty groups, or fewer so that each has ten translations: the mean chrF of ten sentences varies
by some 6, of fifty by 3."""


def quality_points(
    log_probs: Sequence[float | None], chrf: Sequence[float | None]
) -> Points | None:
    """The scale of a model, by the translations of its validation text.

    ``log_probs`` are their mean log-probabilities, ``chrf`` their scores in percent; translations
    that lack one of both are left out. None if they are too few to tell.
    """
    known = sorted(
        (log_prob, score / 100)
        for log_prob, score in zip(log_probs, chrf, strict=True)
        if log_prob is not None and score is not None
    )
    if len(known) < LEAST_TRANSLATIONS:
        return None

    count = min(_MOST_GROUPS, len(known) // _LEAST_OF_GROUP)
    borders = [len(known) * number // count for number in range(count + 1)]
    groups = [known[start:end] for start, end in itertools.pairwise(borders)]
    means = [
        _Group(len(group), *(math.fsum(values) / len(group) for values in zip(*group, strict=True)))
        for group in groups
    ]
    return tuple((group.log_prob, group.quality) for group in _rising(means))


def quality_of(mean_log_prob: float | None, points: Points | None) -> float | None:
    """The quality of a translation with this mean log-probability; None without one or a scale.

    Above the last point it is that of the last; below the first it falls with the probability of a
    token, as the validation text has nothing so unlikely.
    """
    if mean_log_prob is None or points is None:
        return None
    index = bisect.bisect(points, (mean_log_prob, math.inf))
    if index == 0:
        lowest, quality = points[0]
        return quality * math.exp(mean_log_prob - lowest)
    if index == len(points):
        return points[-1][1]
    (left, low), (right, high) = points[index - 1], points[index]
    return low + (high - low) * (mean_log_prob - left) / (right - left)


@dataclasses.dataclass(frozen=True)
class _Group:
    """Translations that are about equally sure: how many, and the means of both."""

    count: int
    log_prob: float
    quality: float

    def joined(self, other: "_Group") -> "_Group":
        """Both groups as one."""
        count = self.count + other.count
        own, others = self.count / count, other.count / count
        return _Group(
            count,
            own * self.log_prob + others * other.log_prob,
            own * self.quality + others * other.quality,
        )


def _rising(groups: Sequence[_Group]) -> list[_Group]:
    """The groups, neighbors joined until the quality of no group is below that of the one before.

    Source: Ayer et al. (1955), "An empirical distribution function for sampling with incomplete
    information", §2.
    """
    found: list[_Group] = []
    for group in groups:
        # Equal log-probabilities are joined too: a scale has one quality for each.
        while found and (group.quality < found[-1].quality or group.log_prob <= found[-1].log_prob):
            group = found.pop().joined(group)
        found.append(group)
    return found
