"""``pellucid distill --student``: from a teacher to a checked student, step by step in one folder.

Each step leaves a file, and is passed over where that is there: the teacher's translations
(``taught.txt``), the run of the student (``run``), its files for Marian and Firefox (``files``),
and what was lost (``lost.md``). A step itself goes on where it was, so that the same command
finishes what was stopped or killed anywhere.
"""

import dataclasses
import importlib.util
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pellucid.core.errors import ConfigError
from pellucid.core.files import write_file
from pellucid.core.run_names import CONFIG_FILE

if TYPE_CHECKING:
    from pellucid.bundle import Bundle
    from pellucid.decoding.translator import Translator
    from pellucid.training.config import RunConfig
    from pellucid.training.journal import Listener
    from pellucid.training.recipe import Recipe
    from pellucid.training.synthesis import Finish

STUDENT_SETTINGS = (
    "tokenizer.kind=unigram",
    "model.decoder=ssru",
    "model.decoder_layers=2",
    "model.norm=post",
    "model.norm_eps=1e-6",
    "model.positions=sinusoidal_t2t",
    "model.start_symbol=zero",
)
"""The settings that every student has; all others are chosen for the text and the machine. A
decoder of two layers with an SSRU is fast and loses little (Kim et al. 2019); the other settings
are those of Marian and of Firefox, whose engine cuts text by unigram models alone."""
_COPIED_DECODER, _COPIED_LAYERS = "ssru", 2
"""The decoder of a student that begins as a copy of its teacher."""

_PLAN, _TAUGHT, _COPY, _RUN, _TRAINED = "plan.json", "taught.txt", "copy", "run", "trained.json"
_FILES, _RESULT, _LOST = "files", "result.json", "lost.md"
_CALIBRATION_LINES = 500


@dataclasses.dataclass(frozen=True)
class Order:
    """Everything that decides what a student becomes."""

    teacher: str
    """The hash of the bundle that teaches."""
    source: str
    """The file that is translated."""
    valid: tuple[str, str]
    minutes: float
    settings: tuple[str, ...]
    search: dict[str, Any]
    """How the teacher searches."""
    finish: dict[str, str]
    """How its translations are changed: nearest to which references, by which measure."""
    from_teacher: bool = False
    """Whether the student begins as a copy of its teacher, with another decoder."""


def make_student(
    translator: "Translator",
    order: Order,
    folder: Path,
    write_taught: Callable[[Path], int],
    *,
    quiet: bool,
) -> int:
    """Take every step that is not done yet, and return the exit code.

    ``write_taught`` writes the teacher's translations to a file, and returns an exit code too.
    Raises ConfigError if ``folder`` was begun with another order, and what the steps raise.
    """
    _begin(folder, order)

    def say(text: str) -> None:
        if not quiet:
            click.echo(text, err=True)

    taught = folder / _TAUGHT
    if not taught.exists():
        say("1 of 4: the teacher translates")
        if code := write_taught(taught):
            return code

    if not (folder / _TRAINED).exists():
        say("2 of 4: the student learns")
        if code := _train(translator, folder, order, quiet=quiet):
            return code

    if not (folder / _FILES).exists() and not (folder / _LOST).exists():
        _write_files(folder, order, say)

    if not (folder / _LOST).exists():
        say("4 of 4: measuring what was lost")
        _measure(translator, order, folder)
    click.echo(str(folder))
    return 0


def _begin(folder: Path, order: Order) -> None:
    """Keep the order in a new folder, or compare it with the one that is there."""
    table = json.loads(json.dumps(dataclasses.asdict(order)))
    plan = folder / _PLAN
    if not plan.exists():
        from pellucid.core.errors import OutputExistsError

        if folder.exists() and any(folder.iterdir()):
            raise OutputExistsError(
                f"{folder} is not empty and holds no student", hint="choose another --student"
            )
        folder.mkdir(parents=True, exist_ok=True)
        write_file(plan, json.dumps(table, indent=2).encode())
        return

    kept = json.loads(plan.read_text("utf-8"))
    differ = sorted(name for name in table if kept.get(name) != table[name])
    if differ:
        raise ConfigError(
            f"{folder} was begun otherwise: {' and '.join(differ)} changed",
            hint="choose another --student, or give the same options as before",
        )


def _train(teacher: "Translator", folder: Path, order: Order, *, quiet: bool) -> int:
    from pellucid.cli.display import EXIT_CODES, Display, StopRequests
    from pellucid.cli.train import keep_few_kernels

    keep_few_kernels()
    from pellucid.training.automatic import keeping
    from pellucid.training.presets import read_config
    from pellucid.training.train import train

    run = folder / _RUN
    with Display(quiet=quiet) as display:
        listener: Listener = display.hear
        if (run / CONFIG_FILE).exists():  # what was chosen for a run that was stopped
            config = read_config(str(run / CONFIG_FILE), [])
        else:
            choose = _choose_copy if order.from_teacher else _choose
            config, recipe = choose(teacher, folder, order)
            listener = keeping(recipe, run, display.hear)
        stop = display.counting(config, StopRequests())
        # an empty folder is begun, another one goes on from its newest checkpoint
        result = train(config, run, resume=True, listener=listener, should_stop=stop)

    if result.reason in EXIT_CODES:
        click.echo("saved; the same command goes on", err=True)
        return EXIT_CODES[result.reason]
    write_file(folder / _TRAINED, json.dumps({"reason": result.reason}).encode())
    return 0


def _choose(teacher: "Translator", folder: Path, order: Order) -> tuple["RunConfig", "Recipe"]:  # noqa: ARG001
    """The config of a student that begins with random numbers, chosen for its text."""
    from pellucid.training.automatic import choose_config, config_of

    recipe = choose_config(
        order.source,
        str(folder / _TAUGHT),
        minutes=order.minutes,
        valid=order.valid,
        overrides=(*STUDENT_SETTINGS, *order.settings),
    )
    return config_of(recipe), recipe


def _choose_copy(teacher: "Translator", folder: Path, order: Order) -> tuple["RunConfig", "Recipe"]:
    """The config of a student that begins as a copy of ``teacher``: its model is the teacher's but
    for the decoder, and its updates are chosen for the text and the machine."""
    from pellucid.bundle import Bundle
    from pellucid.evaluation.signature import bundle_hash
    from pellucid.training.automatic import choose_config
    from pellucid.training.presets import read_overrides
    from pellucid.training.shrinking import copy_recipe, save_shrunk, settings_of_copy, shrunk

    own = read_overrides(order.settings)
    layers = own.get("model.decoder_layers", _COPIED_LAYERS)
    decoder = own.get("model.decoder", _COPIED_DECODER)
    copy = folder / _COPY
    assert isinstance(teacher.bundle, Bundle), "an ensemble is refused with --from-teacher"
    if not copy.exists():
        student = shrunk(teacher.bundle, decoder, layers, own.get("training.seed", 1))
        save_shrunk(copy, student, bundle_hash(teacher.bundle.manifest))

    chosen = choose_config(
        order.source,
        str(folder / _TAUGHT),
        minutes=order.minutes,
        valid=order.valid,
        overrides=(*settings_of_copy(copy), *order.settings),
    )
    return copy_recipe(chosen, copy, teacher.bundle, own)


def _write_files(folder: Path, order: Order, say: Callable[[str], None]) -> None:
    """Write the student's files for Firefox's engine, or say why it has none."""
    from pellucid.backends.marian_files.write import export_marian
    from pellucid.bundle import load_bundle
    from pellucid.core.errors import BundleError
    from pellucid.text.corpus.lines import read_lines

    say("3 of 4: files of 8 bits for Firefox and Bergamot")
    lines = [line for line in read_lines(Path(order.source)) if line.strip()]
    try:
        export_marian(
            load_bundle(folder / _RUN), folder / _FILES, "int8", lines[:_CALIBRATION_LINES]
        )
    except BundleError as error:
        # a copy has the settings of its teacher, which Marian may lack
        if not order.from_teacher:
            raise
        say(f"none: {error}")


def _measure(teacher: "Translator", order: Order, folder: Path) -> None:
    from pellucid.backends.load import load
    from pellucid.backends.student_report import measure, write_page
    from pellucid.decoding.config import DecodingConfig
    from pellucid.decoding.translator import Translator
    from pellucid.text.corpus.lines import read_lines

    sources, references = (read_lines(Path(path)) for path in order.valid)
    greedy = {"beam_size": 1, "n_best": 1, "token_log_probs": False}
    plain = teacher.settings.changed({"n_best": 1, "token_log_probs": False})
    student = load(folder / _RUN, engine="torch")

    contenders: list[tuple[str, Translator]] = [("teacher", teacher.with_settings(plain))]
    if plain.beam_size > 1:
        contenders.append(("teacher, greedy", teacher.with_settings(plain.changed(greedy))))
    contenders.append(("student, greedy", student.with_settings(student.settings.changed(greedy))))
    if (folder / _FILES).exists():
        in_files = _read_files(folder / _FILES)
        search = DecodingConfig.parse(greedy)
        contenders.append(("student, greedy, weights of 8 bits", Translator(in_files, search)))
    if importlib.util.find_spec("pellucid_kernels") is not None:
        fast = load(folder / _RUN, engine="kernels", compute_type="int8")
        if plain.beam_size > 1:
            own = fast.settings.changed({**greedy, "beam_size": plain.beam_size})
            contenders.append(("student, in 8 bits", fast.with_settings(own)))
        settings = fast.settings.changed(greedy)
        contenders.append(("student, greedy, in 8 bits", fast.with_settings(settings)))
    measured = measure(contenders, sources, references)
    table = [dataclasses.asdict(each.contender) for each in measured]
    write_file(folder / _RESULT, json.dumps(table, indent=2).encode())
    write_page(folder, measured, sources, references)


def _read_files(files: Path) -> "Bundle":
    """The student as it is in the files for Firefox."""
    from pellucid.backends.marian_files.read import read_marian
    from pellucid.backends.marian_files.write import NAMES

    vocabularies = sorted(files.glob("*.spm"))  # source.spm, target.spm; or vocab.spm
    return read_marian(files / NAMES["int8"], (vocabularies[0], vocabularies[-1]))


def order_of(
    translator: "Translator",
    source: str,
    valid: tuple[str, str],
    minutes: float,
    settings: Sequence[str],
    finish: "Finish",
    *,
    from_teacher: bool = False,
) -> Order:
    """The order of a command: the teacher by its hash, and its search by every setting."""
    from pellucid.evaluation.signature import bundle_hash, manifest_of

    return Order(
        teacher=bundle_hash(manifest_of(translator)),
        source=source,
        valid=valid,
        minutes=minutes,
        settings=tuple(settings),
        search=translator.settings.model_dump(mode="json"),
        finish={"reference": str(finish.reference or ""), "measure": finish.measure},
        from_teacher=from_teacher,
    )
