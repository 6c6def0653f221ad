"""``pellucid/serve/server`` is a package of its own: no translation in it."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SERVER = ROOT / "pellucid" / "serve" / "server"
MAY_IMPORT = ("pellucid.core.", "pellucid.serve.server.")
PACKAGES = {"h11", "prometheus_client", "pydantic", "starlette"}
FILES = sorted(SERVER.glob("*.py"))


def imported(path: Path) -> list[tuple[int, str]]:
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [(node.lineno, f"{node.module}.{alias.name}") for alias in node.names]
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_server_imports_nothing_of_translation(path: Path):
    for line, name in imported(path):
        package = name.partition(".")[0]
        if package == "pellucid":
            assert name.startswith(MAY_IMPORT), f"{path.name}:{line} imports {name}"
        else:
            known = package in PACKAGES or package in sys.stdlib_module_names
            assert known, f"{path.name}:{line} imports {name}"


def test_what_answers_first_imports_the_standard_library_alone():
    """It is forked before the rest is imported; the package itself must be as light."""
    for name in ("__init__", "starting", "problems"):
        for line, each in imported(SERVER / f"{name}.py"):
            own = each == "pellucid.serve.server.problems.problem_bytes"
            assert own or each.partition(".")[0] in sys.stdlib_module_names, f"{name}:{line} {each}"
