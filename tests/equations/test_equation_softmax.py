import math

import numpy as np
import pytest
import torch
from equation_checks import close

from pellucid.equations.attention import attention
from pellucid.equations.notation.jacobian import (
    attention_gradients,
    jacobian_pair,
    jacobian_statistics,
    numeric_jacobian,
    scaled_softmax,
    softmax_jacobian,
)
from pellucid.equations.softmax import log_softmax, softmax

E = math.e


@pytest.mark.by_hand
def test_one_and_two_zeros_by_hand():
    """EQ-38, EQ-40: (1, 0, 0) → (e, 1, 1) / (e + 2)."""
    close(softmax(torch.tensor([1.0, 0, 0])), [E / (E + 2), 1 / (E + 2), 1 / (E + 2)])


@pytest.mark.by_hand
def test_ten_and_two_zeros_is_nearly_certain():
    """EQ-41: (10, 0, 0) → (e¹⁰, 1, 1) / (e¹⁰ + 2), within 10⁻⁴ of (1, 0, 0)."""
    norm = E**10 + 2
    p = softmax(torch.tensor([10.0, 0, 0]))
    close(p, [E**10 / norm, 1 / norm, 1 / norm])
    close(p, [1.0, 0, 0], tolerance=1e-4)


@pytest.mark.by_hand
@pytest.mark.parametrize("a", [-1000.0, 0.0, 5.0, 1000.0])
def test_equal_scores_get_equal_weights(a):
    """EQ-42: (a, a, a) → (1, 1, 1) / 3 for any a."""
    close(softmax(torch.full((3,), a)), [1 / 3] * 3)


@pytest.mark.by_hand
def test_ten_times_the_scores_are_not_ten_times_the_odds():
    """EQ-43: (1, 2) gives odds of e, (10, 20) odds of e¹⁰."""
    v = torch.tensor([1.0, 2])
    close(softmax(v), [1 / (1 + E), E / (1 + E)])
    close(softmax(10 * v), [1 / (1 + E**10), E**10 / (1 + E**10)])


def odds(x: torch.Tensor) -> torch.Tensor:
    """How much likelier the second of two scores (0, x) is: eˣ, and nothing else of the softmax."""
    p = softmax(torch.stack((torch.zeros_like(x), x), dim=-1))
    return p[..., 1] / p[..., 0]


@pytest.mark.by_hand
def test_the_odds_of_two_scores_are_the_exponential_of_their_difference():
    """EQ-44: e¹ = 2.71828, e¹⁰ = 22,026.4658; ten more multiply the odds by e¹⁰ again."""
    close(odds(torch.tensor([0.0, 1])), [1.0, 2.718281828459045])
    close(odds(torch.tensor(10.0)), 22026.465794806718, tolerance=1e-7)
    close(odds(torch.tensor(20.0)) / odds(torch.tensor(10.0)) / E**10, 1.0)


@pytest.mark.referee
def test_the_odds_grow_as_fast_as_they_are_large():
    """EQ-44: d/dx eˣ = eˣ, by autograd through the softmax and by the difference quotient."""
    x = torch.tensor([-1.0, 0, 1, 3], requires_grad=True)
    [slope] = torch.autograd.grad(odds(x).sum(), x)
    close(slope, odds(x).detach(), tolerance=1e-11)
    with torch.no_grad():
        close((odds(x + 1e-5) - odds(x - 1e-5)) / 2e-5, odds(x), tolerance=1e-6)


@pytest.mark.property
def test_a_shift_changes_nothing_and_huge_scores_stay_finite():
    """EQ-38: softmax(x + c) = softmax(x), although exp(1000) is infinite."""
    x = torch.randn(3, 4)
    close(softmax(x + 7), softmax(x))
    close(softmax(torch.tensor([1000.0, 0, 0])), [1.0, 0, 0])


@pytest.mark.referee
@pytest.mark.parametrize("dim", [-1, 0, 1])
def test_softmax_is_torchs_along_every_axis(dim):
    """EQ-38, EQ-39: values, gradients and second derivatives."""
    x = torch.randn(3, 4, 5, requires_grad=True)
    close(softmax(x, dim), torch.softmax(x, dim))
    close(log_softmax(x, dim), torch.log_softmax(x, dim))
    weight = torch.randn(3, 4, 5)
    for ours, theirs in [(softmax, torch.softmax), (log_softmax, torch.log_softmax)]:
        [mine] = torch.autograd.grad((ours(x, dim) * weight).sum(), x)
        [referee] = torch.autograd.grad((theirs(x, dim) * weight).sum(), x)
        close(mine, referee)
    assert torch.autograd.gradgradcheck(softmax, x[0, 0].detach().requires_grad_())


@pytest.mark.property
def test_columns_are_rows_transposed():
    """EQ-39: softmax(S, keys last) = softmax(Sᵀ, keys first)ᵀ, and the default is the last axis."""
    s = torch.randn(3, 5)
    close(softmax(s), softmax(s.T, 0).T)
    close(softmax(s).sum(-1), torch.ones(3))
    close(log_softmax(s), torch.log_softmax(s, -1))


@pytest.mark.by_hand
def test_log_softmax_survives_where_softmax_underflows():
    """EQ-113: log softmax(0, 1000) = (-1000, 0); the logarithm of the softmax is (-inf, 0)."""
    x = torch.tensor([0.0, 1000])
    close(log_softmax(x), [-1000.0, 0])
    assert softmax(x).log()[0] == -math.inf


@pytest.mark.by_hand
def test_scaling_divides_the_scores():
    """EQ-45: p₁₀(10, 20) = softmax(1, 2); a huge scale makes everything equal."""
    s = torch.tensor([10.0, 20])
    close(scaled_softmax(s, 10), softmax(torch.tensor([1.0, 2])))
    close(scaled_softmax(s, 1e14), [0.5, 0.5])
    close(scaled_softmax(s, 1), softmax(s))


@pytest.mark.by_hand
def test_jacobian_at_one_two_by_hand():
    """EQ-47: with two outcomes every entry is ±p(1-p)/C; p = 1/(1+e) at (1, 2)."""
    slope = E / (1 + E) ** 2
    cross = torch.tensor([[1.0, -1], [-1, 1]])
    close(softmax_jacobian(torch.tensor([1.0, 2])), slope * cross)
    close(softmax_jacobian(torch.tensor([10.0, 20]), scale=10), slope / 10 * cross)
    saturated = E**10 / (1 + E**10) ** 2
    close(softmax_jacobian(torch.tensor([10.0, 20])), saturated * cross)
    assert slope / saturated == pytest.approx(4331, abs=1)


@pytest.mark.property
def test_jacobian_is_symmetric_and_its_rows_sum_to_zero():
    """EQ-47: moving all scores at once moves nothing; no entry exceeds 1 / 4C."""
    jacobian = softmax_jacobian(torch.randn(6, 5), scale=2)
    close(jacobian, jacobian.transpose(-2, -1))
    close(jacobian.sum(-1), torch.zeros(6, 5))
    assert torch.linalg.eigvalsh(jacobian).min() > -1e-15
    assert jacobian.abs().max() <= 0.25 / 2


@pytest.mark.referee
@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_jacobian_is_autograds_and_finite_differences(scale):
    """EQ-46, EQ-47: the closed form, autograd and the definition agree."""
    s = torch.randn(5)
    closed = softmax_jacobian(s, scale)
    close(closed, torch.autograd.functional.jacobian(lambda s: scaled_softmax(s, scale), s))
    close(closed, numeric_jacobian(lambda s: scaled_softmax(s, scale), s), tolerance=1e-9)


@pytest.mark.by_hand
def test_numeric_jacobian_has_outputs_in_rows_and_inputs_in_columns():
    """EQ-46: f(a, b) = (3a + b², b) has ∂f₀/∂b = 2b in row 0, column 1."""
    numeric = numeric_jacobian(
        lambda s: torch.stack((3 * s[0] + s[1] ** 2, s[1])), torch.tensor([1.0, 5]), step=1e-3
    )
    close(numeric, [[3.0, 10], [0, 1]], tolerance=1e-9)
    single = numeric_jacobian(softmax, torch.zeros(2, dtype=torch.float32), step=1e-2)
    close(single.double(), [[0.25, -0.25], [-0.25, 0.25]], tolerance=1e-4)
    assert single.dtype == torch.float32


@pytest.mark.property
def test_jacobian_pair_multiplies_the_noise_and_scales_one_of_them():
    """EQ-48: scores are √dₖ · noise; the scaled Jacobian divides by √dₖ again."""
    noise = torch.randn(7, 4)
    unscaled, scaled = jacobian_pair(noise, key_size=9)
    close(unscaled, softmax_jacobian(3 * noise))
    close(scaled, softmax_jacobian(3 * noise, scale=3))


@pytest.mark.property
def test_lees_jacobians_come_out_with_numpys_seed():
    """EQ-48: standard deviations and ranges of Lee's own draw, sizes 4 to 64."""
    np.random.seed(0)
    sizes = (4, 8, 16, 32, 64)
    pairs = [jacobian_pair(torch.from_numpy(np.random.randn(size)), size) for size in sizes]
    unscaled, scaled = ([jacobian_statistics(j) for j in side] for side in zip(*pairs, strict=True))
    deviations = [[round(s.standard_deviation, 4) for s in side] for side in (unscaled, scaled)]
    ranges = [[round(s.range, 4) for s in side] for side in (unscaled, scaled)]
    assert deviations[0] == [0.0974, 0.0444, 0.0054, 0.0063, 0.0055]
    assert deviations[1] == [0.0537, 0.0167, 0.0049, 0.0014, 0.0003]
    assert ranges[0] == [0.3942, 0.3624, 0.0894, 0.2017, 0.2015]
    assert ranges[1] == [0.1978, 0.1109, 0.0667, 0.0269, 0.0069]
    assert all(abs(s.mean) < 1e-16 for s in unscaled + scaled)


@pytest.mark.by_hand
def test_statistics_by_hand():
    """EQ-49: entries 3, -1, -2, 0: mean 0, variance 14/4, median |.| between 1 and 2."""
    statistics = jacobian_statistics(torch.tensor([[3.0, -1], [-2, 0]]))
    assert statistics.mean == 0
    assert statistics.standard_deviation == pytest.approx(math.sqrt(14 / 4))
    assert statistics.range == 5
    assert statistics.mean_magnitude == 1.5
    assert statistics.median_magnitude == 1.5
    assert statistics.largest_magnitude == 3
    assert statistics.frobenius_norm == pytest.approx(math.sqrt(14))
    assert jacobian_statistics(torch.tensor([[9.0, 1], [1, 2]])).mean == 13 / 4
    assert jacobian_statistics(torch.tensor([[9.0, 1], [1, 2]])).median_magnitude == 1.5


@pytest.mark.property
def test_scaling_lowers_the_spread_but_lifts_the_typical_entry():
    """EQ-49: over 500 draws, mean SD is higher unscaled, median |entry| higher scaled."""
    for size in (8, 16, 32):
        unscaled, scaled = jacobian_pair(torch.randn(500, size), size)
        assert unscaled.std((-2, -1)).mean() > scaled.std((-2, -1)).mean()
        medians = [j.abs().flatten(1).median(dim=1).values.median() for j in (unscaled, scaled)]
        assert medians[0] < medians[1]


@pytest.mark.by_hand
def test_the_way_back_through_attention_by_hand():
    """Keys (1) and (1), values 0 and 1, weights ½ and ½, and dO = -1.

    dA = (0, -1); the mean of the row is -½, so dS = ½ (½, -½); dK = dS · q, dQ = dS · k = 0.
    """
    one = torch.ones(1, 1)
    of_query, of_key, of_value = attention_gradients(
        one, torch.ones(2, 1), torch.tensor([[0.0], [1]]), -one
    )
    close(of_query, [[0.0]])
    close(of_key, [[0.25], [-0.25]])
    close(of_value, [[-0.5], [-0.5]])


@pytest.mark.property
def test_the_way_back_through_attention_is_autograds():
    """In batches, with queries and keys of different counts and values of another width."""
    inputs = [torch.randn(2, *shape, requires_grad=True) for shape in ((3, 4), (5, 4), (5, 6))]
    upstream = torch.randn(2, 3, 6)
    expected = torch.autograd.grad(attention(*inputs), inputs, upstream)
    for found, wanted in zip(attention_gradients(*inputs, upstream), expected, strict=True):
        close(found, wanted)
