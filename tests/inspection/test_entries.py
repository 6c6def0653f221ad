"""The table of names against what every kind of model keeps of a forward pass."""

import pytest
import torch
from tiny_models import EVERY_KIND, sources, targets, tiny_model

from pellucid.inspection.entries import describe, locate
from pellucid.model.trace import Trace


@pytest.mark.parametrize("variant", EVERY_KIND)
def test_every_kind_of_model_keeps_exactly_what_is_described_in_this_order(variant: str):
    model = tiny_model(variant)
    trace = Trace("*")
    model(sources(5), targets(1, 4), trace)
    described = describe(model.config)
    kept = [name for name in described if locate(name)[1] is None]
    assert kept == list(trace.values)
    sizes = {"source token": 5, "target token": 4, "target input token": 4}
    for name in kept:
        value = trace.values[name]
        shape = value.shape if name.endswith(".positions") else value.shape[1:]
        assert len(shape) == len(described[name].axes), name
        for axis, size in zip(described[name].axes, shape, strict=True):
            assert sizes.setdefault(axis, size) == size, (name, axis)


def test_a_head_is_found_in_the_tensor_of_all_heads():
    assert locate("encoder.layers.0.self_attention.heads.3.weights") == (
        "encoder.layers.0.self_attention.weights",
        3,
    )
    assert locate("a.heads.0.output") == ("a.heads", 0)
    assert locate("decoder.layers.1.output") == ("decoder.layers.1.output", None)


def test_without_masks_the_heads_are_those_of_the_equations():
    """What is described as the mean under the weights is just that."""
    model = tiny_model("wide values")
    trace = Trace("*.weights", "*.value", "*.heads")
    model(sources(5), targets(1, 4), trace)
    for name, weights in trace.values.items():
        if name.endswith(".weights"):
            stem = name.removesuffix(".weights")
            expected = weights @ trace.values[f"{stem}.value"]
            torch.testing.assert_close(trace.values[f"{stem}.heads"], expected)
