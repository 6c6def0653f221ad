"""The plan by which the explorer shows any sentence in a model: pages, axes, parameters.

A report holds the matrices of one sentence. A page that computes has this plan instead, fills the
same pages with what its engine computes, and reads learned matrices from its own tensors.
"""

import dataclasses
from typing import Any, Literal

from pellucid.core.special import BOS_ID, EOS_ID
from pellucid.inspection.parts import TABLE, Part, parts_of
from pellucid.inspection.report.equation_entries import entries_of_pages
from pellucid.inspection.report.facts import model_facts
from pellucid.inspection.report.matrices import Matrix
from pellucid.inspection.report.parameters import output_parameters, parameter_matrices
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
    learned = parameter_matrices(model)
    if isinstance(model, PredictsTokens | EncoderOnly):
        # The whole output layer, of which the page takes the rows of the words that it shows.
        learned |= output_parameters(model, slice(None))

    facts: list[dict[str, str]] = []
    reads: Reads = "source" if isinstance(model, EncoderOnly) else "target"
    if isinstance(model, Seq2Seq):
        reads = "pairs"
        facts = model_facts(model.config, sum(each.numel() for each in model.parameters()))

    return {
        "reads": reads,
        "start": BOS_ID,
        "stop": EOS_ID,
        "pages": [dataclasses.asdict(page) for page in pages],
        "entries": entries_of_pages(pages),
        "axes": {
            name: list(parts[plain].axes)
            for name in matrices
            if (plain := name.replace(HEAD, "0")) in parts
        },
        "parameters": _views(learned, model),
        "facts": facts,
        "equations": {name: TABLE[name].equations for name in ("lens", "search")},
        "config": model.config.model_dump(mode="json"),
        "shown": SHOWN_PER_POSITION,
    }


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


def _views(matrices: dict[str, Matrix], model: SequenceModel) -> dict[str, dict[str, Any]]:
    """The matrices that are parts of a stored tensor; those that a model computes are left out."""
    stored = {
        parameter.untyped_storage().data_ptr(): (name, parameter)
        for name, parameter in model.named_parameters()
    }
    views = {}
    for name, matrix in matrices.items():
        owner = stored.get(matrix.values.untyped_storage().data_ptr())
        if owner is None:
            continue
        tensor, parameter = owner
        views[name] = {
            "tensor": tensor,
            "offset": matrix.values.storage_offset() - parameter.storage_offset(),
            "shape": list(matrix.values.shape),
            "strides": list(matrix.values.stride()),
            "axes": [matrix.rows.name, matrix.columns.name, matrix.scale],
        }
    return views
