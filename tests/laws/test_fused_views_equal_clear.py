"""Law: fused = clear, for the losses of several passes and of a teacher, values and gradients."""

import dataclasses
import itertools

import pytest
import torch
from torch import Tensor

from pellucid.equations import fused_views
from pellucid.equations.fused import fused_linear_cross_entropy
from pellucid.equations.fused_views import (
    LossTerms,
    TeacherRows,
    TopKRows,
    fused_linear_loss_of_views,
)
from pellucid.equations.losses import cross_entropy, smoothed_cross_entropy
from pellucid.equations.regularization import (
    distillation_loss,
    r_drop_loss,
    simcut_loss,
    symmetric_divergence,
    top_k_distillation_loss,
)

LABELS = torch.tensor([0, 3, 10, 3, 7, 1, 3])
ROWS, SIZE, WORDS, TEACHER_SIZE = len(LABELS), 5, 11, 4


def random(*shape: int, seed: int, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, dtype=torch.float64, generator=generator).to(dtype).requires_grad_()


def teacher(share: float, temperature: float, *, has_bias: bool = True) -> TeacherRows:
    hidden, weight = random(ROWS, TEACHER_SIZE, seed=4), random(WORDS, TEACHER_SIZE, seed=5)
    bias = random(WORDS, seed=6).detach() if has_bias else None
    return TeacherRows(hidden.detach(), weight.detach(), bias, share, temperature)


def top_k_teacher(share: float, temperature: float, k: int = 3) -> TopKRows:
    top = random(ROWS, WORDS, seed=7).detach().topk(k)
    return TopKRows(top.values, top.indices, share, temperature)


def clear(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, labels: Tensor, terms: LossTerms
) -> Tensor:
    """The sum as its parts are written in ``equations``, all logits at once."""
    logits = hidden @ weight.T + (bias if bias is not None else 0.0)
    divergence = torch.tensor(0.0)
    if len(logits) > 1:
        divergence = terms.r_drop / 4 * symmetric_divergence(*logits).sum()
    if terms.simcut:
        # what simcut_loss adds to the cross-entropy of its first pass
        plain, both = (simcut_loss(*logits, labels, 0.0, alpha) for alpha in (0.0, terms.simcut))
        divergence, logits = both - plain, logits[:1]
    right = torch.stack([smoothed_cross_entropy(z, labels, terms.smoothing) for z in logits]).mean()
    share, taught = 0.0, torch.tensor(0.0)
    if isinstance(terms.teacher, TopKRows):
        share, top = terms.teacher.share, terms.teacher
        taught = torch.stack(
            [top_k_distillation_loss(z, top.logits, top.tokens, top.temperature) for z in logits]
        )
        taught = taught.sum() / len(logits)
    elif terms.teacher is not None:
        theirs = terms.teacher.hidden @ terms.teacher.weight.T
        theirs = theirs if terms.teacher.bias is None else theirs + terms.teacher.bias
        temperature, share = terms.teacher.temperature, terms.teacher.share
        taught = torch.stack(
            [distillation_loss(z, theirs, temperature).sum() for z in logits]
        ).mean()
    return (1 - share) * right + share * taught + divergence


@pytest.mark.parametrize("chunk_rows", [1, 3, 1024])
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize(
    ("views", "alpha", "simcut"), [(1, 0.0, 0.0), (2, 0.0, 0.0), (2, 5.0, 0.0), (2, 0.0, 3.0)]
)
def test_every_mixture_has_the_values_and_gradients_of_its_parts(
    views: int,
    alpha: float,
    simcut: float,
    has_bias: bool,
    chunk_rows: int,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(fused_views, "_CHUNK_ROWS", chunk_rows)
    hidden, weight = random(views, ROWS, SIZE, seed=1), random(WORDS, SIZE, seed=2)
    bias = random(WORDS, seed=3) if has_bias else None
    inputs = [each for each in (hidden, weight, bias) if each is not None]
    teachers = [None, teacher(0.3, 1.0), teacher(1.0, 2.5, has_bias=False), teacher(0.0, 2.0)]
    teachers += [top_k_teacher(0.3, 1.0), top_k_teacher(1.0, 2.5), top_k_teacher(0.5, 2.0, WORDS)]
    for smoothing, taught in itertools.product((0.0, 0.1), teachers):
        terms = LossTerms(smoothing, alpha, taught, simcut)
        expected = clear(hidden, weight, bias, LABELS, terms)
        loss, likelihood = fused_linear_loss_of_views(hidden, weight, bias, LABELS, terms)
        torch.testing.assert_close(loss, expected, rtol=1e-12, atol=1e-12)
        logits = hidden @ weight.T + (bias if bias is not None else 0.0)
        held = logits[:1] if simcut else logits
        plain = torch.stack([cross_entropy(each, LABELS) for each in held]).mean()
        torch.testing.assert_close(likelihood, plain, rtol=1e-12, atol=1e-12)
        assert not likelihood.requires_grad
        ours = torch.autograd.grad(3 * loss, inputs)
        theirs = torch.autograd.grad(3 * expected, inputs)
        for mine, referee in zip(ours, theirs, strict=True):
            torch.testing.assert_close(mine, referee, rtol=4e-12, atol=4e-12)


def test_two_passes_alone_are_r_drop():
    hidden, weight = random(2, ROWS, SIZE, seed=1), random(WORDS, SIZE, seed=2)
    loss, _ = fused_linear_loss_of_views(hidden, weight, None, LABELS, LossTerms(0.1, 5.0))
    first, second = hidden @ weight.T
    expected = r_drop_loss(first, second, LABELS, 0.1, 5.0)
    torch.testing.assert_close(loss, expected, rtol=1e-12, atol=1e-12)


def test_a_whole_pass_and_a_cut_one_are_simcut():
    hidden, weight = random(2, ROWS, SIZE, seed=1), random(WORDS, SIZE, seed=2)
    terms = LossTerms(0.1, simcut=3.0)
    loss, _ = fused_linear_loss_of_views(hidden, weight, None, LABELS, terms)
    whole, cut = hidden @ weight.T
    expected = simcut_loss(whole, cut, LABELS, 0.1, 3.0)
    torch.testing.assert_close(loss, expected, rtol=1e-12, atol=1e-12)


def test_one_pass_without_a_teacher_is_the_plain_fused_loss():
    hidden, weight = random(ROWS, SIZE, seed=1), random(WORDS, SIZE, seed=2)
    plain = fused_linear_cross_entropy(hidden, weight, None, LABELS, 0.1)
    ours = fused_linear_loss_of_views(hidden[None], weight, None, LABELS, LossTerms(0.1))
    for mine, referee in zip(ours, plain, strict=True):
        torch.testing.assert_close(mine, referee, rtol=1e-12, atol=1e-12)


def test_without_gradients_the_sums_are_the_same():
    hidden, weight = random(2, ROWS, SIZE, seed=1), random(WORDS, SIZE, seed=2)
    terms = LossTerms(0.1, 5.0, teacher(0.3, 2.0))
    with_gradient = fused_linear_loss_of_views(hidden, weight, None, LABELS, terms)
    without = fused_linear_loss_of_views(hidden.detach(), weight.detach(), None, LABELS, terms)
    for one, other in zip(with_gradient, without, strict=True):
        torch.testing.assert_close(one.detach(), other, rtol=0, atol=0)


def test_logits_that_overflow_a_naive_exp_stay_finite():
    hidden = torch.tensor([[[1000.0], [-1000.0]]] * 2, requires_grad=True)
    weight = torch.tensor([[1.0], [-1.0]])
    terms = LossTerms(0.0, 1.0)
    loss, _ = fused_linear_loss_of_views(hidden, weight, None, torch.tensor([0, 1]), terms)
    loss.backward()
    assert loss == 0.0
    assert hidden.grad is not None
    assert hidden.grad.isfinite().all()


def test_under_autocast_products_are_made_in_bfloat16():
    """The rows of zeros that round a product up have the logits of the bias, and no gradient."""
    hidden = random(2, ROWS, 16, seed=1, dtype=torch.float32)
    weight = random(WORDS, 16, seed=2, dtype=torch.float32)
    bias = random(WORDS, seed=3, dtype=torch.float32)
    inputs = [hidden, weight, bias]
    terms = LossTerms(0.1, 1.0)
    expected = clear(hidden, weight, bias, LABELS, terms)
    with torch.autocast("cpu", torch.bfloat16):
        loss, _ = fused_linear_loss_of_views(hidden, weight, bias, LABELS, terms)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, expected, rtol=2e-2, atol=2e-2)
    assert not torch.equal(loss, expected)
    for ours, theirs in zip(
        torch.autograd.grad(loss, inputs), torch.autograd.grad(expected, inputs), strict=True
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-1, atol=1e-1)


def test_under_autocast_a_teachers_product_is_made_in_bfloat16_too():
    """So it makes no difference whether its parameters and hidden states are rounded before."""
    hidden = random(1, ROWS, 16, seed=1, dtype=torch.float32)
    weight = random(WORDS, 16, seed=2, dtype=torch.float32)
    taught = teacher(0.5, 2.0, has_bias=False)
    wide = dataclasses.replace(taught, hidden=taught.hidden.float(), weight=taught.weight.float())
    rounded = dataclasses.replace(
        wide, hidden=wide.hidden.bfloat16(), weight=wide.weight.bfloat16().float()
    )

    def loss(each: TeacherRows) -> Tensor:
        return fused_linear_loss_of_views(hidden, weight, None, LABELS, LossTerms(0.1, 0, each))[0]

    with torch.autocast("cpu", torch.bfloat16):
        narrow = loss(wide)
        torch.testing.assert_close(narrow, loss(rounded), rtol=0, atol=0)
    assert not torch.equal(loss(wide), loss(rounded))
    torch.testing.assert_close(narrow, loss(wide), rtol=2e-2, atol=2e-2)
