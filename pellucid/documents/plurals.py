"""Plural forms of gettext: which numbers a form is for, by the header ``Plural-Forms``."""

import re
from collections.abc import Callable, Sequence

from pellucid.core.errors import DataError
from pellucid.text.languages import base_code

_HEADER = re.compile(r"nplurals\s*=\s*(\d{1,2})\s*;\s*plural\s*=\s*([^;]+)")
_MOST_FORMS = 10
"""Forms of a language; Arabic has 6."""
_TRIED = (*range(220), 1000, 1_000_000)
"""Numbers that show which form is for which: the rules of languages repeat after a hundred."""

_SLAVIC = "n%10>=2 && n%10<=4 && (n%100<12 || n%100>14) ? 1 : 2"
_RULES = {
    "nplurals=1; plural=0;": "ja ko zh th vi id ms lo my",
    "nplurals=2; plural=(n > 1);": "fr pt_br fa hi bn gu kn zu am hy oc br ln mg ti wa",
    "nplurals=2; plural=(n != 1);": (
        "en de nl sv da no nb nn fo fy af es it pt ca gl eu fi et el hu tr bg he sq ka az kk uz ky"
        " mn ne ta te ml mr pa ur si so sw ha tk lb eo yi ps ku"
    ),
    f"nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : {_SLAVIC});": "ru uk be sr hr bs",
    f"nplurals=3; plural=(n==1 ? 0 : {_SLAVIC});": "pl",
    "nplurals=3; plural=(n==1 ? 0 : n>=2 && n<=4 ? 1 : 2);": "cs sk",
    "nplurals=3; plural=(n==1 ? 0 : n==0 || (n%100>0 && n%100<20) ? 1 : 2);": "ro",
    (
        "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 :"
        " n%10>=2 && (n%100<10 || n%100>=20) ? 1 : 2);"
    ): "lt",
    "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n != 0 ? 1 : 2);": "lv",
    "nplurals=4; plural=(n%100==1 ? 0 : n%100==2 ? 1 : n%100==3 || n%100==4 ? 2 : 3);": "sl",
    "nplurals=2; plural=(n%10!=1 || n%100==11);": "is mk",
    "nplurals=4; plural=(n==1 ? 0 : n==2 ? 1 : n!=8 && n!=11 ? 2 : 3);": "cy",
    "nplurals=5; plural=(n==1 ? 0 : n==2 ? 1 : n<7 ? 2 : n<11 ? 3 : 4);": "ga",
    (
        "nplurals=6; plural=(n==0 ? 0 : n==1 ? 1 : n==2 ? 2 :"
        " n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5);"
    ): "ar",
}
"""The header of languages that have one, as in the manual of gettext, section "Plural forms", and
the catalogs of people who translate into it."""
_HEADERS = {code: header for header, codes in _RULES.items() for code in codes.split()}

_CATEGORIES = {
    ("few", "many"): "ru uk be pl",
    ("few",): "cs sk hr sr bs ro lt",
    ("two", "few"): "sl",
    ("two", "few", "many"): "ga",
    ("zero", "two", "few", "many"): "ar cy",
    ("zero",): "lv",
    ("two",): "he",
}
"""The forms of whole numbers beside ``one`` and ``other``. Source: CLDR, Language Plural Rules."""


def categories_of(language: str) -> tuple[str, ...]:
    """The forms that a message of ICU needs beside ``one`` and ``other`` in a language."""
    code = base_code(language)
    return next((each for each, codes in _CATEGORIES.items() if code in codes.split()), ())


def header_of(language: str) -> str | None:
    """The value of ``Plural-Forms`` for a language such as ``pt_BR``; None if it is not known."""
    return _HEADERS.get(language.lower().replace("-", "_")) or _HEADERS.get(base_code(language))


def numbers_of_forms(header: str) -> list[list[int]]:
    """For each form in order some of the numbers that it is for, by the value of ``Plural-Forms``.

    Raises DataError for one that gettext could not use.
    """
    found = _HEADER.search(header)
    if found is None:
        raise DataError(f"Plural-Forms must have nplurals and plural, got {header[:80]!r}")

    count, rule = int(found[1]), found[2]
    if not 1 <= count <= _MOST_FORMS:
        raise DataError(f"Plural-Forms must have 1 to {_MOST_FORMS} forms, has {count}")

    value = read_expression(rule)
    forms: list[list[int]] = [[] for _ in range(count)]

    for number in _TRIED:
        try:
            form = value(number)
        except ZeroDivisionError:
            raise DataError(f"the rule of Plural-Forms divides by zero for {number}") from None

        if form >= count:
            raise DataError(f"Plural-Forms has {count} forms, its rule gives {form} for {number}")
        forms[form].append(number)
    return forms


_TOKEN = re.compile(r"\s*(\d{1,9}|n|\|\||&&|[=!<>]=|[-+*/%<>!?:()])")
_LONGEST = 1000
"""Characters of an expression; that of Arabic has 120."""
_DEEPEST = 40
"""Choices and brackets within each other."""
_MODULUS = 1 << 64
"""Numbers are unsigned, as in C."""

Value = Callable[[int], int]
"""An expression of ``n``."""


def read_expression(text: str) -> Value:
    """Read an expression. Raises DataError; its value raises ZeroDivisionError."""
    return _Reader(text).whole()


_OPERATORS: Sequence[dict[str, Callable[[int, int], int]]] = (
    {"==": lambda a, b: int(a == b), "!=": lambda a, b: int(a != b)},
    {
        "<=": lambda a, b: int(a <= b),
        ">=": lambda a, b: int(a >= b),
        "<": lambda a, b: int(a < b),
        ">": lambda a, b: int(a > b),
    },
    {"+": lambda a, b: (a + b) % _MODULUS, "-": lambda a, b: (a - b) % _MODULUS},
    {"*": lambda a, b: a * b % _MODULUS, "/": lambda a, b: a // b, "%": lambda a, b: a % b},
)
"""The operators of two numbers, from those that bind least to those that bind most, as in C."""


class _Reader:
    """Reads an expression of C with the one variable ``n``."""

    def __init__(self, text: str) -> None:
        self._tokens: list[str] = []
        self._at = self._depth = 0
        text = text.strip()
        if len(text) > _LONGEST:
            raise DataError(f"the rule of Plural-Forms must have at most {_LONGEST} characters")
        at = 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                raise DataError(f"the rule of Plural-Forms cannot be read at {text[at:][:20]!r}")
            self._tokens.append(found[1])
            at = found.end()

    def whole(self) -> Value:
        """The whole expression."""
        value = self._choice()
        if self._at < len(self._tokens):
            raise DataError(f"the rule of Plural-Forms cannot be read at {self._next!r}")
        return value

    @property
    def _next(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else "its end"

    def _takes(self, token: str) -> bool:
        is_next = self._next == token
        self._at += is_next
        return is_next

    def _expect(self, token: str) -> None:
        if not self._takes(token):
            raise DataError(f"the rule of Plural-Forms needs {token!r}, has {self._next!r}")

    def _choice(self) -> Value:
        """``a ? b : c``, which is read from the right."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise DataError("the rule of Plural-Forms is nested too deeply")
        condition = self._any()
        if self._takes("?"):
            first = self._choice()
            self._expect(":")
            second = self._choice()
            self._depth -= 1
            return lambda n: first(n) if condition(n) else second(n)
        self._depth -= 1
        return condition

    def _any(self) -> Value:
        values = [self._all()]
        while self._takes("||"):
            values.append(self._all())
        return values[0] if len(values) == 1 else lambda n: int(any(value(n) for value in values))

    def _all(self) -> Value:
        values = [self._binary(0)]
        while self._takes("&&"):
            values.append(self._binary(0))
        return values[0] if len(values) == 1 else lambda n: int(all(value(n) for value in values))

    def _binary(self, level: int) -> Value:
        if level == len(_OPERATORS):
            return self._single()
        value = self._binary(level + 1)
        rest: list[tuple[Callable[[int, int], int], Value]] = []
        while operator := _OPERATORS[level].get(self._next):
            self._at += 1
            rest.append((operator, self._binary(level + 1)))
        if not rest:
            return value

        def combined(n: int) -> int:
            result = value(n)
            for operator, other in rest:
                result = operator(result, other(n))
            return result

        return combined

    def _single(self) -> Value:
        negations = 0
        while self._takes("!"):
            negations += 1

        if self._takes("("):
            value = self._choice()
            self._expect(")")
        elif self._takes("n"):
            value = lambda n: n  # noqa: E731
        elif self._next.isdecimal():
            number = int(self._next)
            self._at += 1
            value = lambda _: number  # noqa: E731
        else:
            raise DataError(f"the rule of Plural-Forms needs a number or n, has {self._next!r}")

        if not negations:
            return value
        return lambda n: int(not value(n)) if negations % 2 else int(bool(value(n)))
