"""Matrices in bfloat16: where they are, and what they change."""

from pathlib import Path

import pytest
import torch

from pellucid.backends.load import load
from pellucid.bundle import Bundle, save_bundle
from pellucid.core.errors import ConfigError
from pellucid.model.build import build_model
from pellucid.model.config import parse_model_config
from pellucid.model.layers import linear, narrow
from pellucid.text.config import TokenizerConfig
from pellucid.text.tokenizers.tokenizer import train_tokenizer

SMALL = {"d_model": 16, "d_ff": 24, "heads": 2, "encoder_layers": 1, "decoder_layers": 2}


@pytest.mark.parametrize("with_bias", [True, False])
def test_a_product_in_bfloat16_is_the_product_up_to_its_rounding(with_bias: bool):
    """One part in 256 for each factor and for the sum; the bias is not rounded at all."""
    torch.manual_seed(0)
    x, weight = torch.rand(3, 2, 50), torch.rand(7, 50)
    bias = 1e4 + torch.rand(7) if with_bias else None
    wide = torch.nn.functional.linear(x, weight)
    got = linear(x, weight.bfloat16(), bias)
    assert got.dtype is torch.float32
    product = got if bias is None else got - bias
    torch.testing.assert_close(product, wide, rtol=3 / 256, atol=2e-3)
    assert not torch.equal(product, wide)
    assert torch.equal(linear(x, weight, bias), torch.nn.functional.linear(x, weight, bias))


def test_a_narrow_model_keeps_its_embeddings_and_says_nearly_the_same():
    model = build_model(parse_model_config(SMALL), 40, 40, seed=3).eval().requires_grad_(False)
    source, target = torch.tensor([[5, 6, 7, 3]]), torch.tensor([[2, 8, 9]])
    wide = model(source, target)
    narrow(model)
    dtypes = {name: parameter.dtype for name, parameter in model.named_parameters()}
    matrices = {name for name, dtype in dtypes.items() if dtype is torch.bfloat16}
    assert len(matrices) == 4 + 2 * 6  # w_qkv, w_o, inner and outer; a decoder attends twice
    assert model.target_embedding.weight.dtype is torch.float32
    torch.testing.assert_close(model(source, target), wide, rtol=0, atol=2e-2 * wide.abs().max())
    assert not torch.equal(model(source, target), wide)


def test_a_recurrent_model_has_no_such_matrices():
    config = parse_model_config({"kind": "rnn", "d_model": 8})
    with pytest.raises(ConfigError, match=r"only the matrices of a Transformer's blocks can be"):
        narrow(build_model(config, 20, 20))


def test_a_bundle_can_be_opened_in_bfloat16(tmp_path: Path):
    both = train_tokenizer(["a b c", "c d e"], TokenizerConfig(kind="word"))
    size = both.vocabulary_size
    config = parse_model_config(SMALL)
    bundle = Bundle(build_model(config, size, size), both, both, {"model": config.to_table()}, {})
    save_bundle(tmp_path / "bundle", bundle, card="", details={})
    translator = load(tmp_path / "bundle", "torch", compute_type="bfloat16")
    dtypes = {parameter.dtype for parameter in translator.bundle.model.parameters()}
    assert dtypes == {torch.float32, torch.bfloat16}
    assert translator.translate("a b c", max_length=4).token_log_probs
    wide = load(tmp_path / "bundle", "torch").bundle.model.parameters()
    assert {parameter.dtype for parameter in wide} == {torch.float32}
