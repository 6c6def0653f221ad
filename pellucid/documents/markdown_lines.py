"""Lines of a paragraph that stay apart, although CommonMark joins them: those of a verse, of a list
with letters, and of several terms with one definition.

Pandoc, Quarto, PHP Markdown Extra and Python-Markdown know such lines.
"""

import re
from collections.abc import Sequence

_VERSE = re.compile(r"\|(?:[ \t]+|$)")
"""The sign before each line of a line block."""
_DEFINITION = re.compile(r"[:~][ \t]+(?=\S)")
_ITEM = re.compile(
    r"(?P<open>\(?)(?:(?P<number>\d{1,3})|(?P<letters>[a-z]{1,6}|[A-Z]{1,6})|(?P<any>\#|@[\w-]{0,60}))"
    r"(?P<close>[.)])[ \t]+(?=\S)"
)
"""The mark of an item: ``a.``, ``(iv)``, ``B)``, ``(3)``, ``#.``, ``(@good)``."""
_BULLET = re.compile(r"([•·▪◦‣○●■□◆➢➤✓✔❖\uf020-\uf0ff])[ \t]*(?=\S)")
_MOST_TERMS = 5
_LONGEST_TERM = 80
_ROMAN = re.compile("m{0,3}(?:cm|cd|d?c{0,3})(?:xc|xl|l?x{0,3})(?:ix|iv|v?i{0,3})")
_VALUES = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100, "d": 500, "m": 1000}


def separate_lines(content: str, *, are_terms: bool = False) -> dict[int, str]:
    """The lines of a paragraph that stay apart from the line before them, by number, each with the
    mark that it begins with; the first line has its own mark.

    ``are_terms`` says that a definition follows the paragraph.
    """
    lines = [line.lstrip(" \t") for line in content.split("\n")]
    if found := _DEFINITION.match(lines[0]):
        return {0: found[0]}
    if len(lines) < 2:
        return {}
    if are_terms:
        return dict.fromkeys(range(len(lines)), "") if _may_be_terms(lines) else {}
    return _verse(content.split("\n")) or _items(lines) or _bullets(lines) or _definitions(lines)


def _verse(lines: Sequence[str]) -> dict[int, str]:
    """The lines of a line block; an indented one goes on with the line before it."""
    marks = {number: found[0] for number, line in enumerate(lines) if (found := _VERSE.match(line))}
    others = (line for number, line in enumerate(lines) if number not in marks)
    is_verse = 0 in marks and len(marks) > 1 and all(line[:1] in (" ", "\t") for line in others)
    return marks if is_verse else {}


def _items(lines: Sequence[str]) -> dict[int, str]:
    """The lines that begin items of a list, from the first line on."""
    last = _ITEM.match(lines[0])
    if last is None:
        return {}
    marks = {0: last[0]}
    for number, line in enumerate(lines[1:], start=1):
        found = _ITEM.match(line)
        if found and _follows(last, found):
            marks[number] = found[0]
            last = found
    return marks if len(marks) > 1 else {}


def _follows(last: re.Match[str], found: re.Match[str]) -> bool:
    """Whether one mark is the next one after another in a list."""
    if last.group("open", "close") != found.group("open", "close"):
        return False
    if last["any"] and found["any"]:
        return last["any"][0] == found["any"][0] and (last["any"][0] == "#" or bool(last["open"]))
    if last["number"] and found["number"]:
        return int(found["number"]) == int(last["number"]) + 1
    one, other = last["letters"] or "", found["letters"] or ""
    if not one or not other or one.isupper() != other.isupper():
        return False
    if len(one) == len(other) == 1 and ord(other) == ord(one) + 1:
        return True
    return _roman(one) > 0 and _roman(other) == _roman(one) + 1


def _roman(letters: str) -> int:
    """The value of a Roman number; 0 for other letters."""
    if not _ROMAN.fullmatch(letters.lower()):
        return 0
    values = [_VALUES[letter] for letter in letters.lower()]
    pairs = zip(values, [*values[1:], 0], strict=True)
    return sum(-value if value < following else value for value, following in pairs)


def _bullets(lines: Sequence[str]) -> dict[int, str]:
    """The lines that begin with the sign that the first one begins with."""
    first = _BULLET.match(lines[0])
    if first is None:
        return {}
    found = ((number, _BULLET.match(line)) for number, line in enumerate(lines))
    marks = {number: each[0] for number, each in found if each and each[1] == first[1]}
    return marks if len(marks) > 1 else {}


def _definitions(lines: Sequence[str]) -> dict[int, str]:
    """The terms at the beginning of a paragraph, and the definitions behind them."""
    found = ((number, _DEFINITION.match(line)) for number, line in enumerate(lines))
    marks = {number: each[0] for number, each in found if each}
    first = min(marks, default=0)
    if not first or not _may_be_terms(lines[:first]):
        return {}
    return {**dict.fromkeys(range(first), ""), **marks}


def _may_be_terms(lines: Sequence[str]) -> bool:
    """Whether lines are terms, and no text in several lines."""
    return len(lines) <= _MOST_TERMS and all(
        len(line) <= _LONGEST_TERM and not line.rstrip().endswith((".", ",", ";", ":", "!", "?"))
        for line in lines
    )
