"""Break a program in many small ways and see whether its tests notice.

    python scripts/mutate.py pellucid/equations --tests tests/equations
    python scripts/mutate.py pellucid/equations/attention.py --tests tests/equations --jobs 4

Every mutant changes one place of one file: an operator, a comparison, a number, a default, a
negation, a method, the order of two arguments, a keyword; or it leaves out a call. The tests are
collected once; each mutant then lives in a forked process in which the functions of the module
get the mutated code, and the tests run until the first failure, those named after the module
first. The files on disk are never touched. Tests that fail without a mutant are refused.

Device arguments are let alone, for they show on a machine with a second device only, and so is
what stands in a ``raise``, for it is no equation.
"""

import argparse
import ast
import copy
import importlib
import os
import resource
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from inspect import unwrap
from pathlib import Path

import pytest

SWAPPED_OPERATORS: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
SWAPPED_METHODS = {
    "sum": "mean",
    "mean": "sum",
    "exp": "expm1",
    "log": "log1p",
    "sin": "cos",
    "cos": "sin",
    "amax": "amin",
    "max": "min",
    "min": "max",
    "any": "all",
    "sqrt": "square",
    "square": "abs",
    "tanh": "sigmoid",
    "sigmoid": "tanh",
}
DROPPED_METHODS = {"transpose", "sqrt", "abs", "clamp", "exp", "log", "masked_fill", "square"}
"""Replaced by what they are called on: ``x.transpose(0, 1)`` becomes ``x``."""
SECONDS_PER_MUTANT = 60
"""Of processor time; whoever takes longer is lost in a loop, and so noticed."""
PYTEST_OPTIONS = ["-q", "-n0", "--tb=no", "-p", "no:cacheprovider", "-p", "no:cov", "-s"]


@dataclass(frozen=True)
class Mutant:
    """One program that differs from the original in one place."""

    path: Path
    line: int
    change: str
    source: str


def mutants(path: Path) -> Iterator[Mutant]:
    """All mutants of one file; those that only repeat another are left out."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    seen = {ast.unparse(tree)}
    for place in sorted(mutable_places(tree)):
        for variant in range(len(edits(list(ast.walk(tree))[place]))):
            changed = copy.deepcopy(tree)
            target = list(ast.walk(changed))[place]
            before, replacement = ast.unparse(target), edits(target)[variant]()
            after = ast.unparse(replacement)
            Replace(target, replacement).visit(changed)
            source = ast.unparse(ast.fix_missing_locations(changed))
            if source not in seen:
                seen.add(source)
                yield Mutant(path, getattr(target, "lineno", 0), f"{before}  ->  {after}", source)


def mutable_places(tree: ast.Module) -> set[int]:
    """Numbers (in the order of ast.walk) of nodes in bodies, defaults and named constants."""
    index = {id(node): place for place, node in enumerate(ast.walk(tree))}

    def below(*roots: ast.AST) -> set[int]:
        return {index[id(node)] for root in roots for node in ast.walk(root)}

    places: set[int] = set()
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
            places |= below(statement.value)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for function in functions:
        places |= below(*function.body, *function.args.defaults)
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise):
            places -= below(node)
        annotation = getattr(node, "annotation", getattr(node, "returns", None))
        if annotation is not None:
            places -= below(annotation)
    return places


def edits(node: ast.AST) -> list[Callable[[], ast.AST]]:
    """What can be put in the place of ``node``, each as a function that builds it."""
    match node:
        case ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in SWAPPED_OPERATORS:
            return [lambda: _with(node, op=SWAPPED_OPERATORS[type(op)]())]
        case ast.BoolOp(op=op):
            return [lambda: _with(node, op=SWAPPED_OPERATORS[type(op)]())]
        case ast.Compare(ops=[op]) if type(op) in SWAPPED_OPERATORS:
            return [lambda: _with(node, ops=[SWAPPED_OPERATORS[type(op)]()])]
        case ast.UnaryOp(operand=operand):
            return [lambda: operand]
        case ast.Constant(value=bool() as value):
            return [lambda: ast.Constant(not value)]
        case ast.Constant(value=int() | float() as value):
            return [lambda: ast.Constant(value + 1), lambda: ast.Constant(value - 1)]
        case ast.IfExp(body=body, orelse=orelse):
            return [lambda: _with(node, body=orelse, orelse=body)]
        case ast.Tuple(elts=[_, _, *_] as parts, ctx=ast.Load()):
            return [lambda: _with(node, elts=parts[::-1])]
        case ast.Expr(value=ast.Call()):
            return [ast.Pass]
        case ast.Call():
            return call_edits(node)
    return []


def call_edits(node: ast.Call) -> list[Callable[[], ast.AST]]:
    """Another method, no method, two arguments changed about, a keyword less."""
    found: list[Callable[[], ast.AST]] = []
    if isinstance(node.func, ast.Attribute):
        name, receiver = node.func.attr, node.func.value
        is_function = ast.unparse(receiver) in ("torch", "math")
        if name in SWAPPED_METHODS and ast.unparse(receiver) != "math":
            other = ast.Attribute(receiver, SWAPPED_METHODS[name], ast.Load())
            found.append(lambda: _with(node, func=other))
        if name in DROPPED_METHODS and not is_function:
            found.append(lambda: receiver)
    if len(node.args) > 1:
        *rest, last_but_one, last = node.args
        found.append(lambda: _with(node, args=[*rest, last, last_but_one]))
    for place, keyword in enumerate(node.keywords):
        if keyword.arg != "device":
            others = node.keywords[:place] + node.keywords[place + 1 :]
            found.append(partial(_with, node, keywords=others))
    return found


def _with(node: ast.AST, **changes: object) -> ast.AST:
    changed = copy.copy(node)
    for name, value in changes.items():
        setattr(changed, name, value)
    return changed


class Replace(ast.NodeTransformer):
    """Puts one node in the place of another."""

    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        """The new node where the old one stood, everything else as it was."""
        return self.new if node is self.old else self.generic_visit(node)


def put_in_place(mutant: Mutant) -> None:
    """Give the functions of the loaded module the mutant's code, for all who imported them."""
    module = importlib.import_module(".".join(mutant.path.with_suffix("").parts))
    changed = {"__name__": module.__name__}
    exec(compile(mutant.source, str(mutant.path), "exec"), changed)  # noqa: S102  our own source
    for name, new in changed.items():
        old = getattr(module, name, None)
        if isinstance(new, types.FunctionType) and new.__module__ == module.__name__:
            function = unwrap(old)  # beneath the checks of shapes
            function.__code__, function.__defaults__ = new.__code__, new.__defaults__
        elif isinstance(new, int | float):
            setattr(module, name, new)


class Experiment:
    """A pytest plugin that runs the collected tests once for every mutant."""

    def __init__(self, todo: list[Mutant], jobs: int) -> None:
        self.todo, self.jobs = todo, jobs
        self.alive: list[Mutant] = []
        self.running: dict[int, Mutant] = {}

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """In place of running the tests once."""
        path = self.todo[0].path
        self.start(Mutant(path, 0, "nothing", path.read_text(encoding="utf-8")), session.items)
        if not self.finish_one():
            pytest.exit("the tests must pass before anything is broken", returncode=2)
        for number, mutant in enumerate(self.todo):
            while len(self.running) >= self.jobs:
                self.finish_one()
            self.start(mutant, session.items)
            if number % 100 == 99:
                print(f"{number + 1} of {len(self.todo)} mutants tried", file=sys.stderr)
        while self.running:
            self.finish_one()
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """The first failure is enough (this runs in the forked process only)."""
        if report.failed:
            os._exit(1)

    def start(self, mutant: Mutant, items: list[pytest.Item]) -> None:
        """Fork, break, and test."""
        process = os.fork()
        if process:
            self.running[process] = mutant
            return
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS_PER_MUTANT, SECONDS_PER_MUTANT))
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        try:
            put_in_place(mutant)
            order = sorted(items, key=lambda item: mutant.path.stem not in item.path.stem)
            for item, following in zip(order, [*order[1:], None], strict=True):
                item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
        except BaseException:
            os._exit(1)
        os._exit(0)

    def finish_one(self) -> bool:
        """Wait for a process to end; whether its mutant went unnoticed."""
        process, status = os.wait()
        mutant = self.running.pop(process)
        survived = os.waitstatus_to_exitcode(status) == 0
        if survived and mutant.line:
            self.alive.append(mutant)
            print(f"survived  {mutant.path}:{mutant.line}  {mutant.change}", flush=True)
        return survived


def report(paths: list[Path], todo: list[Mutant], alive: list[Mutant]) -> float:
    """Print how many of each file's mutants were noticed; the percentage of all."""
    print(f"\n{'file':<40} {'mutants':>8} {'killed':>8} {'percent':>8}")
    share = 0.0
    for name, chosen in [*((str(path), [path]) for path in paths), ("all", paths)]:
        count = sum(mutant.path in chosen for mutant in todo)
        killed = count - sum(mutant.path in chosen for mutant in alive)
        share = 100 * killed / max(1, count)
        print(f"{name:<40} {count:>8} {killed:>8} {share:>7.1f}%")
    return share


def main() -> int:
    """Print a table; the exit code is 1 if fewer than ``--at-least`` percent were killed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("target", type=Path, nargs="+", help="files or folders to be broken")
    parser.add_argument("--tests", nargs="+", required=True, help="what has to notice")
    parser.add_argument("--skip", nargs="*", default=["__init__.py", "fused.py"])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--at-least", type=float, default=95.0, help="percent to be killed")
    options = parser.parse_args()
    paths = [f for t in options.target for f in (sorted(t.glob("*.py")) if t.is_dir() else [t])]
    paths = [path for path in paths if path.name not in options.skip]
    todo = [mutant for path in paths for mutant in mutants(path)]
    if not todo:
        sys.exit("nothing to break here")
    experiment = Experiment(todo, options.jobs)
    code = pytest.main([*PYTEST_OPTIONS, *options.tests], plugins=[experiment])
    if code != pytest.ExitCode.OK:
        return int(code)
    return int(report(paths, todo, experiment.alive) < options.at_least)


if __name__ == "__main__":
    sys.exit(main())
