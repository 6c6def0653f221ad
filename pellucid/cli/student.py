"""``pellucid distill --student``: from a teacher to a checked student, step by step in one folder.

Each step leaves a file, and is passed over where that is there: the teacher's translations
(``taught.txt``), the run of the student (``run``), its files for Marian and Firefox (``files``),
and what was lost (``lost.md``). A step itself goes on where it was, so that the same command
finishes what was stopped or killed anywhere.
"""

import contextlib
import dataclasses
import importlib.util
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pellucid.core.errors import ConfigError, CorruptError, DataError, list_problems
from pellucid.core.files import remove_folder, remove_leftovers, write_file
from pellucid.core.run_names import CONFIG_FILE

if TYPE_CHECKING:
    from pellucid.bundle import Bundle
    from pellucid.decoding.translator import Translator
    from pellucid.training.config import RunConfig
    from pellucid.training.journal import Listener
    from pellucid.training.recipe import Recipe

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
_TOKENIZERS = ("bpe", "unigram")
"""The tokenizers that sentencepiece can cut by, as Marian and Firefox do."""
_COPIED_DECODER, _COPIED_LAYERS = "ssru", 2
"""The decoder of a student that begins as a copy of its teacher."""

_PLAN, _TAUGHT, _COPY, _RUN, _TRAINED = "plan.json", "taught.txt", "copy", "run", "trained.json"
_FILES, _RESULT, _LOST = "files", "result.json", "lost.md"
_CALIBRATION_LINES = 500
_ALIGNED, _VALID_ALIGNED = "taught.links", "valid.links"
_OF_RUN = ("aligned", "from_teacher", "lines_of_valid", "minutes", "settings", "valid")
"""The parts of an order that the teacher's translations do not depend on."""


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
    aligned: bool = False
    """Whether the last layer of the student's decoder learns the teacher's alignments."""


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
    Raises ConfigError if ``folder`` was begun with another order or no student can come of this
    one, and what the steps raise.
    """
    _check(translator, order)
    _begin(folder, order)

    def say(text: str) -> None:
        if not quiet:
            click.echo(text, err=True)

    taught = folder / _TAUGHT
    if not taught.exists():
        say("1 of 4: the teacher translates")
        if code := write_taught(taught):
            return code

    if order.aligned:
        _align(translator, order, folder)
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


def _check(teacher: "Translator", order: Order) -> None:
    """Find what is wrong with an order before hours are spent on it.

    Raises ConfigError for settings that no student can have, DataError for files that do not belong
    together, and what reading the files raises.
    """
    from pellucid.text.config import DataConfig
    from pellucid.text.corpus.lines import iterate_lines
    from pellucid.training.preparation import read_validation
    from pellucid.training.presets import read_overrides

    with contextlib.closing(iterate_lines(Path(order.source))) as lines:
        if not any(map(str.strip, lines)):
            raise DataError(f"{order.source} must have a line with text, for the teacher")
    files = {"source": order.source, "target": order.source}
    valid = {"valid_source": order.valid[0], "valid_target": order.valid[1]}
    read = read_validation(DataConfig.parse({**files, **valid}, origin="--valid"))

    own = read_overrides(order.settings)
    if order.aligned and not teacher.can_align:
        raise ConfigError(
            "--aligned learns from the teacher's attention, and it has none",
            hint="leave out --aligned",
        )
    if order.aligned:
        from pellucid.training.alignments import warn_of_no_words

        assert read is not None, "validation files are named"
        warn_of_no_words(zip(read.sources, read.targets, strict=True))
    if order.from_teacher:
        from pellucid.bundle import Bundle
        from pellucid.training.shrinking import check_copy

        assert isinstance(teacher.bundle, Bundle), "an ensemble is refused with --from-teacher"
        check_copy(teacher.bundle, *_decoder_of_copy(own), own)
    else:
        _check_for_marian(order, own)


def _check_for_marian(order: Order, own: Mapping[str, Any]) -> None:
    """Raise ConfigError for a setting that the files for Firefox cannot hold.

    ``own`` are the settings that were given, by dotted name.
    """
    from pellucid.backends.capability import MARIAN_FILES
    from pellucid.model.config import parse_model_config
    from pellucid.training.presets import read_overrides

    for name, known in (
        ("model.kind", MARIAN_FILES.kinds),
        ("tokenizer.kind", _TOKENIZERS),
        ("tokenizer.target_kind", _TOKENIZERS),
    ):
        if own.get(name) not in (None, *known):
            raise ConfigError(
                f"the files of a student cannot express {name}={own[name]}, only"
                f" {' or '.join(known)}",
                hint="leave that --set out",
            )

    def problems(settings: Sequence[str]) -> list[str]:
        """The settings of such a model that the files cannot hold."""
        given = read_overrides(settings)
        table = {
            name.removeprefix("model."): value
            for name, value in given.items()
            if name.startswith("model.")
        }
        return MARIAN_FILES.model_problems(parse_model_config({"kind": "transformer", **table}))

    # of the settings that were given alone: the others are not chosen yet
    chosen_later = problems(STUDENT_SETTINGS)
    try:
        found = problems((*STUDENT_SETTINGS, *order.settings))
    except ConfigError:  # one may fit to what is chosen, and not to the defaults
        return
    if wrong := [each for each in found if each not in chosen_later]:
        raise ConfigError(
            f"the files of a student cannot express its model: {list_problems(wrong)}",
            hint="leave that --set out",
        )


def _begin(folder: Path, order: Order) -> None:
    """Keep the order in a new folder, or compare it with the one that is there.

    Until the student's run has begun, what only concerns the run may change.
    """
    table = json.loads(json.dumps(dataclasses.asdict(order))) | _hashes_of_lines(order)
    plan = folder / _PLAN
    if not plan.exists():
        from pellucid.core.errors import OutputExistsError

        remove_leftovers(folder)  # of a command that was killed while it wrote the plan
        if folder.exists() and any(folder.iterdir()):
            raise OutputExistsError(
                f"{folder} is not empty and holds no student", hint="choose another --student"
            )
        folder.mkdir(parents=True, exist_ok=True)
    else:
        kept = _read_plan(plan)
        differ = sorted(name for name in table if _compared(kept, name) != _compared(table, name))
        if not differ:
            return
        has_run = (folder / _RUN / CONFIG_FILE).exists()
        if has_run or not set(differ) <= set(_OF_RUN):
            raise ConfigError(
                f"{folder} was begun otherwise: {' and '.join(differ)} changed",
                hint="choose another --student, or give the same options as before",
            )
        if (folder / _COPY).exists():  # made by the settings
            remove_folder(folder / _COPY)
        (folder / _VALID_ALIGNED).unlink(missing_ok=True)
    write_file(plan, json.dumps(table, indent=2).encode())


def _read_plan(plan: Path) -> dict[str, Any]:
    """The order that is kept, with the defaults of settings of the search that are newer."""
    from pellucid.decoding.config import DecodingConfig

    try:
        kept = json.loads(plan.read_text("utf-8"))
        search = {**DecodingConfig().model_dump(mode="json"), **kept["search"]}
        return {**kept, "search": search}
    except (ValueError, TypeError, KeyError) as error:
        raise CorruptError(
            f"{plan} is not as it was written", hint="choose another --student"
        ) from error


def _compared(table: Mapping[str, Any], name: str) -> object:
    """A part of an order, with each file by its absolute path."""
    value: Any = table.get(name)
    match name, value:
        case "source", str():
            return _whole_path(value)
        case "valid", [*files]:
            return [_whole_path(str(each)) for each in files]
        case "finish", {"reference": str(reference)}:
            return {**value, "reference": _whole_path(reference)}
        case _:
            return value


def _hashes_of_lines(order: Order) -> dict[str, object]:
    """The SHA-256 of each text by its name in a plan: a student is of no use to other lines."""
    from pellucid.training.synthesis import hash_of_lines

    def hash_of(path: str) -> str:
        return hash_of_lines(Path(path))[0] if path else ""

    return {
        "lines_of_source": hash_of(order.source),
        "lines_of_reference": hash_of(order.finish["reference"]),
        "lines_of_valid": [hash_of(each) for each in order.valid],
    }


def _whole_path(path: str) -> str:
    return path if not path or "://" in path else str(Path(path).resolve())


def _align(teacher: "Translator", order: Order, folder: Path) -> None:
    """Write the teacher's alignments of both texts that are not there."""
    from pellucid.training.alignments import aligned_lines

    for name, source, target in (
        (_ALIGNED, order.source, str(folder / _TAUGHT)),
        (_VALID_ALIGNED, *order.valid),
    ):
        if not (folder / name).exists():
            lines = aligned_lines(teacher, Path(source), Path(target))
            write_file(folder / name, "".join(f"{line}\n" for line in lines).encode())


def _overrides(folder: Path, order: Order) -> tuple[str, ...]:
    """The settings that were given, behind those by which a student learns alignments."""
    if not order.aligned:
        return order.settings
    from pellucid.training.presets import read_overrides

    layers = read_overrides(order.settings).get("model.decoder_layers", _COPIED_LAYERS)
    # the first head of the last layer is the one that Marian and Firefox align by
    return (
        f"data.alignments={folder / _ALIGNED}",
        f"data.valid_alignments={folder / _VALID_ALIGNED}",
        f"decoding.align_layer={layers - 1}",
        "decoding.align_head=0",
        *order.settings,
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
            config, recipe = _choose(teacher, folder, order)
            listener = keeping(recipe, run, display.hear)
        stop = display.counting(config, StopRequests())
        # another folder goes on from its newest checkpoint, and says so if it has none
        begun = run.exists() and any(run.iterdir())
        result = train(config, run, resume=begun, listener=listener, should_stop=stop)

    if result.reason in EXIT_CODES:
        click.echo("saved; the same command goes on", err=True)
        return EXIT_CODES[result.reason]
    write_file(folder / _TRAINED, json.dumps({"reason": result.reason}).encode())
    return 0


def _choose(teacher: "Translator", folder: Path, order: Order) -> tuple["RunConfig", "Recipe"]:
    """The config of a student, with updates that are chosen for the text and the machine.

    A student that begins as a copy of ``teacher`` has its model, but for the decoder.
    """
    from pellucid.bundle import Bundle
    from pellucid.evaluation.signature import bundle_hash
    from pellucid.training.automatic import choose_config, config_of
    from pellucid.training.presets import read_overrides
    from pellucid.training.shrinking import copy_recipe, save_shrunk, settings_of_copy, shrunk

    settings, copy = _overrides(folder, order), folder / _COPY
    own = read_overrides(settings)
    if order.from_teacher and not copy.exists():
        assert isinstance(teacher.bundle, Bundle), "an ensemble is refused with --from-teacher"
        student = shrunk(teacher.bundle, *_decoder_of_copy(own), own.get("training.seed", 1))
        save_shrunk(copy, student, bundle_hash(teacher.bundle.manifest))

    chosen = choose_config(
        order.source,
        str(folder / _TAUGHT),
        minutes=order.minutes,
        valid=order.valid,
        overrides=(
            *(settings_of_copy(copy) if order.from_teacher else STUDENT_SETTINGS),
            *settings,
        ),
    )
    if not order.from_teacher:
        return config_of(chosen), chosen
    assert isinstance(teacher.bundle, Bundle), "an ensemble is refused with --from-teacher"
    return copy_recipe(chosen, copy, teacher.bundle, own)


def _decoder_of_copy(own: Mapping[str, Any]) -> tuple[str, int]:
    """Kind and number of layers of the decoder of a copy, by the settings that were given."""
    kind = own.get("model.decoder", _COPIED_DECODER)
    return kind, own.get("model.decoder_layers", _COPIED_LAYERS)


def _write_files(folder: Path, order: Order, say: Callable[[str], None]) -> None:
    """Write the student's files for Firefox's engine, or say why it has none."""
    from pellucid.backends.marian_files.write import export_marian
    from pellucid.bundle import load_bundle
    from pellucid.core.errors import BundleError
    from pellucid.decoding.config import DecodingConfig
    from pellucid.text.corpus.lines import iterate_lines

    say("3 of 4: files of 8 bits for Firefox and Bergamot")
    with contextlib.closing(iterate_lines(Path(order.source))) as every:
        lines = list(itertools.islice(filter(str.strip, every), _CALIBRATION_LINES))
    try:
        # a student is for greedy search, which needs no length penalty
        greedy = DecodingConfig(beam_size=1, length_penalty=1.0, length_penalty_kind="power")
        export_marian(load_bundle(folder / _RUN), folder / _FILES, "int8", lines, search=greedy)
    except BundleError as error:
        # a copy has the settings of its teacher, which Marian may lack
        if not order.from_teacher:
            raise
        say(f"none: {error}")


def _measure(teacher: "Translator", order: Order, folder: Path) -> None:
    from pellucid.backends.capability import KERNELS
    from pellucid.backends.load import load
    from pellucid.backends.student_report import measure, write_page
    from pellucid.bundle import open_bundle
    from pellucid.text.corpus.lines import read_lines

    sources, references = (read_lines(Path(path)) for path in order.valid)
    greedy: dict[str, Any] = {"beam_size": 1, "n_best": 1, "token_log_probs": False}
    greedy |= {"mbr": False, "diverse_groups": 1}  # need a beam
    greedy |= {"below": None}  # a mark would count as a word
    plain = teacher.settings.changed({"n_best": 1, "token_log_probs": False, "below": None})
    student = load(folder / _RUN, engine="torch")

    contenders: list[tuple[str, Translator]] = [("teacher", teacher.with_settings(plain))]
    if plain.beam_size > 1:
        contenders.append(("teacher, greedy", teacher.with_settings(plain.changed(greedy))))
    contenders.append(("student, greedy", student.with_settings(student.settings.changed(greedy))))
    if (folder / _FILES).exists():
        in_files = _read_files(folder / _FILES)
        search = student.settings.changed(greedy)
        read_again = student.with_model(in_files, search)
        contenders.append(("student, greedy, weights of 8 bits", read_again))
    has_kernels = importlib.util.find_spec("pellucid_kernels") is not None
    if has_kernels and not KERNELS.model_problems(open_bundle(folder / _RUN).config):
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
