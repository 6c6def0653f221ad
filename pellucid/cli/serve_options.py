"""The options of ``pellucid serve``; those for limits are the fields of ``Limits``."""

from collections.abc import Callable
from typing import Any, TypeVar, get_args

import click

from pellucid.engines.names import ComputeType, EngineName
from pellucid.serve.limits import Limits

_Command = TypeVar("_Command", bound=Callable[..., Any])
_KEY = "pellucid.serve"


def _remember(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
    if parameter.name is not None:
        ctx.meta.setdefault(_KEY, {})[parameter.name] = value


def _option(name: str, default: Any, text: str, kind: Any = None) -> Callable[[_Command], _Command]:
    return click.option(
        name,
        default=default,
        type=kind,
        show_default=default is not None,
        expose_value=False,
        callback=_remember,
        help=text,
    )


def _several(name: str, metavar: str, text: str) -> Callable[[_Command], _Command]:
    return click.option(
        name, multiple=True, metavar=metavar, expose_value=False, callback=_remember, help=text
    )


def _flag(name: str, text: str) -> Callable[[_Command], _Command]:
    return click.option(name, is_flag=True, expose_value=False, callback=_remember, help=text)


_OPTIONS = [
    _option("--host", "127.0.0.1", "Address to listen on."),
    _option(
        "--port", 8000, "Port to listen on; 0 takes any that is free.", click.IntRange(0, 65535)
    ),
    _option("--workers", 1, "Processes that answer.", click.IntRange(1, 64)),
    _option("--threads", None, "Threads of one operation in a worker.", click.IntRange(1)),
    _option(
        "--batch-wait-ms",
        5.0,
        "An idle model's wait for what arrives together.",
        click.FloatRange(0, 1000),
    ),
    _option("--engine", "auto", "What searches.", click.Choice(get_args(EngineName))),
    _option(
        "--compute-type",
        "float32",
        "In which type to compute.",
        click.Choice(get_args(ComputeType)),
    ),
    _several("--languages", "NAME=en-de", "Languages of a model whose bundle does not tell."),
    _option("--api-key-file", None, "File with one key, or sha256:HASH, a line."),
    _flag("--insecure-no-auth", "Let everybody in who reaches the address."),
    _several("--allowed-host", "NAME", "Name under which the server may be asked; * is any."),
    _several("--cors-origin", "ORIGIN", "Origin whose pages may ask, as https://example.org."),
    _flag("--log-text", "Note what users write."),
]


def _limit_options() -> list[Callable[[_Command], _Command]]:
    return [
        _option(
            "--" + name.replace("_", "-"),
            field.default,
            (field.description or "").replace("``", "").replace("\n", " "),
            field.annotation,
        )
        for name, field in Limits.model_fields.items()
    ]


def serve_options(command: _Command) -> _Command:
    """Give a command all options of the server."""
    for option in reversed([*_OPTIONS, *_limit_options()]):
        command = option(command)
    return command


def given_options(ctx: click.Context) -> dict[str, Any]:
    """The options of the running command by name, with ``_`` for ``-``."""
    return dict(ctx.meta[_KEY])


def given_limits(options: dict[str, Any]) -> Limits:
    """The limits among the options. Raises ConfigError."""
    return Limits.parse({name: options[name] for name in Limits.model_fields}, "limits")
