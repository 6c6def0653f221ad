"""However many axes stand in front, each sentence is treated as if it were alone."""

from collections.abc import Callable

import pytest
import torch
from equation_checks import close
from torch import Tensor

from pellucid.equations.alignment import attentional_state
from pellucid.equations.attention import attention
from pellucid.equations.embedding import shift_right_zero
from pellucid.equations.feed_forward import feed_forward
from pellucid.equations.heads import merge_heads, multi_head_attention, split_heads
from pellucid.equations.masks import causal_mask, masked_softmax
from pellucid.equations.normalization import l2_centered_norm, l2_norm, layer_norm, rms_norm
from pellucid.equations.notation.angles import angle_weights
from pellucid.equations.notation.elman import rnn
from pellucid.equations.notation.entrywise import head_contributions
from pellucid.equations.notation.jacobian import softmax_jacobian
from pellucid.equations.notation.other_norms import mean_and_deviation
from pellucid.equations.notation.waves import is_permutation_equivariant
from pellucid.equations.positions import (
    joint_positions,
    network_embedding,
    one_hot_positions,
    summed_positions,
)
from pellucid.equations.recurrent import gru, lstm
from pellucid.equations.relative import (
    alibi_attention_weights,
    relative_attention,
    relative_scores,
    rotary_positions,
)

LENGTH, SIZE = 4, 6


def weights(*shape: int, seed: int = 7) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def cells(count: int) -> tuple[Tensor, ...]:
    """Of a layer with 6 inputs and 6 hidden numbers, and ``count`` gates."""
    shapes = [(count * SIZE, SIZE), (count * SIZE, SIZE), (count * SIZE,), (count * SIZE,)]
    return tuple(weights(*shape, seed=seed) for seed, shape in enumerate(shapes))


def blind_second_row(x: Tensor) -> Tensor:
    """A mask that differs from sentence to sentence, with a query that sees nothing."""
    may_attend = x @ x.transpose(-2, -1) > -1.0
    may_attend[..., 1, :] = False
    return may_attend


PARTS = weights(3, 2, SIZE, 3).unbind(), weights(6, SIZE)
TABLE = weights(3, SIZE, seed=8)
FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "mean": lambda x: mean_and_deviation(x)[0],
    "deviation": lambda x: mean_and_deviation(x)[1],
    "layer_norm": lambda x: layer_norm(x, weights(SIZE), weights(SIZE, seed=1), 0.1),
    "rms_norm": lambda x: rms_norm(x, weights(SIZE), 0.1),
    "l2_norm": lambda x: l2_norm(x, 0.1),
    "l2_centered_norm": lambda x: l2_centered_norm(x, 0.1),
    "softmax_jacobian": softmax_jacobian,
    "masked_softmax": lambda x: masked_softmax(x @ x.transpose(-2, -1), blind_second_row(x)),
    "attention": lambda x: attention(x, x, x, blind_second_row(x)),
    "split_heads": lambda x: split_heads(x, 3),
    "merge_heads": lambda x: merge_heads(split_heads(x, 3)),
    "multi_head_attention": lambda x: multi_head_attention(
        x, x, x, *PARTS[0], PARTS[1], blind_second_row(x)
    ),
    "head_contributions": lambda x: head_contributions(split_heads(x, 3), weights(SIZE, 5)),
    "relative_scores": lambda x: relative_scores(x, x, TABLE),
    "relative_attention": lambda x: relative_attention(x, x, x, TABLE, -TABLE, causal_mask(4)),
    "alibi": lambda x: alibi_attention_weights(split_heads(x, 3), split_heads(x, 3)),
    "rotary": rotary_positions,
    "angle_weights": lambda x: angle_weights(x, x),
    "attentional_state": lambda x: attentional_state(x, -x, weights(2 * SIZE, 5)),
    "shift_right_zero": shift_right_zero,
    "feed_forward": lambda x: feed_forward(
        x, weights(SIZE, 5), weights(5), weights(5, SIZE), weights(SIZE)
    ),
    "one_hot_positions": one_hot_positions,
    "joint_positions": lambda x: joint_positions(
        x, weights(SIZE, 5), weights(9, 5), weights(5, SIZE)
    ),
    "summed_positions": lambda x: summed_positions(
        x, weights(SIZE, 5), weights(5, SIZE), weights(9, 5), weights(5, SIZE, seed=1)
    ),
    "network_embedding": lambda x: network_embedding(x, weights(SIZE, 5), weights(5, SIZE)),
    "rnn": lambda x: rnn(x, x[..., 0, :], *cells(1)),
    "lstm": lambda x: torch.cat(lstm(x, x[..., 0, :], x[..., 1, :], *cells(4)), -1),
    "gru": lambda x: gru(x, x[..., 0, :], *cells(3)),
}


@pytest.mark.property
@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_sentence_of_a_batch_of_batches_is_treated_as_if_it_were_alone(name: str):
    """Two axes in front, of other sizes than all that follow: none is taken for another."""
    function, x = FUNCTIONS[name], torch.randn(2, 5, LENGTH, SIZE)
    together = function(x)
    for row in range(2):
        for column in range(5):
            close(together[row, column], function(x[row, column]))


@pytest.mark.property
def test_an_offset_that_is_not_given_is_none():
    x = torch.randn(3, SIZE)
    close(relative_scores(x, x, TABLE), relative_scores(x, x, TABLE, offset=0))
    assert not relative_scores(x, x, TABLE, offset=1).allclose(relative_scores(x, x, TABLE))


@pytest.mark.property
def test_a_single_head_is_the_row_itself():
    x = torch.randn(3, SIZE)
    close(split_heads(x, 1), x.unsqueeze(0))


def test_equivariance_is_asked_of_every_row_in_both_directions_and_may_be_exact():
    x, order = torch.tensor([[2.0], [1], [0]]), torch.tensor([1, 0, 2])
    assert is_permutation_equivariant(lambda x: 2 * x, x, order, tolerance=0.0)

    def falls(x: Tensor) -> Tensor:
        """One less in every row if the first word is not the largest."""
        return x - float(x[0] < x[1])

    def tells_the_first(x: Tensor) -> Tensor:
        return torch.cat([2 * x[:1], x[1:]])

    assert not is_permutation_equivariant(falls, x, order)
    assert not is_permutation_equivariant(tells_the_first, x, order)
