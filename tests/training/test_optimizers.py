"""Plain descent, the mean and the sum, by hand; and what Muon moves and refuses."""

import sys

import pytest
import torch
from tiny_models import tiny_model

from pellucid.core.errors import ConfigError
from pellucid.model.build import build_any_model
from pellucid.model.config import parse_model_config
from pellucid.model.seq2seq import Seq2Seq
from pellucid.text.batching import Batch, collate_pairs
from pellucid.training.config import TrainingConfig
from pellucid.training.objective import build_objective
from pellucid.training.optimizers import SGD, AdamW
from pellucid.training.step import build_optimizer, find_gradient, update

RATE = 0.5


def batch() -> Batch:
    return collate_pairs([[4, 5, 6], [7]], [[5, 4], [6, 7, 8]])


def gradients(config: TrainingConfig) -> tuple[list[torch.Tensor], float]:
    """Of the mean loss over the batch's tokens, and their number."""
    model = tiny_model(dropout=0.0).train()
    sums = build_objective(config)(model, batch())
    (sums.loss / sums.token_count).backward()
    found = [torch.zeros_like(p) if p.grad is None else p.grad for p in model.parameters()]
    return found, float(sums.token_count)


def moved(config: TrainingConfig) -> tuple[list[torch.Tensor], float]:
    """How far one update went from every parameter, and the norm it told."""
    model = tiny_model(dropout=0.0)
    before = [each.detach().clone() for each in model.parameters()]
    optimizer = build_optimizer(model, config)
    report = update(model, optimizer, [batch()], build_objective(config), config, rate=RATE)
    after = [each.detach() for each in model.parameters()]
    return [b - a for a, b in zip(after, before, strict=True)], report.gradient_norm


@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("clip_norm", [0.0, 0.01])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_plain_descent_goes_the_rate_times_the_gradient(
    reduction: str, clip_norm: float, decay: float
):
    """Of the sum it is as many times the mean as there are tokens, also when it is clipped."""
    config = TrainingConfig.parse(
        {
            "max_steps": 1,
            "optimizer": "sgd",
            "reduction": reduction,
            "clip_norm": clip_norm,
            "weight_decay": decay,
        }
    )
    mean, tokens = gradients(config)
    norm = sum(float(each.square().sum()) for each in mean) ** 0.5
    factor = RATE * (tokens if reduction == "sum" else 1.0)
    factor *= clip_norm / norm if clip_norm else 1.0
    steps, told = moved(config)
    assert told == pytest.approx(norm)
    for step, gradient, parameter in zip(
        steps, mean, tiny_model(dropout=0.0).parameters(), strict=True
    ):
        shrunk = RATE * decay * parameter.detach() if parameter.dim() >= 2 else 0.0
        torch.testing.assert_close(step, factor * gradient + shrunk, rtol=1e-8, atol=1e-12)


def test_long_rows_are_shortened_and_short_ones_are_not():
    """At half the longest row: no row is longer, and vectors such as gains are let alone."""
    settings = {"max_steps": 1, "optimizer": "sgd", "clip_norm": 0.0}
    free, _ = moved(TrainingConfig.parse(settings))
    lengths = [step.norm(dim=-1, keepdim=True) for step in free if step.dim() >= 2]
    limit = max(float(each.max()) for each in lengths) / 2
    bound, _ = moved(TrainingConfig.parse({**settings, "clip_rows": limit / RATE}))
    shortened = 0
    for one, other in zip(free, bound, strict=True):
        if one.dim() < 2:
            assert torch.equal(one, other)
            continue
        before = one.norm(dim=-1, keepdim=True)
        expected = torch.where(before > limit, one * limit / before, one)
        torch.testing.assert_close(other, expected, rtol=1e-8, atol=1e-12)
        shortened += int((before > limit).sum())
    assert 0 < shortened < sum(each.numel() for each in lengths)


def test_adam_goes_the_same_way_along_mean_and_sum():
    """It divides by the gradient's own size; eps aside, which is 1e-30 here."""
    settings = {"max_steps": 1, "clip_norm": 0.0, "adam_eps": 1e-30}
    mean, _ = moved(TrainingConfig.parse({**settings, "reduction": "mean"}))
    total, _ = moved(TrainingConfig.parse({**settings, "reduction": "sum"}))
    for one, other in zip(mean, total, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_nothing_moves_before_a_rate_is_given(optimizer: str):
    model = tiny_model()
    built = build_optimizer(model, TrainingConfig(max_steps=1, optimizer=optimizer))
    assert {group["lr"] for group in built.param_groups} == {0.0}


def test_a_batch_of_one_token_is_reported_as_it_is():
    """The stop alone: sums and means are the same, and the likelihood is not smoothed."""
    model = tiny_model(dropout=0.0)
    config = TrainingConfig(max_steps=1, label_smoothing=0.1)
    one = collate_pairs([[4, 5]], [[]])
    sums = build_objective(config)(model.train(), one)
    optimizer = build_optimizer(model, config)
    report = find_gradient(model, optimizer, [one], build_objective(config), config)
    assert report.token_count == sums.token_count == 1
    assert report.loss == pytest.approx(sums.loss.item())
    assert report.negative_log_likelihood == pytest.approx(sums.negative_log_likelihood.item())
    assert report.gradient_norm == pytest.approx(unclipped_norm(model, one, config))


def unclipped_norm(model: Seq2Seq, given: Batch, config: TrainingConfig) -> float:
    loss = build_objective(config)(model, given).loss
    found = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)
    return torch.stack([each.norm() for each in found if each is not None]).norm().item()


def test_muon_refuses_a_model_none_of_whose_matrices_it_may_move():
    """Word vectors are two tables of rows; and a matrix that is frozen is not moved."""
    config = TrainingConfig(max_steps=1, optimizer="muon")
    frozen = tiny_model().requires_grad_(False)
    frozen.output_weight.requires_grad_(True)
    skipgram = build_any_model(parse_model_config({"kind": "skipgram", "d_model": 8}), 9, 9)
    for model in (skipgram, frozen):
        with pytest.raises(ConfigError) as caught:
            build_optimizer(model, config)
        assert str(caught.value) == (
            "training.optimizer=muon moves matrices between hidden states, and none is trained"
        )
        assert caught.value.hint == "take training.optimizer=adam"


def test_muon_is_refused_where_a_process_holds_rows_only():
    with pytest.raises(ConfigError, match="optimizer=muon needs whole matrices"):
        TrainingConfig.parse({"max_steps": 1, "optimizer": "muon", "sharding": "fsdp"})


def test_muon_leaves_a_frozen_matrix_where_it_was_and_keeps_one_mean_for_each_other():
    model = tiny_model(dropout=0.0)
    w_o = model.encoder.layers[0].self_attention.w_o.requires_grad_(False)
    before = w_o.clone()
    config = TrainingConfig(max_steps=1, optimizer="muon")
    optimizer = build_optimizer(model, config)
    update(model, optimizer, [batch()], build_objective(config), config, rate=RATE)
    assert torch.equal(w_o, before)
    assert w_o not in optimizer.state
    w_qkv = model.encoder.layers[0].self_attention.w_qkv
    assert set(optimizer.state[w_qkv]) == {"momentum"}
    assert set(optimizer.state[model.output_weight]) == {"step", "exp_avg", "exp_avg_sq"}


def test_muon_under_bfloat16_moves_as_far_and_keeps_float32():
    """Only the products of the orthogonalization are narrow."""
    config = TrainingConfig(max_steps=1, optimizer="muon")
    moves = []
    for precision in ("fp32", "bf16"):
        model = tiny_model(dropout=0.0).float()
        w_qkv = model.encoder.layers[0].self_attention.w_qkv
        before, optimizer = w_qkv.detach().clone(), build_optimizer(model, config)
        update(model, optimizer, [batch()], build_objective(config), config, RATE, precision)
        moves.append(w_qkv.detach() - before)
        assert optimizer.state[w_qkv]["momentum"].dtype == torch.float32
    full, half = moves
    assert not torch.equal(full, half)
    assert half.norm().item() == pytest.approx(full.norm().item(), rel=0.1)


@pytest.mark.parametrize("kind", ["adam", "sgd", "muon"])
def test_no_optimizer_imports_pytorchs_compiler(kind: str, monkeypatch: pytest.MonkeyPatch):
    """Its import takes as long as that of the rest of PyTorch, at every start of a training."""
    monkeypatch.setitem(sys.modules, "torch._dynamo", None)  # its import fails
    config = TrainingConfig.parse({"max_steps": 1, "optimizer": kind})
    model = tiny_model(dropout=0.0)
    optimizer = build_optimizer(model, config)
    update(model, optimizer, [batch()], build_objective(config), config, rate=RATE)
    optimizer.load_state_dict(optimizer.state_dict())
    optimizer.zero_grad()


@pytest.mark.parametrize(
    ("ours", "theirs"), [(AdamW, torch.optim.AdamW), (SGD, torch.optim.SGD)], ids=["adam", "sgd"]
)
def test_an_optimizer_moves_as_pytorchs_own(
    ours: type[torch.optim.Optimizer], theirs: type[torch.optim.Optimizer]
):
    results = []
    for kind in (ours, theirs):
        weight = torch.linspace(-1, 1, 12).view(3, 4).requires_grad_()
        optimizer = kind([{"params": [weight], "weight_decay": 0.1}], lr=0.5, fused=True)  # type: ignore[call-arg]
        for _ in range(3):
            optimizer.zero_grad()
            weight.square().sum().backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        results.append((weight.detach(), optimizer.state_dict()))
    assert torch.equal(results[0][0], results[1][0])
    assert repr(results[0][1]) == repr(results[1][1])
