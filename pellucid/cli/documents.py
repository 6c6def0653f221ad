"""``pellucid translate MODEL report.docx``: documents in, documents out, with their formatting."""

import codecs
import os
import shlex
import sys
import time
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pellucid.cli.options import Choices, refuse_to_replace
from pellucid.cli.streams import standard_input, standard_output, visible
from pellucid.core.errors import InputMissingError, PellucidError, WriteError
from pellucid.core.files import open_user_file, write_errors
from pellucid.documents.names import TABLES, WITH_COLUMNS

if TYPE_CHECKING:
    from pellucid.decoding.translator import Translator
    from pellucid.documents.formats import ReadOptions
    from pellucid.documents.names import Format

_EVERY_SECONDS = 2.0
_REFUSED = {
    "n_best": "--n-best",
    "align": "--align",
    "must": "--must",
    "prefix": "--prefix",
}
"""Options that are about single lines."""
_SHOWN = 10
"""Files of a folder that are left out and named."""
_KEPT_BESIDE = ("~$", "._")
"""How the names begin that Word and macOS give to what they keep beside a document."""
LINES = "lines"
"""The format that reads any file line by line."""


def reads_documents(file: str, kind: str | None) -> bool:
    """Whether ``file`` is a document or a folder of them; ``kind`` is that of ``--format``."""
    from pellucid.documents.names import is_document

    if kind is not None:
        return kind != LINES
    return file != "-" and (is_document(file) or Path(file).is_dir())


def refuse_line_options(search: Choices, others: dict[str, bool]) -> None:
    """Raise click.UsageError for options that a document has no use for."""
    named = [option for name, option in _REFUSED.items() if name in search]
    named += [option for option, is_given in others.items() if is_given]
    if named:
        raise click.UsageError(
            f"{', '.join(named)} cannot be used with documents; --format lines reads FILE as lines."
        )


def translate_files(
    translator: "Translator",
    file: str,
    output: str,
    *,
    kind: "Format | None",
    columns: Sequence[str],
    keep_numbers: bool,
    guard_cells: bool,
    quiet: bool,
) -> int:
    """Translate a document, or each one in a folder into the folder ``output``.

    Returns 1 if a file of the folder could not be translated; the others are. Raises
    click.UsageError, and what reading and translating a single document raises.
    """
    from pellucid.documents.formats import ReadOptions
    from pellucid.documents.names import ENDINGS, ending_of, format_of, is_document

    options = ReadOptions(columns=tuple(columns), guard_cells=guard_cells)
    source = Path(file)
    if file == "-" or not source.is_dir():
        read_as = kind or format_of("standard input" if file == "-" else source.name)
        _refuse_useless(options, {read_as})
        _translate_one(translator, file, output, kind, options, keep_numbers, quiet)
        return 0

    if output == "-":
        raise click.UsageError("-o must name a folder for the documents of a folder.")
    target = Path(output)
    files, links, unreadable = _listed(source, target)
    candidates = [path for path in files if not path.name.startswith(_KEPT_BESIDE)]
    if kind is None:
        found = [path for path in candidates if is_document(path.name)]
    else:
        found = [path for path in candidates if _may_be(path, kind)]
    places = [target / path.relative_to(source) for path in found]
    if {path.resolve() for path in files}.intersection(place.resolve() for place in places):
        raise click.UsageError(
            "-o must not be FILE itself, nor a folder in which the translation of one document"
            " replaces another one: the originals would be lost."
        )
    documents = set(found)
    others = [path for path in files if path not in documents]
    _name_left_out(f"not {kind}" if kind else "not documents", others)
    _name_left_out("symbolic links", links)
    if not found and not unreadable:
        raise InputMissingError(f"{file} must hold a document, has none")
    if found:
        _refuse_useless(options, {kind or ENDINGS.get(ending_of(each.name)) for each in found})

    failures = len(unreadable)
    for error in unreadable:
        click.echo(visible(f"error: cannot read {error.filename}: {error.strerror}"), err=True)
    for path, place in zip(found, places, strict=True):
        try:
            with write_errors(place):
                place.parent.mkdir(parents=True, exist_ok=True)
            _translate_one(translator, str(path), str(place), kind, options, keep_numbers, quiet)
        except PellucidError as problem:
            # One bad file does not stop a folder, and each is named with its reason.
            failures += 1
            hint = f"; hint: {problem.hint}" if problem.hint else ""
            click.echo(visible(f"error: {path}: {problem}{hint}"), err=True)
    return 1 if failures else 0


def _listed(source: Path, target: Path) -> tuple[list[Path], list[Path], list[OSError]]:
    """The files below a folder, its symbolic links, and an error for each folder in it that cannot
    be read; ``target``, which may be in it, is left out."""
    files: list[Path] = []
    links: list[Path] = []
    unreadable: list[OSError] = []
    for name, folders, names in os.walk(source, onerror=unreadable.append):
        folder = Path(name)
        links += [path for each in (*folders, *names) if (path := folder / each).is_symlink()]
        files += [path for each in names if (path := folder / each).is_file()]
        folders[:] = [each for each in folders if (folder / each).resolve() != target.resolve()]

    linked = set(links)
    return sorted(path for path in files if path not in linked), sorted(links), unreadable


def _refuse_useless(options: "ReadOptions", formats: "AbstractSet[Format | None]") -> None:
    """Raise click.UsageError for options that none of these formats has a use for."""
    named = ", ".join(sorted(filter(None, formats)))
    if options.columns and not formats & WITH_COLUMNS:
        raise click.UsageError(f"--columns is for {', '.join(sorted(WITH_COLUMNS))}, not {named}.")
    if options.guard_cells and not formats & TABLES:
        raise click.UsageError(f"--guard-cells is for {' and '.join(sorted(TABLES))}, not {named}.")


def _is_of_another_format(name: str, kind: "Format") -> bool:
    """Whether a file's name ends as documents do, but not those of this format."""
    from pellucid.documents.names import ENDINGS, ending_of, is_document

    return is_document(name) and ENDINGS.get(ending_of(name)) != kind


def _may_be(path: Path, kind: "Format") -> bool:
    """Whether a file of a folder may be of a format, by the end of its name; where that does not
    tell, by its first bytes, which those of a picture are not.
    """
    from pellucid.documents.names import ENDINGS, PACKED, ending_of

    if ENDINGS.get(ending_of(path.name)) == kind:
        return True
    if _is_of_another_format(path.name, kind):
        return False
    try:
        with path.open("rb") as opened:
            first = opened.read(1024)
    except OSError:
        return True  # it is named with the reason when it is read
    if kind in PACKED:
        return first.startswith(b"PK")
    return b"\0" not in first or first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))


def _name_left_out(reason: str, files: Sequence[Path]) -> None:
    """Print which files of a folder are left out, so that nobody looks for them in the result."""
    if files:
        more = f" and {len(files) - _SHOWN:,} more" if len(files) > _SHOWN else ""
        names = ", ".join(each.name for each in files[:_SHOWN])
        click.echo(visible(f"left out, {reason}: {names}{more}"), err=True)


def _translate_one(
    translator: "Translator",
    file: str,
    output: str,
    kind: "Format | None",
    options: "ReadOptions",
    keep_numbers: bool,
    quiet: bool,
) -> None:
    from pellucid.documents.markup import Counts
    from pellucid.documents.names import PACKED, format_of
    from pellucid.documents.translate import translate_document

    name = "standard input" if file == "-" else Path(file).name
    kind = kind or format_of(name)  # before a large file is read
    refuse_to_replace("-o", output, file)
    _check_output(output, kind, name)
    if output == "-":
        standard_output()  # raises if it is closed, before hours of translating
    if output == "-" and kind in PACKED and sys.stdout.isatty():
        raise click.UsageError(f"-o must name a file: a {kind} is nothing for a terminal.")

    counts = Counts()
    reports = _Reports(name)
    try:
        translated = translate_document(
            _bytes_of(file),
            translator,
            name,
            kind=kind,
            options=options,
            keep_numbers=keep_numbers,
            progress=None if quiet else reports,
            counts=counts,
        )
    finally:
        reports.end_line()
    if output == "-":
        with write_errors(Path("standard output")):
            standard_output().write(translated)
            standard_output().flush()
    else:
        with open_user_file(Path(output)) as out:
            out.write(translated)
    for note in counts.notes:
        click.echo(f"{visible(name)}: {note}", err=True)


def _check_output(output: str, kind: "Format", name: str) -> None:
    """Raise for a place where the translation of the document of this name cannot be written,
    before hours of translating.
    """
    from pellucid.documents.names import is_document, is_plain

    if output == "-":
        return

    path = Path(output)
    if path.is_dir() or output.endswith("/"):
        raise WriteError(f"-o must name a file, {output} is a folder")
    if not path.resolve().parent.is_dir():
        raise WriteError(
            f"cannot write {output}: there is no folder {path.parent}",
            hint=f"mkdir -p {shlex.quote(str(path.parent))}",
        )

    # Of a link, the file that it names is replaced; a device is written to where it is.
    is_replaced = path.is_file() or not path.exists()
    if is_replaced and not os.access(path.resolve().parent, os.W_OK):
        raise WriteError(f"cannot write {output}: its folder may not be written to")
    is_text = is_plain(output) and is_document(name) and kind != "txt"
    if is_text or _is_of_another_format(output, kind):
        raise click.UsageError(
            f"-o must end as a {kind} does, got {path.name!r}: a document is not converted"
            " to another format."
        )


def _bytes_of(file: str) -> bytes:
    """The bytes of a file; of one too large, enough to be refused."""
    from pellucid.documents.containers import LARGEST_FILE

    if file == "-":
        return standard_input().read(LARGEST_FILE + 1)
    try:
        if not Path(file).exists():
            raise InputMissingError(f"there must be a file {file}, there is none")
        with Path(file).open("rb") as opened:  # a pipe, too: ``<(program)`` of a shell
            return opened.read(LARGEST_FILE + 1)
    except OSError as error:
        raise InputMissingError(f"cannot read {file}: {error.strerror}") from None


class _Reports:
    """Reports the progress of one document on stderr: a line that changes on a terminal."""

    def __init__(self, name: str) -> None:
        self._name = visible(name)
        self._last = time.monotonic()
        self._shows = sys.stderr is not None and sys.stderr.isatty()
        self._is_in_line = False

    def __call__(self, done: int, total: int) -> None:
        """Take a count of translated sentences, and show it if enough time has passed."""
        now = time.monotonic()
        is_end = done == total
        if not is_end and now - self._last < _EVERY_SECONDS and not (self._shows and done == 0):
            return
        self._last = now
        noun = "sentence" if total == 1 else "sentences"
        text = f"{self._name}: {done:,} of {total:,} {noun}"
        if self._shows:
            click.echo(f"\r{text}", err=True, nl=is_end)
            self._is_in_line = not is_end
        else:
            click.echo(text, err=True)

    def end_line(self) -> None:
        """End a line that an error left, so that its message has one of its own."""
        if self._is_in_line:
            click.echo(err=True)
