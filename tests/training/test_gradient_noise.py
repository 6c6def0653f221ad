"""The gradient noise scale and the norms of the journal, by hand and by experiment."""

import pytest
import torch
from tiny_models import tiny_model
from torch import nn

from pellucid.text.batching import collate_pairs
from pellucid.training.config import TrainingConfig
from pellucid.training.objective import build_objective
from pellucid.training.step import (
    GradientNoiseMeter,
    TwoBatchSizes,
    apply_gradient,
    build_optimizer,
    find_gradient,
    gradient_noise_scale,
    gradient_noise_trace,
    joint_norm,
    parameter_norm,
    true_square,
    update_norm,
)


def test_both_estimates_by_hand():
    """E|G_B|² = |G|² + tr Σ / B. With |G|² = 3 and tr Σ = 40: 13 at B = 4 and 5 at B = 20."""
    seen = TwoBatchSizes(small_square=13.0, small_tokens=4, large_square=5.0, large_tokens=20)
    assert true_square(seen) == pytest.approx(3.0)
    assert gradient_noise_trace(seen) == pytest.approx(40.0)
    assert gradient_noise_scale(40.0, 3.0) == pytest.approx(40 / 3)


def test_estimates_that_chance_made_negative_say_nothing():
    assert gradient_noise_scale(-1.0, 2.0) is None
    assert gradient_noise_scale(1.0, -2.0) is None
    assert gradient_noise_scale(0.0, 0.0) is None
    assert gradient_noise_scale(0.0, 2.0) is None
    assert gradient_noise_scale(2.0, 0.0) is None


def test_the_meter_takes_the_ratio_of_the_sums_and_begins_anew():
    """Sums of tr Σ = 40 + 20 and of |G|² = 3 + 1: 15, where the mean of the ratios is 16.67."""
    meter = GradientNoiseMeter()
    meter.add(TwoBatchSizes(13.0, 4, 5.0, 20))
    meter.add(TwoBatchSizes(1.0 + 20 / 4, 4, 1.0 + 20 / 20, 20))
    assert meter.scale() == pytest.approx(15.0)
    assert meter.scale() is None


@pytest.mark.parametrize(
    "seen", [None, TwoBatchSizes(1.0, 0, 1.0, 4), TwoBatchSizes(1.0, 4, 1.0, 4)]
)
def test_an_update_of_one_size_is_not_counted(seen: TwoBatchSizes | None):
    meter = GradientNoiseMeter()
    meter.add(seen)
    assert meter.scale() is None


def test_the_estimates_have_no_bias():
    """Gradients drawn with |G|² = 4 and tr Σ = 90: 4,000 updates find the ratio, 22.5."""
    generator = torch.Generator().manual_seed(3)
    truth = torch.zeros(10, dtype=torch.float64)
    truth[0] = 2.0
    meter = GradientNoiseMeter()
    for _ in range(4000):
        tokens = truth + 3.0 * torch.randn(16, 10, generator=generator, dtype=torch.float64)
        small, large = tokens[:4].mean(dim=0), tokens.mean(dim=0)
        meter.add(TwoBatchSizes(float(small @ small), 4, float(large @ large), 16))
    assert meter.scale() == pytest.approx(22.5, rel=0.05)


def test_a_joint_norm_by_hand():
    assert float(joint_norm([torch.tensor([3.0]), torch.tensor([[0.0, 4.0]])])) == 5.0


@pytest.mark.parametrize("decay", [0.0, 0.5])
@pytest.mark.parametrize("kind", [torch.optim.AdamW, torch.optim.SGD])
def test_the_norm_of_an_update_is_that_of_what_changed(
    kind: type[torch.optim.AdamW | torch.optim.SGD], decay: float
):
    torch.manual_seed(0)
    layer = nn.Linear(5, 3).double()
    optimizer = kind(layer.parameters(), lr=0.01, weight_decay=decay, fused=True)
    assert update_norm(optimizer) == 0.0
    for _ in range(3):
        before = [each.detach().clone() for each in layer.parameters()]
        optimizer.zero_grad()
        layer(torch.randn(4, 5, dtype=torch.float64)).square().sum().backward()
        optimizer.step()
        after = [each.detach() for each in layer.parameters()]
        changes = [b - a for a, b in zip(before, after, strict=True)]
        assert update_norm(optimizer) == pytest.approx(float(joint_norm(changes)), rel=1e-9)
    squares = sum(float(each.detach().square().sum()) for each in layer.parameters())
    assert parameter_norm(optimizer) == pytest.approx(squares**0.5)


@pytest.mark.parametrize("name", ["adam", "muon", "sgd"])
def test_a_block_that_an_update_skips_does_not_count(name: str):
    """It has the optimizer's state of earlier updates, and was not moved."""
    model = tiny_model(layer_drop=0.5, dropout=0.0)
    config = TrainingConfig.parse({"max_steps": 9, "optimizer": name})
    optimizer = build_optimizer(model, config)
    objective, batch = build_objective(config), collate_pairs([[4, 5, 6], [7]], [[8], [9, 5]])
    skipped = 0
    for _ in range(9):
        before = [each.detach().clone() for each in model.parameters()]
        report = find_gradient(model, optimizer, [batch], objective, config)
        apply_gradient(optimizer, report, 1e-3)
        skipped += any(each.grad is None for each in model.parameters())
        changes = [a - b.detach() for a, b in zip(before, model.parameters(), strict=True)]
        assert update_norm(optimizer) == pytest.approx(float(joint_norm(changes)), rel=1e-6)
    assert skipped > 2
