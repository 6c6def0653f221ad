"""Law: accumulated = one large batch, with unequal token counts."""

import pytest
import torch
from tiny_models import tiny_model

from pellucid.text.batching import collate_pairs
from pellucid.training.config import TrainingConfig
from pellucid.training.objective import build_objective
from pellucid.training.step import build_optimizer, update

PAIRS = [
    ([5, 6], [7]),
    ([8], [4, 5, 6, 7, 8]),
    ([9, 10, 11], [12, 4]),
    ([4, 4], [11, 10, 9]),
]


@pytest.mark.parametrize("clip_norm", [0.0, 0.01])
@pytest.mark.parametrize("cuts", [[1, 1, 1, 1], [3, 1], [2, 2]])
def test_several_batches_change_the_model_as_one_of_all_their_sentences(
    cuts: list[int], clip_norm: float
):
    config = TrainingConfig(max_steps=1, clip_norm=clip_norm)
    models = [tiny_model(dropout=0.0), tiny_model(dropout=0.0)]
    rows = iter(PAIRS)
    several = [collate_pairs(*zip(*[next(rows) for _ in range(cut)], strict=True)) for cut in cuts]
    one = [collate_pairs(*zip(*PAIRS, strict=True))]
    reports = [
        update(
            model,
            build_optimizer(model, config),
            batches,
            build_objective(config),
            config,
            rate=0.1,
        )
        for model, batches in zip(models, [several, one], strict=True)
    ]
    assert reports[0].token_count == reports[1].token_count == 11 + len(PAIRS)
    assert reports[0].loss == pytest.approx(reports[1].loss, rel=1e-12)
    assert reports[0].gradient_norm == pytest.approx(reports[1].gradient_norm, rel=1e-12)
    for left, right in zip(models[0].parameters(), models[1].parameters(), strict=True):
        # Adam divides by the gradient's size, which blows rounding up where it is near zero.
        torch.testing.assert_close(left.grad, right.grad, rtol=1e-10, atol=1e-14)


def test_of_several_batches_the_first_and_all_are_told_as_two_sizes_of_a_batch():
    """The first batch's figures are those of an update by it alone; one batch has one size."""
    config = TrainingConfig(max_steps=1)
    first, second = (collate_pairs(*zip(*part, strict=True)) for part in (PAIRS[:1], PAIRS[1:]))
    reports = []
    for batches in ([first, second], [first]):
        model = tiny_model(dropout=0.0)
        parts = build_optimizer(model, config), batches, build_objective(config), config
        reports.append(update(model, *parts, rate=0.1))
    both, alone = reports
    assert alone.two_sizes is None
    assert both.two_sizes is not None
    assert (both.two_sizes.small_tokens, both.two_sizes.large_tokens) == (2, 15)
    assert both.two_sizes.small_square == pytest.approx(alone.gradient_norm**2, rel=1e-12)
    assert both.two_sizes.large_square == pytest.approx(both.gradient_norm**2, rel=1e-12)


def test_the_gradient_is_clipped_to_the_limit_and_its_true_norm_reported():
    model = tiny_model(dropout=0.0)
    config = TrainingConfig(max_steps=1, clip_norm=0.01)
    batch = collate_pairs(*zip(*PAIRS, strict=True))
    report = update(
        model, build_optimizer(model, config), [batch], build_objective(config), config, rate=0.1
    )
    clipped = torch.stack([each.grad.norm() for each in model.parameters()]).norm().item()
    assert report.gradient_norm > 0.01
    assert clipped == pytest.approx(0.01, rel=1e-9)


def test_an_update_that_is_not_finite_changes_nothing():
    model = tiny_model(dropout=0.0)
    config = TrainingConfig(max_steps=1)
    optimizer = build_optimizer(model, config)
    batch = collate_pairs(*zip(*PAIRS, strict=True))
    update(model, optimizer, [batch], build_objective(config), config, rate=0.1)
    parameters = [each.detach().clone() for each in model.parameters()]
    moments = [optimizer.state[each]["exp_avg"].clone() for each in model.parameters()]

    def poison(gradient: torch.Tensor) -> torch.Tensor:
        return gradient * torch.nan

    model.target_embedding.weight.register_hook(poison)
    report = update(model, optimizer, [batch], build_objective(config), config, rate=0.1)
    assert not report.applied
    for before, each in zip(parameters, model.parameters(), strict=True):
        assert torch.equal(before, each)
    for before, each in zip(moments, model.parameters(), strict=True):
        assert torch.equal(before, optimizer.state[each]["exp_avg"])


def test_an_update_in_bfloat16_is_the_one_in_float32_within_its_tolerance():
    config = TrainingConfig(max_steps=1)
    batch = collate_pairs(*zip(*PAIRS, strict=True))
    reports = []
    for precision in ("fp32", "bf16"):
        model = tiny_model(dropout=0.0).float()
        optimizer = build_optimizer(model, config)
        reports.append(
            update(model, optimizer, [batch], build_objective(config), config, 0.1, precision)
        )
        assert all(parameter.dtype == torch.float32 for parameter in model.parameters())
    full, half = reports
    assert half.loss == pytest.approx(full.loss, rel=2e-2)
    assert half.loss != full.loss
    assert half.gradient_norm == pytest.approx(full.gradient_norm, rel=5e-2)
