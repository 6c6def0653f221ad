"""All the ways in which a file is broken: one place at a time.

Some breaks a machine makes: another operator, comparison, number, default or method, two arguments
changed about, a keyword or a call left out. The others are mistakes that a person makes and means
well, each a kind with a name: the wrong axis, a transposed operand, the matrix of a neighbor (the
key's for the value's), a swapped mask, a position off by one, an epsilon in the wrong place,
dropout before instead of after, a switch that is ignored, a step that is left out.

Device arguments are let alone, for they show on a machine with a second device only, and so is what
stands in a ``raise`` or an ``assert``, which is no equation.
"""

import ast
import copy
import difflib
import hashlib
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

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
    "all": "any",
    "sqrt": "square",
    "square": "abs",
    "tanh": "sigmoid",
    "sigmoid": "tanh",
    "argmax": "argmin",
    "log_softmax": "softmax",
    "softmax": "log_softmax",
    "floor": "ceil",
    "ceil": "floor",
}
SWAPPED_MASKS = {"tril": "triu", "triu": "tril", "ones": "zeros", "zeros": "ones"}
DROPPED_METHODS = {"transpose", "sqrt", "abs", "clamp", "exp", "log", "masked_fill", "square"}
"""Replaced by what they are called on: ``x.transpose(0, 1)`` becomes ``x``."""

FAMILIES = (
    "query key value",
    "queries keys values",
    "q k v",
    "encoder decoder",
    "source target",
    "self cross",
    "forward backward",
    "forwards backwards",
    "gain bias",
    "inner outer",
    "reset update candidate",
    "input forget cell output",
    "left right",
    "first last",
    "first second",
    "mean variance",
    "loss likelihood",
    "small large",
    "labels input",
    "before after",
    "best worst",
    "rows columns",
    "scores weights",
    "hidden memory",
    "parent token",
    "alive finished",
)
"""Parts of names that stand beside one another in the field, and are mistaken for each other."""
_FAMILIES = [family.split() for family in FAMILIES]

MASKS = {"mask", "masks", "attend", "padding", "causal", "allowed", "banned"}
POSITIONS = {"start", "offset", "position", "positions", "length", "place", "places", "step"}
# fmt: off
WITH_AXES = {
    "all", "any", "amax", "amin", "argmax", "argmin", "argsort", "cat", "chunk", "cumsum",
    "flatten", "flip", "gather", "index_add", "index_select", "log_softmax", "logsumexp", "max",
    "mean", "min", "movedim", "norm", "prod", "scatter", "scatter_add", "select", "softmax",
    "sort", "split", "squeeze", "stack", "std", "sum", "take_along_dim", "topk", "transpose",
    "unbind", "unflatten", "unsqueeze", "var"
}
# fmt: on


@dataclass(frozen=True)
class Mutant:
    """One program that differs from the original in one place."""

    path: Path
    line: int
    """Of the original file."""
    before: str
    after: str
    """The line that was changed, as ``ast.unparse`` writes it."""
    kind: str
    """What kind of mistake it is."""
    function: str
    """The function or method that was changed, with its class; nothing for a constant."""
    statement: tuple[int, int]
    """First and last line of the statement that was changed."""
    is_default: bool
    """Whether it is the default of an argument, which is computed when the file is loaded."""
    changed: ast.stmt = field(compare=False, repr=False)
    """The function, class or constant at the top of the module that it replaces."""

    test: str = ""
    """Of a break by hand, the name of the test that has to notice."""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}  [{self.kind}]  {self.before}  ->  {self.after}"

    def source(self) -> str:
        """The whole module with this one change."""
        tree = ast.parse(self.path.read_text(encoding="utf-8"))
        tree.body = [self.changed if s.lineno == self.changed.lineno else s for s in tree.body]
        return ast.unparse(tree)


class Names:
    """What a file calls its things, so that one can be mistaken for another of them."""

    def __init__(self, tree: ast.Module) -> None:
        nodes = list(ast.walk(tree))
        self.attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
        self.by_function: dict[ast.AST, set[str]] = {}
        self.like: dict[ast.AST, dict[str, str]] = {}
        """For each function: a parameter and the next one with the same annotation."""
        for node in nodes:
            if isinstance(node, ast.FunctionDef):
                inside = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
                arguments = [*node.args.args, *node.args.kwonlyargs]
                self.by_function[node] = {each.id for each in inside} | {a.arg for a in arguments}
                self.like[node] = _next_of_its_kind(arguments)

    def neighbors(self, name: str, known: set[str]) -> list[str]:
        """Known names that differ by a member of one family: ``w_k`` and ``w_v`` for ``w_q``."""
        parts = name.split("_")
        found = []
        for place, part in enumerate(parts):
            for family in _FAMILIES:
                for other in family if part in family else ():
                    changed = "_".join([*parts[:place], other, *parts[place + 1 :]])
                    if changed in known and changed != name:
                        found.append(changed)
        return list(dict.fromkeys(found))


def _next_of_its_kind(arguments: list[ast.arg]) -> dict[str, str]:
    by_annotation: dict[str, list[str]] = {}
    for each in arguments:
        if each.annotation is not None:
            by_annotation.setdefault(ast.unparse(each.annotation), []).append(each.arg)
    return {
        name: names[(place + 1) % len(names)]
        for names in by_annotation.values()
        for place, name in enumerate(names)
        if len(names) > 1
    }


def mutants(path: Path, share: float = 1.0) -> tuple[list[Mutant], int]:
    """The mutants of one file that belong to a sample, and how many there are altogether.

    Which belong to it is decided by a number between 0 and 1 made from the text of each, so that
    neither a move of the file nor an edit elsewhere in it changes the choice.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = Names(tree)
    found: list[Mutant] = []
    count = 0
    for top in tree.body:
        places = mutable_places(top)
        if not places:
            continue
        nodes = list(ast.walk(top))
        around = _surroundings(top)
        original = ast.unparse(top)
        seen = {original: 0}
        alike: Counter[str] = Counter()
        for place in sorted(places):
            node = nodes[place]
            function = around[node][1]
            for variant, (kind, _) in enumerate(edits(node, function, names)):
                count += 1
                text = f"{path.stem} {around[node][2]} {kind} {variant} {ast.unparse(node)}"
                alike[text] += 1
                if _number(f"{text} {alike[text]}") >= share:
                    continue
                # A copy has other nodes in the same order, so the edit is found again by numbers.
                changed = copy.deepcopy(top)
                copied = list(ast.walk(changed))[place]
                _, build = edits(copied, function, names)[variant]
                changed = Replace(copied, build()).visit(changed)
                source = ast.unparse(ast.fix_missing_locations(changed))
                if source in seen:
                    continue
                seen[source] = 1
                found.append(_mutant(path, node, kind, around[node], (original, source), changed))
    return found, count


def _number(text: str) -> float:
    """Between 0 and 1, the same for the same text."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6]) / 2**48


def _mutant(
    path: Path,
    node: ast.AST,
    kind: str,
    around: "Around",
    texts: tuple[str, str],
    changed: ast.stmt,
) -> Mutant:
    statement, function, name = around
    before, after = changed_lines(*texts)
    line = getattr(node, "lineno", statement[0])
    is_default = function is not None and line < function.body[0].lineno
    return Mutant(path, line, before, after, kind, name, statement, is_default, changed)


Around = tuple[tuple[int, int], ast.FunctionDef | None, str]
"""First and last line of the statement, the function, and that function's name with its class."""


def _surroundings(top: ast.stmt) -> dict[ast.AST, Around]:
    """What stands around each node."""
    found: dict[ast.AST, Around] = {}

    def visit(
        node: ast.AST, lines: tuple[int, int], function: ast.FunctionDef | None, name: str
    ) -> None:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            is_inner = function is not None
            name = name if is_inner else f"{name}.{node.name}".lstrip(".")
            function = node if isinstance(node, ast.FunctionDef) and not is_inner else function
        if isinstance(node, ast.stmt | ast.match_case):
            # Of a compound statement only its head belongs to it.
            body = getattr(node, "body", None)
            first = getattr(node, "lineno", lines[0])
            last = getattr(node, "end_lineno", first) or first
            lines = (first, max(first, body[0].lineno - 1) if isinstance(body, list) else last)
        found[node] = lines, function, name
        for child in ast.iter_child_nodes(node):
            visit(child, lines, function, name)

    visit(top, (top.lineno, top.lineno), None, "")
    return found


def changed_lines(original: str, source: str) -> tuple[str, str]:
    """What stood there, and what stands there now, without its indentation."""
    lines = list(difflib.unified_diff(original.splitlines(), source.splitlines(), n=0))[3:]
    before = [line[1:].strip() for line in lines if line.startswith("-")]
    after = [line[1:].strip() for line in lines if line.startswith("+")]
    return " ; ".join(before), " ; ".join(after)


def mutable_places(top: ast.stmt) -> set[int]:
    """Numbers (in the order of ast.walk) of nodes in bodies, defaults and named constants."""
    index = {id(node): place for place, node in enumerate(ast.walk(top))}

    def below(*roots: ast.AST) -> set[int]:
        return {index[id(node)] for root in roots for node in ast.walk(root)}

    places: set[int] = set()
    if isinstance(top, ast.Assign) and isinstance(top.value, ast.Constant):
        places |= below(top.value)
    functions = [node for node in ast.walk(top) if isinstance(node, ast.FunctionDef)]
    for function in functions:
        keyword_defaults = [each for each in function.args.kw_defaults if each is not None]
        places |= below(*function.body, *function.args.defaults, *keyword_defaults)
    for node in ast.walk(top):
        if isinstance(node, ast.Raise | ast.Assert):
            places -= below(node)
        annotation = getattr(node, "annotation", getattr(node, "returns", None))
        if annotation is not None:
            places -= below(annotation)
    return places


Edit = tuple[str, Callable[[], ast.AST]]


def edits(node: ast.AST, function: ast.AST | None, names: Names) -> list[Edit]:
    """What can be put in the place of ``node``: the kind of mistake, and what builds it."""
    return [*well_meant(node, function, names), *(("machine", e) for e in by_machine(node))]


def by_machine(node: ast.AST) -> list[Callable[[], ast.AST]]:
    """One token for another, or left out."""
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


def well_meant(node: ast.AST, function: ast.AST | None, names: Names) -> list[Edit]:
    """The mistakes that a person makes."""
    match node:
        case ast.Name(id=name, ctx=ast.Load()):
            return [
                *_neighbors_of_name(node, function, names),
                *_around(node, name),
            ]
        case ast.Attribute(attr=name, value=owner, ctx=ast.Load()):
            if name in ("T", "mT"):
                return [("transposed operand", lambda: owner)]
            if name == "training":
                return [("switch ignored", partial(ast.Constant, b)) for b in (True, False)]
            found: list[Edit] = [
                ("neighbor", partial(_with, node, attr=each))
                for each in names.neighbors(name, names.attributes)
            ]
            return [*found, *_around(node, name)]
        case ast.BinOp(op=ast.MatMult(), left=left, right=right):
            return [
                ("transposed operand", lambda: _with(node, left=_transposed(left))),
                ("transposed operand", lambda: _with(node, right=_transposed(right))),
            ]
        case ast.BinOp(op=ast.Add(), left=left, right=right) if _is_epsilon(right):
            return [("epsilon", lambda: left)]
        case ast.If(test=test, body=body) if not _only_raises(body):
            if isinstance(test, ast.Constant):
                return []
            return [
                ("switch ignored", partial(_with, node, test=ast.Constant(value)))
                for value in (True, False)
            ]
        case ast.IfExp(body=body, orelse=orelse):
            return [("switch ignored", lambda: body), ("switch ignored", lambda: orelse)]
        case ast.Match(cases=cases):
            return [
                ("switch ignored", partial(_with, node, cases=_bodies_swapped(cases, place)))
                for place in range(len(cases) - 1)
                if not _only_raises(cases[place + 1].body)
                and "assert_never" not in ast.unparse(cases[place + 1])
            ]
        case ast.AugAssign():
            return [("step left out", ast.Pass)]
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if _mentions(value, name):
            return [("step left out", ast.Pass)]
        case ast.Call():
            return _mistaken_calls(node)
    return []


def _neighbors_of_name(node: ast.Name, function: ast.AST | None, names: Names) -> list[Edit]:
    if function is None:
        return []
    others = names.neighbors(node.id, names.by_function[function])
    like = names.like[function].get(node.id)
    if like is not None and like not in others:
        others.append(like)
    return [("neighbor", partial(ast.Name, each, ast.Load())) for each in others]


def _around(node: ast.expr, name: str) -> list[Edit]:
    """A mask turned round or forgotten; a position one too late."""
    parts = set(name.split("_"))
    if parts & POSITIONS:
        return [("off by one", lambda: ast.BinOp(node, ast.Add(), ast.Constant(1)))]
    return []


def _mistaken_calls(node: ast.Call) -> list[Edit]:
    found: list[Edit] = []
    called = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)

    for place, argument in enumerate(node.args):
        if _is_mask(argument):
            for other in (ast.Constant(None), ast.UnaryOp(ast.Invert(), argument)):
                changed = [*node.args[:place], other, *node.args[place + 1 :]]
                found.append(("swapped mask", partial(_with, node, args=changed)))
        is_inverted = isinstance(argument, ast.UnaryOp) and isinstance(argument.op, ast.Invert)
        if called == "masked_fill" and place == 0 and not is_inverted and not _is_mask(argument):
            inverted = ast.UnaryOp(ast.Invert(), argument)
            found.append(("swapped mask", partial(_with, node, args=[inverted, *node.args[1:]])))
    for place, keyword in enumerate(node.keywords):
        if keyword.arg == "causal":
            turned = ast.keyword("causal", ast.UnaryOp(ast.Not(), keyword.value))
            changed_keywords = [*node.keywords[:place], turned, *node.keywords[place + 1 :]]
            found.append(("swapped mask", partial(_with, node, keywords=changed_keywords)))
    if called in SWAPPED_MASKS and isinstance(node.func, ast.Attribute):
        other_function = ast.Attribute(node.func.value, SWAPPED_MASKS[called], ast.Load())
        found.append(("swapped mask", lambda: _with(node, func=other_function)))

    found += _wrong_axes(node, called)

    if called in ("sqrt", "rsqrt") and isinstance(node.func, ast.Attribute):
        receiver = node.args[0] if node.args else node.func.value
        if isinstance(receiver, ast.BinOp) and _is_epsilon(receiver.right):
            root = ast.Call(ast.Attribute(receiver.left, called, ast.Load()), [], [])
            found.append(("epsilon", lambda: ast.BinOp(root, ast.Add(), receiver.right)))

    if "dropout" in called and len(node.args) == 1:
        [inner] = node.args
        found.append(("dropout moved", lambda: inner))
        if isinstance(inner, ast.Call) and inner.args:
            dropped = _with(node, args=[inner.args[0]])
            found.append(("dropout moved", lambda: _with(inner, args=[dropped, *inner.args[1:]])))
    if node.args and isinstance(node.args[0], ast.Call) and "dropout" not in called:
        first = node.args[0]
        if "dropout" in ast.unparse(first.func) and len(first.args) == 1:
            undropped = _with(node, args=[first.args[0], *node.args[1:]])
            found.append(("dropout moved", lambda: _with(first, args=[undropped])))
    return found


def _wrong_axes(node: ast.Call, called: str) -> list[Edit]:
    found: list[Edit] = []
    for place, keyword in enumerate(node.keywords):
        other = _next_axis(keyword.value) if keyword.arg in ("dim", "axis") else None
        if other is not None:
            keywords = [
                *node.keywords[:place],
                ast.keyword(keyword.arg, other),
                *node.keywords[place + 1 :],
            ]
            found.append(("wrong axis", partial(_with, node, keywords=keywords)))
    if called in WITH_AXES:
        for place, argument in enumerate(node.args):
            other = _next_axis(argument)
            if other is not None:
                changed = [*node.args[:place], other, *node.args[place + 1 :]]
                found.append(("wrong axis", partial(_with, node, args=changed)))
    return found


def _next_axis(axis: ast.expr) -> ast.expr | None:
    """-2 for -1, -1 for -2, 1 for 0, 0 for 1."""
    try:
        value = ast.literal_eval(axis)
    except ValueError:
        return None
    if type(value) is not int:
        return None
    return ast.Constant({-1: -2, -2: -1, 0: 1, 1: 0}.get(value, value - 1))


def _transposed(matrix: ast.expr) -> ast.expr:
    return ast.Attribute(matrix, "mT", ast.Load())


def _is_epsilon(node: ast.expr) -> bool:
    name = ast.unparse(node).rpartition(".")[2].lower()
    return name in ("eps", "epsilon") or name.endswith("_eps")


def _is_mask(node: ast.expr) -> bool:
    """Whether an argument is a mask by its name."""
    if not isinstance(node, ast.Name | ast.Attribute):
        return False
    return bool(set(ast.unparse(node).rpartition(".")[2].split("_")) & MASKS)


def _only_raises(body: list[ast.stmt]) -> bool:
    return all(isinstance(each, ast.Raise) for each in body)


def _bodies_swapped(cases: list[ast.match_case], place: int) -> list[ast.match_case]:
    one, other = cases[place], cases[place + 1]
    changed = [
        ast.match_case(one.pattern, one.guard, other.body),
        ast.match_case(other.pattern, other.guard, one.body),
    ]
    return [*cases[:place], *changed, *cases[place + 2 :]]


def _mentions(value: ast.expr, name: str) -> bool:
    return any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(value))


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


def hand_made(package: list[Path]) -> list[Mutant]:
    """The breaks of breaks.toml; refuses one whose place is not there, or there twice."""
    table = tomllib.loads(Path(__file__).with_name("breaks.toml").read_text(encoding="utf-8"))
    texts = {path: path.read_text(encoding="utf-8") for path in package}
    functions = [
        (path, name, node)
        for path, text in texts.items()
        for name, node in _functions(ast.parse(text))
    ]
    found = []
    for each in table["break"]:
        places = [
            (path, node)
            for path, name, node in functions
            if name == each["within"] and _count(texts[path], node, each["before"])
        ]
        if len(places) != 1 or _count(texts[places[0][0]], places[0][1], each["before"]) != 1:
            raise SystemExit(
                f"breaks.toml: {each['name']}: {each['within']} must hold the text before the"
                f" break exactly once, and there must be one such function; got {len(places)}"
            )
        [(path, node)] = places
        lines = texts[path].splitlines(keepends=True)
        body = "".join(lines[node.lineno - 1 : node.end_lineno])
        lines[node.lineno - 1 : node.end_lineno] = [body.replace(each["before"], each["after"])]
        [changed] = [
            top
            for top in ast.parse("".join(lines)).body
            if top.lineno <= node.lineno <= (top.end_lineno or 0)
        ]
        what = ("by hand", each["within"], (node.lineno, node.lineno), True, changed, each["test"])
        found.append(Mutant(path, node.lineno, each["name"], each["after"], *what))
    return found


def _count(text: str, node: ast.FunctionDef, before: str) -> int:
    return "\n".join(text.splitlines()[node.lineno - 1 : node.end_lineno]).count(before)


def _functions(node: ast.Module | ast.ClassDef, prefix: str = "") -> Iterator[Any]:
    for child in node.body:
        if isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.FunctionDef):
            yield f"{prefix}{child.name}", child


def content_hash(path: Path, more: str = "") -> str:
    """What a file computes, as a fingerprint: without comments, docstrings, layout and imports.

    Where a name is imported from changes whenever another file is moved, and computes nothing.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [each for each in body if not _computes_nothing(each)]  # type: ignore[attr-defined]
    return hashlib.sha256((ast.dump(tree) + more).encode()).hexdigest()[:16]


def _computes_nothing(node: ast.AST) -> bool:
    match node:
        case ast.Expr(value=ast.Constant(value=str())) | ast.Import() | ast.ImportFrom():
            return True
    return False


if __name__ == "__main__":
    for name in sys.argv[1:]:
        for each in mutants(Path(name))[0]:
            print(each)
