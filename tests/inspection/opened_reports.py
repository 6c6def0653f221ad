"""Small models of every kind for the tests of reports, and what a report says about them."""

import json
import re
from typing import Any

import torch

from pellucid.bundle import Bundle
from pellucid.inspection.capture import inspect
from pellucid.inspection.report.content import report_content
from pellucid.inspection.report.matrices import unpack_numbers
from pellucid.model.build import build_model
from pellucid.model.config import parse_model_config

SOURCE, TARGET = "le chat dort dans le jardin", "the cat sleeps in the garden"

BLOCKS = {
    "d_model": 16,
    "d_ff": 24,
    "heads": 2,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "share_embeddings": False,
}
CELLS = {"d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "share_embeddings": False}


def random_bundle(like: Bundle, **switches: Any) -> Bundle:
    """A model that has learned nothing, with the tokenizers of another; gains are not all 1."""
    torch.manual_seed(0)
    sizes = BLOCKS if switches.get("kind", "transformer") == "transformer" else CELLS
    config = parse_model_config({**sizes, **switches})
    source, target = like.source_tokenizer, like.target_tokenizer
    model = build_model(config, source.vocabulary_size, target.vocabulary_size)
    for parameter in model.parameters():
        if parameter.dim() == 1:
            parameter.data += 0.3 * torch.randn_like(parameter)
    model.eval().requires_grad_(False)
    return Bundle(model, source, target, {}, {})


def content_of(bundle: Bundle, **options: Any) -> dict[str, Any]:
    """A report's data after a way through JSON, as a browser gets it."""
    capture = inspect(bundle, SOURCE, TARGET)
    return json.loads(json.dumps(report_content(capture, bundle.model, **options)))


def data_of(page: str) -> dict[str, Any]:
    """The data inside a page."""
    found = re.search(r'id="pellucid-report-data">(.*?)</script>', page, re.DOTALL)
    assert found
    return json.loads(found[1])


def matrix_of(content: dict[str, Any], name: str) -> torch.Tensor:
    """A matrix of the report as numbers."""
    entry = content["matrices"][name]
    data = content["matrices"][entry["same_as"]]["data"] if "same_as" in entry else entry["data"]
    return torch.tensor(list(unpack_numbers(data)), dtype=torch.float64).view(entry["shape"])
