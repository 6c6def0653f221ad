import math

import pytest
import torch
from equation_checks import close

from pellucid.core.errors import ShapeError
from pellucid.equations.attention import attention, attention_scores, attention_weights
from pellucid.equations.embedding import embed, one_hot
from pellucid.equations.feed_forward import feed_forward
from pellucid.equations.heads import merge_heads
from pellucid.equations.notation.columns import (
    attention_columns,
    embed_columns,
    feed_forward_columns,
    hadamard,
    inner_product,
    matrix_product,
    merge_heads_columns,
    one_hot_columns,
    project_columns,
    scores_columns,
    sinusoidal_columns,
    to_columns,
    weights_columns,
)
from pellucid.equations.positions import add_positions, sinusoidal_positions
from pellucid.equations.softmax import softmax


@pytest.mark.property
def test_order_of_multiplication_turns_around():
    """EQ-37: (X W)ᵀ = Wᵀ Xᵀ; columns of columns are rows."""
    x, w = torch.randn(2, 3, 4), torch.randn(4, 5)
    close(to_columns(x @ w), w.T @ to_columns(x))
    assert to_columns(to_columns(x)).equal(x)


@pytest.mark.by_hand
def test_entries_are_multiplied_one_by_one():
    """EQ-35: (1,2,3) * (4,5,6) = (4,10,18)."""
    left, right = torch.tensor([1.0, 2, 3]), torch.tensor([4.0, 5, 6])
    close(hadamard(left, right), [4.0, 10, 18])
    close(hadamard(right, left), [4.0, 10, 18])
    close(inner_product(left, right), 32.0)


@pytest.mark.property
def test_matrix_product_is_a_triple_loop():
    """EQ-36: Σ_β T^{α,β} S^{β,γ}, equal to @."""
    t, s = torch.randn(2, 3), torch.randn(3, 4)
    loop = [[sum(t[a, b] * s[b, c] for b in range(3)) for c in range(4)] for a in range(2)]
    close(matrix_product(t, s), torch.tensor(loop))
    close(matrix_product(t, s), t @ s)


@pytest.mark.by_hand
def test_one_hot_words_stand_as_columns():
    """EQ-13: ids 2, 0 of three words."""
    ids = torch.tensor([2, 0])
    close(one_hot_columns(ids, 3), [[0.0, 1], [0, 0], [1, 0]])
    assert one_hot_columns(ids, 3).equal(one_hot(ids, 3).T)
    assert one_hot_columns(ids, 3, torch.float32).dtype == torch.float32


@pytest.mark.property
def test_embedding_in_columns_is_the_embedding_transposed():
    """EQ-16: E x = (W[ids])ᵀ with E = Wᵀ."""
    ids, weight = torch.randint(6, (2, 4)), torch.randn(6, 5)
    columns = embed_columns(one_hot_columns(ids, 6), weight.T)
    close(columns, to_columns(embed(ids, weight)))


def test_positions_in_columns_are_the_positions_transposed():
    """EQ-26: E_pos^{δ,α}; position along the second axis."""
    assert sinusoidal_columns(4, 7).equal(sinusoidal_positions(7, 4).T)
    assert sinusoidal_columns(4, 7, torch.float32).dtype == torch.float32


@pytest.mark.property
def test_projections_of_all_heads_are_blocks_of_one_matrix():
    """EQ-64: per head (eᵀ W[ν]ᵀ)ᵀ; rows ν·d … (ν+1)·d of the whole."""
    w, e = torch.randn(3, 2, 5), torch.randn(4, 5, 6)
    projected = project_columns(w, e)
    assert projected.shape == (4, 3, 2, 6)
    close(projected, torch.einsum("nde,bea->bnda", w, e))
    close(projected[1, 2], (e[1].T @ w[2].T).T)
    close(merge_heads_columns(projected), w.flatten(0, 1) @ e)


@pytest.mark.property
def test_scores_have_keys_first():
    """EQ-65: B = (Q Kᵀ/√d)ᵀ."""
    q, k = torch.randn(2, 4, 3), torch.randn(2, 4, 5)
    assert scores_columns(q, k).shape == (2, 5, 3)
    close(scores_columns(q, k), to_columns(attention_scores(to_columns(q), to_columns(k))))


@pytest.mark.property
def test_columns_of_weights_sum_to_one_and_rows_do_not():
    """EQ-67: Σ_α P(α|ν,α') = 1 over the keys."""
    q, k = torch.randn(2, 4, 3), torch.randn(2, 4, 5)
    p = weights_columns(q, k)
    close(p.sum(-2), torch.ones(2, 3))
    assert not p.sum(-1).allclose(torch.ones(2, 5))
    close(p, to_columns(attention_weights(to_columns(q), to_columns(k))))


@pytest.mark.property
def test_attention_in_columns_is_attention_transposed():
    """EQ-66: A = attention(Qᵀ, Kᵀ, Vᵀ)ᵀ, per head; the softmax over queries is another thing."""
    q, k, v = torch.randn(2, 4, 3), torch.randn(2, 4, 5), torch.randn(2, 6, 5)
    expected = to_columns(attention(to_columns(q), to_columns(k), to_columns(v)))
    close(attention_columns(q, k, v), expected)
    assert not (v @ softmax(scores_columns(q, k), dim=-1)).allclose(expected)


@pytest.mark.by_hand
def test_two_words_by_hand():
    """EQ-69: columns = words; scores (1, 1)/√3 for query 0 and (0, 1)/√3 for query 1."""
    q = torch.tensor([[1.0, 0], [0, 1], [0, 0]])
    k = torch.tensor([[1.0, 1], [0, 1], [1, 0]])
    v = torch.tensor([[1.0, 4], [2, 5], [3, 6]])
    one = 1 / math.sqrt(3)
    close(scores_columns(q, k), [[one, 0], [one, one]])
    p = 1 / (1 + math.exp(one))
    close(weights_columns(q, k), [[0.5, p], [0.5, 1 - p]])
    mixed = torch.stack((v[:, 0] * 0.5 + v[:, 1] * 0.5, v[:, 0] * p + v[:, 1] * (1 - p)), dim=-1)
    close(attention_columns(q, k, v), mixed)


@pytest.mark.property
def test_heads_are_stacked_in_order():
    """EQ-33, EQ-68: Δ = ν·d + δ; Concat of the row form, transposed."""
    x = torch.randn(2, 3, 4, 5)
    merged = merge_heads_columns(x)
    assert merged.shape == (2, 12, 5)
    assert merged[1, 2 * 4 + 3].equal(x[1, 2, 3])
    assert merged.equal(to_columns(merge_heads(to_columns(x))))


@pytest.mark.property
def test_feed_forward_in_columns_is_the_row_form_transposed():
    """EQ-103: W₂ ReLU(W₁x + b₁) + b₂."""
    x, w_1, b_1 = torch.randn(2, 5, 4), torch.randn(4, 7), torch.randn(7)
    w_2, b_2 = torch.randn(7, 4), torch.randn(4)
    columns = feed_forward_columns(to_columns(x), w_1.T, b_1, w_2.T, b_2)
    close(columns, to_columns(feed_forward(x, w_1, b_1, w_2, b_2)))


@pytest.mark.property
def test_a_whole_layer_of_bayesuvius_is_the_row_form_transposed():
    """EQ-37: embedding, positions, heads and network in columns, against rows."""
    ids, weight = torch.tensor([3, 1, 3]), torch.randn(6, 4)
    w_q, w_k, w_v = torch.randn(3, 2, 2, 4).unbind()
    e = embed_columns(one_hot_columns(ids, 6), weight.T) + sinusoidal_columns(4, 3)
    a = merge_heads_columns(attention_columns(*[project_columns(w, e) for w in (w_q, w_k, w_v)]))
    x = add_positions(embed(ids, weight), sinusoidal_positions(3, 4))
    heads = attention(*[x @ to_columns(w) for w in (w_q, w_k, w_v)])
    close(a, to_columns(merge_heads(heads)))


Z = torch.zeros
PROBLEMS = {
    "inner size": (
        lambda: matrix_product(Z(2, 3), Z(4, 5)),
        "left and right must have the same inner size (axis -1 of left, axis -2 of right),"
        " got shapes (2, 3) and (4, 5)",
    ),
    "vocabulary": (
        lambda: embed_columns(Z(6, 3), Z(4, 5)),
        "embedding and x must have the same vocabulary (axis -1 of embedding, axis -2 of x),"
        " got shapes (4, 5) and (6, 3)",
    ),
    "d_model": (
        lambda: project_columns(Z(2, 3, 4), Z(5, 6)),
        "w and e must have the same d_model (axis -1 of w, axis -2 of e),"
        " got shapes (2, 3, 4) and (5, 6)",
    ),
    "size": (
        lambda: scores_columns(Z(2, 3), Z(4, 3)),
        "query and key must have the same size (axis -2 of query, axis -2 of key),"
        " got shapes (2, 3) and (4, 3)",
    ),
    "keys": (
        lambda: attention_columns(Z(2, 3), Z(2, 4), Z(2, 5)),
        "key and value must have the same number of keys (axis -1 of key, axis -1 of value),"
        " got shapes (2, 4) and (2, 5)",
    ),
}


@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize(("call", "message"), PROBLEMS.values(), ids=PROBLEMS)
def test_columns_that_do_not_fit_are_named(call, message):
    """EQ-16, EQ-36, EQ-64, EQ-65, EQ-66: both shapes and the axis."""
    with pytest.raises(ShapeError) as caught:
        call()
    assert str(caught.value) == message
