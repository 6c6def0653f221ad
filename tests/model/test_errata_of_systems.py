"""Errata that need a whole system: lengths, whose matrices, which sequence, what is left out."""

import pytest
import torch
from tiny_models import sources, targets, tiny_model
from torch.nn import functional

from pellucid.core.special import BOS_ID, EOS_ID
from pellucid.equations.embedding import embed, output_logits
from pellucid.equations.losses import cross_entropy
from pellucid.equations.positions import add_positions, joint_positions, summed_positions
from pellucid.equations.residual import add_and_norm
from pellucid.equations.search import most_likely
from pellucid.equations.softmax import softmax
from pellucid.model.trace import Trace
from pellucid.model.transformer import Transformer
from pellucid.text.batching import collate_pairs


@pytest.mark.property
def test_words_and_layers_are_two_numbers_and_so_are_the_two_lengths():
    """ER-20: five source words, two target words and three blocks make 5, 2 and 3 of them."""
    model = tiny_model(encoder_layers=3, decoder_layers=3)
    trace = Trace("*layers.*.self_attention.weights")
    assert model(sources(5), targets(1, 2), trace).shape == (1, 2, 13)
    shapes = [tuple(each.shape[-2:]) for each in trace.values.values()]
    assert shapes == [(5, 5)] * 3 + [(2, 2)] * 3


@pytest.mark.property
def test_keys_and_values_of_cross_attention_are_the_decoder_s_own():
    """ER-23: made of the encoder's output Y, by matrices that belong to the decoder's layer."""
    model = tiny_model()
    assert isinstance(model, Transformer)
    memory, name = model.encode(sources(4)), "decoder.layers.0.cross_attention"
    trace = Trace(f"{name}.key", f"{name}.value")
    model.decode(memory, targets(1, 3), trace)
    w_qkv = model.get_parameter(f"{name}.w_qkv")
    assert w_qkv.shape == (3 * 8, 8)
    keys, values = functional.linear(memory.states, w_qkv[8:]).chunk(2, dim=-1)
    for kept, ours in (
        (trace.values[f"{name}.key"], keys),
        (trace.values[f"{name}.value"], values),
    ):
        torch.testing.assert_close(kept.transpose(1, 2).flatten(2), ours, rtol=1e-12, atol=1e-12)


@pytest.mark.property
def test_learned_positions_are_added_and_agarwals_networks_are_something_else():
    """ER-52, EQ-22, EQ-23, EQ-30: w + p is straight in w; what goes through a ReLU is bent."""
    torch.manual_seed(0)
    table, x = torch.randn(9, 4).double(), torch.randn(3, 4).double()
    w = torch.randn(5, 4, 4).double().unbind()
    learned = lambda x: add_positions(x, embed(torch.arange(3), table))  # noqa: E731
    joint = lambda x: joint_positions(x, w[0], table[:, :4], w[1])  # noqa: E731
    summed = lambda x: summed_positions(x, w[0], w[1], table[:, :4], w[2])  # noqa: E731
    activations = [
        (f(-x) - f(0 * x) + (f(x) - f(0 * x))).abs().max() for f in (learned, joint, summed)
    ]
    assert activations[0] < 1e-12
    assert min(activations[1:]) > 0.1


@pytest.mark.property
def test_where_agarwal_ends_there_is_no_word_yet():
    """ER-60: normed rows sum to 0; a linear map and a softmax make them chances, with a loss."""
    torch.manual_seed(0)
    states = add_and_norm(torch.randn(3, 6).double(), torch.randn(3, 6).double())
    torch.testing.assert_close(states.sum(-1), torch.zeros(3).double(), rtol=0, atol=1e-12)
    logits = output_logits(states, torch.randn(6, 9).double())
    chances, labels = softmax(logits), torch.tensor([4, 8, EOS_ID])
    torch.testing.assert_close(chances.sum(-1), torch.ones(3).double())
    loss = -chances[[0, 1, 2], labels].log().sum()
    torch.testing.assert_close(cross_entropy(logits, labels), loss)
    assert most_likely(logits).tolist() == chances.argmax(-1).tolist()


@pytest.mark.property
def test_targets_and_the_shifted_sequence_are_two():
    """ER-63: y′ is what is taught, y what is read; word i is predicted without word i."""
    batch = collate_pairs([[4]], [[7, 8, 9]])
    assert batch.labels.tolist() == [[7, 8, 9, EOS_ID]]
    assert batch.target_input.tolist() == [[BOS_ID, 7, 8, 9]]
    model = tiny_model()
    other = collate_pairs([[4]], [[7, 5, 9]])
    before, after = (model(each.source, each.target_input)[0] for each in (batch, other))
    is_same = (before == after).all(dim=-1)
    assert is_same.tolist() == [True, True, False, False]
