"""Law: an update of the program, its dropout, its widths and its KV cache are the equations'."""

import pytest
import torch
from tiny_models import VOCABULARY, sources, targets, tiny_model

from pellucid.core.special import PAD_ID
from pellucid.equations import transformer
from pellucid.equations.attention import cached_attention
from pellucid.equations.heads import head_size, merge_heads
from pellucid.equations.optimizers import adam_update, clip_gradient, muon_update
from pellucid.equations.regularization import dropout
from pellucid.model.config import TransformerConfig
from pellucid.model.dropout import Dropout, DropoutSource
from pellucid.model.state import Reading
from pellucid.text.batching import Batch
from pellucid.training import muon
from pellucid.training.config import TrainingConfig
from pellucid.training.objective import CrossEntropy
from pellucid.training.step import apply_gradient, build_optimizer, find_gradient, update_norm

EXACT = {"rtol": 1e-12, "atol": 1e-12}


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_three_updates_are_adam_s(weight_decay: float):
    """Clipped gradients, a rate that changes, and decay of matrices alone."""
    model = tiny_model(dropout=0.0)
    config = TrainingConfig(clip_norm=0.5, weight_decay=weight_decay, max_steps=3)
    optimizer = build_optimizer(model, config)
    labels = targets(3, 4, seed=5)
    batch = Batch(
        source=sources(5, 3, 4),
        target_input=transformer.shift_right(labels, 2),
        labels=labels,
        target_token_count=int((labels != PAD_ID).sum()),
    )
    expected = [each.detach().clone() for each in model.parameters()]
    means = [torch.zeros_like(each) for each in expected]
    squares = [torch.zeros_like(each) for each in expected]
    objective = CrossEntropy(config.label_smoothing)
    beta_1, beta_2 = config.adam_betas

    for step, rate in enumerate((0.01, 0.02, 0.005), start=1):
        whole = find_gradient(
            model, optimizer, [batch], objective, config.model_copy(update={"clip_norm": 0.0})
        )
        unclipped = [each.grad.clone() for each in model.parameters()]
        report = find_gradient(model, optimizer, [batch], objective, config)
        assert whole.gradient_norm > config.clip_norm
        for index, parameter in enumerate(model.parameters()):
            gradient = clip_gradient(unclipped[index], whole.gradient_norm, config.clip_norm)
            torch.testing.assert_close(parameter.grad, gradient, **EXACT)
            expected[index], means[index], squares[index] = adam_update(
                expected[index],
                gradient,
                means[index],
                squares[index],
                step,
                rate,
                beta_1,
                beta_2,
                config.adam_eps,
                weight_decay if parameter.dim() >= 2 else 0.0,
            )
        apply_gradient(optimizer, report, rate)
        for parameter, equal in zip(model.parameters(), expected, strict=True):
            torch.testing.assert_close(parameter.detach(), equal, **EXACT)


MATRICES = ("w_qkv", "w_o", "inner.weight", "outer.weight", "weight_ih_l0", "weight_hh_l0")


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
@pytest.mark.parametrize("variant", ["wide values", "lstm"])
def test_three_updates_are_muon_s_for_each_matrix_and_adam_s_for_all_else(
    variant: str, weight_decay: float, monkeypatch: pytest.MonkeyPatch
):
    """W^Q, W^K and W^V of all heads are three matrices, and so are the gates of a cell four.

    With decay, a cache that holds one matrix for each thread: several of a shape take turns.
    """
    if weight_decay:
        monkeypatch.setattr(muon, "_IN_CACHE", 1)
    model = tiny_model(variant, dropout=0.0)
    config = TrainingConfig(
        optimizer="muon", muon_momentum=0.9, clip_norm=0.0, weight_decay=weight_decay, max_steps=3
    )
    optimizer = build_optimizer(model, config)
    labels = targets(3, 4, seed=5)
    batch = Batch(
        source=sources(5, 3, 4),
        target_input=transformer.shift_right(labels, 2),
        labels=labels,
        target_token_count=int((labels != PAD_ID).sum()),
    )
    named = dict(model.named_parameters())
    expected = {name: each.detach().clone() for name, each in named.items()}
    kept = {name: (torch.zeros_like(each),) * 2 for name, each in expected.items()}
    heights = {name: muon_heights(model, name) for name in named if name.endswith(MATRICES)}
    assert len(heights) == (4 * 4 + 2 * 2 if variant == "wide values" else 8)
    beta_1, beta_2 = config.adam_betas

    for step, rate in enumerate((0.01, 0.02, 0.005), start=1):
        before = {name: each.detach().clone() for name, each in named.items()}
        objective = CrossEntropy(config.label_smoothing)
        report = find_gradient(model, optimizer, [batch], objective, config)
        gradients = {name: each.grad.clone() for name, each in named.items()}
        apply_gradient(optimizer, report, rate)
        for name, parameter in named.items():
            mean, square = kept[name]
            if name in heights:
                parts = zip(
                    *(
                        torch.split(x, heights[name])
                        for x in (expected[name], gradients[name], mean)
                    ),
                    strict=True,
                )
                moved = [muon_update(*part, rate, 0.9, weight_decay) for part in parts]
                expected[name] = torch.cat([each for each, _ in moved])
                kept[name] = torch.cat([each for _, each in moved]), square
            else:
                decay = weight_decay if parameter.dim() >= 2 else 0.0
                expected[name], *means = adam_update(
                    expected[name],
                    gradients[name],
                    mean,
                    square,
                    step,
                    rate,
                    beta_1,
                    beta_2,
                    config.adam_eps,
                    decay,
                )
                kept[name] = means[0], means[1]
            torch.testing.assert_close(parameter.detach(), expected[name], rtol=1e-10, atol=1e-12)
        moved_by = torch.stack([(named[name] - old).norm() for name, old in before.items()]).norm()
        assert update_norm(optimizer) == pytest.approx(moved_by.item(), rel=1e-8)


def muon_heights(model: torch.nn.Module, name: str) -> list[int]:
    """The rows of each matrix that is stacked in the parameter."""
    parameter = model.get_parameter(name)
    match name.rpartition(".")[2]:
        case "w_qkv":
            config = model.config
            query, value = config.heads * config.key_size, config.heads * config.value_size
            return [query, query, value]
        case "weight_ih_l0" | "weight_hh_l0":
            return [len(parameter) // 4] * 4
        case _:
            return [len(parameter)]


@pytest.mark.parametrize("rate", [0.25, 0.5])
def test_dropout_keeps_what_its_mask_keeps_and_scales_it(rate: float):
    """Rates that are a multiple of 1/256 are exact; the mask is drawn once more from the seed."""
    x = torch.randn(30, VOCABULARY, generator=torch.Generator().manual_seed(1)).double()
    source, again = DropoutSource(), DropoutSource()
    source.seed(3)
    again.seed(3)
    is_kept = again.keep_mask(x.shape, rate) > 0
    module = Dropout(rate, source).train()
    # the program's scale is a float32: exact for 2, and for 4/3 to 2 parts in 10^8
    torch.testing.assert_close(module(x), dropout(x, is_kept, rate), rtol=3e-8, atol=0)
    assert module.eval()(x) is x


@pytest.mark.by_hand
@pytest.mark.parametrize(("d_model", "heads"), [(512, 8), (512, 1), (12, 4)])
def test_a_head_is_as_wide_as_the_equation_says_unless_the_config_says_otherwise(
    d_model: int, heads: int
):
    """EQ-80, ER-72."""
    config = TransformerConfig(d_model=d_model, heads=heads)
    assert config.key_size == config.value_size == head_size(d_model, heads)
    assert TransformerConfig(d_model=d_model, heads=heads, d_k=5).key_size == 5


@pytest.mark.property
def test_rows_one_by_one_on_kept_keys_are_the_rows_of_masked_self_attention():
    """EQ-130: the program's causal self-attention over five rows, each appended to a cache."""
    attention = tiny_model("wide values").decoder.layers[0].self_attention
    x = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(2)).double()
    query, key, value = attention.project_all(x)
    keys, values = key[..., :0, :], value[..., :0, :]
    rows = []
    for position in range(5):
        newest = (each[..., position : position + 1, :] for each in (query, key, value))
        row, keys, values = cached_attention(*newest, keys, values)
        rows.append(row)
    heads = merge_heads(torch.cat(rows, dim=-2))
    torch.testing.assert_close(heads @ attention.w_o.T, attention(x, Reading(causal=True)), **EXACT)
