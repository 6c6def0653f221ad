"""Every switch of the model is the equation that it names."""

import pytest
import torch
from torch import Tensor

from pellucid.core.errors import ConfigError, ShapeError
from pellucid.core.special import BOS_ID
from pellucid.equations.alignment import dot_product_attention
from pellucid.equations.heads import split_heads
from pellucid.equations.normalization import l2_centered_norm, l2_norm, layer_norm, rms_norm
from pellucid.equations.notation.entrywise import joint_rank
from pellucid.equations.positions import (
    joint_positions,
    network_embedding,
    one_hot_positions,
    sinusoidal_positions,
    summed_positions,
)
from pellucid.model.attention import MultiHeadAttention, SelfAttention
from pellucid.model.build import build_model
from pellucid.model.config import parse_model_config
from pellucid.model.dropout import DropoutSource
from pellucid.model.layers import Norm
from pellucid.model.state import Reading
from pellucid.model.trace import Trace
from pellucid.model.transformer import Transformer

TINY = {"d_model": 8, "d_ff": 12, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}
IDS = torch.tensor([[5, 6, 7]])


def tiny(**settings: object) -> Transformer:
    model = build_model(parse_model_config({**TINY, **settings}), 9, 9).double().eval()
    assert isinstance(model, Transformer)
    return model


def words(model: Transformer) -> Tensor:
    return 8**0.5 * model.target_embedding.weight[IDS[0]]


def test_one_hot_positions_are_put_beside_the_word_and_projected_back():
    """EQ-21: (x, e) W."""
    model = tiny(positions="one_hot", max_positions=5)
    expected = one_hot_positions(words(model), 5) @ model.target_embedding.positions.matrices["w"]
    torch.testing.assert_close(model.target_embedding(IDS)[0], expected)


def test_joint_positions_are_equation_22():
    model = tiny(positions="joint", max_positions=5, position_hidden=3)
    m = model.target_embedding.positions.matrices
    assert m["w_x"].shape == (8, 3)
    expected = joint_positions(words(model), m["w_x"], m["w_e"], m["w_z"], start=2)
    torch.testing.assert_close(model.target_embedding(IDS, start=2)[0], expected)


def test_summed_positions_are_equation_23():
    model = tiny(positions="summed", max_positions=5, position_hidden=3)
    m = model.target_embedding.positions.matrices
    expected = summed_positions(words(model), m["w_x"], m["w_zx"], m["w_e"], m["w_ze"], start=1)
    torch.testing.assert_close(model.target_embedding(IDS, start=1)[0], expected)


@pytest.mark.parametrize("kind", ["relative", "rotary", "alibi", "none"])
def test_positions_inside_attention_leave_the_embedding_alone(kind: str):
    model = tiny(positions=kind)
    torch.testing.assert_close(model.target_embedding(IDS)[0], words(model))


def test_agarwals_network_stands_between_word_and_sinusoid():
    """EQ-28: ReLU(x W_x) W_zx + p."""
    model = tiny(embedding="mlp", position_hidden=3)
    embedding = model.target_embedding
    assert embedding.w_x is not None
    assert embedding.w_zx is not None
    expected = network_embedding(words(model), embedding.w_x, embedding.w_zx)
    expected = expected + sinusoidal_positions(3, 8)
    torch.testing.assert_close(embedding(IDS)[0], expected, rtol=1e-6, atol=1e-6)


@pytest.mark.by_hand
def test_a_decoder_that_starts_from_zero_reads_the_first_sinusoid_alone():
    """EQ-106: with a zero vector the first row is PE(0) = (0, 1, 0, 1, ...)."""
    model = tiny(start_symbol="zero")
    ids = torch.tensor([[BOS_ID, 5]])
    row = model.target_embedding(ids)[0]
    torch.testing.assert_close(row[0], torch.tensor([0.0, 1.0] * 4, dtype=torch.float64))
    torch.testing.assert_close(row[1], tiny().target_embedding(ids)[0, 1])


@pytest.mark.by_hand
def test_sinusoids_may_begin_at_one():
    """ER-53: the first row is then (sin 1, cos 1, ...)."""
    embedding = tiny(start_position=1).target_embedding
    places = embedding(IDS)[0] - 8**0.5 * embedding.weight[IDS[0]]
    expected = sinusoidal_positions(3, 8, start=1, dtype=torch.float64)
    torch.testing.assert_close(places, expected, rtol=1e-6, atol=1e-6)
    assert places[0, 0].item() == pytest.approx(0.841471, abs=1e-6)


@pytest.mark.parametrize("kind", ["one_hot", "joint", "summed", "learned"])
def test_numbered_positions_end_where_the_config_says(kind: str):
    model = tiny(positions=kind, max_positions=2)
    assert model.max_length == 2
    with pytest.raises(ShapeError) as caught:
        model.encode(IDS)
    assert str(caught.value) == (
        f"{kind.replace('_', '-')} positions number 2 tokens, got length 3"
    )


@pytest.mark.parametrize("kind", ["sinusoidal", "relative", "rotary", "alibi", "none"])
def test_other_positions_have_no_end(kind: str):
    model = tiny(positions=kind, max_positions=2)
    assert model.max_length is None
    model.encode(IDS)


@pytest.mark.by_hand
def test_without_positions_the_encoder_is_blind_to_order():
    """EQ-20; with any other kind it is not."""
    order = [2, 0, 1]
    for kind in ("none", "sinusoidal", "learned", "one_hot", "relative", "rotary", "alibi"):
        model = tiny(positions=kind)
        moved = model.encode(IDS[:, order]).states - model.encode(IDS).states[:, order]
        assert (moved.abs().max() < 1e-12) == (kind == "none"), kind


def test_norms_are_the_equations_of_their_names():
    x = torch.randn(3, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))

    def norm(**settings: object) -> Norm:
        return Norm(parse_model_config({**TINY, "norm_eps": 1e-3, **settings})).double()

    gain = torch.arange(8, dtype=torch.float64)
    for kind, expected in {
        "layer": layer_norm(x, gain, gain + 1, 1e-3),
        "rms": rms_norm(x, gain, 1e-3),
        "l2": l2_norm(x, 1e-3),
        "l2_centered": l2_centered_norm(x, 1e-3),
    }.items():
        module = norm(norm_kind=kind)
        if module.gain is not None:
            module.gain.data = gain
        if module.bias is not None:
            module.bias.data = gain + 1
        torch.testing.assert_close(module(x), expected)
        learned = {"layer": 2, "rms": 1}.get(kind, 0)
        assert len(list(module.parameters())) == learned
    assert list(norm(norm_affine=False).parameters()) == []
    torch.testing.assert_close(norm(norm_affine=False)(x), layer_norm(x, eps=1e-3))


@pytest.mark.by_hand
def test_all_heads_of_the_two_stage_projection_see_one_narrow_space():
    """EQ-87, ER-22: joint rank d_k = 4 instead of heads · d_k = 16."""
    sizes = {"d_model": 16, "heads": 4, "d_ff": 4}

    def rank(**settings: object) -> int:
        config = parse_model_config({**sizes, **settings})
        model = build_model(config, 9, 9).double()
        attention = next(m for m in model.modules() if isinstance(m, MultiHeadAttention))
        queries = attention.packed_weight[:16].unflatten(0, (4, 4))  # (head, key_size, d_model)
        return joint_rank(queries.transpose(1, 2))

    assert rank(projection="two_stage") == 4
    assert rank() == 16


@pytest.mark.property
def test_unscaled_attention_is_luong_s():
    """EQ-61: softmax(Q Kᵀ) V, the weights as they are captured too."""
    config = parse_model_config({**TINY, "scale_attention": False})
    module = SelfAttention(config, DropoutSource()).double()
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, generator=torch.Generator().manual_seed(1))
    x = torch.randn(1, 3, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    trace = Trace("*")
    output = module(x, Reading(), trace)
    torch.testing.assert_close(module(x, Reading()), output)
    kept = trace.values
    expected = dot_product_attention(kept["query"], kept["key"], kept["value"])
    torch.testing.assert_close(kept["heads"], expected)
    assert kept["query"].shape == split_heads(x, 2).shape


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (
            {"projection": "two_stage", "d_k": 4},
            "d_k and d_v must be left out with projection=two_stage, whose heads share one"
            " projection to d_model / heads columns (EQ-87)",
        ),
        (
            {"positions": "rotary", "d_k": 3, "d_v": 4},
            "d_k must be even with positions=rotary, which turns features in pairs, got 3",
        ),
        ({"start_position": 2}, "start_position: input should be less than or equal to 1, got 2"),
        ({"relative_clip": 0}, "relative_clip: input should be greater than or equal to 1, got 0"),
        (
            {"kind": "rnn", "positions": "alibi", "norm_kind": "rms", "projection": "two_stage"},
            "norm_kind and positions and projection are for model.kind=transformer or encoder or"
            " decoder, not for rnn: no other kind is made of its blocks",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(settings: dict[str, object], problem: str):
    with pytest.raises(ConfigError) as caught:
        parse_model_config({**TINY, **settings} if "kind" not in settings else settings)
    assert problem in str(caught.value)


def test_both_problems_of_a_config_are_told_at_once():
    with pytest.raises(ConfigError) as caught:
        parse_model_config({"projection": "two_stage", "positions": "rotary", "d_k": 3})
    assert "d_k and d_v must be left out" in str(caught.value)
    assert "d_k must be even" in str(caught.value)
