import itertools
import math

import pytest
import torch
from equation_checks import close
from torch.nn import functional

from pellucid.equations.notation.angles import cosine
from pellucid.equations.word2vec import (
    keep_probability,
    negative_sampling_loss,
    noise_distribution,
    skipgram_logits,
    skipgram_loss,
    skipgram_pairs,
)


@pytest.mark.by_hand
def test_five_words_make_fourteen_pairs():
    """EQ-17: window 2; the first five as in the catalogue."""
    pairs = skipgram_pairs(["the", "quick", "brown", "fox", "jumps"], window=2)
    assert len(pairs) == 14
    assert pairs[:5] == [
        ("the", "quick"),
        ("the", "brown"),
        ("quick", "the"),
        ("quick", "brown"),
        ("quick", "fox"),
    ]
    assert pairs[-2:] == [("jumps", "brown"), ("jumps", "fox")]


@pytest.mark.by_hand
def test_pairs_go_both_ways():
    """EQ-17: whoever is my neighbor has me for one; a window of 0 has none."""
    pairs = skipgram_pairs([1, 2, 3, 4, 2], window=3)
    assert sorted(pairs) == sorted((context, center) for center, context in pairs)
    assert skipgram_pairs([1, 2, 3], window=0) == []
    assert skipgram_pairs([], window=2) == []


@pytest.mark.by_hand
def test_the_hidden_layer_is_a_row_of_the_matrix():
    """EQ-17: z = x W_in W_out without an activation."""
    w_in, w_out = torch.tensor([[1.0, -2], [3, 4]]), torch.tensor([[1.0, 0], [0, 10]])
    close(skipgram_logits(torch.tensor([0, 1]), w_in, w_out), [[1.0, -20], [3, 40]])


@pytest.mark.referee
def test_full_softmax_loss_is_torchs():
    """EQ-17: -log softmax(v W_out)[context], mean over pairs, or their sum."""
    w_in, w_out = torch.randn(5, 3), torch.randn(3, 5)
    center, context = torch.tensor([0, 1, 4]), torch.tensor([2, 2, 0])
    expected = torch.nn.functional.cross_entropy(w_in[center] @ w_out, context)
    close(skipgram_loss(center, context, w_in, w_out), expected)
    close(skipgram_loss(center, context, w_in, w_out, "sum"), 3 * expected)


@pytest.mark.by_hand
def test_negative_sampling_by_hand():
    """EQ-17: scores 2 for the neighbor, -1 and 3 for noise: -log σ(2) - log σ(1) - log σ(-3)."""
    w_in = torch.tensor([[0.0], [1], [0]])
    w_out = torch.tensor([[2.0, -1, 3]])

    def surprise(x: float) -> float:
        return math.log(1 + math.exp(-x))

    one = torch.tensor([1]), torch.tensor([0]), torch.tensor([[1, 2]])
    expected = surprise(2) + surprise(1) + surprise(-3)
    close(negative_sampling_loss(*one, w_in, w_out), expected)
    two = torch.tensor([1, 0]), torch.tensor([0, 2]), torch.tensor([[1, 2], [0, 0]])
    close(negative_sampling_loss(*two, w_in, w_out), (expected + 3 * math.log(2)) / 2)
    close(negative_sampling_loss(*two, w_in, w_out, "sum"), expected + 3 * math.log(2))
    huge = negative_sampling_loss(*one, 1e4 * w_in, w_out)
    close(huge, 3e4, tolerance=1e-9)


@pytest.mark.property
@pytest.mark.parametrize("sampled", [False, True])
def test_words_with_the_same_neighbors_grow_alike(sampled):
    """EQ-17: 'cat' and 'dog' have equal contexts, 'iron' others; training lowers the loss."""
    animals = ["the", "cat", "sleeps", "the", "dog", "sleeps"] * 4
    metals = ["hot", "iron", "melts"] * 4
    words = sorted(set(animals + metals))
    texts = [animals, metals]
    pairs = [pair for text in texts for pair in skipgram_pairs(text, 1)]
    center, context = torch.tensor([[words.index(word) for word in pair] for pair in pairs]).T
    w_in = torch.randn(len(words), 4).requires_grad_()
    w_out = torch.randn(4, len(words)).requires_grad_()
    negatives = torch.randint(len(words), (len(pairs), 5))
    losses = []
    for _ in range(200):
        if sampled:
            loss = negative_sampling_loss(center, context, negatives, w_in, w_out)
        else:
            loss = skipgram_loss(center, context, w_in, w_out)
        losses.append(loss.item())
        gradients = torch.autograd.grad(loss, (w_in, w_out))
        with torch.no_grad():
            for parameter, gradient in zip((w_in, w_out), gradients, strict=True):
                parameter -= gradient
    alike = cosine(w_in, w_in)
    cat, dog, iron = (words.index(word) for word in ("cat", "dog", "iron"))
    assert losses[-1] < 0.8 * losses[0]
    assert alike[cat, dog] > alike[cat, iron]


@pytest.mark.by_hand
def test_noise_lies_between_frequency_and_equality():
    """EQ-17: counts 16 and 1 with power 3/4: 8 to 1; power 0 uniform, power 1 frequency."""
    counts = torch.tensor([16.0, 1])
    close(noise_distribution(counts), [8 / 9, 1 / 9])
    close(noise_distribution(counts, 0), [0.5, 0.5])
    close(noise_distribution(counts, 1), [16 / 17, 1 / 17])


@pytest.mark.by_hand
def test_frequent_words_are_thinned_out():
    """EQ-17: with t = 1/100 a word of share ¼ is kept with √(4/100) + 4/100; rare words always."""
    counts = torch.tensor([250.0, 745, 5])
    close(keep_probability(counts, 0.01), [0.24, math.sqrt(2 / 149) + 2 / 149, 1])
    close(keep_probability(torch.tensor([1.0, 1])), [math.sqrt(2e-5) + 2e-5] * 2)


@pytest.mark.property
def test_negative_sampling_takes_any_number_of_axes():
    """EQ-17: a table of pairs costs what its pairs cost in a row."""
    w_in, w_out = torch.randn(7, 4), torch.randn(4, 7)
    center, context = torch.randint(7, (2, 3)), torch.randint(7, (2, 3))
    negatives = torch.randint(7, (2, 3, 5))
    table = negative_sampling_loss(center, context, negatives, w_in, w_out, "sum")
    row = negative_sampling_loss(
        center.flatten(), context.flatten(), negatives.flatten(0, 1), w_in, w_out, "sum"
    )
    close(table, row)
    one = torch.zeros(())
    for i, j in itertools.product(range(2), range(3)):
        v = w_in[center[i, j]]
        one -= functional.logsigmoid(w_out[:, context[i, j]] @ v)
        one -= functional.logsigmoid(-(w_out[:, negatives[i, j]].T @ v)).sum()
    close(table, one)
