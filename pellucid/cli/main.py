"""The command ``pellucid``: finds a command, runs it, and turns errors into one clear line."""

import os
import signal
import sys
import traceback
from pathlib import Path

import click

from pellucid import __version__
from pellucid.cli.commands import COMMAND_NAMES, load_command
from pellucid.core.errors import PellucidError

INTERNAL_ERROR = 70
"""Exit code of a defect in Pellucid itself (sysexits.h, EX_SOFTWARE)."""
IO_ERROR = 74
"""Exit code of a file or stream that failed in mid-use (sysexits.h, EX_IOERR)."""


class _Commands(click.Group):
    """Loads a command's file only when it is asked for, so that ``--help`` answers at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click calls it so
        return list(COMMAND_NAMES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        for name in COMMAND_NAMES:
            if name == cmd_name:
                return load_command(name)
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from pellucid.core.config import nearest_name

            nearest = nearest_name(args[0], COMMAND_NAMES)
            if nearest:
                raise click.UsageError(f"{error.message} Did you mean {nearest}?", ctx) from None
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
@click.pass_context
def cli(ctx: click.Context, debug: bool, quiet: bool) -> None:
    """Train, open up and ship encoder-decoder Transformers.

    \b
    Examples:
      pellucid demo
      pellucid train multi30k --set data.source=train.en --set data.target=train.de --out runs/de
      echo "A dog runs." | pellucid translate runs/de
    """
    ctx.obj = {"debug": debug, "quiet": quiet}


def main() -> None:
    """Run the command line and leave with the documented exit code."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `pellucid ... | head` ends quietly
    _fill_closed_streams()
    debug = "--debug" in sys.argv
    _set_up_logging(quiet="-q" in sys.argv or "--quiet" in sys.argv)
    try:
        arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
        code = cli.main(args=arguments, standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
        sys.exit(code if isinstance(code, int) else 0)
    except click.exceptions.Abort:
        _leave("interrupted", 130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        _leave("interrupted", 130)
    except PellucidError as error:
        if debug:
            traceback.print_exc()
        hint = f"; hint: {error.hint}" if error.hint else ""
        _leave(f"error: {_one_line(str(error))}{hint}", error.exit_code)
    except OSError as error:
        if debug:
            traceback.print_exc()
        place = f"{error.filename}: " if error.filename else ""
        _leave(f"error: {place}{error.strerror or error}", IO_ERROR)
    except Exception as error:
        if debug:
            traceback.print_exc()
        reason = _one_line(f"{type(error).__name__}: {error}")
        _leave(
            f"error: internal: {reason}; hint: run again with --debug and report it", INTERNAL_ERROR
        )


def _fill_closed_streams() -> None:
    """A file that is opened later must not be taken for a stream that the shell has closed."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if stream is None:
            os.open(os.devnull, os.O_RDWR)
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # for good


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _leave(message: str, code: int) -> None:
    click.echo(message, err=True)
    _drop_unwritten_output()
    sys.exit(code)


def _drop_unwritten_output() -> None:
    """What stdout could not take must not be tried, and complained about, once more at exit."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _set_up_logging(*, quiet: bool) -> None:
    import logging

    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    logger = logging.getLogger("pellucid")
    logger.addHandler(handler)
    logger.setLevel(logging.WARNING if quiet else logging.INFO)
