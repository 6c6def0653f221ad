"""The losses of a student against its teacher: quality, speed, and what changed most."""

import dataclasses
import re
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pellucid.core.errors import MissingExtraError
from pellucid.core.files import write_file
from pellucid.decoding.translator import Translator
from pellucid.evaluation.metrics import accepted, bleu, chrf
from pellucid.evaluation.scoring import scoring_of
from pellucid.inspection.figures.canvas import new_figure, print_style, save_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WARM_UP_LINES = 20
"""Translated before the clock starts: the first call of an engine converts or compiles."""
_ALONE_LINES = 50
"""Translated one by one for the time of a sentence alone."""
_ROUNDS = 3
"""Each contender translates in turn so many times; the speed is the median."""
_SHOWN_CHANGES = 10


@dataclasses.dataclass(frozen=True)
class Contender:
    """A model on an engine, measured on the text of a validation."""

    name: str
    """``teacher`` or ``student``, and what was done with it."""
    engine: str
    parameters: int
    bleu: float
    """In percent."""
    bleu_signature: str
    """sacreBLEU's, with the tokenizer, which the script of the references decides."""
    chrf: float
    """In percent."""
    tokens_per_second: float
    """Target tokens with stops for each CPU second, in batches, the source's encoding included."""
    slowest_and_fastest: tuple[float, float]
    """The same of the slowest and of the fastest round."""
    alone_ms: float
    """The median CPU milliseconds of a sentence alone."""


@dataclasses.dataclass(frozen=True)
class Measured:
    """A contender with its translations."""

    contender: Contender
    hypotheses: tuple[str, ...]


def measure(
    translators: Sequence[tuple[str, Translator]],
    sources: Sequence[str],
    references: Sequence[str],
) -> list[Measured]:
    """Every contender on the same text, in turn, each ``_ROUNDS`` times.

    A line has one reference, so no line is split into sentences, as in ``evaluate``.
    """
    tokenize = scoring_of(accepted(references)).tokenize
    translators = [(name, _in_silence(translator)) for name, translator in translators]
    generated: dict[int, tuple[str, ...]] = {}
    speeds: list[list[float]] = [[] for _ in translators]
    for _, translator in translators:
        translator.translate(list(sources[:_WARM_UP_LINES]))

    for _ in range(_ROUNDS):
        for number, (_, translator) in enumerate(translators):
            began = time.process_time()
            found = translator.translate(list(sources))
            seconds = time.process_time() - began
            count = sum(len(each.token_ids) + 1 for each in found)
            speeds[number].append(count / max(seconds, 1e-9))
            generated.setdefault(number, tuple(each.text for each in found))

    # before a model is looked at: from then on an engine first looks whether it was changed
    alone = [_alone(translator, sources) for _, translator in translators]
    scores = [bleu(generated[number], references, tokenize) for number in range(len(translators))]
    return [
        Measured(
            Contender(
                name=name,
                engine=translator.engine.name,
                parameters=sum(each.numel() for each in translator.bundle.model.parameters()),
                bleu=scores[number].score,
                bleu_signature=scores[number].signature,
                chrf=chrf(generated[number], references).score,
                tokens_per_second=statistics.median(speeds[number]),
                slowest_and_fastest=(min(speeds[number]), max(speeds[number])),
                alone_ms=alone[number],
            ),
            generated[number],
        )
        for number, (name, translator) in enumerate(translators)
    ]


def _in_silence(translator: Translator) -> Translator:
    """The translator without its warnings: a model is measured here, and no line is for reading."""
    silent = translator.without_log()
    silent.split = False
    return silent


def _alone(translator: Translator, sources: Sequence[str]) -> float:
    milliseconds = []
    for line in sources[:_ALONE_LINES]:
        began = time.process_time()
        translator.translate(line)
        milliseconds.append(1e3 * (time.process_time() - began))
    return statistics.median(milliseconds)


def write_page(
    folder: Path,
    measured: Sequence[Measured],
    sources: Sequence[str],
    references: Sequence[str],
) -> None:
    """Write ``lost.md``, and ``quality.svg`` where matplotlib is installed, into ``folder``.

    The first contender is the teacher; the changes shown are those of the last. Raises WriteError.
    """
    has_picture = True
    try:
        _draw(folder / "quality.svg", [each.contender for each in measured])
    except MissingExtraError:
        has_picture = False
    text = _page(measured, sources, references, has_picture=has_picture)
    write_file(folder / "lost.md", text.encode())


def _page(
    measured: Sequence[Measured],
    sources: Sequence[str],
    references: Sequence[str],
    *,
    has_picture: bool,
) -> str:
    teacher, student = measured[0], measured[-1]
    lost = teacher.contender.bleu - student.contender.bleu
    fewer = teacher.contender.chrf - student.contender.chrf
    faster = student.contender.tokens_per_second / teacher.contender.tokens_per_second

    lines = [
        "# What the student lost",
        "",
        f"Against its teacher the student, in the form of the last row, loses {lost:z.1f} BLEU and"
        f" {fewer:z.1f} chrF on {len(sources):,} sentences, and is {faster:.1f} times as fast.",
        "",
        "| model | engine | parameters | BLEU | chrF | tokens per CPU second | a sentence alone |",
        "|---|---|---|---|---|---|---|",
    ]
    for each in (every.contender for every in measured):
        least, most = each.slowest_and_fastest
        lines.append(
            f"| {each.name} | {each.engine} | {each.parameters:,} | {each.bleu:.1f} |"
            f" {each.chrf:.1f} | {each.tokens_per_second:,.0f} ({least:,.0f}-{most:,.0f}) |"
            f" {each.alone_ms:.1f} ms |"
        )
    lines += [
        "",
        f"BLEU's signature: `{student.contender.bleu_signature}`.",
        "",
        f"Speeds are medians (slowest to fastest) of {_ROUNDS} rounds in turn over all sentences in"
        f" batches; those of a sentence alone are medians of {min(_ALONE_LINES, len(sources))}, in"
        " CPU milliseconds.",
        "",
    ]
    if has_picture:
        lines += ["![Quality against speed](quality.svg)", ""]

    lines += ["## The sentences that changed most", ""]
    for at in changed_most(teacher.hypotheses, student.hypotheses)[:_SHOWN_CHANGES]:
        lines += [
            f"- {_verbatim(sources[at])}",
            f"  - reference: {_verbatim(references[at])}",
            f"  - teacher: {_verbatim(teacher.hypotheses[at])}",
            f"  - student: {_verbatim(student.hypotheses[at])}",
        ]
    same = sum(a == b for a, b in zip(teacher.hypotheses, student.hypotheses, strict=True))
    lines += ["", f"{same:,} of {len(sources):,} translations are the same to the letter."]
    return "\n".join(lines) + "\n"


def _verbatim(text: str) -> str:
    """A line as Markdown's code, in which nothing is a list, a tag or a mark."""
    if not text.strip():
        return "(nothing)"
    text = " ".join(text.splitlines())  # a model that knows bytes may write a line end
    # The fence must be longer than every run of backticks within; the blanks are not shown.
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence, blank = "`" * (longest + 1), " " * bool(longest)
    return f"{fence}{blank}{text}{blank}{fence}"


def changed_most(teacher: Sequence[str], student: Sequence[str]) -> list[int]:
    """The numbers of the sentences that differ, those least alike by chrF first."""
    alike = {
        at: chrf([ours], [theirs]).score
        for at, (theirs, ours) in enumerate(zip(teacher, student, strict=True))
        if ours != theirs
    }
    return sorted(alike, key=lambda at: (alike[at], at))


def _draw(path: Path, contenders: Sequence[Contender]) -> None:
    """Quality against speed, the teacher's points filled. Raises MissingExtraError."""
    with print_style():
        figure = new_figure(6.0, 3.6)
        axes: Axes = figure.add_subplot()
        for each in contenders:
            is_teacher = each.name.startswith("teacher")
            place = each.tokens_per_second, each.bleu
            axes.plot(*place, "s" if is_teacher else "o", color="C0" if is_teacher else "C1")
            label = f"{each.name}, {each.engine}"
            axes.annotate(label, place, xytext=(5, 4), textcoords="offset points", fontsize=7)
        axes.set_xscale("log")
        axes.set_xlabel("target tokens per CPU second")
        axes.set_ylabel("BLEU")
        axes.margins(x=0.25, y=0.2)
        figure.suptitle("Quality against speed")
        save_picture(figure, path)
