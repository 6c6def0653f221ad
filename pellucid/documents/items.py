"""The pieces of a segment as a tree of items: texts, marks, and pairs of marks around items."""

import dataclasses
import re
from collections.abc import Iterable, Sequence

from pellucid.documents.segments import Alone, Close, Kind, Open, Piece
from pellucid.text.scripts import any_letter, is_mark, is_of_word

_ROMAN = re.compile(r"(?=[ivxl])(?:xl|l?x{0,3})(?:ix|iv|v?i{0,3})")
"""Numbers of pages and notes, up to 89."""
_ALSO_WORDS = frozenset(("li", "liv", "vi", "xi"))
"""Numbers of pages that are words too: an editor, "we" and "life" in Swedish, names."""
_LONGEST_SCRIPT = 12
"""Characters of a raised or lowered text; a longer one is no part of a word."""
_LETTERS = re.compile(rf"{any_letter()}{{3}}")
"""In a raised text that may stand by itself: a word such as "Note:", and no index or ending."""
_NOTE = re.compile(r"\[[^\[\]]{1,40}\]")
"""A raised text in brackets, such as the [note 3] and [citation needed] of Wikipedia."""
_LONGEST_NUMBER = 6
"""Characters of a reference to a note: 12, [iv], a, 3b."""
LONGEST_WORD = 40
"""Characters of a word with an index, and of what is left out around a whole text."""
DEEPEST = 40
"""Pairs within each other that are looked into; ranges are pairs in the outer half of them."""
_DEEPEST_RANGES = 3
_NEAREST = 4
"""Items on a side of a mark that are searched for the character beside it."""


@dataclasses.dataclass
class Pair:
    """Two marks and what is between them."""

    first: Open | Alone
    last: Close | Alone
    inner: "list[Item]"
    text: str
    """The text in it, without marks, also those that are read as words."""
    has_break: bool
    has_words: bool
    """Whether it holds a mark that is read as a word, such as code."""
    tail: list[Alone] = dataclasses.field(default_factory=list)
    """Marks directly behind a range, which belong to it, such as a comment's."""
    is_own_word: bool = False
    """Whether it is a raised or lowered word that no other word touches, or a word of the sentence
    that has the letters of a Roman number."""

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
        if self.is_noted and _NOTE.fullmatch(text):
            return True
        if self.kind == "reference":
            return len(text) <= _LONGEST_NUMBER and not any(map(str.isspace, text))
        if self.is_own_word:
            return False
        if self.kind == "script":
            return len(text) <= _LONGEST_SCRIPT and not any(map(str.isspace, text))
        is_page = self.kind == "label" and len(text) > 1 and _ROMAN.fullmatch(text) is not None
        return is_page or not any(map(str.isalpha, text))

    @property
    def is_noted(self) -> bool:
        """Whether it is a note's number wherever it stands, and never a word of the sentence."""
        return self.kind in ("script", "reference")


Item = str | Alone | Pair


def is_read(item: Item) -> bool:
    """Whether a text or pair holds something to read."""
    if isinstance(item, Alone):
        return bool(item.text)
    if isinstance(item, str):
        return any(map(str.isalpha, item))
    return not item.is_fixed and (item.has_words or any(map(str.isalpha, item.text)))


def tree_of(pieces: Sequence[Piece]) -> list[Item]:
    """The pieces as items; each pair of marks, and each range among the items of one pair, is an
    item.
    """
    opened: list[tuple[Open, list[Item]]] = []
    items: list[Item] = []
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


def _with_ranges(items: list[Item], depth: int) -> list[Item]:
    """The items of one level, with pairs for the ranges that begin and end in it and do not
    overlap.
    """
    _find_own_words(items, is_whole=not depth)
    begins = {item.ends for item in items if isinstance(item, Alone) and item.ends is not None}
    if not begins or depth > DEEPEST // 2:
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

    levels: list[tuple[int, list[Item]]] = [(-1, [])]
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
            is_range = isinstance(before, Pair) and isinstance(before.first, Alone)
            is_mark = isinstance(item, Alone) and not item.text and not item.breaks
            if is_range and is_mark:
                assert isinstance(before, Pair)
                assert isinstance(item, Alone)
                before.tail.append(item)
            else:
                holder.append(item)
    return levels[0][1]


def _find_own_words(items: Sequence[Item], *, is_whole: bool) -> None:
    """Find the raised and lowered words of one level that no other word touches, and the words with
    letters of Roman numbers; the ends of a ``whole`` text touch none.
    """
    for place, item in enumerate(items):
        if isinstance(item, Pair) and item.kind == "label" and item.text.strip() in _ALSO_WORDS:
            # the number of a page stands beside a comma, other numbers, or nothing
            before = text_in(items[max(0, place - 1) : place]).rstrip()[-1:]
            after = text_in(items[place + 1 : place + 2]).lstrip()[:1]
            item.is_own_word = before.isalpha() or is_mark(before) or after.isalpha()
        if isinstance(item, Pair) and item.kind == "script" and _LETTERS.search(item.text):
            left = last_character(items[max(0, place - _NEAREST) : place])
            right = first_character(items[place + _NEAREST : place : -1])
            is_separate = (left or " ").isspace() and not is_of_word(right)
            item.is_own_word = is_separate and (is_whole or bool(left and right))


def _pair(first: Open | Alone, last: Close | Alone, inner: list[Item]) -> Pair:
    has_break = has_words = False
    for item in inner:
        if isinstance(item, Alone):
            has_break, has_words = has_break or item.breaks, has_words or bool(item.text)
        elif isinstance(item, Pair):
            has_break, has_words = has_break or item.has_break, has_words or item.has_words
    return Pair(first, last, inner, text_in(inner), has_break, has_words)


def pieces_of(items: "Iterable[Item | Open | Close]") -> list[Piece]:
    """The pieces of items as they were."""
    pieces: list[Piece] = []
    waiting = list(items)[::-1]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Pair):
            waiting += reversed([item.first, *item.inner, item.last, *item.tail])
        else:
            pieces.append(item)
    return pieces


def text_in(items: Iterable[Item]) -> str:
    """The texts of several items, joined."""
    return "".join(map(text_of, items))


def text_of(item: Item) -> str:
    """The text of an item, or of all that is in a pair; none for a mark."""
    return item if isinstance(item, str) else item.text if isinstance(item, Pair) else ""


def _character(items: Sequence[Item], at: int) -> str:
    """The character at an end of the nearest of some items, the last of them being the nearest: a
    line end for a break.
    """
    # A few are looked at: anchors without text in a row are no reason for quadratic time.
    for item in items[: -_NEAREST - 1 : -1]:
        if isinstance(item, Alone):
            return "\n" if item.breaks else item.text[at:][:1] or "\ufffc"
        if text := text_of(item):
            return text[at]
        if isinstance(item, Pair) and item.has_words:
            return "\ufffc"
    return ""


def last_character(done: Sequence[Item]) -> str:
    """The character before what comes next."""
    return _character(done, -1)


def first_character(waiting: Sequence[Item]) -> str:
    """The character that comes next."""
    return _character(waiting, 0)


def last_word(done: Sequence[Item]) -> str:
    """The letters, digits and combining marks directly before what comes next; all of a short pair,
    or none.
    """
    if not done:
        return ""
    text = text_of(done[-1])[-LONGEST_WORD - 1 :]
    start = len(text)
    while start > 0 and (is_of_word(text[start - 1]) or text[start - 1] in "·′"):
        start -= 1
    return "" if start > 0 and not isinstance(done[-1], str) else text[start:]


def first_word(waiting: Sequence[Item]) -> str:
    """The letters, digits and combining marks that come next; all of a short pair, or none."""
    if not waiting:
        return ""
    text = text_of(waiting[-1])[: LONGEST_WORD + 1]
    stop = 0
    while stop < len(text) and is_of_word(text[stop]):
        stop += 1
    return "" if stop < len(text) and not isinstance(waiting[-1], str) else text[:stop]
