"""EQ-86: how many numbers a model has, as the catalogue derives it for the paper's base model."""

import pytest
import torch
from torch import nn

from pellucid.model.config import parse_model_config
from pellucid.model.seq2seq import Seq2Seq
from pellucid.model.transformer import Transformer

VOCABULARY = 37_000


def count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def base(**settings: object) -> Seq2Seq:
    """Without memory for its numbers: only shapes are counted."""
    with torch.device("meta"):
        return Transformer(parse_model_config(settings), VOCABULARY, VOCABULARY)


@pytest.fixture(scope="module")
def model() -> Seq2Seq:
    return base()


def test_an_encoder_block_has_3_148_288_numbers_and_2_048_for_its_norms(model: Seq2Seq):
    """2 dₘ h dₖ + 2 dₘ h dᵥ + 2 dₘ d_ff + d_ff + dₘ, and 2 dₘ per Add & Norm."""
    formula = 4 * 512 * 8 * 64 + 2 * 512 * 2048 + 2048 + 512
    assert formula == 3_148_288
    assert count(model.encoder.layers[0]) == formula + 2_048


def test_a_decoder_block_has_4_196_864_numbers_and_3_072_for_its_norms(model: Seq2Seq):
    formula = 2 * 4 * 512 * 8 * 64 + 2 * 512 * 2048 + 2048 + 512
    assert formula == 4_196_864
    assert count(model.decoder.layers[0]) == formula + 3_072


def test_six_and_six_blocks_have_44_101_632_numbers(model: Seq2Seq):
    assert count(model.encoder) + count(model.decoder) == 44_101_632


def test_the_base_model_has_63_045_632_numbers(model: Seq2Seq):
    """The paper rounds to 65 million; the tied embedding is 37,000 · 512 (ER-54)."""
    assert count(model) == 44_101_632 + 37_000 * 512 == 63_045_632


def test_with_a_last_matrix_of_its_own_and_a_bias_there_are_82_026_632():
    """The Single Page's W^S and b^S."""
    assert count(base(tie_output=False, output_bias=True)) == 82_026_632


def test_separate_embeddings_add_one_matrix():
    assert count(base(share_embeddings=False)) == 63_045_632 + 37_000 * 512


def test_pre_norm_adds_one_norm_at_the_end_of_each_stack():
    assert count(base(norm="pre")) == 63_045_632 + 2 * 2 * 512


def test_learned_positions_are_one_matrix_for_both_sides():
    assert count(base(positions="learned", max_positions=100)) == 63_045_632 + 100 * 512


def test_biases_of_attention_are_one_number_for_each_row_of_its_matrices():
    per_attention = 3 * 512 + 512
    assert count(base(attention_bias=True)) == 63_045_632 + (6 + 2 * 6) * per_attention


def test_queries_and_values_may_have_other_widths():
    """2 dₘ h dₖ + 2 dₘ h dᵥ with dₖ = 16, dᵥ = 32."""
    narrow = base(d_k=16, d_v=32).encoder.layers[0].self_attention
    assert count(narrow) == 2 * 512 * 8 * 16 + 2 * 512 * 8 * 32
