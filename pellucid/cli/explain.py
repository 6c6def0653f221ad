"""``pellucid translate --explain-search``: the tree of each search as a line of JSON."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pellucid.core.errors import DataError

if TYPE_CHECKING:
    from pellucid.decoding.requests import Request
    from pellucid.decoding.translator import Translator

_Command = TypeVar("_Command", bound=Callable[..., Any])
_KEY = "pellucid.explain"


@dataclasses.dataclass(frozen=True)
class Asked:
    """What is to be explained."""

    reference: str | None
    """The file of references, line by line."""


def _remember(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
    if value:
        ctx.meta.setdefault(_KEY, {})[parameter.name] = value


def explain_options(command: _Command) -> _Command:
    """Give a command ``--explain-search`` and ``--reference``."""
    command = click.option(
        "--reference",
        expose_value=False,
        callback=_remember,
        help="With --explain-search: file of right translations, to say who missed them.",
    )(command)
    return click.option(
        "--explain-search",
        is_flag=True,
        expose_value=False,
        callback=_remember,
        help="With --json: write what the search looked at instead, and why it dropped it.",
    )(command)


def asked_to_explain(*, as_json: bool) -> Asked | None:
    """Whether and what the running command is to explain. Raises click.UsageError."""
    ctx = click.get_current_context()
    given: dict[str, Any] = ctx.meta.get(_KEY, {})
    if not given:
        return None
    if "explain_search" not in given:
        raise click.UsageError("--reference must go with --explain-search.", ctx)
    if not as_json:
        raise click.UsageError("--explain-search must go with --json.", ctx)
    return Asked(given.get("reference"))


def explained_lines(
    translator: "Translator", requests: "Iterable[str | Request]", asked: Asked
) -> Iterator[str]:
    """The tree of each line as JSON; null for a line without a word.

    Raises DataError if there are not as many references.
    """
    from pellucid.decoding.explain import explain_search
    from pellucid.text.corpus.lines import iterate_lines

    references = None if asked.reference is None else iterate_lines(Path(asked.reference))
    number = 0
    for number, request in enumerate(requests, start=1):
        reference = None if references is None else next(references, None)
        if references is not None and reference is None:
            raise DataError(f"each line needs a reference, got none for line {number}")
        source = request if isinstance(request, str) else request.source
        if not source.strip():
            yield "null\n"
        else:
            yield f"{explain_search(translator, request, reference).to_json()}\n"
    if references is not None and next(references, None) is not None:
        raise DataError(f"each reference needs a line, got more than {number} references")
