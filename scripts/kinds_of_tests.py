"""What a test holds an equation to: figures that stand in it, or another program's answer."""

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
    "torch.softmax",
    "torch.log_softmax",
    "torch.tril",
    "transformers.",
)
_NO_REFEREES = (
    "torch.nn.Module",
    "torch.nn.Parameter",
    "torch.nn.functional.one_hot",
    "torch.nn.functional.pad",
    "torch.nn.init.",
    "torch.nn.utils.",
)
_METHODS = {"cumsum", "log_softmax", "logsumexp", "softmax"}
"""Methods of torch's tensors that are referees too."""


@dataclass(frozen=True)
class Kind:
    """What one test compares with."""

    by_hand: bool
    """Figures, words or ids written into the test."""
    referees: tuple[str, ...]
    """Functions of other libraries, by their full names."""


@functools.cache
def kinds(path: Path) -> dict[str, Kind]:
    """Each function of a test module, with what it compares with; helpers of the module count."""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    modules = dict(_imported(tree))
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    found = {}
    for name, node in functions.items():
        called = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        helpers = [functions[each] for each in sorted(called & functions.keys() - {name})]
        referees = {each for part in (node, *helpers) for each in _referees(part, modules)}
        found[name] = Kind(_is_by_hand(node), tuple(sorted(referees)))
    return found


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
    """What of other libraries ``node`` calls to compare with."""
    for call in ast.walk(node):
        if not isinstance(call, ast.Call):
            continue
        name = _full_name(call.func, modules)
        if name.startswith(_REFEREES) and not name.startswith(_NO_REFEREES):
            yield name
        elif isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS and not name:
            yield f"torch.Tensor.{call.func.attr}"


def _full_name(node: ast.expr, modules: dict[str, str]) -> str:
    """``functional.softmax`` → ``torch.nn.functional.softmax``; nothing for what is no import."""
    match node:
        case ast.Name(id=name):
            return modules.get(name, "")
        case ast.Attribute(value=value, attr=attribute):
            before = _full_name(value, modules)
            return before and f"{before}.{attribute}"
    return ""


def _is_by_hand(node: ast.FunctionDef) -> bool:
    """Whether a comparison in it names what is expected."""
    given = any(_has_figures(each) for each in node.decorator_list)
    for each in ast.walk(node):
        match each:
            case ast.Assert(test=test) if _names_an_answer(test) or given:
                return True
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=arguments):
                if name in _COMPARISONS and (given or any(map(_has_figures, arguments))):
                    return True
    return False


def _names_an_answer(test: ast.expr) -> bool:
    """Whether one side of an equality is written out."""
    for each in ast.walk(test):
        if isinstance(each, ast.Compare) and any(isinstance(op, ast.Eq) for op in each.ops):
            sides = [each.left, *each.comparators]
            if any(isinstance(side, ast.Constant) or _has_figures(side) for side in sides):
                return True
    return False


def _has_figures(node: ast.AST) -> bool:
    """Whether it holds a list, a table or a decimal figure; tolerances do not count."""
    if isinstance(node, ast.Call):
        told = [each.value for each in node.keywords if each.arg not in _NOT_EXPECTED]
        return any(map(_has_figures, [*node.args, *told]))
    if isinstance(node, ast.List | ast.Tuple | ast.Dict):
        return any(isinstance(each, ast.Constant) for each in ast.walk(node))
    if isinstance(node, ast.Constant):
        return isinstance(node.value, float)
    return any(map(_has_figures, ast.iter_child_nodes(node)))
