"""The tensors of a file are compared with the parameters of the model, by name, shape and type."""

from pathlib import Path

import pytest
import torch

from pellucid.core.errors import BundleError
from pellucid.model.build import build_any_model
from pellucid.model.config import parse_model_config
from pellucid.model.stored import load_model_tensors, model_tensors


def test_every_tensor_that_does_not_fit_is_named_at_once():
    """Missing, left over, of another shape, and whole numbers; no tensor is copied before that."""
    config = parse_model_config({"kind": "skipgram", "d_model": 2})
    model = build_any_model(config, 6, 6)
    before = {name: tensor.clone() for name, tensor in model_tensors(model).items()}
    first, *others = before
    tensors = {name: torch.ones_like(before[name]) for name in others}

    with pytest.raises(BundleError) as error:
        load_model_tensors(model, tensors | {"strange": torch.ones(1)}, Path("file"))
    assert f"strange is not part of this model; {first} is missing" in str(error.value)

    wrong = {first: torch.ones(3, 3), others[0]: torch.ones_like(before[others[0]]).long()}
    with pytest.raises(BundleError) as error:
        load_model_tensors(model, tensors | wrong, Path("file"))
    shape = tuple(before[first].shape)
    assert f"{first} should be {shape}, is (3, 3)" in str(error.value)
    assert f"{others[0]} should hold floating-point numbers, holds torch.int64" in str(error.value)
    assert all(torch.equal(before[name], now) for name, now in model_tensors(model).items())
