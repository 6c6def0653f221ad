"""Where a source is wrong about layers, positions, masks and losses, the right number."""

import math

import numpy as np
import pytest
import torch
from equation_checks import close, self_attention_weights

from pellucid.equations.alignment import additive_scores
from pellucid.equations.attention import attention, attention_scores, attention_weights
from pellucid.equations.embedding import (
    embed,
    one_hot,
    output_logits,
    scaled_embedding,
    shift_right,
)
from pellucid.equations.feed_forward import feed_forward
from pellucid.equations.heads import multi_head_attention
from pellucid.equations.losses import cross_entropy, smooth_labels
from pellucid.equations.masks import causal_mask, masked_softmax
from pellucid.equations.normalization import l2_centered_norm, layer_norm
from pellucid.equations.notation.angles import dot_product_variance
from pellucid.equations.notation.columns import feed_forward_columns
from pellucid.equations.notation.jacobian import jacobian_pair, jacobian_statistics
from pellucid.equations.notation.other_smoothings import (
    smooth_labels_excluding_label,
    smooth_labels_excluding_padding,
)
from pellucid.equations.notation.waves import is_permutation_equivariant, position_shift, wavelength
from pellucid.equations.positions import add_positions, network_embedding, sinusoidal_positions
from pellucid.equations.relative import alibi_bias
from pellucid.equations.residual import add_and_norm, residual
from pellucid.equations.softmax import softmax

INF = math.inf


@pytest.mark.property
def test_er_29_the_same_word_in_two_places_is_not_the_same_input():
    """ER-29, EQ-29: indexed by word, as printed, both rows would be equal."""
    ids, weight = torch.tensor([4, 1, 4]), torch.randn(5, 6)
    right = add_positions(embed(ids, weight), sinusoidal_positions(3, 6))
    literal = embed(ids, weight + sinusoidal_positions(5, 6))
    assert literal[0].equal(literal[2])
    assert not right[0].allclose(right[2])


@pytest.mark.by_hand
def test_er_30_and_31_phase_and_wavelengths():
    """ER-30, ER-31, EQ-27: π/2 within a pair only; the longest wave falls short of 2π·10⁴."""
    assert all(10 ** (4 * i / 64) == pytest.approx(10000 ** (i / 64)) for i in range(64))
    p = sinusoidal_positions(8, 64)
    theta = 7 / 10000 ** (torch.arange(0, 64, 2) / 64)
    close(p[7, 1::2], (theta + math.pi / 2).sin())
    close(p[7, ::2], theta.sin())
    close(theta[1] - theta[0], -1.75, tolerance=0.01)
    assert wavelength(0, 64) == 2 * math.pi
    longest = max(wavelength(feature, 64) for feature in range(64))
    assert longest / (2 * math.pi) == pytest.approx(7498.94, abs=0.01)
    assert wavelength(2, 4) / wavelength(0, 4) == pytest.approx(100)
    assert max(wavelength(i, 512) for i in range(512)) / (2 * math.pi) == pytest.approx(
        9646.62, abs=0.01
    )


@pytest.mark.property
def test_er_32_the_network_acts_on_features():
    """ER-32, EQ-103: changing one position changes that row only, with b₂ unlike b₁ in size."""
    parts = torch.randn(4, 7), torch.randn(7), torch.randn(7, 4), torch.randn(4)
    x = torch.randn(3, 4)
    changed = x.clone()
    changed[1] += 1
    difference = feed_forward(changed, *parts) - feed_forward(x, *parts)
    assert difference.abs().sum(-1).gt(0).tolist() == [False, True, False]
    w_1, b_1, w_2, b_2 = parts
    close(feed_forward_columns(x.T, w_1.T, b_1, w_2.T, b_2), feed_forward(x, *parts).T)


@pytest.mark.property
def test_er_33_centered_l2_times_root_k_is_layer_norm():
    """ER-33, EQ-93: row by row, never over the whole matrix."""
    x = torch.randn(3, 5)
    close(math.sqrt(5) * l2_centered_norm(x), layer_norm(x))
    close(l2_centered_norm(x)[0], l2_centered_norm(x[0]))


@pytest.mark.property
def test_er_36_without_its_mask_the_decoder_is_another_function():
    """ER-36, EQ-84: the last row of one block is the same; of two blocks it is not."""
    x, blocks = torch.randn(4, 6), [self_attention_weights() for _ in range(2)]

    def stack(count: int, mask: torch.Tensor | None) -> torch.Tensor:
        y = x
        for parts in blocks[:count]:
            y = add_and_norm(y, multi_head_attention(y, y, y, *parts, mask))
        return y

    close(stack(1, None)[-1], stack(1, causal_mask(4))[-1])
    assert (stack(2, None)[-1] - stack(2, causal_mask(4))[-1]).abs().max() > 1e-4


@pytest.mark.property
def test_er_38_and_62_one_new_query_against_kept_keys_needs_no_mask():
    """ER-38, ER-62, EQ-130: the newest row alone gives the same numbers as the whole prefix."""
    x, parts = torch.randn(4, 6), self_attention_weights()
    whole = multi_head_attention(x, x, x, *parts, causal_mask(4))
    close(multi_head_attention(x[3:], x, x, *parts), whole[3:])
    close(multi_head_attention(x[2:], x, x, *parts, causal_mask(2, 2)), whole[2:])


@pytest.mark.by_hand
def test_er_40_the_diagonal_is_allowed():
    """ER-40, EQ-70: a strict mask would leave the first word nothing to look at."""
    assert causal_mask(3).diagonal().all()
    strict = causal_mask(3).tril(-1)
    close(masked_softmax(torch.zeros(3, 3), strict).sum(-1), [0.0, 1, 1])


@pytest.mark.by_hand
def test_er_41_two_queries_against_five_keys():
    """ER-41, EQ-70: bottom right: rows 0 0 0 0 -∞ and 0 0 0 0 0."""
    assert causal_mask(2, offset=3).tolist() == [[True] * 4 + [False], [True] * 5]


@pytest.mark.by_hand
def test_er_42_minus_infinity_needs_care():
    """ER-42: 0 · -∞ is NaN, softmax of nothing but -∞ is NaN; the masked softmax is 0."""
    assert math.isnan(0 * -INF)
    assert softmax(torch.tensor([-INF, -INF])).isnan().all()
    nothing = torch.zeros(1, 2, dtype=torch.bool)
    close(masked_softmax(torch.zeros(1, 2), nothing), [[0.0, 0]])
    assert torch.tensor(710.0).exp() == INF
    close(softmax(torch.tensor([710.0, 710])), [0.5, 0.5])


@pytest.mark.property
def test_er_43_masking_before_or_after_scaling_is_the_same():
    """ER-43, EQ-72: 0 and -∞ do not feel 1/√dₖ."""
    q, k = torch.randn(3, 4), torch.randn(3, 4)
    hidden = ~causal_mask(3)
    before = (q @ k.T).masked_fill(hidden, -INF) / 2
    close(softmax(before), masked_softmax(attention_scores(q, k), causal_mask(3)))


@pytest.mark.property
def test_er_44_a_zero_vector_for_a_start():
    """ER-44, EQ-106: only PE(0) = (0, 1, 0, 1) is left of the first row."""
    no_word = torch.zeros(1, 5)
    first = add_positions(no_word @ torch.randn(5, 4), sinusoidal_positions(1, 4))
    close(first, [[0.0, 1, 0, 1]])


@pytest.mark.property
def test_er_47_sum_and_mean_differ_by_the_number_of_tokens():
    """ER-47, EQ-118: real tokens, not padded ones."""
    logits, labels = torch.randn(5, 7), torch.tensor([1, 2, 3, 0, 0])
    total = cross_entropy(logits, labels, "sum", pad_id=0)
    close(cross_entropy(logits, labels, "mean", pad_id=0), total / 3)


@pytest.mark.by_hand
def test_er_48_three_label_smoothings():
    """ER-48, EQ-120: the right word keeps 1 - ε + ε/|𝒱| with ours, 1 - ε with the others."""
    label = torch.tensor([2])
    kept = [
        smooth(label, 5, 0.1)[0, 2]
        for smooth in (
            smooth_labels,
            smooth_labels_excluding_label,
            lambda *arguments: smooth_labels_excluding_padding(*arguments, pad_id=0),
        )
    ]
    close(torch.stack(kept), [0.92, 0.9, 0.9])
    close(smooth_labels(label, 5, 0), one_hot(label, 5))


@pytest.mark.by_hand
def test_er_49_without_epsilon_equal_numbers_have_no_norm():
    """ER-49, EQ-91: 0/0; an ε gives zeros. Dividing by k - 1 would give 1.161895."""
    assert layer_norm(torch.ones(4)).isnan().all()
    close(layer_norm(torch.ones(4), eps=1e-5), torch.zeros(4))
    close(layer_norm(torch.tensor([1.0, 2, 3, 4]))[3], 1.341641, tolerance=5e-7)


@pytest.mark.by_hand
def test_er_50_the_factor_of_the_embedding():
    """ER-50, EQ-15: √512 = 22.627417."""
    close(scaled_embedding(torch.tensor([0]), torch.ones(1, 512))[0, 0], 22.627417, 5e-7)


@pytest.mark.property
def test_er_51_a_network_is_not_a_look_up():
    """ER-51, EQ-28: ReLU(xW_x)W_zx is not linear in x."""
    x, w = torch.randn(3, 4), torch.randn(2, 4, 4).unbind()
    doubled = network_embedding(-x, *w)
    assert not doubled.allclose(-network_embedding(x, *w))


@pytest.mark.by_hand
def test_er_53_counting_positions_from_one_is_one_rotation():
    """ER-53, EQ-32: the same R₁ for every row; read literally, Transformers report loses sin(i)."""
    close(sinusoidal_positions(5, 6, start=1), sinusoidal_positions(5, 6) @ position_shift(1, 6))
    literal = [math.cos(1), math.sin(0.01), math.cos(0.01), math.sin(0.0001)]
    close(torch.tensor(literal), [0.540302, 0.01, 0.99995, 0.0001], tolerance=5e-7)
    assert math.sin(1) == pytest.approx(sinusoidal_positions(2, 4)[1, 0].item())


@pytest.mark.property
def test_er_54_tied_or_with_a_bias():
    """ER-54, EQ-112: the paper reuses the embedding matrix, Single Page has its own and a bias."""
    weight, states = torch.randn(7, 4), torch.randn(3, 4)
    close(output_logits(states, weight.T), torch.stack([weight @ state for state in states]))
    close(output_logits(states, weight.T, torch.ones(7)), states @ weight.T + 1)


@pytest.mark.property
def test_er_56_the_range_of_a_matrix():
    """ER-56, EQ-48: NumPy 2 has no matrix.ptp(); ours equals np.ptp."""
    matrix = torch.randn(4, 4)
    assert not hasattr(matrix.numpy(), "ptp")
    assert jacobian_statistics(matrix).range == pytest.approx(np.ptp(matrix.numpy()))


@pytest.mark.property
def test_er_57_scaled_jacobians_are_not_larger_overall():
    """ER-57, EQ-49: mean exactly 0, norm = SD · size; the scaled norm is the smaller one."""
    unscaled, scaled = jacobian_pair(torch.randn(500, 16), 16)
    close(unscaled.mean((-2, -1)), torch.zeros(500))
    statistics = jacobian_statistics(unscaled[0])
    assert statistics.frobenius_norm == pytest.approx(16 * statistics.standard_deviation)
    mean_magnitude = unscaled.abs().mean(), scaled.abs().mean()
    assert mean_magnitude[0] > mean_magnitude[1]
    norms = [j.square().sum((-2, -1)).sqrt() for j in (unscaled, scaled)]
    share = (norms[0] > norms[1]).double().mean()
    assert 0.7 < share < 0.92
    assert unscaled.abs().amax((-2, -1)).min() < 1e-3 < scaled.abs().amax((-2, -1)).min()


@pytest.mark.property
def test_er_58_length_and_width_are_two_things():
    """ER-58, EQ-48: sixteen keys of width 4: scores of variance 4."""
    noise = torch.randn(16)
    _, scaled = jacobian_pair(noise, key_size=4)
    _, lees_choice = jacobian_pair(noise, key_size=16)
    close(scaled, (softmax(noise).diag() - softmax(noise).outer(softmax(noise))) / 2)
    close(2 * scaled, 4 * lees_choice)


@pytest.mark.property
def test_er_59_words_do_not_attend_alike():
    """ER-59, EQ-20: weights differ by content; blindness to order is equivariance."""
    x, parts = torch.randn(4, 6), self_attention_weights()
    assert attention_weights(x, x)[0].std() > 0.01
    order = torch.tensor([2, 0, 3, 1])
    assert is_permutation_equivariant(lambda x: multi_head_attention(x, x, x, *parts), x, order)


@pytest.mark.by_hand
def test_er_64_row_i_predicts_label_i():
    """ER-64, EQ-121: counted from 0, row 0 (the start symbol) is asked for the first word."""
    labels = torch.tensor([5, 6, 3])
    pairs = list(zip(shift_right(labels, 2).tolist(), labels.tolist(), strict=True))
    assert pairs == [(2, 5), (5, 6), (6, 3)]


def test_er_65_sinusoids_have_no_last_position():
    """ER-65, EQ-32: what can be proven is algebra: distances look alike everywhere."""
    far = sinusoidal_positions(8, 16, start=1_000_000)
    near = sinusoidal_positions(8, 16)
    close(far @ far.T, near @ near.T, tolerance=1e-9)


@pytest.mark.by_hand
def test_er_67_luong_differs_by_the_scale_only():
    """ER-67, EQ-61: the example's weights with e in place of e^{1/√2}."""
    q, k = torch.eye(2), torch.tensor([[1.0, 0], [0, 1], [1, 1]])
    total = 2 * math.e + 1
    close(softmax(q @ k.T)[0], [math.e / total, 1 / total, math.e / total])
    close(attention_weights(math.sqrt(2) * q, k), softmax(q @ k.T))


@pytest.mark.by_hand
def test_er_69_the_variance_is_the_trace_of_the_product_of_the_covariances():
    """ER-69, EQ-60: Var(q · k) = tr(Σ_q Σ_k) over all pairs of independent rows of mean 0.

    All sixteen rows of signs have the covariance I; times a matrix A it is AᵀA. With A = I the
    variance is 4 = dₖ; normed rows through large matrices have another.
    """
    signs = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0])] * 4)
    pairs = torch.cartesian_prod(torch.arange(16), torch.arange(16)).T
    close(dot_product_variance(signs[pairs[0]], signs[pairs[1]]), 4.0)

    q, k = signs @ torch.randn(4, 4), signs @ (3 * torch.randn(4, 4))
    covariances = [rows.T @ rows / 16 for rows in (q, k)]
    trace = (covariances[0] @ covariances[1]).trace()
    close(dot_product_variance(q[pairs[0]], k[pairs[1]]), trace, tolerance=1e-9)
    assert abs(trace - 4) > 1

    rows = layer_norm(torch.randn(500, 16))
    q, k = rows @ (3 * torch.randn(16, 8)), rows.flip(0) @ (3 * torch.randn(16, 8))
    assert dot_product_variance(q, k) > 8 * 100


@pytest.mark.property
def test_er_73_divergence_is_cross_entropy_less_a_constant():
    """ER-73: H(q) of a one-hot target is 0, so the two losses are one."""
    logits, labels = torch.randn(3, 5), torch.tensor([1, 0, 4])
    hard = one_hot(labels, 5)
    divergence = (hard * (hard.clamp(min=1e-300).log() - logits.log_softmax(-1))).sum()
    close(divergence, cross_entropy(logits, labels))


@pytest.mark.by_hand
def test_er_53_distances_do_not_care_where_counting_starts():
    """ER-53: relative forms do not care where counting starts."""
    close(alibi_bias(2, 3, 3), alibi_bias(2, 3, 5, offset=2)[..., 2:])


@pytest.mark.by_hand
def test_er_75_the_causal_mask_alone_makes_order_matter():
    """ER-75, EQ-20: of two words swapped, the first row is another word's and the second a mean."""
    x, order, see = torch.eye(2), torch.tensor([1, 0]), causal_mask(2)
    assert is_permutation_equivariant(lambda x: attention(x, x, x), x, order)
    assert not is_permutation_equivariant(lambda x: attention(x, x, x, see), x, order)
    # no position is added, and yet "a b" and "b a" end in different rows
    e = math.exp(math.sqrt(0.5))
    close(attention(x, x, x, see)[1], [1 / (1 + e), e / (1 + e)])
    close(attention(x[order], x[order], x[order], see)[1], [e / (1 + e), 1 / (1 + e)])


@pytest.mark.by_hand
def test_er_78_a_residual_keeps_every_kink():
    """ER-78, EQ-95: the slope of |x| jumps by 2 at 0, and so does that of x + |x|."""
    x = torch.tensor([-1e-3, 0.0, 1e-3])
    for filtered in (x.abs(), residual(x, x.abs())):
        slopes = filtered.diff() / x.diff()
        close(slopes[1] - slopes[0], 2.0)
    jump = (x > 0).double()
    close(residual(x, jump).diff()[1], 1e-3 + 1)


@pytest.mark.by_hand
def test_er_79_features_are_not_positions():
    """ER-79, EQ-24: along the positions, feature 2 of 4 changes a hundred times more slowly."""
    p = sinusoidal_positions(2, 4)
    close((p[1] - p[0])[[0, 2]], [math.sin(1), math.sin(0.01)])


@pytest.mark.by_hand
def test_er_82_what_is_most_important_depends_on_the_query():
    """ER-82, EQ-135: two states of the decoder, two different words of the source."""
    states, one, v = torch.eye(2), torch.eye(2), torch.ones(2)
    queries = torch.tensor([[3.0, 0], [0, 3]])
    scores = additive_scores(queries, states, one, one, v)
    # a saturated tanh gains little from the state that is large where the query is
    assert scores.argmax(-1).tolist() == [1, 0]
    assert softmax(queries @ states.T).argmax(-1).tolist() == [0, 1]
