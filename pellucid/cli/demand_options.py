"""The options that say what else is asked of a translation."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from pellucid.cli.search_options import OTHERS_KEY, SAMPLING_KEY, SEARCH_KEY, remember

_Command = TypeVar("_Command", bound=Callable[..., Any])


def _remember_sampling(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
    if value is not None and value is not False:  # 0 is said, and meant
        ctx.meta.setdefault(SAMPLING_KEY, {})[parameter.name] = value


def _remember_others(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:  # noqa: ARG001  # click calls it so
    ctx.meta[OTHERS_KEY] = value


def _option(name: str, kind: Any, text: str) -> Any:
    return click.option(name, type=kind, expose_value=False, callback=remember, help=text)


def _flag(name: str, text: str) -> Any:
    return click.option(name, is_flag=True, expose_value=False, callback=remember, help=text)


def _switch(name: str, setting: str, text: str) -> Any:
    """A flag that turns off what is on unless somebody asks."""

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

_OPTIONS = [
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
    _switch("--no-cache", "use_cache", "Compute the whole prefix anew at every step; slow."),
    _switch(
        "--no-mask-at-inference",
        "mask_at_inference",
        "With --no-cache or --repredict: let earlier words see later ones (docs/ERRATA.md, ER-36).",
    ),
    _flag("--repredict", "With --beam-size 1: say all words anew at every step."),
]


def sampling_options(command: _Command) -> _Command:
    """Give a command ``--sample`` and what goes with it."""
    for option in reversed(_SAMPLING):
        command = option(command)
    return command


def demand_options(command: _Command) -> _Command:
    """Give a command ``--prefix``, ``--must``, ``--sample``, ``--align`` and the like."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
