"""Law: fused = clear, for values and gradients."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from pellucid.equations import fused
from pellucid.equations.attention import attention
from pellucid.equations.fused import (
    fused_alibi_attention,
    fused_attention,
    fused_gated_recurrence,
    fused_layer_norm,
    fused_linear_cross_entropy,
    fused_orthogonalize,
    fused_relative_attention,
    fused_rotary_positions,
)
from pellucid.equations.losses import cross_entropy, smoothed_cross_entropy
from pellucid.equations.masks import causal_mask
from pellucid.equations.normalization import layer_norm
from pellucid.equations.optimizers import orthogonalize
from pellucid.equations.recurrent import gated_recurrence
from pellucid.equations.relative import (
    alibi_attention_weights,
    relative_attention,
    rotary_positions,
)

TOLERANCES = {torch.float64: 1e-12, torch.float32: 2e-6, torch.bfloat16: 2e-2}
DTYPES = list(TOLERANCES)


def random(*shape: int, dtype: torch.dtype, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, dtype=torch.float64, generator=generator).to(dtype).requires_grad_()


def assert_same(clear: Tensor, fast: Tensor, inputs: list[Tensor]) -> None:
    """Equal values, and equal gradients of a random projection."""
    tolerance = TOLERANCES[clear.dtype]
    torch.testing.assert_close(fast, clear, rtol=tolerance, atol=tolerance)
    direction = random(*clear.shape, dtype=clear.dtype, seed=99).detach()
    expected = torch.autograd.grad(clear, inputs, direction, retain_graph=True)
    got = torch.autograd.grad(fast, inputs, direction, retain_graph=True)
    for ours, theirs in zip(got, expected, strict=True):
        assert ours.isfinite().all()
        torch.testing.assert_close(ours, theirs, rtol=4 * tolerance, atol=4 * tolerance)


def padding(batch: int, query: int, key: int) -> Tensor:
    lengths = torch.tensor([key, 2])[:batch]
    mask = torch.arange(key) < lengths[:, None]
    return mask[:, None, None, :].expand(batch, 1, query, key)


def masks(batch: int, query: int, key: int) -> dict[str, Tensor | None]:
    square = causal_mask(query)
    blind = torch.ones(query, key, dtype=torch.bool)
    blind[1] = False
    return {
        "none": None,
        "causal": square.expand(batch, 1, query, key),
        "padding": padding(batch, query, key),
        "both": padding(batch, query, key) & square,
        "a row that may see nothing": blind.expand(batch, 1, query, key),
    }


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", list(masks(2, 4, 4)))
@pytest.mark.parametrize("value_size", [8, 6])
def test_attention(name: str, dtype: torch.dtype, value_size: int):
    query = random(2, 3, 4, 8, dtype=dtype, seed=1)
    key = random(2, 3, 4, 8, dtype=dtype, seed=2)
    value = random(2, 3, 4, value_size, dtype=dtype, seed=3)
    mask = masks(2, 4, 4)[name]
    clear = attention(query, key, value, mask)
    assert_same(clear, fused_attention(query, key, value, mask), [query, key, value])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", list(masks(2, 4, 4)))
def test_alibi_attention(name: str, dtype: torch.dtype):
    query, key, value = (random(2, 3, 4, 8, dtype=dtype, seed=seed) for seed in (1, 2, 3))
    mask = masks(2, 4, 4)[name]
    clear = alibi_attention_weights(query, key, mask) @ value
    inputs = [query, key, value]
    if dtype is torch.bfloat16:  # the kernel keeps more digits of the bias than the sum does
        torch.testing.assert_close(
            fused_alibi_attention(query, key, value, mask), clear, rtol=4e-2, atol=4e-2
        )
        return
    assert_same(clear, fused_alibi_attention(query, key, value, mask), inputs)
    if name == "causal":
        fast = fused_alibi_attention(query, key, value, causal=True)
        assert_same(clear, fast, inputs)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("name", list(masks(2, 4, 4)))
@pytest.mark.parametrize("clip", [1, 2, 5])
def test_relative_attention(name: str, dtype: torch.dtype, clip: int):
    query, key, value = (random(2, 3, 4, 8, dtype=dtype, seed=seed) for seed in (1, 2, 3))
    tables = tuple(random(2 * clip + 1, 8, dtype=dtype, seed=seed) for seed in (4, 5))
    mask = masks(2, 4, 4)[name]
    clear = relative_attention(query, key, value, *tables, mask)
    inputs = [query, key, value, *tables]
    assert_same(clear, fused_relative_attention(query, key, value, tables, mask), inputs)
    if name == "causal":
        fast = fused_relative_attention(query, key, value, tables, causal=True)
        assert_same(clear, fast, inputs)


@pytest.mark.parametrize("query_count", [1, 3])
def test_queries_that_are_the_last_of_the_keys_keep_their_distances(query_count: int):
    query = random(2, 3, query_count, 8, dtype=torch.float64, seed=1)
    key, value = (random(2, 3, 5, 8, dtype=torch.float64, seed=seed) for seed in (2, 3))
    tables = tuple(random(5, 8, dtype=torch.float64, seed=seed) for seed in (4, 5))
    offset = 5 - query_count
    mask = causal_mask(query_count, offset)
    clear = relative_attention(query, key, value, *tables, mask, offset)
    fast = fused_relative_attention(query, key, value, tables, causal=True)
    assert_same(clear, fast, [query, key, value, *tables])
    clear = alibi_attention_weights(query, key, mask, offset) @ value
    fast = fused_alibi_attention(query, key, value, causal=True)
    assert_same(clear, fast, [query, key, value])


def test_causal_flag_is_the_causal_mask_added_to_any_other():
    query, key, value = (random(2, 3, 4, 8, dtype=torch.float64, seed=seed) for seed in (1, 2, 3))
    causal = masks(2, 4, 4)["causal"]
    inputs = [query, key, value]
    assert_same(
        attention(query, key, value, causal),
        fused_attention(query, key, value, causal=True),
        inputs,
    )
    pads = padding(2, 4, 4)
    assert_same(
        attention(query, key, value, causal & pads),
        fused_attention(query, key, value, pads, causal=True),
        inputs,
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("affine", [True, False])
def test_layer_norm(dtype: torch.dtype, affine: bool):
    x = random(3, 5, 16, dtype=dtype, seed=1)
    gain = random(16, dtype=dtype, seed=2) if affine else None
    bias = random(16, dtype=dtype, seed=3) if affine else None
    inputs = [each for each in (x, gain, bias) if each is not None]
    clear = layer_norm(x, gain, bias, eps=1e-6)
    assert_same(clear, fused_layer_norm(x, gain, bias, 1e-6), inputs)


@pytest.mark.parametrize("chunk_rows", [1, 3, 7, 1024])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("has_bias", [True, False])
def test_linear_cross_entropy(
    chunk_rows: int, smoothing: float, has_bias: bool, monkeypatch: pytest.MonkeyPatch
):
    """Chunks that divide the rows, do not, and swallow them whole."""
    monkeypatch.setattr(fused, "_CHUNK_ROWS", chunk_rows)
    hidden = random(7, 5, dtype=torch.float64, seed=1)
    weight = random(11, 5, dtype=torch.float64, seed=2)
    bias = random(11, dtype=torch.float64, seed=3) if has_bias else None
    labels = torch.tensor([0, 3, 10, 3, 7, 1, 3])
    logits = hidden @ weight.T + (bias if bias is not None else 0.0)
    loss, likelihood = fused_linear_cross_entropy(hidden, weight, bias, labels, smoothing)
    inputs = [each for each in (hidden, weight, bias) if each is not None]
    assert_same(smoothed_cross_entropy(logits, labels, smoothing), loss, inputs)
    torch.testing.assert_close(likelihood, cross_entropy(logits, labels), rtol=1e-12, atol=1e-12)
    assert not likelihood.requires_grad


def test_linear_cross_entropy_survives_logits_that_overflow_a_naive_exp():
    hidden = torch.tensor([[1000.0], [-1000.0]], requires_grad=True)
    weight = torch.tensor([[1.0], [-1.0]])
    loss, _ = fused_linear_cross_entropy(hidden, weight, None, torch.tensor([0, 1]), 0.0)
    loss.backward()
    assert loss == 0.0
    assert hidden.grad is not None
    assert hidden.grad.isfinite().all()


def test_a_label_whose_probability_underflows_costs_what_its_logit_says():
    """Logits ±1000: the wrong one of two words is 2000 nats away."""
    hidden = torch.tensor([[1000.0], [-1000.0], [0.5]], requires_grad=True)
    weight = torch.tensor([[1.0], [-1.0]])
    labels = torch.tensor([1, 0, 0])
    _, likelihood = fused_linear_cross_entropy(hidden, weight, None, labels, 0.0)
    assert likelihood.item() == pytest.approx(2000.0 + 2000.0 + math.log1p(math.exp(-1.0)))


@pytest.mark.parametrize("length", [1.0, 60.0])
@pytest.mark.parametrize("has_bias", [True, False])
def test_linear_cross_entropy_in_float32_with_and_without_a_bound_of_its_logits(
    length: float, has_bias: bool
):
    """Short rows need no largest logit to begin from; long ones, of logits up to 130, do."""
    hidden = length * functional.normalize(random(5, 8, dtype=torch.float64, seed=1).detach())
    weight = 3.0 * functional.normalize(random(40, 8, dtype=torch.float64, seed=2).detach())
    inputs = [hidden, weight, *([random(40, dtype=torch.float64, seed=3)] if has_bias else [])]
    labels = torch.tensor([0, 39, 7, 7, 2])

    sums = []
    for dtype in (torch.float64, torch.float32):
        each = [x.detach().to(dtype).requires_grad_() for x in inputs]
        bias = each[2] if has_bias else None
        if dtype is torch.float64:
            logits = functional.linear(each[0], each[1], bias)
            loss = smoothed_cross_entropy(logits, labels, 0.1)
            likelihood = cross_entropy(logits, labels)
        else:
            loss, likelihood = fused_linear_cross_entropy(each[0], each[1], bias, labels, 0.1)
        sums.append([loss, likelihood, *torch.autograd.grad(loss, each)])
    for clear, fast in zip(*sums, strict=True):
        torch.testing.assert_close(fast.double(), clear, rtol=2e-5, atol=2e-5)


def test_linear_cross_entropy_of_no_row_is_zero():
    weight = random(11, 5, dtype=torch.float32, seed=2)
    loss, likelihood = fused_linear_cross_entropy(
        torch.empty(0, 5), weight, None, torch.empty(0, dtype=torch.long), 0.1
    )
    assert loss == likelihood == 0.0
    [gradient] = torch.autograd.grad(loss, [weight])
    assert not gradient.any()


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_a_hidden_state_that_is_not_finite_shows_in_the_loss(wrong: float):
    hidden = torch.tensor([[wrong, 1.0], [0.0, 1.0]])
    loss, _ = fused_linear_cross_entropy(hidden, torch.eye(2), None, torch.tensor([0, 1]), 0.1)
    assert not loss.isfinite()


def test_linear_cross_entropy_without_gradients_gives_the_same_sums():
    hidden = random(7, 5, dtype=torch.float64, seed=1)
    weight = random(11, 5, dtype=torch.float64, seed=2)
    labels = torch.arange(7)
    with_gradient = fused_linear_cross_entropy(hidden, weight, None, labels, 0.1)
    without = fused_linear_cross_entropy(hidden.detach(), weight.detach(), None, labels, 0.1)
    torch.testing.assert_close(with_gradient[0].detach(), without[0], rtol=0, atol=0)
    torch.testing.assert_close(with_gradient[1], without[1], rtol=0, atol=0)


def test_linear_cross_entropy_under_autocast_is_the_same_within_bfloat16():
    hidden = random(7, 16, dtype=torch.float32, seed=1)
    weight = random(11, 16, dtype=torch.float32, seed=2)
    bias = random(11, dtype=torch.float32, seed=3)
    labels = torch.arange(7)
    clear = smoothed_cross_entropy(hidden @ weight.T + bias, labels, 0.1)
    with torch.autocast("cpu", torch.bfloat16):
        fast, _ = fused_linear_cross_entropy(hidden, weight, bias, labels, 0.1)
    assert fast.dtype == torch.float32
    torch.testing.assert_close(fast, clear, rtol=2e-2, atol=2e-2)
    assert not torch.equal(fast, clear)  # the products were indeed made in bfloat16
    for ours, theirs in zip(
        torch.autograd.grad(fast, [hidden, weight, bias]),
        torch.autograd.grad(clear, [hidden, weight, bias]),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, rtol=4e-2, atol=4e-2)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("start", [0, 7])
def test_rotary_positions_as_complex_numbers_turn_alike(start: int, dtype: torch.dtype) -> None:
    heads = random(2, 5, 3, 6, dtype=dtype, seed=1)
    x = heads.transpose(1, 2)  # as split into heads: not contiguous
    assert_same(rotary_positions(x, start), fused_rotary_positions(x, start), [heads])


def test_rotary_positions_of_one_head_and_of_none_begin_at_the_first_place():
    for shape in ((5, 6), (3, 5, 6)):
        x = torch.randn(*shape, dtype=torch.float64)
        torch.testing.assert_close(fused_rotary_positions(x), rotary_positions(x))


def test_labels_that_underflow_cost_what_their_own_rows_say():
    """Three of them, each with another normalizer, between rows that do not underflow."""
    logits = torch.tensor([[900.0, 0, 899], [0, 0, 0], [0, 700, 0], [0, 1, 5], [0, -300, 500]])
    labels = torch.tensor([1, 2, 0, 1, 0])
    hidden, weight = logits.double().requires_grad_(), torch.eye(3, dtype=torch.float64)
    loss, likelihood = fused_linear_cross_entropy(hidden, weight, None, labels, 0.0)
    expected = functional.cross_entropy(logits.double(), labels, reduction="sum")
    assert likelihood.item() == pytest.approx(expected.item())
    assert loss.item() == pytest.approx(expected.item())


def test_another_device_takes_its_own_kernels():
    """A meta tensor has a shape and no numbers: what a CPU alone does would ask for those."""
    query, value = torch.empty(2, 3, 4, device="meta"), torch.empty(2, 3, 5, device="meta")
    assert fused_attention(query, query, value, causal=True).shape == (2, 3, 5)


@pytest.mark.parametrize("shape", [(3, 6, 6), (2, 4, 9), (2, 9, 4), (1, 1, 5)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_orthogonalizing(dtype: torch.dtype, shape: tuple[int, ...]):
    """The iteration makes rounding errors some ten times larger: its slope at zero is 3.4 each."""
    matrices = random(*shape, dtype=dtype, seed=1).detach() * 1e-6
    tolerance = 10 * TOLERANCES[dtype]
    torch.testing.assert_close(
        fused_orthogonalize(matrices), orthogonalize(matrices), rtol=tolerance, atol=tolerance
    )


@pytest.mark.parametrize("shape", [(3, 16, 16), (2, 8, 24), (2, 24, 8)], ids=str)
def test_orthogonalizing_under_autocast(shape: tuple[int, ...]):
    """In bfloat16: the singular values and vectors are those of the equation to two digits."""
    matrices = random(*shape, dtype=torch.float32, seed=2).detach() * 1e-6
    expected = orthogonalize(matrices)
    with torch.autocast("cpu", torch.bfloat16):
        fast = fused_orthogonalize(matrices)
    assert fast.dtype == torch.float32
    assert not torch.equal(fast, expected)
    distance = torch.linalg.matrix_norm(fast - expected) / torch.linalg.matrix_norm(expected)
    assert distance.max() < 0.05


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("time", [1, 2, 7])
@pytest.mark.parametrize("batch", [(), (3,), (2, 3)], ids=str)
def test_gated_recurrence(batch: tuple[int, ...], time: int, dtype: torch.dtype):
    """With a first cell that is not zero, which has a gradient as well."""
    inputs = random(*batch, time, 5, dtype=dtype, seed=1)
    before = random(*batch, time, 5, dtype=dtype, seed=2)
    cell = random(*batch, 5, dtype=dtype, seed=3)
    gates = before.sigmoid()
    clear = gated_recurrence(inputs, gates, cell)
    assert_same(clear, fused_gated_recurrence(inputs, gates, cell), [inputs, before, cell])


def test_gated_recurrence_of_rows_that_do_not_lie_side_by_side():
    """As slices and transposed views do not."""
    inputs, gates = (
        random(4, 6, 3, dtype=torch.float64, seed=1),
        random(6, 6, dtype=torch.float64, seed=2),
    )
    views = inputs.transpose(0, 1)[:, ::2], gates.sigmoid()[:, None, ::2].expand(6, 2, 3)
    cell = torch.zeros(6, 3, dtype=torch.float64)
    assert_same(
        gated_recurrence(*views, cell), fused_gated_recurrence(*views, cell), [inputs, gates]
    )
