"""A strict JSON parser (RFC 8259) with bounds on depth and size; problems name the field."""

import dataclasses
import itertools
import json
import math
import re
import reprlib
from collections.abc import Iterator
from typing import Any

from pellucid.serve.server.errors import FieldProblem, refuse

_LONGEST_NUMBER = 40
"""Characters. A double needs at most 25; converting longer numbers takes quadratic time."""
_EXACT = 2**53
"""Below this every integer has an exact double."""
_SURROGATES = re.compile("[\ud800-\udfff]")
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)', re.DOTALL)
"""A string, or the start of one that never ends: no start is tried twice, so time is linear."""
_STEPS = {"[": 1, "{": 1, "]": -1, "}": -1}

_SHOWN = 40
"""Characters of a wrong value that an error repeats."""
_SHORT_REPR = reprlib.Repr()
_SHORT_REPR.maxstring = _SHORT_REPR.maxother = 4 * _SHOWN
"""Never formats a whole value, which may have a megabyte."""
_LONGEST_PLACE = 200
"""Characters of a field's path during the search for problems, because clients choose the names."""


class MalformedError(Exception):
    """The bytes are not JSON by RFC 8259, or are nested too deeply."""


@dataclasses.dataclass(frozen=True)
class _Wrong:
    """Replaces a refused value until its field is known."""

    message: str
    value: str


def parse_strictly(body: bytes, max_depth: int, max_values: int) -> Any:
    """Parse ``body``.

    Raises MalformedError if it is not UTF-8 or not JSON, deeper than ``max_depth``, or has more
    than ``max_values`` values, each of which takes time to check; InvalidError, naming the fields,
    for duplicate keys, NaN, infinity, numbers beyond a double and lone surrogates.
    """
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MalformedError(f"the body must be UTF-8, byte {error.start} is not") from None
    if text.startswith("\ufeff"):
        raise MalformedError("the body must not start with a byte order mark")

    # Before parsing, because the standard parser recurses and would build every value first:
    # without strings, commas and brackets bound the number of values and the depth.
    bare = _STRING.sub("", text)
    if bare.count(",") + bare.count("[") + bare.count("{") >= max_values:
        raise MalformedError(f"a body must hold at most {max_values} values")
    if depth_of(bare) > max_depth:
        raise MalformedError(f"arrays and objects must be nested at most {max_depth} deep")

    try:
        value = json.loads(
            text,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=lambda word: _Wrong("must be a finite number", word),
            object_pairs_hook=_object,
        )
    except json.JSONDecodeError as error:
        problem = error.msg.removesuffix(" at")  # some of Python's end so
        raise MalformedError(f"the body is not JSON: {problem} at character {error.pos}") from None

    # Only now, as the parser's hooks do not know in which field a value stands.
    refuse(list(_problems_of(value, "")))
    return value


def depth_of(text: str) -> int:
    """The depth of nested arrays and objects; brackets in strings do not count."""
    marks = re.sub(r"[^\[\]{}]+", "", _STRING.sub("", text))
    return max(itertools.accumulate(map(_STEPS.__getitem__, marks)), default=0)


def shown(value: object) -> str:
    """A value as error messages show it: short, on one line, in ASCII."""
    text = _SHORT_REPR.repr(value).encode("ascii", "backslashreplace").decode("ascii")
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _integer(digits: str) -> int | _Wrong:
    if len(digits) > _LONGEST_NUMBER:
        return _Wrong(f"must be a number of at most {_LONGEST_NUMBER} digits", digits)
    return int(digits)


def _float(digits: str) -> float | int | _Wrong:
    """The number; JSON does not distinguish integers, so ``5.0`` is 5."""
    if len(digits) > _LONGEST_NUMBER:
        return _Wrong(f"must be a number of at most {_LONGEST_NUMBER} digits", digits)
    number = float(digits)
    if not math.isfinite(number):
        return _Wrong("must be a finite number", digits)
    return int(number) if number.is_integer() and abs(number) < _EXACT else number


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        # RFC 8259, section 4, leaves duplicate names open; parsers differ in which value they take.
        found[name] = _Wrong("must be given once", name) if name in found else value
    return found


def _problems_of(value: object, place: str) -> Iterator[FieldProblem]:
    place = place[:_LONGEST_PLACE]  # else each of thousands of problems repeats a long name

    # Recursive, which is safe because the depth has been checked.
    match value:
        case _Wrong():
            yield FieldProblem(place or "body", value.message, shown(value.value))
        case str() if _SURROGATES.search(value):
            yield FieldProblem(place or "body", "must not hold a lone surrogate", shown(value))
        case list():
            for index, each in enumerate(value):
                yield from _problems_of(each, f"{place}.{index}" if place else str(index))
        case dict():
            for name, each in value.items():
                if _SURROGATES.search(name):
                    yield FieldProblem(
                        place or "body", "a name must not hold a lone surrogate", shown(name)
                    )
                    continue
                yield from _problems_of(each, f"{place}.{name}" if place else name)
