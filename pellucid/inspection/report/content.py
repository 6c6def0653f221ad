"""Everything a report shows, as data: words, steps and numbers, taken from one capture."""

import dataclasses
import json
from collections.abc import Iterable
from typing import Any

from torch import Tensor

from pellucid.inspection.capture import Capture
from pellucid.inspection.entries import Entry
from pellucid.inspection.parts import TABLE
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
from pellucid.inspection.report.steps import HEAD, Page, label_words
from pellucid.inspection.report.views import (
    SentenceViews,
    plain_predictions,
    view_content,
    view_matrices,
)
from pellucid.inspection.report.walk import Vocabularies, walk_through
from pellucid.model.seq2seq import Seq2Seq

FORMAT = 1
"""Rises when a report's data is no longer what older pages can show."""

BUDGET = 4_800_000
"""Bytes for all data: with styles and scripts a report stays under 5 MB."""

_ENTRY_BYTES = 150
"""For the description of a matrix, beside its numbers and its name."""

_SHOWN_PER_ROW = 5
"""How many of a row's likeliest words get a column among the logits."""

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
    """A report's data, ready for JSON.

    Matrices are cut so that all of it takes about ``budget`` bytes. Without ``model`` it cannot
    show what was learned, without ``views`` no more than the walk.
    """
    shown = _shown_words(capture)
    vocabulary_size = capture["logits"].shape[-1]
    source_size = model.source_vocabulary_size if model else vocabulary_size
    pages = walk_through(
        capture.config, Vocabularies(source_size, vocabulary_size, shown=len(shown))
    )
    matrices = {
        name: _matrix(capture.entry(name), shown) for name in _needed(pages) if name in capture
    }
    logits = capture["logits"].double()
    matrices["log_normalizer"] = Matrix(
        logits.logsumexp(-1, keepdim=True), Axis("steps", "words"), Axis("log Σ exp", "single")
    )
    parameter_count = None
    if model is not None:
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
        "attention": _attentions(pages),
        "predictions": plain_predictions(capture.predictions),
        **(view_content(views) if views is not None else {}),
    }
    taken = len(json.dumps(content)) + sum(len(name) + _ENTRY_BYTES for name in matrices)
    encoded, limits = encode_matrices(matrices, budget - taken)

    return {**content, "cut": _told(limits), "matrices": encoded}


def _needed(pages: Iterable[Page]) -> list[str]:
    """The names of all matrices that the steps are bound to, each head's for itself."""
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
    scale: Scale = "share" if entry.name.rpartition(".")[2] in _SHARES else "signed"
    if columns == "vocabulary":
        return Matrix(values[:, list(shown)], _axis(rows, 0), _axis("candidates", 1), scale)
    return Matrix(values, _axis(rows, 0), _axis(columns, 1), scale)


_SHARES = ("weights", "probabilities")


def _axis(name: str, side: int) -> Axis:
    """The axis of a capture as a report calls it; decoder rows tell what they read and say."""
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
    """The words whose logits are shown, by id: those said, then each row's likeliest."""
    said = zip(capture.sentence.target_ids, capture.target_tokens, strict=True)
    shown = dict(said)
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
    """How the words of each axis are written beside a picture."""
    says, reads = label_words(capture.target_tokens), label_words(capture.target_input_tokens)
    return {
        "source": label_words(capture.source_tokens),
        "reads": reads,
        "says": says,
        "steps": [f"{read} ▸ {said}" for read, said in zip(reads, says, strict=True)],
        "candidates": label_words(list(shown.values())),
        "ends": ["shares summed", "gain of log p"],
    }


def _attentions(pages: Iterable[Page]) -> list[dict[str, Any]]:
    """Where attention weights are, for the pictures of all heads at once."""
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


def _told(limits: Limits) -> str:
    """What was left out for size, in words; nothing if nothing was."""
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
