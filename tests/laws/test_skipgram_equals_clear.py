"""Law: skip-gram over whole sentences = its equations over pairs, values and gradients."""

import pytest
import torch
from torch import Tensor

from pellucid.core.special import EOS_ID, PAD_ID
from pellucid.equations.word2vec import (
    negative_sampling_loss,
    skipgram_logits,
    skipgram_loss,
    skipgram_pairs,
)
from pellucid.model.build import build_any_model
from pellucid.model.config import parse_model_config
from pellucid.model.skipgram import SkipGram, _neighbors

VOCABULARY = 13
EXACT = {"rtol": 1e-12, "atol": 1e-12}


def skipgram(negatives: int) -> SkipGram:
    """A random model in float64 that leaves no word out."""
    config = parse_model_config(
        {"kind": "skipgram", "d_model": 8, "window": 2, "negatives": negatives, "subsample": 0.0}
    )
    model = build_any_model(config, VOCABULARY, VOCABULARY).double()
    assert isinstance(model, SkipGram)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in (model.w_in, model.w_out):
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator)
    return model.eval()


def text(*sentences: list[int]) -> Tensor:
    """Sentences with their EOS, filled up with PAD."""
    longest = max(map(len, sentences)) + 1
    rows = [[*each, EOS_ID, *[PAD_ID] * (longest - len(each) - 1)] for each in sentences]
    return torch.tensor(rows)


@pytest.mark.by_hand
def test_neighbors_are_the_pairs_of_the_equation():
    """EQ-17: a sentence of five and one of two words, window 2."""
    near = _neighbors(torch.tensor([[4, 5, 6, 7, 8], [9, 4, PAD_ID, PAD_ID, PAD_ID]]), 2)
    got = [tuple(pair) for pair in near[0].nonzero().tolist()]
    assert got == skipgram_pairs(range(5), 2)
    assert near[1].nonzero().tolist() == [[0, 1], [1, 0]]


@pytest.mark.property
def test_without_negatives_the_loss_is_the_full_softmax_s_mean_over_pairs():
    """EQ-17 exactly."""
    model = skipgram(negatives=0)
    labels = text([4, 5, 6, 4], [7, 8])
    sums = model.loss(labels, labels, labels, 0.0)
    pairs = skipgram_pairs([4, 5, 6, 4], 2) + skipgram_pairs([7, 8], 2)
    center, context = torch.tensor(pairs).T
    expected = skipgram_loss(center, context, model.w_in, model.w_out.T)
    logits = skipgram_logits(center, model.w_in, model.w_out.T)
    torch.testing.assert_close(
        torch.nn.functional.cross_entropy(logits, context), expected, **EXACT
    )
    assert sums.token_count == len(pairs) == 12
    torch.testing.assert_close(sums.loss / sums.token_count, expected, **EXACT)


def test_full_softmax_training_is_the_same_loss_with_gradients():
    model = skipgram(negatives=0).train()
    labels = text([4, 5, 6, 4])
    loss = model.loss(labels, labels, labels, 0.0).loss
    center, context = torch.tensor(skipgram_pairs([4, 5, 6, 4], 2)).T
    clear = skipgram_loss(center, context, model.w_in, model.w_out.T, "sum")
    parameters = [model.w_in, model.w_out]
    for ours, theirs in zip(
        torch.autograd.grad(loss, parameters), torch.autograd.grad(clear, parameters), strict=True
    ):
        torch.testing.assert_close(ours, theirs, **EXACT)


def test_noise_shared_by_a_batch_is_the_equation_with_that_noise_for_every_pair():
    """Law: with as many words drawn as wanted, values and gradients are the equation's."""
    model = skipgram(negatives=3).train()
    ids = torch.tensor([[4, 5, 6, 4, 7], [8, 9, PAD_ID, PAD_ID, PAD_ID]])
    noise, ones = torch.tensor([5, 12, 8]), torch.ones(3, dtype=torch.float64)
    near = _neighbors(ids, 2)
    loss = model.noise_contrast(ids, near, noise, ones)
    pairs = torch.tensor(skipgram_pairs([4, 5, 6, 4, 7], 2) + skipgram_pairs([8, 9], 2))
    clear = negative_sampling_loss(
        pairs[:, 0], pairs[:, 1], noise.expand(len(pairs), 3), model.w_in, model.w_out.T, "sum"
    )
    torch.testing.assert_close(loss, clear, **EXACT)
    parameters = [model.w_in, model.w_out]
    for ours, theirs in zip(
        torch.autograd.grad(loss, parameters), torch.autograd.grad(clear, parameters), strict=True
    ):
        torch.testing.assert_close(ours, theirs, **EXACT)
    doubled = model.noise_contrast(ids, near, noise.repeat(2), ones.repeat(2) / 2)
    torch.testing.assert_close(doubled, loss, **EXACT)
