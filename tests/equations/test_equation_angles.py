import itertools
import math

import pytest
import torch
from equation_checks import close

from pellucid.equations.attention import attention_weights
from pellucid.equations.notation.angles import (
    angle,
    angle_weights,
    cosine,
    dot_product_variance,
    exp_cosine,
    exp_cosine_crossing,
)
from pellucid.equations.softmax import softmax


@pytest.mark.by_hand
def test_the_diagonal_is_at_45_degrees():
    """EQ-57: (1,0)·(1,1) = 1 · √2 · cos 45°."""
    x, diagonal = torch.tensor([[3.0, 0]]), torch.tensor([[1.0, 1], [0, 5], [-2, 0]])
    close(cosine(x, diagonal), [[math.sqrt(0.5), 0, -1]])
    close(angle(x, diagonal), [[math.pi / 4, math.pi / 2, math.pi]])


@pytest.mark.referee
def test_cosine_is_torchs():
    """EQ-57: referee cosine_similarity, pair by pair."""
    q, k = torch.randn(2, 3, 4), torch.randn(2, 5, 4)
    referee = torch.nn.functional.cosine_similarity(q.unsqueeze(-2), k.unsqueeze(-3), dim=-1)
    close(cosine(q, k), referee)


@pytest.mark.property
def test_a_rounded_cosine_above_one_still_has_an_angle():
    """EQ-57: acos(1 + 2⁻⁵²) would be NaN."""
    x = torch.full((1, 3), 0.1)
    assert angle(x, 7 * x).isfinite().all()
    assert angle(torch.randn(50, 3), torch.randn(50, 3)).isfinite().all()
    rows = torch.randn(200, 3)
    assert angle(rows, rows).isfinite().all()


@pytest.mark.property
def test_weights_from_angles_are_the_attention_weights():
    """EQ-58: with the lengths in the exponent it is exact."""
    q, k = torch.randn(3, 4), torch.randn(5, 4)
    close(angle_weights(q, k), attention_weights(q, k))


@pytest.mark.property
def test_weights_are_softmax_of_the_cosines_at_one_length_only():
    """EQ-58: |q||k| = √dₖ gives softmax(cos θ); |q||k| = 4 at dₖ = 4 gives softmax(2 cos θ)."""
    q, k = torch.randn(3, 4), torch.randn(5, 4)
    q, k = q / q.norm(dim=-1, keepdim=True), k / k.norm(dim=-1, keepdim=True)
    close(angle_weights(math.sqrt(2) * q, math.sqrt(2) * k), softmax(cosine(q, k)))
    close(angle_weights(2 * q, 2 * k), softmax(2 * cosine(q, k)))


@pytest.mark.by_hand
def test_exponential_favors_agreement():
    """EQ-59: exp cos θ > 1 for acute, < 1 for obtuse angles; it falls from e to 1/e, ratio e²."""
    theta = torch.linspace(0, math.pi, 181)
    values = exp_cosine(theta)
    close(values[[0, 90, 180]], [math.e, 1, 1 / math.e])
    assert (values.diff() < 0).all()
    assert (values[theta.cos() > 0] > theta.cos()[theta.cos() > 0]).all()


@pytest.mark.by_hand
def test_crossing_solves_its_equation():
    """EQ-59: exp(x) = -x; the angle is 124.5513°."""
    x = exp_cosine_crossing()
    assert math.exp(x) == pytest.approx(-x, abs=1e-15)
    assert math.degrees(math.acos(x)) == pytest.approx(124.5513, abs=1e-4)


@pytest.mark.by_hand
@pytest.mark.parametrize("size", [1, 2, 4])
def test_variance_grows_with_the_width(size):
    """EQ-60: over all vectors of ±1 (mean 0, variance 1, independent) it is dₖ exactly."""
    vectors = torch.tensor(list(itertools.product([-1.0, 1], repeat=2 * size)))
    q, k = vectors[:, :size], vectors[:, size:]
    close(dot_product_variance(q, k), float(size))
    close(dot_product_variance(q / size**0.25, k / size**0.25), 1.0)


@pytest.mark.by_hand
def test_variance_is_about_the_mean():
    """EQ-60: products 1, 1, 4 have mean 2 and population variance 2."""
    q = torch.tensor([[1.0, 0], [0, 1], [2, 0]])
    close(dot_product_variance(q, torch.tensor([[1.0, 0], [0, 1], [2, 0]])), 2.0)


@pytest.mark.property
def test_variance_is_over_all_draws_of_any_number_of_axes():
    """EQ-60: two axes of draws are as one."""
    query, key = torch.randn(2, 50, 6), torch.randn(2, 50, 6)
    close(
        dot_product_variance(query, key),
        dot_product_variance(*(x.flatten(0, 1) for x in (query, key))),
    )
