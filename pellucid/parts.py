"""Translates one file in parts, by processes that share nothing but a folder, and joins them.

Part 3 of 64 is a run of whole blocks of lines, whose place follows from the number of lines alone.
Each part is a file with a manifest that says what it was made from; ``join_parts`` copies the parts
of one text one after the other.

A batch decides in which order floating-point numbers are summed, so two batches can differ in the
last bits of a score, and a near-tie can then go the other way. Every block is therefore translated
as a list by itself, batches are never made across blocks, blocks begin at the same lines for any
number of parts, and parts made with another number of threads, another engine or another version
are not joined. So the joined text is that of ``--part 1/1``, byte for byte.
"""

import dataclasses
import hashlib
import itertools
import json
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal, Self

from pellucid.backends.user_cache import content_of
from pellucid.bundle import Bundle
from pellucid.core.errors import (
    ConfigError,
    CorruptError,
    DataError,
    InputMissingError,
    OutputExistsError,
    list_problems,
)
from pellucid.core.files import (
    manifest_text,
    read_plain,
    sha256_of,
    write_errors,
    write_file,
)
from pellucid.core.growing import GrowingFile
from pellucid.core.limits import parse_json, shown
from pellucid.core.system import processor_name
from pellucid.core.version import __version__
from pellucid.decoding.requests import Request, Translatable
from pellucid.decoding.result import Translation
from pellucid.decoding.translator import Translator
from pellucid.decoding.warnings import KINDS, WarningKind, WarningLog, in_words
from pellucid.text.corpus.addresses import address_of
from pellucid.text.corpus.lines import iterate_blocks, iterate_lines

_log = logging.getLogger("pellucid")

Form = Literal["text", "n-best", "json"]
"""The form of a line of a part."""

MOST_PARTS = 99_999
"""Parts of one text; their names have five digits."""
_NAME = re.compile(r"part-(\d{5})-of-(\d{5})\.manifest\.json")
_MANIFEST_SUFFIX = ".manifest.json"
_MANIFEST_VERSION = 1
_COPIED_AT_ONCE = 1 << 20
_SHOWN = 10
"""Missing parts that a message names."""


@dataclasses.dataclass(frozen=True)
class Part:
    """The ``number``-th of ``count`` parts, from 1."""

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """The part that ``3/64`` names. Raises ConfigError."""
        found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text)
        number, count = map(int, found.groups()) if found else (0, 0)
        if not 1 <= number <= count <= MOST_PARTS:
            raise ConfigError(
                f"a part must be K/N with K from 1 to N and N at most {MOST_PARTS:,},"
                f" got {shown(text)}",
                hint="where numbers begin at 0, add one: $((INDEX + 1))/64",
            )
        return cls(number, count)

    @property
    def name(self) -> str:
        """The beginning of its files' names, which sort as the parts follow one another."""
        return f"part-{self.number:05d}-of-{self.count:05d}"

    def lines(self, line_count: int, block_size: int) -> range:
        """The lines of this part, from 0, in a text of ``line_count`` lines.

        A part has whole blocks, except at the last line. No batch reaches across the end of a
        block, so batches are the same for any number of parts.
        """
        blocks = -(-line_count // block_size)
        first = (self.number - 1) * blocks // self.count
        end = self.number * blocks // self.count
        return range(min(first * block_size, line_count), min(end * block_size, line_count))


@dataclasses.dataclass(frozen=True)
class PartProgress:
    """How many lines of a part are written."""

    lines_before: int
    """Lines that an earlier call wrote."""
    lines: int
    """Lines written so far, those included."""
    total: int


@dataclasses.dataclass(frozen=True)
class PartTask:
    """A text to translate into parts, with its settings, which are the same for every part."""

    source: Path
    folder: Path
    form: Form
    details: Mapping[str, Any]
    """Further facts that decide the text, by name: options that the translator does not have."""
    requests: Callable[[Iterable[str]], Iterable[str | Request]]
    """The requests of lines, one for each."""
    render: Callable[[int, Translation], bytes]
    """The function that makes the line with this number, from 0."""

    def text_path(self, part: Part) -> Path:
        """The file with the lines of ``part``."""
        return self.folder / f"{part.name}.{'jsonl' if self.form == 'json' else 'txt'}"


def translate_part(
    translator: Translator,
    task: PartTask,
    part: Part,
    *,
    listener: Callable[[PartProgress], None],
    should_stop: Callable[[], str | None],
) -> str | None:
    """Write one part into the task's folder; None, or the reason that ``should_stop`` gave.

    The part appears when it is complete. Until then every finished block of ``stream_lines`` lines
    is kept, and the same call goes on after the last one, even after a kill. A part that is
    complete is compared with its manifest and left as it is.

    Raises as ``GrowingFile`` and ``Translator.translate`` do, InputMissingError for what cannot be
    read, DataError if the file changed meanwhile, CorruptError or OutputExistsError for a part
    that is damaged or was made otherwise.
    """
    before = _state_of(task.source)
    digest, line_count = _measure(task.source)
    block_size = translator.settings.stream_lines
    lines = part.lines(line_count, block_size)

    made_from = _made_from(translator, task, {"sha256": digest, "lines": line_count})
    text = task.text_path(part)
    with write_errors(task.folder):
        task.folder.mkdir(parents=True, exist_ok=True)
    if text.exists() and _is_complete(task.folder, part, text, made_from):
        listener(PartProgress(len(lines), len(lines), len(lines)))
        return None

    silent, log = translator.without_log(), WarningLog()
    with GrowingFile(text, {"part": f"{part.number}/{part.count}", **made_from}) as file:
        written = file.line_count
        listener(PartProgress(written, written, len(lines)))

        # Lines before the part, and those that are written already, are read and passed over.
        wanted = itertools.islice(iterate_lines(task.source), lines.start + written, lines.stop)
        requests = iter(task.requests(wanted))
        while block := list(itertools.islice(requests, block_size)):
            reason = should_stop()
            if reason is not None:
                return reason

            first = lines.start + file.line_count
            found = silent.translate_block(block, first + 1)
            for number, each in enumerate(found, first + 1):
                log.look(number, each)
            rendered = b"".join(task.render(first + n, each) for n, each in enumerate(found))
            file.append(rendered, len(block))
            listener(PartProgress(written, file.line_count, len(lines)))

        if file.line_count != len(lines) or _state_of(task.source) != before:
            raise DataError(
                f"{task.source} changed while it was translated",
                hint=f"remove {text.name}.partial and translate again",
            )

        log.end()
        # Before the text gets its name: a text under its own name always has a manifest.
        counts: dict[str, int] = {"lines": len(lines) - written}
        counts.update((kind, count) for kind, count in log.counts.items())
        _write_manifest(task.folder, part, lines, text, made_from, counts)
        file.finish()
    return None


def _is_complete(folder: Path, part: Part, text: Path, made_from: Mapping[str, Any]) -> bool:
    """Whether a part that is there is whole; raises if it was made otherwise."""
    path = folder / f"{part.name}{_MANIFEST_SUFFIX}"
    if not path.exists():
        raise OutputExistsError(
            f"{text} is already there, and no manifest says what it is",
            hint="name another folder, or remove it",
        )

    made = _read_manifest(path)
    differing = _differences(made.made_from, made_from)
    if differing:
        raise OutputExistsError(
            f"{text} was made otherwise: {differing}",
            hint="name another folder, or repeat the command it was made with",
        )
    if sha256_of(text) != made.sha256:
        raise CorruptError(f"{text} should have SHA-256 {made.sha256}", hint="remove it, and again")
    return True


@dataclasses.dataclass(frozen=True)
class _Made:
    """The manifest of a part."""

    path: Path
    part: Part
    first_line: int
    line_count: int
    text: Path
    size: int
    sha256: str
    made_from: dict[str, Any]
    processor: str
    warnings: dict[str, int]
    """Lines with a warning of each kind, and ``lines`` that were looked at: all but those that an
    earlier command wrote."""


def _write_manifest(
    folder: Path,
    part: Part,
    lines: range,
    text: Path,
    made_from: Mapping[str, Any],
    warnings: Mapping[str, int],
) -> None:
    partial = text.with_name(f"{text.name}.partial")

    content = {
        "version": _MANIFEST_VERSION,
        "kind": "part",
        "part": part.number,
        "parts": part.count,
        "first_line": lines.start + 1,
        "line_count": len(lines),
        "text": text.name,
        "size": partial.stat().st_size,
        "text_sha256": sha256_of(partial),
        "processor": processor_name(),
        "made_from": dict(made_from),
        "warnings": dict(warnings),
    }

    write_file(folder / f"{part.name}{_MANIFEST_SUFFIX}", manifest_text(content))


_LARGEST_MANIFEST, _MOST_VALUES = 1 << 20, 10_000
"""Bytes and values of the manifest of a part; a written one has some two thousand bytes."""


def _read_manifest(path: Path) -> _Made:
    """Raises CorruptError for anything but a manifest that ``_write_manifest`` wrote."""
    try:
        text = read_plain(path, _LARGEST_MANIFEST)
        table = parse_json(text, _MOST_VALUES)
        if table["version"] != _MANIFEST_VERSION or table["kind"] != "part":
            raise ValueError("it is no manifest of a part, or of an unknown version")
        if text != manifest_text(table):
            raise ValueError("its SHA-256 is not the one it ends with")

        made = _Made(
            path,
            Part.parse(f"{table['part']}/{table['parts']}"),
            table["first_line"],
            table["line_count"],
            path.with_name(table["text"]),
            table["size"],
            table["text_sha256"],
            table["made_from"],
            table["processor"],
            table["warnings"],
        )

        # The lines of a part follow from its number, so other ones are a sign of damage.
        block_size = made.made_from["decoding.stream_lines"]
        lines = made.part.lines(made.made_from["input"]["lines"], block_size)
        if lines != range(made.first_line - 1, made.first_line - 1 + made.line_count):
            raise ValueError("its lines are not those of the part")
    except (ConfigError, OSError, ValueError, KeyError, TypeError, ArithmeticError) as error:
        raise CorruptError(f"{path} is damaged: {error}", hint="make the part again") from error
    return made


def join_parts(folder: Path, *, warns: bool = True) -> Iterator[bytes]:
    """The text of all parts in ``folder``, in order, in pieces.

    With ``warns``, what may be wrong with it is logged.
    Everything but the bytes of the texts is checked before the first piece; each text is hashed
    while it is read, and its last piece comes only if the hash is right.

    Raises InputMissingError for a folder without parts, DataError if parts are missing, doubled or
    made from different things, CorruptError if one is damaged.
    """
    parts = _checked_parts(folder)
    if warns:
        _tell_warnings(parts)
    return itertools.chain.from_iterable(_copied(made) for made in parts)


def _checked_parts(folder: Path) -> list[_Made]:
    try:
        paths = sorted(folder.glob(f"*{_MANIFEST_SUFFIX}"))
        made = [_read_manifest(path) for path in paths[: MOST_PARTS + 1]]
    except OSError as error:
        raise InputMissingError(f"cannot read {folder}: {error.strerror}") from error
    if not made:
        raise InputMissingError(
            f"{folder} holds no finished part", hint="pellucid translate --part K/N -o FOLDER"
        )

    first = made[0]
    for each in made:
        if not _NAME.fullmatch(each.path.name) or each.path.name != (
            f"{each.part.name}{_MANIFEST_SUFFIX}"
        ):
            raise DataError(
                f"{each.path} says that it is part {each.part.number} of {each.part.count}",
                hint="each part once, under the name it was written with",
            )
        if each.part.count != first.part.count:
            raise DataError(
                f"{folder} holds parts of {first.part.count} and of {each.part.count}",
                hint="join the parts of one division; remove the others",
            )
        if differing := _differences(first.made_from, each.made_from):
            raise DataError(
                f"part {each.part.number} was made otherwise than part {first.part.number}:"
                f" {differing}",
                hint="make it again with the same input, model and settings",
            )
        if not each.text.is_file():
            raise CorruptError(f"{each.text} is missing")
        if each.text.stat().st_size != each.size:
            raise CorruptError(
                f"{each.text} should have {each.size} bytes, has {each.text.stat().st_size}",
                hint="remove it with its manifest and make the part again",
            )

    there = {each.part.number for each in made}
    missing = sorted(set(range(1, first.part.count + 1)) - there)
    if missing:
        numbers = ", ".join(map(str, missing[:_SHOWN])) + (", ..." if missing[_SHOWN:] else "")
        raise DataError(
            f"{len(missing)} of {first.part.count} parts are missing or not finished: {numbers}",
            hint="run them with the same command; each goes on where it was",
        )

    return made


def _tell_warnings(parts: Sequence[_Made]) -> None:
    """Log what may be wrong with the text: near-ties, and how many lines have a warning, which were
    named where the parts were made."""

    processors = sorted({each.processor for each in parts})
    if len(processors) > 1:
        _log.warning(
            "the parts were made on different processors (%s), so near-ties may differ from one"
            " run's",
            "; ".join(map(shown, processors)),
        )

    counts: Counter[WarningKind] = Counter()
    for kind in KINDS:
        counts[kind] = sum(each.warnings.get(kind, 0) for each in parts)
    if not counts.total():
        return

    is_all = all(each.warnings.get("lines") == each.line_count for each in parts)
    _log.warning(
        "lines with a warning: %s%s; the commands that made the parts named them",
        "" if is_all else "at least ",
        in_words(counts),
    )


def _copied(made: _Made) -> Iterator[bytes]:
    """The bytes of a text; all but the last piece before its hash is compared."""
    digest = hashlib.sha256()
    last = b""

    try:
        with made.text.open("rb") as file:
            while piece := file.read(_COPIED_AT_ONCE):
                yield last
                digest.update(piece)
                last = piece
    except OSError as error:
        raise InputMissingError(f"cannot read {made.text}: {error.strerror}") from error

    if digest.hexdigest() != made.sha256:
        raise CorruptError(
            f"{made.text} should have SHA-256 {made.sha256}, has {digest.hexdigest()}",
            hint="remove it with its manifest and make the part again",
        )

    yield last


def _made_from(translator: Translator, task: PartTask, source: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that decides the text of a part, but which part it is; as JSON gives it back."""

    settings = translator.settings
    made_from = {
        "input": dict(source),
        "model": _model_hash(translator.bundle),
        "engine": translator.engine.signature(settings),
        "threads": translator.engine.thread_count(settings),
        "split": translator.source_language if translator.split else None,
        "form": task.form,
        "glossary": _glossary_hash(translator),
        **{f"decoding.{name}": value for name, value in settings.model_dump().items()},
        **task.details,
        "versions": {
            "pellucid": __version__,
            **{name: _version_of(name) for name in ("torch", "ctranslate2", "sentencepiece")},
        },
    }

    # Read back, because a manifest is compared with what JSON makes of these values.
    as_read: dict[str, Any] = json.loads(json.dumps(made_from))
    return as_read


def _glossary_hash(translator: Translator) -> str | None:
    """SHA-256 of the terms that were asked for; None if there is no glossary."""
    if translator.glossary is None:
        return None
    terms = [dataclasses.asdict(term) for term in translator.glossary.terms]
    return hashlib.sha256(json.dumps(terms, sort_keys=True).encode()).hexdigest()


def _model_hash(bundle: Translatable) -> str:
    """SHA-256 of what the translations come from: the manifest, or the parameters themselves."""
    content: object
    if isinstance(bundle, Bundle):
        content = content_of(bundle)
    else:  # an ensemble
        from pellucid.core.tensors import fingerprint

        content = {name: fingerprint(each) for name, each in bundle.model.state_dict().items()}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _differences(expected: Mapping[str, Any], got: Mapping[str, Any]) -> str:
    names = sorted(k for k in expected.keys() | got.keys() if expected.get(k) != got.get(k))
    changes = [f"{name}: {shown(expected.get(name))} -> {shown(got.get(name))}" for name in names]
    return list_problems(changes)


def _measure(path: Path) -> tuple[str, int]:
    """SHA-256 of a text as it is unpacked, and its number of lines."""
    digest, lines, last = hashlib.sha256(), 0, b"\n"
    for block in iterate_blocks(path):
        digest.update(block)
        lines += block.count(b"\n")
        last = block[-1:]
    return digest.hexdigest(), lines + (last != b"\n")  # the last line may have no end


def _state_of(path: Path) -> list[int]:
    """Return the facts about a file that change with its content; none for a file elsewhere."""
    address = address_of(path)
    if address.scheme:
        return []
    try:
        about = Path(address.location).stat()
    except OSError as error:
        raise InputMissingError(f"cannot read {path}: {error.strerror}") from error
    return [about.st_size, about.st_mtime_ns, about.st_ino]


def _version_of(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
