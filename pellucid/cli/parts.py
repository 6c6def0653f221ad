"""``pellucid translate --part`` and ``pellucid join``: one text, translated by many processes."""

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pellucid.cli.options import NAME, PATH

if TYPE_CHECKING:
    from pellucid.decoding.requests import Request
    from pellucid.decoding.result import Translation
    from pellucid.decoding.translator import Translator
    from pellucid.parts import Form, PartProgress

_SECONDS_BETWEEN_LINES = 30.0
"""Seconds; the output of many jobs of an array goes to as many files."""


def write_part(
    translator: "Translator",
    named: str,
    file: str,
    output: str,
    *,
    form: "Form",
    details: Mapping[str, Any],
    requests: "Callable[[Iterable[str]], Iterable[str | Request]]",
    render: "Callable[[int, Translation], bytes]",
    quiet: bool,
) -> int:
    """Write the part ``named`` of ``file`` into the folder ``output``; return the exit code.

    Raises what ``translate_part`` raises, click.UsageError without a file and a folder.
    """
    from pellucid.cli.display import EXIT_CODES, StopRequests
    from pellucid.parts import Part, PartTask, translate_part

    part = Part.parse(named)
    if file == "-" or output == "-":
        raise click.UsageError("--part needs a FILE to read and a folder -o to write into.")

    task = PartTask(Path(file), Path(output), form, details, requests, render)
    reporter = _Reporter(f"part {part.number} of {part.count}", quiet=quiet)
    # A stop request is heard between two blocks of lines.
    reason = translate_part(translator, task, part, listener=reporter, should_stop=StopRequests())
    if reason is not None:
        click.echo(f"{reporter.counted}; the same command goes on after them", err=True)
        return EXIT_CODES[reason]

    # stdout holds the path alone, for scripts.
    click.echo(str(task.text_path(part)))
    return 0


class _Reporter:
    """Reports the progress of a part on stderr, now and then."""

    def __init__(self, name: str, *, quiet: bool) -> None:
        self._name = name
        self._quiet = quiet
        self._last_report = float("-inf")
        self.counted = ""

    def __call__(self, progress: "PartProgress") -> None:
        """Take a report; print the first, the last, and others if enough time has passed."""
        self.counted = f"{self._name}: {progress.lines:,} of {progress.total:,} lines"
        now = time.monotonic()
        if progress.lines < progress.total and now - self._last_report < _SECONDS_BETWEEN_LINES:
            return
        self._last_report = now
        if not self._quiet:
            click.echo(self.counted, err=True)


@click.command()
@click.argument("folder", type=PATH)
@click.option("-o", "--output", type=NAME, default="-", help="File to write.  [default: stdout]")
def join(folder: Path, output: str) -> None:
    """Write the parts in FOLDER one after the other, as one translation.

    Every part must be there once, whole, and made from the same text, model and settings; nothing
    is written otherwise.

    \b
    Examples:
      pellucid join parts -o test.de
      pellucid join parts | gzip > test.de.gz
    """
    from pellucid.cli.options import require_texts
    from pellucid.cli.streams import opened

    require_texts(folder)

    from pellucid.parts import join_parts

    if output == "-":
        # What is written to stdout cannot be taken back: read twice, and hashed the first time.
        for _ in join_parts(folder, warns=False):
            pass
    pieces = join_parts(folder)
    with opened(output) as out:
        for piece in pieces:  # the writer of zstandard has no writelines
            out.write(piece)
