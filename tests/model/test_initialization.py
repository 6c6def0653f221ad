"""The numbers a model starts from: drawn from the seed, with the spreads that are promised."""

import math

import pytest
import torch
from tiny_models import EVERY_KIND, tiny_model

from pellucid.model.build import build_model
from pellucid.model.config import parse_model_config
from pellucid.model.seq2seq import Seq2Seq

WIDE = {"d_model": 64, "d_ff": 256, "heads": 4, "encoder_layers": 1, "decoder_layers": 1}


def model(seed: int = 0, **settings: object) -> Seq2Seq:
    return build_model(parse_model_config({**WIDE, **settings}), 200, 200, seed=seed)


def test_the_seed_decides_every_number_and_nothing_else_does():
    torch.manual_seed(1)
    first = model()
    torch.manual_seed(2)
    second, other = model(), model(seed=3)
    for name, parameter in first.named_parameters():
        assert torch.equal(parameter, second.get_parameter(name))
        if parameter.dim() > 1:
            assert not torch.equal(parameter, other.get_parameter(name))


@pytest.mark.parametrize("variant", EVERY_KIND)
def test_every_parameter_is_drawn(variant: str):
    """What is not drawn would be whatever the memory held, and no seed would decide it."""
    torch.use_deterministic_algorithms(True)  # fills memory that is not written with NaN
    try:
        built = tiny_model(variant)
    finally:
        torch.use_deterministic_algorithms(False)
    missing = [name for name, each in built.named_parameters() if each.isnan().any()]
    assert not missing, f"draw {missing} in a case of initialize in pellucid/model/build.py"


def test_the_seed_is_0_if_none_is_given():
    given = build_model(parse_model_config(WIDE), 200, 200)
    assert torch.equal(given.source_embedding.weight, model(seed=0).source_embedding.weight)


def test_each_head_of_a_two_stage_projection_is_a_matrix_of_its_own():
    """Xavier for 16 rows and 16 columns, and for 64 and 16 in the first stage."""
    stages = model(projection="two_stage").encoder.layers[0].self_attention.two_stage
    assert stages.per_head["query"].shape == (4, 16, 16)
    for matrix, bound in [(stages.per_head["query"], 6 / 32), (stages.shared["query"], 6 / 80)]:
        assert 0.95 * math.sqrt(bound) < matrix.abs().max() <= math.sqrt(bound)


@pytest.mark.parametrize("settings", [{}, {"d_k": 8, "d_v": 40}])
def test_queries_keys_and_values_are_each_a_matrix_of_its_own(settings: dict[str, int]):
    """Xavier: uniform within ±√(6 / (rows + columns)), by each part's own rows."""
    attention = model(**settings).encoder.layers[0].self_attention
    widths = [attention.query_width, attention.query_width, attention.value_width]
    for part, width in zip(torch.split(attention.w_qkv.data, widths), widths, strict=True):
        bound = math.sqrt(6 / (width + 64))
        assert part.abs().max() <= bound
        assert part.abs().max() > 0.98 * bound
        assert part.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.05)


@pytest.mark.parametrize("side", ["inner", "outer"])
def test_feed_forward_matrices_are_uniform_within_xavier_s_bound(side: str):
    weight = getattr(model().decoder.layers[0].feed_forward, side).weight
    bound = math.sqrt(6 / (64 + 256))
    assert 0.98 * bound < weight.abs().max() <= bound


def test_scaled_embeddings_have_the_size_of_the_sinusoids():
    """Standard deviation 1/√dₘ, so that √dₘ times it is 1."""
    weight = model().target_embedding.weight
    assert (weight * 8).std().item() == pytest.approx(1.0, rel=0.05)


def test_learned_positions_are_drawn_like_embeddings():
    learned = model(positions="learned", max_positions=200).target_embedding.positions.learned
    assert (learned * 8).std().item() == pytest.approx(1.0, rel=0.05)


def test_an_untied_last_matrix_is_drawn_by_xavier():
    weight = model(tie_output=False).output_weight
    bound = math.sqrt(6 / (200 + 64))
    assert 0.98 * bound < weight.abs().max() <= bound


def test_biases_start_at_zero_and_gains_at_one():
    parameters = dict(model(attention_bias=True, output_bias=True).named_parameters())
    biases = [name for name in parameters if name.endswith(("bias", "b_qkv", "b_o"))]
    gains = [name for name in parameters if name.endswith("gain")]
    assert biases
    assert gains
    assert all((parameters[name] == 0).all() for name in biases), biases
    assert all((parameters[name] == 1).all() for name in gains), gains
