"""Required phrases (lexical constraints): the beam is divided by how much of them is generated.

Dynamic beam allocation, Post and Vilar (2018), arXiv:1804.06609, §3: hypotheses are grouped into
banks by the number of required tokens that they hold, and every bank keeps a part of the beam.
"""

import dataclasses
import functools
import itertools
from collections.abc import Sequence
from typing import Literal

from pellucid.core.errors import ConfigError
from pellucid.core.special import EOS_ID
from pellucid.core.texts import counted
from pellucid.decoding.config import LENGTH_HINT
from pellucid.decoding.search.candidates import Constraints
from pellucid.decoding.spelling import Forms, Ids

Verdict = Literal["goes on", "finished", "pruned", "ruled out"]
"""The verdict on a candidate."""
_MOST_ORDERED = 5
"""Five phrases have 120 orders; six would have 720."""


@dataclasses.dataclass(frozen=True)
class RequiredPhrases:
    """The phrases that one translation must contain, in ids: one of each group.

    Several phrases in a group are a disjunctive constraint, as in Hu et al. (2019), NAACL, §4.
    """

    groups: tuple[Forms, ...]
    continues_word: frozenset[int]
    """Tokens that would make the last word of a phrase longer, and so another word."""

    @property
    def token_count(self) -> int:
        """How many tokens the shortest phrases of all groups have."""
        return sum(map(_shortest, self.groups))

    @functools.cached_property
    def overlap(self) -> bool:
        """Whether phrases can share tokens, so that together they need fewer."""
        return any(
            _begun(one, other) or _find(one, other)
            for first, second in itertools.permutations(self.groups, 2)
            for one, other in itertools.product(first, second)
        )

    def left(self, ids: Ids) -> int:
        """The fewest tokens after which ``ids`` would hold a phrase of every group; a stop at their
        end counts for nothing.

        Exact for five missing phrases at most, where each is alone in its group; with more they are
        counted in the order given, and of overlapping alternatives the nearest is taken.
        """
        if ids and ids[-1] == EOS_ID:
            ids = ids[:-1]
        unmet = [group for group in self.groups if not self._holds_one(ids, group)]

        if not self.overlap:
            # the end of ``ids`` may begin several phrases, but only one of them can be continued
            gained = max((_shortest(group) - _nearest(ids, group)[0] for group in unmet), default=0)
            return sum(map(_shortest, unmet)) - gained

        # with overlaps the order decides how many tokens are shared
        few = len(unmet) <= _MOST_ORDERED
        orders = itertools.permutations(unmet) if few else [tuple(unmet)]
        return min(self._with(ids, order) for order in orders) - len(ids)

    def why_not(self, ids: Ids, left: int, limit: int) -> str:
        """Why ``ids``, which have ``left`` tokens left, are excluded; empty if they are not.

        ``limit`` is in tokens, without the stop.
        """
        if ids[-1] == EOS_ID:
            return "a stop before every word that must appear" if left else ""
        return "the words that must appear would no longer fit" if left > limit - len(ids) else ""

    def _with(self, ids: Ids, groups: Sequence[Forms]) -> int:
        """The length of ``ids`` after a phrase of each group is appended in this order."""
        for group in groups:
            if not self._holds_one(ids, group):
                _, phrase = _nearest(ids, group)
                ids += phrase[_begun(ids, phrase) :]
        return len(ids)

    def helpful(self, ids: Ids) -> set[int]:
        """The tokens that begin or continue a phrase of a group that has none yet."""
        return {
            phrase[position]
            for group in self.groups
            if not self._holds_one(ids, group)
            for phrase in group
            for position in {0, _begun(ids, phrase)}
        }

    def _holds_one(self, ids: Ids, group: Forms) -> bool:
        return any(self._holds(ids, phrase) for phrase in group)

    def _holds(self, ids: Ids, phrase: Ids) -> bool:
        for first in range(len(ids) - len(phrase) + 1):
            end = first + len(phrase)
            # a phrase counts only where its last word ends
            if ids[first:end] == phrase and (
                end == len(ids) or ids[end] not in self.continues_word
            ):
                return True
        return False


def make_required(constraints: Constraints, limits: Sequence[int]) -> list[RequiredPhrases | None]:
    """The required phrases of each sentence, or None. Raises ConfigError if they cannot fit."""
    required: list[RequiredPhrases | None] = []
    for number, limit in enumerate(limits):
        groups = constraints.required[number] if constraints.required else ()
        own = RequiredPhrases(groups, constraints.continues_word) if groups else None
        prefix = constraints.prefixes[number] if constraints.prefixes else ()
        # the prefix may already hold some of them
        if own is not None and len(prefix) + own.left(prefix) > limit:
            raise ConfigError(
                f"the words that must appear must fit into {counted(limit, 'token')}, got"
                f" {own.left(prefix)}" + (f" after a prefix of {len(prefix)}" if prefix else ""),
                hint=LENGTH_HINT,
            )
        required.append(own)

    return required


def divide_beam(
    continuations: Sequence[Ids], size: int, required: RequiredPhrases, limit: int
) -> list[tuple[Verdict, str]]:
    """The verdict on each continuation, best first: the beam is divided among the banks.

    The share that a bank does not need goes to the best of all others. A stop finishes only a
    hypothesis that holds every phrase, and only among the ``size`` best that do.
    """
    left = [required.left(ids) for ids in continuations]
    verdicts: list[tuple[Verdict, str]] = [
        ("pruned", "not among the best of those that hold as many of the words that must appear")
    ] * len(continuations)

    banks: dict[int, list[int]] = {}
    complete = 0
    for rank, ids in enumerate(continuations):
        reason = required.why_not(ids, left[rank], limit)
        complete += not reason and left[rank] == 0
        if reason:
            verdicts[rank] = ("ruled out", reason)
        elif ids[-1] != EOS_ID:
            banks.setdefault(left[rank], []).append(rank)
        elif complete <= size:
            verdicts[rank] = ("finished", "")
        else:
            verdicts[rank] = ("pruned", "a stop, and not among the best")

    # one bank for each number of required tokens, 0 included
    share = size // (required.token_count + 1)
    chosen = {rank for members in banks.values() for rank in members[:share]}
    rest = sorted(rank for members in banks.values() for rank in members[share:])
    # with less than one hypothesis for each bank, hypotheses that need the fewest tokens go first
    if not share:
        rest.sort(key=lambda rank: (left[rank], rank))
    chosen |= set(rest[: size - len(chosen)])
    for rank in chosen:
        verdicts[rank] = ("goes on", "")

    return verdicts


def _shortest(group: Forms) -> int:
    return min(map(len, group))


def _nearest(ids: Ids, group: Forms) -> tuple[int, Ids]:
    """How many tokens the phrase needs that needs the fewest after ``ids``, and that phrase."""
    return min((len(phrase) - _begun(ids, phrase), phrase) for phrase in group)


def _find(ids: Ids, phrase: Ids) -> bool:
    starts = range(len(ids) - len(phrase) + 1)
    return any(ids[start : start + len(phrase)] == phrase for start in starts)


def _begun(ids: Ids, phrase: Ids) -> int:
    """How many tokens at the end of ``ids`` begin the phrase, which is not complete there."""
    longest = min(len(ids), len(phrase) - 1)
    for count in range(longest, 0, -1):
        if ids[-count:] == phrase[:count]:
            return count
    return 0
