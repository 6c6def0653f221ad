"""An update asks an accelerator for numbers once.

Meta tensors have shapes and no numbers: whatever would have to wait for a number cannot be done
with them, and raises. So what runs there puts no synchronization into the step of an accelerator.
"""

import contextlib

import pytest
import torch

from pellucid.model.build import build_any_model, build_model
from pellucid.model.config import parse_model_config
from pellucid.text.batching import Batch, collate_pairs
from pellucid.training import step
from pellucid.training.config import TrainingConfig
from pellucid.training.objective import build_objective
from pellucid.training.step import build_optimizer, find_gradient

SIZES = {"d_model": 8, "d_ff": 8, "heads": 2, "encoder_layers": 2, "decoder_layers": 2}
PAIRS = [[5, 6, 7], [6], [7, 5]], [[5], [6, 6, 7, 8], [5, 7]]


def batch() -> Batch:
    return collate_pairs(*PAIRS)


def without_autocast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Meta tensors know none, on or off."""
    monkeypatch.setattr(step, "autocast", lambda *_: contextlib.nullcontext())
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: contextlib.nullcontext())
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda *_: False)


@pytest.mark.parametrize(
    ("model_settings", "training_settings"),
    [
        ({}, {}),
        ({"dropout": 0.2, "norm": "pre", "positions": "rotary"}, {}),
        ({"positions": "alibi", "layer_drop": 0.5}, {"label_smoothing": 0.0}),
        ({"positions": "learned", "max_positions": 9}, {"reduction": "sum"}),
        ({"positions": "relative"}, {"clip_rows": 1.0}),
        ({"kind": "decoder", "encoder_layers": None}, {}),
        ({}, {"r_drop": 1.0, "word_dropout": 0.1}),
        ({}, {"simcut": 1.0}),
        ({}, {"switch_out": 1.0}),
    ],
    ids=str,
)
def test_a_gradient_is_found_without_a_number(
    model_settings: dict[str, object],
    training_settings: dict[str, object],
    monkeypatch: pytest.MonkeyPatch,
):
    config = TrainingConfig(max_steps=1, **training_settings)
    with torch.device("meta"):
        given = {**SIZES, **model_settings}
        settings = {key: value for key, value in given.items() if value is not None}
        model = build_any_model(parse_model_config(settings), 9, 9)
    model.to("meta")
    asked: list[int] = []

    def read(*figures: torch.Tensor) -> list[float]:
        asked.append(sum(each.numel() for each in figures))
        return [20.0, 20.0, 10.0, 30.0, 4.0]

    monkeypatch.setattr(step, "_read", read)
    without_autocast(monkeypatch)
    batches = [batch().to("meta"), batch().to("meta")]
    report = find_gradient(
        model, build_optimizer(model, config), batches, build_objective(config), config
    )
    assert asked == [5]
    assert (report.loss, report.token_count, report.gradient_norm) == (2.0, 10, 3.0)
    assert all(each.grad is not None for each in model.parameters() if each.requires_grad) or (
        "layer_drop" in model_settings
    )


def test_without_being_told_where_the_labels_stand_it_would_have_to_wait(
    monkeypatch: pytest.MonkeyPatch,
):
    """The test above can fail."""
    without_autocast(monkeypatch)
    with torch.device("meta"):
        model = build_model(parse_model_config(SIZES), 9, 9)
    there = batch().to("meta")
    with pytest.raises(RuntimeError, match="meta"):
        model.loss(there.source, there.target_input, there.labels, 0.1)


@pytest.mark.parametrize("settings", [{}, {"r_drop": 1.0}], ids=str)
def test_told_or_looked_up_the_loss_is_the_same(settings: dict[str, float]):
    config = TrainingConfig(max_steps=1, **settings)
    model = build_model(parse_model_config({**SIZES, "dropout": 0.0}), 9, 9)
    here = batch()
    places = torch.tensor([0, 1, 5, 6, 7, 8, 9, 10, 11, 12])
    assert (here.labels.view(-1)[places] != 0).all()
    told = Batch(here.source, here.target_input, here.labels, here.target_token_count, places)
    objective = build_objective(config)
    sums = [objective(model, each) for each in (here, told)]
    assert sums[0].loss.item() == sums[1].loss.item()
    assert sums[0].token_count == sums[1].token_count == len(places)
