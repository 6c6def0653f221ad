"""The options of searches, engines and constraints, shared by all commands that translate.

Their values are kept in ``click.Context.meta`` and not passed to the command function;
``open_translator`` reads them from there.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click

from pellucid.engines.names import ComputeType, Device, EngineName

if TYPE_CHECKING:
    from pellucid.decoding.config import DecodingConfig
    from pellucid.decoding.translator import Translator


_Command = TypeVar("_Command", bound=Callable[..., Any])
SEARCH_KEY = "pellucid.search"
"""The key of the search settings in ``click.Context.meta``."""
SAMPLING_KEY = "pellucid.sampling"
"""The key of the sampling settings."""
_ENGINE_KEY = "pellucid.engine"
OTHERS_KEY = "pellucid.others"
"""The key of the other bundles of an ensemble."""


def remember(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
    """Store the value of an option under its name, which is that of a decoding setting."""
    if value is not None and value is not False and value != ():  # but 0 is a value
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
    """Give a command the search options without the length, which it counts in its own way."""
    for option in _OPTIONS:
        if option is not max_length_option:
            command = option(command)
    return command


def single_search_options(command: _Command) -> _Command:
    """Give a command the search options without --n-best, as it writes one translation per line."""
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
    """The translator of ``bundle`` with the settings of the running command's options.

    ``engine`` is for a command without that option. Without ``figures`` the log-probabilities of
    tokens are not computed.

    With ``--with`` it is an ensemble, which only torch can search. Raises ConfigError for a value
    out of range, and what opening the bundles raises.
    """
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
        able = {  # the values that an ensemble supports
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

        from pellucid.decoding.ensemble import load_ensemble

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
    """``settings`` changed by the options of the running command.

    Raises ConfigError for a value out of its range.
    """
    return settings.changed(_asked(click.get_current_context()))


def _asked(ctx: click.Context) -> dict[str, Any]:
    """The settings that the options give.

    Raises click.UsageError for options of sampling without ``--sample``.
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


def _remember_sampling(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
    if value is not None and value is not False:  # but 0 is a value
        ctx.meta.setdefault(SAMPLING_KEY, {})[parameter.name] = value


def _remember_others(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:  # noqa: ARG001  # click calls it so
    ctx.meta[OTHERS_KEY] = value


def _option(name: str, kind: Any, text: str) -> Any:
    return click.option(name, type=kind, expose_value=False, callback=remember, help=text)


def _flag(name: str, text: str) -> Any:
    return click.option(name, is_flag=True, expose_value=False, callback=remember, help=text)


def _switch(name: str, setting: str, text: str) -> Any:
    """A flag that turns off a setting that is on by default."""

    def turn_off(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
        if value:
            ctx.meta.setdefault(SEARCH_KEY, {})[setting] = False

    return click.option(name, is_flag=True, expose_value=False, callback=turn_off, help=text)


def _several(name: str, setting: str, text: str) -> Any:
    return click.option(
        name, setting, multiple=True, expose_value=False, callback=remember, help=text
    )


def _sampling(name: str, kind: Any, text: str) -> Any:
    return click.option(name, type=kind, expose_value=False, callback=_remember_sampling, help=text)


ensemble_option = click.option(
    "--with",
    "others",
    multiple=True,
    expose_value=False,
    callback=_remember_others,
    help="Another BUNDLE to ask as well (ensemble); may be given many times.",
)

_SAMPLING = [
    click.option(
        "--sample",
        is_flag=True,
        expose_value=False,
        callback=_remember_sampling,
        help="Draw at random.",
    ),
    _sampling("--temperature", float, "With --sample: below 1 the likely gains."),
    _sampling("--top-k", int, "With --sample: only the k likeliest tokens."),
    _sampling("--top-p", float, "With --sample: only the fewest that hold this share."),
    _sampling("--epsilon", float, "With --sample: only tokens at least this likely."),
    _sampling("--seed", int, "With --sample: the same seed draws the same translations."),
]

_CONSTRAINT_OPTIONS = [
    _option("--min-length", int, "Shortest translation, in tokens."),
    _option("--coverage-penalty", float, "How much a source word that was not looked at costs."),
    _option("--no-repeat-ngram", int, "Never say so many tokens in a row twice."),
    _option("--prefix", str, "What every translation begins with."),
    _several("--must", "must", "A word or phrase that must appear; may be given many times."),
    _several("--ban", "banned", "A word or phrase that must not; may be given many times."),
    _option("--diverse-groups", int, "Parts of the beam that avoid one another's tokens."),
    _option("--diversity-strength", float, "How much they avoid them, in nats."),
    *_SAMPLING,
    _flag("--mbr", "Of beam-size candidates take the one most like all of them, by chrF."),
    _flag("--align", "Say which word comes from which, as 0-0 1-2."),
    _option("--align-layer", int, "The decoder layer that aligns.  [default: the last but one]"),
    _option("--align-head", int, "The head that aligns.  [default: the mean of all]"),
    _flag("--replace-unknown", "Put the aligned source word for an unknown one."),
    ensemble_option,
    _switch("--no-cache", "use_cache", "Compute the whole prefix again at every step; slow."),
    _switch(
        "--no-mask-at-inference",
        "mask_at_inference",
        "With --no-cache or --repredict: let earlier words see later ones (docs/ERRATA.md, ER-36).",
    ),
    _flag("--repredict", "With --beam-size 1: say all words again at every step."),
]


def sampling_options(command: _Command) -> _Command:
    """Give a command ``--sample`` and the options that go with it."""
    for option in reversed(_SAMPLING):
        command = option(command)
    return command


def constraint_options(command: _Command) -> _Command:
    """Give a command ``--prefix``, ``--must``, ``--sample``, ``--align`` and the like."""
    for option in reversed(_CONSTRAINT_OPTIONS):
        command = option(command)
    return command
