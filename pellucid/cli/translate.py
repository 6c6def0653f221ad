"""``pellucid translate``: one sentence a line in, one translation a line out.

The file holds the formats of a line (plain, n-best, JSON), the division of a file among the
processes of torchrun, ``--explain-search``, the warnings about doubtful translations, and the
command itself.
"""

import contextlib
import json
import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any

import click

from pellucid.cli.options import (
    Choices,
    constraint_options,
    engine_options,
    json_lines_option,
    open_translator,
    search_options,
)
from pellucid.core.errors import DataError, InputMissingError, WriteError
from pellucid.core.files import open_replacement, write_errors

if TYPE_CHECKING:
    from pellucid.decoding.requests import Request
    from pellucid.decoding.result import Translation
    from pellucid.decoding.translator import Translator


def plain_line(translation: "Translation") -> str:
    """The text; with its word alignment, if there is one, as ``text ||| 0-0 1-2``."""
    return f"{_one_line(translation.text)}{_alignment(translation)}\n"


def n_best_lines(number: int, translation: "Translation") -> Iterator[str]:
    """Each of the n best as ``NUMBER ||| TRANSLATION ||| SCORE``, the form of Moses."""
    for each in translation.n_best:
        text = _one_line(each.text)
        yield f"{number} ||| {text} ||| {each.score:.6f}{_alignment(each)}\n"


def json_line(number: int, translation: "Translation") -> str:
    """Everything known about a translation, as one JSON object."""
    entry = {
        "id": number,
        "source": translation.source,
        "source_tokens": list(translation.source_tokens),
        "truncated": translation.truncated,
        **figures(translation),
    }

    if translation.sentences:
        entry["sentences"] = [
            {"source": each.source, "translation": each.text, "score": each.score}
            for each in translation.sentences
        ]

    # The first of them is the translation itself, so that a program may read this list alone.
    entry["n_best"] = [figures(each) for each in translation.n_best]
    return f"{json.dumps(entry, ensure_ascii=False)}\n"


def figures(translation: "Translation") -> dict[str, Any]:
    """The keys that a translation and each of its n best share, without those not requested."""
    entry: dict[str, Any] = {
        "translation": translation.text,
        "score": translation.score,
        "tokens": list(translation.tokens),
        "token_log_probs": list(translation.token_log_probs),
    }

    if translation.alignment is not None:
        entry["alignment"] = [list(link) for link in translation.alignment]
        entry["word_alignment"] = _pharaoh(translation)
    if translation.expected_utility is not None:
        entry["expected_utility"] = translation.expected_utility
    return entry


def _one_line(text: str) -> str:
    """The text without line breaks, so that line n of the output is line n of the input."""
    return text.replace("\n", " ").replace("\r", " ")


def _alignment(translation: "Translation") -> str:
    return "" if translation.word_alignment is None else f" ||| {_pharaoh(translation)}"


def _pharaoh(translation: "Translation") -> str:
    """Word links in the Pharaoh format, as fast_align and Moses write them."""
    return " ".join(f"{source}-{target}" for source, target in translation.word_alignment or ())


def is_one_of_several(file: str, *, explains: bool) -> bool:
    """Whether this process is one of several that translate shares of one file.

    Raises InputMissingError for standard input, which only one process can read, ConfigError if the
    variables of torchrun contradict each other, click.UsageError with ``--explain-search``.
    """
    from pellucid.core.world import world_of_environment

    if world_of_environment().is_alone:
        return False
    if file == "-":
        raise InputMissingError(
            "under torchrun each process reads the input itself, and standard input is one's alone",
            hint="name a file",
        )
    if explains:
        raise click.UsageError("--explain-search is for one process, not for torchrun.")
    return True


def write_together(
    translator: "Translator",
    lines: "Iterable[str | Request]",
    render: "Callable[[int, Translation], bytes]",
    opened: Callable[[], AbstractContextManager[IO[bytes]]],
) -> None:
    """Translate this process's share of the lines; the first process writes all, in order."""
    from pellucid.core.world import joined, world_of_environment
    from pellucid.engines.distributed import in_order

    beginning = world_of_environment()
    # All processes together read as many lines ahead as a single one would.
    block_size = max(1, translator.settings.stream_lines // beginning.size)

    def work(first: int, block: "Sequence[str | Request]") -> bytes:
        # A block is translated as one list: batched by length, returned in order.
        found = translator.translate(list(block))
        # Rendered here, so that every process does its share, and bytes are what is sent.
        return b"".join(render(first + index, each) for index, each in enumerate(found))

    with joined(beginning) as world:
        # Each process translates its own blocks; the first one receives all of them in order.
        blocks = in_order(world, lines, block_size, work)
        if world.is_first:
            with opened() as out:
                out.writelines(blocks)
        else:
            logging.getLogger("pellucid").setLevel(logging.WARNING)
            # Drawing the blocks translates this process's share and sends
            # it; they hold nothing here.
            for _ in blocks:
                pass


def explained_lines(
    translator: "Translator", requests: "Iterable[str | Request]", reference_file: str | None
) -> Iterator[str]:
    """The search tree of each line as JSON; null for an empty line.

    Raises DataError unless there are as many references as lines.
    """
    from pellucid.decoding.explain import explain_search
    from pellucid.text.corpus.lines import iterate_lines

    references = None if reference_file is None else iterate_lines(Path(reference_file))

    number = 0
    for number, request in enumerate(requests, start=1):
        reference = None if references is None else next(references, None)
        if references is not None and reference is None:
            raise DataError(f"each line needs a reference, got none for line {number}")

        source = request if isinstance(request, str) else request.source
        if not source.strip():
            # A line of output for every line of input, also where nothing was searched.
            yield "null\n"
        else:
            # One sentence at a time: a tree of a batch would be of no use to a reader.
            yield f"{explain_search(translator, request, reference).to_json()}\n"

    if references is not None and next(references, None) is not None:
        raise DataError(f"each reference needs a line, got more than {number} references")


_log = logging.getLogger("pellucid")


@click.command()
@click.argument("bundle")
@click.argument("file", default="-")
@click.option("-o", "--output", default="-", help="File to write.  [default: stdout]")
@search_options
@engine_options
@constraint_options
@click.option(
    "--tab-separated",
    is_flag=True,
    help="Lines hold SOURCE, PREFIX and words that must appear, with tabs between.",
)
@click.option(
    "--buffer-size",
    type=click.IntRange(1),
    help="Lines read before translating.  [default: 1 on a terminal, else 1024]",
)
@click.option(
    "--split/--no-split",
    default=None,
    help="Translate a line of several sentences one by one.  [default: as the model was trained]",
)
@click.option(
    "--abbreviation",
    "abbreviations",
    metavar="WORD.",
    multiple=True,
    help="A word after whose full stop a sentence goes on; may be given many times.",
)
@click.option(
    "--explain-search",
    is_flag=True,
    help="With --json: write the hypotheses of the search instead, and why it dropped them.",
)
@click.option(
    "--reference",
    help="With --explain-search: file of right translations, to find out what missed them.",
)
@json_lines_option
def translate(
    bundle: str,
    file: str,
    output: str,
    search: Choices,
    engine: Choices,
    sampling: Choices,
    others: tuple[str, ...],
    tab_separated: bool,
    buffer_size: int | None,
    split: bool | None,
    abbreviations: tuple[str, ...],
    explain_search: bool,
    reference: str | None,
    as_json: bool,
) -> None:
    """Translate FILE, or stdin, with BUNDLE: a bundle folder or a run folder.

    Every line in gives one line out, an empty one an empty one. A line of several sentences is
    split if the model was trained on single ones. With --n-best each line gives
    several, as NUMBER ||| TRANSLATION ||| SCORE. Under torchrun the lines are shared out among
    the processes, and written in order by the first.

    \b
    Examples:
      echo "je suis étudiant" | pellucid translate runs/demo
      pellucid translate runs/en-de test.en -o test.de --beam-size 5
      pellucid translate runs/en-de test.en --n-best 5 --align --json
    """
    from pellucid.text.corpus.lines import iterate_lines
    from pellucid.text.splitting import add_abbreviations

    if reference is not None and not explain_search:
        raise click.UsageError("--reference must go with --explain-search.")
    if explain_search and not as_json:
        raise click.UsageError("--explain-search must go with --json.")

    # Before any text is split.
    add_abbreviations(abbreviations)
    if file == "-" and sys.stdin is None:
        raise InputMissingError("cannot read standard input: it is closed")
    # Somebody who types wants the answer to a line before typing the next.
    if buffer_size is None and file == "-" and sys.stdin.isatty():
        buffer_size = 1

    translator = open_translator(
        bundle,
        search,
        sampling=sampling,
        engine=engine,
        others=others,
        buffer_size=buffer_size,
        figures=as_json,
    )

    lines = iterate_lines(sys.stdin.buffer if file == "-" else Path(file))
    requests = _columns(lines) if tab_separated else lines
    if split is not None:
        # None leaves the choice to the bundle, which knows what its training text was like.
        translator.split = split

    doubts = _Doubts()
    render = doubts.reporting(_renderer(as_json=as_json, several=translator.settings.n_best > 1))
    # Only torchrun sets RANK; without it the module of process groups is not imported.
    if "RANK" in os.environ and is_one_of_several(file, explains=explain_search):
        write_together(translator, requests, render, lambda: opened(output))
        doubts.end()
        return

    with opened(output) as out:
        if explain_search:
            for line in explained_lines(translator, requests, reference):
                out.write(line.encode())
            return

        for number, translation in enumerate(translator.translate(requests)):
            out.write(render(number, translation))
            if buffer_size is not None:
                # ``--buffer-size`` is given by those who wait for each line, and by a terminal.
                out.flush()
    doubts.end()


class _Doubts:
    """Warns of translations that should not be trusted; of many, it gives the number."""

    _SHOWN = 5
    _MESSAGES = MappingProxyType(
        {
            "short": "line %d: the translation is suspiciously short (%d tokens from %d)",
            "loop": "line %d: the translation repeats itself (%d tokens from %d)",
        }
    )

    def __init__(self) -> None:
        self._count = 0

    def reporting(
        self, render: Callable[[int, "Translation"], bytes]
    ) -> Callable[[int, "Translation"], bytes]:
        """``render``, which also logs a warning for a doubtful translation."""

        def warn_and_render(number: int, translation: "Translation") -> bytes:
            """Render a translation; log a warning first if it is doubtful."""
            doubt = translation.warning
            if doubt is not None:
                self._count += 1
                if self._count <= self._SHOWN:
                    # In tokens, as the rules for doubt count them.
                    sizes = len(translation.tokens), len(translation.source_tokens)
                    _log.warning(self._MESSAGES[doubt], number + 1, *sizes)
            return render(number, translation)

        return warn_and_render

    def end(self) -> None:
        """Log the number of warnings that were not shown."""
        if self._count > self._SHOWN:
            _log.warning(
                "%d more: suspiciously short, or repeating themselves", self._count - self._SHOWN
            )


def _renderer(*, as_json: bool, several: bool) -> Callable[[int, "Translation"], bytes]:
    """The function that turns a translation and its number into the bytes to write."""
    if as_json:
        return lambda number, translation: json_line(number, translation).encode()
    if several:
        return lambda number, each: "".join(n_best_lines(number, each)).encode()
    return lambda _, translation: plain_line(translation).encode()


def _columns(lines: Iterable[str]) -> Iterator["Request"]:
    """The columns SOURCE, PREFIX and required phrases of each line, as requests."""
    from pellucid.decoding.requests import Request

    for line in lines:
        # An empty PREFIX column leaves the beginning free.
        source, *others = line.split("\t")
        prefix, *must = others or [""]
        yield Request(source, prefix, tuple(phrase for phrase in must if phrase.strip()))


@contextlib.contextmanager
def opened(output: str) -> Iterator[IO[bytes]]:
    """The binary stream to write to; an existing file is replaced once the last line is written."""
    path = Path(output).resolve()
    if output == "-":
        if sys.stdout is None:
            raise WriteError("cannot write standard output: it is closed")
        with write_errors(Path("standard output")):
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
    elif path.exists() and not path.is_file():
        # A pipe or a device such as /dev/null cannot be replaced by renaming another file.
        with write_errors(path), path.open("wb") as out:
            yield out
    else:
        # Written beside the file and renamed, so that an interrupted run leaves the old one.
        with open_replacement(path) as file:
            yield file
