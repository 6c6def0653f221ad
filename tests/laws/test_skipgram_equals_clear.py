"""Law: skip-gram over whole sentences = its equations over pairs, values and gradients."""

import pytest
import torch
from torch import Tensor

from pellucid.core.special import EOS_ID, PAD_ID
from pellucid.equations.fused_word2vec import (
    fused_negative_sampling_loss,
    near_in_blocks,
    window_blocks,
)
from pellucid.equations.word2vec import (
    negative_sampling_loss,
    skipgram_logits,
    skipgram_loss,
    skipgram_pairs,
)
from pellucid.model.build import build_any_model
from pellucid.model.config import parse_model_config
from pellucid.model.skipgram import SkipGram
from pellucid.text.batching import collate_pairs
from pellucid.training.config import TrainingConfig
from pellucid.training.objective import build_objective
from pellucid.training.step import build_optimizer, update, update_norm

VOCABULARY = 13
WINDOW = 2
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


def padded(*sentences: list[int]) -> tuple[Tensor, Tensor]:
    """The words of all sentences between those of none, and the number of each one's sentence."""
    count = sum(map(len, sentences))
    blocks, height = window_blocks(count, WINDOW)
    words, sentence_of = torch.full((2, (blocks + 1) * height), -1)
    words[:] = PAD_ID
    words[WINDOW : WINDOW + count] = torch.tensor([word for each in sentences for word in each])
    sentence_of[WINDOW : WINDOW + count] = torch.tensor(
        [number for number, each in enumerate(sentences) for _ in each]
    )
    return words, sentence_of


def pairs_of(words: Tensor, near: Tensor) -> list[tuple[int, int]]:
    """(center, context) of all pairs, in the order of the text."""
    block, center, context = near.nonzero(as_tuple=True)
    first = block * near.shape[1]
    return [
        *zip(*(words[first + each].tolist() for each in (center + WINDOW, context)), strict=True)
    ]


@pytest.mark.by_hand
def test_neighbors_are_the_pairs_of_the_equation():
    """EQ-17: a sentence of five and one of two words, window 2."""
    words, sentence_of = padded([4, 5, 6, 7, 8], [9, 4])
    near = near_in_blocks(sentence_of, window_blocks(7, WINDOW)[1], WINDOW)
    assert pairs_of(words, near) == [*skipgram_pairs([4, 5, 6, 7, 8], 2), (9, 4), (4, 9)]


@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 95, 97])
def test_a_text_of_several_blocks_has_the_pairs_of_the_whole(count: int):
    """EQ-17: wherever a sentence is cut by the end of a block, also where a block is full."""
    numbers = list(range(100, 100 + count))
    sentences = [each for each in (numbers[:30], numbers[30:36], numbers[36:]) if each]
    words, sentence_of = padded(*sentences)
    near = near_in_blocks(sentence_of, window_blocks(count, WINDOW)[1], WINDOW)
    expected = [pair for each in sentences for pair in skipgram_pairs(each, WINDOW)]
    assert pairs_of(words, near) == expected


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


@pytest.mark.parametrize("row_gradients", [False, True])
@pytest.mark.parametrize("length", [5, 70])
def test_noise_shared_by_a_block_is_the_equation_with_that_noise_for_every_pair(
    length: int, row_gradients: bool
):
    """Law: with as many words drawn as wanted, values and gradients are the equation's."""
    model = skipgram(negatives=3).train()
    model.row_gradients = row_gradients
    sentences = [[4 + 5 * n % 9 for n in range(length)], [8, 9]]
    words, sentence_of = padded(*sentences)
    near = near_in_blocks(sentence_of, window_blocks(length + 2, WINDOW)[1], WINDOW)
    noise = (7 * torch.arange(3 * len(near)) % 9 + 4).view(len(near), 3)  # other words by block
    loss = model.noise_contrast(words, near, noise, 1.0)

    pairs = torch.tensor([pair for each in sentences for pair in skipgram_pairs(each, WINDOW)])
    clear = negative_sampling_loss(
        pairs[:, 0],
        pairs[:, 1],
        noise[near.nonzero()[:, 0]],
        model.w_in,
        model.w_out.T,
        "sum",
    )
    torch.testing.assert_close(loss, clear, **EXACT)
    parameters = [model.w_in, model.w_out]
    # twice the loss: what reaches it is a factor of both gradients
    for ours, theirs in zip(
        torch.autograd.grad(2 * loss, parameters),
        torch.autograd.grad(2 * clear, parameters),
        strict=True,
    ):
        assert ours.is_sparse == row_gradients
        torch.testing.assert_close(ours.to_dense(), theirs, **EXACT)

    doubled = model.noise_contrast(words, near, noise.repeat(1, 2), 0.5)
    torch.testing.assert_close(doubled, loss, **EXACT)


def test_rows_of_a_large_vocabulary_have_the_gradients_of_whole_tables():
    """Rows that differ by 65,536 share their last 16 bits, by which words are put in order."""
    generator = torch.Generator().manual_seed(2)
    ids = torch.tensor([3, 70_000, 3 + 65_536, 70_000 - 65_536, 3, 131_075, 70_000, 5])
    near = torch.rand(1, 4, 4, generator=generator) < 0.7
    gradients = []
    for row_gradients in (True, False):
        generator.manual_seed(3)
        tables = [torch.randn(131_076, 2, generator=generator, requires_grad=True) for _ in "vu"]
        fused_negative_sampling_loss(
            ids[None, :4], ids[None, 2:], near, 0.5, *tables, row_gradients=row_gradients
        ).backward()
        gradients.append([each.grad for each in tables])
    for rows, whole in zip(*gradients, strict=True):
        assert (rows._indices().diff() > 0).all()  # each once and in order
        assert torch.equal(rows.to_dense(), whole)


@pytest.mark.parametrize("accumulate", [1, 2])
def test_an_update_of_the_batch_s_rows_is_that_of_the_whole_tables(accumulate: int):
    """Law: parameters, the norms that are reported, and rows that are clipped."""
    settings = {"max_steps": 1, "optimizer": "sgd", "clip_norm": 3.0, "clip_rows": 0.3}
    config = TrainingConfig.parse({**settings, "reduction": "sum"})
    rows, whole = (skipgram(negatives=3) for _ in range(2))
    moved = []
    for model, is_sparse in ((rows, True), (whole, False)):
        before = [each.detach().clone() for each in (model.w_in, model.w_out)]
        optimizer = build_optimizer(model, config)
        assert model.row_gradients
        if not is_sparse:
            model.row_gradients = False
        sentences = [[4, 5, 6, 4], [7, 8]]
        batches = [collate_pairs(sentences, sentences)] * accumulate
        report = update(model, optimizer, batches, build_objective(config), config, rate=0.5)
        after = [each.detach() for each in (model.w_in, model.w_out)]
        moved.append(
            [
                *(a - b for a, b in zip(after, before, strict=True)),
                torch.tensor([report.loss, report.gradient_norm, update_norm(optimizer)]),
            ]
        )
    for ours, theirs in zip(*moved, strict=True):
        torch.testing.assert_close(ours, theirs, **EXACT)
    assert moved[0][0].abs().sum(dim=1).count_nonzero() == 5
    assert float(moved[0][0].norm(dim=1).max()) == pytest.approx(0.15)


def test_tables_whose_every_row_moves_have_whole_gradients():
    """Weight decay moves all rows, and so does Adam."""
    for more in ({"optimizer": "sgd", "weight_decay": 0.1}, {"optimizer": "adam"}):
        model = skipgram(negatives=3)
        config = TrainingConfig.parse({"max_steps": 1, **more})
        optimizer = build_optimizer(model, config)
        assert not model.row_gradients
        batch = collate_pairs([[4, 5, 6, 4]], [[4, 5, 6, 4]])
        update(model, optimizer, [batch], build_objective(config), config, rate=0.5)
