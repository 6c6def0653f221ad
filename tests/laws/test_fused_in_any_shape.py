"""Law: fused = clear, whatever stands in front, with both masks, and where rounding would show."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from pellucid.equations.attention import attention
from pellucid.equations.fused import (
    fused_alibi_attention,
    fused_attention,
    fused_linear_cross_entropy,
    fused_relative_attention,
)
from pellucid.equations.losses import cross_entropy, smoothed_cross_entropy
from pellucid.equations.masks import causal_mask
from pellucid.equations.relative import alibi_attention_weights, relative_attention

EXACT = {"rtol": 1e-12, "atol": 1e-12}


def random(*shape: int, seed: int, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, dtype=torch.float64, generator=generator).to(dtype)


@pytest.mark.parametrize("front", [(3,), (2, 3), (2, 5, 3)], ids=str)
@pytest.mark.parametrize("counts", [(4, 4), (2, 4)], ids=str)
def test_any_number_of_axes_stands_in_front(front: tuple[int, ...], counts: tuple[int, int]):
    """With a mask besides the causal one; the queries are the last of the keys."""
    queries, keys = counts
    query = random(*front, queries, 8, seed=1)
    key, value = (random(*front, keys, 8, seed=seed) for seed in (2, 3))
    hides_two = torch.ones(queries, keys, dtype=torch.bool)
    hides_two[1, :2] = False
    both, offset = hides_two & causal_mask(queries, keys - queries), keys - queries
    assert not both.equal(hides_two)
    tables = random(5, 8, seed=4), random(5, 8, seed=5)
    clear = relative_attention(query, key, value, *tables, both, offset)
    fast = fused_relative_attention(query, key, value, tables, hides_two, causal=True)
    torch.testing.assert_close(fast, clear, **EXACT)
    clear = alibi_attention_weights(query, key, both, offset) @ value
    fast = fused_alibi_attention(query, key, value, hides_two, causal=True)
    torch.testing.assert_close(fast, clear, **EXACT)
    if queries == keys:
        clear = attention(query, key, value, both)
        fast = fused_attention(query, key, value, hides_two, causal=True)
        torch.testing.assert_close(fast, clear, **EXACT)


def test_a_mask_that_hides_nothing_changes_nothing_of_a_causal_kernel():
    query, key, value = (random(2, 3, n, 8, seed=n) for n in (2, 5, 5))
    nothing = torch.ones(2, 5, dtype=torch.bool)
    torch.testing.assert_close(
        fused_attention(query, key, value, nothing, causal=True),
        fused_attention(query, key, value, causal=True),
        **EXACT,
    )


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("autocast", [False, True])
def test_where_gradients_are_wanted_bfloat16_is_rounded_once_at_the_end(
    causal: bool, autocast: bool
):
    """Bit for bit: the kernel is given float32, inside autocast as well."""
    narrow = [random(1, 2, 16, 8, seed=n, dtype=torch.bfloat16).requires_grad_() for n in (1, 2, 3)]
    wide = functional.scaled_dot_product_attention(*(x.float() for x in narrow), is_causal=causal)
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        got = fused_attention(*narrow, causal=causal)
    assert torch.equal(got, wide.bfloat16())


def test_rows_of_very_different_size_keep_their_own_largest_logit():
    """exp(-3000) is 0: a row measured by the largest of all would have the loss infinity."""
    hidden = torch.tensor([[3000.0, 0], [0, 1]]).double()
    weight, labels = torch.eye(2).double(), torch.tensor([0, 0])
    got, _ = fused_linear_cross_entropy(hidden, weight, None, labels, 0.0)
    torch.testing.assert_close(got, cross_entropy(hidden @ weight.T, labels), **EXACT)


def test_under_autocast_only_the_large_products_are_narrow():
    """Logits that bfloat16 holds exactly: the loss is near that of float32."""
    hidden = torch.tensor([[1.0, 2, 3], [2, -1, 1]])
    weight = torch.tensor([[1.0, 0, 1], [2, 1, -1], [0, 3, 1], [1, 1, 1], [0, 0, 2]])
    labels = torch.tensor([1, 3])
    clear = smoothed_cross_entropy(hidden @ weight.T, labels, 1.0)
    with torch.autocast("cpu", torch.bfloat16):
        got, _ = fused_linear_cross_entropy(hidden, weight, None, labels, 1.0)
    torch.testing.assert_close(got, clear, rtol=1e-3, atol=0)
