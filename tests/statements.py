"""The statements of a Python file, which are a tenth of its nodes: an import is nowhere else."""

import ast
from collections.abc import Callable, Iterator

_INSIDE = ("body", "orelse", "finalbody", "handlers", "cases")


def statements(
    node: ast.AST, enter: Callable[[ast.AST], bool] = lambda _: True
) -> Iterator[ast.AST]:
    """Each statement inside ``node``, however deep, but for those inside what is not entered."""
    for field in _INSIDE:
        # the body of a lambda or of ``a if b else c`` is an expression
        inside = getattr(node, field, ())
        for child in inside if isinstance(inside, list) else ():
            if enter(child):
                yield child
                yield from statements(child, enter)
