import math

import pytest
import torch
from equation_checks import close

from pellucid.core.errors import ShapeError
from pellucid.equations.attention import attention, attention_weights
from pellucid.equations.masks import causal_mask
from pellucid.equations.relative import (
    alibi_attention_weights,
    alibi_bias,
    alibi_slopes,
    relative_attention,
    relative_attention_weights,
    relative_distances,
    relative_values,
    rotary_positions,
)
from pellucid.equations.softmax import softmax


def tables(clip: int) -> list[torch.Tensor]:
    return [torch.randn(2 * clip + 1, 4), torch.randn(2 * clip + 1, 5)]


def inputs(*batch: int) -> list[torch.Tensor]:
    return [torch.randn(*batch, 6, 4), torch.randn(*batch, 6, 4), torch.randn(*batch, 6, 5)]


@pytest.mark.by_hand
def test_distances_by_hand():
    """EQ-31: clip(j - i, -2, 2) + 2 for four positions."""
    assert relative_distances(4, 4, clip=2).tolist() == [
        [2, 3, 4, 4],
        [1, 2, 3, 4],
        [0, 1, 2, 3],
        [0, 0, 1, 2],
    ]
    assert relative_distances(1, 4, clip=2, offset=3).tolist() == [[0, 0, 1, 2]]


@pytest.mark.property
def test_relative_attention_is_shaws_sum():
    """EQ-31: eᵢⱼ and zᵢ as loops over i and j."""
    q, k, v = inputs()
    a_k, a_v = tables(2)
    output = relative_attention(q, k, v, a_k, a_v)
    for i in range(6):
        rows = [max(-2, min(2, j - i)) + 2 for j in range(6)]
        e = torch.stack([q[i] @ (k[j] + a_k[rows[j]]) / 2 for j in range(6)])
        close(output[i], sum(w * (v[j] + a_v[rows[j]]) for j, w in enumerate(softmax(e))))


@pytest.mark.property
def test_zero_tables_leave_plain_attention():
    """EQ-31: no positions, no difference; masks work as ever."""
    q, k, v = inputs(2, 3)
    zeros = [torch.zeros(5, 4), torch.zeros(5, 5)]
    close(relative_attention(q, k, v, *zeros), attention(q, k, v))
    mask = causal_mask(6)
    close(relative_attention(q, k, v, *zeros, mask), attention(q, k, v, mask))
    close(relative_attention_weights(q, k, zeros[0], mask), attention_weights(q, k, mask))


@pytest.mark.property
def test_a_shifted_sentence_is_attended_to_alike():
    """EQ-31: at offset 3 in a longer sequence whose other rows are hidden: the same outputs."""
    q, k, v = inputs()
    pad = [torch.cat((torch.randn(3, x.shape[1]), x)) for x in (q, k, v)]
    sees = torch.arange(9) >= 3
    parts = tables(2)
    shifted = relative_attention(*pad, *parts, sees.unsqueeze(0))
    close(shifted[3:], relative_attention(q, k, v, *parts))


@pytest.mark.property
def test_far_is_far():
    """EQ-31: beyond the clipping distance all share one vector, so two far keys can be swapped."""
    q, k, v = inputs()
    parts = tables(1)
    order = torch.tensor([0, 1, 2, 3, 5, 4])
    close(
        relative_attention(q[:2], k, v, *parts),
        relative_attention(q[:2], k[order], v[order], *parts),
    )
    assert not relative_attention(q, k, v, *parts)[4].allclose(
        relative_attention(q, k[order], v[order], *parts)[4]
    )


@pytest.mark.property
def test_one_new_query_against_cached_keys():
    """EQ-31: offset = keys before the first query; the last rows of the whole."""
    q, k, v = inputs(2)
    parts = tables(2)
    whole = relative_attention(q, k, v, *parts, causal_mask(6))
    close(relative_attention(q[:, 4:], k, v, *parts, causal_mask(2, 4), offset=4), whole[:, 4:])


@pytest.mark.property
def test_values_are_the_second_half():
    """EQ-31: weights first, then values; a single key at distance 0 gets the middle row."""
    q, k, v = inputs()
    a_k, a_v = tables(2)
    weights = relative_attention_weights(q, k, a_k)
    close(relative_values(weights, v, a_v), relative_attention(q, k, v, a_k, a_v))
    close(relative_values(torch.ones(1, 1), v[:1], a_v), v[:1] + a_v[2:3])


@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize("place", [0, 1])
def test_a_table_without_a_middle_is_refused(place):
    """EQ-31: -k … 0 … k is an odd number of rows."""
    parts = tables(2)
    parts[place] = parts[place][:4]
    with pytest.raises(ShapeError) as caught:
        relative_attention(*inputs(), *parts)
    shape = (4, 4 + place)
    assert str(caught.value) == (
        f"a table of distances must have 2·clip + 1 rows (axis 0), got shape {shape}"
    )


@pytest.mark.usefixtures("unchecked_shapes")
def test_relative_shapes_that_do_not_fit_are_named():
    """EQ-31: widths of the tables, numbers of keys."""
    q, k, v = inputs()
    a_k, a_v = tables(2)
    with pytest.raises(ShapeError) as caught:
        relative_attention_weights(q, k, a_v)
    assert str(caught.value) == (
        "query and key_table must have the same key_size (axis -1 of query,"
        " axis -1 of key_table), got shapes (6, 4) and (5, 5)"
    )
    with pytest.raises(ShapeError) as caught:
        relative_attention(q, k, v[:5], a_k, a_v)
    assert str(caught.value) == (
        "weights and value must have the same number of keys (axis -1 of weights,"
        " axis -2 of value), got shapes (6, 6) and (5, 5)"
    )


@pytest.mark.by_hand
def test_rotation_by_hand():
    """One pair at position 2 turns by 2 radians; a second pair by 2/100 (d = 4)."""
    x = torch.tensor([[1.0, 0, 0, 1]]).expand(3, 4)
    close(rotary_positions(x)[2], [math.cos(2), math.sin(2), -math.sin(0.02), math.cos(0.02)])
    close(rotary_positions(x[:1], start=2)[0], rotary_positions(x)[2])


@pytest.mark.property
def test_rotation_is_multiplication_of_complex_numbers():
    """Su et al. (2021), eq. (12): (x₀ + x₁ i) · exp(i n θ)."""
    x = torch.randn(2, 5, 6)
    theta = 10000 ** (-torch.arange(0, 6, 2) / 6)
    turns = torch.polar(torch.ones(5, 3), torch.arange(5.0).unsqueeze(-1) * theta)
    expected = torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (3, 2))) * turns).flatten(
        -2
    )
    close(rotary_positions(x), expected)
    assert rotary_positions(x.float()).dtype == torch.float32


@pytest.mark.property
def test_rotated_dot_products_know_only_the_distance():
    """The same words 30 positions on have the same scores."""
    q, k = torch.randn(4, 6), torch.randn(4, 6)
    here = rotary_positions(q) @ rotary_positions(k).T
    close(rotary_positions(q, 30) @ rotary_positions(k, 30).T, here)


def test_rotation_needs_pairs():
    """An odd width leaves one feature alone."""
    with pytest.raises(ShapeError) as caught:
        rotary_positions(torch.zeros(2, 5))
    assert str(caught.value) == "rotary positions need an even size (axis -1), got shape (2, 5)"


@pytest.mark.by_hand
def test_slopes_of_the_paper():
    """Press et al. (2022), §3: 8 heads 1/2 … 1/256; 16 heads start at 2^(-0.5)."""
    assert alibi_slopes(8) == [2.0**-power for power in range(1, 9)]
    assert alibi_slopes(16) == pytest.approx([2 ** (-power / 2) for power in range(1, 17)])
    assert alibi_slopes(1) == [2.0**-8]


@pytest.mark.by_hand
def test_slopes_in_between_are_filled_from_the_next_power():
    """6 heads: the 4 of 4 heads, then the first and third of 8 heads; 7: the fifth too."""
    assert alibi_slopes(6) == [*alibi_slopes(4), alibi_slopes(8)[0], alibi_slopes(8)[2]]
    assert alibi_slopes(7) == [*alibi_slopes(4), *alibi_slopes(8)[:6:2]]
    assert alibi_slopes(3) == [*alibi_slopes(2), alibi_slopes(4)[0]]


@pytest.mark.by_hand
def test_bias_by_hand():
    """-m |j - i|, with m = 1/16 and 1/256 for two heads."""
    distances = torch.tensor([[0.0, 1, 2], [1, 0, 1]])
    close(alibi_bias(2, 2, 3), torch.stack((-distances / 16, -distances / 256)))
    close(
        alibi_bias(2, 1, 3, offset=2),
        torch.tensor([[[-2.0, -1, 0]]]) / torch.tensor([16, 256]).reshape(2, 1, 1),
    )
    assert alibi_bias(2, 2, 3, dtype=torch.float32).dtype == torch.float32


@pytest.mark.referee
def test_alibi_is_torchs_attention_with_a_bias():
    """Referee: scaled_dot_product_attention with an additive mask; offsets as in a cache."""
    q, k, v = inputs(2, 3)
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, alibi_bias(3, 6, 6))
    close(alibi_attention_weights(q, k) @ v, expected)
    whole = alibi_attention_weights(q, k, causal_mask(6))
    last = alibi_attention_weights(q[..., 4:, :], k, causal_mask(2, 4), offset=4)
    close(last, whole[..., 4:, :])
    assert alibi_attention_weights(q.float(), k.float()).dtype == torch.float32


@pytest.mark.usefixtures("unchecked_shapes")
def test_a_table_of_values_must_be_as_wide_as_the_values():
    """One column would be added to every feature in silence."""
    with pytest.raises(ShapeError) as caught:
        relative_values(torch.ones(2, 2) / 2, torch.randn(2, 4), torch.randn(3, 1))
    assert str(caught.value).startswith("value and value_table must have the same value_size")
