import math

import pytest
import torch
from equation_checks import K, Q, V, close
from torch.nn import functional

from pellucid.core.errors import ShapeError
from pellucid.equations.attention import (
    attention,
    attention_scores,
    attention_weights,
    cached_attention,
    dot_products,
)
from pellucid.equations.masks import causal_mask
from pellucid.equations.notation.entrywise import (
    attention_normalizer,
    attention_vector,
    attention_weight,
    masked_attention,
    project_qkv,
)

QUERY, KEY, VALUE = torch.tensor(Q).double(), torch.tensor(K).double(), torch.tensor(V).double()
STRONG = math.exp(1 / math.sqrt(2))
"""The exponential of a score of 1, scaled with dₖ = 2; a score of 0 gives 1."""


@pytest.mark.by_hand
def test_dot_products_by_hand():
    """EQ-51: rows (1,0), (0,1) against (1,0), (0,1), (1,1)."""
    close(dot_products(QUERY, KEY), [[1.0, 0, 1], [0, 1, 1]])


@pytest.mark.property
def test_scores_are_dot_products_over_the_root_of_the_width():
    """EQ-51, EQ-65: dₖ = 4 halves them; every entry is one dot product."""
    q, k = torch.randn(3, 4), torch.randn(5, 4)
    loop = torch.tensor(
        [[float(sum(a * b for a, b in zip(i, j, strict=True))) / 2 for j in k] for i in q]
    )
    close(attention_scores(q, k), loop)


@pytest.mark.by_hand
def test_weights_by_hand():
    """EQ-52: e^{1/√2} where query and key agree, 1 where not, divided by the row's sum."""
    total = 2 * STRONG + 1
    weights = attention_weights(QUERY, KEY)
    close(
        weights, [[STRONG / total, 1 / total, STRONG / total], [1 / total, *[STRONG / total] * 2]]
    )


@pytest.mark.by_hand
def test_attention_by_hand():
    """EQ-50: the first row is symmetric about v₂ = (3, 4); the second is moved by 2(s-1)/(2s+1)."""
    moved = 2 * (STRONG - 1) / (2 * STRONG + 1)
    close(attention(QUERY, KEY, VALUE), [[3.0, 4], [3 + moved, 4 + moved]])


@pytest.mark.by_hand
def test_masked_attention_by_hand():
    """EQ-74: the first word sees itself only; in the last row one key has a score of 2/√2."""
    weak = 1 / (1 + STRONG)
    last = STRONG + STRONG + STRONG**2
    a, b = STRONG / last, STRONG**2 / last
    key, value = KEY, VALUE
    output = masked_attention(key, key, value)
    close(
        attention_weights(key, key, causal_mask(3)), [[1.0, 0, 0], [weak, 1 - weak, 0], [a, a, b]]
    )
    close(output[0], value[0])
    close(output[1], weak * value[0] + (1 - weak) * value[1])
    close(output[2], a * value[0] + a * value[1] + b * value[2])


@pytest.mark.by_hand
def test_the_third_word_by_hand_with_two_kept_keys():
    """EQ-130: the last row of the masked example, from its own query alone; nothing is lost."""
    last = STRONG + STRONG + STRONG**2
    a, b = STRONG / last, STRONG**2 / last
    row, keys, values = cached_attention(KEY[2:], KEY[2:], VALUE[2:], KEY[:2], VALUE[:2])
    close(row, [[a + 3 * a + 5 * b, 2 * a + 4 * a + 6 * b]])
    close(keys, KEY)
    close(values, VALUE)


@pytest.mark.property
def test_weights_are_a_distribution_over_the_keys():
    """EQ-53: non-negative, and each row sums to one."""
    weights = attention_weights(torch.randn(2, 4, 3), torch.randn(2, 5, 3))
    assert weights.min() >= 0
    close(weights.sum(-1), torch.ones(2, 4))


@pytest.mark.property
def test_single_weight_normalizer_and_vector_are_the_matrix_entry_by_entry():
    """EQ-54, EQ-55, EQ-56: wᵢⱼ, its normalizer and aᵢ for each i and j."""
    q, k, v = torch.randn(2, 4), torch.randn(3, 4), torch.randn(3, 5)
    weights, output = attention_weights(q, k), attention(q, k, v)
    for i in range(2):
        close(attention_vector(q[i], k, v), output[i])
        for j in range(3):
            close(attention_weight(q[i], k, j), weights[i, j])


@pytest.mark.by_hand
def test_normalizer_by_hand():
    """EQ-54: S = e^{1/√2} + 1 + e^{1/√2} for the first query of the example."""
    close(attention_normalizer(QUERY[0], KEY), 2 * STRONG + 1)


@pytest.mark.property
def test_attention_vectors_stay_between_the_values():
    """EQ-55: a mean lies between the smallest and the largest; of equal values it is that value."""
    q, k, v = torch.randn(6, 3), torch.randn(5, 3), torch.randn(5, 4)
    output = attention(q, k, v)
    assert (output >= v.min(0).values - 1e-12).all()
    assert (output <= v.max(0).values + 1e-12).all()
    close(attention(q, k, v[:1].expand(5, 4)), v[:1].expand(6, 4))


MASKS = {
    "none": None,
    "causal": causal_mask(3, 2),
    "padding": torch.tensor([True, True, False, True, False]).expand(2, 1, 1, 5),
    "nothing": torch.tensor([True, False]).reshape(2, 1, 1, 1).expand(2, 1, 3, 5),
}


@pytest.mark.referee
@pytest.mark.parametrize("may_attend", MASKS.values(), ids=MASKS)
def test_attention_is_torchs_fused_attention(may_attend):
    """EQ-50: values and gradients, also for a query that may attend to nothing."""
    shapes = [(2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 6)]
    inputs = [torch.randn(shape, requires_grad=True) for shape in shapes]
    ours = attention(*inputs, may_attend)
    theirs = functional.scaled_dot_product_attention(*inputs, may_attend)
    close(ours, theirs)
    direction = torch.randn_like(ours)
    gradients = torch.autograd.grad((ours * direction).sum(), inputs)
    for mine, referee in zip(
        gradients, torch.autograd.grad((theirs * direction).sum(), inputs), strict=True
    ):
        close(mine, referee)


@pytest.mark.property
def test_a_query_that_sees_nothing_gets_nothing_and_passes_no_gradient():
    """EQ-73, ER-42: zeros, not NaN, forwards and backwards."""
    inputs = [torch.randn(shape, requires_grad=True) for shape in [(2, 3), (4, 3), (4, 5)]]
    output = attention(*inputs, torch.tensor([[False], [True]]))
    close(output[0], torch.zeros(5))
    gradients = torch.autograd.grad(output.sum(), inputs)
    assert all(gradient.isfinite().all() for gradient in gradients)
    close(gradients[0][0], torch.zeros(3))


@pytest.mark.property
def test_no_word_is_moved_by_what_comes_later():
    """EQ-74, EQ-76: rows up to i are bitwise the same, and their gradients to later rows are 0."""
    x = torch.randn(5, 4, requires_grad=True)
    before = masked_attention(x, x, x)
    changed = torch.cat((x[:3], torch.randn(2, 4)))
    assert masked_attention(changed, changed, changed)[:3].equal(before[:3])
    [gradient] = torch.autograd.grad(before[2].sum(), x)
    assert gradient[3:].eq(0).all()
    assert gradient[:3].ne(0).all()


@pytest.mark.property
def test_projections_are_row_by_row():
    """EQ-62: Q, K and V of a row depend on that row only, each through its own matrix."""
    x, w_q, w_k, w_v = torch.randn(3, 4), torch.randn(4, 2), torch.randn(4, 2), torch.randn(4, 5)
    for projected, weight in zip(project_qkv(x, w_q, w_k, w_v), (w_q, w_k, w_v), strict=True):
        close(projected, torch.stack([sum(row[d] * weight[d] for d in range(4)) for row in x]))


@pytest.mark.property
def test_weights_times_values_is_attention():
    """EQ-63: H = A V."""
    q, k, v = project_qkv(torch.randn(3, 4), *[torch.randn(4, 4) for _ in range(3)])
    close(attention_weights(q, k) @ v, attention(q, k, v))


@pytest.mark.property
def test_a_sentence_has_a_square_map():
    """EQ-139: nine words, nine rows, each a distribution."""
    words = ["the", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog"]
    x = torch.randn(len(words), 4)
    weights = attention_weights(x, x)
    assert weights.shape == (9, 9)
    close(weights.sum(-1), torch.ones(9))


@pytest.mark.property
def test_float32_stays_float32():
    """EQ-50: close to float64, in the type that came in."""
    q, k, v = torch.randn(2, 3), torch.randn(4, 3), torch.randn(4, 5)
    single = attention(q.float(), k.float(), v.float(), causal_mask(2, 2))
    assert single.dtype == torch.float32
    close(single.double(), attention(q, k, v, causal_mask(2, 2)), tolerance=2e-6)


ZEROS = torch.zeros
SHAPE_PROBLEMS = {
    "key_size": (
        lambda: attention_scores(ZEROS(2, 3), ZEROS(5, 4)),
        "query and key must have the same key_size (axis -1 of query, axis -1 of key),"
        " got shapes (2, 3) and (5, 4)",
    ),
    "keys": (
        lambda: attention(ZEROS(2, 3), ZEROS(5, 3), ZEROS(6, 3)),
        "key and value must have the same number of keys (axis -2 of key, axis -2 of value),"
        " got shapes (5, 3) and (6, 3)",
    ),
    "batch": (
        lambda: attention_weights(ZEROS(2, 2, 3), ZEROS(3, 2, 3)),
        "query and key must have the same batch axes (all but the last two),"
        " got shapes (2, 2, 3) and (3, 2, 3)",
    ),
    "batch of values": (
        lambda: attention(ZEROS(2, 2, 3), ZEROS(2, 2, 3), ZEROS(3, 2, 3)),
        "query and value must have the same batch axes (all but the last two),"
        " got shapes (2, 2, 3) and (3, 2, 3)",
    ),
    "length": (
        lambda: masked_attention(ZEROS(2, 3), ZEROS(4, 3), ZEROS(4, 3)),
        "query and key must have the same length (axis -2 of query, axis -2 of key),"
        " got shapes (2, 3) and (4, 3)",
    ),
    "no such axis, and one of size 1": (
        lambda: attention(ZEROS(2, 3), ZEROS(3), ZEROS(1, 3)),
        "key and value must have the same number of keys (axis -2 of key, axis -2 of value),"
        " got shapes (3,) and (1, 3)",
    ),
    "no such axis": (
        lambda: attention(ZEROS(2, 3), ZEROS(3), ZEROS(4, 3)),
        "key and value must have the same number of keys (axis -2 of key, axis -2 of value),"
        " got shapes (3,) and (4, 3)",
    ),
}


@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize(("call", "message"), SHAPE_PROBLEMS.values(), ids=SHAPE_PROBLEMS)
def test_shapes_that_do_not_fit_are_named(call, message):
    """EQ-50, EQ-51: #cols Q = #cols K, #rows K = #rows V, else shapes and axis are named."""
    with pytest.raises(ShapeError) as caught:
        call()
    assert str(caught.value) == message


@pytest.mark.property
@pytest.mark.usefixtures("unchecked_shapes")
def test_batch_axes_of_one_are_repeated():
    """EQ-50: one set of queries may look at many sets of keys."""
    q, k = torch.randn(1, 2, 3), torch.randn(4, 5, 3)
    close(attention(q, k, k), attention(q.expand(4, 2, 3), k, k))
    close(attention(q[0], k, k), attention(q.expand(4, 2, 3), k, k))


def test_wrong_shapes_are_caught_by_the_signatures_too():
    """The tests execute what the signatures say."""
    with pytest.raises(TypeError, match="key"):
        attention_scores(torch.zeros(2, 3), torch.zeros(5, 4))
