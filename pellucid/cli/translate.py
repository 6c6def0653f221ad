"""``pellucid translate``: one sentence a line in, one translation a line out.

The file holds the formats of a line (plain, n-best, JSON), ``--explain-search``, the warnings
about translations, and the command itself.
"""

import json
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from pellucid.cli.documents import (
    LINES,
    reads_documents,
    refuse_line_options,
    translate_files,
)
from pellucid.cli.options import (
    FILE_PATH,
    NAME,
    Choices,
    FiniteRange,
    constraint_options,
    engine_options,
    is_missing,
    json_lines_option,
    open_translator,
    refuse_to_replace,
    require_model,
    require_texts,
    search_options,
)
from pellucid.cli.parts import write_part
from pellucid.cli.streams import opened, standard_input
from pellucid.core.errors import DataError, InputMissingError
from pellucid.core.limits import shown
from pellucid.documents.names import FORMATS, ending_of

if TYPE_CHECKING:
    from pellucid.decoding.requests import Request
    from pellucid.decoding.result import Translation
    from pellucid.decoding.translator import Translator
    from pellucid.documents.names import Format
    from pellucid.text.detection import OtherLanguages


def plain_line(_number: int, translation: "Translation") -> str:
    """The text; with its word alignment, if there is one, as ``text ||| 0-0 1-2``."""
    return f"{_one_line(translation.text)}{_alignment(translation)}\n"


def n_best_lines(number: int, translation: "Translation") -> str:
    """Each of the n best as ``NUMBER ||| TRANSLATION ||| SCORE``, the form of Moses."""
    return "".join(
        f"{number} ||| {_one_line(each.text)} ||| {each.score:.6f}{_alignment(each)}\n"
        for each in translation.n_best
    )


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
            {
                "source": each.source,
                "translation": each.text,
                "score": each.score,
                "warnings": warnings_of(each),
                **({} if each.quality is None else {"quality": each.quality}),
            }
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
        "warnings": warnings_of(translation),
    }

    if translation.quality is not None:
        entry["quality"] = translation.quality
    if translation.alignment is not None:
        entry["alignment"] = [list(link) for link in translation.alignment]
        entry["word_alignment"] = _pharaoh(translation)
    if translation.expected_utility is not None:
        entry["expected_utility"] = translation.expected_utility
    return entry


def warnings_of(translation: "Translation") -> list[dict[str, str]]:
    """The warnings of a translation, each with its kind and its sentence."""
    return [{"kind": each.kind, "message": each.message} for each in translation.warnings]


def _one_line(text: str) -> str:
    """The text without line breaks, so that line n of the output is line n of the input."""
    return text.replace("\n", " ").replace("\r", " ")


def _alignment(translation: "Translation") -> str:
    return "" if translation.word_alignment is None else f" ||| {_pharaoh(translation)}"


def _pharaoh(translation: "Translation") -> str:
    """Word links in the Pharaoh format, as fast_align and Moses write them."""
    return " ".join(f"{source}-{target}" for source, target in translation.word_alignment or ())


def explained_lines(
    translator: "Translator", requests: "Iterable[str | Request]", reference_file: str | None
) -> Iterator[str]:
    """The search tree of each line as JSON; null for a line that is not searched.

    Raises DataError unless there are as many references as lines.
    """
    from pellucid.decoding.explain import explain_search
    from pellucid.decoding.requests import as_requests
    from pellucid.decoding.warnings import WarningLog
    from pellucid.text.corpus.lines import iterate_lines

    references = None if reference_file is None else iterate_lines(Path(reference_file))

    log = WarningLog()
    number = 0
    for number, request in enumerate(requests, start=1):
        reference = None if references is None else next(references, None)
        if references is not None and reference is None:
            raise DataError(f"each line needs a reference, got none for line {number}")

        [asked] = as_requests([request], translator.settings, number)
        if not translator.odd_line(asked).plain.source.strip():
            # A line of output for every line of input, also where nothing was searched.
            yield "null\n"
        else:
            # One sentence at a time: a tree of a batch would be of no use to a reader.
            tree = explain_search(translator, request, reference)
            log.look(number, tree.translations[0])
            yield f"{tree.to_json()}\n"
    log.end()

    if references is not None and next(references, None) is not None:
        raise DataError(f"each reference needs a line, got more than {number} references")


_PACKED_DOCUMENTS = ("docx", "pptx", "odt", "epub", "pdf", "xlsx")
"""Endings of files that hold no lines of text."""


@click.command()
@click.argument("bundle", type=NAME)
@click.argument("file", type=NAME, default="-")
@click.option("-o", "--output", type=NAME, default="-", help="File to write.  [default: stdout]")
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
    "--glossary",
    type=FILE_PATH,
    help="TSV file of terms that translations must have: source, target, forms, case, domain.",
)
@click.option(
    "--domain",
    "domains",
    multiple=True,
    help="With --glossary: only its terms of this domain, and those of none; may be given many"
    " times.",
)
@click.option(
    "--below",
    type=(FiniteRange(0, 1), click.Choice(["mark", "leave"])),
    metavar="QUALITY mark|leave",
    help="Mark translations whose estimated quality (0 to 1) is lower with [?], or leave their text"
    " untranslated.",
)
@click.option(
    "--detect",
    is_flag=True,
    help="Warn of lines in another language than the model reads (extra detect).",
)
@click.option(
    "--explain-search",
    is_flag=True,
    help="With --json: write the hypotheses of the search instead, and why it dropped them.",
)
@click.option(
    "--reference",
    type=NAME,
    help="With --explain-search: file of right translations, to find out what missed them.",
)
@click.option(
    "--part",
    metavar="K/N",
    help="Translate the K-th of N parts of FILE into the folder -o; see pellucid join.",
)
@click.option(
    "--format",
    "kind",
    type=click.Choice([LINES, *FORMATS]),
    help="What FILE is.  [default: by the end of its name; lines for any other]",
)
@click.option(
    "--columns",
    metavar="NAMES",
    help="Of a table: the columns to translate, by name or number, with commas between; of JSON and"
    " YAML: the keys.",
)
@click.option(
    "--keep-numbers", is_flag=True, help="Of a document: leave every number as it is written."
)
@click.option(
    "--guard-cells",
    is_flag=True,
    help="Of a table: put an apostrophe before each cell that a spreadsheet may run as a formula.",
)
@json_lines_option
@click.pass_obj
def translate(
    obj: dict[str, bool],
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
    glossary: Path | None,
    domains: tuple[str, ...],
    below: "tuple[float, Literal['mark', 'leave']] | None",
    detect: bool,
    explain_search: bool,
    reference: str | None,
    part: str | None,
    kind: "Literal['lines'] | Format | None",
    columns: str | None,
    keep_numbers: bool,
    guard_cells: bool,
    as_json: bool,
) -> int:
    """Translate FILE, or stdin, with BUNDLE: a bundle folder, a run folder or hf://ORG/NAME.

    Every line in gives one line out, an empty one an empty one. A line of several sentences is
    split if the model was trained on single ones. With --n-best each line gives
    several, as NUMBER ||| TRANSLATION ||| SCORE.

    A document (docx, html, md, srt, ...) or a folder of documents gives the same with its text
    translated and everything else as it is; docs/documents.md lists the formats.

    \b
    Examples:
      pellucid translate runs/en-de report.docx -o bericht.docx
      echo "je suis étudiant" | pellucid translate runs/demo
      pellucid translate runs/en-de test.en -o test.de --beam-size 5
      pellucid translate runs/en-de test.en --n-best 5 --align --json
      pellucid translate runs/en-de test.en --part 3/64 -o parts
    """
    if reference is not None and not explain_search:
        raise click.UsageError("--reference must go with --explain-search.")
    if explain_search and not as_json:
        raise click.UsageError("--explain-search must go with --json.")
    chosen = engine.get("engine"), engine.get("compute_type")
    if explain_search and (
        chosen[0] in ("ctranslate2", "kernels") or chosen[1] not in (None, "float32")
    ):
        raise click.UsageError(
            "--explain-search explains searches of torch in float32, and takes no other --engine or"
            " --compute-type."
        )
    unused = {
        "--detect": detect,
        "--glossary": glossary is not None,
        "--below": below is not None,
        "--split": bool(split),
    }
    for name, is_given in unused.items():
        if explain_search and is_given:
            raise click.UsageError(f"--explain-search takes no {name}.")
    if abbreviations and (explain_search or split is False):
        raise click.UsageError("--abbreviation must go with lines that are split into sentences.")
    if domains and glossary is None:
        raise click.UsageError("--domain must go with --glossary.")
    if part is not None and explain_search:
        raise click.UsageError("--part takes no --explain-search.")
    if os.environ.get("WORLD_SIZE", "1") not in ("", "1"):
        raise click.UsageError(
            "translate is one process: under torchrun each would write all lines. Give each process"
            " its --part K/N, and join the parts with pellucid join."
        )

    # Before the imports, which take longer than to find that nothing is there.
    for model in (bundle, *others):
        require_model(model)
    _refuse_sentence(file, bundle)
    require_texts(file, reference)
    refuse_to_replace("-o", output, reference, glossary)

    from pellucid.text.corpus.lines import iterate_lines
    from pellucid.text.detection import OtherLanguages
    from pellucid.text.glossary import Glossary
    from pellucid.text.splitting import add_abbreviations

    # Before any text is split.
    add_abbreviations(abbreviations)
    if file == "-":
        standard_input()  # raises if it is closed, before the model is opened
    # Somebody who types wants the answer to a line before typing the next.
    if buffer_size is None and file == "-" and sys.stdin.isatty():
        buffer_size = 1

    is_document = reads_documents(file, kind) and not tab_separated
    if is_document:
        unused = {
            "--json": as_json,
            "--part": part is not None,
            "--no-split": split is False,
            "--detect": detect,
        }
        refuse_line_options(search, unused)
    elif ending_of(output) in _PACKED_DOCUMENTS:
        raise click.UsageError(
            f"-o must be a text file for lines of text, not a .{ending_of(output)} file."
        )
    elif columns is not None or keep_numbers or guard_cells:
        raise click.UsageError("--columns, --keep-numbers and --guard-cells are for documents.")

    if below is not None:
        search = {**search, "below": below[0], "doubtful": below[1]}

    # Before the model is opened, which may take seconds.
    terms = None if glossary is None else Glossary.read(glossary, domains)
    translator = open_translator(
        bundle,
        search,
        sampling=sampling,
        engine=engine,
        others=others,
        buffer_size=buffer_size,
        figures=as_json,
    )
    translator.glossary = terms
    translator.check_settings(translator.settings)
    if is_document:
        return translate_files(
            translator,
            file,
            output,
            kind=None if kind == "lines" else kind,
            columns=[name.strip() for name in (columns or "").split(",") if name.strip()],
            keep_numbers=keep_numbers,
            guard_cells=guard_cells,
            quiet=obj["quiet"],
        )

    settings = translator.settings
    if not (settings.align or settings.replace_unknown or settings.coverage_penalty != 0):
        unread = [name for name in ("align_layer", "align_head") if name in search]
        if unread:
            names = " and ".join(f"--{name.replace('_', '-')}" for name in unread)
            raise click.UsageError(
                f"{names} must go with --align, --replace-unknown or --coverage-penalty."
            )

    if split is not None:
        # None leaves the choice to the bundle, which knows what its training text was like.
        translator.split = split

    # With the lines that are written: each part would count from 1.
    translator.logs_warnings = False
    several = translator.settings.n_best > 1
    write = json_line if as_json else n_best_lines if several else plain_line
    render = _Renderer(write, OtherLanguages(translator.source_language) if detect else None)
    if part is not None:
        code = write_part(
            translator,
            part,
            file,
            output,
            form="json" if as_json else "n-best" if several else "text",
            details={"tab_separated": tab_separated, "abbreviations": sorted(abbreviations)},
            requests=_columns if tab_separated else iter,
            render=render,
            quiet=obj["quiet"],
        )
        render.end()
        return code

    lines = iterate_lines(standard_input() if file == "-" else Path(file))
    requests = _columns(lines) if tab_separated else lines
    with opened(output) as out:
        if explain_search:
            for line in explained_lines(translator, requests, reference):
                out.write(line.encode())
            return 0

        for number, translation in enumerate(translator.translate(requests)):
            out.write(render(number, translation))
            if buffer_size is not None:
                # ``--buffer-size`` is given by those who wait for each line, and by a terminal.
                out.flush()
    render.end()
    return 0


class _Renderer:
    """Renders each translation by ``write``, and logs its warnings and those of ``others``."""

    def __init__(
        self, write: Callable[[int, "Translation"], str], others: "OtherLanguages | None"
    ) -> None:
        from pellucid.decoding.warnings import WarningLog

        self._write, self._others = write, others
        self._log = WarningLog()

    def __call__(self, number: int, translation: "Translation") -> bytes:
        """The bytes to write of a translation and its number."""
        if self._others is not None:
            self._others.look(number + 1, translation.source)
        self._log.look(number + 1, translation)
        return self._write(number, translation).encode()

    def end(self) -> None:
        """Log the numbers of the warnings that were not shown."""
        if self._others is not None:
            self._others.end()
        self._log.end()


def _refuse_sentence(file: str, bundle: str) -> None:
    """Raise InputMissingError for words in place of a file, with the command that reads them."""
    ending = ending_of(file)
    has_words = " " in file.strip() and (not ending or " " in ending)
    ends_a_sentence = file.endswith((".", "!", "?", "…", "。", "！", "？"))
    if (has_words or ends_a_sentence) and "/" not in file and is_missing(file):
        raise InputMissingError(
            f"FILE must be the name of a file, and there is none called {shown(file)}",
            hint=f"echo {shlex.quote(file)} | pellucid translate {shlex.quote(bundle)}",
        )


def _columns(lines: Iterable[str]) -> Iterator["Request"]:
    """The columns SOURCE, PREFIX and required phrases of each line, as requests."""
    from pellucid.decoding.requests import Request

    for line in lines:
        # An empty PREFIX column leaves the beginning free.
        source, *others = line.split("\t")
        prefix, *must = others or [""]
        yield Request(source, prefix, tuple(phrase for phrase in must if phrase.strip()))
