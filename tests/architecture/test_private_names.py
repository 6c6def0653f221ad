"""No name of another package that begins with an underscore: such names have no promise."""

import ast
import functools
import importlib
import textwrap
from collections.abc import Iterable, Iterator

import pytest
from package_trees import FILES, PACKAGE, nodes_of

DOCUMENTED = {"_exit", "_replace", "_asdict", "_fields"}
"""Names of the standard library that its documentation has, in ``os`` and in named tuples."""

NEEDED = {
    # torch.optim and its public functions loop over the same calls; a loop over tensors is slower
    "_foreach_copy_": "torch",
    "_foreach_lerp_": "torch",
    "_foreach_mul_": "torch",
    "_foreach_norm": "torch",
    # the public one is refused where autograd has dropped the mark of a coalesced tensor
    "_indices": "torch:Tensor()",
    "_values": "torch:Tensor()",
    # nothing public tells whether a module has hooks
    "_forward_hooks": "torch.nn:Identity()",
    "_forward_pre_hooks": "torch.nn:Identity()",
    # the counts of each sentence, which sacrebleu's own tests of significance add up as well
    "_compute_score_from_stats": "sacrebleu.metrics:BLEU()",
    "_extract_corpus_statistics": "sacrebleu.metrics:BLEU()",
}
"""Names for which there is nothing public, and the module or object that has them."""


def is_private(name: str) -> bool:
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))


def defined_in(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The names that a file gives to functions, classes, variables and attributes."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def used_in(nodes: Iterable[ast.AST], own: frozenset[str]) -> Iterator[str]:
    """The private names that a file takes from elsewhere."""
    for node in nodes:
        if isinstance(node, ast.Import):
            for each in node.names:
                yield from filter(is_private, each.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            names = [*(node.module or "").split("."), *(each.name for each in node.names)]
            yield from filter(is_private, names)
        elif isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in own:
            yield node.attr


@functools.cache
def taken() -> frozenset[tuple[str, str]]:
    """Each private name that a file of the package takes from elsewhere, with the file."""
    own: set[str] = set()
    used = set()
    for path in FILES:
        nodes = nodes_of(path)
        own.update(filter(is_private, defined_in(nodes)))
        names = used_in(nodes, frozenset())
        used |= {(path.relative_to(PACKAGE).as_posix(), name) for name in names}
    return frozenset((path, name) for path, name in used if name not in own)


def test_no_file_takes_a_private_name_of_another_package():
    free = DOCUMENTED | NEEDED.keys()
    assert not {(path, name) for path, name in taken() if name not in free}


@pytest.mark.parametrize("name", NEEDED)
def test_those_that_are_needed_are_used_and_there(name: str):
    """A version of the package without one fails here first, and by name."""
    assert name in {used for _, used in taken()}, "no longer needed"
    module, _, made = NEEDED[name].partition(":")
    owner = importlib.import_module(module)
    if made:
        owner = getattr(owner, made.removesuffix("()"))()
    assert hasattr(owner, name)


@pytest.mark.parametrize(
    "code",
    [
        "from h11._connection import DEFAULT",
        "import torch.utils._pytree",
        "from starlette import _utils",
        "def f(server):\n    return server._serve()",
        "class A(Foreign):\n    def f(self):\n        return self._inherited",
    ],
)
def test_each_way_to_take_one_is_found(code: str):
    assert list(used_in(ast.walk(ast.parse(textwrap.dedent(code))), frozenset()))


def test_own_names_and_documented_ones_are_free():
    code = (
        "import os\nclass A:\n    def f(self):\n        self._x = self._g()\n    def _g(self): ..."
    )
    nodes = list(ast.walk(ast.parse(code)))
    assert not list(used_in(nodes, frozenset(defined_in(nodes))))
