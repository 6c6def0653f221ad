"""How large a table of settings may be, and how long opening a model may take.

A config comes with every model, and models come from strangers. Parsing is the danger: a dotted key
of n parts takes memory for n²/2 of them, and a list of a million numbers a million objects and,
if they are wrong, a million problems. So the text is measured before it is parsed, and the values
again when a config object is created from them.
"""

import json
import re
import reprlib
import time
from collections.abc import Iterator, Mapping
from typing import Any

from pellucid.core.errors import BundleError

LOAD_SECONDS = 600.0
"""Hashing 30 GB takes 20 seconds from memory and ten minutes from a slow network disk."""
LARGEST_CONFIG = 1 << 20
"""Bytes of a config file; the longest list of training files takes a fraction of that."""
_DEEPEST = 10
"""Levels of sections, lists and dotted keys; a config of Pellucid has three."""
_MOST_KEYS = 2_000
_MOST_VALUES = 20_000
"""Elements of all lists together: a corpus may come in thousands of files."""
_LONGEST_SHOWN = 80
"""Characters of a wrong value that a message repeats."""

_STRING_ENDS = {
    '"""': re.compile(r'(?:[^"\\]++|\\.|"(?!""))*+"{3,5}', re.DOTALL),
    "'''": re.compile(r"(?:[^']++|'(?!''))*+'{3,5}", re.DOTALL),
    '"': re.compile(r'(?:[^"\\\n]++|\\.)*+"'),
    "'": re.compile(r"[^'\n]*+'"),
    "#": re.compile(r"[^\n]*+"),
}
"""The pattern that closes each kind of string, and a comment; every pattern takes linear time."""
_STRING_BEGINS = re.compile(r"\"\"\"|'''|[\"'#]")
_BRACKETS = re.compile(r"[\[\]{}]")
_BETWEEN_KEYS = re.compile(r"[=\n,\[\]{}]")


class Deadline:
    """When opening a model must be done; whatever reads much asks it now and then."""

    def __init__(self, seconds: float = LOAD_SECONDS) -> None:
        self._seconds = seconds
        self._end = time.monotonic() + seconds

    def check(self) -> None:
        """Raise BundleError if the time is over."""
        if time.monotonic() > self._end:
            raise BundleError(
                f"the model must be open after {self._seconds:g} seconds, and was still being read",
                hint="a slow disk needs more: load(path, seconds=...)",
            )


def parse_json(text: bytes | str, most_values: int) -> Any:
    """Parse JSON from a stranger; a value can take fifty times the memory of its text.

    Raises ValueError if it is no JSON, has more than about so many values, or is nested too deeply.
    """
    marks: tuple[Any, ...] = (b",", b"[", b"{") if isinstance(text, bytes) else (",", "[", "{")
    if sum(text.count(mark) for mark in marks) > most_values:
        raise ValueError(f"it has more than {most_values:,} values")
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("its lists are nested too deeply") from None


def toml_problem(text: str) -> str:
    """Describe what is too large about the text of a TOML file; empty if nothing is."""
    bare = "".join(_outside_strings(text))
    keys, values = bare.count("="), bare.count(",")
    if keys > _MOST_KEYS:
        return f"at most {_MOST_KEYS:,} settings, has {keys:,}"
    if values > _MOST_VALUES:
        return f"lists of at most {_MOST_VALUES:,} values in all, has {values:,}"

    # A dotted key nests without any bracket.
    deepest = max(piece.count(".") for piece in _BETWEEN_KEYS.split(bare))
    depth = 0
    for bracket in _BRACKETS.finditer(bare):
        depth += 1 if bracket[0] in "[{" else -1
        deepest = max(deepest, depth)
    return "" if deepest <= _DEEPEST else f"at most {_DEEPEST} levels, has {deepest:,}"


def table_problem(table: object) -> str:
    """Describe what is too large about the values of a config; empty if nothing is."""
    # A stack of its own: recursion would end with a RecursionError at the depth that is to be
    # refused.
    waiting: list[tuple[object, int]] = [(table, 0)]
    keys = values = characters = 0
    while waiting:
        value, depth = waiting.pop()
        if depth > _DEEPEST:
            return f"at most {_DEEPEST} levels, has more"

        # Only containers and texts can be large.
        match value:
            case Mapping():
                keys += len(value)
                inner = list(value.values())
            case list() | tuple() | set() | frozenset():
                values += len(value)
                inner = list(value)
            case str() | bytes():
                characters += len(value)
                inner = []
            case _:
                continue
        if keys > _MOST_KEYS:
            return f"at most {_MOST_KEYS:,} settings, has {keys:,} or more"
        if values > _MOST_VALUES:
            return f"lists of at most {_MOST_VALUES:,} values in all, has {values:,} or more"
        if characters > LARGEST_CONFIG:
            return f"at most {LARGEST_CONFIG:,} characters, has {characters:,} or more"
        waiting += [(each, depth + 1) for each in inner]

    return ""


def encoding_problem(table: object) -> str:
    """Describe the first text of a small table that no file can hold; empty if there is none.

    Bytes of a file's name that are no UTF-8 reach Python as halves of a character.
    """
    waiting = [table]
    while waiting:
        match waiting.pop():
            case Mapping() as each:
                waiting += [*each.keys(), *each.values()]
            case list() | tuple() | set() | frozenset() as each:
                waiting += each
            case str() as each if not _is_whole(each):
                return (
                    f"text in Unicode (a file: rename it, or set LC_ALL=C.UTF-8), got {shown(each)}"
                )
    return ""


def _is_whole(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def shown(value: Any) -> str:
    """A wrong value as a message repeats it: never more than a line of it."""
    if isinstance(value, str):
        text = repr(value[: _LONGEST_SHOWN + 1])
    elif isinstance(value, int) and value.bit_length() > 64:
        text = f"a number of {value.bit_length():,} bits"  # its digits may be too many for str()
    else:
        text = reprlib.repr(value)
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 3] + "..."


def _outside_strings(text: str) -> Iterator[str]:
    """The text without comments, with an ``s`` for each string; up to one that does not end."""
    # Strings and comments may contain brackets and dots that mean nothing.
    position = 0
    while begin := _STRING_BEGINS.search(text, position):
        yield text[position : begin.start()]
        end = _STRING_ENDS[begin[0]].match(text, begin.end())
        if end is None:
            return  # no TOML: the parser does not get further either
        if begin[0] != "#":
            yield "s"
        position = end.end()
    yield text[position:]
