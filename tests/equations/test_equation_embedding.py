import math

import pytest
import torch
from equation_checks import close

from pellucid.core.errors import ShapeError
from pellucid.equations.embedding import (
    embed,
    embed_one_hot,
    one_hot,
    output_logits,
    scaled_embedding,
    shift_right,
    shift_right_zero,
)
from pellucid.equations.softmax import softmax


@pytest.mark.by_hand
def test_one_hot_by_hand():
    """EQ-13: ids 2, 0 of three words; each row sums to one and its argmax is the id."""
    ids = torch.tensor([2, 0])
    close(one_hot(ids, 3), [[0.0, 0, 1], [1, 0, 0]])
    assert one_hot(ids, 3).argmax(-1).equal(ids)


@pytest.mark.referee
@pytest.mark.property
def test_one_hot_is_torchs_in_the_type_asked_for():
    """EQ-13: torch's default dtype if none is given."""
    ids = torch.randint(5, (2, 3))
    close(one_hot(ids, 5), torch.nn.functional.one_hot(ids, 5).double())
    assert one_hot(ids, 5, torch.float32).dtype == torch.float32


@pytest.mark.property
def test_looking_up_is_multiplying():
    """EQ-14, EQ-18: one_hot(ids) W = W[ids], bit for bit, one row per word."""
    ids, weight = torch.randint(5, (2, 3)), torch.randn(5, 4)
    assert embed(ids, weight).equal(embed_one_hot(one_hot(ids, 5), weight))
    assert embed(ids, weight)[1, 2].equal(weight[ids[1, 2]])


@pytest.mark.property
def test_width_four_doubles_and_512_multiplies_by_its_root():
    """EQ-15, EQ-107: √d_model."""
    weight = torch.randn(5, 4)
    close(scaled_embedding(torch.tensor([3]), weight), 2 * weight[[3]])
    wide = torch.ones(2, 512)
    close(scaled_embedding(torch.tensor([1]), wide), torch.full((1, 512), math.sqrt(512)))


@pytest.mark.property
def test_both_languages_may_share_one_matrix():
    """EQ-19: the gradient of a shared, tied matrix is the sum over its three uses."""
    weight = torch.randn(5, 4, requires_grad=True)
    source, target = torch.tensor([1, 2]), torch.tensor([2, 3])

    def logits(encoder: torch.Tensor, decoder: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
        states = scaled_embedding(source, encoder) * scaled_embedding(target, decoder)
        return output_logits(states, output.T).square().sum()

    [shared] = torch.autograd.grad(logits(weight, weight, weight), weight)
    apart = [weight.detach().clone().requires_grad_() for _ in range(3)]
    close(shared, sum(torch.autograd.grad(logits(*apart), apart)), tolerance=1e-10)


@pytest.mark.by_hand
def test_shift_by_hand():
    """EQ-106: [i, am, a, student, EOS] → [BOS, i, am, a, student]."""
    assert shift_right(torch.tensor([7, 8, 9, 6, 3]), start_id=2).tolist() == [2, 7, 8, 9, 6]
    batch = torch.tensor([[7, 3, 0], [8, 9, 3]])
    assert shift_right(batch, 2).tolist() == [[2, 7, 3], [2, 8, 9]]
    assert shift_right(batch.int(), 2).dtype == torch.int32


@pytest.mark.property
def test_zero_start_is_the_shift_with_a_zero_vector():
    """EQ-106: the first row is zero, so only the position is left; the rest is the shift."""
    weight, labels = torch.randn(5, 4), torch.tensor([[1, 4, 3], [2, 2, 3]])
    shifted = shift_right_zero(embed(labels, weight))
    assert shifted[:, 0].eq(0).all()
    assert shifted[:, 1:].equal(embed(shift_right(labels, 0), weight)[:, 1:])
    one_hot_labels = shift_right_zero(one_hot(labels, 5))
    close(embed_one_hot(one_hot_labels, weight), shifted)


@pytest.mark.by_hand
def test_logits_by_hand():
    """EQ-112: Z = (1, 2) W^S + b^S."""
    states, w_s = torch.tensor([[1.0, 2]]), torch.tensor([[1.0, 0, 3], [0, 1, 4]])
    close(output_logits(states, w_s), [[1.0, 2, 11]])
    close(output_logits(states, w_s, torch.tensor([0.5, 0, -1])), [[1.5, 2, 10]])


@pytest.mark.referee
def test_output_is_a_distribution_over_the_vocabulary():
    """EQ-112, EQ-113: referee nn.Linear; rows of softmax(Z) sum to one."""
    linear = torch.nn.Linear(4, 9)
    states = torch.randn(2, 3, 4)
    logits = output_logits(states, linear.weight.T, linear.bias)
    close(logits, linear(states))
    close(softmax(logits).sum(-1), torch.ones(2, 3))


@pytest.mark.usefixtures("unchecked_shapes")
def test_output_weights_that_do_not_fit_are_named():
    """EQ-112: d_model must agree."""
    with pytest.raises(ShapeError) as caught:
        output_logits(torch.zeros(3, 4), torch.zeros(9, 4))
    assert str(caught.value) == (
        "states and w_s must have the same d_model (axis -1 of states, axis -2 of w_s),"
        " got shapes (3, 4) and (9, 4)"
    )
