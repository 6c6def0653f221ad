"""The data of a report: words, steps and matrices of one capture, within a budget of bytes."""

import dataclasses
import json
import math
from collections.abc import Iterable
from typing import Any

from torch import Tensor

from pellucid.core.errors import PellucidError
from pellucid.inspection.capture import Capture
from pellucid.inspection.entries import Entry
from pellucid.inspection.parts import TABLE
from pellucid.inspection.report.equation_entries import entries_of_pages
from pellucid.inspection.report.facts import model_facts
from pellucid.inspection.report.matrices import (
    Axis,
    AxisKind,
    Limits,
    Matrix,
    Scale,
    encode_matrices,
)
from pellucid.inspection.report.parameters import output_parameters, parameter_matrices
from pellucid.inspection.report.steps import HEAD, Page, label_words, labeler, step_label
from pellucid.inspection.report.views import (
    SentenceViews,
    plain_predictions,
    view_content,
    view_matrices,
)
from pellucid.inspection.report.walk import Vocabularies, walk_through
from pellucid.model.seq2seq import Seq2Seq

FORMAT = 1
"""The version of the data, raised when older pages can no longer show it."""

BUDGET = 4_800_000
"""Bytes of all data: with styles and scripts a report stays under 5 MB."""

_ENTRY_BYTES = 150
"""Bytes of a matrix besides its values and its name."""

_SHOWN_PER_ROW = 5
"""The number of likeliest words of each position that get a column of logits."""

_KINDS: dict[str, AxisKind] = {
    "key feature": "key",
    "value feature": "value",
    "hidden unit": "inner",
    "feature": "model",
    "head and feature": "model",
}


def report_content(
    capture: Capture,
    model: Seq2Seq | None = None,
    views: SentenceViews | None = None,
    *,
    budget: int = BUDGET,
) -> dict[str, Any]:
    """The data of a report, ready for JSON.

    Large matrices are cut so that everything takes about ``budget`` bytes. Without ``model`` the
    report has no parameters, without ``views`` only the walk. Raises PellucidError if the model
    gave NaN or infinity.
    """
    _require_finite(capture)
    # A vocabulary has tens of thousands of columns; the report shows the words of the target and
    # their rivals.
    shown = _shown_words(capture)
    vocabulary_size = capture["logits"].shape[-1]
    # Without a model only the target's size is known, from the width of the logits.
    source_size = model.source_vocabulary_size if model else vocabulary_size
    pages = walk_through(
        capture.config, Vocabularies(source_size, vocabulary_size, shown=len(shown))
    )

    matrices = _matrices(capture, _needed(pages), shown)

    parameter_count = None
    if model is not None:
        # A capture holds no parameters, so that a report of one has formulas without their
        # matrices.
        learned = parameter_matrices(model) | output_parameters(model, list(shown))
        needed = set(_needed(pages))
        matrices |= {name: matrix for name, matrix in learned.items() if name in needed}
        parameter_count = sum(each.numel() for each in model.parameters())

    if views is not None:
        matrices |= view_matrices(views)

    content = {
        "format": FORMAT,
        "sentence": _sentence(capture),
        "words": _words(capture, shown),
        "equations": {name: TABLE[name].equations for name in ("lens", "search")},
        "facts": model_facts(capture.config, parameter_count),
        "config": capture.config.model_dump(mode="json"),
        "pages": [dataclasses.asdict(page) for page in pages],
        "entries": entries_of_pages(pages),
        "attention": _attentions(pages),
        "predictions": plain_predictions(capture.predictions),
        **(view_content(views) if views is not None else {}),
    }

    # Matrices get what the rest leaves of the budget.
    # Escaped as ASCII, which is longer than the page's UTF-8: an estimate from above.
    taken = len(json.dumps(content)) + sum(len(name) + _ENTRY_BYTES for name in matrices)
    encoded, limits = encode_matrices(matrices, budget - taken)

    return {**content, "cut": _cut_notice(limits), "matrices": encoded}


def frame_content(capture: Capture, *, budget: int, drawn_only: bool = False) -> dict[str, Any]:
    """The parts of a report that differ between two states of a model, ready for JSON.

    With ``drawn_only`` it has the matrices from which the picture of the whole model is painted,
    to 8 significant bits, and none of those that only an open part shows. Raises as
    ``report_content``.
    """
    _require_finite(capture)
    shown = _shown_words(capture)
    size = capture["logits"].shape[-1]
    pages = walk_through(capture.config, Vocabularies(size, size, shown=len(shown)))
    matrices = _matrices(capture, _drawn(pages) if drawn_only else _needed(pages), shown)

    content = {
        "sentence": _sentence(capture),
        "words": _words(capture, shown),
        "predictions": plain_predictions(capture.predictions),
    }
    taken = len(json.dumps(content)) + sum(len(name) + _ENTRY_BYTES for name in matrices)
    encoded, _ = encode_matrices(matrices, budget - taken, bits=8 if drawn_only else 16)
    return {**content, "matrices": encoded}


def _require_finite(capture: Capture) -> None:
    # NaN anywhere before the softmax makes a row of it NaN
    if not all(map(math.isfinite, capture.confidences)):
        raise PellucidError(
            "a report needs a model that gives each token a probability, got NaN",
            hint="its weights may hold NaN or infinity; pellucid inspect --json shows where",
        )


def _matrices(capture: Capture, names: Iterable[str], shown: dict[int, str]) -> dict[str, Matrix]:
    """The matrices with these names that the capture has, and the normalizer of its logits."""
    matrices = {name: _matrix(capture.entry(name), shown) for name in names if name in capture}

    # The page shows only some columns of the logits; with the normalizer of all of them it can
    # still compute their softmax.
    logits = capture["logits"].double()
    normalizer = logits.logsumexp(-1, keepdim=True)
    axes = Axis("steps", "words"), Axis("log Σ exp", "single")
    return {**matrices, "log_normalizer": Matrix(normalizer, *axes)}


def _drawn(pages: Iterable[Page]) -> list[str]:
    """The names of the matrices that ``closedParts`` of ui/towers.js and its heads paint."""
    names: dict[str, None] = {"logits": None, "probabilities": None}
    for page in pages:
        made = [step.symbols[-1].matrix for step in page.steps if step.symbols]
        found = [name for name in made if name is not None]
        # Of these kinds a closed column shows what they hand on, and weights or hidden units.
        if page.kind in ("self-attention", "cross-attention", "feed-forward"):
            found = [name for name in found[:-1] if name.endswith(_PAINTED)] + found[-1:]
        for name in found:
            heads = range(page.head_count) if HEAD in name else range(1)
            names |= {name.replace(HEAD, str(head)): None for head in heads}
    return list(names)


_PAINTED = (".weights", ".hidden")


def _needed(pages: Iterable[Page]) -> list[str]:
    """The names of all matrices that the steps use, one for each head."""
    # A dictionary and not a set, which would put the matrices in another order each time.
    names: dict[str, None] = {"logits": None, "probabilities": None}
    for page in pages:
        for step in page.steps:
            for symbol in step.symbols:
                if symbol.matrix is not None:
                    heads = range(page.head_count) if HEAD in symbol.matrix else range(1)
                    names |= {symbol.matrix.replace(HEAD, str(head)): None for head in heads}
    return list(names)


def _matrix(entry: Entry, shown: dict[int, str]) -> Matrix:
    rows, columns = entry.axes
    values: Tensor = entry.tensor
    # Shares are colored from 0 to 1, everything else around 0.
    scale: Scale = "share" if entry.name.rpartition(".")[2] in _SHARES else "signed"
    if columns == "vocabulary":
        return Matrix(values[:, list(shown)], _axis(rows, 0), _axis("candidates", 1), scale)
    return Matrix(values, _axis(rows, 0), _axis(columns, 1), scale)


_SHARES = ("weights", "probabilities")


def _axis(name: str, side: int) -> Axis:
    """The axis of a capture under the report's name; a decoder position both reads and predicts."""
    match name:
        case "source token":
            return Axis("source", "words")
        case "target token":
            return Axis("steps" if side == 0 else "says", "words")
        case "target input token":
            return Axis("reads", "words")
        case "candidates":
            return Axis("candidates", "vocabulary")
    return Axis(name, _KINDS[name])


def _shown_words(capture: Capture) -> dict[int, str]:
    """The words whose logits are shown, by id: the target's, then each position's likeliest."""
    shown = dict(zip(capture.sentence.target_ids, capture.target_tokens, strict=True))
    # The target's words come first, as they are the ones that every position is asked about.
    for row in capture.predictions:
        shown |= {word.id: word.token for word in row[:_SHOWN_PER_ROW] if word.id not in shown}
    return shown


def _sentence(capture: Capture) -> dict[str, Any]:
    sentence = capture.sentence
    return {
        "source": sentence.source,
        "target": sentence.text,
        "source_tokens": sentence.source_tokens,
        "source_ids": sentence.source_ids,
        "read_tokens": sentence.target_input_tokens,
        "read_ids": sentence.target_input_ids,
        "said_tokens": sentence.target_tokens,
        "said_ids": sentence.target_ids,
        "confidences": capture.confidences,
    }


def _words(capture: Capture, shown: dict[int, str]) -> dict[str, list[str]]:
    """The labels of the words of each axis."""
    says, reads = label_words(capture.target_tokens), label_words(capture.target_input_tokens)
    return {
        "source": label_words(capture.source_tokens),
        "reads": reads,
        "says": says,
        # A hidden state of the decoder belongs to two words: the one read and the one predicted.
        "steps": list(map(step_label, reads, says)),
        "candidates": list(map(labeler(list(shown.values())), shown.values())),
        "ends": ["shares summed", "gain of log p"],
    }


def _attentions(pages: Iterable[Page]) -> list[dict[str, Any]]:
    """The pages with attention weights, for the view of all heads."""
    return [
        {
            "page": page.name,
            "title": page.title,
            "heads": page.head_count,
            "weights": f"{page.name}.heads.{HEAD}.weights",
        }
        for page in pages
        if page.head_count
    ]


def _cut_notice(limits: Limits) -> str:
    """A sentence about what was cut for size; empty if nothing was."""
    names = {
        "weight": "rows and columns of a learned matrix",
        "inner": "hidden units",
        "model": "features of rows",
        "value": "features of values",
        "key": "features of keys",
        "words": "words",
    }
    kept = [f"{count} {names[kind]}" for kind, count in limits.items()]
    if not kept:
        return ""

    return (
        "To keep this file small, large matrices are shown in part: at most "
        + ", ".join(kept)
        + ". Each picture says so where it is cut."
    )
