"""Layer drop: in training whole blocks are left out, in evaluation none."""

import pytest
import torch
from torch import nn

from pellucid.core.errors import ConfigError
from pellucid.model.build import build_any_model, build_model
from pellucid.model.config import parse_model_config
from pellucid.model.dropout import DropoutSource, LayerDrop

SIZES = {
    "d_model": 8,
    "d_ff": 8,
    "heads": 2,
    "encoder_layers": 3,
    "decoder_layers": 2,
    "dropout": 0.0,
}
IDS = torch.tensor([[4, 5, 6, 3]]), torch.tensor([[2, 7, 8]])


def test_each_block_is_left_out_as_often_as_asked_for():
    drop = LayerDrop(0.25, DropoutSource()).train()
    layers = [nn.Identity() for _ in range(4)]
    counts = torch.zeros(4)
    for _ in range(2000):
        for index, layer in drop.kept(layers):
            assert layer is layers[index]
            counts[index] += 1
    torch.testing.assert_close(counts / 2000, torch.full((4,), 0.75), rtol=0, atol=0.05)


@pytest.mark.parametrize(("training", "rate"), [(False, 0.9), (True, 0.0)])
def test_in_evaluation_or_at_rate_zero_every_block_is_there_and_nothing_drawn(
    training: bool, rate: float
):
    source = DropoutSource()
    before = source.state()
    kept = list(LayerDrop(rate, source).train(training).kept([nn.Identity()] * 3))
    assert [index for index, _ in kept] == [0, 1, 2]
    assert source.state() == before


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_pass_without_a_block_is_that_of_the_model_that_lacks_it(norm: str):
    """With a rate near 1 all blocks go: what is left is embedding, last norm and output."""
    model = build_model(parse_model_config({**SIZES, "norm": norm, "layer_drop": 0.999999}), 9, 9)
    model.train()
    hidden = model.decode(model.encode(IDS[0]), IDS[1])
    expected = model.decoder.last_norm(model.target_embedding(IDS[1]))
    assert torch.equal(hidden, expected)
    gradients = torch.autograd.grad(hidden.sum(), model.parameters(), allow_unused=True)
    named = zip((name for name, _ in model.named_parameters()), gradients, strict=True)
    assert all(each is None for name, each in named if ".layers." in name)


@pytest.mark.parametrize("kind", ["transformer", "encoder", "decoder"])
def test_it_changes_training_and_not_evaluation_and_can_be_repeated(kind: str):
    sides = {"encoder": ("encoder_layers",), "decoder": ("decoder_layers",)}
    layers = dict.fromkeys(sides.get(kind, ("encoder_layers", "decoder_layers")), 6)
    sizes = {name: size for name, size in SIZES.items() if not name.endswith("_layers")}
    settings = {**sizes, **layers, "kind": kind}
    plain = build_any_model(parse_model_config(settings), 9, 9)
    model = build_any_model(parse_model_config({**settings, "layer_drop": 0.5}), 9, 9)
    ids = IDS if kind == "transformer" else IDS[1:]
    assert torch.equal(model.eval()(*ids), plain.eval()(*ids))
    model.train()
    passes = []
    for _ in range(2):
        model.dropout_source.seed(1)
        passes.append(model(*ids))
    assert torch.equal(*passes)
    assert not torch.equal(passes[0], plain.train()(*ids))


def test_a_recurrent_model_has_no_blocks_to_leave_out():
    with pytest.raises(ConfigError, match=r"layer_drop is for model\.kind=transformer"):
        parse_model_config({"kind": "rnn", "layer_drop": 0.1})
