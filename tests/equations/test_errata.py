"""Where a source is wrong about attention, the right number; ER-xx are those of docs/ERRATA.md."""

import math

import pytest
import torch
from equation_checks import close, self_attention_weights

from pellucid.equations.attention import attention_weights
from pellucid.equations.embedding import shift_right
from pellucid.equations.heads import merge_heads, multi_head_attention, two_stage_weights
from pellucid.equations.masks import causal_mask, masked_softmax
from pellucid.equations.normalization import layer_norm
from pellucid.equations.notation.angles import (
    angle_weights,
    cosine,
    exp_cosine,
    exp_cosine_crossing,
)
from pellucid.equations.notation.columns import weights_columns
from pellucid.equations.notation.entrywise import (
    attention_head,
    attention_normalizer,
    attention_weight,
    joint_rank,
)
from pellucid.equations.positions import add_positions, sinusoidal_positions
from pellucid.equations.residual import add_and_norm
from pellucid.equations.softmax import softmax

INF = math.inf


@pytest.mark.by_hand
def test_er_01_the_masked_softmax_of_the_transformers_report():
    """ER-01, EQ-75: rows 2 to 4 of its example; by hand exp of .1, .2; .3, .4, .2; .1 … .4."""
    scores = torch.tensor(
        [[0.2, 0.3, 0.5, 0.1], [0.1, 0.2, 0.7, 0], [0.3, 0.4, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]]
    )
    weights = masked_softmax(scores, causal_mask(4))
    for i, row in enumerate(scores.tolist()):
        kept = [math.exp(score) for score in row[: i + 1]]
        close(weights[i], [*(e / sum(kept) for e in kept), *[0.0] * (3 - i)])
    right = [
        [1.0, 0, 0, 0],
        [0.475021, 0.524979, 0, 0],
        [0.332225, 0.367165, 0.300610, 0],
        [0.213838, 0.236328, 0.261183, 0.288651],
    ]
    close(weights, right, tolerance=5e-7)
    printed = torch.tensor(
        [
            [1.0, 0, 0, 0],
            [0.5, 0.5, 0, 0],
            [0.4759, 0.3092, 0.2148, 0],
            [0.2824, 0.3072, 0.3333, 0.0771],
        ]
    )
    errors = (weights - printed).abs().max(dim=-1).values
    close(errors, [0.0, 0.0250, 0.1437, 0.2116], tolerance=5e-5)


@pytest.mark.by_hand
def test_er_02_e_to_the_tenth():
    """ER-02, EQ-44: a score of 10 against 0 gives odds of 22,026.47, not of 22,046.5."""
    p = softmax(torch.tensor([0.0, 10]))
    close(p[1] / p[0], 22026.4658, tolerance=1e-4)
    printed = torch.tensor([1, 22046.5]) / 22047.5
    assert (p - printed).abs().max() > 4e-8
    p = softmax(torch.tensor([0.0, 20]))
    close(p[1] / p[0], 485165195.4098, tolerance=1e-3)


@pytest.mark.by_hand
def test_er_03_softmax_of_ten_times_one_two():
    """ER-03, EQ-43: 4.54·10⁻⁵ rounds to 5·10⁻⁵, not 4·10⁻⁵; (.27, .73) is right."""
    close(softmax(torch.tensor([1.0, 2])), [0.268941, 0.731059], tolerance=5e-7)
    close(softmax(torch.tensor([10.0, 20])), [4.539787e-5, 0.9999546], tolerance=5e-8)


@pytest.mark.by_hand
def test_er_04_the_zero_norm_makes_no_distribution():
    """ER-04, EQ-38: dividing (e, 1, 1) by how many entries it has sums to 1.573."""
    x = torch.tensor([1.0, 0, 0])
    literal = x.exp() / torch.linalg.vector_norm(x.exp(), ord=0)
    close(literal.sum(), (math.e + 2) / 3)
    close(x.exp() / torch.linalg.vector_norm(x.exp(), ord=1), softmax(x))


@pytest.mark.by_hand
def test_er_05_where_the_exponential_is_the_smaller_one():
    """ER-05, EQ-59: |exp cos θ| < |cos θ| from 124.5513° to 235.4487° only; 95.7° refutes it."""
    crossing = exp_cosine_crossing()
    assert crossing == pytest.approx(-0.5671432904, abs=1e-10)
    degrees = torch.arange(0, 360, 0.25)
    theta = degrees.deg2rad()
    smaller = exp_cosine(theta) < theta.cos().abs()
    assert smaller.equal((degrees > 124.5513) & (degrees < 235.4487))
    assert smaller.equal(theta.cos() < crossing)
    close(exp_cosine(torch.tensor(-0.1).acos()), 0.9048, tolerance=5e-5)


def test_er_06_a_long_key_at_a_larger_angle_can_win():
    """ER-06, EQ-58: weights follow |q||k|cos θ, not cos θ alone."""
    query, keys = torch.tensor([[1.0, 0]]), torch.tensor([[1.0, 0], [3.0, 3]])
    weights, agreement = angle_weights(query, keys)[0], cosine(query, keys)[0]
    assert agreement[0] > agreement[1]
    assert weights[0] < weights[1]
    close(weights, attention_weights(query, keys)[0])


@pytest.mark.property
def test_er_08_the_parenthesis_of_agarwal():
    """ER-08, EQ-109: attention on 2Y without a residual is another function."""
    y, parts = torch.randn(3, 6), self_attention_weights()

    def attend(y: torch.Tensor) -> torch.Tensor:
        return multi_head_attention(y, y, y, *parts, causal_mask(3))

    right, literal = add_and_norm(y, attend(y)), layer_norm(attend(y + y))
    assert (right - literal).abs().max() > 0.1


@pytest.mark.by_hand
def test_er_09_and_46_the_shift_starts_at_the_second_row():
    """ER-09, ER-45, ER-46, EQ-106: yᵢ = y'ᵢ₋₁ from i = 2 on; labels end in stop, inputs do not."""
    start, stop, words = 2, 3, [7, 8, 9, 6]
    labels = torch.tensor([*words, stop])
    assert shift_right(labels, start).tolist() == [start, *words]


@pytest.mark.by_hand
def test_er_15_every_query_has_its_own_normalizer():
    """ER-15, EQ-54: Σⱼ exp is 2e^{1/√2} + 1 for the first query, 2 + e^{1/√2} for the second."""
    queries, keys = torch.eye(2), torch.tensor([[1.0, 0], [1, 0], [0, 1]])
    e = math.exp(1 / math.sqrt(2))
    close(attention_normalizer(queries[0], keys), 2 * e + 1)
    close(attention_normalizer(queries[1], keys), 2 + e)
    close(attention_weight(queries[0], keys, 2), 1 / (2 * e + 1))
    close(attention_weight(queries[1], keys, 2), e / (2 + e))


@pytest.mark.property
def test_er_17_multi_head_output_is_as_wide_as_the_model():
    """ER-17, ER-72, EQ-79: with h·dᵥ = 8 and d_model = 6 the output has 6 columns."""
    x = torch.randn(3, 6)
    parts = [torch.randn(2, 6, 5), torch.randn(2, 6, 5), torch.randn(2, 6, 4), torch.randn(8, 6)]
    output = multi_head_attention(x, x, x, *parts)
    assert output.shape == x.shape
    assert add_and_norm(x, output).shape == x.shape


@pytest.mark.property
def test_er_19_the_embedding_is_added_once():
    """ER-19, EQ-29: PE depends on the shape only."""
    x = torch.randn(3, 4)
    p = sinusoidal_positions(*x.shape)
    close(add_positions(x, p) - x, p)
    close(add_positions(torch.zeros(3, 4), p), p)


def test_er_21_heads_stand_side_by_side():
    """ER-21, EQ-88: stacked on top of each other they cannot multiply W_O."""
    heads, w_o = torch.randn(4, 5, 3), torch.randn(12, 7)
    assert merge_heads(heads)[1].equal(torch.cat([head[1] for head in heads]))
    assert (merge_heads(heads) @ w_o).shape == (5, 7)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        heads.flatten(0, 1) @ w_o


@pytest.mark.property
def test_er_22_two_stages_see_fewer_dimensions():
    """ER-22, EQ-87: D = 16, h = 4, dₖ = 4: joint rank 4, not 16; a wide stage 1 loses none."""
    assert joint_rank(torch.randn(4, 16, 4)) == 16
    shared, per_head = torch.randn(16, 4), torch.randn(4, 4, 4)
    both = two_stage_weights(shared, per_head)
    assert joint_rank(both) == 4
    x = torch.randn(3, 16)
    close(x @ both[2], x @ shared @ per_head[2])
    assert joint_rank(torch.randn(16, 16) @ torch.randn(4, 16, 4)) == 16


@pytest.mark.property
def test_er_25_and_26_keys_are_what_is_random():
    """ER-25, ER-26, EQ-39: columns sum over keys, the first axis; the same numbers transposed."""
    q, k = torch.randn(3, 4), torch.randn(5, 4)
    columns = weights_columns(q.T, k.T)
    close(columns, attention_weights(q, k).T)
    close(columns.sum(0), torch.ones(3))


@pytest.mark.property
def test_er_28_an_identity_for_the_output_projection_gives_bayesuvius():
    """ER-28, EQ-68: without W^O the heads are only merged."""
    x = torch.randn(3, 6)
    w_q, w_k, w_v, w_o = self_attention_weights()
    merged = merge_heads(
        torch.stack([attention_head(x, x, x, w_q[i], w_k[i], w_v[i]) for i in range(2)])
    )
    close(multi_head_attention(x, x, x, w_q, w_k, w_v, torch.eye(6)), merged)
    close(multi_head_attention(x, x, x, w_q, w_k, w_v, w_o), merged @ w_o)
