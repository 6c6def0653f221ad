"""The options that say how to search, the same for every command that does."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click

from pellucid.engines.names import ComputeType, Device, EngineName

if TYPE_CHECKING:
    from pellucid.decoding.config import DecodingConfig
    from pellucid.decoding.translator import Translator

_Command = TypeVar("_Command", bound=Callable[..., Any])
SEARCH_KEY = "pellucid.search"
"""Where a running command keeps settings of the search, in ``click.Context.meta``."""
SAMPLING_KEY = "pellucid.sampling"
"""Where it keeps those of sampling."""
_ENGINE_KEY = "pellucid.engine"
OTHERS_KEY = "pellucid.others"
"""Where it keeps the other bundles of an ensemble."""


def remember(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
    """Keep what an option says under its own name, which is that of a decoding setting."""
    if value is not None and value is not False and value != ():  # 0 is said, and meant
        ctx.meta.setdefault(SEARCH_KEY, {})[parameter.name] = value


length_penalty_option = click.option(
    "--length-penalty",
    type=float,
    expose_value=False,
    callback=remember,
    help="Exponent of the length penalty; 0 is none.",
)

max_length_option = click.option(
    "--max-length",
    "--max-new-tokens",
    type=int,
    expose_value=False,
    callback=remember,
    help="Longest translation, in tokens.",
)

n_best_option = click.option(
    "-n",
    "--n-best",
    type=int,
    expose_value=False,
    callback=remember,
    help="Translations kept for each sentence.",
)

_OPTIONS = [
    length_penalty_option,
    click.option(
        "--patience",
        type=float,
        expose_value=False,
        callback=remember,
        help="The search ends after beam size times this many finished hypotheses; inf: no limit.",
    ),
    max_length_option,
    n_best_option,
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


def _engine_option(
    name: str, choices: tuple[str, ...], text: str
) -> Callable[[_Command], _Command]:
    def keep(ctx: click.Context, parameter: click.Parameter, value: str | None) -> None:
        if value is not None:
            ctx.meta.setdefault(_ENGINE_KEY, {})[parameter.name] = value

    return click.option(
        name, type=click.Choice(choices), expose_value=False, callback=keep, help=text
    )


_ENGINE_OPTIONS = (
    _engine_option("--device", get_args(Device), "Where to compute.  [default: auto]"),
    _engine_option(
        "--compute-type",
        get_args(ComputeType),
        "float32, int8 or auto (the faster of the two here) for ctranslate2; float32 or bfloat16"
        " for torch.  [default: float32]",
    ),
    _engine_option(
        "--engine",
        get_args(EngineName),
        "Who searches; auto is the fastest that can do what is asked.  [default: auto]",
    ),
)


def engine_options(command: _Command) -> _Command:
    """Give a command the options ``--engine``, ``--compute-type`` and ``--device``."""
    for option in _ENGINE_OPTIONS:
        command = option(command)
    return command


def continuation_options(command: _Command) -> _Command:
    """Give a command the same options but for the length, which it counts in its own way."""
    for option in _OPTIONS:
        if option is not max_length_option:
            command = option(command)
    return command


def single_search_options(command: _Command) -> _Command:
    """Give a command the same options but for --n-best: it writes one translation a line."""
    for option in _OPTIONS:
        if option is not n_best_option:
            command = option(command)
    return command


def search_options(command: _Command) -> _Command:
    """Give a command the options ``--beam-size``, ``--n-best``, ``--length-penalty``, ..."""
    for option in _OPTIONS:
        command = option(command)
    return command


def open_translator(
    bundle: str,
    buffer_size: int | None = None,
    engine: EngineName = "auto",
    *,
    figures: bool = True,
) -> "Translator":
    """The translator of ``bundle``, searching as the options of the running command say.

    ``engine`` is for a command that has no option for it; without ``figures`` tokens need no
    log-probabilities.

    With ``--with`` it is an ensemble, which torch alone can search. Raises ConfigError for a
    value out of its range, and whatever opening the bundles raises.
    """
    from pellucid.decoding.load import load_ensemble
    from pellucid.engines.load import load

    ctx = click.get_current_context()
    changes = _asked(ctx)
    if not figures:
        changes["token_log_probs"] = False
    if buffer_size is not None:
        changes["stream_lines"] = buffer_size
    others: Sequence[str] = ctx.meta.get(OTHERS_KEY, ())
    asked: dict[str, Any] = dict(ctx.meta.get(_ENGINE_KEY, {}))
    if others:
        able = {
            "engine": ("auto", "torch"),
            "compute_type": ("auto", "float32"),
            "device": ("auto", "cpu"),
        }
        names = [
            f"--{name.replace('_', '-')} {value}"
            for name, value in asked.items()
            if value not in able[name]
        ]
        if names:
            raise click.UsageError(f"--with cannot be used with {' and '.join(names)}.", ctx)
        translator = load_ensemble([bundle, *others])
    else:
        translator = load(
            bundle,
            asked.get("engine", engine),
            asked.get("device", "auto"),
            asked.get("compute_type", "float32"),
        )
    return translator.with_settings(translator.settings.changed(changes))


def asked_settings(settings: "DecodingConfig") -> "DecodingConfig":
    """``settings`` with those that the options of the running command name.

    Raises ConfigError for a value out of its range.
    """
    return settings.changed(_asked(click.get_current_context()))


def _asked(ctx: click.Context) -> dict[str, Any]:
    """The settings that the options name.

    Raises click.UsageError if there are options of sampling and ``--sample`` is not.
    """
    changes: dict[str, Any] = dict(ctx.meta.get(SEARCH_KEY, {}))
    sampling: dict[str, Any] = dict(ctx.meta.get(SAMPLING_KEY, {}))
    wanted = sampling.pop("sample", False)
    if sampling and not wanted:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in sampling)
        raise click.UsageError(f"{names} must go with --sample.", ctx)
    if wanted:
        changes["sampling"] = sampling
    return changes
