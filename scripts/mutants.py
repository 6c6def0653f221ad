"""All the ways in which a file is broken: one place at a time.

A mutant changes an operator, a comparison, a number, a default, a negation, a method, the order of
two arguments or of a tuple; or it leaves out a keyword or a call. Device arguments are let alone,
for they show on a machine with a second device only, and so is what stands in a ``raise``, for it
is no equation.
"""

import ast
import copy
import difflib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

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


@dataclass(frozen=True)
class Mutant:
    """One program that differs from the original in one place."""

    path: Path
    line: int
    """Of the original file."""
    before: str
    after: str
    """The line that was changed, as ``ast.unparse`` writes it."""
    within: tuple[int, int]
    """First and last line of the function or class that was changed; the whole file if none."""
    source: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}  {self.before}  ->  {self.after}"


def mutants(path: Path) -> Iterator[Mutant]:
    """All mutants of one file; those that only repeat another are left out."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    original = ast.unparse(tree)
    seen = {original}
    for place in sorted(mutable_places(tree)):
        for variant in range(len(edits(list(ast.walk(tree))[place]))):
            changed = copy.deepcopy(tree)
            target = list(ast.walk(changed))[place]
            Replace(target, edits(target)[variant]()).visit(changed)
            source = ast.unparse(ast.fix_missing_locations(changed))
            if source not in seen:
                seen.add(source)
                before, after = changed_lines(original, source)
                line = target.lineno  # type: ignore[attr-defined]  # every place has one
                yield Mutant(path, line, before, after, around(tree, line), source)


def around(tree: ast.Module, line: int) -> tuple[int, int]:
    """Where the function or class of a line begins and ends."""
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            first = min(each.lineno for each in [statement, *statement.decorator_list])
            last = statement.end_lineno or first
            if first <= line <= last:
                return first, last
    return 0, sys.maxsize


def changed_lines(original: str, source: str) -> tuple[str, str]:
    """What stood there, and what stands there now, without its indentation."""
    lines = list(difflib.unified_diff(original.splitlines(), source.splitlines(), n=0))[3:]
    before = [line[1:].strip() for line in lines if line.startswith("-")]
    after = [line[1:].strip() for line in lines if line.startswith("+")]
    return " ; ".join(before), " ; ".join(after)


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
        keyword_defaults = [each for each in function.args.kw_defaults if each is not None]
        places |= below(*function.body, *function.args.defaults, *keyword_defaults)
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
