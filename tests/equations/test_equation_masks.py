import math

import pytest
import torch
from equation_checks import close

from pellucid.core.errors import ShapeError
from pellucid.equations.masks import causal_mask, masked_softmax, padding_mask
from pellucid.equations.notation.entrywise import additive_mask, mask_scores
from pellucid.equations.softmax import softmax

INF = math.inf


@pytest.mark.by_hand
def test_three_words_look_back_and_at_themselves():
    """EQ-70: True on and below the diagonal; 0 there and -inf above in additive form."""
    may_attend = causal_mask(3)
    assert may_attend.tolist() == [[True, False, False], [True, True, False], [True, True, True]]
    assert additive_mask(may_attend).tolist() == [[0, -INF, -INF], [0, 0, -INF], [0, 0, 0]]


@pytest.mark.referee
def test_causal_mask_is_torchs_triangle():
    """EQ-70: referee torch.tril, for lengths from 0 to 5."""
    for length in range(6):
        assert causal_mask(length).equal(torch.ones(length, length, dtype=torch.bool).tril())


def test_cached_keys_come_before_the_queries():
    """EQ-70, ER-41: two new words after three cached ones, as the last rows of the whole mask."""
    assert causal_mask(2, offset=3).equal(causal_mask(5)[3:])


def test_additive_mask_has_the_type_asked_for():
    """EQ-70: torch's default dtype if none is given."""
    assert additive_mask(causal_mask(2)).dtype == torch.float64
    assert additive_mask(causal_mask(2), torch.float32).dtype == torch.float32


@pytest.mark.by_hand
def test_padding_may_not_be_attended_to():
    """The ids that are not the padding symbol's."""
    assert padding_mask(torch.tensor([[5, 3, 0], [0, 7, 9]]), pad_id=0).tolist() == [
        [True, True, False],
        [False, True, True],
    ]


@pytest.mark.property
def test_mask_as_a_function_is_the_matrix_added():
    """EQ-71, EQ-72: Mask(x) = x + M; what is kept is unchanged."""
    x = torch.randn(2, 3, 3)
    close(mask_scores(x), x + additive_mask(causal_mask(3)))
    y = torch.randn(2, 5)
    close(mask_scores(y, offset=3), y + additive_mask(causal_mask(2, 3)))


def test_mask_as_a_function_wants_a_square():
    """EQ-71: the Single Page 'takes a square matrix'."""
    with pytest.raises(ShapeError) as caught:
        mask_scores(torch.zeros(2, 5))
    assert str(caught.value) == (
        "scores must have as many keys (axis -1) as queries (axis -2) plus offset=0,"
        " got shape (2, 5)"
    )
    assert caught.value.hint == "offset=3 fits if the queries are the last of the keys"


@pytest.mark.by_hand
def test_masked_weights_are_exactly_zero_and_the_rest_is_a_softmax():
    """EQ-73: exp(-∞) = 0; the kept weights are the softmax of the kept scores alone."""
    weights = masked_softmax(
        torch.tensor([[5.0, 1, 2]]), may_attend=torch.tensor([[False, True, True]])
    )
    assert weights[0, 0] == 0
    close(weights[0, 1:], softmax(torch.tensor([1.0, 2])))


@pytest.mark.property
def test_without_a_mask_it_is_the_softmax():
    """EQ-38: nothing hidden, nothing changed."""
    scores = torch.randn(3, 4)
    close(masked_softmax(scores), softmax(scores))
    close(masked_softmax(scores, torch.ones(1, 1, dtype=torch.bool)), softmax(scores))


@pytest.mark.by_hand
def test_a_query_that_sees_nothing_gets_zeros_and_zero_gradients():
    """ER-42: not NaN, not uniform; and other rows are not harmed, even by wild scores."""
    scores = torch.tensor([[1.0, INF], [3, 4]], requires_grad=True)
    may_attend = torch.tensor([[False, False], [True, True]])
    weights = masked_softmax(scores, may_attend)
    close(weights[0], torch.zeros(2))
    close(weights[1], softmax(scores[1]))
    [gradient] = torch.autograd.grad(weights[:, 0].sum(), scores)
    p = softmax(torch.tensor([3.0, 4]))
    close(gradient, torch.stack((torch.zeros(2), torch.stack((p[0] * p[1], -p[0] * p[1])))))


@pytest.mark.property
def test_no_nan_stands_in_the_graph_of_a_query_that_sees_nothing():
    """ER-42: anomaly detection looks at every step of the way back, not only at its end."""
    scores = torch.randn(2, 3, requires_grad=True)
    may_attend = torch.tensor([[False] * 3, [True, True, False]])
    with torch.autograd.set_detect_anomaly(True):
        gradient = torch.autograd.grad(masked_softmax(scores, may_attend)[:, 0].sum(), scores)[0]
    assert gradient.isfinite().all()
    assert torch.autograd.gradgradcheck(lambda s: masked_softmax(s, may_attend), scores)


@pytest.mark.referee
def test_masked_softmax_passes_gradcheck_with_every_kind_of_row():
    """EQ-73: rows that see all, some, one, nothing."""
    may_attend = torch.tensor([[True] * 3, [True, False, True], [False, True, False], [False] * 3])
    scores = torch.randn(2, 4, 3, requires_grad=True)
    assert torch.autograd.gradcheck(lambda s: masked_softmax(s, may_attend), scores)


@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize(
    ("mask_shape", "axis"), [((2, 4), -1), ((4, 3), -2), ((5, 2, 3), -3), ((1, 1, 1, 1, 1), -4)]
)
def test_a_mask_that_does_not_fit_is_refused(mask_shape, axis):
    """Both shapes and the axis are named."""
    scores = torch.zeros(4, 2, 3)
    with pytest.raises(ShapeError) as caught:
        masked_softmax(scores, torch.ones(mask_shape, dtype=torch.bool))
    assert str(caught.value) == (
        f"may_attend must fit the scores (each axis equal or 1; axis {axis} does not),"
        f" got shapes {mask_shape} and (4, 2, 3)"
    )
