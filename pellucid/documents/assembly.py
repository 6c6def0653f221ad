"""A translated segment from its translated sentences: the text joined, the marks put in."""

import bisect
import dataclasses
import functools
import heapq
import itertools
from collections.abc import Iterator, Sequence

from pellucid.documents.placement import Aligned, Placer, SentencePair, first_unit
from pellucid.documents.protected import unprotect
from pellucid.documents.segments import (
    OUTERMOST,
    Close,
    Node,
    Open,
    Piece,
    Segment,
    Span,
    all_nodes,
    overlapping,
)
from pellucid.text.scripts import is_of_word, is_wide
from pellucid.text.splitting import Sentence


@dataclasses.dataclass
class Reading:
    """A segment as text: its sentences, and its marks with their places."""

    kept: dict[int, str]
    """The texts that are not translated, by the numbers of their marks."""
    text: str
    root: Node
    sentences: list[Sentence]

    @functools.cached_property
    def has_marks(self) -> bool:
        """Whether a mark needs an alignment; the end of a line is found again without one."""
        return any(node.mark is None or not node.mark.breaks for node in all_nodes(self.root))

    @functools.cached_property
    def _literals(self) -> list[Node]:
        """The marks that stand for words, in order."""
        return [
            node
            for node in all_nodes(self.root)
            if node.mark and not node.mark.breaks and node.start < node.end
        ]

    def literals_in(self, sentence: Sentence) -> list[Node]:
        """The marks that stand for words of a sentence."""
        return self.literals_between(sentence.start, sentence.start + len(sentence.text))

    def literals_between(self, start: int, end: int) -> list[Node]:
        """The marks that stand for words between two places."""
        first = bisect.bisect_left(self._literals, start, key=lambda node: node.start)
        following = itertools.islice(self._literals, first, None)
        return list(itertools.takewhile(lambda node: node.end <= end, following))


@dataclasses.dataclass
class _Part:
    """A sentence and its translation, with their places in the whole texts."""

    start: int
    end: int
    target_start: int
    target_end: int
    source: str
    answer: Aligned
    cuts: list[int]
    """The characters of the source where its marks begin and end."""

    @property
    def is_unchanged(self) -> bool:
        """Whether the translation is the sentence itself, so that its marks stay where they are."""
        return self.source == self.answer.text

    @functools.cached_property
    def pair(self) -> SentencePair:
        """The units of both, which only a sentence with marks needs."""
        answer = self.answer
        return SentencePair.of(self.source, answer.text, answer.links, answer.copies, self.cuts)

    @functools.cached_property
    def placer(self) -> Placer:
        """The object that places marks in the translation."""
        return Placer(self.pair)

    def units_of(self, node: Node) -> list[int]:
        """The source units that lie in a pair of marks."""
        start, end = max(node.start, self.start), min(node.end, self.end)
        return self.pair.source_inside(start - self.start, end - self.start)

    def target_span(self, units: Span) -> Span:
        """Characters of the whole translation from the first to the last of some units."""
        start, end = units
        found = self.pair.target_units
        return self.target_start + found[start].start, self.target_start + found[end - 1].end

    def units_within(self, span: Span) -> Span:
        """The target units that lie within characters of the whole translation."""
        start, end = (place - self.target_start for place in span)
        units = self.pair.target_units
        first, stop = first_unit(units, start), first_unit(units, end)
        if stop > 0 and units[stop - 1].end > end:
            stop -= 1
        return (first, stop) if first < stop else (0, 0)

    def taken_within(self, units: Span, taken: Sequence[Span]) -> list[Span]:
        """The target units of the spans ``taken`` among some units."""
        if units[0] >= units[1]:
            return []
        near = overlapping(taken, *self.target_span(units))
        return [found for each in near if (found := self.units_within(each)) != (0, 0)]


def assemble(reading: Reading, answers: Sequence[Aligned]) -> Segment:
    """The translated segment, with every mark of the original exactly once and well nested."""
    target, parts, pinned = _joined(reading, answers)
    if not reading.root.children:
        return Segment((target,))
    spans = _Spans(reading, target, parts, pinned)
    spans.place_children(reading.root, (0, len(target)))
    spans.order_ranges(reading.root)

    pieces = _pieces(reading, target, spans.found)
    return unprotect(pieces, reading.kept)


def _joined(
    reading: Reading, answers: Sequence[Aligned]
) -> tuple[str, list[_Part], dict[int, Span]]:
    """The text of the translation, its parts, and the spans of the marks that have characters."""
    target = ""
    parts: list[_Part] = []
    pinned: dict[int, Span] = {}
    nodes = list(all_nodes(reading.root))
    breaks = {node.start: node for node in nodes if node.mark and node.mark.breaks}
    marked = sorted({place for node in nodes for place in (node.start, node.end)})

    def pin_breaks(start: int, stop: int) -> None:
        """Find the line ends in white space, which is copied as it is where there are any."""
        for place in range(start, stop):
            if place in breaks:
                at = len(target) + place - start
                pinned[breaks[place].number] = (at, at + 1)

    for number, (sentence, answer) in enumerate(zip(reading.sentences, answers, strict=True)):
        before = sentence.before
        if number:
            previous = reading.sentences[number - 1]
            before = previous.after + sentence.before
            # The mark of a footnote stays beside the full stop that it follows.
            if before or not any(ours[0] == 0 == theirs[0] for ours, theirs in answer.copies):
                source = previous.text + before + sentence.text[:1]
                # nothing is between two sentences of a script that has spaces: "past!—and"
                is_joined = not before and not any(map(is_wide, source[-2:]))
                before = _space(before, target, answer.text, is_joined=is_joined)
            source_at = previous.start + len(previous.text)
        else:
            source_at = 0
        pin_breaks(source_at, sentence.start)
        for node in reading.literals_between(sentence.start - len(sentence.before), sentence.start):
            at = len(target) + len(before) - sentence.start + node.start
            pinned[node.number] = (at, at + node.end - node.start)
        target += before

        source_end = sentence.start + len(sentence.text)
        for node, (_, (start, end)) in zip(
            reading.literals_in(sentence), answer.copies, strict=True
        ):
            pinned[node.number] = (len(target) + start, len(target) + end)
        first = bisect.bisect_right(marked, sentence.start)
        stop = bisect.bisect_left(marked, source_end)
        parts.append(
            _Part(
                sentence.start,
                source_end,
                len(target),
                len(target) + len(answer.text),
                sentence.text,
                answer,
                [place - sentence.start for place in marked[first:stop]],
            )
        )
        target += answer.text

    last = reading.sentences[-1]
    pin_breaks(last.start + len(last.text), len(reading.text))
    return target + last.after, parts, pinned


def _space(between: str, left: str, right: str, *, is_joined: bool) -> str:
    """The text between two translations, as between their sources; where one of the languages has
    no spaces between sentences, the script of the translation decides.
    """
    if not left.strip() or not right or is_joined:
        return between
    if is_wide(left[-1]) or is_wide(right[0]):
        return between if between.strip(" ") else ""
    # the space that is as wide as a letter of Chinese is one of its text alone
    return between.replace("\u3000", " ") or " "


class _Spans:
    """The characters of the translation that belong to each mark."""

    def __init__(
        self, reading: Reading, target: str, parts: Sequence[_Part], pinned: dict[int, Span]
    ) -> None:
        self._reading = reading
        self._target = target
        self._parts = parts
        self._pinned = pinned
        self._fixed = sorted(pinned.values())
        self._starts = [part.start for part in parts]
        self._target_ends = [part.target_end for part in parts]
        self._claims: dict[tuple[int, int], set[int]] = {}
        """By parent and sentence, the source units that lie in one of its pairs."""
        self._around: dict[tuple[int, int], tuple[Sequence[int], set[int]]] = {}
        """Source units by the parent and sentence that they lie in, and those that are words."""
        self.found: dict[int, Span] = {}

    def place_children(self, node: Node, allowed: Span) -> None:
        """Place what is inside ``node``, which has the characters ``allowed``."""
        # A link is within no other link. These spans do not overlap, and stay sorted.
        taken: list[Span] = sorted(
            self._pinned[child.number]
            for child in node.children
            if child.mark is not None
            and child.mark.kind == "label"
            and child.number in self._pinned
        )

        # Marks with characters of their own are where these are.
        for child in node.children:
            if child.number in self._pinned:
                self.found[child.number] = self._pinned[child.number]

        # Pairs around words: the surest first, so that the others get what is left.
        pairs = [child for child in node.children if child.mark is None]
        rated = [(child, *self._pair_span(child, node, allowed, taken)) for child in pairs]
        rated.sort(key=lambda each: -each[2])
        for child, span, _ in rated:
            if taken:
                span = self._pair_span(child, node, allowed, taken)[0]
            if span[0] == span[1]:
                span = _outside_of(span[0], [*taken, *self._fixed])
            else:
                bisect.insort(taken, span)
            self.found[child.number] = span
            self.place_children(child, span)

        # Marks without characters go between the words, and not into a pair beside them.
        for child in node.children:
            if child.mark is not None and child.number not in self._pinned:
                point = self._within_blanks(child.start, self._point(child.start))
                point = min(max(point, allowed[0]), allowed[1])
                # What follows a word, such as the number of a note, goes behind the pair with it.
                text = self._reading.text
                follows = child.start > 0 and not text[child.start - 1].isspace()
                self.found[child.number] = _outside_of(point, [*taken, *self._fixed], follows)

    def order_ranges(self, root: Node) -> None:
        """Put the marks of a range around its words, where these came in another order."""
        nodes = {node.number: node for node in all_nodes(root)}
        for end in nodes.values():
            start = None if end.mark is None or end.mark.ends is None else nodes.get(end.mark.ends)
            if start is None or self.found[start.number] <= self.found[end.number]:
                continue
            assert start.parent is not None
            if start.parent is end.parent:
                first, last = self._range_span(start, end, start.parent)
                self.found[start.number], self.found[end.number] = (first, first), (last, last)
            # One of them is in a pair: the other one goes to that end of the pair.
            elif (pair := _ancestor_in(start, end.parent)) is not None:
                self.found[end.number] = (self.found[pair.number][1],) * 2
            elif (pair := _ancestor_in(end, start.parent)) is not None:
                self.found[start.number] = (self.found[pair.number][0],) * 2

    def _range_span(self, start: Node, end: Node, parent: Node) -> Span:
        """The characters for the words between two marks; pairs that they are in belong to it."""
        allowed = self.found.get(parent.number, (0, len(self._target)))
        within = [
            each
            for each in parent.children
            if start.start <= each.start and each.end <= end.start and each not in (start, end)
        ]
        words = Node(OUTERMOST, parent, start.start, end.start, children=within)
        first, last = self._pair_span(words, parent, allowed, ())[0]
        pairs = [self.found[each.number] for each in parent.children if each.mark is None]
        for left, right in [*pairs, *self._fixed]:
            first = left if left < first < right else first
            last = right if left < last < right else last
        return first, last

    def _pair_span(
        self, node: Node, parent: Node, allowed: Span, taken: Sequence[Span]
    ) -> tuple[Span, float]:
        """The characters for a pair, and how sure they are; an empty span for one without words."""
        spans: list[Span] = []
        certainty = 0.0
        for part in self._parts_within(node.start, node.end):
            start, end = max(node.start, part.start), min(node.end, part.end)
            if start >= end:
                continue
            if part.is_unchanged:
                moved = part.target_start - part.start
                spans.append((start + moved, end + moved))
                certainty += end - start
                continue
            inside = part.units_of(node)
            free = part.units_within(allowed)
            if not inside or free[0] == free[1]:
                continue

            of_parent, its_words = self._units_of(parent, part)
            is_whole = its_words <= set(part.pair.words_of(inside))
            if is_whole and not part.taken_within((0, len(part.pair.target_units)), taken):
                spans.append(part.target_span(part.placer.whole(inside, of_parent, free)))
                certainty += len(inside)
                continue
            reach = part.placer.reach(inside, free)
            blocked = part.taken_within(reach, taken)
            others = self._claimed(parent, part) - set(inside)
            if (found := part.placer.place(inside, reach, blocked, others)) is not None:
                spans.append(part.target_span(found[0]))
                certainty += found[1]

        # The white space and line ends at its start or end belong to it too.
        spans += self._blanks_between(node)
        inner = [
            self._pinned[n.number]
            for n in all_nodes(node)
            if n.number in self._pinned and allowed[0] <= self._pinned[n.number][0] < allowed[1]
        ]
        hull = _clear([*spans, *inner], taken)
        if hull is None:
            point = min(max(self._point(node.start), allowed[0]), allowed[1])
            is_read = any(map(str.isalnum, self._reading.text[node.start : node.end]))
            return (self._nearest_word(point, allowed, taken) if is_read else (point, point)), -1.0
        return hull, certainty

    def _parts_within(self, start: int, end: int) -> Sequence[_Part]:
        """The sentences that share characters of the text with a span, or touch it."""
        # They stand in order: a paragraph may have as many sentences as marks.
        first = bisect.bisect_right(self._starts, start) - 1
        return self._parts[max(0, first) : bisect.bisect_right(self._starts, end)]

    def _units_of(self, parent: Node, part: _Part) -> tuple[Sequence[int], set[int]]:
        """The source units of a sentence that lie in a pair, and those of them that are words."""
        key = parent.number, part.start
        if key not in self._around:
            units = part.units_of(parent)
            self._around[key] = units, set(part.pair.words_of(units))
        return self._around[key]

    def _claimed(self, parent: Node, part: _Part) -> set[int]:
        """The source units of a sentence that lie in a pair among the children of ``parent``."""
        key = parent.number, part.start
        if key not in self._claims:
            self._claims[key] = {
                number
                for child in parent.children
                if child.mark is None and child.start < part.end and child.end > part.start
                for number in part.units_of(child)
            }
        return self._claims[key]

    def _nearest_word(self, point: int, allowed: Span, taken: Sequence[Span]) -> Span:
        """The word next to a point that no other pair has, so that a link is never around nothing;
        the point if there is none.
        """

        def distance(span: Span) -> int:
            return abs(span[0] - point)

        first = bisect.bisect_left(self._target_ends, point)
        for part in itertools.takewhile(
            lambda part: part.target_start <= point, self._parts[first:]
        ):
            units, begin = part.pair.target_units, part.target_start
            middle = first_unit(units, point - begin)
            # From the point on in both directions: a sentence may have hundreds of words and pairs.
            sides = (
                ((begin + u.start, begin + u.end) for u in side if u.is_word)
                for side in (reversed(units[:middle]), units[middle:])
            )
            for span in heapq.merge(*sides, key=distance):
                is_inside = allowed[0] <= span[0] and span[1] <= allowed[1]
                if is_inside and not any(overlapping(each, *span) for each in (taken, self._fixed)):
                    return span
        return point, point

    def _blanks_between(self, node: Node) -> Iterator[Span]:
        """The white space of the translation for what a pair has of that around sentences."""
        parts = self._parts_within(node.start, node.end)
        if not parts:
            return
        before = bisect.bisect_left(self._starts, parts[0].start)
        after = self._starts[before + len(parts) : before + len(parts) + 1]
        ends = [self._parts[before - 1].end if before else 0, *(part.end for part in parts)]
        starts = [*(part.start for part in parts), *(after or [len(self._reading.text)])]
        for first, last in zip(ends, starts, strict=True):
            start, end = max(node.start, first), min(node.end, last)
            if start < end:
                span = self._point(start), self._point(end)
                if self._target[slice(*span)].isspace():
                    yield span

    def _point(self, place: int) -> int:
        """The character of the translation for a place between characters of the text."""
        following = bisect.bisect_right(self._starts, place)
        for number in range(max(0, following - 2), min(following + 1, len(self._parts))):
            part = self._parts[number]
            if place < part.start or (place == part.start and number == 0):
                # In the white space before a sentence: as far from it as in the source.
                return max(0, part.target_start - (part.start - place))
            if place == part.start:
                return part.target_start
            if place < part.end:
                return self._point_within(part, place - part.start)
            if place == part.end:
                return part.target_end
        last = self._parts[-1]
        return min(len(self._target), last.target_end + place - last.end)

    def _within_blanks(self, place: int, point: int) -> int:
        """The point moved to where ``place`` is among its spaces, if there are as many of them."""
        text, target = self._reading.text, self._target
        first, last = _blanks_around(text, place)
        start, end = _blanks_around(target, point)
        return start + place - first if 1 < last - first == end - start else point

    def _point_within(self, part: _Part, place: int) -> int:
        if part.is_unchanged:
            return part.target_start + place
        gap = part.placer.gap(place)
        units = part.pair.target_units
        if not units:
            return part.target_start
        source = part.pair.source
        leans_right = source[place - 1].isspace() and not source[place : place + 1].isspace()
        if gap == len(units) or (gap and not leans_right):
            return part.target_start + units[gap - 1].end
        return part.target_start + units[gap].start


def _ancestor_in(node: Node, parent: Node | None) -> Node | None:
    """The pair around ``node`` that is a child of ``parent``."""
    above: Node | None = node
    while above is not None and above.parent is not parent:
        above = above.parent
    return above


def _blanks_around(text: str, place: int) -> Span:
    """The spaces before and after a place."""
    start = end = place
    while text[start - 1 : start] == " ":
        start -= 1
    while text.startswith(" ", end):
        end += 1
    return start, end


def _clear(spans: Sequence[Span], taken: Sequence[Span]) -> Span | None:
    """From the first to the last of the spans, without what is taken: the longest part of it."""
    if not spans:
        return None
    start, end = min(first for first, _ in spans), max(last for _, last in spans)
    free = [(start, end)]
    for first, last in overlapping(taken, start, end):
        free = [
            part
            for left, right in free
            for part in ((left, min(right, first)), (max(left, last), right))
            if part[0] < part[1]
        ]
    return max(free, key=lambda each: each[1] - each[0], default=None)


def _outside_of(point: int, taken: Sequence[Span], follows: bool = False) -> Span:
    """The point, moved to the nearer end of a span that it lies within; to the last if it
    ``follows`` what is there.
    """
    for start, end in taken:
        if start < point < end:
            point = start if point - start <= end - point and not follows else end
            return _outside_of(point, [each for each in taken if each != (start, end)], follows)
    return point, point


def _pieces(reading: Reading, target: str, found: dict[int, Span]) -> list[Piece]:
    """The text with its marks: of each kind of mark exactly as many as there were."""
    root = reading.root
    # Which pair a mark of characters lies in is decided by where it is, as pairs may have moved.
    nodes = list(all_nodes(root))
    pairs = [node for node in nodes if node.mark is None]
    order = {node.number: rank for rank, node in enumerate(nodes)}
    inside: dict[int, list[Node]] = {}
    for node in nodes:
        holder = _holder(node, root, pairs, found)
        inside.setdefault(holder.number, []).append(node)

    def write(node: Node, span: Span) -> list[Piece]:
        """The pieces of a node and of what lies in its span."""
        pieces: list[Piece] = []
        at = span[0]

        children = sorted(
            inside.get(node.number, ()), key=lambda n: (*found[n.number], order[n.number])
        )

        for index, child in enumerate(children):
            start, end = found[child.number]
            pieces.append(target[at:start])
            if child.mark is None:
                pieces += [Open(child.number), *write(child, (start, end)), Close(child.number)]
            else:
                is_between = _stands_between_spaces(reading.text, child)
                # Of marks with nothing between them the first and the last stand beside the spaces.
                before, after = children[max(0, index - 1)], children[index + 1 : index + 2]
                is_first = index == 0 or (before.start, before.end) != (child.start, child.end)
                is_last = not after or (after[0].start, after[0].end) != (child.start, child.end)
                if is_between and is_first and _needs_space(pieces):
                    pieces.append(" ")
                pieces.append(child.mark)
                if is_between and is_last and _has_spaces(target[end : min(end + 1, span[1])]):
                    pieces.append(" ")
            at = end

        pieces.append(target[at : span[1]])
        return [piece for piece in pieces if piece != ""]

    return write(root, (0, len(target)))


def _stands_between_spaces(text: str, node: Node) -> bool:
    """Whether a mark without characters, such as a picture, has a space on each side of it.

    No translation of the text has both: a model reads them as one.
    """
    is_empty = node.start == node.end
    return is_empty and text[max(0, node.start - 1) : node.start + 1] == "  "


def _needs_space(pieces: Sequence[Piece]) -> bool:
    """Whether what was written ends with a word, so that a mark beside it needs a space."""
    last = next((each for each in reversed(pieces) if each != ""), "")
    return not isinstance(last, str) or _has_spaces(last[-1:])


def _has_spaces(character: str) -> bool:
    """Whether a space belongs between this character and a picture."""
    return is_of_word(character) and not is_wide(character)


def _holder(node: Node, root: Node, pairs: Sequence[Node], found: dict[int, Span]) -> Node:
    """The pair that a node is written in."""
    assert node.parent is not None
    start, end = found[node.number]
    if node.mark is None or start == end:
        return node.parent

    # The innermost pair around it; pairs are listed from the outermost in.
    holder = root
    for pair in pairs:
        first, last = found[pair.number]
        if first <= start and end <= last and first < last:
            holder = pair
    return holder
