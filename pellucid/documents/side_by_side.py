"""Texts side by side in one segment that are no sentence, such as the links of a menu.

Bars, steps of a path, labels and badges divide them. The signs and numbers around a whole text,
such as the number of a page, are no part of it.
"""

import re
from collections.abc import Sequence

from pellucid.documents.items import LONGEST_WORD, Item, Pair, is_read, text_in, text_of
from pellucid.documents.protected import literals_in
from pellucid.documents.segments import Alone, overlapping
from pellucid.text.scripts import is_of_word

_BARS = "|¦│·•‧∙●○◦▪■»›▸▶→"
"""Signs between the links of a menu or the parts of a path."""
_BAR = re.compile(rf"[{_BARS}]")
_DIVIDES = re.compile(rf"(?<!\s)\s*[{_BARS}][\s{_BARS}]*")
"""A bar with its white space; it begins where the white space does, or would be quadratic."""
SPACED_BAR = re.compile(r"\s[|¦·•]\s")
"""A bar between two texts without a mark, as in the title of a page."""
_STEP = re.compile(r"(?<!\s)\s+[/>»]\s+")
"""A sign between the parts of a path, of which the last one is no link."""
_BETWEEN = re.compile(rf"[\s\d{_BARS}/\\–—←<>«‹,;:()\[\]{{}}&+~*_=#-]*")
"""The characters that may stand between texts that are no sentence."""
_BETWEEN_PAGES = re.compile(r"[\s,;.–—-]*")
_AROUND = {"(": ")", "[": "]", "“": "”", "„": "“", "«": "»", "»": "«", '"': '"', "‘": "’"}
_PREFIX = re.compile(rf"[^\w]*|\W?\d[\d.]*[.):]\s+|[\d\s.]*[{_BARS}–—]+\s*")
"""The characters before a text that are no part of it: signs, or the number of an item."""
_SECTION = re.compile(r"\d+(?:\.\d+)+\s+")
"""The number of a section before the link to it."""
_SUFFIX = re.compile(rf"(?:\s[^\w.!?…,;:]*)?|\s*(?:\.\.|…|[{_BARS}]|\t|\s[(\[])[^\w]*\d*\W*")
"""The characters behind a text that are no part of it: signs after a space, or a page number."""


def without_pages(items: list[Item]) -> tuple[list[Item], int]:
    """The items, and where the numbers of pages begin at their end, as in an index: "cats, 3"."""
    start = len(items)
    has_number = False
    while start > 0:
        item = items[start - 1]
        if isinstance(item, str) and not _BETWEEN_PAGES.fullmatch(item):
            break
        if isinstance(item, Alone) or (
            isinstance(item, Pair) and not (item.is_fixed and item.kind in ("label", "reference"))
        ):
            break
        has_number = has_number or (isinstance(item, Pair) and bool(item.text.strip()))
        start -= 1

    last = items[start - 1] if start > 0 else None
    if not has_number or not isinstance(last, str):
        return items, len(items)

    words = last.rstrip(" \u00a0,;")
    if "," not in last[len(words) :] or not words:
        return items, len(items)
    return [*items[: start - 1], words, last[len(words) :], *items[start:]], start


def whole_text(items: Sequence[Item]) -> Sequence[Item] | None:
    """The items, if one of them is a pair around all of the text but signs beside it."""
    read = [number for number, item in enumerate(items) if is_read(item)]
    if len(read) != 1 or not isinstance(items[read[0]], Pair):
        return None
    if any(isinstance(item, Alone) and item.breaks for item in items):
        return None

    # A number in a pair of its own stands beside the text: "1 Red house", "Red house 12".
    before, after = (
        text_in(item for item in side if not isinstance(item, Pair))
        for side in (items[: read[0]], items[read[0] + 1 :])
    )
    if len(before) > LONGEST_WORD or len(after) > LONGEST_WORD:
        return None
    if before.strip() in _AROUND and _AROUND[before.strip()] == after.strip():
        return items

    pair = items[read[0]]
    is_section = isinstance(pair, Pair) and pair.kind == "label" and _SECTION.fullmatch(before)
    is_before = is_section or _PREFIX.fullmatch(before)
    return items if is_before and _SUFFIX.fullmatch(after) else None


def between_bars(items: Sequence[Item]) -> "list[list[Item] | str] | None":
    """The items between bars with space around them, and these; None if there is no bar."""
    groups: list[list[Item] | str] = []
    group: list[Item] = []
    for item in items:
        bars = _bars_in(item) if isinstance(item, str) else []
        at = 0
        for bar in bars:
            assert isinstance(item, str)
            if SPACED_BAR.search(bar[0]):
                groups += [[*group, item[at : bar.start()]], bar[0]]
                group, at = [], bar.end()
        group.append(item[at:] if isinstance(item, str) else item)
    return [*groups, group] if groups else None


def neighbors(items: Sequence[Item]) -> list[Item] | None:
    """The texts side by side in what is no sentence, and what is between them."""
    pairs = sum(isinstance(item, Pair) and is_read(item) for item in items)
    bars = {
        n: _bars_in(item) if is_read(item) else []
        for n, item in enumerate(items)
        if isinstance(item, str)
    }
    is_barred = any(SPACED_BAR.search(bar[0]) for found in bars.values() for bar in found)
    if pairs < 2 and not is_barred and not (pairs and any(bars.values())):
        return None

    # Texts between bars are labels as well.
    parts: list[Item] = []
    for number, item in enumerate(items):
        if isinstance(item, str) and is_read(item):
            at = 0
            steps = [step for step in _STEP.finditer(item) if step.end() == len(item)]
            steps += [step] if (step := _STEP.match(item)) else []
            for found in sorted([*bars[number], *steps], key=lambda bar: bar.start()):
                if found.start() >= at:  # a sign may be a bar and a step
                    parts += [item[at : found.start()], found[0]]
                    at = found.end()
            parts.append(item[at:])
        else:
            parts.append(item)

    last: Item | None = None
    between = ""
    for part in parts:
        if isinstance(part, Alone) and part.breaks:
            return None
        if not is_read(part):
            between += text_of(part)
            continue
        if last is not None and not _is_divided(last, between, part):
            return None
        last, between = part, ""
    return [part for part in parts if part != ""]


_SEPARATE = frozenset(("label", "badge"))
"""Kinds with a text of their own."""
_BOXES = _SEPARATE | {"span", "format"}
"""Kinds that a page may set apart; formats only beside another kind."""
_ENDS = (".", "!", "?", "%", "€", "$", "£", ")")


def badge_at(items: Sequence[Item], number: int) -> Pair | None:
    """The badge that stands there, with a text beside it."""
    item = items[number] if len(items) > 1 else None
    if not isinstance(item, Pair) or not is_read(item):
        return None
    # "[edit]", as the sites of wikis have it, is a badge too.
    is_badge = item.kind == "badge" or (item.kind == "label" and bracketed(item.text) is not None)
    return item if is_badge else None


def bracketed(text: str) -> tuple[str, str, str] | None:
    """A bracket, the text that is within brackets as a whole, and the other one."""
    found = re.fullmatch(r"(\s*\[\s*)([^\[\]]{1,40})(\]\s*)", text)
    return (found[1], found[2], found[3]) if found and is_read(found[2]) else None


def _bars_in(text: str) -> list[re.Match[str]]:
    """The bars in a text, except those of placeholders: ``{{ x | date }}``."""
    if not _BAR.search(text):
        return []
    kept = literals_in(text)
    return [bar for bar in _DIVIDES.finditer(text) if not overlapping(kept, *bar.span())]


def _is_divided(left: Item, between: str, right: Item) -> bool:
    """Whether the texts on both sides of ``between`` are two."""
    if not _BETWEEN.fullmatch(between):
        return False
    if _BAR.search(between):
        return True

    kinds = {each.kind if isinstance(each, Pair) else None for each in (left, right)}
    if _STEP.fullmatch(between) and kinds & _SEPARATE:
        return True
    if isinstance(left, str) and left.rstrip().endswith(":") and kinds & _SEPARATE:
        return True  # the name of a list of links: "Share: Email Print"
    if None in kinds:
        return False
    if kinds <= _SEPARATE:
        return True

    # Boxes of a page that touch: "Red houseBlue car", "From 10 €Read more".
    before, after = text_of(left)[-2:], text_of(right)[:1]
    is_joint = (
        before[-1:].islower() and len(before) > 1 and (after.isupper() or after.isdigit())
    ) or (before[-1:] in _ENDS and after.isupper())
    is_short = " " not in text_of(left).strip() and " " not in text_of(right).strip()
    if "format" in kinds and is_short:
        return False  # a name in two formats
    return kinds <= _BOXES and kinds != {"format"} and not between and is_joint


def touch(done: Sequence[Item], item: Pair) -> bool:
    """Whether two labels stand side by side without a space, as no words of a sentence do, or a
    badge, or several raised words, behind a word.
    """
    last = done[-1] if done else None
    if item.kind in ("badge", "script") and isinstance(last, str):
        return last[-1:] != "" and not last[-1:].isspace()
    return (
        isinstance(last, Pair)
        and {last.kind, item.kind} <= _SEPARATE
        and is_of_word(last.text[-1:])
        and is_of_word(item.text[:1])
    )
