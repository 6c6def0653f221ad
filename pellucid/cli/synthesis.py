"""Shared by ``distill`` and ``backtranslate``: options of noise, progress, and stopping."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from pellucid.decoding.translator import Translator
    from pellucid.training.synthesis import Finish, Progress

_SECONDS_BETWEEN_LINES = 5.0
_Command = TypeVar("_Command", bound=Callable[..., Any])
_NOISE_KEY = "pellucid.noise"
"""The key of the noise options in ``click.Context.meta``."""


def _remember_noise(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
    if value is not None and value is not False:  # but 0 is a value
        ctx.meta.setdefault(_NOISE_KEY, {})[parameter.name] = value


def noise_options(command: _Command) -> _Command:
    """Give a command ``--noise`` and the options that go with it."""
    for option in (
        click.option(
            "--blank",
            expose_value=False,
            callback=_remember_noise,
            help="With --noise: what a blanked word becomes.  [default: _]",
        ),
        click.option(
            "--noise-seed",
            type=click.IntRange(0),
            expose_value=False,
            callback=_remember_noise,
            help="With --noise: another seed draws other noise.  [default: 0]",
        ),
        click.option(
            "--noise",
            is_flag=True,
            expose_value=False,
            callback=_remember_noise,
            help="Leave out, blank and move words of what it said.",
        ),
    ):
        command = option(command)
    return command


def asked_noise() -> tuple[int | None, str]:
    """The seed of the noise (None without noise), and the replacement of a blanked word.

    Raises click.UsageError for options of noise without ``--noise``.
    """
    ctx = click.get_current_context()
    asked: dict[str, Any] = dict(ctx.meta.get(_NOISE_KEY, {}))
    wanted = asked.pop("noise", False)
    if asked and not wanted:
        raise click.UsageError("--noise-seed and --blank must go with --noise.", ctx)
    return (asked.get("noise_seed", 0) if wanted else None), asked.get("blank", "_")


class _Reporter:
    """Reports progress on stderr every few seconds."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._began = self._told = time.monotonic()
        self.last: Progress | None = None

    def __call__(self, progress: "Progress") -> None:
        """Take a report of the progress, and print it if enough time has passed."""
        is_first, self.last = self.last is None, progress
        now = time.monotonic()
        if is_first:  # lines of an earlier run do not count in the rate
            self._began = self._told = now
            if progress.lines:
                self._tell(f"going on after {counted(progress)}")
        elif now - self._told >= _SECONDS_BETWEEN_LINES:
            self._told = now
            rate = (progress.lines - progress.lines_before) / (now - self._began)
            self._tell(f"{counted(progress)}, {rate:,.0f} lines/s")

    def _tell(self, text: str) -> None:
        if not self._quiet:
            click.echo(text, err=True)


def counted(progress: "Progress") -> str:
    """``12,288 of 29,000 lines``."""
    of = "" if progress.total is None else f" of {progress.total:,}"
    return f"{progress.lines:,}{of} lines"


def write(
    translator: "Translator", source: str, out: Path, finish: "Finish", *, quiet: bool
) -> int:
    """Write ``out`` to its end or until a signal, and return the exit code.

    Raises what ``write_translations`` raises.
    """
    from pellucid.cli.display import EXIT_CODES, StopRequests
    from pellucid.training.synthesis import write_translations

    reporter = _Reporter(quiet=quiet)
    stop = StopRequests()
    reason = write_translations(
        translator, Path(source), out, finish, listener=reporter, should_stop=stop
    )

    assert reporter.last is not None
    if reason is not None:
        click.echo(
            f"{counted(reporter.last)} are done; the same command goes on after them", err=True
        )
        return EXIT_CODES[reason]
    if not quiet:
        click.echo(f"{counted(reporter.last)} are done", err=True)
    click.echo(str(out))
    return 0
