"""Texts that are not translated within a sentence: copied by the model, or cut out and put back."""

import bisect
import dataclasses
import itertools
from collections.abc import Iterator, Sequence

from pellucid.decoding.quality import MARK
from pellucid.documents.placement import (
    Aligned,
    Copy,
    Link,
    Placer,
    SentencePair,
    Unit,
    units_at,
    units_of,
)
from pellucid.documents.protected import order_of
from pellucid.documents.segments import Span, overlapping
from pellucid.text.scripts import is_of_word, is_wide

_SIGNS = frozenset(".,;:!?)]}»”…。，、！？")
_QUOTES = {"'": "'", '"': '"', "“": "”", "„": "“", "«": "»", "‘": "’", "(": ")", "[": "]", "<": ">"}
_LONGEST_UNIT = 4
"""Letters directly behind a placeholder, as in ``%sKiB``; more are a word."""


def unchanged(text: str, literals: Sequence[Span]) -> Aligned:
    """A sentence as its own translation: it has no words, or the model none for them."""
    links = tuple(
        ((unit.start, unit.end), (unit.start, unit.end), 1.0) for unit in units_of(text, literals)
    )
    return Aligned(text, links, tuple((each, each) for each in literals))


def marked(answer: Aligned) -> Aligned:
    """A doubtful translation behind its mark."""
    shift = len(MARK) + 1
    links = tuple((ours, (a + shift, b + shift), weight) for ours, (a, b), weight in answer.links)
    copies = tuple((ours, (a + shift, b + shift)) for ours, (a, b) in answer.copies)
    return dataclasses.replace(answer, text=f"{MARK} {answer.text}", links=links, copies=copies)


def with_copies(text: str, literals: Sequence[Span], answer: Aligned) -> Aligned | None:
    """The translation if the model copied every literal; else None."""
    if answer.text == text:
        return unchanged(text, literals)
    copies: list[Copy] = []
    by_word: dict[str, list[Span]] = {}
    for start, end in literals:
        by_word.setdefault(text[start:end], []).append((start, end))
    for word, ours in by_word.items():
        theirs = list(_occurrences(answer.text, word))
        if len(ours) != len(theirs):
            return None
        copies += zip(ours, theirs, strict=True)

    targets = sorted(target for _, target in copies)
    if any(one[1] > other[0] for one, other in itertools.pairwise(targets)):
        return None  # one literal is part of another

    links = tuple(link for link in answer.links if not overlapping(targets, *link[1]))
    return Aligned(answer.text, links, tuple(sorted(copies)))


def keeps_order(text: str, answer: Aligned) -> bool:
    """Whether placeholders that take one argument after the other are in the order of the source.

    ``answer`` translates ``text``.
    """
    last: dict[str, int] = {}
    for (start, end), (place, _) in sorted(answer.copies):
        kind = order_of(text[start:end])
        if kind is not None:
            if place < last.get(kind, 0):
                return False
            last[kind] = place
    return True


def between_literals(text: str, literals: Sequence[Span]) -> list[Span]:
    """The stretches of a sentence before, between and behind its literals that have a letter."""
    whole = _with_surroundings(text, literals)
    ends = [0, *(end for _, end in whole)]
    starts = [*(start for start, _ in whole), len(text)]
    found = []
    for start, stop in zip(ends, starts, strict=True):
        stretch = text[start:stop]
        if any(map(str.isalpha, stretch)):
            first = start + len(stretch) - len(stretch.lstrip())
            found.append((first, start + len(stretch.rstrip())))
    return found


def with_stretches(
    text: str, literals: Sequence[Span], stretches: Sequence[Span], answers: Sequence[Aligned]
) -> Aligned:
    """A sentence of which only the stretches of ``between_literals`` are translated, each by
    itself, so that nothing else changes its place.
    """
    target, at = "", 0
    links: list[Link] = []
    moves: dict[int, int] = {}
    """For each place of the sentence where something is copied, that in the translation."""

    for (start, end), answer in zip(stretches, answers, strict=True):
        moves |= {place: len(target) + place - at for place in range(at, start)}
        target += text[at:start]

        # A link of the answer moves to where the answer lies in the sentence and its translation.
        translation = answer.text.strip() or text[start:end]
        blank = len(answer.text) - len(answer.text.lstrip())
        begin = len(target) - blank
        links += [
            ((start + a, start + b), (begin + max(c, blank), begin + max(d, blank)), weight)
            for (a, b), (c, d), weight in answer.links
        ]

        target += translation
        at = end

    moves |= {place: len(target) + place - at for place in range(at, len(text))}
    target += text[at:]

    copies = tuple(
        ((start, end), (moves[start], moves[start] + end - start)) for start, end in literals
    )
    return Aligned(target, tuple(links), copies)


def _occurrences(text: str, word: str) -> Iterator[Span]:
    """Where a literal stands by itself, and not as a part of a longer word."""
    at = text.find(word)
    while at >= 0:
        end = at + len(word)
        joins_before = at > 0 and is_of_word(word[0]) and is_of_word(text[at - 1])
        joins_after = end < len(text) and is_of_word(word[-1]) and is_of_word(text[end])
        if not (joins_before or joins_after):
            yield at, end
        at = text.find(word, end)


def _with_surroundings(text: str, literals: Sequence[Span]) -> list[Span]:
    """The literals with what belongs to them: those that touch are one, with the quotation marks or
    brackets around them, and the unit behind them, as in ``'%s'`` and ``%sKiB``.
    """
    whole: list[Span] = []
    for start, end in literals:
        if whole and whole[-1][1] == start:
            whole[-1] = (whole[-1][0], end)
        else:
            whole.append((start, end))

    for number, (start, end) in enumerate(whole):
        limit = whole[number + 1][0] if number + 1 < len(whole) else len(text)
        stop = end
        while stop < limit and text[stop].isascii() and text[stop].isalnum():
            stop += 1
        # A brace that opens stands before a sentence, not before a unit.
        is_unit = stop - end <= _LONGEST_UNIT and text[end - 1] != "{"
        if is_unit and not is_of_word(text[stop : stop + 1]):
            end = stop
        first = whole[number - 1][1] if number else 0
        is_quoted = first < start and end < limit and _QUOTES.get(text[start - 1]) == text[end]
        if is_quoted and not is_of_word(text[max(first, start - 2) : start - 1]):
            start, end = start - 1, end + 1
        whole[number] = (start, end)
    return whole


def cut_out(text: str, literals: Sequence[Span]) -> tuple[str, list[int]]:
    """The text without literals and what belongs to them, and without the second of the two spaces
    around one; and for each character of the shorter text its place in the longer one.

    Between two words that only a literal divides there is a space, if their script has any.
    """
    whole = _with_surroundings(text, literals)
    starts, ends = dict(whole), {end for _, end in whole}
    kept: list[str] = []
    places: list[int] = []
    is_inside = follows_literal = False

    for place, character in enumerate(text):
        if place in ends:
            is_inside, follows_literal = False, True
            if character in _SIGNS and kept and kept[-1] == " ":
                kept.pop()  # no space in front of a full stop
                places.pop()
        if place in starts:
            is_inside = True
        if is_inside:
            continue
        if follows_literal:
            if character.isspace() and (not kept or kept[-1].isspace()):
                continue
            divides = (
                kept and is_of_word(kept[-1]) and not (is_wide(kept[-1]) and is_wide(character))
            )
            if character.isalnum() and divides:
                kept.append(" ")
                places.append(place - 1)
        follows_literal = False
        kept.append(character)
        places.append(place)

    return "".join(kept), places


def with_insertions(
    text: str, literals: Sequence[Span], cut: str, places: Sequence[int], answer: Aligned
) -> Aligned:
    """The translation of a sentence without its literals, with each put back by the alignment.

    ``cut`` and ``places`` are those of ``cut_out``, and ``answer`` is the translation of ``cut``.
    """
    pair = SentencePair.of(cut, answer.text, answer.links)
    placer, units = Placer(pair), pair.target_units
    whole = _with_surroundings(text, literals)
    neighbors = _Neighbors(text, whole, places, pair)

    # The gap of each, all in the unchanged translation; in order of the source within a gap.
    gaps: dict[int, list[Span]] = {}
    for start, end in whole:
        at = bisect.bisect_left(places, start)
        gaps.setdefault(placer.gap(at), []).append((start, end))

    # Unit by unit, with the literals between them. Beside the neighbor that it had in the source a
    # literal has the white space that it had there, perhaps none.
    target = ""
    new_starts: list[int] = []
    copies: list[Copy] = []
    for number in range(len(units) + 1):
        begin = units[number - 1].end if number else 0
        stop = units[number].start if number < len(units) else len(answer.text)
        between = answer.text[begin:stop]
        last = -1
        for start, end in gaps.get(number, ()):
            blank = neighbors.before(start, number - 1, last)
            if blank is None:
                spaced = start > 0 and text[start - 1].isspace()
                blank = " " if spaced or _is_narrow_word(units, number - 1, target) else ""
            target += blank if target else ""
            moved_by = len(target) - start
            copies += [
                ((first, stop_), (first + moved_by, stop_ + moved_by))
                for first, stop_ in literals
                if start <= first < end
            ]
            target += text[start:end]
            last = end
        if number in gaps and number < len(units):
            blank = neighbors.behind(last, number)
            if blank is not None:
                between = blank
            elif not between:
                between = " " if units[number].is_word and not units[number].is_wide else ""
        if number < len(units):
            target += between if target else ""
            new_starts.append(len(target))
            target += answer.text[units[number].start : units[number].end]

    def moved(span: Span) -> Span | None:
        inside = units_at(units, *span)
        if not inside:
            return None
        first, last = inside[0], inside[-1]
        return new_starts[first], new_starts[last] + units[last].end - units[last].start

    links = [
        ((places[start], places[end - 1] + 1), new, weight)
        for (start, end), span, weight in answer.links
        if start < end <= len(places) and (new := moved(span)) is not None
    ]
    return Aligned(target, tuple(links), tuple(sorted(copies)))


class _Neighbors:
    """The white space between literals and the units beside them in a sentence."""

    def __init__(
        self, text: str, whole: Sequence[Span], places: Sequence[int], pair: SentencePair
    ) -> None:
        self._text, self._places, self._pair = text, places, pair
        self._starts = {start for start, _ in whole}
        self._ends = {end for _, end in whole}

    def before(self, start: int, number: int, last: int) -> str | None:
        """The white space before a literal, if that behind which it comes stands there too: the
        target unit of this number, or a literal that ends at ``last``; else None.
        """
        end = start
        while end and self._text[end - 1].isspace() and end not in self._ends:
            end -= 1
        is_same = end == last if last >= 0 else end not in self._ends and self._is(end - 1, number)
        return self._text[end:start] if is_same else None

    def behind(self, end: int, number: int) -> str | None:
        """The white space behind a literal, if the target unit of this number is what comes next in
        the source too; else None.
        """
        start = end
        while start < len(self._text) and self._text[start].isspace() and start not in self._starts:
            start += 1
        is_same = start not in self._starts and self._is(start, number)
        return self._text[end:start] if is_same else None

    def _is(self, place: int, number: int) -> bool:
        """Whether a target unit is aligned most with the unit at a character of the sentence, or is
        the same sign or word and aligned with it too.
        """
        if not 0 <= place < len(self._text) or not 0 <= number < len(self._pair.target_units):
            return False
        at = bisect.bisect_left(self._places, place)
        found = units_at(self._pair.source_units, at, at + 1)
        shares = self._pair.shares[number]
        if not found or found[0] not in shares:
            return False
        ours, theirs = self._pair.source_units[found[0]], self._pair.target_units[number]
        is_same = (
            self._pair.source[ours.start : ours.end] == self._pair.target[theirs.start : theirs.end]
        )
        return is_same or max(shares, key=shares.__getitem__) == found[0]


def _is_narrow_word(units: Sequence[Unit], number: int, target: str) -> bool:
    """Whether what was written last is a word, and not of a language without spaces."""
    is_word = 0 <= number < len(units) and units[number].is_word
    return is_word and not units[number].is_wide and not target[-1].isspace()
