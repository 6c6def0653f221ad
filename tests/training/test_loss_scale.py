"""float16: small gradients survive, large ones halve the scale, and nobody else sees it."""

import json
from pathlib import Path

import pytest
import tiny_runs
import torch
from failing_objectives import build_broken, times
from tiny_models import tiny_model
from torch.nn import functional

from pellucid.core.errors import ConfigError
from pellucid.model.seq2seq import LossSums, SequenceModel
from pellucid.text.batching import Batch, collate_pairs
from pellucid.training import precision as precision_module
from pellucid.training.checkpoint import newest_intact
from pellucid.training.config import RunConfig, TrainingConfig
from pellucid.training.journal import read_journal
from pellucid.training.objective import build_objective
from pellucid.training.precision import LossScale, autocast
from pellucid.training.presets import read_config
from pellucid.training.step import StepReport, build_optimizer, find_gradient, update
from pellucid.training.train import train

BATCH = collate_pairs([[5, 6], [8]], [[7], [4, 5, 6]])
CONFIG = TrainingConfig(max_steps=1, clip_norm=0.1)


def config(*settings: str, steps: int = 4) -> RunConfig:
    changed = ["training.precision=fp16", f"training.max_steps={steps}", *settings]
    return read_config("demo", [*tiny_runs.SETTINGS, *tiny_runs.ONE_LAYER, *changed])


def events(run: Path, name: str) -> list[dict[str, object]]:
    return [event for event in read_journal(run / "journal.jsonl") if event["event"] == name]


def scale_of(run: Path) -> object:
    newest = newest_intact(run)
    assert newest is not None
    return json.loads((newest / "state.json").read_text())["loss_scale"]


def test_a_scale_changes_no_bit_of_an_update_in_float32():
    models = [tiny_model(dropout=0.0) for _ in range(2)]
    scale = LossScale(2.0**10)
    scale.attach(models[1])
    objective = build_objective(CONFIG)
    reports = [
        update(model, build_optimizer(model, CONFIG), [BATCH, BATCH], each, CONFIG, rate=0.1)
        for model, each in zip(models, [objective, scale.scaled(objective)], strict=True)
    ]
    assert reports[0] == reports[1]
    for plain, scaled in zip(*(model.parameters() for model in models), strict=True):
        assert torch.equal(plain, scaled)


def test_frozen_parameters_have_no_gradient_to_be_scaled():
    model = tiny_model(dropout=0.0).float()
    model.target_embedding.weight.requires_grad_(False)
    LossScale(2.0).attach(model)
    LossScale(2.0).scaled(build_objective(CONFIG))(model, BATCH).loss.backward()
    assert model.target_embedding.weight.grad is None


@pytest.mark.parametrize(("gain", "chosen"), [(1.49, "fp32"), (1.5, "bf16"), (9.0, "bf16")])
def test_on_a_cpu_bfloat16_must_be_half_as_fast_again(
    gain: float, chosen: str, monkeypatch: pytest.MonkeyPatch
):
    seconds = {torch.float32: gain, torch.bfloat16: 1.0}
    monkeypatch.setattr(precision_module, "_seconds", lambda dtype, side: seconds[dtype])
    assert precision_module.resolve_precision("auto", "cpu") == chosen
    assert precision_module.resolve_precision("fp16", "cpu") == "fp16"


@pytest.mark.parametrize(
    ("gain_of_small", "chosen", "largest"), [(0.09, "fp32", 256), (0.1, "bf16", 1024)]
)
def test_where_bfloat16_is_emulated_only_small_products_are_timed(
    gain_of_small: float, chosen: str, largest: int, monkeypatch: pytest.MonkeyPatch
):
    """A large one takes seconds there; where there are instructions for it, it decides."""
    sides = []

    def seconds(dtype: torch.dtype, side: int) -> float:
        sides.append(side)
        gain = gain_of_small if side == 256 else 2.0
        return gain if dtype == torch.float32 else 1.0

    monkeypatch.setattr(precision_module, "_seconds", seconds)
    assert precision_module.resolve_precision("auto", "cpu") == chosen
    assert max(sides) == largest


def _faint(model: SequenceModel, batch: Batch) -> LossSums:
    """A loss so small that its gradient by a weight, 1e-9, is no float16: the least is 6e-8."""
    weight = next(each for each in model.parameters() if each.dim() == 2)
    with autocast("fp16", "cpu"):
        product = functional.linear(torch.ones(4, weight.shape[1]), weight)
    loss = product.float().mean() * 1e-9
    return LossSums(loss, loss.detach(), 1)


@pytest.mark.parametrize(("factor", "survives"), [(1.0, False), (2.0**16, True)])
def test_what_vanishes_in_float16_survives_when_scaled(factor: float, survives: bool):
    model = tiny_model(dropout=0.0).float()
    scale = LossScale(factor)
    scale.attach(model)
    optimizer = build_optimizer(model, CONFIG)
    report = find_gradient(model, optimizer, [BATCH], scale.scaled(_faint), CONFIG)
    assert (report.gradient_norm > 0.0) is survives
    assert report.gradient_norm < 1e-6


def test_float16_finds_the_gradient_of_float32_to_the_rounding():
    norms = []
    for precision in ("fp32", "fp16"):
        model = tiny_model(dropout=0.0).float()
        scale = LossScale()
        scale.attach(model)
        objective = scale.scaled(build_objective(CONFIG))
        optimizer = build_optimizer(model, CONFIG)
        report: StepReport = find_gradient(model, optimizer, [BATCH], objective, CONFIG, precision)
        norms.append((report.loss, report.gradient_norm))
    assert norms[0] != norms[1]
    assert norms[0] == pytest.approx(norms[1], rel=3e-3)


def test_it_halves_when_not_finite_and_doubles_after_2000_that_were():
    scale = LossScale(8.0)
    scale.note(is_finite=False)
    assert scale.state() == {"value": 4.0, "finite_in_a_row": 0}
    for _ in range(1999):
        scale.note(is_finite=True)
    saved = scale.state()
    again = LossScale()
    again.restore(saved)
    again.note(is_finite=True)
    assert again.state() == {"value": 8.0, "finite_in_a_row": 0}
    least = LossScale(1.0)
    least.note(is_finite=False)
    assert least.value == 1.0


def test_a_run_in_float16_learns_and_keeps_its_scale(tmp_path: Path):
    train(config(steps=12), tmp_path / "run")
    [start] = events(tmp_path / "run", "start")
    losses = [float(str(event["loss"])) for event in events(tmp_path / "run", "train")]
    assert start["precision"] == "fp16"
    assert losses[-1] < losses[0] - 0.1
    assert scale_of(tmp_path / "run") == {"value": 2.0**16, "finite_in_a_row": 12}


def test_an_overflow_halves_the_scale_and_is_left_out(tmp_path: Path):
    """The third batch's gradient is beyond float16 inside the model, whatever its loss."""
    problem = build_broken(lambda model, batch, sums, call: times(sums, 1e6 if call == 2 else 1.0))
    train(config("training.accumulate=1"), tmp_path / "run", make_objective=problem)
    [left_out] = events(tmp_path / "run", "skipped")
    assert left_out["step"] == 3
    assert scale_of(tmp_path / "run") == {"value": 2.0**15, "finite_in_a_row": 1}


def test_a_return_to_a_checkpoint_does_not_bring_back_a_scale_that_overflowed(tmp_path: Path):
    problem = build_broken(
        lambda model, batch, sums, call: times(sums, torch.nan if 3 <= call < 13 else 1.0)
    )
    train(config("training.accumulate=1", steps=15), tmp_path / "run", make_objective=problem)
    assert len(events(tmp_path / "run", "rollback")) == 1
    assert scale_of(tmp_path / "run") == {"value": 2.0**6, "finite_in_a_row": 15}


def test_a_split_model_refuses_float16(tmp_path: Path):
    with pytest.raises(ConfigError, match="fp16 scales gradients where they meet whole") as caught:
        train(config("training.sharding=fsdp"), tmp_path / "run")
    assert caught.value.hint == "use training.precision=bf16, or training.sharding=ddp"
