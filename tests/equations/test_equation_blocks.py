"""Blocks, stacks and the whole Transformer by hand: two columns, identity matrices, pre-norm.

LayerNorm of two numbers is (1, -1) or (-1, 1), whichever is larger. Between such rows the scores
are √2 and -√2, so attention adds tanh √2 times the row; ReLU keeps the positive one of the two.
"""

import dataclasses
import math

import pytest
import torch
from equation_checks import close

from pellucid.equations import transformer
from pellucid.equations.weights import (
    AttentionWeights,
    BlockWeights,
    DecoderBlockWeights,
    EmbeddingWeights,
    FeedForwardWeights,
    NormWeights,
    Settings,
    Transformer,
    count_parameters,
    parameter_sets,
)

pytestmark = pytest.mark.by_hand

T = math.tanh(math.sqrt(2))
A, B = 4, 5
"""Two words: their embeddings are (1, 0) and (0, 1)."""
X = [[[1.0, 0], [0, 1]]]


def settings() -> Settings:
    return Settings(
        norm="pre", norm_eps=0.0, positions="none", scale_embeddings=False, activation="relu"
    )


def attention() -> AttentionWeights:
    one = torch.eye(2)
    return AttentionWeights(one[None].clone(), one[None].clone(), one[None].clone(), one.clone())


def feed_forward() -> FeedForwardWeights:
    return FeedForwardWeights(torch.eye(2), torch.zeros(2), torch.eye(2), torch.zeros(2))


def encoder_block() -> BlockWeights:
    return BlockWeights(attention(), NormWeights(), feed_forward(), NormWeights())


def decoder_block() -> DecoderBlockWeights:
    return DecoderBlockWeights(
        self_attention=attention(),
        self_attention_norm=NormWeights(),
        cross_attention=attention(),
        cross_attention_norm=NormWeights(),
        feed_forward=feed_forward(),
        feed_forward_norm=NormWeights(),
    )


def model(blocks: int = 1) -> Transformer:
    """Six words; 1, 2 and 3 are zero rows, PAD is not; the logits are the last rows themselves."""
    embedding = torch.zeros(6, 2)
    embedding[0] = torch.tensor([5.0, 1.0])
    embedding[[A, B]] = torch.eye(2)
    shared = EmbeddingWeights(embedding)
    return Transformer(
        settings(),
        shared,
        shared,
        [encoder_block() for _ in range(blocks)],
        [decoder_block() for _ in range(blocks)],
        None,
        None,
        torch.eye(2),
    )


def test_an_encoder_block():
    """EQ-104: x + t(1, -1), t = tanh √2, and then (1, 0) of the feed-forward network on top."""
    may_attend = torch.ones(1, 2, 2, dtype=torch.bool)
    rows = transformer.encoder_block(torch.tensor(X), may_attend, encoder_block(), settings())
    close(rows, [[[2 + T, -T], [-T, 2 + T]]])


def test_a_decoder_block():
    """EQ-90, EQ-108: the first word sees itself alone; the memory is (2, 0), (0, 2)."""
    rows = transformer.decoder_block(
        torch.tensor(X),
        torch.tensor([[[2.0, 0], [0, 2]]]),
        torch.tensor([[[True, False], [True, True]]]),
        torch.ones(1, 1, 2, dtype=torch.bool),
        decoder_block(),
        settings(),
    )
    # row 1: (1, 0) + (1, -1), + (1 + t, 1 - t) of the memory, + (1, 0)
    # row 2: (0, 1) + t(-1, 1), + (1 - t, 1 + t) of the memory, + (0, 1)
    close(rows, [[[4 + T, -T], [1 - 2 * T, 3 + 2 * T]]])


def test_the_encoder():
    """EQ-105: two blocks in series add the same twice; padding changes nothing."""
    twice = [[3 + 2 * T, -2 * T], [-2 * T, 3 + 2 * T]]
    close(transformer.encode(model(2), torch.tensor([[A, B]])), [twice])
    padded = transformer.encode(model(2), torch.tensor([[A, B, 0]]))
    close(padded[:, :2], [twice])


def test_the_decoder_and_the_whole_transformer():
    """EQ-110, EQ-115: the decoder's block on the encoder's output; W^S is the identity.

    The scores of the memory's rows are ±(2 + 2t)/√2, so they are mixed by u = tanh of that.
    """
    u = math.tanh((2 + 2 * T) / math.sqrt(2))
    own, other = (1 + T) * (1 + u) - T, (1 + T) * (1 - u) - T
    expected = [[[2 + own + 1, -1 + other], [-T + other, 1 + T + own + 1]]]
    source, target_input = torch.tensor([[A, B]]), torch.tensor([[A, B]])
    close(transformer.logits(model(), source, target_input), expected)
    memory = transformer.encode(model(), source)
    close(transformer.decode(model(), memory, source, target_input), expected)


def test_the_loss():
    """EQ-121: the decoder reads BOS and the true words; here both are zero rows but the last.

    A row of zeros has no LayerNorm without ε: with it, its logits are what the memory adds.
    """
    page = dataclasses.replace(model(), settings=dataclasses.replace(settings(), norm_eps=1e-30))
    source = torch.tensor([[A, B]])
    # BOS is (0, 0): all scores are 0, so it gets the mean of the memory, (1, 1); no FFN
    z = transformer.logits(page, source, torch.tensor([[2]]))
    close(z, [[[1.0, 1.0]]])
    close(transformer.loss(page, source, torch.tensor([[1]]), 0.0), math.log(2.0))


def test_the_parameters_have_names_and_are_counted_once():
    """EQ-85, EQ-86: attention has 4 · 4 numbers, a network 4 + 2 + 4 + 2, the embedding 6 · 2."""
    names = dict(parameter_sets(model()))
    assert sorted(names)[:3] == [
        "decoder.0.cross_attention.w_k",
        "decoder.0.cross_attention.w_o",
        "decoder.0.cross_attention.w_q",
    ]
    assert len(names) == 2 + 8 + 12 + 1
    assert count_parameters(encoder_block()) == 16 + 12
    assert count_parameters(decoder_block()) == 32 + 12
    assert count_parameters(model()) == 12 + 28 + 44 + 4


def test_greedy_search_and_a_beam_stop_where_the_stop_is_likeliest():
    """EQ-123, EQ-125: logits that do not depend on the input: B, the likeliest, until the end."""
    page = dataclasses.replace(
        model(),
        settings=dataclasses.replace(settings(), norm_eps=1e-30),
        w_s=torch.zeros(2, 6),
        b_s=torch.tensor([9.0, 0, 9, 1, 0, 2]),  # PAD and BOS are likeliest, and never generated
    )
    source = torch.tensor([[A, B]])
    assert transformer.greedy(page, source, 2).tolist() == [[B, B, 3]]
    assert transformer.beam(page, source, 1, 0.0, 2)[0] == [B, B, 3]
    # two beams meet EOS at once; alone it is the likeliest whole sentence
    words, score = transformer.beam(page, source, 2, 0.0, 2)
    assert words == [3]
    total = 2 * math.exp(9) + 2 + math.exp(1) + math.exp(2)
    assert score == pytest.approx(1 - math.log(total), abs=1e-12)
