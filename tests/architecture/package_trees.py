"""The syntax trees of the package, parsed once for all tests of a worker."""

import ast
import functools
import gc
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "pellucid"
FILES = tuple(sorted(PACKAGE.rglob("*.py")))


@functools.cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """Every node of a file of the package, the module first."""
    return _all_nodes()[path]


@functools.cache
def _all_nodes() -> dict[Path, tuple[ast.AST, ...]]:
    # Half a million nodes, none of which is garbage: looking for it took longer than to parse.
    gc.disable()
    found = {path: tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8")))) for path in FILES}
    gc.freeze()
    gc.enable()
    return found
