import pytest
import torch
from equation_checks import close

from pellucid.core.errors import ShapeError
from pellucid.equations.attention import attention
from pellucid.equations.heads import (
    head_size,
    merge_heads,
    multi_head_attention,
    split_heads,
    two_stage_weights,
)
from pellucid.equations.masks import causal_mask
from pellucid.equations.notation.entrywise import attention_head, head_contributions, joint_rank
from pellucid.equations.notation.waves import is_permutation_equivariant


def weights(heads: int, d_model: int, key_size: int, value_size: int) -> list[torch.Tensor]:
    return [
        torch.randn(heads, d_model, key_size),
        torch.randn(heads, d_model, key_size),
        torch.randn(heads, d_model, value_size),
        torch.randn(heads * value_size, d_model),
    ]


@pytest.mark.by_hand
def test_six_columns_make_two_heads_of_three():
    """EQ-33: Δ = ν·d + δ: the first head gets the first three columns."""
    x = torch.arange(12.0).reshape(2, 6)
    assert split_heads(x, 2).tolist() == [[[0, 1, 2], [6, 7, 8]], [[3, 4, 5], [9, 10, 11]]]


@pytest.mark.property
@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
def test_merging_undoes_splitting(batch):
    """EQ-33: T → T → T, with any number of batch axes."""
    x = torch.randn(*batch, 5, 12)
    assert split_heads(x, 4).shape == (*batch, 4, 5, 3)
    assert merge_heads(split_heads(x, 4)).equal(x)


@pytest.mark.property
def test_merging_is_concatenation():
    """EQ-34: (A⁰, …, A⁷) side by side; referee torch.cat."""
    heads = torch.randn(8, 5, 3)
    assert merge_heads(heads).equal(torch.cat(tuple(heads), dim=-1))


@pytest.mark.parametrize("heads", [4, 0, -1])
def test_a_width_that_cannot_be_cut_is_refused(heads):
    """EQ-80: h must divide d_model."""
    with pytest.raises(ShapeError) as caught:
        split_heads.__wrapped__(torch.zeros(5, 6), heads)
    assert str(caught.value) == (
        f"the width (axis -1) must be a multiple of heads={heads}, got shape (5, 6)"
    )


@pytest.mark.by_hand
def test_the_base_model_s_heads_by_hand():
    """EQ-80: 512 columns and 8 heads make 64 each; a width that does not divide is refused."""
    assert head_size(512, 8) == 64
    for heads in (7, 0):
        with pytest.raises(ShapeError) as caught:
            head_size(512, heads)
        assert str(caught.value) == f"d_model must be a multiple of heads={heads}, got 512"


@pytest.mark.property
def test_one_head_with_identities_is_plain_attention():
    """EQ-78: W's = 1 leave softmax(QKᵀ/√dₖ)V."""
    q, k, v = torch.randn(2, 3), torch.randn(4, 3), torch.randn(4, 3)
    one = torch.eye(3)
    close(attention_head(q, k, v, one, one, one), attention(q, k, v))
    close(multi_head_attention(q, k, v, one[None], one[None], one[None], one), attention(q, k, v))


@pytest.mark.property
def test_all_heads_at_once_are_the_loop_over_heads():
    """EQ-77: Concat(head₁, …, head_h) W^O, with d_v unequal to d_model / h."""
    q, k, v = torch.randn(3, 16), torch.randn(5, 16), torch.randn(5, 16)
    w_q, w_k, w_v, w_o = weights(4, 16, 4, 6)
    heads = [attention_head(q, k, v, w_q[i], w_k[i], w_v[i]) for i in range(4)]
    close(multi_head_attention(q, k, v, w_q, w_k, w_v, w_o), torch.cat(heads, -1) @ w_o)


@pytest.mark.property
def test_as_many_answers_come_out_as_queries_went_in():
    """EQ-79: m = 3, n = 5, h = 4, dᵥ = 6: heads 3×6, side by side 3×24, output 3×16."""
    w_q, w_k, w_v, w_o = weights(4, 16, 4, 6)
    q, k = torch.randn(3, 16), torch.randn(5, 16)
    assert attention_head(q, k, k, w_q[0], w_k[0], w_v[0]).shape == (3, 6)
    assert multi_head_attention(q, k, k, w_q, w_k, w_v, w_o).shape == (3, 16)


@pytest.mark.referee
def test_multi_head_attention_is_torchs():
    """EQ-77, EQ-82, EQ-83: referee nn.MultiheadAttention, whose masks say True = hidden."""
    heads, size, d_model = 2, 3, 6
    w_q, w_k, w_v, w_o = weights(heads, d_model, size, size)
    referee = torch.nn.MultiheadAttention(d_model, heads, bias=False, batch_first=True)
    with torch.no_grad():
        referee.in_proj_weight.copy_(torch.cat([merge_heads(w).T for w in (w_q, w_k, w_v)]))
        referee.out_proj.weight.copy_(w_o.T)
    x = torch.randn(2, 4, d_model)
    expected, _ = referee(x, x, x, attn_mask=~causal_mask(4))
    close(multi_head_attention(x, x, x, w_q, w_k, w_v, w_o, causal_mask(4)), expected)


@pytest.mark.property
def test_the_mask_is_the_same_for_every_head_and_may_differ_between_sentences():
    """EQ-83: sentence 0 hides its last key, sentence 1 nothing."""
    parts = weights(3, 6, 2, 2)
    x = torch.randn(2, 4, 6)
    may_attend = torch.tensor([[[True, True, True, False]], [[True] * 4]])
    output = multi_head_attention(x, x, x, *parts, may_attend)
    close(output[0], multi_head_attention(x[0], x[0, :3], x[0, :3], *parts))
    close(output[1], multi_head_attention(x[1], x[1], x[1], *parts))


@pytest.mark.property
def test_concatenation_is_a_sum_of_blocks():
    """EQ-81: Σᵢ headᵢ W^O₍ᵢ₎ is the whole; this pins concatenation to columns."""
    heads, w_o = torch.randn(2, 4, 5, 3), torch.randn(12, 7)
    each = head_contributions(heads, w_o)
    assert each.shape == (2, 4, 5, 7)
    close(each.sum(-3), merge_heads(heads) @ w_o)
    close(each[1, 2], heads[1, 2] @ w_o[6:9])


@pytest.mark.property
def test_self_attention_is_blind_to_order_until_masked():
    """EQ-20, EQ-82: MultiHeadSelf(ΠX) = Π MultiHeadSelf(X); not so with a causal mask."""
    parts = weights(2, 6, 3, 3)
    x, order = torch.randn(5, 6), torch.tensor([3, 1, 4, 0, 2])
    assert is_permutation_equivariant(lambda x: multi_head_attention(x, x, x, *parts), x, order)
    assert not is_permutation_equivariant(
        lambda x: multi_head_attention(x, x, x, *parts, causal_mask(5)), x, order
    )


@pytest.mark.property
def test_cross_attention_does_not_care_how_the_memory_is_ordered():
    """EQ-89: three source words, four target words; permuting the source changes nothing."""
    parts = weights(2, 6, 3, 3)
    target, memory = torch.randn(4, 6), torch.randn(3, 6)
    output = multi_head_attention(target, memory, memory, *parts)
    assert output.shape == (4, 6)
    shuffled = memory[[2, 0, 1]]
    close(multi_head_attention(target, shuffled, shuffled, *parts), output)


@pytest.mark.property
def test_two_stages_are_one_product_per_head():
    """EQ-87, EQ-88: projecting twice = projecting once with W_q W_q⁽ⁱ⁾, for q, k and v."""
    x, w_o = torch.randn(3, 8), torch.randn(4, 8)
    shared = [torch.randn(8, 2) for _ in range(3)]
    per_head = [torch.randn(2, 2, 2) for _ in range(3)]
    fused = [two_stage_weights(s, p) for s, p in zip(shared, per_head, strict=True)]
    narrow = [x @ s for s in shared]
    heads = [attention_head(*narrow, *[p[i] for p in per_head]) for i in range(2)]
    close(multi_head_attention(x, x, x, *fused, w_o), torch.cat(heads, -1) @ w_o)


@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize("place", [0, 1, 2])
def test_inputs_that_do_not_fit_their_projections_are_named(place):
    """EQ-78: the name of the input, of the weight, and both shapes."""
    inputs = [torch.zeros(5, 6) for _ in range(3)]
    inputs[place] = torch.zeros(5, 7)
    parts = weights(2, 6, 3, 3)
    name, weight = [("query", "w_q"), ("key", "w_k"), ("value", "w_v")][place]
    for call, shape in [
        (lambda: multi_head_attention(*inputs, *parts), (2, 6, 3)),
        (lambda: attention_head(*inputs, *[w[0] for w in parts[:3]]), (6, 3)),
    ]:
        with pytest.raises(ShapeError) as caught:
            call()
        assert str(caught.value) == (
            f"{name} and {weight} must have the same d_model (axis -1 of {name},"
            f" axis -2 of {weight}), got shapes (5, 7) and {shape}"
        )


@pytest.mark.usefixtures("unchecked_shapes")
def test_an_output_projection_that_does_not_fit_is_named():
    """EQ-79: W^O has h·dᵥ rows."""
    w_q, w_k, w_v, _ = weights(2, 6, 3, 3)
    message = (
        "the heads and w_o must have the same heads * value_size (axis -1 of the heads,"
        " axis -2 of w_o), got shapes (5, 6) and (7, 6)"
    )
    x, wrong = torch.zeros(5, 6), torch.zeros(7, 6)
    with pytest.raises(ShapeError) as caught:
        multi_head_attention(x, x, x, w_q, w_k, w_v, wrong)
    assert str(caught.value) == message
    with pytest.raises(ShapeError) as caught:
        head_contributions(torch.zeros(2, 5, 3), wrong)
    assert str(caught.value) == message


@pytest.mark.by_hand
def test_rank_counts_independent_columns():
    """EQ-87: two heads with the same column have rank 1, with different ones 2."""
    a, b = torch.tensor([[1.0], [0], [0]]), torch.tensor([[1.0], [1], [0]])
    assert joint_rank(torch.stack((a, 2 * a))) == 1
    assert joint_rank(torch.stack((a, b))) == 2
