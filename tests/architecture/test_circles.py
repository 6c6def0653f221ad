"""No file needs itself: not by the imports at its top, and not by those inside its functions."""

import ast
import graphlib
from pathlib import Path

from package_trees import FILES, PACKAGE, nodes_of
from statements import statements


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_run(node: ast.AST) -> bool:
    """Whether it is run, and not only read by the type checker."""
    return not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")


def imported_by(path: Path, names: set[str]) -> set[str]:
    """The files of the package that a file imports anywhere but for the type checker."""
    found: set[str] = set()
    for node in statements(nodes_of(path)[0], is_run):
        if isinstance(node, ast.ImportFrom) and node.module:
            # ``from pellucid.decoding import rewriting`` names a file by its last word.
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (whole & names) or ({node.module} & names)
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names} & names
    return found - {name_of(path)}


def test_imports_form_no_circle():
    files = {name_of(path): path for path in FILES}
    graph = {name: imported_by(path, set(files)) for name, path in files.items()}
    assert graph["pellucid.decoding.torch_engine"] >= {"pellucid.decoding.search.search"}

    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        raise AssertionError(" -> ".join(error.args[1])) from None
