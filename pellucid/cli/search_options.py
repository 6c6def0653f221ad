"""The options that say how to search, the same for every command that does."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from pellucid.decoding.translator import Translator

_Command = TypeVar("_Command", bound=Callable[..., Any])
_KEY = "pellucid.search"


def _remember(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
    if value is not None:
        ctx.meta.setdefault(_KEY, {})[parameter.name] = value


_OPTIONS = [
    click.option(
        "--length-penalty",
        type=float,
        expose_value=False,
        callback=_remember,
        help="Exponent of the length penalty; 0 is none.",
    ),
    click.option(
        "--max-length",
        "--max-new-tokens",
        type=int,
        expose_value=False,
        callback=_remember,
        help="Longest translation, in tokens.",
    ),
    click.option(
        "-n",
        "--n-best",
        type=int,
        expose_value=False,
        callback=_remember,
        help="Translations kept for each sentence.",
    ),
    click.option(
        "-b",
        "--beam-size",
        "--beam",
        "--num-beams",
        type=int,
        expose_value=False,
        callback=_remember,
        help="Hypotheses followed at a time; 1 is greedy search.",
    ),
]


def search_options(command: _Command) -> _Command:
    """Give a command the options ``--beam-size``, ``--n-best``, ``--length-penalty``, ..."""
    for option in _OPTIONS:
        command = option(command)
    return command


def open_translator(bundle: str, buffer_size: int | None = None) -> "Translator":
    """The translator of ``bundle``, searching as the options of the running command say.

    Raises ConfigError for a value out of its range, and whatever opening the bundle raises.
    """
    from pellucid.decoding.load import load
    from pellucid.decoding.translator import Translator

    translator = load(bundle)
    asked: dict[str, Any] = click.get_current_context().meta.get(_KEY, {})
    settings = translator.settings.having(
        beam_size=asked.get("beam_size"),
        n_best=asked.get("n_best"),
        length_penalty=asked.get("length_penalty"),
        max_length=asked.get("max_length"),
    )
    if buffer_size is not None:
        settings = settings.model_copy(update={"stream_lines": buffer_size})
    return Translator(translator.bundle, settings)
