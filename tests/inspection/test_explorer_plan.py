"""The plan of the explorer: every kind has one, and its parameters are those of the report."""

from pathlib import Path
from typing import Any

import pytest
import torch
from opened_reports import SOURCE, TARGET, random_bundle

from pellucid.bundle import Bundle, load_bundle
from pellucid.inspection.capture import inspect
from pellucid.inspection.report.content import report_content
from pellucid.inspection.report.parameters import parameter_matrices
from pellucid.inspection.report.plan import explorer_plan
from pellucid.model.build import build_any_model
from pellucid.model.config import parse_model_config
from pellucid.model.seq2seq import SequenceModel
from pellucid.model.stored import model_tensors

SWITCHES: dict[str, dict[str, Any]] = {
    "pre-norm": {"norm": "pre"},
    "biases": {"attention_bias": True, "output_bias": True, "tie_output": False},
    "wide values": {"d_k": 3, "d_v": 5},
}


@pytest.fixture(scope="module")
def bundle(tiny_run: Path) -> Bundle:
    return load_bundle(tiny_run)


def read(model: SequenceModel, view: dict[str, Any]) -> torch.Tensor:
    """A matrix from the tensors of a bundle, as the page reads it."""
    numbers = model_tensors(model)[view["tensor"]].detach().reshape(-1)
    rows, columns = view["shape"]
    at = (
        view["offset"]
        + view["strides"][0] * torch.arange(rows).unsqueeze(1)
        + view["strides"][1] * torch.arange(columns)
    )
    return numbers[at]


@pytest.mark.parametrize("switches", SWITCHES.values(), ids=SWITCHES)
def test_every_learned_matrix_is_read_from_a_stored_tensor(
    bundle: Bundle, switches: dict[str, Any]
):
    model = random_bundle(bundle, **switches).model
    views = explorer_plan(model)["parameters"]
    matrices = parameter_matrices(model)
    assert set(matrices) <= set(views)
    for name, matrix in matrices.items():
        torch.testing.assert_close(read(model, views[name]), matrix.values, rtol=0, atol=0)
    weight = read(model, views["parameters.output_weight"])
    torch.testing.assert_close(weight, model.output_weight.detach().T, rtol=0, atol=0)


def test_composite_projections_are_in_no_stored_tensor(bundle: Bundle):
    model = random_bundle(bundle, projection="two_stage").model
    views = explorer_plan(model)["parameters"]
    assert not [name for name in views if name.endswith((".query", ".key", ".value"))]


def test_the_pages_of_a_plan_and_of_a_report_name_the_same_matrices(bundle: Bundle):
    pages = report_content(inspect(bundle, SOURCE, TARGET), bundle.model)["pages"]
    names = [
        [symbol["matrix"] for step in page["steps"] for symbol in step["symbols"]] for page in pages
    ]
    assert names == [
        [symbol["matrix"] for step in page["steps"] for symbol in step["symbols"]]
        for page in explorer_plan(bundle.model)["pages"]
    ]


@pytest.mark.parametrize(
    ("kind", "reads", "sides"),
    [
        ("encoder", "source", {"encoder"}),
        ("decoder", "target", {"decoder"}),
        ("rnn", "pairs", {"encoder", "decoder"}),
        ("rnn-attention", "pairs", {"encoder", "decoder"}),
    ],
)
def test_every_kind_that_predicts_words_has_a_plan(kind: str, reads: str, sides: set[str]):
    sizes = {"d_model": 16} | ({"d_ff": 24, "heads": 2} if kind in ("encoder", "decoder") else {})
    plan = explorer_plan(build_any_model(parse_model_config({"kind": kind, **sizes}), 20, 20))
    assert plan["reads"] == reads
    names = [page["name"] for page in plan["pages"]]
    assert {name.partition(".")[0] for name in names} == {*sides, "output"}
    assert not [name for name in names if kind == "decoder" and "cross_attention" in name]
    # What a page shows has axes, or is a parameter.
    for page in plan["pages"]:
        for step in page["steps"]:
            result = step["symbols"][-1]["matrix"] if step["symbols"] else None
            assert result is None or result in plan["axes"], result
