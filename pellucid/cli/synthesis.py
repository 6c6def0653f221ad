"""``pellucid distill``, ``backtranslate`` and ``recombine``: training text that is made.

``distill`` writes what a teacher translates (Kim and Rush, 2016), ``backtranslate`` source
sentences for a target text, by a reverse model (Sennrich et al., 2016). Both go on after the lines
that an earlier call has written. ``recombine`` makes sentences for a teacher out of given ones.
"""

import itertools
import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pellucid.cli.options import (
    NAME,
    PATH,
    Choices,
    FiniteRange,
    engine_options,
    ensemble_option,
    open_translator,
    require_model,
    require_texts,
    sampling_options,
    search_options,
    settings_option,
    single_search_options,
)

if TYPE_CHECKING:
    from pellucid.decoding.translator import Translator
    from pellucid.text.recombination import Unit
    from pellucid.text.tokenizers.interface import Tokenizer
    from pellucid.training.synthesis import Finish, SynthesisProgress

_SECONDS_BETWEEN_LINES = 5.0
_STUDENT_MINUTES = 30.0
"""The same as of ``pellucid train`` without ``--minutes``."""
_OUT_HELP = "File to write, such as out.de or out.de.zst."
_written_lines_option = click.option("-o", "--out", type=NAME, required=True, help=_OUT_HELP)


@click.command()
@click.argument("teacher", type=NAME)
@click.argument("source", type=NAME)
@click.option("-o", "--out", type=NAME, help=_OUT_HELP)
@click.option(
    "--student",
    type=PATH,
    metavar="FOLDER",
    help="Train a small, fast student as well, export and measure it, all in this folder.",
)
@click.option(
    "--valid",
    nargs=2,
    type=NAME,
    metavar="SOURCE TARGET",
    help="With --student: text to validate and to measure on.",
)
@click.option(
    "--minutes",
    type=FiniteRange(0, min_open=True),
    help="With --student: how long it learns.  [default: 30]",
)
@click.option(
    "--from-teacher",
    is_flag=True,
    help="With --student: begin as a copy of TEACHER with a shallower decoder.",
)
@click.option(
    "--aligned",
    is_flag=True,
    help="With --student: let a head of its last layer learn the teacher's alignments.",
)
@settings_option("With --student: change one of its settings; may be given many times.")
@click.option(
    "--reference",
    type=PATH,
    help="Its lines: of the n best translations take the one nearest to its own.",
)
@click.option(
    "--measure",
    type=click.Choice(("chrf", "bleu")),
    help="How near a translation is to the reference.  [default: chrf]",
)
@search_options
@ensemble_option
@engine_options
@click.pass_obj
def distill(
    obj: dict[str, bool],
    teacher: str,
    source: str,
    out: str | None,
    student: Path | None,
    valid: tuple[str, str] | None,
    minutes: float | None,
    from_teacher: bool,
    aligned: bool,
    overrides: tuple[str, ...],
    search: Choices,
    engine: Choices,
    others: tuple[str, ...],
    reference: Path | None,
    measure: str | None,
) -> int:
    """Write TEACHER's translation of every line of the file SOURCE, for a student to learn from.

    TEACHER is a bundle or a run folder. Blank lines stay blank. With --student a student learns
    from these translations; FOLDER then holds its run, its files of 8 bits for Firefox's engine and
    a page that says what was lost. If it is stopped or killed, the same command goes on where it
    was.

    \b
    Examples:
      pellucid distill runs/en-de train.en --out distilled.de
      pellucid distill runs/en-de train.en --out near.de --reference train.de --beam-size 8
      pellucid distill runs/seed1 --with runs/seed2 made.en --out made.de
      pellucid distill runs/en-de train.en --student runs/student --valid valid.en valid.de
    """
    if (out is None) == (student is None):
        raise click.UsageError("--out or --student must be given, one of them")
    if student is not None and valid is None:
        raise click.UsageError("--student needs --valid, to measure what is lost")
    if student is None and (valid or minutes or from_teacher or aligned or overrides):
        raise click.UsageError(
            "--valid, --minutes, --from-teacher, --aligned and --set go with --student"
        )
    if from_teacher and others:
        raise click.UsageError("--from-teacher copies one teacher, so it excludes --with")
    n_best = search.get("n_best", 1)
    if reference is None and (measure is not None or n_best > 1):
        raise click.UsageError("--measure and --n-best go with --reference")
    if reference is not None and "n_best" in search and n_best == 1:
        raise click.UsageError("--reference needs several translations: --n-best 2 or more")
    if reference is not None and search.get("beam_size") == 1:
        raise click.UsageError("--reference needs several translations: --beam-size 2 or more")

    for model in (teacher, *others):
        require_model(model)
    require_texts(source, reference, *(valid or ()))

    from pellucid.text.config import require_one_side
    from pellucid.training.synthesis import Finish

    require_one_side(*(str(each) for each in (source, reference) if each is not None))

    translator = open_translator(teacher, search, engine=engine, others=others, figures=False)
    _warn_of_languages(translator, source, out)
    settings = translator.settings

    if reference is None:
        settings = settings.having(n_best=1)
    elif settings.n_best == 1:
        # Only a list of hypotheses has one that is nearest to the reference.
        if settings.beam_size == 1:
            raise click.UsageError("--reference needs several translations: --beam-size 2 or more")
        settings = settings.having(n_best=settings.beam_size)

    translator = translator.with_settings(settings)
    finish = Finish(reference=reference, measure=measure or "chrf")
    quiet = obj["quiet"]
    if student is None:
        assert out is not None
        code = _write(translator, source, out, finish, quiet=quiet)
        if code == 0:  # stdout holds the path alone, for scripts
            click.echo(out)
        return code

    from pellucid.cli.student import Order, make_student
    from pellucid.evaluation.signature import bundle_hash, manifest_of

    assert valid is not None
    order = Order(
        teacher=bundle_hash(manifest_of(translator)),
        source=source,
        valid=valid,
        minutes=minutes or _STUDENT_MINUTES,
        settings=overrides,
        search=settings.model_dump(mode="json"),
        finish={"reference": str(reference or ""), "measure": finish.measure},
        from_teacher=from_teacher,
        aligned=aligned,
    )

    def write_taught(path: Path) -> int:
        return _write(translator, source, str(path), finish, quiet=quiet)

    return make_student(translator, order, student, write_taught, quiet=quiet)


@click.command()
@click.argument("reverse_bundle", type=NAME)
@click.argument("target_text", type=NAME)
@_written_lines_option
@single_search_options
@sampling_options
@click.option("--noise", is_flag=True, help="Leave out, blank and move words of the translations.")
@click.option(
    "--noise-seed",
    type=click.IntRange(0),
    help="With --noise: another seed draws other noise.  [default: 0]",
)
@click.option("--blank", help="With --noise: what a blanked word becomes.  [default: _]")
@click.option("--tag", default="", help="Written before every made sentence, such as <bt>.")
@click.option(
    "--forward",
    type=NAME,
    help="The bundle that will learn from it: TAG must be made of its tokens.",
)
@engine_options
@click.pass_obj
def backtranslate(
    obj: dict[str, bool],
    reverse_bundle: str,
    target_text: str,
    out: str,
    search: Choices,
    engine: Choices,
    sampling: Choices,
    noise: bool,
    noise_seed: int | None,
    blank: str | None,
    tag: str,
    forward: str | None,
) -> int:
    """Write a source line for every line of the file TARGET_TEXT.

    REVERSE_BUNDLE translates from the target language into the source language. By default it
    searches with a beam; --sample draws, --noise spoils the translations. Blank lines stay blank.
    If it is stopped or killed, the same command goes on where it was.

    \b
    Examples:
      pellucid backtranslate runs/de-en news.de --out news.en --sample
      pellucid backtranslate runs/de-en news.de --out news.en --noise --tag "<bt>"
    """
    if not noise and (noise_seed is not None or blank is not None):
        raise click.UsageError("--noise-seed and --blank must go with --noise.")
    require_model(reverse_bundle)
    require_texts(target_text)

    from pellucid.text.config import require_one_side
    from pellucid.training.synthesis import Finish

    require_one_side(str(target_text))

    translator = open_translator(
        reverse_bundle, search, sampling=sampling, engine=engine, figures=False
    )
    _warn_of_languages(translator, target_text, out)
    if tag:
        _check_tag(tag, forward, translator.bundle.target_tokenizer)

    settings = translator.settings.having(n_best=1)  # one source line for each target line
    translator = translator.with_settings(settings)
    finish = Finish(
        noise_seed=(noise_seed or 0) if noise else None,
        blank="_" if blank is None else blank,
        tag=tag,
    )
    code = _write(translator, target_text, out, finish, quiet=obj["quiet"])
    if code == 0:  # stdout holds the path alone, for scripts
        click.echo(out)
    return code


def _warn_of_languages(translator: "Translator", text: str, out: str | None) -> None:
    """Log a warning if the names of both files tell other languages than the model translates."""
    from pellucid.cli.evaluate import other_languages

    problem = other_languages(translator, text, out or "")
    if problem:
        logging.getLogger("pellucid").warning("%s", problem)


@click.command()
@click.argument("source", type=PATH)
@_written_lines_option
@click.option("--lines", type=click.IntRange(1), help="How many to make.  [default: as SOURCE has]")
@click.option(
    "--unit",
    type=click.Choice(("word", "character")),
    default="word",
    help="What sentences are made of; words are separated by spaces.  [default: word]",
)
@click.option(
    "--overlap",
    type=click.IntRange(1),
    default=2,
    help="Units in a row that both lines share where one goes over into the other.  [default: 2]",
)
@click.option(
    "--seed", type=click.IntRange(0), default=0, help="The same seed makes the same.  [default: 0]"
)
@click.pass_obj
def recombine(
    obj: dict[str, bool],
    source: Path,
    out: str,
    lines: int | None,
    unit: "Unit",
    overlap: int,
    seed: int,
) -> int:
    """Write new sentences that begin as one line of the file SOURCE and end as another.

    Both lines share two words in a row (--overlap), where the new one goes over from one to the
    other. No line of SOURCE is written, and none twice. Translated by a teacher (pellucid distill),
    they are further pairs to train a student on.

    \b
    Examples:
      pellucid recombine train.en --lines 60000 --out made.en
      pellucid recombine words.txt --unit character --overlap 3 --out made.txt
    """
    from pellucid.core.errors import DataError, OutputExistsError
    from pellucid.text.config import require_one_side
    from pellucid.text.corpus.lines import read_lines
    from pellucid.text.corpus.readers import input_exists
    from pellucid.text.corpus.writers import check_output, open_output
    from pellucid.text.recombination import recombined
    from pellucid.text.scripts import SPACELESS_LETTER

    check_output(out)
    if input_exists(out):
        raise OutputExistsError(
            f"{out} is already there", hint="choose another --out, or remove it"
        )
    require_one_side(str(source))
    given = [line for line in read_lines(source) if line.strip()]
    wanted = len(given) if lines is None else lines
    made = list(itertools.islice(recombined(given, seed, unit=unit, overlap=overlap), wanted))
    advice = "give more text" if overlap == 1 else f"try --overlap {overlap - 1}"
    if unit == "word" and len(made) < wanted:
        without = sum(
            len(line.split()) < overlap + 2 and SPACELESS_LETTER.search(line) is not None
            for line in given
        )
        if 2 * without > len(given):
            advice = "try --unit character, as most lines have no spaces between words"
        elif 2 * sum(len(line.split()) == 1 for line in given) > len(given):
            advice = "try --unit character, as most lines are one word"
    if not made:
        raise DataError(
            f"nothing new can be made of {source}: no two lines share {overlap} {unit}s in a row"
            " between others",
            hint=advice,
        )
    if len(made) < wanted:
        logging.getLogger("pellucid").warning(
            "only %s of %s new lines can be made of %s; %s",
            f"{len(made):,}",
            f"{wanted:,}",
            source,
            advice,
        )

    with open_output(out) as file:
        file.write("".join(f"{line}\n" for line in made).encode())
    if not obj["quiet"]:
        click.echo(f"{len(made):,} lines are made", err=True)
    click.echo(out)
    return 0


def _check_tag(tag: str, forward: str | None, own: "Tokenizer") -> None:
    """Raise ConfigError for a tag that the forward model cannot read.

    Without a forward model the tag is checked with the tokenizer of this one, and only a warning is
    logged: the forward model may not exist yet.
    """
    from pellucid.bundle import load_bundle
    from pellucid.core.errors import ConfigError
    from pellucid.training.synthesis import check_tag

    if forward is not None:
        # A tag of unknown characters would be UNK in every line, and teach nothing.
        check_tag(tag, load_bundle(forward).source_tokenizer)
        return
    try:
        check_tag(tag, own)
    except ConfigError as error:
        logging.getLogger("pellucid").warning(
            "%s; the forward model's tokenizer must be trained on text that holds it", error
        )


class _Reporter:
    """Reports progress on stderr every few seconds."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._began = self._last_line = time.monotonic()
        self.last: SynthesisProgress | None = None

    def __call__(self, progress: "SynthesisProgress") -> None:
        """Take a report of the progress, and print it if enough time has passed."""
        is_first, self.last = self.last is None, progress
        now = time.monotonic()
        # The first report comes at once and says how much an earlier call has written.
        if is_first:  # lines of an earlier run do not count in the rate
            self._began = self._last_line = now
            if progress.lines:
                self._tell(f"going on after {_counted(progress)}")
        elif now - self._last_line >= _SECONDS_BETWEEN_LINES:
            self._last_line = now
            rate = (progress.lines - progress.lines_before) / (now - self._began)
            self._tell(f"{_counted(progress)}, {rate:,.0f} lines/s")

    def _tell(self, text: str) -> None:
        if not self._quiet:
            click.echo(text, err=True)


def _counted(progress: "SynthesisProgress") -> str:
    """``12,288 of 29,000 lines``."""
    return f"{progress.lines:,} of {progress.total:,} lines"


def _write(
    translator: "Translator", source: str, out: str, finish: "Finish", *, quiet: bool
) -> int:
    """Write ``out`` to its end or until a signal, and return the exit code.

    Raises what ``write_translations`` raises.
    """
    from pellucid.cli.display import EXIT_CODES, StopRequests
    from pellucid.training.synthesis import write_translations

    reporter = _Reporter(quiet=quiet)
    # A stop request is heard between two blocks of lines.
    stop = StopRequests()
    reason = write_translations(
        translator, Path(source), out, finish, listener=reporter, should_stop=stop
    )

    assert reporter.last is not None
    if reason is not None:
        click.echo(
            f"{_counted(reporter.last)} are done; the same command goes on after them", err=True
        )
        return EXIT_CODES[reason]
    if not quiet:
        click.echo(f"{_counted(reporter.last)} are done", err=True)
    return 0
