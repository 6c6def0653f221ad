"""The plan by which the explorer shows any sentence in a model: pages, axes, parameters.

A report holds the matrices of one sentence. A page that computes has this plan instead, fills the
same pages with what its engine computes, and reads learned matrices from its own tensors.
"""

import dataclasses
from collections.abc import Iterable
from typing import Any, Literal

from torch import Tensor

from pellucid.core.special import BOS_ID, EOS_ID
from pellucid.inspection.parts import TABLE, Part, parts_of
from pellucid.inspection.report.equation_entries import entries_of_pages
from pellucid.inspection.report.facts import model_facts
from pellucid.inspection.report.matrices import Matrix, Scale
from pellucid.inspection.report.parameters import parameter_matrices
from pellucid.inspection.report.steps import HEAD, Page
from pellucid.inspection.report.walk import (
    Vocabularies,
    as_transformer,
    walk_plain_text,
    walk_through,
)
from pellucid.model.config import DecoderConfig, EncoderConfig
from pellucid.model.seq2seq import PredictsTokens, Seq2Seq, SequenceModel
from pellucid.model.text_models import EncoderOnly

SHOWN_PER_POSITION = 5
"""The number of likeliest words of each position that get a column of logits."""

Reads = Literal["pairs", "source", "target"]
"""The texts that a model reads: a source and a translation, or one text by its encoder or decoder.
"""


def explorer_plan(model: SequenceModel) -> dict[str, Any]:
    """The plan for a model that predicts words, ready for JSON.

    ``pages`` are those of a report, ``axes`` has for each matrix of a page the names of its rows
    and columns and its scale, and ``parameters`` says for each learned matrix which elements of
    which tensor of the bundle it is: element (i, j) is ``offset + i * strides[0] + j *
    strides[1]``.
    """
    pages, parts = _pages(model)
    names = [symbol.matrix for page in pages for step in page.steps for symbol in step.symbols]
    matrices = dict.fromkeys(name for name in names if name is not None)
    facts: list[dict[str, str]] = []
    if isinstance(model, Seq2Seq):
        facts = model_facts(model.config, sum(each.numel() for each in model.parameters()))

    return {
        "reads": _reads(model),
        "start": BOS_ID,
        "stop": EOS_ID,
        "pages": [dataclasses.asdict(page) for page in pages],
        "entries": entries_of_pages(pages),
        "axes": {name: _axes(parts[plain]) for name, plain in _plain(matrices) if plain in parts},
        "parameters": _views(parameter_matrices(model), model) | _output(model),
        "facts": facts,
        "equations": {name: TABLE[name].equations for name in ("lens", "search")},
        "config": model.config.model_dump(mode="json"),
        "shown": SHOWN_PER_POSITION,
    }


def _reads(model: SequenceModel) -> Reads:
    if isinstance(model, Seq2Seq):
        return "pairs"
    return "source" if isinstance(model, EncoderOnly) else "target"


def _pages(model: SequenceModel) -> tuple[list[Page], dict[str, Part]]:
    """The pages of a model and its intermediates by name."""
    config = model.config
    source, target = model.source_vocabulary_size, model.target_vocabulary_size
    if isinstance(config, EncoderConfig | DecoderConfig):
        # The parts of a Transformer that the model does not have are in no page.
        return walk_plain_text(config, target, shown=0), parts_of(as_transformer(config))
    assert isinstance(model, Seq2Seq)
    pages = walk_through(model.config, Vocabularies(source, target, shown=0))
    return pages, parts_of(model.config)


def _plain(names: Iterable[str]) -> Iterable[tuple[str, str]]:
    return ((name, name.replace(HEAD, "0")) for name in names)


def _axes(part: Part) -> list[str]:
    rows, columns = part.axes
    return [rows, columns]


def _views(matrices: dict[str, Matrix], model: SequenceModel) -> dict[str, dict[str, Any]]:
    """The matrices that are parts of a stored tensor; those that a model computes are left out."""
    stored = {
        parameter.untyped_storage().data_ptr(): (name, parameter)
        for name, parameter in model.named_parameters()
    }
    views = {}
    for name, matrix in matrices.items():
        owner = stored.get(matrix.values.untyped_storage().data_ptr())
        if owner is not None:
            views[name] = {**_view(matrix.values, *owner), "axes": _named_axes(matrix)}
    return views


def _view(values: Tensor, name: str, parameter: Tensor) -> dict[str, Any]:
    return {
        "tensor": name,
        "offset": values.storage_offset() - parameter.storage_offset(),
        "shape": list(values.shape),
        "strides": list(values.stride()),
    }


def _named_axes(matrix: Matrix) -> list[str]:
    scale: Scale = matrix.scale
    return [matrix.rows.name, matrix.columns.name, scale]


def _output(model: SequenceModel) -> dict[str, dict[str, Any]]:
    """The output layer, of which the page takes the rows of the words that it shows."""
    if not isinstance(model, PredictsTokens | EncoderOnly):
        return {}
    found = {"parameters.output_weight": model.output_weight.T}
    if model.output_bias is not None:
        found["parameters.output_bias"] = model.output_bias.unsqueeze(0)
    views = {}
    for name, values in found.items():
        for tensor, parameter in model.named_parameters():
            if parameter.untyped_storage().data_ptr() == values.untyped_storage().data_ptr():
                axes = ["feature" if values.shape[0] > 1 else "learned", "candidates", "signed"]
                views[name] = {**_view(values, tensor, parameter), "axes": axes}
    return views
