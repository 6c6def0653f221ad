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
from pellucid.core.special import STOP_ID
from pellucid.decoding.search.constraints import Demands

Verdict = Literal["goes on", "finished", "pruned", "ruled out"]
"""The verdict on a candidate."""
_MOST_ORDERED = 5
"""Five phrases have 120 orders; six would have 720."""


@dataclasses.dataclass(frozen=True)
class Must:
    """The phrases that one translation must contain, in ids."""

    phrases: tuple[tuple[int, ...], ...]
    continues_word: frozenset[int]
    """Tokens that would make the last word of a phrase longer, and so another word."""

    @property
    def token_count(self) -> int:
        """How many tokens all phrases have."""
        return sum(map(len, self.phrases))

    @functools.cached_property
    def overlap(self) -> bool:
        """Whether phrases can share tokens, so that together they need fewer."""
        return any(
            _begun(one, other) or _find(one, other)
            for one, other in itertools.permutations(self.phrases, 2)
        )

    def left(self, ids: tuple[int, ...]) -> int:
        """The fewest tokens after which ``ids`` would hold every phrase.

        Exact for five missing phrases at most; more are counted in the order given.
        """
        unmet = [phrase for phrase in self.phrases if not self._holds(ids, phrase)]

        if not self.overlap:
            # the end of ``ids`` may begin several phrases, but only one of them can be continued
            begun = max((_begun(ids, phrase) for phrase in unmet), default=0)
            return sum(map(len, unmet)) - begun

        # with overlaps the order decides how many tokens are shared
        few = len(unmet) <= _MOST_ORDERED
        orders = itertools.permutations(unmet) if few else [tuple(unmet)]
        return min(self._with(ids, order) for order in orders) - len(ids)

    def _with(self, ids: tuple[int, ...], phrases: Sequence[tuple[int, ...]]) -> int:
        """The length of ``ids`` after these phrases are appended in this order."""
        for phrase in phrases:
            if not self._holds(ids, phrase):
                ids += phrase[_begun(ids, phrase) :]
        return len(ids)

    def helpful(self, ids: tuple[int, ...]) -> set[int]:
        """The tokens that begin or continue a missing phrase."""
        return {
            phrase[place]
            for phrase in self.phrases
            if not self._holds(ids, phrase)
            for place in {0, _begun(ids, phrase)}
        }

    def _holds(self, ids: tuple[int, ...], phrase: tuple[int, ...]) -> bool:
        for first in range(len(ids) - len(phrase) + 1):
            end = first + len(phrase)
            # a phrase counts only where its last word ends
            if ids[first:end] == phrase and (
                end == len(ids) or ids[end] not in self.continues_word
            ):
                return True
        return False


def make_musts(demands: Demands, limits: Sequence[int]) -> list[Must | None]:
    """The required phrases of each sentence, or None. Raises ConfigError if they cannot fit."""
    musts: list[Must | None] = []
    for number, limit in enumerate(limits):
        phrases = demands.musts[number] if demands.musts else ()
        must = Must(phrases, demands.continues_word) if phrases else None
        prefix = demands.prefixes[number] if demands.prefixes else ()
        # the prefix may already hold some of them
        if must is not None and len(prefix) + must.left(prefix) > limit:
            raise ConfigError(
                f"the words that must appear must fit into max_length={limit} tokens, got"
                f" {must.left(prefix)}" + (f" after a prefix of {len(prefix)}" if prefix else "")
            )
        musts.append(must)

    return musts


def share_out(
    continuations: Sequence[tuple[int, ...]], size: int, must: Must, limit: int
) -> list[tuple[Verdict, str]]:
    """The verdict on each continuation, best first: the beam is divided among the banks.

    Places that a bank leaves free go to the best of all others. A stop finishes only a hypothesis
    that holds every phrase, and only among the ``size`` best that do.
    """
    left = [must.left(_without_stop(ids)) for ids in continuations]
    verdicts: list[tuple[Verdict, str]] = [
        ("pruned", "not among the best of those that hold as many of the words that must appear")
    ] * len(continuations)

    banks: dict[int, list[int]] = {}
    complete = 0
    for place, ids in enumerate(continuations):
        if ids[-1] == STOP_ID:
            complete += left[place] == 0
            if left[place]:
                verdicts[place] = ("ruled out", "a stop before every word that must appear")
            elif complete <= size:
                verdicts[place] = ("finished", "")
            else:
                verdicts[place] = ("pruned", "a stop, and not among the best")
        elif left[place] > limit - len(ids):
            verdicts[place] = ("ruled out", "the words that must appear would no longer fit")
        else:
            complete += left[place] == 0
            banks.setdefault(left[place], []).append(place)

    # one bank for each number of required tokens, 0 included
    share = size // (must.token_count + 1)
    chosen = {place for members in banks.values() for place in members[:share]}
    rest = sorted(place for members in banks.values() for place in members[share:])
    # with less than one place for each bank, hypotheses that need the fewest tokens go first
    if not share:
        rest.sort(key=lambda place: (left[place], place))
    chosen |= set(rest[: size - len(chosen)])
    for place in chosen:
        verdicts[place] = ("goes on", "")

    return verdicts


def _without_stop(ids: tuple[int, ...]) -> tuple[int, ...]:
    return ids[:-1] if ids and ids[-1] == STOP_ID else ids


def _find(ids: tuple[int, ...], phrase: tuple[int, ...]) -> bool:
    places = range(len(ids) - len(phrase) + 1)
    return any(ids[place : place + len(phrase)] == phrase for place in places)


def _begun(ids: tuple[int, ...], phrase: tuple[int, ...]) -> int:
    """How many tokens at the end of ``ids`` begin the phrase."""
    longest = min(len(ids), len(phrase) - 1)
    for count in range(longest, 0, -1):
        if ids[-count:] == phrase[:count]:
            return count
    return 0
