"""Dropout, R-Drop, SimCut and distillation: by hand, by their properties, and against torch."""

import codecs
import math

import pytest
import torch
from equation_checks import close
from torch.nn import functional

from pellucid.core.errors import ConfigError, ShapeError
from pellucid.equations.losses import kl_divergence, smoothed_cross_entropy
from pellucid.equations.regularization import (
    cipher_loss,
    cut_tokens,
    distillation_loss,
    dropout,
    encipher,
    r_drop_loss,
    simcut_loss,
    switch_probabilities,
    switch_tokens,
    symmetric_divergence,
    top_k_distillation_loss,
)
from pellucid.equations.softmax import softmax

HALVES, QUARTERS = torch.tensor([[0.5, 0.5], [0.75, 0.25]], dtype=torch.float64).log()
"""p = (½, ½) and q = (¾, ¼): p - q = (-¼, ¼), log p - log q = (log ⅔, log 2)."""


@pytest.mark.by_hand
def test_dropout_by_hand():
    """p = ¼: what is kept grows by 4/3, so that three of four keep the sum of all four ones."""
    is_kept = torch.tensor([True, False, True, True])
    close(dropout(torch.tensor([3.0, 5, -6, 0]), is_kept, 0.25), [4.0, 0, -8, 0])
    close(dropout(torch.ones(4), is_kept, 0.25).sum(), 4.0)
    x = torch.randn(4)
    close(dropout(x, torch.ones(4, dtype=torch.bool), 0.0), x)


@pytest.mark.referee
def test_dropout_is_torch_s_with_the_same_mask():
    """The mask is read off torch's own answer; what is left of a random x tells the scale."""
    x = torch.randn(50, 40)
    theirs = functional.dropout(x, 0.3)
    close(dropout(x, theirs != 0, 0.3), theirs)


@pytest.mark.parametrize("rate", [-0.1, 1.0])
def test_a_rate_of_dropout_that_leaves_nothing_is_refused(rate):
    with pytest.raises(ConfigError) as caught:
        dropout(torch.ones(2), torch.ones(2, dtype=torch.bool), rate)
    assert str(caught.value) == f"rate must be at least 0 and below 1, got {rate}"


@pytest.mark.by_hand
def test_two_words_by_hand():
    """EQ-119: J = -¼ log ⅔ + ¼ log 2 = ¼ log 3."""
    close(symmetric_divergence(HALVES, QUARTERS), math.log(3) / 4)


@pytest.mark.property
def test_divergence_both_ways_is_the_sum_of_the_two():
    """EQ-119: whichever comes first, and 0 for logits that differ by a constant."""
    first, second = torch.randn(2, 3, 7)
    expected = kl_divergence(softmax(first), second) + kl_divergence(softmax(second), first)
    close(symmetric_divergence(first, second), expected)
    close(symmetric_divergence(second, first), expected)
    close(symmetric_divergence(first, first + 5), torch.zeros(3))


@pytest.mark.by_hand
def test_r_drop_by_hand():
    """Label 0, α = 4, no smoothing: ½ (log 2 + log 4/3) + ¼ log 3."""
    loss = r_drop_loss(HALVES[None], QUARTERS[None], torch.tensor([0]), 0.0, 4)
    close(loss, (math.log(2) + math.log(4 / 3)) / 2 + math.log(3) / 4)


@pytest.mark.by_hand
def test_a_cut_token_is_a_row_of_zeros_and_the_others_are_as_they_were():
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    close(cut_tokens(x, torch.tensor([False, True, False])), [[1.0, 2.0], [0.0, 0.0], [5.0, 6.0]])


@pytest.mark.by_hand
def test_simcut_by_hand():
    """Label 0, α = 3, no smoothing: log 2 + 3 KL((½, ½) ‖ (¾, ¼)) = log 2 + 3/2 log 4/3."""
    loss = simcut_loss(HALVES[None], QUARTERS[None], torch.tensor([0]), 0.0, 3)
    close(loss, math.log(2) + 1.5 * math.log(4 / 3))


@pytest.mark.by_hand
def test_the_divergence_of_simcut_has_a_gradient_in_both_passes_and_the_labels_in_one():
    """∂/∂z of KL(p ‖ p′) is p (log p - log p′ - KL) = (½)(log ⅔ - KL, log 2 - KL), and p′ - p."""
    whole, cut = (each[None].clone().requires_grad_() for each in (HALVES, QUARTERS))
    loss = simcut_loss(whole, cut, torch.tensor([0]), 0.0, 1)
    to_whole, to_cut = torch.autograd.grad(loss, [whole, cut])
    divergence = math.log(4 / 3) / 2
    slopes = [math.log(2 / 3) - divergence, math.log(2) - divergence]
    close(to_whole, [[0.5 * slopes[0] - 0.5, 0.5 * slopes[1] + 0.5]])
    close(to_cut, [[0.25, -0.25]])


@pytest.mark.referee
@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_simcut_is_the_sum_of_torch_s_own_losses(reduction):
    whole, cut = torch.randn(2, 5, 7)
    labels = torch.tensor([1, 6, 2, 0, 3])
    expected = functional.cross_entropy(whole, labels, reduction=reduction, label_smoothing=0.2)
    name = "batchmean" if reduction == "mean" else "sum"
    expected += 3 * functional.kl_div(cut.log_softmax(1), whole.softmax(1), reduction=name)
    close(simcut_loss(whole, cut, labels, 0.2, 3, reduction), expected)


def test_a_negative_weight_of_simcut_is_refused():
    with pytest.raises(ConfigError) as caught:
        simcut_loss(HALVES[None], QUARTERS[None], torch.tensor([0]), 0.0, -1)
    assert str(caught.value) == "alpha must not be negative, got -1"


@pytest.mark.referee
@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_r_drop_is_half_the_paper_s_loss(reduction):
    """Liang et al. (2021), eq. (4), with torch's own losses: L = NLL + α · ½ (KL + KL)."""
    first, second = torch.randn(2, 5, 7)
    labels = torch.tensor([1, 6, 2, 0, 3])
    right = sum(
        functional.cross_entropy(each, labels, reduction=reduction) for each in (first, second)
    )
    p, q = first.log_softmax(-1), second.log_softmax(-1)
    apart = sum(
        functional.kl_div(*pair, reduction="none", log_target=True).sum(-1)
        for pair in ((p, q), (q, p))
    )
    apart = apart.sum() if reduction == "sum" else apart.mean()
    paper = right + 5 / 2 * apart
    close(r_drop_loss(first, second, labels, 0.0, 5, reduction), paper / 2)


@pytest.mark.by_hand
def test_how_many_words_are_switched_by_hand():
    """τ = 1 / log 2: each further word is half as likely; 4/7, 2/7 and 1/7 of two words."""
    found = switch_probabilities(2, 1 / math.log(2))
    close(found, [4 / 7, 2 / 7, 1 / 7])
    close(switch_probabilities(0, 3.0), [1.0])
    with pytest.raises(ConfigError, match="tau must be above 0, got 0"):
        switch_probabilities(2, 0)


@pytest.mark.by_hand
def test_a_switched_word_is_another_one_and_never_a_special_symbol_by_hand():
    """Words 4 to 8: 4 + 1 is 5, 8 + 1 is 4 again, 6 + 4 is 5; where none is switched ids stay."""
    ids, steps = torch.tensor([2, 4, 8, 6, 7]), torch.tensor([3, 1, 1, 4, 2])
    is_switched = torch.tensor([False, True, True, True, False])
    assert switch_tokens(ids, is_switched, steps, 4, 5).tolist() == [2, 5, 4, 5, 7]


@pytest.mark.by_hand
def test_a_letter_of_the_alphabet_becomes_the_one_after_it_by_hand():
    assert encipher("a bad cab!", "abcd", 1) == "b cba dbc!"
    assert encipher("a bad cab!", "abcd", 3) == "d adc bda!"


def test_by_thirteen_of_the_small_letters_it_is_python_s_own_rot13():
    text, alphabet = "the sphinx of quartz: judge my vow, 13", "abcdefghijklmnopqrstuvwxyz"
    assert encipher(text, alphabet, 13) == codecs.encode(text, "rot13")


@pytest.mark.property
def test_enciphering_back_gives_the_text_and_keys_add_up():
    text, alphabet = "im anfang war das wort", "adfgimnorstw"
    for key in [0, 12, *torch.randint(-50, 50, (20,)).tolist()]:
        there = encipher(text, alphabet, key)
        assert encipher(there, alphabet, -key) == text
        assert encipher(there, alphabet, 5) == encipher(text, alphabet, key + 5)
        assert (there == text) == (key % 12 == 0)


@pytest.mark.by_hand
def test_the_loss_of_an_enciphered_source_by_hand():
    """Label 0, α = 4, no smoothing: ½ (log 2 + log 4/3) + ¼ log 3."""
    loss = cipher_loss(HALVES[None], QUARTERS[None], torch.tensor([0]), 0.0, 4)
    close(loss, (math.log(2) + math.log(4 / 3)) / 2 + math.log(3) / 4)


@pytest.mark.property
def test_passes_that_agree_are_one_pass():
    """The loss of a token is then what it is without R-Drop, and so is its gradient."""
    logits = torch.randn(5, 7, requires_grad=True)
    labels = torch.tensor([1, 6, 2, 0, 3])
    twice, once = (
        r_drop_loss(logits, logits, labels, 0.1, 5),
        smoothed_cross_entropy(logits, labels, 0.1),
    )
    close(twice, once)
    close(torch.autograd.grad(twice, logits)[0], torch.autograd.grad(once, logits)[0])


def test_a_negative_alpha_is_refused():
    with pytest.raises(ConfigError) as caught:
        r_drop_loss(HALVES[None], QUARTERS[None], torch.tensor([0]), 0.0, -1)
    assert str(caught.value) == "alpha must not be negative, got -1"


@pytest.mark.by_hand
def test_distillation_by_hand():
    """EQ-119: teacher (¾, ¼), student (½, ½): ¾ log 3/2 + ¼ log ½."""
    expected = 0.75 * math.log(1.5) + 0.25 * math.log(0.5)
    close(distillation_loss(HALVES, QUARTERS), expected)


@pytest.mark.by_hand
def test_a_softened_teacher_by_hand():
    """EQ-119: T = 2 turns odds of 9 to 1 into 3 to 1, and the result counts four times."""
    teacher = torch.tensor([0.9, 0.1]).log()
    expected = 4 * (0.75 * math.log(1.5) + 0.25 * math.log(0.5))
    close(distillation_loss(HALVES, teacher, 2), expected)


@pytest.mark.by_hand
def test_a_teacher_of_two_tokens_by_hand():
    """EQ-119: teacher (¾, ¼) of the tokens 2 and 0, student (½, ¼, ¼): ¾ log 3 + ¼ log ½."""
    student = torch.tensor([0.5, 0.25, 0.25]).log()
    expected = 0.75 * math.log(3.0) + 0.25 * math.log(0.5)
    close(top_k_distillation_loss(student, QUARTERS, torch.tensor([2, 0])), expected)


@pytest.mark.property
@pytest.mark.parametrize("temperature", [1.0, 3.0])
def test_a_teacher_whose_tokens_are_all_known_is_the_whole_one(temperature):
    logits, teacher = torch.randn(2, 7, requires_grad=True), torch.randn(2, 7)
    top = teacher.topk(7)
    ours = top_k_distillation_loss(logits, top.values, top.indices, temperature)
    whole = distillation_loss(logits, teacher, temperature)
    close(ours, whole)
    gradients = [torch.autograd.grad(each.sum(), logits)[0] for each in (ours, whole)]
    close(*gradients)


@pytest.mark.property
@pytest.mark.parametrize("temperature", [1.0, 3.0])
def test_the_gradient_is_the_difference_of_the_softened_distributions(temperature):
    """Hinton et al. (2015), eq. (2), times T²: T (softmax(z / T) - softmax(zₜ / T))."""
    logits, teacher = torch.randn(2, 7, requires_grad=True), torch.randn(2, 7)
    loss = distillation_loss(logits, teacher, temperature).sum()
    expected = temperature * (softmax(logits / temperature) - softmax(teacher / temperature))
    close(torch.autograd.grad(loss, logits)[0], expected)


@pytest.mark.property
def test_a_student_like_its_teacher_has_nothing_to_learn():
    logits = torch.randn(2, 7, requires_grad=True)
    loss = distillation_loss(logits, logits.detach() + 3, 2.0).sum()
    close(loss, 0.0)
    close(torch.autograd.grad(loss, logits)[0], torch.zeros(2, 7))


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.nan])
def test_a_temperature_that_is_none_is_refused(temperature):
    with pytest.raises(ConfigError, match="temperature must be above 0, got"):
        distillation_loss(HALVES, QUARTERS, temperature)
    with pytest.raises(ConfigError, match="temperature must be above 0, got"):
        top_k_distillation_loss(HALVES, QUARTERS, torch.tensor([0, 1]), temperature)


@pytest.mark.usefixtures("unchecked_shapes")
def test_a_token_without_a_logit_is_named():
    with pytest.raises(ShapeError, match="teacher and tokens must have the same number of tokens"):
        top_k_distillation_loss(HALVES, QUARTERS, torch.tensor([0]))


@pytest.mark.usefixtures("unchecked_shapes")
def test_vocabularies_that_differ_are_named():
    with pytest.raises(ShapeError, match="logits and teacher must have the same vocabulary"):
        distillation_loss(torch.zeros(4), torch.zeros(5))
    with pytest.raises(ShapeError, match="first and second must have the same vocabulary"):
        symmetric_divergence(torch.zeros(4), torch.zeros(5))


@pytest.mark.property
@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_a_small_alpha_adds_its_share_of_the_distance(alpha: float):
    """At 0 the mean of both losses alone."""
    first, second = torch.randn(3, 4), torch.randn(3, 4)
    labels = torch.tensor([0, 2, 3])
    apart = symmetric_divergence(first, second).sum()
    right = [functional.cross_entropy(each, labels, reduction="sum") for each in (first, second)]
    close(r_drop_loss(first, second, labels, 0.0, alpha), sum(right) / 2 + alpha / 4 * apart)


def test_words_that_both_distributions_rule_out_add_nothing():
    first, second = torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=torch.float64)
    ruled_out = torch.tensor([-math.inf], dtype=torch.float64)
    longer = [torch.cat((each, ruled_out)) for each in (first, second)]
    close(symmetric_divergence(*longer), symmetric_divergence(first, second))
    tokens = torch.arange(3)
    expected = distillation_loss(first, second)
    close(top_k_distillation_loss(longer[0], longer[1], tokens), expected)


def test_the_gradient_of_simcut_is_finite_where_a_probability_is_0():
    """A softmax of (0, 800) is exactly (0, 1) in float64."""
    whole = torch.tensor([[0.0, 800.0]], dtype=torch.float64, requires_grad=True)
    simcut_loss(whole, torch.tensor([[1.0, 2.0]]), torch.tensor([1]), 0.1, 3.0).backward()
    assert whole.grad is not None
    close(whole.grad, [[-0.05, 0.05]])


@pytest.mark.usefixtures("unchecked_shapes")
def test_top_k_needs_tokens_for_every_row():
    with pytest.raises(ShapeError) as caught:
        top_k_distillation_loss(
            torch.randn(3, 5), torch.randn(2, 2), torch.zeros(2, 2, dtype=torch.long)
        )
    assert str(caught.value) == (
        "tokens must have one row for each row of logits (all axes but the last), got shapes"
        " (2, 2) and (3, 5)"
    )
