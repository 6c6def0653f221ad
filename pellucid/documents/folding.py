"""Folds what is fixed in a segment before it is translated, and unfolds it in the translation.

- An inline element without a letter, such as the number of a note, is one mark with fixed content,
  which stays behind the word that it followed; a number that stands for a word is read as one.
- A word with raised or lowered parts, such as a formula, is one word that is not translated.
- The raised ending of an ordinal is read with its number, and its marks go around the ending again.
- Two marks around a range of text, such as those of a bookmark, are a pair.
- A pair around the whole text, and marks at its ends, are no part of what is translated.
- Links and labels side by side, with no sentence around them, are as many texts.
- A large first letter is part of its word, and its marks go around the first letter again.
"""

import dataclasses
import itertools
import re
import unicodedata
from collections.abc import Iterable, Sequence

from pellucid.documents.items import (
    DEEPEST,
    LONGEST_WORD,
    Item,
    Pair,
    first_character,
    first_word,
    is_read,
    last_character,
    last_word,
    pieces_of,
    text_in,
    text_of,
    tree_of,
)
from pellucid.documents.protected import LINE_TO_WRITE_ON, literals_in
from pellucid.documents.segments import (
    Alone,
    Close,
    Kind,
    Open,
    Piece,
    Segment,
    joined,
    overlapping,
)
from pellucid.documents.side_by_side import (
    SPACED_BAR,
    badge_at,
    between_bars,
    bracketed,
    neighbors,
    touch,
    whole_text,
    without_pages,
)
from pellucid.text.scripts import combining_marks, is_mark, is_of_word

_MONEY = "$€£¥₹₽"
_NUMBER = re.compile(
    rf"(?!\([^()]*\)\Z)[~≈<>≤≥±#№×+−–-]{{0,2}}[{_MONEY}]?\s?\(?[\d½¼¾⅓⅔⅛]"
    rf"(?:[\d.,:/'’()\s×x+–−{_MONEY}%-]*[\d½¼¾⅓⅔⅛])?\s?(?:[%‰°{_MONEY}¢×+]|,[–-])?"
)
"""A number, an amount, a date, a range or the number of a telephone."""
_STOPS = re.compile(r"[.,;:!?…。、，！？：；]+")
_DECIMALS = re.compile(r"[.,]\d{1,3}")
"""The decimals or thousands of a number: the ".50" of a price."""
_JOINER = re.compile(r"['’ʼ&/@_·+‐‑–—-]")
"""A sign that makes one word of two: don't, 1859–1930."""
_UNIT = re.compile(r"\s?[%‰°$€£¥₹]")
"""Behind a number."""
_LINE = re.compile(LINE_TO_WRITE_ON)
_SIGN = re.compile(r"[&+=×÷<>≤≥≈]")
"""A sign that is read as a word between two others."""
_SIGNED = re.compile(r"[+−–‐‑-]\d{1,3}|\d{0,2}[+−–‐‑-]")
"""A raised text that is an exponent or a charge, and not the number of a note."""
_BESIDE_NUMBERS = re.compile(r"\s*[,;–—-]?\s*")
"""Between two numbers of notes."""
_CLOSING = frozenset(".,;:!?…)]}»”’\"'。、，！？：；」』")
"""Signs behind which a number without a space is that of a note."""
_BRACKETS = {"[": "]", "(": ")"}
_DROP_CAP = re.compile(rf"[^\w\s]{{0,2}}[^\W\d_][{combining_marks()}]*")
_ORDINAL = re.compile(
    r"\d{1,4}(?i:st|nd|rd|th|e|es|ers?|[eè]re?s?|i?[eè]me|de|ste|te|[rdtmvn][oa]|o|º|ª)"
    r"|[IVXLCDM]+(?i:er|[eè]?re|i?[eè]me|mes?|lles?)|[IVXLCDM]{2,}(?i:e|es|o|th|st|nd|rd)"
)
"""An ordinal, or a title of French such as Mme, with a raised ending. V with an e is a formula."""
_NUMBERED = re.compile(
    r"(?<![\w.,])(?P<number>\d{1,4}|[IVXLCDM]+)(?P<ending>[A-Za-zÀ-ÿºª]{0,6})(?!\w)"
)
"""A number that may be an ordinal."""
_ISOTOPES = frozenset("BCDFHKNPSTUVW")
"""Elements with a letter for their name; I, O and Y are words, behind the number of a verse."""


@dataclasses.dataclass
class _DropCap:
    """The marks of a large first letter."""

    before: list[Piece]
    after: list[Piece]
    with_sign: bool
    """Whether a sign before the letter, such as a quotation mark, is large too."""


@dataclasses.dataclass
class _Raised:
    """The marks of the raised ending of an ordinal."""

    number: str
    before: list[Piece]
    after: list[Piece]


class Folded:
    """A segment as parts, each of which is translated by itself; most have one."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self._last_number = max((mark.number for mark in segment.marks), default=-1)
        self._contents: dict[int, list[Piece]] = {}
        """By mark that was made here, what it stands for."""
        self._ranges: dict[int, Pair] = {}
        """By the number of the mark that begins it, a range that is a pair here."""
        self._drop_caps: dict[int, _DropCap] = {}
        """By part."""
        self._raised: dict[int, list[_Raised]] = {}
        """By part too."""
        self.parts: list[Segment] = []
        """The parts to translate."""
        self._layout: list[Piece | None] = []
        """The pieces that are not translated, in order, and None for each part."""

        if segment.marks or SPACED_BAR.search(segment.text):
            self._divide(tree_of(segment.pieces), 0)
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
                pieces = _with_raised(parts[number], self._raised.get(number, ()))
                if number in self._drop_caps:
                    pieces = _with_drop_cap(pieces, self._drop_caps[number])
            written += itertools.chain.from_iterable(map(self._content, pieces))
        return Segment(tuple(_in_order(joined(written))))

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
        content: Iterable[Item],
        text: str = "",
        *,
        breaks: bool = False,
        kind: Kind = "format",
    ) -> Alone:
        self._last_number += 1
        self._contents[self._last_number] = pieces_of(content)
        return Alone(self._last_number, text, breaks, kind=kind)

    # What is translated by itself.

    def _divide(self, items: list[Item], depth: int) -> None:
        """Add the parts of some items: what is at their ends as it is, and texts to translate."""
        items, stop = without_pages(items)
        first = 0
        while first < stop and _is_at_edge(items, first, 1):
            first += 1
        while stop > first and _is_at_edge(items, stop - 1, -1):
            stop -= 1
        self._keep(items[:first])
        self._divide_inner(items[first:stop], depth)
        self._keep(items[stop:])

    def _divide_inner(self, items: list[Item], depth: int) -> None:
        for number in (0, len(items) - 1) if depth < DEEPEST else ():
            if (badge := badge_at(items, number)) is not None:
                self._divide(items[:number], depth + 1)
                self._divide_pair(badge, depth)
                self._divide(items[number + 1 :], depth + 1)
                return
        only = items[0] if len(items) == 1 and depth else None
        if isinstance(only, str) and (around := bracketed(only)) is not None:
            self._keep(around[:1])
            self._add(around[1:2])
            self._keep(around[2:])
            return
        parts = (neighbors(items) or whole_text(items)) if depth < DEEPEST else None
        if parts is None and depth < DEEPEST and (groups := between_bars(items)) is not None:
            for group in groups:
                if isinstance(group, str):
                    self._keep([group])
                else:
                    self._divide([each for each in group if each != ""], depth + 1)
            return
        if parts is not None:
            for each in parts:
                if isinstance(each, Pair) and is_read(each):
                    self._divide_pair(each, depth)
                elif isinstance(each, str) and is_read(each):
                    self._add((each,))
                else:
                    self._keep([each])
            return

        items, drop_cap = _without_drop_cap(items)
        if drop_cap is not None:
            self._drop_caps[len(self.parts)] = drop_cap
        folded = self._folded(items, "", "")
        self._add(tuple(self._marked(folded)))

    def _divide_pair(self, pair: Pair, depth: int) -> None:
        self._keep([pair.first])
        self._divide(pair.inner, depth + 1)
        self._keep([pair.last, *pair.tail])

    def _keep(self, items: Iterable["Item | Open | Close"]) -> None:
        """Add what is not translated."""
        self._layout += pieces_of(items)

    def _add(self, pieces: tuple[Piece, ...]) -> None:
        """Add a part to translate."""
        self._layout.append(None)
        self.parts.append(Segment(pieces))

    def _marked(self, items: Iterable[Item]) -> list[Piece]:
        """The pieces of items in which ranges are pairs."""
        pieces: list[Piece] = []
        for item in items:
            if not isinstance(item, Pair):
                pieces.append(item)
                continue
            number = item.first.number
            if isinstance(item.first, Alone):
                self._ranges[number] = item
            pieces += [Open(number, item.kind), *self._marked(item.inner), Close(number)]
        return pieces

    # What is one mark.

    def _folded(self, items: Sequence[Item], before: str, after: str) -> list[Item]:
        """The items, with marks for those that are fixed. ``before`` and ``after`` are the
        characters around them.
        """
        waiting = list(reversed(items))
        done: list[Item] = []
        while waiting:
            item = waiting.pop()
            if not isinstance(item, Pair):
                done.append(item)
                continue

            left = last_character(done) or before
            right = first_character(waiting) or after
            joins = (_JOINER.fullmatch(item.text) and is_of_word(left) and is_of_word(right)) or (
                _DECIMALS.fullmatch(item.text) and left.isdecimal()
            )
            if joins and item.kind in ("format", "span") and not item.has_break:
                done.append(item)  # of the word or the number, although in another format
            elif not item.is_fixed:
                if touch(done, item):
                    done.append(self._new_mark((), breaks=True))
                done.append(dataclasses.replace(item, inner=self._folded(item.inner, left, right)))
            elif (spaced := _without_outer_space(item, left, right)) is not None:
                waiting += reversed(spaced)
            else:
                self._fold(item, waiting, done, before, after)
        return [item for item in done if item != ""]

    def _fold(
        self, item: Pair, waiting: list[Item], done: list[Item], before: str, after: str
    ) -> None:
        """Add a mark for a fixed pair and what belongs to it, which is taken from both lists."""
        if self._fold_ordinal(item, waiting, done):
            return
        left = last_character(done) or before
        cluster: list[Item] = [item]
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
            left = last_character(done) or before

        if item.kind == "script" and self._fold_formula(cluster, waiting, done):
            return
        words = text_in(cluster).strip()
        is_line = _LINE.fullmatch(words) is not None
        is_label = text_in(done[-2:]).rstrip().endswith(":")
        if item.has_break or (is_label and (is_line or _is_blank_line(item.text))):
            done.append(self._new_mark(cluster, breaks=True))
            return
        is_attached = is_of_word(left) or left in _CLOSING
        is_word = (
            is_line
            or _STOPS.fullmatch(words)
            or (_NUMBER.fullmatch(words) and not is_attached)
            or (_UNIT.fullmatch(words) and text_in(done[-1:]).rstrip()[-1:].isdigit())
            or (_SIGN.fullmatch(words) and not is_of_word(left))
        )
        if is_word and not item.is_noted:
            done.append(self._new_mark(cluster, words, kind=item.kind))
            return

        right = first_character(waiting) or after
        last = done[-1] if done else None
        if words and isinstance(last, str) and left.isspace() and not is_of_word(right):
            # The space before it goes with it, as no word stands between it and the next one.
            kept = last.rstrip()
            if kept or len(done) > 1:
                cluster = [last[len(kept) :], *cluster]
                done[-1] = kept
        done.append(self._new_mark(cluster))

    def _fold_ordinal(self, item: Pair, waiting: list[Item], done: list[Item]) -> bool:
        """Read the raised ending of an ordinal with its number, and note its marks."""
        last = done[-1] if done else None
        host = last_word(done)
        pieces = pieces_of([item])
        texts = [at for at, piece in enumerate(pieces) if isinstance(piece, str)]
        if not isinstance(last, str) or item.kind != "script" or len(texts) != 1:
            return False
        if not _ORDINAL.fullmatch(host + item.text) or first_word(waiting):
            return False
        if last.removesuffix(host)[-1:] in (".", ","):
            return False  # the number of a table with a note

        raised = _Raised(host, pieces[: texts[0]], pieces[texts[0] + 1 :])
        self._raised.setdefault(len(self.parts), []).append(raised)
        done[-1] = last + item.text
        return True

    @staticmethod
    def _gather(cluster: list[Item], waiting: list[Item], *, is_bracketed: bool) -> None:
        """Add more numbers of notes to the first: "1,2" and "1–3"; with spaces in brackets only."""
        while waiting:
            between, following = waiting[-1], waiting[-1]
            if isinstance(between, str) and len(waiting) > 1:
                has_space = any(map(str.isspace, between))
                if not _BESIDE_NUMBERS.fullmatch(between) or (has_space and not is_bracketed):
                    return
                following = waiting[-2]
            if not (isinstance(following, Pair) and following.is_fixed and following.text.strip()):
                return
            if isinstance(between, str):
                cluster.append(waiting.pop())
            cluster.append(waiting.pop())

    def _fold_formula(self, cluster: list[Item], waiting: list[Item], done: list[Item]) -> bool:
        """Add a word with raised or lowered parts as one mark, if it is a formula."""
        host = last_word(done)
        tail = first_word(waiting)
        if not _is_formula(host, text_in(cluster), tail):
            return False
        if _ends_literal(done, host) or _begins_literal(waiting, tail):
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
            if not (isinstance(index, Pair) and index.kind == "script" and index.is_fixed):
                break
            cluster.append(waiting.pop())
            tail = first_word(waiting)
            if _begins_literal(waiting, tail):
                break

        done.append(self._new_mark(cluster, text_in(cluster)))
        return True


def _is_formula(host: str, script: str, tail: str) -> bool:
    """Whether a word with an index is a formula; one that is like any other word has a note."""
    # composed, so that an accent is no letter of its own
    host, tail = unicodedata.normalize("NFC", host), unicodedata.normalize("NFC", tail)
    if len(host) > LONGEST_WORD or len(tail) > LONGEST_WORD:
        return False

    if not host:
        # An isotope, 14C, and no number of a verse.
        return tail in _ISOTOPES
    is_spelled = all(character.isalpha() or is_mark(character) for character in host)
    if is_spelled and len(host) > 1 and host.lower() == host.upper():
        return False  # no formula is written in a script without case
    is_plain = is_spelled and (host.islower() or host.istitle()) and len(host) > 2

    if tail:
        return not is_plain or any(map(str.isalpha, script))
    if _SIGNED.fullmatch(script.strip()):
        return not is_plain or len(host) <= 4
    return not is_plain


def _ends_literal(done: Sequence[Item], host: str) -> bool:
    """Whether the word before an index is a part of an address or of a placeholder: ``%1$s``."""
    last = done[-1] if done else None
    return isinstance(last, str) and bool(host) and _is_cut(last, len(last) - len(host))


def _begins_literal(waiting: Sequence[Item], tail: str) -> bool:
    """Whether the word behind an index is a part of an address or of a placeholder."""
    following = waiting[-1] if waiting else None
    return isinstance(following, str) and bool(tail) and _is_cut(following, len(tail))


def _is_cut(text: str, place: int) -> bool:
    return bool(overlapping(literals_in(text), place, place))


def _is_blank_line(text: str) -> bool:
    """Whether it is white space to write on, as no-break spaces are in a page."""
    return len(text) > 2 and text.isspace()


def _without_outer_space(pair: Pair, left: str, right: str) -> list[Item] | None:
    """A fixed pair with the white space at its ends beside it, where words need it there. One of
    white space alone is read as a space where nothing else parts what is beside it.
    """
    text = pair.text
    words = text.strip()
    if text and not words and left.strip() and right.strip():
        if pair.inner != [text] or _is_blank_line(text):
            return [pair, " "]
        return [dataclasses.replace(pair, inner=[], text=""), text]
    is_word = _NUMBER.fullmatch(words) or _STOPS.fullmatch(words)
    if not words or words == text or not (is_word or (is_of_word(left) and is_of_word(right))):
        return None
    if len(pair.inner) != 1 or not isinstance(pair.inner[0], str):
        return None
    start = text.index(words)
    inner = dataclasses.replace(pair, inner=[words], text=words)
    parts: list[Item] = [text[:start], inner, text[start + len(words) :]]
    return [part for part in parts if part != ""]


def _is_at_edge(items: Sequence[Item], at: int, step: int) -> bool:
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
    if step > 0 and text == item.text and text_in(items[at + 1 : at + 2])[:1].isupper():
        is_word = False  # the number of a heading, which touches it: "1.2Red house"
    if item.kind == "script":
        # The beginning or the end of a formula.
        host, tail = last_word(items[max(0, at - 1) : at]), first_word(items[at + 1 : at + 2])
        is_word = (step < 0 or not host) and bool(host or tail) and _is_formula(host, text, tail)
        if _ends_literal(items[max(0, at - 1) : at], host) or _begins_literal(
            items[at + 1 : at + 2], tail
        ):
            is_word = False
    return item.is_fixed and not item.has_break and not is_word


def _without_drop_cap(items: list[Item]) -> tuple[list[Item], _DropCap | None]:
    """The items without the marks of a large first letter, and these."""
    pair = items[0] if len(items) > 1 else None
    if not isinstance(pair, Pair):
        return items, None
    if not _DROP_CAP.fullmatch(pair.text):
        # Or the first letter in it is.
        inner, drop_cap = _without_drop_cap(pair.inner)
        return [dataclasses.replace(pair, inner=inner), *items[1:]], drop_cap

    following = items[1]
    starts = "" if isinstance(following, Alone) else text_of(following)[:2]
    if isinstance(following, Pair) and following.is_fixed:
        return items, None  # a letter with an index
    is_elided = pair.kind == "span" and starts[:1] in ("'", "’") and starts[1:].isalpha()
    pieces = pieces_of([pair])
    texts = [number for number, piece in enumerate(pieces) if isinstance(piece, str)]
    goes_on = starts[:1].isalpha() or is_mark(starts[:1])
    if not (goes_on or is_elided) or len(texts) != 1:
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

        start, stop = place, place + 1
        while is_mark(piece[stop : stop + 1]):
            stop += 1
        while drop_cap.with_sign and start > 0 and not piece[start - 1].isspace():
            start -= 1
        return [
            *pieces[:number],
            piece[:start],
            *drop_cap.before,
            piece[start:stop],
            *drop_cap.after,
            piece[stop:],
            *pieces[number + 1 :],
        ]
    return [*drop_cap.before, *drop_cap.after, *pieces]


def _with_raised(pieces: Sequence[Piece], ordinals: Sequence[_Raised]) -> list[Piece]:
    """The pieces with the marks of each ordinal around the ending of its number, or of another
    one; around nothing where there is no ending, behind the number or at the end of the text.
    """
    written = list(pieces)
    for (at, start, stop), each in sorted(
        zip(_endings_in(pieces, ordinals), ordinals, strict=True), key=lambda pair: pair[0]
    )[::-1]:
        text = written[at] if at < len(pieces) else ""
        assert isinstance(text, str)
        ending = [*each.before, text[start:stop], *each.after]
        written[at : at + 1] = [text[:start], *ending, text[stop:]]
    return [piece for piece in written if piece != ""] if ordinals else written


def _endings_in(pieces: Sequence[Piece], ordinals: Sequence[_Raised]) -> list[tuple[int, int, int]]:
    """For each ordinal a piece, and where the ending of a number stands there."""
    found = [
        (each, (at, *each.span("ending")))
        for at, piece in enumerate(pieces if ordinals else ())
        if isinstance(piece, str)
        for each in _NUMBERED.finditer(piece)
        if not each["ending"] or _ORDINAL.fullmatch(each[0])
    ]
    found.sort(key=lambda each: not each[0]["ending"])
    own: dict[str, list[tuple[int, int, int]]] = {}
    for each, place in reversed(found):
        own.setdefault(each["number"], []).append(place)

    places = [own[each.number].pop() if own.get(each.number) else None for each in ordinals]
    taken = set(places)
    others = iter([place for each, place in found if each["ending"] and place not in taken])
    return [place or next(others, (len(pieces), 0, 0)) for place in places]


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
