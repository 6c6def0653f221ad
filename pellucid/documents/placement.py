"""Where the marks of a sentence stand in its translation, by the alignment of words.

A pair of tags goes around the target words that are aligned with the source words inside it: the
stretch of words with the largest sum of

    gain(t) = 2 · (share of t's alignment that points inside the tags) − 1, halved if negative

so that a stray link far away does not widen a pair, and a word that comes between two of its own
does not tear it. A pair inside another one stays inside,
pairs beside each other do not overlap, and each comes exactly once, whatever the alignment is.
"""

import bisect
import dataclasses
import itertools
import math
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal

from pellucid.decoding.warnings import Warnings
from pellucid.documents.segments import Span
from pellucid.text.scripts import is_of_word, is_wide

Copy = tuple[Span, Span]
"""Characters of the source, and the same characters in the target."""
Link = tuple[Span, Span, float]
"""Characters of the source, those of the target that are aligned with them, and how much."""

Doubt = Literal["mark", "leave"] | None
"""The treatment of a translation whose quality is too low; None for all others."""


@dataclasses.dataclass(frozen=True)
class Aligned:
    """The translation of a sentence, and which of its characters are aligned with which."""

    text: str
    links: tuple[Link, ...] = ()
    """Empty unless an alignment was requested."""
    copies: tuple[Copy, ...] = ()
    """The texts that were not translated, in order of the source, with their places in the
    translation."""
    warnings: Warnings = ()
    """Why the translation should not be trusted."""
    doubt: Doubt = None


_POSITION_WEIGHT = 16.0
"""How much positions count where the alignment is unclear; between 8 and 32 the benchmark hardly
changes."""
_SHARING_ROUNDS = 3
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_SIGN_WEIGHT = 0.1
"""The weight of a punctuation mark, beside 1 for a word: attention from punctuation is mostly
noise."""
_MOST_PAIRS = 400
"""Pairs of units that one link aligns each with each; with more, as for one token of a thousand
signs, the first is aligned with the first and the last with the last."""
_OUTSIDE = 0.5
"""The weight of a word that is aligned with nothing inside the tags."""
_REACH, _AT_SIGN = 4, 0.6
"""Units that a pair is longer at an end, and what gain it may lose by them, where it then stands
beside the same sign as in the source: a title between commas, a sentence up to its stop."""


@dataclasses.dataclass(frozen=True)
class Unit:
    """A word, a Chinese or Japanese character, or a punctuation mark."""

    start: int
    end: int
    is_word: bool
    is_wide: bool = False
    """Whether it belongs to a script without spaces between words."""


@dataclasses.dataclass(frozen=True)
class SentencePair:
    """A sentence and its translation, as units with their alignment."""

    source: str
    target: str
    source_units: list[Unit]
    target_units: list[Unit]
    shares: list[dict[int, float]]
    """For each target unit, the source units it is aligned with; the shares sum to one."""

    @classmethod
    def of(
        cls,
        source: str,
        target: str,
        links: Sequence[Link],
        copies: Sequence[Copy] = (),
        cuts: Iterable[int] = (),
    ) -> "SentencePair":
        """Units and their alignment from the alignment of tokens, in characters.

        ``copies`` are what was not translated: each is one word, aligned with itself. ``cuts`` are
        the characters of the source where a mark stands: a word with one inside it that is the same
        word in the translation is two units there, so that the mark stays inside it.
        """
        sources = units_of(source, [ours for ours, _ in copies])
        targets = units_of(target, [theirs for _, theirs in copies])
        weights: list[dict[int, float]] = [{} for _ in targets]

        for ours, theirs, weight in links:
            aligned, found = _overlaps(sources, *ours), _overlaps(targets, *theirs)
            is_long = len(aligned) * len(found) > _MOST_PAIRS
            for rank, (number, length) in enumerate(found):
                at = rank * len(aligned) // len(found)
                others = aligned[at : at + 1] if is_long else aligned
                all_length = sum(other_length for _, other_length in others)
                for other, other_length in others:
                    part = weight * length * other_length / all_length
                    weights[number][other] = weights[number].get(other, 0.0) + part

        _match_equal_words(source, target, sources, targets, weights)
        for ours, theirs in copies:
            weights[first_unit(targets, theirs[0])] = {first_unit(sources, ours[0]): 1.0}
        _lean_on_positions(weights, len(sources))
        _share_sources(weights)
        within = sorted({cut for cut in cuts if _is_within(sources, cut)})
        if within:
            sources, targets, weights = _cut_same_words(
                source, target, sources, targets, weights, within
            )
        totals = [sum(found.values()) for found in weights]
        shares = [
            {number: weight / total for number, weight in found.items()}
            for found, total in zip(weights, totals, strict=True)
        ]
        return cls(source, target, sources, targets, shares)

    def source_inside(self, start: int, end: int) -> list[int]:
        """The units between two characters of the source.

        A word belongs to where it begins, or to where it ends if nothing begins there.
        """
        units = self.source_units
        inside = range(first_unit(units, start), first_unit(units, end))
        return list(inside) or [number for number, _ in _overlaps(units, start, end)]

    def words_of(self, inside: Sequence[int]) -> list[int]:
        """The words among these units of the source; the signs if there is no word."""
        words = [number for number in inside if self.source_units[number].is_word]
        return words or list(inside)


_SHORT_FORM = re.compile(r"['’](?:s|d|m|t|ll|re|ve)(?![\w'’])", re.IGNORECASE)
"""A short form that English writes behind an apostrophe belongs to the word before it ("Mary's",
"don't"), so that a mark on the next word begins there. In French, say, no word ends with these
letters."""


def units_of(text: str, whole: Sequence[Span] = ()) -> list[Unit]:
    """The words and signs of a text; every character but white space is in one of them.

    Each of the spans ``whole`` is one word, whatever is in it.
    """
    ends = dict(whole)
    units: list[Unit] = []
    begun: int | None = None
    place = 0

    while place < len(text):
        character = text[place]
        is_whole = place in ends
        is_letter = is_of_word(character)
        if begun is not None and unicodedata.category(character) == "Cf":
            is_letter = True  # a soft hyphen or a joiner ends no word
        if begun is not None and character in "'’":
            is_letter = _SHORT_FORM.match(text, place) is not None
        is_wide_letter = is_letter and is_wide(character)
        if is_letter and not is_wide_letter and not is_whole:
            begun = place if begun is None else begun
            place += 1
            continue

        if begun is not None:
            units.append(Unit(begun, place, True))
            begun = None
        end = ends.get(place, place + 1)
        if is_whole or not character.isspace():
            is_word = is_wide_letter or is_whole
            units.append(Unit(place, end, is_word, is_wide_letter and not is_whole))
        place = end

    if begun is not None:
        units.append(Unit(begun, len(text), True))
    return units


def _is_within(units: Sequence[Unit], place: int) -> bool:
    """Whether a place is between two characters of a unit."""
    last = first_unit(units, place) - 1
    return last >= 0 and place < units[last].end


def first_unit(units: Sequence[Unit], place: int) -> int:
    """The number of the first unit that begins at ``place`` or behind it."""
    # Units stand in order and do not overlap. A long sentence has hundreds of links and marks, and
    # reading all units for each of them would take quadratic time.
    return bisect.bisect_left(units, place, key=lambda unit: unit.start)


def units_at(units: Sequence[Unit], start: int, end: int) -> range:
    """The numbers of the units that share characters with a span."""
    first = first_unit(units, start)
    if first > 0 and units[first - 1].end > start:
        first -= 1
    return range(first, first_unit(units, end))


def _overlaps(units: Sequence[Unit], start: int, end: int) -> list[tuple[int, int]]:
    """The units that share characters with a span, and how many."""
    if start >= end:
        return []
    return [
        (number, min(end, units[number].end) - max(start, units[number].start))
        for number in units_at(units, start, end)
    ]


def _match_equal_words(
    source: str,
    target: str,
    sources: Sequence[Unit],
    targets: Sequence[Unit],
    weights: list[dict[int, float]],
) -> None:
    """Align a name, number or sign that stands once in each of the two texts with itself."""
    ours: dict[str, list[int]] = {}
    theirs: dict[str, list[int]] = {}
    for text, units, found in ((source, sources, ours), (target, targets, theirs)):
        for number, unit in enumerate(units):
            found.setdefault(text[unit.start : unit.end].casefold(), []).append(number)

    for word, numbers in theirs.items():
        if len(numbers) == 1 and len(ours.get(word, ())) == 1:
            weights[numbers[0]] = {ours[word][0]: 1.0}


def _lean_on_positions(weights: Sequence[dict[int, float]], source_count: int) -> None:
    """Where the alignment of a word is unclear, let its position in the sentence decide.

    A word that the model hardly knows attends to many words: with c the largest of its shares, each
    is multiplied by exp(-16 √(1 - c) · d), d being the distance between the two positions as shares
    of their sentences. A clear alignment stays, wherever it points.
    """
    ours, theirs = max(1, source_count - 1), max(1, len(weights) - 1)
    for number, found in enumerate(weights):
        total = sum(found.values())
        if total <= 0 or len(found) < 2:
            continue
        unclear = math.sqrt(1 - max(found.values()) / total)
        for other in found:
            distance = abs(other / ours - number / theirs)
            found[other] *= math.exp(-_POSITION_WEIGHT * unclear * distance)


def _share_sources(weights: Sequence[dict[int, float]]) -> None:
    """Make the shares of each target word sum to one, and those of a source word to one at most.

    An article that attends to its noun is thus aligned with the article of the source, as the noun
    has its own translation.
    """
    for _ in range(_SHARING_ROUNDS):
        given: dict[int, float] = {}
        for found in weights:
            total = sum(found.values())
            for other in found:
                found[other] /= total or 1.0
                given[other] = given.get(other, 0.0) + found[other]
        for found in weights:
            for other in found:
                found[other] /= max(1.0, given[other])


def _cut_same_words(
    source: str,
    target: str,
    sources: Sequence[Unit],
    targets: Sequence[Unit],
    weights: Sequence[dict[int, float]],
    cuts: Sequence[int],
) -> tuple[list[Unit], list[Unit], list[dict[int, float]]]:
    """The units and weights, each word cut that is aligned with the same word and has a cut in it.

    The parts are aligned with each other, first with first; other words keep their alignment, with
    the first part of a word that was cut.
    """
    partner: dict[int, int] = {}
    for number, found in enumerate(weights):
        likeliest = max(found, key=lambda other: found[other], default=-1)
        unit, theirs = sources[likeliest], targets[number]
        is_same = source[unit.start : unit.end] == target[theirs.start : theirs.end]
        if likeliest >= 0 and is_same:
            partner.setdefault(likeliest, number)

    # The offsets of the cuts in each word, of both texts.
    offsets = {
        number: [
            cut - sources[number].start
            for cut in cuts[
                bisect.bisect_right(cuts, sources[number].start) : bisect.bisect_left(
                    cuts, sources[number].end
                )
            ]
        ]
        for number in partner
    }
    source_parts = [_cut(unit, offsets.get(n, ())) for n, unit in enumerate(sources)]
    of_target = {theirs: offsets[ours] for ours, theirs in partner.items()}
    target_parts = [_cut(unit, of_target.get(n, ())) for n, unit in enumerate(targets)]
    first = list(itertools.accumulate(map(len, source_parts), initial=0))

    ours_of = {theirs: ours for ours, theirs in partner.items() if offsets[ours]}
    cut_weights: list[dict[int, float]] = []
    for number, parts in enumerate(target_parts):
        if number in ours_of:
            cut_weights += [{first[ours_of[number]] + n: 1.0} for n in range(len(parts))]
        else:
            cut_weights.append({first[other]: part for other, part in weights[number].items()})
    return (
        list(itertools.chain(*source_parts)),
        list(itertools.chain(*target_parts)),
        cut_weights,
    )


def _cut(unit: Unit, offsets: Sequence[int]) -> list[Unit]:
    ends = [unit.start, *(unit.start + offset for offset in offsets), unit.end]
    return [
        dataclasses.replace(unit, start=start, end=end) for start, end in itertools.pairwise(ends)
    ]


def _sign_at(text: str, units: Sequence[Unit], number: int) -> str | None:
    """The sign that a unit is; None for a word, empty beyond the ends of the text."""
    if not 0 <= number < len(units):
        return ""
    unit = units[number]
    return None if unit.is_word else text[unit.start : unit.end]


class Placer:
    """Places the marks of one sentence in its translation."""

    def __init__(self, pair: SentencePair) -> None:
        self._pair = pair
        self._strongest: dict[int, int] = {}
        """For each source unit the target unit that is aligned with it most. Of equals the last: a
        mark after a word comes after all of its translation."""
        self._reach: dict[int, Span] = {}
        """The first and the last target unit that is aligned with a source unit, by that unit."""
        for number, shares in enumerate(pair.shares):
            for other, share in shares.items():
                self._reach[other] = self._reach.get(other, (number, 0))[0], number
                best = self._strongest.get(other, number)
                if share >= pair.shares[best][other]:
                    self._strongest[other] = number
        self._places: dict[str, list[int]] = {}
        """By text, the target units that are it."""
        for number, unit in enumerate(pair.target_units):
            self._places.setdefault(pair.target[unit.start : unit.end], []).append(number)
        words = [number for number, unit in enumerate(pair.source_units) if unit.is_word]
        self._first_word = words[0] if words else len(pair.source_units)
        self._last_word = words[-1] if words else -1

    def reach(self, inside: Sequence[int], allowed: Span) -> Span:
        """The part of the target units ``allowed`` beyond which none is aligned with these source
        units; an empty one if none is.
        """
        found = [self._reach[number] for number in inside if number in self._reach]
        if not found:
            return allowed[0], allowed[0]
        first, last = min(first for first, _ in found), max(last for _, last in found)
        return max(allowed[0], first), max(allowed[0], min(allowed[1], last + 1))

    def place(
        self,
        inside: Sequence[int],
        allowed: Span,
        taken: Iterable[Span],
        others: Collection[int] = frozenset(),
    ) -> tuple[Span, float] | None:
        """The target units, as first and last + 1, for tags around these source units.

        Only units of ``allowed`` are taken, none of those ``taken``. ``others`` are source units of
        other pairs: a stretch holds more words of its own than of these. None if no unit is
        aligned.
        """
        pair = self._pair
        # A word that is aligned with a sign is noise mostly; a sign goes with a sign or a word.
        everything, words = set(inside), set(pair.words_of(inside))
        is_of_words = any(pair.source_units[number].is_word for number in words)

        blocked = {number for start, end in taken for number in range(start, end)}

        same = self._same_text(inside) or self._same_words(words) or self._same_brackets(inside)
        if (
            same is not None
            and allowed[0] <= same[0]
            and same[1] <= allowed[1]
            and not blocked.intersection(range(*same))
        ):
            return same, float(len(words))

        # Kadane's algorithm: the stretch with the largest sum, in one pass.
        best: Span | None = None
        best_sum = running = 0.0
        begin = allowed[0]
        has_word = False
        likeliest, likeliest_share = -1, 0.0
        gains: dict[int, float] = {}
        for number in range(*allowed):
            if number in blocked:
                running, begin, has_word = 0.0, number + 1, False
                continue
            is_word = pair.target_units[number].is_word
            wanted = words if is_word else everything
            share = sum(part for other, part in pair.shares[number].items() if other in wanted)
            if share > likeliest_share and (is_word or not is_of_words):
                likeliest, likeliest_share = number, share
            weight = 1.0 if is_word or not is_of_words else _SIGN_WEIGHT
            gain = weight * (2 * share - 1) if pair.shares[number] else 0.0
            if gain < 0:
                claimed = sum(part for n, part in pair.shares[number].items() if n in others)
                gain *= 1.0 if claimed > share else _OUTSIDE
            gains[number] = gain
            running += gain
            has_word = has_word or is_word
            if is_of_words and not has_word:
                continue  # signs alone are no translation of a word
            # Of equals the longer: a word of the pair that is left out is the worse error.
            is_longer = best is not None and best[0] == begin and gain > 0
            if running > best_sum or (running == best_sum and is_longer):
                best, best_sum = (begin, number + 1), running
            if running < 0 or best_sum == 0.0:
                running, begin, has_word = 0.0, number + 1, False

        if best is None and likeliest >= 0:
            best, best_sum = (likeliest, likeliest + 1), likeliest_share
        if best is None:
            return None
        start, end = self._trimmed(best, inside)
        start = self._start_at_sign(start, inside, gains)
        return (start, self._end_at_sign(end, inside, gains)), best_sum

    def _same_text(self, inside: Sequence[int]) -> Span | None:
        """The target units that are the same text as these source units, if it is there once."""
        pair = self._pair
        first, last = pair.source_units[min(inside)], pair.source_units[max(inside)]
        text = pair.source[first.start : last.end]
        # Each of its words may be elsewhere too, as in "X.X".
        if len(inside) < 2 or pair.source.count(text) != 1 or pair.target.count(text) != 1:
            return None
        start = pair.target.index(text)
        found = units_at(pair.target_units, start, start + len(text))
        begin, end = pair.target_units[found[0]].start, pair.target_units[found[-1]].end
        return (found[0], found[-1] + 1) if (begin, end) == (start, start + len(text)) else None

    def _same_brackets(self, inside: Sequence[int]) -> Span | None:
        """The target units from a bracket to another, if these source units are between the same
        two, which are there once.
        """
        first, last = self._sign(min(inside)), self._sign(max(inside))
        if not first or not last or first not in _OPENING or last not in _CLOSING:
            return None
        begins, ends = self._places.get(first, []), self._places.get(last, [])
        is_one = len(begins) == len(ends) == 1 and begins[0] < ends[0]
        return (begins[0], ends[0] + 1) if is_one else None

    def _same_words(self, words: Collection[int]) -> Span | None:
        """The target units of words that are the same in both texts, if nothing is between them."""
        pair = self._pair
        found = []
        for number in words:
            ours = pair.source_units[number]
            places = self._places.get(pair.source[ours.start : ours.end], ())
            if len(places) != 1 or not ours.is_word:
                return None
            found += places
        span = min(found, default=0), max(found, default=-1) + 1
        if span[1] - span[0] > 3 * len(found):
            return None
        between = set(range(*span)).difference(found)
        is_whole = found and not any(pair.target_units[number].is_word for number in between)
        return span if is_whole else None

    def _start_at_sign(self, start: int, inside: Sequence[int], gains: Mapping[int, float]) -> int:
        """Where a pair begins: behind a sign nearby, if it does in the source."""
        first = min(inside)
        sign = self._sign(first - 1)
        if not sign or self._sign(first):
            return start
        lost = 0.0
        for number in range(start - 1, start - 1 - _REACH, -1):
            if self._target_sign(number) == sign:
                return number + 1
            lost -= gains.get(number, -_AT_SIGN - 1)
            if lost > _AT_SIGN:
                break
        return start

    def _end_at_sign(self, end: int, inside: Sequence[int], gains: Mapping[int, float]) -> int:
        """Where a pair ends: before a sign nearby, or with it, if it does in the source."""
        last = max(inside)
        own = self._sign(last)
        sign = own or self._sign(last + 1)
        if not sign or (own and self._target_sign(end - 1) == own):
            return end
        lost = 0.0
        for number in range(end, end + _REACH):
            if self._target_sign(number) == sign:
                return number + bool(own)
            lost -= gains.get(number, -_AT_SIGN - 1)
            if lost > _AT_SIGN:
                break
        return end

    def _sign(self, number: int) -> str | None:
        """The sign that a source unit is; None for a word, empty beyond the ends of the text."""
        return _sign_at(self._pair.source, self._pair.source_units, number)

    def _target_sign(self, number: int) -> str | None:
        return _sign_at(self._pair.target, self._pair.target_units, number)

    def whole(self, inside: Sequence[int], around: Sequence[int], allowed: Span) -> Span:
        """All of ``allowed``, for tags around all words of the source: without as many signs at
        each end as the tags leave out of those ``around`` them.
        """
        units = self._pair.target_units
        start, end = allowed
        if all(not units[number].is_word for number in range(start, end)):
            return allowed
        first, last = min(inside), max(inside)
        left_before = sum(number < first for number in around)
        left_behind = sum(number > last for number in around)
        while left_before and not units[start].is_word:
            start, left_before = start + 1, left_before - 1
        while left_behind and not units[end - 1].is_word:
            end, left_behind = end - 1, left_behind - 1
        return start, end

    def _trimmed(self, span: Span, inside: Sequence[int]) -> Span:
        """``span`` without signs at its ends, unless there is one at the same end in the source."""
        units, sources = self._pair.target_units, self._pair.source_units
        start, end = span
        if all(not units[number].is_word for number in range(start, end)):
            return span
        first, last = min(inside), max(inside)
        while not units[start].is_word and sources[first].is_word:
            start += 1
        while not units[end - 1].is_word and sources[last].is_word:
            end -= 1
        return start, end

    def gap(self, place: int) -> int:
        """The gap between target units for a mark at a character of the source, from 0.

        It is behind the unit that is aligned with the one before the mark; in front of the one
        aligned with the next, where a space divides the mark from the one before and not from it.
        """
        sources, targets = self._pair.source_units, self._pair.target_units
        source = self._pair.source
        begin = first_unit(sources, place)
        before, after = range(begin), range(begin, len(sources))

        # Nothing but signs on one side: it stays on that side of all words.
        if begin <= self._first_word:
            words = (number for number, unit in enumerate(targets) if unit.is_word)
            return min(len(before), next(words, 0))
        if begin > self._last_word:
            is_last = not after or not sources[before[-1]].is_word
            tail = targets[len(targets) - len(after) :]
            if is_last and len(tail) == len(after) and not any(unit.is_word for unit in tail):
                return len(targets) - len(after)  # "more: {}." has a sign on either side
            words = (number for number in reversed(range(len(targets))) if targets[number].is_word)
            return len(targets) if is_last else next(words, len(targets) - 1) + 1

        leans_right = source[place - 1].isspace() and not source[place : place + 1].isspace()
        neighbors = [(before[-1], 1), (after[0], 0)]
        for number, step in reversed(neighbors) if leans_right else neighbors:
            if number in self._strongest:
                return self._strongest[number] + step

        # Neither is aligned: the same share of the sentence lies before it.
        return round(len(before) / len(sources) * len(targets))
