import itertools
import math

import pytest
import torch
from equation_checks import close
from torch.nn import functional

from pellucid.core.errors import ConfigError, ShapeError
from pellucid.equations.embedding import one_hot
from pellucid.equations.losses import (
    cross_entropy,
    distribution_cross_entropy,
    entropy,
    guided_alignment_loss,
    kl_divergence,
    negative_log_likelihood,
    sequence_log_prob,
    smooth_labels,
    smoothed_cross_entropy,
)
from pellucid.equations.notation.other_smoothings import (
    smooth_labels_excluding_label,
    smooth_labels_excluding_padding,
)
from pellucid.equations.softmax import softmax

P = torch.tensor([0.1, 0.7, 0.1, 0.1], dtype=torch.float64)
"""The catalogue's prediction for EQ-119 and EQ-120; the label is word 1."""


@pytest.mark.by_hand
def test_one_half_and_one_quarter_by_hand():
    """EQ-118: -log ½ - log ¼ = 3 log 2; the mean is half of that; e^{-L} is the product."""
    logits = torch.tensor([[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]]).log()
    labels = torch.tensor([0, 1])
    close(negative_log_likelihood(logits, labels), [math.log(2), math.log(4)])
    close(cross_entropy(logits, labels), 3 * math.log(2))
    close(cross_entropy(logits, labels, "mean"), 1.5 * math.log(2))
    close((-cross_entropy(logits, labels)).exp(), 1 / 8)


@pytest.mark.referee
@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("smoothing", [0, 0.1, 1])
def test_losses_are_torchs(reduction, smoothing):
    """EQ-118, EQ-120: values and gradients, with and without padding and smoothing."""
    logits = torch.randn(2, 5, 7, requires_grad=True)
    labels = torch.tensor([[1, 6, 2, 0, 0], [3, 3, 4, 5, 0]])
    for pad_id, ignored in [(None, -100), (0, 0)]:
        ours = smoothed_cross_entropy(logits, labels, smoothing, reduction, pad_id)
        theirs = functional.cross_entropy(
            logits.flatten(0, 1),
            labels.flatten(),
            reduction=reduction,
            ignore_index=ignored,
            label_smoothing=smoothing,
        )
        close(ours, theirs, tolerance=1e-11)
        [mine] = torch.autograd.grad(ours, logits)
        close(mine, torch.autograd.grad(theirs, logits)[0])
        if smoothing == 0:
            close(cross_entropy(logits, labels, reduction, pad_id), ours)


@pytest.mark.referee
def test_nothing_to_learn_costs_nothing():
    """EQ-118: of padding alone both sum and mean are 0, and so is the gradient; torch says NaN."""
    logits = torch.randn(2, 5, requires_grad=True)
    loss = cross_entropy(logits, torch.zeros(2, dtype=torch.long), "mean", pad_id=0)
    close(loss, 0.0)
    close(torch.autograd.grad(loss, logits)[0], torch.zeros(2, 5))


@pytest.mark.property
def test_the_default_is_the_sum_over_everything():
    """EQ-118, ER-47: no label is ignored unless asked for."""
    logits, labels = torch.randn(3, 5), torch.zeros(3, dtype=torch.int32)
    close(cross_entropy(logits, labels), -torch.log_softmax(logits, -1)[:, 0].sum())
    close(smoothed_cross_entropy(logits, labels, 0.0), cross_entropy(logits, labels))


@pytest.mark.usefixtures("unchecked_shapes")
def test_an_unknown_reduction_is_impossible():
    """EQ-118: a choice is one match."""
    with pytest.raises(AssertionError, match="median"):
        cross_entropy(torch.zeros(1, 2), torch.zeros(1).long(), "median")


@pytest.mark.usefixtures("unchecked_shapes")
def test_labels_that_do_not_fit_are_named():
    """EQ-118: one label for each row."""
    with pytest.raises(ShapeError) as caught:
        cross_entropy(torch.zeros(2, 3, 5), torch.zeros(2, 4, dtype=torch.long))
    assert str(caught.value) == (
        "labels must have one id for each row of logits (all its axes but the last),"
        " got shapes (2, 4) and (2, 3, 5)"
    )


@pytest.mark.by_hand
def test_four_words_by_hand():
    """EQ-120: K = 4, ε = 0.1: every word gets 0.025, and the right one 0.9 more."""
    close(smooth_labels(torch.tensor([2]), 4, 0.1), [[0.025, 0.025, 0.925, 0.025]])


@pytest.mark.by_hand
def test_the_namesakes_by_hand():
    """EQ-120, ER-48: ε/(K-1) for the others; ε/(K-2) for those that are not padding either."""
    labels = torch.tensor([[2, 0]])
    close(
        smooth_labels_excluding_label(labels, 5, 0.1),
        [[[0.025, 0.025, 0.9, 0.025, 0.025], [0.9, 0.025, 0.025, 0.025, 0.025]]],
    )
    close(
        smooth_labels_excluding_padding(labels, 4, 0.1, pad_id=0),
        [[[0.0, 0.05, 0.9, 0.05], [0, 0, 0, 0]]],
    )


@pytest.mark.parametrize(
    "smooth",
    [
        smooth_labels,
        smooth_labels_excluding_label,
        lambda *arguments: smooth_labels_excluding_padding(*arguments[:3], 0, *arguments[3:]),
    ],
)
def test_smoothed_labels_are_distributions(smooth):
    """EQ-120: sum 1; ε = 0 is one-hot; the type is as asked; ε outside [0, 1] is refused."""
    labels = torch.randint(1, 6, (2, 3))
    close(smooth(labels, 6, 0.3).sum(-1), torch.ones(2, 3))
    close(smooth(labels, 6, 0), one_hot(labels, 6))
    assert smooth(labels, 6, 0.3).dtype == torch.float64
    assert smooth(labels, 6, 0.3, torch.float32).dtype == torch.float32
    smooth(labels, 6, 1)
    for smoothing in (-0.1, 1.5):
        with pytest.raises(ConfigError) as caught:
            smooth(labels, 6, smoothing)
        assert str(caught.value) == f"smoothing must lie between 0 and 1, got {smoothing}"


def test_smoothed_loss_checks_its_smoothing():
    """EQ-120: as the labels do."""
    with pytest.raises(ConfigError, match="smoothing must lie between 0 and 1, got 2"):
        smoothed_cross_entropy(torch.zeros(1, 2), torch.zeros(1).long(), 2)


@pytest.mark.by_hand
def test_smoothed_loss_by_hand():
    """EQ-120: p = (.1,.7,.1,.1), label 1: -.925 log .7 - .075 log .1; hard: -log .7."""
    label = torch.tensor([1])
    expected = -0.925 * math.log(0.7) - 0.075 * math.log(0.1)
    close(smoothed_cross_entropy(P.log()[None], label, 0.1), expected)
    close(smoothed_cross_entropy(P.log()[None], label, 0), -math.log(0.7))
    close(distribution_cross_entropy(smooth_labels(label, 4, 0.1), P.log()[None]), [expected])


@pytest.mark.by_hand
def test_divergence_by_hand():
    """EQ-119: KL = CE - H(q) = .502618 - .348780 = .153838."""
    q = smooth_labels(torch.tensor([1]), 4, 0.1)
    own = -0.925 * math.log(0.925) - 0.075 * math.log(0.025)
    close(entropy(q), [own])
    close(kl_divergence(q, P.log()[None]), distribution_cross_entropy(q, P.log()[None]) - own)
    close(kl_divergence(q, P.log()[None]), [0.153838], tolerance=1e-6)
    close(kl_divergence(q, q.log() + 5), [0.0])


@pytest.mark.referee
def test_divergence_is_torchs():
    """EQ-119: referee kl_div on log-probabilities."""
    q, logits = softmax(torch.randn(2, 3, 5)), torch.randn(2, 3, 5)
    referee = functional.kl_div(logits.log_softmax(-1), q, reduction="none").sum(-1)
    close(kl_divergence(q, logits), referee)


@pytest.mark.property
def test_divergence_and_cross_entropy_teach_the_same():
    """EQ-119, ER-73: equal for a one-hot target, and equal gradients for any fixed target."""
    logits = torch.randn(4, requires_grad=True)
    hard, soft = one_hot(torch.tensor(2), 4), softmax(torch.randn(4))
    close(kl_divergence(hard, logits), distribution_cross_entropy(hard, logits))
    close(
        distribution_cross_entropy(hard, logits), negative_log_likelihood(logits, torch.tensor(2))
    )
    [one] = torch.autograd.grad(kl_divergence(soft, logits), logits)
    [two] = torch.autograd.grad(distribution_cross_entropy(soft, logits), logits)
    close(one, two)


@pytest.mark.by_hand
def test_a_word_that_never_comes_surprises_nobody():
    """EQ-119: 0 log 0 = 0, also where the model rules the word out (-inf), also backwards."""
    logits = torch.tensor([0.0, -math.inf, 1], requires_grad=True)
    loss = distribution_cross_entropy(torch.tensor([0.5, 0, 0.5]), logits)
    close(loss, -torch.tensor([0.0, 1]).log_softmax(-1).mean())
    assert torch.autograd.grad(loss, logits)[0].isfinite().all()
    close(entropy(torch.tensor([1.0, 0])), 0.0)


def test_a_part_without_weight_is_left_out_where_it_is_infinite():
    """EQ-120: with ε = 1 the true word counts as any other, with ε = 0 no other counts."""
    logits, labels = torch.tensor([[0.0, -math.inf]]), torch.tensor([1])
    assert smoothed_cross_entropy(logits, labels, smoothing=1.0) == math.inf
    assert smoothed_cross_entropy(logits, torch.tensor([0]), smoothing=0.0) == 0.0
    close(smoothed_cross_entropy(torch.zeros(1, 2), labels, smoothing=1.0), math.log(2))


@pytest.mark.usefixtures("unchecked_shapes")
def test_vocabularies_that_differ_are_named():
    """EQ-118: target and logits speak of the same words."""
    with pytest.raises(ShapeError) as caught:
        kl_divergence(torch.zeros(2, 4), torch.zeros(2, 5))
    assert str(caught.value) == (
        "target and logits must have the same vocabulary (axis -1 of target, axis -1 of logits),"
        " got shapes (2, 4) and (2, 5)"
    )


@pytest.mark.property
def test_a_sentence_is_as_likely_as_its_words_together():
    """EQ-117: the sum over positions, padding left out; e^{-L} of the summed loss."""
    logits, labels = torch.randn(2, 3, 5), torch.tensor([[1, 2, 3], [4, 0, 0]])
    log_p = logits.log_softmax(-1)
    close(
        sequence_log_prob(logits, labels, pad_id=0),
        torch.stack((log_p[0, 0, 1] + log_p[0, 1, 2] + log_p[0, 2, 3], log_p[1, 0, 4])),
    )
    close(sequence_log_prob(logits, labels).sum(), -cross_entropy(logits, labels))


@pytest.mark.property
def test_all_sentences_of_a_small_language_sum_to_one():
    """EQ-117: words A, B, stop (2); a prefix decides the next word; after two words: stop.

    Every sentence ends, so the probabilities of all of them must sum to 1.
    """
    stop = torch.tensor([-math.inf, -math.inf, 0])
    model = {
        prefix: torch.randn(3) for n in range(2) for prefix in itertools.product((0, 1), repeat=n)
    }

    def logits(sentence: tuple[int, ...]) -> torch.Tensor:
        return torch.stack([model.get(sentence[:t], stop) for t in range(len(sentence))])

    sentences = [(*words, 2) for n in range(3) for words in itertools.product((0, 1), repeat=n)]
    assert len(sentences) == 7
    probabilities = [sequence_log_prob(logits(s), torch.tensor(s)).exp() for s in sentences]
    close(torch.stack(probabilities).sum(), 1.0)


@pytest.mark.by_hand
def test_the_guided_alignment_loss_by_hand():
    """Two links share a row: (log 2 + log 4) / 2; one link: log 4; a row without links: nothing."""
    weights = torch.tensor([[0.5, 0.25, 0.25], [0.25, 0.25, 0.5], [1.0, 0.0, 0.0]])
    links = torch.tensor([[1, 1, 0], [1, 0, 0], [0, 0, 0]]).bool()
    close(guided_alignment_loss(weights.double(), links), 1.5 * math.log(2) + 2 * math.log(2))
    # a link to a token without any weight costs much, and has no infinite loss or gradient
    weights = torch.tensor([[1.0, 0.0]], dtype=torch.float32, requires_grad=True)
    loss = guided_alignment_loss(weights, torch.tensor([[False, True]]))
    loss.backward()
    assert 80 < loss < 90
    assert weights.grad.isfinite().all()
    with pytest.raises(ShapeError, match=r"one entry for each attention weight, got shapes \(1, 3"):
        guided_alignment_loss(weights, torch.ones(1, 3, dtype=torch.bool))


@pytest.mark.referee
def test_the_guided_alignment_loss_is_torchs_cross_entropy_of_probabilities():
    scores = torch.randn(3, 4, 6, requires_grad=True)
    links = torch.rand(3, 4, 6) < 0.3
    links[..., 0] = True
    given = links.double() / links.sum(dim=-1, keepdim=True)
    ours = guided_alignment_loss(scores.softmax(dim=-1), links)
    theirs = functional.cross_entropy(
        scores.flatten(0, 1), given.to(scores.dtype).flatten(0, 1), reduction="sum"
    )
    close(ours, theirs, tolerance=1e-10)
    close(*(torch.autograd.grad(each, scores)[0] for each in (ours, theirs)), tolerance=1e-10)


@pytest.mark.property
def test_no_attention_has_a_smaller_alignment_loss_than_the_alignment_itself():
    links = torch.rand(5, 4, 6) < 0.4
    links[..., 1] = True
    exact = links.double() / links.sum(dim=-1, keepdim=True)
    least = guided_alignment_loss(exact, links)
    close(least, links.sum(dim=-1).double().log().sum(), tolerance=1e-9)
    for _ in range(20):
        assert guided_alignment_loss(torch.randn(5, 4, 6).softmax(dim=-1), links) > least


def test_labels_that_do_not_count_may_be_no_ids():
    """Such as the -100 of torch.nn.functional.cross_entropy."""
    logits = torch.randn(3, 4, dtype=torch.float64)
    labels, fewer = torch.tensor([2, -100, 0]), torch.tensor([2, 0])
    for reduction in ("sum", "mean"):
        expected = functional.cross_entropy(logits, labels, reduction=reduction)
        close(cross_entropy(logits, labels, reduction, pad_id=-100), expected)
    smoothed = smoothed_cross_entropy(logits[::2], fewer, 0.1)
    close(smoothed_cross_entropy(logits, labels, 0.1, pad_id=-100), smoothed)
    close(sequence_log_prob(logits, labels, -100), sequence_log_prob(logits[::2], fewer))


def test_the_gradient_of_an_entropy_is_finite_behind_a_softmax_that_is_0():
    logits = torch.tensor([0.0, 800.0], dtype=torch.float64, requires_grad=True)
    entropy(softmax(logits)).backward()
    assert logits.grad is not None
    close(logits.grad, torch.zeros(2))


def test_a_label_outside_the_vocabulary_is_refused():
    with pytest.raises(ShapeError) as caught:
        smooth_labels(torch.tensor([1, -100]), 4, 0.1)
    assert str(caught.value) == "ids must lie between 0 and 3, got -100 to 1"
