"""How each public function of pellucid/equations hangs together with the program.

    python scripts/equation_ties.py      print the counts and every function with its tie

run        the program calls it: a module outside equations does, itself or through other equations
twin       a law calls it, itself or through a page of equations, beside what the program does fast
notation   lives in pellucid/equations/notation: other ways to write the same, which nothing runs
untied     none of these; a test fails

Found by reading the code: a function is called where its name is loaded after it was imported.
"""

import ast
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EQUATIONS = ROOT / "pellucid" / "equations"
DOCTOR = ROOT / "pellucid" / "inspection" / "laws.py"
"""Part of the package, but a law: ``pellucid doctor``."""


@dataclass(frozen=True)
class Tie:
    """How a function hangs together with the program."""

    kind: str
    """``run``, ``twin``, ``notation`` or ``untied``."""
    by: tuple[str, ...]
    """The files that call it, directly or through other equations."""


def module_of(path: Path) -> str:
    """The dotted name of a file of the package."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def read_functions() -> dict[str, ast.FunctionDef]:
    """Every function at the top of a module of equations, by ``module.name``."""
    found = {}
    for path in sorted(EQUATIONS.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                found[f"{module_of(path)}.{node.name}"] = node
    return found


def read_names(path: Path, functions: dict[str, ast.FunctionDef]) -> dict[str, str]:
    """Return the meaning of the names in a file that are functions or modules of equations."""
    exported = {name.rsplit(".", 1)[1]: name for name in functions if not _is_private(name)}
    names = {}
    if EQUATIONS in path.parents:
        here = module_of(path)
        names = {key.rsplit(".", 1)[1]: key for key in functions if key.rsplit(".", 1)[0] == here}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            "pellucid.equations"
        ):
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                is_reexported = node.module == "pellucid.equations" and alias.name in exported
                target = exported[alias.name] if is_reexported and full not in functions else full
                names[alias.asname or alias.name] = target
    return names


def called_in(
    node: ast.AST, names: dict[str, str], functions: dict[str, ast.FunctionDef]
) -> set[str]:
    """The functions of equations that are loaded anywhere inside ``node``."""
    found = set()
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load):
            found.add(names.get(each.id, ""))
        elif isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name):
            found.add(f"{names.get(each.value.id, '')}.{each.attr}")
    return found & functions.keys()


def reach(roots: set[str], calls: dict[str, set[str]]) -> set[str]:
    """Everything that ``roots`` call, however many calls away."""
    found, waiting = set(), set(roots)
    while waiting:
        name = waiting.pop()
        found.add(name)
        waiting |= calls[name] - found
    return found


def find_ties() -> dict[str, Tie]:
    """The tie of every public function, by ``module.name``."""
    functions = read_functions()
    files = sorted(EQUATIONS.rglob("*.py"))
    by_module = {module_of(path): read_names(path, functions) for path in files}
    calls = {
        name: called_in(node, by_module[name.rsplit(".", 1)[0]], functions) - {name}
        for name, node in functions.items()
    }
    for path in files:
        module = module_of(path)
        if "fused" not in module:
            continue
        # What the autograd functions of a fast twin call counts for the twins beside them.
        classes = [n for n in ast.parse(path.read_text()).body if isinstance(n, ast.ClassDef)]
        inside = set[str]().union(*(called_in(n, by_module[module], functions) for n in classes))
        for name in functions:
            if name.rsplit(".", 1)[0] == module:
                calls[name] |= inside

    program = [
        path
        for path in sorted((ROOT / "pellucid").rglob("*.py"))
        if EQUATIONS not in path.parents and path != DOCTOR
    ]
    laws = [*sorted((ROOT / "tests" / "laws").rglob("*.py")), DOCTOR]
    callers = {"run": _callers(program, functions, calls), "twin": _callers(laws, functions, calls)}

    ties = {}
    for name in functions:
        if _is_private(name):
            continue
        if ".notation." in name:
            ties[name] = Tie("notation", ())
            continue
        kind = next((kind for kind in callers if name in callers[kind]), "untied")
        ties[name] = Tie(kind, tuple(sorted(callers[kind][name])) if kind in callers else ())
    return ties


def _callers(
    paths: list[Path], functions: dict[str, ast.FunctionDef], calls: dict[str, set[str]]
) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for path in paths:
        text = path.read_text(encoding="utf-8")
        if "equations" not in text:
            continue  # imports none of them
        roots = called_in(ast.parse(text), read_names(path, functions), functions)
        for name in reach(roots, calls):
            found.setdefault(name, set()).add(str(path.relative_to(ROOT)))
    return found


def _is_private(name: str) -> bool:
    return name.rsplit(".", 1)[1].startswith("_")


def main() -> int:
    """Print the counts and every function; exit code 1 if one is untied."""
    ties = find_ties()
    counts = Counter(tie.kind for tie in ties.values())
    print(", ".join(f"{counts[kind]} {kind}" for kind in ("run", "twin", "notation", "untied")))
    for name, tie in sorted(ties.items(), key=lambda item: (item[1].kind, item[0])):
        short = name.removeprefix("pellucid.equations.")
        print(f"{tie.kind:9} {short:45} {', '.join(tie.by[:2])}")
    return 1 if counts["untied"] else 0


if __name__ == "__main__":
    sys.exit(main())
