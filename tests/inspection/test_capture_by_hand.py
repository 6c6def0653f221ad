"""The numbers of a capture, each worked out again from those before it and the parameters."""

import math

import pytest
import torch
from tiny_models import tiny_bundle
from torch import Tensor
from torch.nn import functional

from pellucid.core.special import BOS_ID, EOS_ID
from pellucid.equations.masks import causal_mask, masked_softmax
from pellucid.equations.normalization import layer_norm
from pellucid.equations.positions import sinusoidal_positions
from pellucid.inspection.capture import Capture, inspect
from pellucid.model.attention import MultiHeadAttention
from pellucid.model.recurrent import RecurrentSeq2Seq
from pellucid.model.transformer import Transformer

SOURCE, TARGET = "a b c d", "c a b"
SOURCE_IDS, TARGET_IDS = [4, 5, 6, 7, EOS_ID], [BOS_ID, 6, 4, 5]


def assert_close(got: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(got, expected, rtol=1e-11, atol=1e-11)


def captured(variant: str) -> tuple[Capture, Transformer]:
    bundle = tiny_bundle(variant)
    assert isinstance(bundle.model, Transformer)
    return inspect(bundle, SOURCE, TARGET), bundle.model


@pytest.mark.parametrize("variant", ["paper", "pre-norm"])
def test_the_rows_that_enter_are_scaled_embeddings_plus_sinusoids(variant: str):
    capture, model = captured(variant)
    for side, ids, embedding in (
        ("encoder", SOURCE_IDS, model.source_embedding),
        ("decoder", TARGET_IDS, model.target_embedding),
    ):
        rows = embedding.weight[ids]
        assert_close(capture[f"{side}.lookup"], rows)
        assert_close(capture[f"{side}.embedding"], rows * math.sqrt(8))
        positions = sinusoidal_positions(len(ids), 8).double()
        torch.testing.assert_close(capture[f"{side}.positions"], positions, rtol=0, atol=1e-6)
        both = capture[f"{side}.embedding"] + capture[f"{side}.positions"]
        assert_close(capture[f"{side}.input"], both)


@pytest.mark.parametrize("variant", ["paper", "pre-norm", "wide values"])
def test_every_attention_follows_from_its_rows_and_its_matrices(variant: str):
    capture, model = captured(variant)
    attentions = {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, MultiHeadAttention)
    }
    assert len(attentions) == 6
    for name, module in attentions.items():
        rows, memory, mask = _what_it_reads(capture, name)
        width, value_width = module.query_width, module.value_width
        w_q, w_k, w_v = module.packed_weight.split([width, width, value_width])
        for head in range(2):
            stem = f"{name}.heads.{head}"
            size, value_size = width // 2, value_width // 2
            part, value_part = (
                slice(head * size, (head + 1) * size),
                slice(head * value_size, (head + 1) * value_size),
            )
            query, key, value = rows @ w_q[part].T, memory @ w_k[part].T, memory @ w_v[value_part].T
            assert_close(capture[f"{stem}.query"], query)
            assert_close(capture[f"{stem}.key"], key)
            assert_close(capture[f"{stem}.value"], value)
            scores = query @ key.T / math.sqrt(size)
            assert_close(capture[f"{stem}.scores"], scores)
            weights = masked_softmax(scores, mask)
            assert_close(capture[f"{stem}.weights"], weights)
            assert_close(capture[f"{stem}.weights"].sum(-1), torch.ones(len(rows)).double())
            assert_close(capture[f"{stem}.output"], weights @ value)
        merged = torch.cat([capture[f"{name}.heads.{head}.output"] for head in range(2)], -1)
        assert_close(capture[f"{name}.concatenation"], merged)
        assert_close(capture[f"{name}.output"], merged @ module.w_o.T)


def _what_it_reads(capture: Capture, name: str) -> tuple[Tensor, Tensor, Tensor | None]:
    """Rows that ask, rows that answer, and the mask."""
    before = _input_of(capture, name)
    rows = capture[f"{name}.norm"] if capture.config.norm == "pre" else before
    if name.endswith("cross_attention"):
        return rows, capture["encoder.output"], None
    return rows, rows, causal_mask(4) if name.startswith("decoder") else None


def _input_of(capture: Capture, name: str) -> Tensor:
    """The rows that reach a sublayer, before any norm of its own."""
    block, _, part = name.rpartition(".")
    end = "residual" if capture.config.norm == "pre" else "norm"
    match part, block[-1]:
        case "cross_attention", _:
            return capture[f"{block}.self_attention.{end}"]
        case "feed_forward", _:
            last = "self" if block.startswith("encoder") else "cross"
            return capture[f"{block}.{last}_attention.{end}"]
        case _, "0":
            return capture[f"{block.partition('.')[0]}.input"]
        case _:
            return capture[f"{block[:-1]}{int(block[-1]) - 1}.output"]


@pytest.mark.parametrize("variant", ["paper", "pre-norm"])
def test_every_sublayer_is_added_and_normalized_where_the_config_says(variant: str):
    capture, model = captured(variant)
    sublayers = [name.removesuffix(".residual") for name in capture.names() if "residual" in name]
    assert len(sublayers) == 10
    for name in sublayers:
        before = _input_of(capture, name)
        assert_close(capture[f"{name}.residual"], before + capture[f"{name}.output"])
        norm = model.get_submodule(f"{name}_norm.norm")
        normalized = before if variant == "pre-norm" else capture[f"{name}.residual"]
        expected = layer_norm(normalized, norm.gain, norm.bias, norm.eps)
        assert_close(capture[f"{name}.norm"], expected)


@pytest.mark.parametrize("variant", ["paper", "pre-norm", "gelu, unscaled"])
def test_every_feed_forward_network_bends_between_two_matrices(variant: str):
    capture, model = captured(variant)
    for block in ("encoder.layers.0", "encoder.layers.1", "decoder.layers.0", "decoder.layers.1"):
        name = f"{block}.feed_forward"
        network = model.get_submodule(name)
        rows = capture[f"{name}.norm"] if variant == "pre-norm" else _input_of(capture, name)
        inner = rows @ network.inner.weight.T + network.inner.bias
        assert_close(capture[f"{name}.preactivation"], inner)
        bent = functional.gelu(inner) if "gelu" in variant else inner.clamp(min=0)
        assert_close(capture[f"{name}.hidden"], bent)
        expected = bent @ network.outer.weight.T + network.outer.bias
        assert_close(capture[f"{name}.output"], expected)
        end = "residual" if variant == "pre-norm" else "norm"
        assert_close(capture[f"{block}.output"], capture[f"{name}.{end}"])


@pytest.mark.parametrize("variant", ["paper", "pre-norm", "biases, untied, unshared"])
def test_the_distribution_follows_from_the_decoders_rows(variant: str):
    capture, model = captured(variant)
    for side in ("encoder", "decoder"):
        last = capture[f"{side}.layers.1.output"]
        norm = model.get_submodule(f"{side}.last_norm")
        expected = layer_norm(last, norm.gain, norm.bias, norm.eps) if "pre" in variant else last
        assert_close(capture[f"{side}.output"], expected)
    logits = capture["decoder.output"] @ model.output_weight.T
    if model.output_bias is not None:
        logits = logits + model.output_bias
    assert_close(capture["logits"], logits)
    whole = model(torch.tensor([SOURCE_IDS]), torch.tensor([TARGET_IDS]))[0]
    assert_close(capture["logits"], whole)
    exponentials = logits.exp()
    expected = exponentials / exponentials.sum(-1, keepdim=True)
    assert_close(capture["probabilities"], expected)


@pytest.mark.parametrize("variant", ["additive", "dot, gru", "general, gru, not fed"])
def test_what_a_recurrent_decoder_looks_at_follows_from_its_states(variant: str):
    bundle = tiny_bundle(variant)
    capture, model = inspect(bundle, SOURCE, TARGET), bundle.model
    assert isinstance(model, RecurrentSeq2Seq)
    hidden, states = capture["decoder.layers.1.hidden"], capture["encoder.output"]
    attention = model.decoder.cross_attention
    match model.config.attention:
        case "dot":
            scores = hidden @ states.T
        case "general":
            scores = hidden @ attention.w_query @ states.T
        case "additive":
            query, key = hidden @ attention.w_query, states @ attention.w_key
            scores = torch.tanh(query[:, None] + key[None]) @ attention.v
    stem = "decoder.cross_attention"
    assert_close(capture[f"{stem}.heads.0.scores"], scores)
    weights = scores.softmax(-1)
    assert_close(capture[f"{stem}.heads.0.weights"], weights)
    context = weights @ states
    assert_close(capture[f"{stem}.context"], context)
    expected = torch.tanh(torch.cat([context, hidden], -1) @ attention.w_output)
    assert_close(capture[f"{stem}.output"], expected)
    assert_close(capture["decoder.output"], expected)
    assert_close(capture["logits"], expected @ model.output_weight.T)
