"""Folds what is fixed in a segment before it is translated, and unfolds it in the translation.

- An inline element without a letter, such as the number of a note, is one mark with fixed content,
  which stays behind the word that it followed; a number that stands for a word is read as one.
- A word with raised or lowered parts, such as a formula, is one word that is not translated.
- Two marks around a range of text, such as those of a bookmark, are a pair.
- A pair around the whole text, and marks at its ends, are no part of what is translated.
- Links and labels side by side, with no sentence around them, are as many texts.
- A large first letter is part of its word, and its marks go around the first letter again.
"""

import dataclasses
import itertools
import re
from collections.abc import Iterable, Sequence

from pellucid.documents.protected import literals_in
from pellucid.documents.segments import Alone, Close, Kind, Open, Piece, Segment

_BARS = "|¦│·•‧∙●○◦▪■»›▸▶→"
"""Signs between the links of a menu or the parts of a path."""
_BAR = re.compile(rf"[{_BARS}]")
_DIVIDES = re.compile(rf"(?<!\s)\s*[{_BARS}][\s{_BARS}]*")
"""A bar with its white space; it begins where the white space does, or would be quadratic."""
_SPACED_BAR = re.compile(r"\s[|¦·•]\s")
"""A bar between two texts without a mark, as in the title of a page."""
_STEP = re.compile(r"(?<!\s)\s+[/>»]\s+")
"""A sign between the parts of a path, of which the last one is no link."""
_BETWEEN = re.compile(rf"[\s\d{_BARS}/\\–—←<>«‹,;:()\[\]{{}}&+~*_=#-]*")
"""The characters that may stand between texts that are no sentence."""
_NUMBER = re.compile(r"[+−-]?[$€£¥₹]?\s?\d(?:[\d.,:/'’\s–−-]*\d)?\s?[%‰°$€£¥₹]?")
"""A number, an amount, a date or a range."""
_STOPS = re.compile(r"[.,;:!?…。、，！？：；]+")
_SIGNED = re.compile(r"[+−–-]\d{1,3}|\d{0,2}[+−–-]")
"""A raised text that is an exponent or a charge, and not the number of a note."""
_ROMAN = re.compile(r"(?=[ivxl])(?:xl|l?x{0,3})(?:ix|iv|v?i{0,3})")
"""Numbers of pages and notes, up to 89."""
_BESIDE_NUMBERS = re.compile(r"\s*[,;–—-]?\s*")
"""Between two numbers of notes."""
_BETWEEN_PAGES = re.compile(r"[\s,;.–—-]*")
_CLOSING = frozenset(".,;:!?…)]}»”’\"'。、，！？：；」』")
"""Signs behind which a number without a space is that of a note."""
_BRACKETS = {"[": "]", "(": ")"}
_AROUND = {"(": ")", "[": "]", "“": "”", "„": "“", "«": "»", "»": "«", '"': '"', "‘": "’"}
_PREFIX = re.compile(rf"[^\w]*|\W?\d[\d.]*[.):]\s+|[\d\s.]*[{_BARS}–—]+\s*")
"""The characters before a text that are no part of it: signs, or the number of an item."""
_SUFFIX = re.compile(rf"(?:\s[^\w.!?…,;:]*)?|\s*(?:\.\.|…|[{_BARS}]|\t|\s[(\[])[^\w]*\d*\W*")
"""The characters behind a text that are no part of it: signs after a space, or a page number."""
_DROP_CAP = re.compile(r"[^\w\s]{0,2}[^\W\d_]")
_LONGEST_SCRIPT = 12
"""Characters of a raised or lowered text; a longer one is no part of a word."""
_LONGEST_NUMBER = 6
"""Characters of a reference to a note: 12, [iv], a, 3b."""
_LONGEST_WORD = 40
"""Characters of a word with an index, and of what is left out around a whole text."""
_DEEPEST = 40
"""Pairs within each other that are looked into; ranges are pairs in the outer half of them."""
_DEEPEST_RANGES = 3
_NEAREST = 4
"""Items on a side of a mark that are searched for the character beside it."""


@dataclasses.dataclass
class _Pair:
    """Two marks and what is between them."""

    first: Open | Alone
    last: Close | Alone
    inner: "list[_Item]"
    text: str
    """The text in it, without marks except those that are read as words."""
    has_break: bool
    has_words: bool
    """Whether it holds a mark that is read as a word, such as code."""
    tail: list[Alone] = dataclasses.field(default_factory=list)
    """Marks directly behind a range, which belong to it, such as a comment's."""

    @property
    def kind(self) -> Kind:
        """The kind of its marks."""
        return self.first.kind

    @property
    def is_fixed(self) -> bool:
        """Whether it is one mark, with all that is in it."""
        text = self.text.strip()
        if self.has_words or (self.has_break and text):
            return False
        if self.kind == "reference":
            return len(text) <= _LONGEST_NUMBER and not any(map(str.isspace, text))
        if self.kind == "script":
            return len(text) <= _LONGEST_SCRIPT and not any(map(str.isspace, text))
        is_page = self.kind == "label" and len(text) > 1 and _ROMAN.fullmatch(text) is not None
        return is_page or not any(map(str.isalpha, text))

    @property
    def is_noted(self) -> bool:
        """Whether it is a note's number wherever it stands, and never a word of the sentence."""
        return self.kind in ("script", "reference")


_Item = str | Alone | _Pair


@dataclasses.dataclass
class _DropCap:
    """The marks of a large first letter."""

    before: list[Piece]
    after: list[Piece]
    with_sign: bool
    """Whether a sign before the letter, such as a quotation mark, is large too."""


class Folded:
    """A segment as parts, each of which is translated by itself; most have one."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self._last_number = max((mark.number for mark in segment.marks), default=-1)
        self._contents: dict[int, list[Piece]] = {}
        """By mark that was made here, what it stands for."""
        self._ranges: dict[int, _Pair] = {}
        """By the number of the mark that begins it, a range that is a pair here."""
        self._drop_caps: dict[int, _DropCap] = {}
        """By part."""
        self.parts: list[Segment] = []
        """The parts to translate."""
        self._layout: list[Piece | None] = []
        """The pieces that are not translated, in order, and None for each part."""
        if segment.marks or _SPACED_BAR.search(segment.text):
            self._divide(_tree(segment.pieces), 0)
        else:
            self._add(segment.pieces)

    def unfolded(self, parts: Sequence[Sequence[Piece]]) -> Segment:
        """The whole segment, from the pieces of its translated parts."""
        if all(tuple(new) == old.pieces for new, old in zip(parts, self.parts, strict=True)):
            return self._segment
        written: list[Piece] = []
        numbers = iter(range(len(parts)))
        for kept in self._layout:
            pieces: Sequence[Piece] = (kept,) if kept is not None else ()
            if kept is None:
                number = next(numbers)
                pieces = parts[number]
                if number in self._drop_caps:
                    pieces = _with_drop_cap(pieces, self._drop_caps[number])
            for each in itertools.chain.from_iterable(map(self._content, pieces)):
                if isinstance(each, str) and written and isinstance(written[-1], str):
                    written[-1] += each
                elif each != "":
                    written.append(each)
        return Segment(tuple(_in_order(written)))

    def _content(self, piece: Piece) -> Sequence[Piece]:
        """Return the pieces that one piece stands for."""
        if isinstance(piece, str):
            return (piece,)
        if isinstance(piece, Alone):
            return self._contents.get(piece.number, (piece,))
        pair = self._ranges.get(piece.number)
        if pair is None:
            return (piece,)
        return (pair.last, *pair.tail) if isinstance(piece, Close) else (pair.first,)

    def _new_mark(
        self,
        content: Iterable[_Item],
        text: str = "",
        *,
        breaks: bool = False,
        kind: Kind = "format",
    ) -> Alone:
        self._last_number += 1
        self._contents[self._last_number] = _pieces(content)
        return Alone(self._last_number, text, breaks, kind=kind)

    # What is translated by itself.

    def _divide(self, items: list[_Item], depth: int) -> None:
        """Add the parts of some items: what is at their ends as it is, and texts to translate."""
        items, stop = _without_pages(items)
        first = 0
        while first < stop and _is_at_edge(items, first, 1):
            first += 1
        while stop > first and _is_at_edge(items, stop - 1, -1):
            stop -= 1
        self._keep(items[:first])
        self._divide_inner(items[first:stop], depth)
        self._keep(items[stop:])

    def _divide_inner(self, items: list[_Item], depth: int) -> None:
        for number in (0, len(items) - 1) if depth < _DEEPEST else ():
            if (badge := _badge_at(items, number)) is not None:
                self._divide(items[:number], depth + 1)
                self._divide_pair(badge, depth)
                self._divide(items[number + 1 :], depth + 1)
                return
        parts = (_neighbors(items) or _whole(items)) if depth < _DEEPEST else None
        if parts is not None:
            for each in parts:
                if isinstance(each, _Pair) and _is_read(each):
                    self._divide_pair(each, depth)
                elif isinstance(each, str) and _is_read(each):
                    self._add((each,))
                else:
                    self._keep([each])
            return

        items, drop_cap = _without_drop_cap(items)
        if drop_cap is not None:
            self._drop_caps[len(self.parts)] = drop_cap
        folded = self._folded(items, "", "")
        self._add(tuple(self._marked(folded)))

    def _divide_pair(self, pair: _Pair, depth: int) -> None:
        self._keep([pair.first])
        self._divide(pair.inner, depth + 1)
        self._keep([pair.last, *pair.tail])

    def _keep(self, items: Iterable["_Item | Open | Close"]) -> None:
        """Add what is not translated."""
        self._layout += _pieces(items)

    def _add(self, pieces: tuple[Piece, ...]) -> None:
        """Add a part to translate."""
        self._layout.append(None)
        self.parts.append(Segment(pieces))

    def _marked(self, items: Iterable[_Item]) -> list[Piece]:
        """The pieces of items in which ranges are pairs."""
        pieces: list[Piece] = []
        for item in items:
            if not isinstance(item, _Pair):
                pieces.append(item)
                continue
            number = item.first.number
            if isinstance(item.first, Alone):
                self._ranges[number] = item
            pieces += [Open(number, item.kind), *self._marked(item.inner), Close(number)]
        return pieces

    # What is one mark.

    def _folded(self, items: Sequence[_Item], before: str, after: str) -> list[_Item]:
        """The items, with marks for those that are fixed. ``before`` and ``after`` are the
        characters around them.
        """
        waiting = list(reversed(items))
        done: list[_Item] = []
        while waiting:
            item = waiting.pop()
            if not isinstance(item, _Pair):
                done.append(item)
                continue
            left = _last_character(done) or before
            right = _first_character(waiting) or after
            if not item.is_fixed:
                if _touch(done, item):
                    done.append(self._new_mark((), breaks=True))
                done.append(dataclasses.replace(item, inner=self._folded(item.inner, left, right)))
            elif (spaced := _without_outer_space(item, left, right)) is not None:
                waiting += reversed(spaced)
            else:
                self._fold(item, waiting, done, before, after)
        return [item for item in done if item != ""]

    def _fold(
        self, item: _Pair, waiting: list[_Item], done: list[_Item], before: str, after: str
    ) -> None:
        """Add a mark for a fixed pair and what belongs to it, which is taken from both lists."""
        left = _last_character(done) or before
        cluster: list[_Item] = [item]
        if item.text.strip():
            self._gather(cluster, waiting, is_bracketed=left in _BRACKETS)

        # The brackets around numbers of notes go with them.
        closing = waiting[-1] if waiting else None
        opening = done[-1] if done else None
        if (
            isinstance(closing, str)
            and isinstance(opening, str)
            and item.text.strip()
            and left in _BRACKETS
            and closing[:1] == _BRACKETS[left]
        ):
            cluster = [left, *cluster, closing[:1]]
            done[-1], waiting[-1] = opening[:-1], closing[1:]
            left = _last_character(done) or before

        if item.kind == "script" and self._fold_formula(cluster, waiting, done):
            return
        if item.has_break:
            done.append(self._new_mark(cluster, breaks=True))
            return
        words = _text(cluster).strip()
        is_attached = left.isalnum() or left in _CLOSING
        is_word = _STOPS.fullmatch(words) or (_NUMBER.fullmatch(words) and not is_attached)
        if is_word and not item.is_noted:
            done.append(self._new_mark(cluster, words, kind=item.kind))
            return

        right = _first_character(waiting) or after
        last = done[-1] if done else None
        if words and isinstance(last, str) and left.isspace() and not right.isalnum():
            # The space before it goes with it, as no word stands between it and the next one.
            kept = last.rstrip()
            if kept or len(done) > 1:
                cluster = [last[len(kept) :], *cluster]
                done[-1] = kept
        done.append(self._new_mark(cluster))

    @staticmethod
    def _gather(cluster: list[_Item], waiting: list[_Item], *, is_bracketed: bool) -> None:
        """Add more numbers of notes to the first: "1,2" and "1–3"; with spaces in brackets only."""
        while waiting:
            between, following = waiting[-1], waiting[-1]
            if isinstance(between, str) and len(waiting) > 1:
                has_space = any(map(str.isspace, between))
                if not _BESIDE_NUMBERS.fullmatch(between) or (has_space and not is_bracketed):
                    return
                following = waiting[-2]
            if not (isinstance(following, _Pair) and following.is_fixed and following.text.strip()):
                return
            if isinstance(between, str):
                cluster.append(waiting.pop())
            cluster.append(waiting.pop())

    def _fold_formula(self, cluster: list[_Item], waiting: list[_Item], done: list[_Item]) -> bool:
        """Add a word with raised or lowered parts as one mark, if it is a formula."""
        host = _last_word(done)
        tail = _first_word(waiting)
        if not _is_formula(host, _text(cluster), tail):
            return False
        if host:
            last = done.pop()
            if isinstance(last, str):
                done.append(last[: len(last) - len(host)])
                last = host
            cluster.insert(0, last)
        while tail:
            following = waiting.pop()
            if isinstance(following, str):
                waiting.append(following[len(tail) :])
                following = tail
            cluster.append(following)
            # Another index may follow: H2SO4.
            if waiting and waiting[-1] == "":
                waiting.pop()
            index = waiting[-1] if waiting else None
            if not (isinstance(index, _Pair) and index.kind == "script" and index.is_fixed):
                break
            cluster.append(waiting.pop())
            tail = _first_word(waiting)
        done.append(self._new_mark(cluster, _text(cluster)))
        return True


def _is_formula(host: str, script: str, tail: str) -> bool:
    """Whether a word with an index is a formula; one that is like any other word has a note."""
    if len(host) > _LONGEST_WORD or len(tail) > _LONGEST_WORD:
        return False
    if not host:
        # An isotope, 14C, and no number of a verse.
        return len(tail) == 1 and tail.isupper() and tail not in "AIOÀ"
    is_plain = host.isalpha() and (host.islower() or host.istitle()) and len(host) > 2
    if tail:
        return not is_plain or any(map(str.isalpha, script))
    if _SIGNED.fullmatch(script.strip()):
        return not is_plain or len(host) <= 4
    return not is_plain


def _without_outer_space(pair: _Pair, left: str, right: str) -> list[_Item] | None:
    """A fixed pair with the white space at its ends beside it, where words need it there."""
    text = pair.text
    words = text.strip()
    is_word = _NUMBER.fullmatch(words) or _STOPS.fullmatch(words)
    if not words or words == text or not (is_word or (left.isalnum() and right.isalnum())):
        return None
    if len(pair.inner) != 1 or not isinstance(pair.inner[0], str):
        return None
    start = text.index(words)
    inner = dataclasses.replace(pair, inner=[words], text=words)
    parts: list[_Item] = [text[:start], inner, text[start + len(words) :]]
    return [part for part in parts if part != ""]


def _is_at_edge(items: Sequence[_Item], at: int, step: int) -> bool:
    """Whether an item at an end of a text is no part of it."""
    item = items[at]
    if isinstance(item, str):
        beyond = at + step
        is_blank = not item.strip() and 0 <= beyond < len(items)
        return is_blank and not isinstance(items[beyond], str) and _is_at_edge(items, beyond, step)
    if isinstance(item, Alone):
        return not item.text and not item.breaks
    text = item.text.strip()
    is_word = bool(_NUMBER.fullmatch(text) or _STOPS.fullmatch(text)) and not item.is_noted
    if step > 0 and text == item.text and _text(items[at + 1 : at + 2])[:1].isupper():
        is_word = False  # the number of a heading, which touches it: "1.2Red house"
    if item.kind == "script":
        # The beginning or the end of a formula.
        host, tail = _last_word(items[max(0, at - 1) : at]), _first_word(items[at + 1 : at + 2])
        is_word = (step < 0 or not host) and bool(host or tail) and _is_formula(host, text, tail)
    return item.is_fixed and not item.has_break and not is_word


def _without_pages(items: list[_Item]) -> tuple[list[_Item], int]:
    """The items, and where the numbers of pages begin at their end, as in an index: "cats, 3"."""
    start = len(items)
    has_number = False
    while start > 0:
        item = items[start - 1]
        if isinstance(item, str) and not _BETWEEN_PAGES.fullmatch(item):
            break
        if isinstance(item, Alone) or (
            isinstance(item, _Pair) and not (item.is_fixed and item.kind in ("label", "reference"))
        ):
            break
        has_number = has_number or (isinstance(item, _Pair) and bool(item.text.strip()))
        start -= 1
    last = items[start - 1] if start > 0 else None
    if not has_number or not isinstance(last, str):
        return items, len(items)
    words = last.rstrip(" \u00a0,;")
    if "," not in last[len(words) :] or not words:
        return items, len(items)
    return [*items[: start - 1], words, last[len(words) :], *items[start:]], start


def _is_read(item: _Item) -> bool:
    """Whether a text or pair holds something to read."""
    if isinstance(item, Alone):
        return bool(item.text)
    if isinstance(item, str):
        return any(map(str.isalpha, item))
    return not item.is_fixed and (item.has_words or any(map(str.isalpha, item.text)))


def _whole(items: Sequence[_Item]) -> Sequence[_Item] | None:
    """The items, if one of them is a pair around all of the text but signs beside it."""
    read = [number for number, item in enumerate(items) if _is_read(item)]
    if len(read) != 1 or not isinstance(items[read[0]], _Pair):
        return None
    if any(isinstance(item, Alone) and item.breaks for item in items):
        return None
    # A number in a pair of its own stands beside the text: "1 Red house", "Red house 12".
    before, after = (
        _text(item for item in side if not isinstance(item, _Pair))
        for side in (items[: read[0]], items[read[0] + 1 :])
    )
    if len(before) > _LONGEST_WORD or len(after) > _LONGEST_WORD:
        return None
    if before.strip() in _AROUND and _AROUND[before.strip()] == after.strip():
        return items
    return items if _PREFIX.fullmatch(before) and _SUFFIX.fullmatch(after) else None


def _neighbors(items: Sequence[_Item]) -> list[_Item] | None:
    """The texts side by side in what is no sentence, and what is between them."""
    pairs = sum(isinstance(item, _Pair) and _is_read(item) for item in items)
    bars = {n: _bars_in(item) for n, item in enumerate(items) if isinstance(item, str)}
    is_barred = any(_SPACED_BAR.search(bar[0]) for found in bars.values() for bar in found)
    if pairs < 2 and not is_barred and not (pairs and any(bars.values())):
        return None

    # Texts between bars are labels as well.
    parts: list[_Item] = []
    for number, item in enumerate(items):
        if isinstance(item, str) and _is_read(item):
            at = 0
            steps = [step for step in _STEP.finditer(item) if step.end() == len(item)]
            steps += [step] if (step := _STEP.match(item)) else []
            for found in sorted([*bars[number], *steps], key=lambda bar: bar.start()):
                parts += [item[at : found.start()], found[0]]
                at = found.end()
            parts.append(item[at:])
        else:
            parts.append(item)

    last: _Item | None = None
    between = ""
    for part in parts:
        if isinstance(part, Alone) and part.breaks:
            return None
        if not _is_read(part):
            between += _text_of(part)
            continue
        if last is not None and not _is_divided(last, between, part):
            return None
        last, between = part, ""
    return [part for part in parts if part != ""]


_SEPARATE = frozenset(("label", "badge"))
"""Kinds with a text of their own."""


def _badge_at(items: Sequence[_Item], number: int) -> _Pair | None:
    """The badge that stands there, with a text beside it."""
    item = items[number] if len(items) > 1 else None
    is_badge = isinstance(item, _Pair) and item.kind == "badge" and _is_read(item)
    return item if is_badge and isinstance(item, _Pair) else None


def _bars_in(text: str) -> list[re.Match[str]]:
    """The bars in a text with letters, except those of placeholders: ``{{ x | date }}``."""
    if not _BAR.search(text) or not _is_read(text):
        return []
    kept = literals_in(text)
    return [
        bar
        for bar in _DIVIDES.finditer(text)
        if not any(start < bar.end() and bar.start() < end for start, end in kept)
    ]


def _is_divided(left: _Item, between: str, right: _Item) -> bool:
    """Whether the texts on both sides of ``between`` are two."""
    if not _BETWEEN.fullmatch(between):
        return False
    if _BAR.search(between):
        return True
    kinds = {each.kind if isinstance(each, _Pair) else None for each in (left, right)}
    if _STEP.fullmatch(between) and kinds & _SEPARATE:
        return True
    if None in kinds:
        return False
    if kinds <= _SEPARATE:
        return True
    # Boxes of a page that touch: "Red houseBlue car".
    before, after = _text_of(left)[-2:], _text_of(right)[:1]
    is_joint = (
        before[-1:].islower() and len(before) > 1 and (after.isupper() or after.isdigit())
    ) or (before[-1:] in (".", "!", "?") and after.isupper())
    return kinds <= _SEPARATE | {"span"} and not between and is_joint


def _touch(done: Sequence[_Item], item: _Pair) -> bool:
    """Whether two labels stand side by side without a space, as no words of a sentence do, or a
    badge behind a word.
    """
    last = done[-1] if done else None
    if item.kind == "badge" and isinstance(last, str):
        return last[-1:] != "" and not last[-1:].isspace()
    return (
        isinstance(last, _Pair)
        and {last.kind, item.kind} <= _SEPARATE
        and last.text[-1:].isalnum()
        and item.text[:1].isalnum()
    )


def _without_drop_cap(items: list[_Item]) -> tuple[list[_Item], _DropCap | None]:
    """The items without the marks of a large first letter, and these."""
    pair = items[0] if len(items) > 1 else None
    if not isinstance(pair, _Pair):
        return items, None
    if not _DROP_CAP.fullmatch(pair.text):
        # Or the first letter in it is.
        inner, drop_cap = _without_drop_cap(pair.inner)
        return [dataclasses.replace(pair, inner=inner), *items[1:]], drop_cap
    following = items[1]
    starts = "" if isinstance(following, Alone) else _text_of(following)[:2]
    if isinstance(following, _Pair) and following.is_fixed:
        return items, None  # a letter with an index
    is_elided = pair.kind == "span" and starts[:1] in ("'", "’") and starts[1:].isalpha()
    pieces = _pieces([pair])
    texts = [number for number, piece in enumerate(pieces) if isinstance(piece, str)]
    if not (starts[:1].isalpha() or is_elided) or len(texts) != 1:
        return items, None

    drop_cap = _DropCap(pieces[: texts[0]], pieces[texts[0] + 1 :], len(pair.text) > 1)
    if isinstance(following, str):
        return [pair.text + following, *items[2:]], drop_cap
    return [pair.text, *items[1:]], drop_cap


def _with_drop_cap(pieces: Sequence[Piece], drop_cap: _DropCap) -> list[Piece]:
    """The pieces with the marks around their first letter or digit."""
    for number, piece in enumerate(pieces):
        place = (
            next((n for n, character in enumerate(piece) if character.isalnum()), None)
            if isinstance(piece, str)
            else None
        )
        if place is None:
            continue
        assert isinstance(piece, str)
        start = place
        while drop_cap.with_sign and start > 0 and not piece[start - 1].isspace():
            start -= 1
        return [
            *pieces[:number],
            piece[:start],
            *drop_cap.before,
            piece[start : place + 1],
            *drop_cap.after,
            piece[place + 1 :],
            *pieces[number + 1 :],
        ]
    return [*drop_cap.before, *drop_cap.after, *pieces]


def _in_order(pieces: list[Piece]) -> list[Piece]:
    """The pieces, with the marks in order that have an order of their own, and no range that ends
    before it begins.
    """
    marks = [each for each in pieces if isinstance(each, Alone)]
    ordered = iter(sorted((each for each in marks if each.in_order), key=lambda each: each.number))
    begins = {each.ends for each in marks}

    # A range that is no pair, as it overlaps with one: its end waits for its beginning.
    begun: set[int] = set()
    early: dict[int, Alone] = {}
    written: list[Piece] = []
    for piece in pieces:
        if not isinstance(piece, Alone):
            written.append(piece)
        elif piece.in_order:
            written.append(next(ordered))
        elif piece.ends is not None and piece.ends not in begun:
            early[piece.ends] = piece
        else:
            written.append(piece)
            if piece.number in begins:
                begun.add(piece.number)
                written += [early.pop(piece.number)] if piece.number in early else []
    return [*written, *early.values()]


# Pieces as a tree of items.


def _tree(pieces: Sequence[Piece]) -> list[_Item]:
    """The pieces as items; each pair of marks, and each range among the items of one pair, is an
    item.
    """
    opened: list[tuple[Open, list[_Item]]] = []
    items: list[_Item] = []
    for piece in pieces:
        if isinstance(piece, Open):
            opened.append((piece, items))
            items = []
        elif isinstance(piece, Close):
            inner = _with_ranges(items, len(opened))
            first, items = opened.pop()
            items.append(_pair(first, piece, inner))
        else:
            items.append(piece)
    return _with_ranges(items, 0)


def _with_ranges(items: list[_Item], depth: int) -> list[_Item]:
    """The items of one level, with pairs for the ranges that begin and end in it and do not
    overlap.
    """
    begins = {item.ends for item in items if isinstance(item, Alone) and item.ends is not None}
    if not begins or depth > _DEEPEST // 2:
        return items

    # By place: where the range that begins there ends.
    ends: dict[int, int] = {}
    opened: list[tuple[int, int]] = []
    waiting: set[int] = set()
    for place, item in enumerate(items):
        if not isinstance(item, Alone):
            continue
        if item.number in begins:
            opened.append((place, item.number))
            waiting.add(item.number)
        elif item.ends in waiting:
            while True:
                begin, number = opened.pop()
                waiting.discard(number)
                if number == item.ends:
                    break
            if len(opened) < _DEEPEST_RANGES:
                ends[begin] = place

    levels: list[tuple[int, list[_Item]]] = [(-1, [])]
    for place, item in enumerate(items):
        if place in ends:
            levels.append((place, []))
        elif ends.get(levels[-1][0]) == place:
            begin, inner = levels.pop()
            first, last = items[begin], item
            assert isinstance(first, Alone)
            assert isinstance(last, Alone)
            levels[-1][1].append(_pair(first, last, inner))
        else:
            holder = levels[-1][1]
            before = holder[-1] if holder else None
            is_range = isinstance(before, _Pair) and isinstance(before.first, Alone)
            is_mark = isinstance(item, Alone) and not item.text and not item.breaks
            if is_range and is_mark:
                assert isinstance(before, _Pair)
                assert isinstance(item, Alone)
                before.tail.append(item)
            else:
                holder.append(item)
    return levels[0][1]


def _pair(first: Open | Alone, last: Close | Alone, inner: list[_Item]) -> _Pair:
    has_break = has_words = False
    for item in inner:
        if isinstance(item, Alone):
            has_break, has_words = has_break or item.breaks, has_words or bool(item.text)
        elif isinstance(item, _Pair):
            has_break, has_words = has_break or item.has_break, has_words or item.has_words
    return _Pair(first, last, inner, _text(inner), has_break, has_words)


def _pieces(items: "Iterable[_Item | Open | Close]") -> list[Piece]:
    """The pieces of items as they were."""
    pieces: list[Piece] = []
    for item in items:
        if isinstance(item, _Pair):
            pieces += [item.first, *_pieces(item.inner), item.last, *item.tail]
        else:
            pieces.append(item)
    return pieces


def _text(items: Iterable[_Item]) -> str:
    return "".join(map(_text_of, items))


def _text_of(item: _Item) -> str:
    return item if isinstance(item, str) else item.text if isinstance(item, _Pair) else ""


def _character(items: Sequence[_Item], at: int) -> str:
    """The character at an end of the nearest of some items, the last of them being the nearest: a
    line end for a break.
    """
    # A few are looked at: anchors without text in a row are no reason for quadratic time.
    for item in items[: -_NEAREST - 1 : -1]:
        if isinstance(item, Alone):
            return "\n" if item.breaks else item.text[at:][:1] or "\ufffc"
        if text := _text_of(item):
            return text[at]
    return ""


def _last_character(done: Sequence[_Item]) -> str:
    """The character before what comes next."""
    return _character(done, -1)


def _first_character(waiting: Sequence[_Item]) -> str:
    """The character that comes next."""
    return _character(waiting, 0)


def _last_word(done: Sequence[_Item]) -> str:
    """The letters and digits directly before what comes next; all of a short pair, or none."""
    if not done:
        return ""
    text = _text_of(done[-1])[-_LONGEST_WORD - 1 :]
    start = len(text)
    while start > 0 and (text[start - 1].isalnum() or text[start - 1] in "·′"):
        start -= 1
    return "" if start > 0 and not isinstance(done[-1], str) else text[start:]


def _first_word(waiting: Sequence[_Item]) -> str:
    """The letters and digits that come next; all of a short pair, or none."""
    if not waiting:
        return ""
    text = _text_of(waiting[-1])[: _LONGEST_WORD + 1]
    stop = 0
    while stop < len(text) and text[stop].isalnum():
        stop += 1
    return "" if stop < len(text) and not isinstance(waiting[-1], str) else text[:stop]
