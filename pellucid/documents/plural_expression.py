"""An expression of C with the one variable ``n``, as in the header ``Plural-Forms`` of gettext."""

import re
from collections.abc import Callable, Sequence

from pellucid.core.errors import DataError

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
