"""The command ``pellucid``: the table of commands, the group that loads them, and ``main``.

The file of a command is imported only when that command runs. ``main``
turns every error into a line on stderr (wrong usage: with the usage above it) and a documented
exit code.
"""

import os
import re
import sys
import traceback
from typing import NoReturn

import click

from pellucid.cli import streams
from pellucid.cli.signals import end_on_signals
from pellucid.core import system
from pellucid.core.errors import MissingExtraError, PellucidError
from pellucid.core.version import __version__

TASKS: dict[str, dict[str, str]] = {
    "Train": {
        "demo": "Train a small French-English model in three minutes.",
        "train": "Train a model from two text files, a config or a preset.",
        "presets": "List the presets and what each is for.",
        "config": "Print a preset whole, as a config file to edit.",
        "average": "Average the parameters of several models into one.",
        "check": "Check parallel text for errors before training on it.",
        "prepare": "Clean and tokenize a large corpus, here or on Ray.",
        "runs": "List training runs, the best first.",
        "plot": "Plot the loss, BLEU and learning rate of runs.",
        "verify-resume": "Prove that a killed and resumed run equals an unbroken one.",
    },
    "Translate": {
        "translate": "Translate a file, or standard input.",
        "join": "Join the parts that many processes translated.",
        "serve": "Serve models over HTTP, with a web page.",
    },
    "Evaluate": {
        "evaluate": "Translate a test set and score it: BLEU, chrF and others.",
        "compare": "Compare two models, or one under other settings.",
        "score": "Give the log-probability of given translations.",
    },
    "Look inside": {
        "inspect": "Show what happens inside a model as it translates.",
        "ablate": "Measure what each attention head and each layer contributes.",
        "doctor": "Check this installation, and the equations on this machine.",
    },
    "Generate training text": {
        "distill": "Let a larger model translate training text for a smaller.",
        "backtranslate": "Make source sentences for target text that has none.",
        "recombine": "Make new sentences from parts of given ones.",
    },
    "Monolingual models": {
        "fill": "Fill in masked words with an encoder.",
        "continue": "Continue a text with a decoder.",
        "vectors": "Train word vectors and look up neighbors.",
    },
    "Exchange": {
        "import": "Convert a model of Marian, OPUS-MT or Firefox to a bundle.",
        "export": "Convert a bundle for other programs, or to a page.",
        "publish": "Write a model with its card, and send it to the Hub.",
    },
}
"""The commands as ``--help`` lists them: by task, each with a line."""
COMMAND_NAMES = tuple(sorted(name for lines in TASKS.values() for name in lines))


def load_command(name: str) -> click.Command | None:
    """The command of that name, whose file is imported now; None if there is none."""
    match name:
        case "ablate":
            # Imported here and not above: most commands import PyTorch, which takes seconds, and
            # `--help` and a mistyped command must not wait for it.
            from pellucid.cli.ablate import ablate as command
        case "average":
            from pellucid.cli.runs import average as command
        case "backtranslate":
            from pellucid.cli.synthesis import backtranslate as command
        case "check":
            from pellucid.cli.check import check as command
        case "compare":
            from pellucid.cli.compare import compare as command
        case "config":
            from pellucid.cli.train import config as command
        case "continue":
            from pellucid.cli.plain_text import continue_ as command
        case "demo":
            from pellucid.cli.demo import demo as command
        case "distill":
            from pellucid.cli.synthesis import distill as command
        case "doctor":
            from pellucid.cli.doctor import doctor as command
        case "evaluate":
            from pellucid.cli.evaluate import evaluate as command
        case "export":
            from pellucid.cli.exchange import export as command
        case "fill":
            from pellucid.cli.plain_text import fill as command
        case "import":
            from pellucid.cli.exchange import import_ as command
        case "inspect":
            from pellucid.cli.inspect_ import inspect as command
        case "join":
            from pellucid.cli.parts import join as command
        case "plot":
            from pellucid.cli.runs import plot as command
        case "prepare":
            from pellucid.cli.check import prepare as command
        case "presets":
            from pellucid.cli.train import presets as command
        case "publish":
            from pellucid.cli.publish import publish as command
        case "recombine":
            from pellucid.cli.synthesis import recombine as command
        case "runs":
            from pellucid.cli.runs import runs as command
        case "score":
            from pellucid.cli.evaluate import score as command
        case "serve":
            from pellucid.cli.serve import serve as command
        case "train":
            from pellucid.cli.train import train as command
        case "translate":
            from pellucid.cli.translate import translate as command
        case "vectors":
            from pellucid.cli.plain_text import vectors as command
        case "verify-resume":
            from pellucid.cli.doctor import verify_resume as command
        case _:
            return None
    return command


INTERNAL_ERROR = 70
"""Exit code of a defect in Pellucid itself (sysexits.h, EX_SOFTWARE)."""
TEXT_ERROR = 65
"""Exit code of text that cannot be written (sysexits.h, EX_DATAERR)."""
MEMORY_ERROR = 71
"""Exit code of a machine without enough memory (sysexits.h, EX_OSERR)."""
IO_ERROR = 74
"""Exit code of a file or stream that failed in mid-use (sysexits.h, EX_IOERR)."""


_OUT_OF_MEMORY = (
    "there is not enough memory for this; hint: smaller batches, models and beams take less, and"
    " other programs may hold some"
)


class _Commands(click.Group):
    """Loads a command's file only when it is asked for, so that ``--help`` answers at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click calls it so
        """All commands, without importing one."""
        return list(COMMAND_NAMES)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The commands by task, each with its line."""
        for task, lines in TASKS.items():
            with formatter.section(task):
                # The same width in every section, so that the lines below one another align.
                width = max(map(len, COMMAND_NAMES))
                formatter.write_dl([(name.ljust(width), line) for name, line in lines.items()])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command of that name; None if there is none."""
        return load_command(cmd_name)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the line as click does, which prints ``--help`` and ``--version``."""
        try:
            return super().parse_args(ctx, args)
        except BrokenPipeError:
            streams.end_like_a_filter()

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; end as a filter does if the reader of stdout has gone."""
        try:
            return super().invoke(ctx)
        except click.NoSuchOption as error:
            if error.option_name not in ("-q", "--quiet", "-v", "--verbose"):
                raise
            place = f"pellucid {error.option_name} {ctx.invoked_subcommand}"
            message = (
                f"No such option {error.option_name!r} here. Before the command it is: {place}"
            )
            raise click.UsageError(message, error.ctx) from None
        except BrokenPipeError:
            # Caught before click sees it, whose handler turns it into a failure with exit code 1.
            streams.end_like_a_filter()

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command of the line; for an unknown one the error names one that resembles it."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from pellucid.core.near_names import did_you_mean

            meant = did_you_mean(args[0], (*COMMAND_NAMES, "--help"))
            if meant:
                raise click.UsageError(f"{error.message} {meant.capitalize()}", ctx) from None
            raise


@click.group(
    cls=_Commands,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "token_normalize_func": lambda token: token.replace("_", "-"),
    },
)
@click.version_option(__version__, prog_name="pellucid")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.option("-q", "--quiet", is_flag=True, help="Show warnings and errors only.")
@click.option("-v", "--verbose", is_flag=True, help="Print which engine translates, and why.")
@click.pass_context
def cli(ctx: click.Context, debug: bool, quiet: bool, verbose: bool) -> None:
    """Train, open up and ship encoder-decoder Transformers.

    \b
    Examples:
      pellucid demo
      pellucid train train.en train.de --minutes 30 --out runs/de
      echo "A dog runs." | pellucid translate runs/de
    """
    ctx.obj = {"debug": debug, "quiet": quiet}
    _set_level(quiet=quiet, verbose=verbose)

    # A filter must end when its reader does. Training and serving must not: for
    # them stdout is only a report.
    if ctx.invoked_subcommand not in streams.FILTERS:
        streams.keep_going_without_a_reader()


def main() -> None:
    """Run the command line and leave with the documented exit code."""
    streams.prepare_streams()
    end_on_signals()

    # Before PyTorch is imported, whose OpenMP reads it once. A thread that waits for another spins
    # for a millisecond, which is fastest on a quiet machine; on busy cores the one that it waits
    # for cannot run meanwhile, and an update of the demo took five times as long.
    if system.is_busy():
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")

    # `--debug` is read by hand, so that it works at any place of the line and for errors that click
    # raises while it parses.
    given = sys.argv[1:]
    options = given[: given.index("--")] if "--" in given else given
    debug = "--debug" in options
    _set_up_logging()

    try:
        arguments = [argument for argument in options if argument != "--debug"]
        arguments += given[len(options) :]
        # Without standalone mode click raises its errors instead of exiting, so that all
        # exit codes are chosen below.
        code = cli.main(args=arguments, standalone_mode=False)

        # Flush while errors are still caught: a full disk or a closed pipe may show only now.
        if sys.stdout is not None:
            sys.stdout.flush()
        sys.exit(code if isinstance(code, int) else 0)
    except (click.exceptions.Abort, KeyboardInterrupt):
        _leave("interrupted", 130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except Exception as error:
        if streams.is_broken_pipe(error):
            streams.end_like_a_filter()
        if debug:
            traceback.print_exc()
        message, code = _described(error)
        # One line, for people who read it and programs that search it.
        _leave(f"error: {message}", code)


def _described(error: Exception) -> tuple[str, int]:
    """The line that says what went wrong and what to do, and the exit code."""
    if isinstance(error, ModuleNotFoundError):
        purpose = " ".join(["pellucid", *sys.argv[1:2]])
        error = MissingExtraError.of_training(error, purpose) or error
    match error:
        case PellucidError():
            hint = f"; hint: {error.hint}" if error.hint else ""
            return f"{_one_line(str(error))}{hint}", error.exit_code
        case OSError():
            place = f"{error.filename}: " if error.filename else ""
            return f"{place}{error.strerror or error}", IO_ERROR
        case UnicodeEncodeError():
            return (
                f"text and names of files must be Unicode, got {error.object[error.start]!a};"
                " hint: rename the file, or set LC_ALL=C.UTF-8",
                TEXT_ERROR,
            )
        case _ if _is_out_of_memory(error):
            return _OUT_OF_MEMORY, MEMORY_ERROR
        case _:
            reason = _one_line(f"{type(error).__name__}: {error}")
            hint = "run again with --debug and report it"
            return f"internal: {reason}; hint: {hint}", INTERNAL_ERROR


_OF_MEMORY = ("out of memory", "can't allocate memory", "ALLOC_FAILED")
"""Words that the errors of PyTorch's allocators, CUDA, cuBLAS and CTranslate2 have in common."""


def _is_out_of_memory(error: Exception) -> bool:
    """Whether Python, PyTorch, CUDA's libraries or CTranslate2 say that memory ran out."""
    if isinstance(error, MemoryError):
        return True
    # PyTorch's own errors are of this class; importing it to name them would take seconds.
    return isinstance(error, RuntimeError) and any(each in str(error) for each in _OF_MEMORY)


def _one_line(text: str) -> str:
    # Only at its line ends: a name of a file may have two spaces in a row.
    return re.sub(r"\s*[\r\n]+\s*", " ", text.strip())


def _leave(message: str, code: int) -> NoReturn:
    click.echo(message, err=True)
    # What cannot be written now would fail again at exit, with a second message.
    streams.drop_unwritten_output()
    sys.exit(code)


def _set_up_logging() -> None:
    import logging

    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    # On our own logger: the root logger belongs to the importing program.
    logging.getLogger("pellucid").addHandler(handler)


def _set_level(*, quiet: bool, verbose: bool) -> None:
    """Choose which log lines are shown; those about engines help only when diagnosing speed."""
    import logging

    logging.getLogger("pellucid").setLevel(logging.WARNING if quiet else logging.INFO)
    shows_engines = verbose and not quiet
    logging.getLogger("pellucid.backends").setLevel(
        logging.INFO if shows_engines else logging.WARNING
    )
