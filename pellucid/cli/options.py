"""The options that several commands share: of searches, engines, samples, settings and output.

Most are options of a search, and there are many. They are collected by group: a command with
``@search_options`` has one argument ``search``, a table of the settings that were given, by name.
Groups are ``search``, ``sampling`` and ``engine``. ``open_translator`` takes these tables.
"""

import errno
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click

from pellucid.backends import HUB_PREFIX, ComputeType, Device, EngineName
from pellucid.core.errors import InputMissingError
from pellucid.core.files import require_model_folder

if TYPE_CHECKING:
    from pellucid.decoding.config import DecodingConfig
    from pellucid.decoding.translator import Translator

_Command = TypeVar("_Command", bound=Callable[..., Any])
_Keep = Callable[[click.Context, click.Parameter, Any], None]
Choices = Mapping[str, Any]
"""The options of a group that were given, by the names of the settings that they change."""
_NONE: Choices = MappingProxyType({})

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
json_lines_option = click.option(
    "--json", "as_json", is_flag=True, help="Write one JSON object a line."
)


class _Named(click.Path):
    """The name of a file, folder or model. An empty one would be the current folder."""

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str | bytes | os.PathLike[str]:
        """The name."""
        if not str(value):
            self.fail("a name must not be empty; is a variable of the shell unset?", param, ctx)
        # click takes whatever comes next: ``--valid valid.en --out runs/x`` names a file ``--out``.
        if isinstance(param, click.Option) and ctx is not None:
            options = {
                name
                for each in ctx.command.params
                if isinstance(each, click.Option)
                for name in each.opts
            }
            if str(value) in options:
                count = f"{param.nargs} names" if param.nargs > 1 else "a name"
                self.fail(f"it needs {count}, and {value} is an option", param, ctx)
        return super().convert(value, param, ctx)


# Whether a file can be read shows when it is read, with an error and an exit code of ours.
PATH = _Named(path_type=Path, readable=False)
FILE_PATH = _Named(path_type=Path, dir_okay=False, readable=False)
NAME = _Named(readable=False)
"""For what may be more than a path: ``-``, an address, a column of a table, a preset."""


class FiniteRange(click.FloatRange):
    """Numbers in a range, of which NaN and infinity are none."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The number."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


class LanguagePair(click.ParamType[tuple[str, str]]):
    """Two languages, as ``en-de``."""

    name = "source-target"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """The codes of both."""
        source, _, target = value.partition("-")
        if not (source.isalpha() and target.isalpha()):
            wanted = "two languages with a hyphen between, such as en-de"
            self.fail(f"{value!r} is not {wanted}.", param, ctx)
        return source, target


def require_model(name: str) -> None:
    """Raise InputMissingError if ``name`` names no folder, unless it is a model of the Hub.

    Called before a command imports PyTorch, which takes seconds.
    """
    if not name:  # as in NAME=, whose bundle is a variable of the shell that is unset
        raise InputMissingError("the name of a model must not be empty")
    if not name.startswith(HUB_PREFIX):
        require_model_folder(Path(name))


def is_missing(name: str) -> bool:
    """Whether ``name`` is surely no file: a path of this machine where nothing is.

    An address (``https://``, ``a.tsv#column``) and standard input are looked at when they are read.
    """
    is_path = not any(sign in name for sign in (":/", "::", "#")) and name != "-"
    # By os.path, which raises for no name, however long.
    return is_path and not os.path.exists(name)  # noqa: PTH110


def require_texts(*names: str | Path | None) -> None:
    """Raise InputMissingError for the first that ``is_missing``.

    Called before a command imports what reads texts, and before it opens a model, which may take
    seconds.
    """
    for name in names:
        if name is not None and is_missing(str(name)):
            raise InputMissingError(f"cannot read {name}: {os.strerror(errno.ENOENT)}")


def refuse_to_replace(option: str, output: str | Path | None, *inputs: str | Path | None) -> None:
    """Raise click.UsageError if ``output``, given by ``option``, is a file that is read."""
    from pellucid.text.corpus.addresses import address_of

    for each in inputs:
        if output is None or each is None:
            continue
        # By os.path, which raises for no name, however long. A table may be named with a column.
        places = [address_of(str(name)).location for name in (output, each)]
        if all(map(os.path.isfile, places)) and os.path.samefile(*places):  # noqa: PTH121
            raise click.UsageError(
                f"{option} must not be {each} itself: the original would be lost."
            )


def settings_option(help_text: str) -> Callable[[_Command], _Command]:
    """The option ``--set``, which may be given many times."""
    return click.option(
        "--set", "overrides", multiple=True, metavar="SECTION.KEY=VALUE", help=help_text
    )


def parent_option(help_text: str) -> Callable[[_Command], _Command]:
    """The option ``--init``, which names a bundle to fine-tune."""
    return click.option("--init", type=PATH, metavar="BUNDLE", help=help_text)


def _kept_in(group: str) -> _Keep:
    """A callback that keeps the value of an option in the argument ``group`` of its command.

    click calls it for every option, given or not, so there always is a table.
    """

    def keep(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
        chosen = ctx.params.setdefault(group, {})
        if value is not None and value != ():  # but 0 and False are values
            chosen[parameter.name] = value

    return keep


_keep_search, _keep_sampling, _keep_engine = map(_kept_in, ("search", "sampling", "engine"))


def _option(
    names: str | Sequence[str], kind: Any, text: str, keep: _Keep = _keep_search
) -> Callable[[_Command], _Command]:
    """An option of a group; the first of its long names is that of the setting."""
    given = [names] if isinstance(names, str) else names
    return click.option(*given, type=kind, expose_value=False, callback=keep, help=text)


def _flag(
    name: str, text: str, keep: _Keep = _keep_search, *, turns_off: str | None = None
) -> Callable[[_Command], _Command]:
    """A flag that turns a setting on; or, by ``turns_off``, off the one of that name."""
    names = [name] if turns_off is None else [name, turns_off]
    return click.option(
        *names,
        is_flag=True,
        flag_value=turns_off is None,
        default=None,
        expose_value=False,
        callback=keep,
        help=text,
    )


def _several(name: str, setting: str, text: str) -> Callable[[_Command], _Command]:
    return click.option(
        name, setting, multiple=True, expose_value=False, callback=_keep_search, help=text
    )


def all_of(options: Sequence[Any]) -> Callable[[_Command], _Command]:
    """A decorator that gives a command these options, in the order of its ``--help``."""

    def decorate(command: _Command) -> _Command:
        for option in reversed(options):  # the last decorator is the first in the help
            command = option(command)
        return command

    return decorate


_beam_size_option = _option(
    ("-b", "--beam-size", "--beam", "--num-beams"),
    int,
    "Hypotheses followed at a time; 1 is greedy search.",
)
_n_best_option = _option(("-n", "--n-best"), int, "Translations kept for each sentence.")
_max_length_option = _option(
    ("--max-length", "--max-new-tokens"), int, "Longest translation, in tokens."
)
_patience_option = _option(
    "--patience",
    float,
    "The search ends after beam size times this many finished hypotheses; inf: no limit.",
)
length_penalty_option = _option(
    "--length-penalty", float, "Exponent of the length penalty; 0 is none."
)

mbr_option = _flag("--mbr", "Of beam-size candidates take the one most like all of them, by chrF.")

search_options = all_of(
    [
        _beam_size_option,
        _n_best_option,
        _max_length_option,
        _patience_option,
        length_penalty_option,
    ]
)
continuation_options = all_of(
    [_beam_size_option, _n_best_option, _patience_option, length_penalty_option]
)
"""Without the length, which ``continue`` counts in its own way."""
single_search_options = all_of(
    [_beam_size_option, _max_length_option, _patience_option, length_penalty_option]
)
"""Without ``--n-best``, for a command that writes one translation per line."""

engine_options = all_of(
    [
        _option(
            "--engine",
            click.Choice(get_args(EngineName)),
            "What searches; auto is the fastest that supports the settings.  [default: auto]",
            _keep_engine,
        ),
        _option(
            "--compute-type",
            click.Choice(get_args(ComputeType)),
            "float32, int8 or auto (the faster of the two here) for ctranslate2; int8 or auto for"
            " kernels; float32 or bfloat16 for torch.  [default: float32; int8 for kernels]",
            _keep_engine,
        ),
        _option(
            "--device",
            click.Choice(get_args(Device)),
            "Where to compute.  [default: auto]",
            _keep_engine,
        ),
    ]
)

ensemble_option = click.option(
    "--with",
    "others",
    type=NAME,
    multiple=True,
    help="Another BUNDLE to ask as well (ensemble); may be given many times.",
)

_SAMPLING = [
    _flag("--sample", "Draw at random.", _keep_sampling),
    _option("--temperature", float, "With --sample: below 1 favors likely tokens.", _keep_sampling),
    _option("--top-k", int, "With --sample: only the k likeliest tokens.", _keep_sampling),
    _option(
        "--top-p",
        float,
        "With --sample: only the fewest tokens with this probability in all.",
        _keep_sampling,
    ),
    _option("--epsilon", float, "With --sample: only tokens at least this likely.", _keep_sampling),
    _option(
        "--seed", int, "With --sample: the same seed draws the same translations.", _keep_sampling
    ),
]
sampling_options = all_of(_SAMPLING)

constraint_options = all_of(
    [
        _option("--min-length", int, "Shortest translation, in tokens."),
        _option("--coverage-penalty", float, "How much a source token without attention costs."),
        _option("--no-repeat-ngram", int, "Never generate so many tokens in a row twice."),
        _option("--prefix", str, "What every translation begins with."),
        _option(
            "--target-code",
            str,
            "Of a multilingual model: the language to translate into, such as deu, of lines"
            " without a code.",
        ),
        _several("--must", "must", "A word or phrase that must appear; may be given many times."),
        _several("--ban", "banned", "A word or phrase that must not; may be given many times."),
        _option("--diverse-groups", int, "Parts of the beam that avoid one another's tokens."),
        _option("--diversity-strength", float, "How much they avoid them, in nats."),
        *_SAMPLING,
        mbr_option,
        _flag("--align", "Print which word comes from which, as 0-0 1-2."),
        _option(
            "--align-layer", int, "The decoder layer that aligns.  [default: the last but one]"
        ),
        _option("--align-head", int, "The head that aligns.  [default: the mean of all]"),
        _flag("--replace-unknown", "Put the aligned source word for an unknown one."),
        ensemble_option,
        click.option(
            "--recase/--no-recase",
            default=None,
            expose_value=False,
            callback=_keep_search,
            help="Read lines in upper or in title case as lower case.  [default: if the model was"
            " trained for it, else each word as its tokenizer knows it best]",
        ),
        _flag(
            "--no-copy-symbols",
            "Translate emoji, and lines without letters, instead of copying them.",
            turns_off="copy_symbols",
        ),
        _flag(
            "--no-cache",
            "Compute the whole prefix again at every step; slow.",
            turns_off="use_cache",
        ),
        _flag(
            "--no-mask-at-inference",
            "With --no-cache or --repredict: let earlier words attend to later ones"
            " (docs/ERRATA.md, ER-36).",
            turns_off="mask_at_inference",
        ),
        _flag("--repredict", "With --beam-size 1: predict all words again at every step."),
    ]
)


def open_translator(
    bundle: str,
    search: Choices,
    *,
    sampling: Choices = _NONE,
    engine: Choices = _NONE,
    others: Sequence[str] = (),
    buffer_size: int | None = None,
    figures: bool = True,
) -> "Translator":
    """The translator of ``bundle`` with the settings that the options give.

    Without ``figures`` the log-probabilities of tokens are not computed. With ``others`` it is an
    ensemble, which only torch can search.

    Raises ConfigError for a value out of range, click.UsageError for options that exclude one
    another or do nothing, and what opening the bundles raises.
    """
    # A mistyped name is reported before the imports, which take half a second.
    for path in (bundle, *others):
        require_model(path)

    from pellucid.backends.load import load

    # Checked before the bundle is opened, which may take seconds.
    changes = _changes(search, sampling)
    if not figures:
        changes["token_log_probs"] = False
    if buffer_size is not None:
        changes["stream_lines"] = buffer_size

    if others:
        # Given values only: the defaults suit an ensemble.
        able = {  # the values that an ensemble supports
            "engine": ("auto", "torch"),
            "compute_type": ("auto", "float32"),
            "device": ("auto", "cpu"),
        }
        names = [
            f"--{name.replace('_', '-')} {value}"
            for name, value in engine.items()
            if value not in able[name]
        ]
        if names:
            raise click.UsageError(f"--with cannot be used with {' and '.join(names)}.")

        from pellucid.backends.hub import folder_of
        from pellucid.decoding.ensemble import load_ensemble
        from pellucid.documents.protected import literals_in

        folders = [folder_of(each) for each in (bundle, *others)]
        translator = load_ensemble(folders, literals_in=literals_in)
    else:
        translator = load(
            bundle,
            engine.get("engine", "auto"),
            engine.get("device", "auto"),
            engine.get("compute_type"),
        )
    settings = translator.settings.changed(changes)
    _refuse_idle(settings, search)
    return translator.with_settings(settings)


def changed_settings(
    settings: "DecodingConfig", search: Choices, sampling: Choices
) -> "DecodingConfig":
    """``settings`` changed by the options that were given.

    Raises ConfigError for a value out of its range, click.UsageError for an option that does
    nothing.
    """
    changed = settings.changed(_changes(search, sampling))
    _refuse_idle(changed, search)
    return changed


def _refuse_idle(settings: "DecodingConfig", search: Choices) -> None:
    """Raise click.UsageError for options of a beam where ``settings`` follow none."""
    draws = settings.sampling is not None
    idle = [
        f"--{name.replace('_', '-')}"
        for name, is_idle in (
            ("beam_size", draws and not settings.mbr),
            ("patience", draws or settings.beam_size == 1),
        )
        if is_idle and name in search
    ]
    if idle:
        reason = "sampling follows no beam" if draws else "with a beam of 1 it does nothing"
        raise click.UsageError(f"{' and '.join(idle)} must be left out: {reason}.")


def _changes(search: Choices, sampling: Choices) -> dict[str, Any]:
    """The decoding settings that the options give.

    Raises click.UsageError for options that do nothing without another one.
    """
    if "diversity_strength" in search and "diverse_groups" not in search:
        raise click.UsageError("--diversity-strength must go with --diverse-groups.")
    settings = {name: value for name, value in sampling.items() if name != "sample"}
    if "sample" in sampling:
        return {**search, "sampling": settings}
    if settings:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in settings)
        raise click.UsageError(f"{names} must go with --sample.")
    return dict(search)
