"""Adam and the clipping of gradients: by hand and against torch."""

import math

import pytest
import torch
from equation_checks import close

from pellucid.equations.optimizers import adam_update, clip_gradient


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
