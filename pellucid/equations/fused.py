"""The fast twins: same inputs, same answers, values and gradients, as the equations they name."""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from pellucid.equations.masks import causal_mask, masked_softmax
from pellucid.equations.relative import alibi_bias, relative_distances

_CHUNK_ROWS = 1024
"""Rows of logits held at once; measured best of 64 to 4,096 for 8,000 words on a 2-core CPU."""


def fused_attention(
    query: Float[Tensor, "*batch query key_size"],
    key: Float[Tensor, "*batch key key_size"],
    value: Float[Tensor, "*batch key value_size"],
    may_attend: Bool[Tensor, "*#batch #query key"] | None = None,
    *,
    causal: bool = False,
) -> Float[Tensor, "*batch query value_size"]:
    """``attention`` in one kernel that never stores the weights.

    ``causal`` adds ``causal_mask`` to whatever ``may_attend`` says.

    EQ: 50, 74.  Source: Vaswani et al. (2017), eq. (1); Dao et al. (2022) for the kernel.
    Law: tests/laws/test_fused_equals_clear.py.
    """
    if causal and may_attend is not None:
        square = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device)
        may_attend, causal = may_attend & square.tril(), False
    if query.device.type == "cpu" and query.dtype is torch.bfloat16 and torch.is_grad_enabled():
        # PyTorch 2.13's CPU kernel takes six times as long backwards in bfloat16 as in float32.
        with torch.autocast("cpu", enabled=False):
            wide = functional.scaled_dot_product_attention(
                query.float(), key.float(), value.float(), attn_mask=may_attend, is_causal=causal
            )
        return wide.to(query.dtype)
    return functional.scaled_dot_product_attention(
        query, key, value, attn_mask=may_attend, is_causal=causal
    )


def fused_alibi_attention(
    query: Float[Tensor, "*batch heads query key_size"],
    key: Float[Tensor, "*batch heads key key_size"],
    value: Float[Tensor, "*batch heads key value_size"],
    may_attend: Bool[Tensor, "*fits #query key"] | None = None,
    *,
    causal: bool = False,
) -> Float[Tensor, "*batch heads query value_size"]:
    """``alibi_attention_weights`` times the values, in one kernel that never stores the weights.

    Queries that are fewer than the keys are the last of them; ``causal`` hides what comes later.

    EQ: none.  Source: Press et al. (2022), §3.
    Law: tests/laws/test_fused_equals_clear.py.
    """
    heads, query_count, key_count = query.shape[-3], query.shape[-2], key.shape[-2]
    offset = key_count - query_count
    bias = alibi_bias(heads, query_count, key_count, offset, query.dtype, query.device)
    may_attend = _with_causal(may_attend, query_count, offset, query.device, causal)
    if may_attend is not None:
        bias = torch.where(may_attend, bias, -torch.inf)
    return functional.scaled_dot_product_attention(query, key, value, attn_mask=bias)


def fused_relative_attention(
    query: Float[Tensor, "*batch query key_size"],
    key: Float[Tensor, "*batch key key_size"],
    value: Float[Tensor, "*batch key value_size"],
    tables: tuple[Float[Tensor, "distances key_size"], Float[Tensor, "distances value_size"]],
    may_attend: Bool[Tensor, "*#batch #query key"] | None = None,
    *,
    causal: bool = False,
) -> Float[Tensor, "*batch query value_size"]:
    """``relative_attention`` with as many products as there are distances, not pairs.

    Each query meets each row of the table of keys once, and the weights of all keys at one distance
    are summed before they meet the table of values. Queries that are fewer than the keys are the
    last of them; ``causal`` hides what comes later.

    EQ: 31.  Source: Shaw et al. (2018), §3.3.
    Law: tests/laws/test_fused_equals_clear.py.
    """
    key_table, value_table = tables
    query_count, key_count = query.shape[-2], key.shape[-2]
    offset, clip = key_count - query_count, key_table.shape[0] // 2
    may_attend = _with_causal(may_attend, query_count, offset, query.device, causal)
    rows = relative_distances(query_count, key_count, clip, offset, query.device)
    rows = rows.expand(*query.shape[:-1], key_count)
    by_distance = (query @ key_table.transpose(0, 1)).gather(-1, rows)  # (*batch, query, key)
    scores = (query @ key.transpose(-2, -1) + by_distance) / math.sqrt(key.shape[-1])
    weights = masked_softmax(scores, may_attend)
    at_distance = weights.new_zeros(*weights.shape[:-1], key_table.shape[0])
    at_distance = at_distance.scatter_add(-1, rows, weights)
    return weights @ value + at_distance @ value_table


def _with_causal(
    may_attend: Tensor | None, length: int, offset: int, device: torch.device, causal: bool
) -> Tensor | None:
    if not causal:
        return may_attend
    square = causal_mask(length, offset, device)
    return square if may_attend is None else may_attend & square


def fused_layer_norm(
    x: Float[Tensor, "*batch size"],
    gain: Float[Tensor, " size"] | None,
    bias: Float[Tensor, " size"] | None,
    eps: float,
) -> Float[Tensor, "*batch size"]:
    """``layer_norm`` in one kernel.

    EQ: 91, 92, 94.  Source: Ba et al. (2016), eq. (4).
    Law: tests/laws/test_fused_equals_clear.py.
    """
    return functional.layer_norm(x, (x.shape[-1],), gain, bias, eps)


def fused_linear_cross_entropy(
    hidden: Float[Tensor, "row d_model"],
    weight: Float[Tensor, "vocabulary d_model"],
    bias: Float[Tensor, " vocabulary"] | None,
    labels: Int[Tensor, " row"],
    smoothing: float,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Summed smoothed and plain cross-entropy of ``hidden weightᵀ + bias``, never all at once.

    Twin of ``smoothed_cross_entropy`` and ``cross_entropy`` over the last linear map. The logits
    exist for some rows at a time, and the gradients are computed in the same pass, from

        ∂L/∂z = softmax(z) − (1 − ε) onehot(y) − ε/V

    Only the first of the two results carries a gradient.

    EQ: 112, 113, 118, 120.  Source: Wijmans et al. (2024) and Hsu et al. (2024) for the chunks.
    Law: tests/laws/test_fused_equals_clear.py.
    """
    device = hidden.device.type
    dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden.dtype
    loss: Tensor
    with torch.autocast(device, enabled=False):
        loss, negative_log_likelihood = _LinearCrossEntropy.apply(  # type: ignore[no-untyped-call]
            hidden, weight, bias, labels, smoothing, dtype
        )
    return loss, negative_log_likelihood


class _LinearCrossEntropy(torch.autograd.Function):
    """Computes its gradients going forward, while a chunk of logits is at hand.

    Matrix products are made in ``dtype``, everything else in the dtype of ``hidden``.
    """

    @staticmethod
    def forward(ctx, hidden, weight, bias, labels, smoothing, dtype):  # type: ignore[no-untyped-def]
        needs_gradient = any(ctx.needs_input_grad)
        gradients = _Gradients(hidden, weight, bias, dtype) if needs_gradient else None
        mean_weight = weight.mean(dim=0)
        mean_bias = bias.mean() if bias is not None else 0.0
        narrow_hidden, narrow_weight = hidden.to(dtype), weight.to(dtype)
        likelihood = torch.zeros((), dtype=hidden.dtype, device=hidden.device)
        uniform = torch.zeros_like(likelihood)
        for first in range(0, hidden.shape[0], _CHUNK_ROWS):
            rows = slice(first, first + _CHUNK_ROWS)
            logits = functional.linear(narrow_hidden[rows], narrow_weight).to(hidden.dtype)
            if bias is not None:
                logits += bias
            label_logits = logits.gather(1, labels[rows, None]).squeeze(1)
            highest = logits.amax(dim=1, keepdim=True)
            exponentials = logits.sub_(highest).exp_()
            normalizers = exponentials.sum(dim=1, keepdim=True)
            log_normalizers = (highest + normalizers.log()).squeeze(1)
            likelihood += (log_normalizers - label_logits).sum()
            uniform += (log_normalizers - (hidden[rows] @ mean_weight + mean_bias)).sum()
            if gradients is not None:
                gradients.add_softmax(rows, exponentials, normalizers)
        if gradients is not None:
            gradients.subtract_labels(labels, smoothing, mean_weight)
            ctx.save_for_backward(gradients.hidden, gradients.weight, gradients.bias)
        loss = (1.0 - smoothing) * likelihood + smoothing * uniform
        ctx.mark_non_differentiable(likelihood)
        return loss, likelihood

    @staticmethod
    def backward(ctx, loss_gradient, _):  # type: ignore[no-untyped-def]
        hidden, weight, bias = ctx.saved_tensors
        scaled_bias = None if bias is None else bias * loss_gradient
        return hidden * loss_gradient, weight * loss_gradient, scaled_bias, None, None, None


class _Gradients:
    """Gradients of the summed loss with respect to what the last linear map was made of."""

    def __init__(
        self, hidden: Tensor, weight: Tensor, bias: Tensor | None, dtype: torch.dtype
    ) -> None:
        self._input = hidden
        self._weight = weight
        self._narrow_weight = weight.to(dtype)
        self.hidden = torch.empty_like(hidden)
        self.weight = torch.zeros_like(weight)
        self.bias = torch.zeros_like(bias) if bias is not None else None

    def add_softmax(self, rows: slice, exponentials: Tensor, normalizers: Tensor) -> None:
        """The part of a chunk's gradient that comes from softmax(z) = exponentials / normalizers.

        Dividing the narrow matrices instead of the wide one saves a pass over the logits.
        """
        narrow = exponentials.to(self._narrow_weight.dtype)
        self.hidden[rows] = (narrow @ self._narrow_weight).to(self.hidden.dtype) / normalizers
        self.weight += narrow.T @ (self._input[rows] / normalizers).to(narrow.dtype)
        if self.bias is not None:
            self.bias += (exponentials / normalizers).sum(dim=0)

    def subtract_labels(self, labels: Tensor, smoothing: float, mean_weight: Tensor) -> None:
        """The parts that come from the label and from the uniform share of the smoothing."""
        kept = 1.0 - smoothing
        uniform = smoothing / self._weight.shape[0]
        self.hidden -= kept * self._weight[labels] + smoothing * mean_weight
        self.weight.index_add_(0, labels, self._input, alpha=-kept)
        self.weight -= uniform * self._input.sum(dim=0)
        if self.bias is not None:
            ones = torch.ones_like(labels, dtype=self.bias.dtype)
            self.bias.index_add_(0, labels, ones, alpha=-kept)
            self.bias -= uniform * labels.shape[0]
