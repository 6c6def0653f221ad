"""How the time to read and write a document grows with its size, for texts made to be slow.

    python benchmarks/document_growth.py

Each text repeats a few characters until the document has the size. It is read and written with the
segments as they are, in a process that may use 60 seconds of CPU time and 4 GiB. Larger sizes are
left out after one that took more than ``--longest`` seconds. A refused size has the first words of
the message.
"""

import argparse
import concurrent.futures
import itertools
import json
import os
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import machine

sys.path.insert(0, str(machine.REPOSITORY / "tests" / "faults"))
from document_grammar import file_of

from pellucid.core.errors import PellucidError
from pellucid.documents.formats import ReadOptions, read_document
from pellucid.documents.names import FORMATS, Format

RESULT = Path(__file__).parent / "results" / "document_growth.md"
_MEGABYTES = (1, 2, 4, 8)
_MOST_SECONDS = 60
_MOST_BYTES = 4 << 30
_SHORTEST = 0.2
"""Seconds of the smaller document of a doubling; some clocks have steps of 0.01."""
_SHOWN = 45
"""Characters of a message that refuses a text."""

_RUN = "<w:r><w:t>red </w:t></w:r>"
_BOLD = "<w:r><w:rPr><w:b/></w:rPr><w:t>old </w:t></w:r>"
# Even in length, as are the texts between: the grammar then writes a file of XLIFF 1.
_UNIT = "<file><body><trans-unit id='1'><source>"
_END = " </source></trans-unit></body></file>"
_SPOKEN = "Dialogue: 0,1,2,3,4,5,6,7,8,"
TEXTS: dict[Format, tuple[tuple[str, str, str], ...]] = {
    "txt": (("", "{% if x %}a ", ""), ("a", "\n", "b")),
    "md": (("", "*a **b ", ""), ("", "> a\n\n", ""), ("", "[a](b) ", "")),
    "html": (
        ("<p>", "<b>red</b> house ", "</p>"),
        ("<p>", "&amp;", "</p>"),
        ("", "<textarea>", ""),
    ),
    "docx": (
        ("<w:p><w:r>", "<w:t>red </w:t>", "</w:r></w:p>"),
        ("<w:p>", _RUN + _BOLD, "</w:p>"),
    ),
    "pptx": (
        ("<a:p>", '<a:r><a:rPr b="1"/><a:t>red </a:t></a:r><a:br/>', "</a:p>"),
        ("", "<a:p><a:r><a:t>red</a:t></a:r></a:p>", ""),
    ),
    "odt": (
        ("<text:p>", "<text:span>red</text:span> old ", "</text:p>"),
        ("<text:p>a", "<text:s/>", "</text:p>"),
    ),
    "epub": (("<p>", "<b>red</b> house ", "</p>"), ("", "<p>red house.</p>", "")),
    "srt": (
        ("1 --> 2\n", "<i>red</i> ", ""),
        ("", "1\n00:00:01,000 --> 00:00:02,000\nred house\n\n", ""),
    ),
    "vtt": (
        ("WEBVTT\n\n1 --> 2\n", "<00:00:01.000>red ", ""),
        ("WEBVTT\n\n", "00:01.000 --> 00:02.000\nred <b>house</b>\n\n", ""),
    ),
    "ass": ((_SPOKEN, "{\\k20}red ", ""), (_SPOKEN, "red\\N", "")),
    "po": (
        ('msgid "', "a | ", '"\nmsgstr ""\n'),
        ("", '\nmsgid "red"\nmsgstr ""\n', ""),
        ('msgid ""\n', '"red house "\n', 'msgstr ""\n'),
    ),
    "xliff": ((_UNIT, "<g>re</g> ", _END), (_UNIT, '<bpt id="1"/>red<ept id="1"/> ', _END)),
    "csv": (("", '"red ""x"" house",b\n', ""), ('"', "a | ", '"\n')),
    "tsv": (("", "red house\tb\n", ""), ("", "%<a>d ", "\n")),
    "json": (
        ("[", '"<b>red</b> house",', '"a"]'),
        ('{"a": "', "<b>red</b> house ", '"}'),
        ("", "[", ""),
    ),
    "yaml": (("", "- <b>red</b> house\n", ""), ("[", "a,", "a]"), ("- &a red\n", "- *a\n", "")),
    "properties": (("a=", "<b>red</b> house ", "\n"), ("", "a=red house\n", "")),
    "strings": (('"a" = "', "a | ", '";\n'), ("", '"a" = "red house";\n', "")),
    "android": (
        ('<string name="a">', "&lt;b>red&lt;/b> house ", "</string>"),
        ("", '<string name="a">red house</string>', ""),
    ),
}
"""Of each format what its texts begin with, what they repeat, and what they end with."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", default=",".join(FORMATS), help="formats, with commas between")
    parser.add_argument("--longest", type=float, default=20, help="seconds of one document")
    options = parser.parse_args()
    only = options.only.split(",")
    facts = machine.describe(())
    texts = [(kind, text) for kind in FORMATS if kind in only for text in TEXTS[kind]]
    # Each is read in a process of its own; the threads only wait for them.
    with concurrent.futures.ThreadPoolExecutor(machine.cores()) as pool:
        rows = list(pool.map(lambda each: _row(*each, options.longest), texts))
    if set(only) >= set(FORMATS):
        RESULT.write_text("\n".join(_page(rows, options.longest, facts)))


def _row(kind: Format, text: tuple[str, str, str], longest: float) -> tuple[str, list[float]]:
    """The line of the table for a text, and how many times the time each doubling takes."""
    before, repeated, after = text
    small = file_of(kind, before + repeated + after)
    cells: list[str] = []
    seconds: list[float] = []
    for megabytes in _MEGABYTES:
        count = megabytes * 1_000_000 // len(repeated)
        took, message = _measured(kind, file_of(kind, before + repeated * count + after), small)
        cells.append(f"refused: {message}" if message else f"{took:.2f}")
        if not message:
            seconds.append(took)
            if took > longest:
                break

    cells += ["left out"] * (len(_MEGABYTES) - len(cells))
    grown = [b / a for a, b in itertools.pairwise(seconds) if a >= _SHORTEST]
    shown = repeated.replace("|", "\\|").replace("\n", "⏎").replace("\t", "⇥")
    steps = ", ".join(f"{each:.2f}" for each in grown)
    row = f"| {kind} | `{shown}` | {' | '.join(cells)} | {steps} |"
    sys.stdout.write(row + "\n")
    sys.stdout.flush()
    return row, grown


def _measured(kind: Format, data: bytes, small: bytes) -> tuple[float, str]:
    """CPU seconds of a document in a process of its own, or what refuses it; a small one before
    imports what reads it.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (_MOST_SECONDS, _MOST_SECONDS))
            resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
            _run(kind, small)
            os.write(writing, json.dumps(_run(kind, data)).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return tuple(json.loads(answer)) if answer else (float("inf"), "")


def _run(kind: Format, data: bytes) -> tuple[float, str]:
    began = time.process_time()
    message = ""
    try:
        options = ReadOptions(("1",)) if kind in ("csv", "tsv") else None
        document = read_document(data, kind, "it", options)
        document.write(document.segments)
    except PellucidError as error:
        message = str(error)[:_SHOWN].rsplit(" ", 1)[0].replace("|", "\\|") + " …"
    return time.process_time() - began, message


def _page(
    rows: Sequence[tuple[str, list[float]]], longest: float, facts: dict[str, object]
) -> list[str]:
    doublings = [each for _, grown in rows for each in grown]
    refused = sum(row.count("refused: ") for row, _ in rows)
    return [
        "# Texts made to be slow",
        "",
        "CPU seconds to read a document and to write it with the segments as they are. Each text"
        " repeats a few characters.",
        "",
        f"Of {len(doublings)} doublings of the size {sum(each <= 2.2 for each in doublings)} take"
        f" at most 2.2 times the time, the largest {max(doublings):.2f} times. {refused} of"
        f" {len(rows) * len(_MEGABYTES)} documents are refused. `inf`: more than {_MOST_SECONDS} s"
        f" or {_MOST_BYTES >> 30} GiB. Left out: larger than one that took over"
        f" {longest:g} s. Doublings are counted from {_SHORTEST} s on.",
        "",
        f"| format | repeated | {' | '.join(f'{each} MB' for each in _MEGABYTES)} | doublings |",
        "|---|---|" + "---|" * (len(_MEGABYTES) + 1),
        *(row for row, _ in rows),
        "",
        f"{facts['cpu']}, {facts['cores']} cores, as many documents at once,"
        f" load {facts['load_before']} before the start;"
        f" Python {facts['python']}; {facts['date']}; commit {facts['commit']}.",
        "",
        f"`{machine.command()}`",
        "",
    ]


if __name__ == "__main__":
    main()
