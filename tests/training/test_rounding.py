"""Quantization-aware training: where gradients are found, and what they change."""

import copy

import numpy as np
import pytest
import torch
from tiny_models import sources, targets, tiny_model

from pellucid.backends.marian_files.items import quantize
from pellucid.core.errors import ConfigError
from pellucid.core.special import EOS_ID
from pellucid.equations.regularization import rounded_to_int8
from pellucid.model.seq2seq import Seq2Seq
from pellucid.text.batching import Batch
from pellucid.training.config import TrainingConfig
from pellucid.training.objective import build_objective
from pellucid.training.precision import rounded_matrices
from pellucid.training.step import build_optimizer, find_gradient, update


def batch() -> Batch:
    inputs = targets(3, 5)
    ends = torch.full((3, 1), EOS_ID)
    labels = torch.cat([inputs[:, 1:], ends], dim=1)
    return Batch(sources(4, 6, 5), inputs, labels, labels.numel())


def config(rounding: str) -> TrainingConfig:
    return TrainingConfig.parse(
        {"rounding": rounding, "max_steps": 1, "optimizer": "sgd", "learning_rate": 0.01}, "a test"
    )


def gradients(model: Seq2Seq, rounding: str) -> dict[str, torch.Tensor]:
    settings = config(rounding)
    find_gradient(
        model, build_optimizer(model, settings), [batch()], build_objective(settings, []), settings
    )
    return {
        name: each.grad.clone() for name, each in model.named_parameters() if each.grad is not None
    }


@pytest.mark.parametrize("variant", ["paper", "ssru, pre-norm", "additive"])
def test_the_gradient_is_that_at_the_rounded_matrices(variant: str):
    model = tiny_model(variant, dropout=0.0)
    rounded = copy.deepcopy(model)
    with torch.no_grad():
        for each in rounded.parameters():
            if each.dim() > 1:
                each.copy_(rounded_to_int8(each))

    before = copy.deepcopy(model.state_dict())
    found, expected = gradients(model, "int8"), gradients(rounded, "none")
    for name, each in found.items():
        assert torch.equal(each, expected[name]), name
    plain = gradients(model, "none")
    assert any(not torch.equal(each, plain[name]) for name, each in found.items())

    # no parameter has changed, and gains and biases were not rounded
    after = model.state_dict()
    assert all(torch.equal(after[name], before[name]) for name in before)


def test_an_update_changes_the_exact_matrices_and_small_steps_add_up():
    model = tiny_model(dropout=0.0)
    exact = {name: each.detach().clone() for name, each in model.named_parameters()}
    settings = config("int8")
    optimizer = build_optimizer(model, settings)
    update(model, optimizer, [batch()], build_objective(settings, []), settings, rate=1e-6)
    for name, each in model.named_parameters():
        moved = (each - exact[name]).abs().max()
        step = exact[name].abs().max() / 127
        assert 0 < moved < step / 2, name  # rounding would have lost it


def test_the_exact_matrices_are_there_again_after_an_error():
    model = tiny_model()
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(RuntimeError, match="stopped"), rounded_matrices(model, "int8"):
        raise RuntimeError("stopped")
    after = model.state_dict()
    assert all(torch.equal(after[name], before[name]) for name in before)


def test_the_rounded_matrix_is_that_of_the_exported_file():
    matrix = torch.randn(7, 5, generator=torch.Generator().manual_seed(1))
    in_file = quantize(matrix.numpy())
    widened = torch.from_numpy(np.asarray(in_file.widened()))
    assert torch.allclose(rounded_to_int8(matrix), widened, rtol=0, atol=5e-7)
    assert torch.equal(rounded_to_int8(torch.zeros(2, 3)), torch.zeros(2, 3))


def test_by_hand():
    """s = 1.27 / 127 = 0.01, so 1.4, -0.6 and 0.5 steps are 1, -1 and, to even, 0."""
    found = rounded_to_int8(torch.tensor([1.27, 0.014, -0.006, 0.0], dtype=torch.float64))
    assert found.tolist() == pytest.approx([1.27, 0.01, -0.01, 0.0])


def test_shards_of_matrices_are_refused():
    with pytest.raises(ConfigError, match="rounding=int8 needs whole matrices"):
        TrainingConfig.parse({"rounding": "int8", "sharding": "fsdp", "max_steps": 1}, "a test")
