"""Shapes written in signatures are checked when a test calls a function that has them.

``install`` must run before the first import of ``pellucid``. It does what jaxtyping's import hook
does, for methods and for functions and classes at the top of a module. That hook also decorates
functions inside functions, so that each call of the outer one compiles a type checker again, which
took more than half of the suite's time. A check takes longer than most of the functions that are
checked, so in each test only the first calls of a function are: a search makes thousands.
"""

import ast
import functools
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import CodeType, ModuleType
from typing import Any

import beartype
import jaxtyping
import torch

_SHAPED = {"Bool", "Float", "Int", "Num", "Shaped", "UInt8"}
_OF_FUNCTIONS = "@__import__('shapes').checked"
_OF_CLASSES = "@__import__('jaxtyping').jaxtyped(typechecker=__import__('beartype').beartype)"
MOST_CALLS = 2
"""As many calls of each function are checked in a scope, which is a test or a file of tests; each
takes twenty times an addition."""

_calls: dict[Callable[..., Any], int] = {}
_is_on = True
_scope: str | None = None


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Check the shapes of ``function`` in its first calls of each scope.

    What was found right is not checked again: shapes are right or wrong whatever the numbers are.
    """

    @functools.cache
    def checker() -> Callable[..., Any]:  # which takes milliseconds to make
        return _with_checks(function)

    right: dict[object, set[object]] = {}

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        count = _calls.get(function, 0)
        if not _is_on or count >= MOST_CALLS:
            return function(*arguments, **named)
        _calls[function] = count + 1

        taken = _shapes_of((arguments, named))
        if taken not in right:
            result = checker()(*arguments, **named)
            right[taken] = {_shapes_of(result)}
            return result

        result = function(*arguments, **named)
        given = _shapes_of(result)
        if given not in right[taken]:
            _with_checks(_returning(result, function))(*arguments, **named)
            right[taken].add(given)
        return result

    return call


def _with_checks(function: Callable[..., Any]) -> Callable[..., Any]:
    return jaxtyping.jaxtyped(typechecker=beartype.beartype)(function)


def _returning(result: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function with the signature of ``function`` that only returns this."""

    @functools.wraps(function)
    def returning(*_: Any, **__: Any) -> Any:
        return result

    return returning


def _shapes_of(value: Any) -> object:
    """All that a check of a value depends on; whole numbers may stand in a shape."""
    kind = type(value)
    if isinstance(value, torch.Tensor):
        return kind, value.dtype, value.shape
    if kind is int:
        return value
    if isinstance(value, tuple | list):
        return kind, *map(_shapes_of, value)
    if isinstance(value, dict):
        return kind, *((key, _shapes_of(each)) for key, each in value.items())
    return kind


def install(packages: Sequence[str]) -> None:
    """Check the shapes of these packages from now on."""
    sys.meta_path.insert(0, _Finder(tuple(packages)))


def check(*, is_on: bool, scope: str | None = None) -> None:
    """Switch the checks on or off, for whatever is called from now on.

    Calls are counted anew, unless what was checked before had the same ``scope``.
    """
    global _is_on, _scope
    _is_on = is_on
    if scope is None or scope != _scope:
        _calls.clear()
    _scope = scope
    jaxtyping.config.update("jaxtyping_disable", not is_on)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, packages: tuple[str, ...]) -> None:
        self._packages = packages

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not any(name == each or name.startswith(f"{each}.") for each in self._packages):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(name, spec.origin)
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        """Compiled each time: a file of cached bytecode would be taken for the undecorated one."""
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)

    def source_to_code(self, data: bytes, path: str, *, _optimize: int = -1) -> CodeType:  # type: ignore[override]
        tree = ast.parse(data, path)
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                for member in node.body:
                    _decorate(member, last=True)
                _decorate(node, last=False)  # first, so that a dataclass is made before
            else:
                _decorate(node, last=True)
        return compile(
            ast.fix_missing_locations(tree), path, "exec", dont_inherit=True, optimize=_optimize
        )


def _decorate(node: ast.stmt, *, last: bool) -> None:
    if not isinstance(node, ast.FunctionDef | ast.ClassDef):
        return
    if isinstance(node, ast.ClassDef):
        hints = [field.annotation for field in node.body if isinstance(field, ast.AnnAssign)]
        has_shapes, text = any(map(_is_shape, hints)), _OF_CLASSES
    else:
        has_shapes, text = _keep_shapes_alone(node), _OF_FUNCTIONS

    if has_shapes:
        decorator = ast.parse(f"{text}\ndef _(): ...").body[0].decorator_list[0]  # type: ignore[attr-defined]
        ast.copy_location(decorator, node)
        node.decorator_list.insert(len(node.decorator_list) if last else 0, decorator)


def _keep_shapes_alone(node: ast.FunctionDef) -> bool:
    """Leave the other types to mypy, which knows protocols; False if no shape is there."""
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    arguments += [each for each in (node.args.vararg, node.args.kwarg) if each]
    hints = [each.annotation for each in arguments if each.annotation]
    if not any(map(_is_shape, [*hints, *([node.returns] if node.returns else [])])):
        return False
    for argument in arguments:
        if argument.annotation and not _is_shape(argument.annotation):
            argument.annotation = None
    if node.returns and not _is_shape(node.returns):
        node.returns = None
    return True


def _is_shape(hint: ast.expr) -> bool:
    """True for a type such as ``Float[Tensor, "a b"]``, alone or inside another."""
    return any(isinstance(name, ast.Name) and name.id in _SHAPED for name in ast.walk(hint))
