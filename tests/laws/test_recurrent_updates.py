"""Updates of recurrent models: in bfloat16 as in float32, and they learn."""

import pytest
import torch
from tiny_models import tiny_model

from pellucid.core.special import PAD_ID
from pellucid.text.batching import collate_pairs
from pellucid.training.config import TrainingConfig
from pellucid.training.objective import build_objective
from pellucid.training.precision import Precision
from pellucid.training.step import build_optimizer, update

PAIRS = [([5, 6], [7]), ([8], [4, 5, 6, 7, 8]), ([9, 10, 11], [12, 4])]


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
@pytest.mark.parametrize("variant", ["lstm", "additive", "general, gru, not fed"])
def test_a_narrow_update_is_the_one_in_float32_within_its_tolerance(
    variant: str, precision: Precision
):
    """Also on a processor for which oneDNN has no LSTM in the narrow dtype."""
    config = TrainingConfig(max_steps=1)
    batch = collate_pairs(*zip(*PAIRS, strict=True))
    reports = []
    each: Precision
    for each in ("fp32", precision):
        model = tiny_model(variant, dropout=0.0).float()
        reports.append(
            update(
                model,
                build_optimizer(model, config),
                [batch],
                build_objective(config),
                config,
                0.1,
                each,
            )
        )
    full, half = reports
    assert half.applied
    assert half.loss == pytest.approx(full.loss, rel=2e-2)
    assert half.loss != full.loss
    assert half.gradient_norm == pytest.approx(full.gradient_norm, rel=5e-2)


@pytest.mark.parametrize("variant", ["lstm", "additive"])
def test_a_few_updates_on_three_pairs_learn_them(variant: str):
    model, config = tiny_model(variant, dropout=0.0), TrainingConfig(max_steps=60)
    batch = collate_pairs(*zip(*PAIRS, strict=True))
    optimizer = build_optimizer(model, config)
    for _ in range(60):
        update(model, optimizer, [batch], build_objective(config), config, rate=0.03)
    model.eval()
    said = model(batch.source, batch.target_input).argmax(-1)
    real = batch.labels != PAD_ID
    assert torch.equal(said[real], batch.labels[real])
