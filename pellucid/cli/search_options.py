"""The options that say how to search, the same for every command that does."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from pellucid.decoding.translator import Translator

_Command = TypeVar("_Command", bound=Callable[..., Any])
_KEY = "pellucid.search"
SAMPLING_KEY = "pellucid.sampling"
"""Where a running command keeps the settings of sampling, in ``click.Context.meta``."""
OTHERS_KEY = "pellucid.others"
"""Where it keeps the other bundles of an ensemble."""


def remember(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
    """Keep what an option says under its own name, which is that of a decoding setting."""
    if value is not None and value is not False and value != ():  # 0 is said, and meant
        ctx.meta.setdefault(_KEY, {})[parameter.name] = value


length_penalty_option = click.option(
    "--length-penalty",
    type=float,
    expose_value=False,
    callback=remember,
    help="Exponent of the length penalty; 0 is none.",
)

_OPTIONS = [
    length_penalty_option,
    click.option(
        "--max-length",
        "--max-new-tokens",
        type=int,
        expose_value=False,
        callback=remember,
        help="Longest translation, in tokens.",
    ),
    click.option(
        "-n",
        "--n-best",
        type=int,
        expose_value=False,
        callback=remember,
        help="Translations kept for each sentence.",
    ),
    click.option(
        "-b",
        "--beam-size",
        "--beam",
        "--num-beams",
        type=int,
        expose_value=False,
        callback=remember,
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

    With ``--with`` it is an ensemble. Raises ConfigError for a value out of its range, and
    whatever opening the bundles raises.
    """
    from pellucid.decoding.load import load, load_ensemble
    from pellucid.decoding.translator import Translator

    ctx = click.get_current_context()
    changes = _asked(ctx)
    if buffer_size is not None:
        changes["stream_lines"] = buffer_size
    others: Sequence[str] = ctx.meta.get(OTHERS_KEY, ())
    translator = load_ensemble([bundle, *others]) if others else load(bundle)
    return Translator(translator.bundle, translator.settings.changed(changes))


def _asked(ctx: click.Context) -> dict[str, Any]:
    """The settings that the options name.

    Raises click.UsageError if there are options of sampling and ``--sample`` is not.
    """
    changes: dict[str, Any] = dict(ctx.meta.get(_KEY, {}))
    sampling: dict[str, Any] = dict(ctx.meta.get(SAMPLING_KEY, {}))
    wanted = sampling.pop("sample", False)
    if sampling and not wanted:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in sampling)
        raise click.UsageError(f"{names} must go with --sample.", ctx)
    if wanted:
        changes["sampling"] = sampling
    return changes
