import math

import pytest
import torch
from equation_checks import K, Q, V, close

from pellucid.core.errors import ShapeError
from pellucid.equations.alignment import (
    additive_attention,
    additive_scores,
    attentional_state,
    dot_product_attention,
    general_attention,
    general_scores,
)
from pellucid.equations.attention import attention
from pellucid.equations.notation.entrywise import attend
from pellucid.equations.softmax import softmax

QUERY, KEY, VALUE = torch.tensor(Q).double(), torch.tensor(K).double(), torch.tensor(V).double()


@pytest.mark.by_hand
def test_unscaled_attention_by_hand():
    """EQ-61: as EQ-50's example, with e in place of e^{1/√2}."""
    moved = 2 * (math.e - 1) / (2 * math.e + 1)
    close(dot_product_attention(QUERY, KEY, VALUE), [[3.0, 4], [3 + moved, 4 + moved]])


@pytest.mark.property
def test_scaled_attention_is_unscaled_attention_of_smaller_queries():
    """EQ-61, ER-67: only 1/√dₖ differs."""
    q, k, v = torch.randn(2, 3, 4), torch.randn(2, 5, 4), torch.randn(2, 5, 6)
    mask = torch.rand(2, 1, 5) > 0.4
    close(attention(q, k, v, mask), dot_product_attention(q / 2, k, v, mask))
    referee = torch.nn.functional.scaled_dot_product_attention(q, k, v, mask, scale=1.0)
    close(dot_product_attention(q, k, v, mask), referee)


@pytest.mark.property
def test_any_number_of_states_becomes_one_vector():
    """EQ-135, EQ-136: c = Σ αₜ hₜ, of the same size for 3 states and for 30."""
    for count in (3, 30):
        states, query = torch.randn(count, 4), torch.randn(4)
        alpha = softmax(torch.stack([query @ state for state in states]))
        close(attend(states, query), sum(a * state for a, state in zip(alpha, states, strict=True)))
        close(attend(states, query), dot_product_attention(query[None], states, states)[0])


@pytest.mark.by_hand
def test_additive_scores_by_hand():
    """EQ-135: v·tanh(sW + hU) with one hidden unit: 2 tanh(3·1 + 4·(-.5))."""
    one = [torch.tensor(x) for x in ([[3.0]], [[4.0]], [[1.0]], [[-0.5]], [2.0])]
    close(additive_scores(*one), [[2 * math.tanh(3 - 2)]])


@pytest.mark.property
def test_additive_attention_is_bahdanaus_sum():
    """EQ-135: loops over decoder steps t and source words j; widths may all differ."""
    s, h, values = torch.randn(2, 3), torch.randn(4, 5), torch.randn(4, 6)
    w, u, v = torch.randn(3, 7), torch.randn(5, 7), torch.randn(7)
    context = additive_attention(s, h, values, w, u, v)
    for t in range(2):
        e = torch.stack([(s[t] @ w + h[j] @ u).tanh() @ v for j in range(4)])
        close(context[t], sum(a * value for a, value in zip(softmax(e), values, strict=True)))
    batched = additive_attention(
        s.expand(2, 2, 3), h.expand(2, 4, 5), values.expand(2, 4, 6), w, u, v
    )
    close(batched, context.expand(2, 2, 6))


@pytest.mark.property
def test_general_attention_with_an_identity_is_dot_attention():
    """EQ-136: score(h, h̄) = hᵀ W h̄; W = 1 leaves the dot product."""
    q, k, v = torch.randn(2, 3), torch.randn(4, 5), torch.randn(4, 6)
    w = torch.randn(3, 5)
    scores = general_scores(q, k, w)
    close(scores, torch.einsum("qa,ab,kb->qk", q, w, k))
    close(general_attention(q, k, v, w), softmax(scores) @ v)
    close(general_attention(k, k, v, torch.eye(5)), dot_product_attention(k, k, v))


@pytest.mark.property
@pytest.mark.parametrize("kind", ["dot", "general", "additive"])
def test_hidden_states_are_not_attended_to(kind):
    """EQ-135, EQ-136: masked = left out; a query that sees nothing gets zeros."""
    q, k, v = torch.randn(2, 4), torch.randn(5, 4), torch.randn(5, 6)
    w, weights = torch.randn(4, 4), (torch.randn(4, 3), torch.randn(4, 3), torch.randn(3))

    def attend_to(k, v, mask=None):
        match kind:
            case "dot":
                return dot_product_attention(q, k, v, mask)
            case "general":
                return general_attention(q, k, v, w, mask)
        return additive_attention(q, k, v, *weights, mask)

    sees = torch.tensor([[True, True, False, False, True]])
    kept = torch.tensor([0, 1, 4])
    close(attend_to(k, v, sees), attend_to(k[kept], v[kept]))
    close(attend_to(k, v, torch.tensor([[True], [False]]))[1], torch.zeros(6))


@pytest.mark.property
def test_what_was_attended_to_and_what_was_known_are_mixed():
    """EQ-136: tanh([c; h] W_c), c first."""
    c, h, w_c = torch.randn(2, 3), torch.randn(2, 4), torch.randn(7, 5)
    close(attentional_state(c, h, w_c), torch.tanh(c @ w_c[:3] + h @ w_c[3:]))


PROBLEMS = {
    "query": (
        lambda: additive_scores(*[torch.zeros(s) for s in [(2, 3), (4, 5), (9, 7), (5, 7), (7,)]]),
        "query and w_query must have the same query_size (axis -1 of query, axis -2 of w_query),"
        " got shapes (2, 3) and (9, 7)",
    ),
    "keys": (
        lambda: additive_scores(*[torch.zeros(s) for s in [(2, 3), (4, 5), (3, 7), (9, 7), (7,)]]),
        "keys and w_key must have the same key_size (axis -1 of keys, axis -2 of w_key),"
        " got shapes (4, 5) and (9, 7)",
    ),
    "values": (
        lambda: dot_product_attention(*[torch.zeros(s) for s in [(2, 3), (4, 3), (5, 3)]]),
        "weights and value must have the same number of keys (axis -1 of weights,"
        " axis -2 of value), got shapes (2, 4) and (5, 3)",
    ),
    "w": (
        lambda: general_scores(*[torch.zeros(s) for s in [(2, 3), (4, 5), (5, 3)]]),
        "query and w must have the same query_size (axis -1 of query, axis -2 of w),"
        " got shapes (2, 3) and (5, 3)",
    ),
}


@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize(("call", "message"), PROBLEMS.values(), ids=PROBLEMS)
def test_alignments_that_do_not_fit_are_named(call, message):
    """EQ-135, EQ-136: both shapes and the axis."""
    with pytest.raises(ShapeError) as caught:
        call()
    assert str(caught.value) == message


@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((3, 1), (4, 8), (8,)), "w_query and w_key must have the same hidden"),
        (((3, 8), (4, 8), (7,)), "w_key and v must have the same hidden"),
    ],
)
def test_the_matrices_of_additive_attention_must_fit_together(
    shapes: tuple[tuple[int, ...], ...], message: str
):
    """A width of 1 would be repeated in silence."""
    weights = [torch.randn(shape) for shape in shapes]
    with pytest.raises(ShapeError) as caught:
        additive_scores(torch.randn(2, 3), torch.randn(5, 4), *weights)
    assert str(caught.value).startswith(message)
