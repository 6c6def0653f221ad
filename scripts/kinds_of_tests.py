"""The kinds of tests of an equation: the author names them by a marker, and the code must bear it
out.

by_hand    what is expected is written into the test, as figures, words or ids
referee    what is expected comes from another library, or from another part of PyTorch
property   what holds for any input, on numbers drawn at random (or by hypothesis)

A test may be several of these. ``wrong_labels`` finds those that say what they do not do.
"""

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_COMPARISONS = {"close", "assert_close", "approx"}
_NOT_EXPECTED = {"tolerance", "atol", "rtol", "rel", "abs", "dim", "axis"}
_REFEREES = (
    "ctranslate2.",
    "gensim.",
    "numpy.average",
    "numpy.linalg.",
    "onnxruntime.",
    "sacrebleu.",
    "sacremoses.",
    "sentencepiece.",
    "tokenizers.",
    "torch.autograd.",
    "torch.cosine_similarity",
    "torch.distributions.",
    "torch.einsum",
    "torch.func.",
    "torch.logsumexp",
    "torch.nn.",
    "torch.optim.",
    "torch.softmax",
    "torch.log_softmax",
    "torch.tril",
    "transformers.",
)
_NO_REFEREES = (
    "torch.nn.Module",
    "torch.nn.Parameter",
    "torch.nn.functional.pad",
    "torch.nn.init.",
    "torch.nn.utils.",
)
_METHODS = {"cumsum", "log_softmax", "logsumexp", "softmax", "tril"}
"""Methods of torch's tensors that are referees too."""


@dataclass(frozen=True)
class Kind:
    """The comparisons of one test."""

    by_hand: bool
    """Figures, words or ids written into the test."""
    referees: tuple[str, ...]
    """Functions of other libraries, by their full names."""
    is_property: bool = False
    """On numbers drawn at random."""


LABELS = ("by_hand", "referee", "property")
_DRAWS = {
    "given",
    "manual_seed",
    "normal",
    "normal_",
    "rand",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "rand_like",
    "random",
    "random_raw",
    "randperm",
    "seed",
    "standard_normal",
    "uniform",
    "uniform_",
    "Random",
    "default_rng",
}


def kinds(path: Path) -> dict[str, Kind]:
    """Return the kinds that the authors of a module's tests name."""
    tests = list(labeled(path))
    # The functions of a referee are looked for only where there is one: it takes most of the time.
    seen = evidence(path) if any("referee" in labels for _, labels in tests) else {}
    return {
        test.name: Kind(
            "by_hand" in labels,
            seen[test.name].referees if "referee" in labels else (),
            "property" in labels,
        )
        for test, labels in tests
    }


@functools.cache
def _parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def labeled(path: Path) -> Iterator[tuple[ast.FunctionDef, set[str]]]:
    """Each test of a module with the markers it has, its own and those of the module."""
    tree = _parse(path)
    of_module = {
        label
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
        for label in _labels_in(node.value)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            own = {label for each in node.decorator_list for label in _labels_in(each)}
            yield node, own | of_module


def _labels_in(node: ast.AST) -> set[str]:
    marks = {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
    return marks & set(LABELS)


def wrong_labels(path: Path) -> list[str]:
    """The tests of a module whose code does not bear out what they say of themselves."""
    seen = evidence(path)
    found = []
    for test, labels in labeled(path):
        shown = seen[test.name]
        if "by_hand" in labels and not shown.by_hand:
            found.append(f"{test.name}: by_hand, but no comparison in it names what is expected")
        if "referee" in labels and not shown.referees:
            found.append(f"{test.name}: referee, but it calls no function of another library")
        if "property" in labels and not shown.is_property:
            found.append(f"{test.name}: property, but no number in it is drawn at random")
    return found


@functools.cache
def evidence(path: Path) -> dict[str, Kind]:
    """Each function of a test module, with what its code shows; helpers of the module count."""
    tree = _parse(path)
    modules = dict(_imported(tree))
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    drawing = _drawing(path)
    found = {}
    for name, node in functions.items():
        called = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        helpers = [functions[each] for each in sorted(called & functions.keys() - {name})]
        referees = {each for part in (node, *helpers) for each in _referees(part, modules)}
        is_property = name in drawing or bool(called & drawing)
        found[name] = Kind(_is_by_hand(node, tree), tuple(sorted(referees)), is_property)
    return found


@functools.cache
def _drawing(path: Path) -> frozenset[str]:
    """The functions and constants of a module that draw numbers, and the helpers that it imports.

    A fixture counts as well: a test that takes its name as a parameter loads it.
    """
    tree = _parse(path)
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            helper = _helper(path, node.module or "")
            if helper is not None:
                found |= _drawing(helper) & {alias.name for alias in node.names}
    parts = [
        (_names_of(node), _names_in(node))
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.Assign | ast.ClassDef)
    ]
    while True:
        drawing = _DRAWS | found
        more = {name for names, used in parts if used & drawing for name in names} - found
        if not more:
            return frozenset(found)
        found |= more


def _names_of(part: ast.FunctionDef | ast.Assign | ast.ClassDef) -> list[str]:
    if not isinstance(part, ast.Assign):
        return [part.name]
    return [n.id for target in part.targets for n in ast.walk(target) if isinstance(n, ast.Name)]


def _names_in(node: ast.AST) -> frozenset[str]:
    """Every name that is written anywhere inside ``node``."""
    found = set()
    for each in ast.walk(node):
        match each:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                found.add(name)
    return frozenset(found)


def _helper(path: Path, module: str) -> Path | None:
    """The module of helpers beside a test or at the top of the tests."""
    tests = next((each for each in path.parents if each.name == "tests"), path.parent)
    beside = [folder / f"{module}.py" for folder in (path.parent, tests)]
    return next((each for each in beside if each.exists()), None)


def _imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Each imported name with the whole name it stands for."""
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                for alias in node.names:
                    yield alias.asname or alias.name.partition(".")[0], alias.name
            case ast.ImportFrom(module=str(module)):
                for alias in node.names:
                    yield alias.asname or alias.name, f"{module}.{alias.name}"


def _referees(node: ast.AST, modules: dict[str, str]) -> Iterator[str]:
    """Yield the functions of other libraries that ``node`` calls to compare with."""
    for each in ast.walk(node):
        # A class that is given to a test, or a function that it calls.
        if not isinstance(each, ast.Attribute | ast.Name):
            continue
        name = _full_name(each, modules)
        is_module = name in ("torch.nn.functional", "transformers.models")
        if name.startswith(_REFEREES) and not (is_module or name.startswith(_NO_REFEREES)):
            yield name
        elif isinstance(each, ast.Attribute) and each.attr in _METHODS and not name:
            yield f"torch.Tensor.{each.attr}"


def _full_name(node: ast.expr, modules: dict[str, str]) -> str:
    """``functional.softmax`` → ``torch.nn.functional.softmax``; nothing for what is no import."""
    match node:
        case ast.Name(id=name):
            return modules.get(name, "")
        case ast.Attribute(value=value, attr=attribute):
            before = _full_name(value, modules)
            return before and f"{before}.{attribute}"
    return ""


def _is_by_hand(node: ast.FunctionDef, module: ast.Module) -> bool:
    """Whether a comparison in it names what is expected."""
    given = any(_has_figures(each) for each in node.decorator_list)
    known = {**_assigned(module), **_assigned(node)}
    for each in ast.walk(node):
        match each:
            case ast.Assert(test=test) if _names_an_answer(test, known) or given:
                return True
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=arguments):
                if name in _COMPARISONS and (
                    given
                    or any(map(_has_figures, arguments))
                    or any(_is_worked_out(each, known) for each in arguments)
                ):
                    return True
    return False


def _assigned(node: ast.Module | ast.FunctionDef) -> dict[str, ast.AST]:
    """Return the node of each name that is set once in a body; a helper stands for itself."""
    found: dict[str, ast.AST] = {}
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and not each.name.startswith("test_"):
            found[each.name] = each
        for target in each.targets if isinstance(each, ast.Assign) else ():
            match target, each.value:
                case ast.Name(id=name), value:
                    found[name] = value
                case ast.Tuple(elts=names), ast.Tuple(elts=values):
                    pairs = zip(names, values, strict=False)
                    found |= {n.id: value for n, value in pairs if isinstance(n, ast.Name)}
    return found


def _is_worked_out(node: ast.AST, known: dict[str, ast.AST], depth: int = 4) -> bool:
    """Whether it is arithmetic on figures that stand in the test: ``2 * STRONG + 1``."""
    has_figure = False
    bound = {
        n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    bound |= {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}
    for each in ast.walk(node):
        match each:
            case ast.Constant(value=int() | float()):
                has_figure = True
            case ast.Name(id=name) if name in known and depth:
                if not _is_worked_out(known[name], known, depth - 1):
                    return False
                has_figure = True
            case ast.Name(id=name) if name not in bound | _ARITHMETIC:
                return False
    return has_figure


_ARITHMETIC = {"math", "torch", "np", "sum", "range", "max", "min", "abs", "float", "zip", "Tensor"}


def _names_an_answer(test: ast.expr, known: dict[str, ast.AST]) -> bool:
    """Whether one side of an equality is written out; a shape or a message is no answer."""
    for each in ast.walk(test):
        if isinstance(each, ast.Compare) and any(isinstance(op, ast.Eq) for op in each.ops):
            sides = [each.left, *each.comparators]
            if any(word in ast.unparse(each) for word in (".shape", ".dtype", "str(", "len(")):
                continue
            if any(isinstance(side, ast.Constant) or _has_figures(side) for side in sides):
                return True
            if any(_is_worked_out(side, known) for side in sides):
                return True
    return False


def _has_figures(node: ast.AST) -> bool:
    """Whether it holds a list, a table or a decimal figure; tolerances do not count."""
    if isinstance(node, ast.Call):
        given = [each.value for each in node.keywords if each.arg not in _NOT_EXPECTED]
        return any(map(_has_figures, [*node.args, *given]))
    if isinstance(node, ast.List | ast.Tuple | ast.Dict):
        return any(isinstance(each, ast.Constant) for each in ast.walk(node))
    if isinstance(node, ast.Constant):
        return isinstance(node.value, float)
    return any(map(_has_figures, ast.iter_child_nodes(node)))
