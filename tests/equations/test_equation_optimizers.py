"""Adam, Muon and the clipping of gradients: by hand and against torch."""

import math

import pytest
import torch
from equation_checks import close

from pellucid.equations import optimizers
from pellucid.equations.optimizers import (
    adam_update,
    clip_gradient,
    muon_update,
    orthogonalize,
)


@pytest.mark.by_hand
def test_two_steps_of_adam_by_hand():
    """β₁ = β₂ = ½, η = 0.1, g = 4, then g = 2, from θ = 1.

    t = 1: m = 2, v = 8; both halves are undone by 1 - ½: m̂ = 4, √v̂ = 4, so θ = 1 - 0.1.
    t = 2: m = 2, v = 6; divided by ¾: m̂ = 8/3, √v̂ = √8, so θ = 0.9 - 0.1 · 8 / (3 √8).
    """
    theta, zero = torch.tensor([1.0]), torch.zeros(1)
    settings = {"rate": 0.1, "beta_1": 0.5, "beta_2": 0.5, "eps": 0.0}
    theta, mean, square = adam_update(theta, torch.tensor([4.0]), zero, zero, 1, **settings)
    close(torch.cat((theta, mean, square)), [0.9, 2.0, 8.0])
    theta, mean, square = adam_update(theta, torch.tensor([2.0]), mean, square, 2, **settings)
    close(torch.cat((theta, mean, square)), [0.9 - 0.8 / (3 * math.sqrt(8)), 2.0, 6.0])


@pytest.mark.by_hand
def test_a_row_is_orthogonalized_by_hand():
    """One singular value, 5, becomes 1 and then goes through four polynomials a s + b s³ + c s⁵.

    1 → 1.5087 → 0.2653 → 0.8755 → 1.2003, rounded; the direction (0.6, 0.8) stays.
    """
    length = 1.0
    for a, b, c in (
        (8.2218, -23.3469, 16.6338),
        (3.9728, -2.8449, 0.5170),
        (3.4735, -2.5057, 0.4810),
        (2.5044, -1.7907, 0.4071),
    ):
        length = a * length + b * length**3 + c * length**5
    assert length == pytest.approx(1.2003, abs=5e-5)
    row = orthogonalize(torch.tensor([[3.0, 4.0]], dtype=torch.float64), eps=0.0)
    close(row, [[0.6 * length, 0.8 * length]])


@pytest.mark.property
@pytest.mark.parametrize("shape", [(6, 6), (4, 9), (9, 4)])
def test_orthogonalizing_keeps_the_singular_vectors_and_evens_out_the_values(
    shape: tuple[int, int],
):
    """U S Vᵀ becomes U S′ Vᵀ with S′ between 0.778 and 1.222, where S / ‖S‖ is above 0.003."""
    matrices = torch.randn(3, *shape)
    u, s, v = torch.linalg.svd(matrices, full_matrices=False)
    assert (s / s.norm(dim=1, keepdim=True)).min() > 0.003
    result = orthogonalize(matrices)
    inner = u.mT @ result @ v.mT
    values = inner.diagonal(dim1=1, dim2=2)
    close(inner, torch.diag_embed(values))
    assert values.min() > 0.778
    assert values.max() < 1.222
    close(orthogonalize(matrices.mT), result.mT)


def test_singular_values_end_nearer_to_one_than_by_five_equal_steps():
    """Of every length from 0.003 to 1 the least end is 0.7788, the largest 1.2212.

    The polynomial of Jordan et al. (2024), taken five times, ends between 0.6818 and 1.2024.
    """
    lengths = torch.linspace(0.003, 1, 20_001)
    # one singular value for each of many matrices: (1, 0) of this length beside a row that makes
    # the whole matrix as long as 1
    rest = (1 - lengths.square()).clamp(min=0).sqrt()
    rows = torch.zeros(len(lengths), 2, 2)
    rows[:, 0, 0], rows[:, 1, 1] = lengths, rest
    values = orthogonalize(rows, eps=0.0)[:, 0, 0]
    assert values.min().item() == pytest.approx(0.7788, abs=1e-4)
    assert values.max().item() == pytest.approx(1.2212, abs=1e-4)

    before = lengths.double()
    for _ in range(5):
        before = 3.4445 * before - 4.7750 * before**3 + 2.0315 * before**5
    assert (values - 1).abs().max() < 0.7 * (before - 1).abs().max()


@pytest.mark.by_hand
def test_two_steps_of_muon_by_hand():
    """A matrix of one number: orthogonalized it is its sign times 1.2003, whatever its size.

    β = ½, η = 0.1, λ = 1, g = 4, then g = -8, from θ = 1; 0.2 √max(1, 1) = 0.2.
    t = 1: m = 2, ahead 3: θ = 0.9 - 0.1 · 0.2 · s.   t = 2: m = -3, ahead -5.5: + 0.02 s.
    """
    s = orthogonalize(torch.ones(1, 1, dtype=torch.float64), eps=0.0).item()
    theta, zero = torch.ones(1, 1, dtype=torch.float64), torch.zeros(1, 1, dtype=torch.float64)
    theta, mean = muon_update(theta, torch.full_like(zero, 4.0), zero, 0.1, 0.5, 1.0)
    # to 1e-7: the ε beside the norm of g
    assert (theta.item(), mean.item()) == pytest.approx((0.9 - 0.02 * s, 2.0), abs=1e-7)
    theta, mean = muon_update(theta, torch.full_like(zero, -8.0), mean, 0.1, 0.5, 1.0)
    assert theta.item() == pytest.approx(0.9 * (0.9 - 0.02 * s) + 0.02 * s, abs=1e-7)
    assert mean.item() == -3.0


@pytest.mark.referee
@pytest.mark.parametrize("shape", [(6, 6), (4, 9), (9, 4)])
def test_muon_is_torch_s_up_to_its_bfloat16(
    shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
):
    """With five equal steps, as torch.optim.Muon has them, in bfloat16: three digits of a step."""
    monkeypatch.setattr(optimizers, "QUINTICS", ((3.4445, -4.7750, 2.0315),) * 5)
    parameter = torch.nn.Parameter(torch.randn(shape))
    optimizer = torch.optim.Muon(
        [parameter], momentum=0.9, weight_decay=0.3, adjust_lr_fn="match_rms_adamw"
    )
    ours = parameter.detach().clone(), torch.zeros(shape)
    for step in range(1, 6):
        parameter.grad = torch.randn(shape)
        optimizer.param_groups[0]["lr"] = 0.1 / step
        ours = muon_update(*ours[:1], parameter.grad, ours[1], 0.1 / step, 0.9, 0.3)
        optimizer.step()
        assert (ours[0] - parameter.detach()).abs().max() < 0.005 * 0.2 * max(shape) ** 0.5


@pytest.mark.by_hand
def test_the_first_step_is_the_rate_whatever_the_size_of_the_gradient():
    """Only the sign counts: m̂ / √v̂ = g / |g|."""
    gradient = torch.tensor([1e-3, -5.0, 1e6])
    zeros = torch.zeros(3)
    theta, _, _ = adam_update(zeros, gradient, zeros, zeros, 1, 0.01, eps=0.0)
    close(theta, [-0.01, 0.01, -0.01])


@pytest.mark.referee
@pytest.mark.parametrize("weight_decay", [0.0, 0.3])
def test_adam_is_torch_s(weight_decay: float):
    """Ten steps with a rate that changes."""
    parameter = torch.nn.Parameter(torch.randn(3, 4))
    optimizer = torch.optim.AdamW(
        [parameter], betas=(0.9, 0.98), eps=1e-3, weight_decay=weight_decay
    )
    ours = parameter.detach().clone(), torch.zeros(3, 4), torch.zeros(3, 4)
    for step in range(1, 11):
        parameter.grad = torch.randn(3, 4)
        optimizer.param_groups[0]["lr"] = 0.1 / step
        ours = adam_update(
            ours[0],
            parameter.grad,
            *ours[1:],
            step,
            0.1 / step,
            eps=1e-3,
            weight_decay=weight_decay,
        )
        optimizer.step()
        close(ours[0], parameter.detach())


@pytest.mark.by_hand
def test_clipping_by_hand():
    """(3, 4) is 5 long: at most 1 leaves (0.6, 0.8); at most 6, and no limit, leave it as it is."""
    gradient = torch.tensor([3.0, 4])
    close(clip_gradient(gradient, 5.0, 1), [0.6, 0.8])
    for longest in (6, 5, 0):
        close(clip_gradient(gradient, 5.0, longest), gradient)
