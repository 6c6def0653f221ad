"""``pellucid train``, and its configs: ``presets`` and ``config``.

Two text files are trained with settings chosen for them (a recipe); a .toml file or the name of a
preset is trained as it stands. What is shown while it runs is in ``display.py``.
"""

import json
import logging
import os
import shlex
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from pellucid.cli.options import NAME, PATH, is_missing, parent_option, settings_option
from pellucid.core.run_names import CONFIG_FILE
from pellucid.training import LoggerName

if TYPE_CHECKING:
    from pellucid.training.config import RunConfig
    from pellucid.training.recipe import Recipe

KERNEL_BOUNDS = {"LRU_CACHE_CAPACITY": "2048", "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "2048"}
"""Preset ``multi30k`` needs some 1,500 for all shapes of its batches, whose rows come in round
numbers; each takes up to 0.4 MB. The defaults are 1,024 of each."""


def keep_few_kernels() -> None:
    """Set the size of the kernel caches for bfloat16 training on a CPU, unless it is set already.

    PyTorch and oneDNN each keep the kernels they compiled for a shape of matrices. Compiling one
    takes some ten times as long as a product of a small model, so all must fit.
    """
    for name, capacity in KERNEL_BOUNDS.items():
        os.environ.setdefault(name, capacity)


@click.command()
@click.argument("texts", type=NAME, nargs=-1, required=True, metavar="SOURCE TARGET | CONFIG")
@click.option(
    "--minutes",
    type=float,
    help="How long to train and validate.  [default: 30, or what CONFIG says]",
)
@click.option(
    "--epochs",
    type=click.IntRange(1),
    help="How many passes over the text; without --minutes they replace the limits that CONFIG has"
    " for updates and minutes.",
)
@click.option(
    "--valid",
    nargs=2,
    type=NAME,
    metavar="SOURCE TARGET",
    help="Text to validate on; without it some pairs are held out.",
)
@settings_option("Change one setting; may be given many times.")
@click.option(
    "-o",
    "--out",
    type=PATH,
    help="Run folder.  [default: runs/ and the languages, or the name of CONFIG]",
)
@parent_option("Fine-tune this bundle, or the best one of this run.")
@click.option(
    "--log-to",
    multiple=True,
    type=click.Choice(get_args(LoggerName)),
    help="Another program that gets the figures; may be given many times.",
)
@click.option("--resume", is_flag=True, help="Go on with the run in --out.")
@click.option("--dry-run", is_flag=True, help="Try everything once, forecast, leave nothing.")
@click.option(
    "--save-config",
    type=PATH,
    metavar="FILE",
    help="Write the config chosen for SOURCE and TARGET to a .toml file, and train nothing.",
)
@click.pass_obj
def train(
    obj: dict[str, bool],
    texts: tuple[str, ...],
    minutes: float | None,
    epochs: int | None,
    valid: tuple[str, str] | None,
    overrides: tuple[str, ...],
    out: Path | None,
    init: Path | None,
    log_to: tuple[str, ...],
    resume: bool,
    dry_run: bool,
    save_config: Path | None,
) -> int:
    """Train a model from two text files, or by a config.

    Line n of TARGET is the translation of line n of SOURCE; a .tsv or .jsonl file with both sides
    may stand alone. Tokenizer, model and schedule are then chosen by the text, the minutes and the
    speed of this machine; what was chosen is printed and kept in recipe.toml in the run folder, to
    be edited and trained again. CONFIG is a .toml file or the name of a preset.

    Ctrl-C, SIGTERM and SIGHUP save before they end it; --resume goes on from there.

    Under torchrun, its processes share the batches of every update.

    \b
    Examples:
      pellucid train train.en train.de --minutes 30 --out runs/en-de
      pellucid train train.en train.de --valid valid.en valid.de --minutes 30 --out runs/en-de
      pellucid train runs/en-de/recipe.toml --set model.dropout=0.3 --out runs/en-de-2
      pellucid train demo --set training.max_steps=100 --out runs/try
      pellucid train demo --out runs/try --resume
      pellucid train train.en train.de --epochs 20 --out runs/en-de
      pellucid train paper-base --set data.source=train.en --set data.target=train.de --dry-run
      pellucid train finetune --init runs/en-de --set data.source=my.en \\
          --set data.target=my.de --out runs/mine
    """
    if len(texts) == 2 and texts[0] != texts[1]:
        missing = [text for text in texts if is_missing(text) and not Path(text).is_dir()]
        if missing:
            _refuse_missing(texts, missing)
    elif len(texts) == 1 and Path(texts[0]).suffix in ("", ".toml") and is_missing(texts[0]):
        from pellucid.training.preset_names import require_config

        require_config(texts[0])

    keep_few_kernels()  # before PyTorch is imported: its caches take their size once
    from pellucid.cli.display import EXIT_CODES, Display, StopRequests, next_commands

    # Wrong options, names and settings are refused before PyTorch is loaded, which takes seconds.
    if dry_run and resume:
        raise click.UsageError("--dry-run starts from the beginning; leave --resume out")
    if save_config is not None and (dry_run or resume):
        raise click.UsageError("--save-config trains nothing; leave --dry-run and --resume out")
    # read by hand, as RANK below
    is_alone = os.environ.get("WORLD_SIZE", "1") in ("", "1")
    if dry_run and not is_alone:
        raise click.UsageError("--dry-run is for one process, not for torchrun.")

    from pellucid.training.folder import goes_on, refuse_if_used
    from pellucid.training.presets import read_overrides

    are_text_files = _are_text_files(texts)
    folder = out or default_folder(texts)
    is_chosen = are_text_files and not (resume and (folder / CONFIG_FILE).is_file())
    if save_config is not None:
        _refuse_to_save(save_config, is_chosen=is_chosen)
    if is_chosen:
        _refuse_what_has_no_recipe(init, is_alone=is_alone)
        given = read_overrides(overrides)
        for name in ("data.source", "data.target"):
            if name in given:
                raise click.UsageError(f"SOURCE and TARGET are the text; leave out --set {name}.")
    elif not are_text_files:
        _read(texts[0], minutes, valid, overrides, init)
    # A resumed run and a config that is only saved do not claim the folder. Of several processes
    # another one may be at work in it already.
    is_new = not (goes_on(folder, resume=resume) or save_config or (dry_run and not is_chosen))
    if is_alone and is_new:
        refuse_if_used(folder)

    quiet = obj["quiet"]
    # Under torchrun only the first process draws. RANK is read by hand, because the module that
    # reads it properly imports PyTorch.
    with Display(quiet=quiet or os.environ.get("RANK", "0") != "0") as display:
        display.begin("loading PyTorch")  # before the import, which takes seconds
        from pellucid.core.world import world_of_environment
        from pellucid.training.automatic import config_of, keeping
        from pellucid.training.train import train as train_model

        world = world_of_environment()
        if log_to:
            overrides = (*overrides, f"training.log_to={json.dumps(log_to)}")
        if epochs is not None:  # ``--set`` comes last and wins
            overrides = (f"training.max_epochs={epochs}", *overrides)
        has_no_clock = epochs is not None and minutes is None

        recipe: Recipe | None = None
        if is_chosen:
            recipe = _choose(
                texts, minutes, valid, overrides, quiet=quiet, has_no_clock=has_no_clock
            )
            config = config_of(recipe)
        else:
            # a config, or the name of a preset
            name = texts[0]
            if are_text_files:  # a stopped run goes on with what was chosen for it
                # Choosing again could give other settings, because the machine is timed again.
                name = str(folder / CONFIG_FILE)
                sides = zip(("source", "target"), texts, strict=False)
                named = (f"data.{side}={json.dumps(path)}" for side, path in sides)
                overrides = (*named, *overrides)  # so that no run is resumed with others
            config = _read(name, minutes, valid, overrides, init)
            config = _without_limits(config, overrides) if has_no_clock else config

        if save_config is None and not dry_run:
            if not world.is_first:  # the first process logs the warnings
                logging.getLogger("pellucid").setLevel(logging.ERROR)

            # torchrun passes on a signal that its processes may already have received from the
            # terminal, so there a second one does not mean "at once".
            stop = display.counting(config, StopRequests(heeds_second=world.is_alone))
            display.tells_expectation = recipe is None
            listener = display.hear if recipe is None else keeping(recipe, folder, display.hear)
            # With a recipe, the run folder gets recipe.toml as soon as it exists.
            result = train_model(config, folder, resume=resume, listener=listener, should_stop=stop)

    # What follows prints its own lines, which the progress display would overwrite.
    if save_config is not None and recipe is not None:
        from pellucid.core.files import write_user_file

        write_user_file(save_config, recipe.to_toml().encode())
        click.echo(str(save_config))
        return 0
    if dry_run:
        return show_dry_run(config, folder, quiet=quiet)

    if world.is_first and not quiet and result.verdict is not None:
        click.echo(f"\n{result.verdict}", err=True)

    if result.reason in EXIT_CODES:
        if world.is_first:
            options = [part for override in overrides for part in ("--set", override)]
            options += [] if minutes is None else ["--minutes", f"{minutes:g}"]
            options += [] if valid is None else ["--valid", *valid]
            if has_no_clock:  # ``overrides`` has the passes, but not that they alone count
                options += ["--epochs", str(epochs)]
            if init is not None:
                options += ["--init", str(init)]
            # A command that can be copied: quoted, with the options that decide the run.
            again = ["pellucid", "train", *texts, *options, "--out", str(folder), "--resume"]
            prefix = "" if world.is_alone else "torchrun ... -m "
            click.echo(f"saved; go on with: {prefix}{shlex.join(again)}", err=True)
        return EXIT_CODES[result.reason]

    if world.is_first:
        click.echo(str(folder))
        if not quiet:
            is_useless = result.verdict is not None and result.verdict.level == "useless"
            click.echo("\nSee for yourself:" if is_useless else "\nTry it:", err=True)
            for command in next_commands(config, folder, display.sample, is_useless=is_useless):
                click.echo(f"  {command}", err=True)
    return 0


def _are_text_files(texts: tuple[str, ...]) -> bool:
    """Whether these name a corpus; one argument may be a config or a preset.

    Raises UsageError for more than two, InputMissingError if one of two is no file.
    """
    from pellucid.core.errors import DataError
    from pellucid.text.config import file_format, way_out
    from pellucid.text.corpus.readers import input_exists, refuse_pipe
    from pellucid.training.preset_names import preset_names

    for text in texts:
        if Path(text).is_dir() and text not in preset_names():
            raise DataError(f"{text} is a folder; train needs the files in it, by their names")
        if way := way_out(text):
            raise DataError(f"{text} is not text or a table of pairs", hint=way)
    if len(texts) == 2 and texts[0] == texts[1]:
        raise DataError(f"SOURCE and TARGET must be two texts, got {texts[0]} twice")
    if len(texts) == 1:
        return input_exists(texts[0]) and file_format(texts[0]) != "plain"
    if len(texts) > 2:
        cure = "; text to validate on is named by --valid SOURCE TARGET" if len(texts) == 4 else ""
        if texts[0] in preset_names():
            cure = "; a preset takes its text by --set data.source=SOURCE --set data.target=TARGET"
        raise click.UsageError(
            f"train needs SOURCE and TARGET, or one CONFIG, got {len(texts)} arguments{cure}"
        )

    missing = [text for text in texts if not input_exists(text)]
    if missing:
        for text in missing:
            refuse_pipe(text)
        _refuse_missing(texts, missing)
    return True


def _refuse_missing(texts: tuple[str, ...], missing: list[str]) -> None:
    """Raise InputMissingError; the hint names a preset if the first argument resembles one."""
    from pellucid.core.errors import InputMissingError
    from pellucid.core.near_names import nearest_name
    from pellucid.training.preset_names import preset_names

    hint = "two text files are trained on as pellucid train SOURCE TARGET"

    preset = texts[0] if texts[0] in preset_names() else nearest_name(texts[0], preset_names())
    if texts[0] in missing and preset is not None:
        hint += (
            f"; the preset {preset} is named alone: pellucid train {preset}"
            " --set data.source=SOURCE --set data.target=TARGET"
        )

    raise InputMissingError(f"there is no file {' and no file '.join(missing)}", hint=hint)


def default_folder(texts: tuple[str, ...]) -> Path:
    """``runs/en-de`` for train.en and train.de, else ``runs/`` and the name of the first."""
    from pellucid.text.corpus.addresses import plain_stem

    # train.en.gz is English, too, and so is train.parquet#en.
    stems = [Path(plain_stem(text)) for text in texts]
    suffixes = [stem.suffix.removeprefix(".") for stem in stems]
    if len(texts) == 2 and all(suffixes) and suffixes[0] != suffixes[1]:
        return Path("runs") / "-".join(suffixes)
    return Path("runs") / stems[0].stem


def _refuse_what_has_no_recipe(init: Path | None, *, is_alone: bool) -> None:
    if init is not None:
        raise click.UsageError(
            "--init goes on with the settings of a bundle, so there is nothing to choose: name the"
            " preset finetune, and the files by --set data.source=... --set data.target=..."
        )

    if not is_alone:
        raise click.UsageError(
            "one process chooses the settings: write them to a file by --save-config my.toml"
            " without torchrun, then train my.toml under torchrun"
        )


def _choose(
    texts: tuple[str, ...],
    minutes: float | None,
    valid: tuple[str, str] | None,
    overrides: tuple[str, ...],
    *,
    quiet: bool,
    has_no_clock: bool,
) -> "Recipe":
    """Choose settings for these files and print them to stderr."""
    from pellucid.training.automatic import DEFAULT_MINUTES, choose_config

    if not quiet:
        click.echo("counting the text, then timing some updates on this machine ...", err=True)

    # A .tsv or .jsonl file holds both sides.
    target = texts[1] if len(texts) == 2 else None
    recipe = choose_config(
        texts[0],
        target,
        minutes=DEFAULT_MINUTES if minutes is None else minutes,
        valid=valid,
        overrides=overrides,
        has_no_clock=has_no_clock,
    )

    if not quiet:
        for line in recipe.lines():
            click.echo(f"  {line}", err=True)
    return recipe


def _read(
    name: str,
    minutes: float | None,
    valid: tuple[str, str] | None,
    overrides: tuple[str, ...],
    init: Path | None,
) -> "RunConfig":
    """The config of that name or file."""
    from pellucid.core.errors import ConfigError, PellucidError
    from pellucid.training.presets import read_config

    named = [] if minutes is None else [f"training.max_minutes={float(minutes)}"]
    if valid is not None:
        sides = zip(("source", "target"), valid, strict=True)
        # As TOML strings, which JSON strings are: a path may hold quotes.
        named += [f"data.valid_{side}={json.dumps(path)}" for side, path in sides]

    try:
        # ``--set`` comes last and wins over ``--minutes`` and ``--valid``.
        return read_config(name, [*named, *overrides], init)
    except PellucidError as error:
        # Too large for a config, not UTF-8, or no TOML.
        is_text = Path(name).is_file() and Path(name).suffix != ".toml"
        is_wrong_config = isinstance(error, ConfigError) and not any(
            sign in str(error) for sign in ("is not valid TOML", "is not UTF-8")
        )
        if not is_text or is_wrong_config:
            raise
        # A text file without its translation was read as TOML: the parser's error would not help.
        from pellucid.text.check.sides import HAS_TABS, has_tabs

        hint = f"a text file needs its translation beside it: pellucid train {name} TARGET"
        raise ConfigError(
            f"one argument must be a config or a preset, and {name} is neither",
            hint=HAS_TABS if has_tabs(Path(name)) else hint,
        ) from None


def _without_limits(config: "RunConfig", overrides: tuple[str, ...]) -> "RunConfig":
    """The config without its own limits of minutes and updates: the passes that were asked for end
    the run. A limit among ``overrides`` stays."""
    from pellucid.core.config import apply_overrides
    from pellucid.training.config import RunConfig

    given = apply_overrides({}, overrides).get("training", {})
    table = config.to_table()
    table["training"] = {
        name: value
        for name, value in table["training"].items()
        if name in given or name not in ("max_minutes", "max_steps")
    }
    return RunConfig.parse(table)


def _refuse_to_save(path: Path, *, is_chosen: bool) -> None:
    """Raise for a config that cannot be saved."""
    from pellucid.core.errors import OutputExistsError

    if not is_chosen:
        raise click.UsageError("--save-config needs two text files to choose a config for")

    # A config may have been edited since: it is never overwritten.
    if path.exists():
        raise OutputExistsError(f"{path} already exists", hint="choose another --save-config")


def show_dry_run(config: "RunConfig", out: Path, *, quiet: bool) -> int:
    """Run the dry run; its progress goes to stderr, the forecast to stdout."""
    from pellucid.training.dry_run import dry_run

    def say(line: str) -> None:
        if not quiet:
            click.echo(line, err=True)

    # Real updates, one validation and one checkpoint, in a folder that is removed.
    found = dry_run(config, out, say)
    sooner = ", or sooner (training.patience)" if config.training.patience else ""
    rows = {
        "updates": f"{found.updates:,} (training.{found.ends_by}){sooner}",
        "time": _duration(found.seconds),
        "epochs": f"{found.epochs:,.1f}",
        "speed": f"{found.tokens_per_second:,.0f} target tokens/s",
        "memory": f"{found.memory_bytes / 1e6:,.0f} MB",
        "disk": f"{found.disk_bytes / 1e6:,.0f} MB for checkpoints and bundles",
    }

    for name, text in rows.items():
        click.echo(f"{name:8} {text}")
    return 0


def _duration(seconds: float) -> str:
    # Rounded before it is split, so that 119.6 seconds are 2 min 00 s.
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {seconds:02d} s"


_WIDTH = 96


@click.command()
def presets() -> None:
    """List the presets: what each is for and what it needs.

    \b
    Examples:
      pellucid config multi30k > my.toml
      pellucid train my.toml --set data.source=train.en --set data.target=train.de
    """
    from pellucid.training.preset_names import preset_names
    from pellucid.training.presets import preset_comment

    names = preset_names()
    indent = max(map(len, names)) + 2
    for name in names:
        # The comment at the top of the preset's file is its description: one text for both.
        about = textwrap.wrap(" ".join(preset_comment(name)), _WIDTH - indent)
        click.echo(f"{name:<{indent}}{about[0]}")
        for line in about[1:]:
            click.echo(" " * indent + line)
    click.echo(
        "\nOne of them whole: pellucid config NAME.  To train it: pellucid train NAME.", err=True
    )


@click.command()
@click.argument("preset", type=NAME)
@settings_option("Change one setting first; may be given many times.")
def config(preset: str, overrides: tuple[str, ...]) -> None:
    """Print the config PRESET, or a .toml file, whole: every setting with what it means.

    What is printed is itself a config: edit it and train from it.

    \b
    Examples:
      pellucid config demo
      pellucid config multi30k --set training.max_minutes=10 > my.toml
    """
    from pellucid.training.presets import config_text

    # The text ends with a line feed: what is printed is the file, byte for byte.
    click.echo(config_text(preset, overrides), nl=False)
