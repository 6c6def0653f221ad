import math

import pytest
import torch
from equation_checks import close
from torch.nn import functional

from pellucid.equations.feed_forward import feed_forward
from pellucid.equations.normalization import l2_centered_norm, l2_norm, layer_norm, rms_norm
from pellucid.equations.notation.other_norms import (
    centered_skip_connection,
    mean_and_deviation,
    skip_connection,
)
from pellucid.equations.residual import add_and_norm, norm_and_add, residual

ROW = [1.0, 2, 3, 4]
DEVIATION = math.sqrt(5) / 2
"""Of the row: √((2.25 + .25 + .25 + 2.25) / 4)."""
NORMED = [-1.5 / DEVIATION, -0.5 / DEVIATION, 0.5 / DEVIATION, 1.5 / DEVIATION]


@pytest.mark.by_hand
def test_mean_and_deviation_by_hand():
    """EQ-92: 2.5 and √1.25, dividing by 4, not by 3."""
    mean, deviation = mean_and_deviation(torch.tensor([ROW]))
    close(mean, [[2.5]])
    close(deviation, [[DEVIATION]])


@pytest.mark.by_hand
def test_layer_norm_by_hand():
    """EQ-91, EQ-93: (∓1.5, ∓.5)/σ; gain 2 and bias 1."""
    x = torch.tensor(ROW)
    close(layer_norm(x), NORMED)
    doubled = layer_norm(x, torch.full((4,), 2.0), torch.ones(4))
    close(doubled, [2 * value + 1 for value in NORMED])


@pytest.mark.referee
@pytest.mark.parametrize("eps", [0, 1e-5, 0.3])
def test_layer_norm_is_torchs(eps):
    """EQ-91, EQ-94: values and gradients, row by row, ε inside the root."""
    x = torch.randn(2, 3, 5, requires_grad=True)
    gain, bias = torch.randn(5, requires_grad=True), torch.randn(5, requires_grad=True)
    ours, theirs = layer_norm(x, gain, bias, eps), functional.layer_norm(x, (5,), gain, bias, eps)
    close(ours, theirs)
    direction = torch.randn(2, 3, 5)
    mine = torch.autograd.grad((ours * direction).sum(), (x, gain, bias))
    for a, b in zip(
        mine, torch.autograd.grad((theirs * direction).sum(), (x, gain, bias)), strict=True
    ):
        close(a, b)
    close(layer_norm(x, gain, eps=eps), functional.layer_norm(x, (5,), gain, None, eps))
    close(layer_norm(x, bias=bias, eps=eps), layer_norm(x, eps=eps) + bias)


@pytest.mark.property
def test_layer_norm_takes_out_scale_and_shift():
    """EQ-93: LayerNorm(αa + β) = LayerNorm(a), α > 0; mean 0, deviation 1."""
    x = torch.randn(3, 6)
    close(layer_norm(3 * x + 7), layer_norm(x))
    mean, deviation = mean_and_deviation(layer_norm(x))
    close(mean, torch.zeros(3, 1))
    close(deviation, torch.ones(3, 1))


@pytest.mark.referee
def test_rms_norm_is_torchs():
    """Mean square 1; referee nn.functional.rms_norm."""
    x, gain = torch.randn(3, 5), torch.randn(5)
    close(rms_norm(x).square().mean(-1), torch.ones(3))
    close(rms_norm(x, gain, eps=0.2), functional.rms_norm(x, (5,), gain, 0.2))
    close(rms_norm(torch.tensor([3.0, 4])), [3 / math.sqrt(12.5), 4 / math.sqrt(12.5)])


@pytest.mark.by_hand
def test_l2_norms_by_hand():
    """EQ-98: (3, 4) → (.6, .8); centered it is (-.5, .5) over √.5."""
    x = torch.tensor([3.0, 4])
    close(l2_norm(x), [0.6, 0.8])
    close(l2_norm(x, eps=144), [3 / 13, 4 / 13])
    close(l2_centered_norm(x), [-math.sqrt(0.5), math.sqrt(0.5)])
    close(l2_centered_norm(x, eps=0.5), [-0.5, 0.5])
    close(l2_norm(torch.randn(2, 3, 4)).norm(dim=-1), torch.ones(2, 3))


@pytest.mark.property
def test_centered_l2_is_layer_norm_over_the_root_of_the_width():
    """EQ-93, EQ-98: LayerNorm = √k (a - μ)/‖a - μ‖."""
    x = torch.randn(3, 7)
    close(math.sqrt(7) * l2_centered_norm(x), layer_norm(x))


@pytest.mark.property
def test_a_silent_sublayer_changes_nothing():
    """EQ-95: x + 0 = x; the path carries the queries' rows (EQ-97)."""
    x = torch.randn(2, 3)
    assert residual(x, torch.zeros(2, 3)).equal(x)
    close(residual(x, 2 * x), 3 * x)


@pytest.mark.by_hand
def test_a_gradient_passes_a_pre_norm_sum_unchanged_and_a_post_norm_one_multiplied():
    """EQ-95, EQ-96: with a silent sublayer, I against the Jacobian of the norm of 3 x, a third."""
    x, upstream = torch.tensor(ROW).double().requires_grad_(), torch.randn(4)
    before = norm_and_add(x, lambda rows: 0 * rows)
    assert torch.autograd.grad(before, x, upstream)[0].equal(upstream)

    after = add_and_norm(3 * x, torch.zeros(4))
    [got] = torch.autograd.grad(after, x, upstream)
    normed = torch.tensor(NORMED)
    # the Jacobian of LayerNorm: (I - 1/k - y yᵀ/k) / σ; 3 σ inside, times 3 outside
    centered = upstream - upstream.mean() - normed * (normed @ upstream) / 4
    close(got, centered / DEVIATION)


@pytest.mark.by_hand
def test_add_and_norm_by_hand():
    """EQ-96, EQ-109: (1,2,3,4) + (4,3,2,2) = (5,5,5,6), which is (-1,-1,-1,3)/√3."""
    x, y = torch.tensor(ROW), torch.tensor([4.0, 3, 2, 2])
    root = math.sqrt(3)
    close(add_and_norm(x, y), [-1 / root, -1 / root, -1 / root, 3 / root])
    gain, bias = torch.randn(4), torch.randn(4)
    close(
        add_and_norm(x, y, lambda rows: layer_norm(rows, gain, bias, 0.1)),
        functional.layer_norm(x + y, (4,), gain, bias, 0.1),
    )


@pytest.mark.referee
def test_pre_norm_leaves_a_clear_path():
    """x + Sublayer(LayerNorm(x)): with a linear sublayer of torch as referee."""
    x, linear = torch.randn(3, 4), torch.nn.Linear(4, 4)
    gain, bias = torch.randn(4), torch.randn(4)
    expected = x + linear(functional.layer_norm(x, (4,), gain, bias, 0.1))
    close(norm_and_add(x, linear, lambda rows: layer_norm(rows, gain, bias, 0.1)), expected)
    assert norm_and_add(x, torch.zeros_like).equal(x)


@pytest.mark.by_hand
def test_skip_connection_by_hand():
    """EQ-98: (1,2) + (2,2) = (3,4) → (.6,.8); row by row."""
    x, y = torch.tensor([[1.0, 2], [1, 0]]), torch.tensor([[2.0, 2], [1, 0]])
    close(skip_connection(x, y), [[0.6, 0.8], [1, 0]])
    close(skip_connection(x[:1], y[:1], eps=144), [[3 / 13, 4 / 13]])
    close(centered_skip_connection(x[:1], y[:1]), [[-math.sqrt(0.5), math.sqrt(0.5)]])
    close(centered_skip_connection(x[:1], y[:1], eps=0.5), [[-0.5, 0.5]])


@pytest.mark.referee
def test_a_block_is_its_lines_one_after_the_other():
    """EQ-104: two Add & Norms in a row, against torch's own layer in post-norm order."""
    layer = torch.nn.TransformerEncoderLayer(4, 2, 6, dropout=0.0, batch_first=True)
    x = torch.randn(2, 3, 4)
    attended, _ = layer.self_attn(x, x, x)
    z_2 = add_and_norm(x, attended, layer.norm1)
    one, two = layer.linear1, layer.linear2
    z_3 = feed_forward(z_2, one.weight.T, one.bias, two.weight.T, two.bias)
    z_4 = add_and_norm(z_2, z_3, layer.norm2)
    close(z_4, layer(x))


@pytest.mark.by_hand
def test_pre_norm_without_gain_bias_and_epsilon_is_the_plain_norm():
    """x + 2 LayerNorm(x), by hand: (1, 3) is normalized to (-1, 1)."""
    close(norm_and_add(torch.tensor([1.0, 3.0]), lambda rows: 2 * rows), [-1.0, 5.0])
