"""Fast twins: each computes the values and gradients of the equation that it names."""

import contextlib
import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from pellucid.equations.masks import causal_mask, masked_softmax
from pellucid.equations.optimizers import QUINTICS
from pellucid.equations.positions import sinusoidal_positions
from pellucid.equations.relative import alibi_bias, relative_distances

_ROUND_ROWS = 64
"""bfloat16 products get a multiple of this many rows. For every new number of rows a CPU compiles
the product again, which takes ten times as long as the product itself."""
_CHUNK_ROWS = 512
"""Rows of logits held at once: the fastest of 128 to 1,024 for 8,000 words in bfloat16 on a CPU."""
_LOG2_E = math.log2(math.e)
_LARGEST_EXPONENT = 60.0
"""A bound of logits: e^60 and e^-60 lie far within float32, also summed over all words."""
_LEAST_PROBABILITY = 1e-30
"""Below this probability float32 and bfloat16 are close to underflow."""


def fused_attention(
    query: Float[Tensor, "*batch query key_size"],
    key: Float[Tensor, "*batch key key_size"],
    value: Float[Tensor, "*batch key value_size"],
    may_attend: Bool[Tensor, "*#batch #query key"] | None = None,
    *,
    causal: bool = False,
) -> Float[Tensor, "*batch query value_size"]:
    """``attention`` in one kernel that never stores the weights.

    ``causal`` adds ``causal_mask`` to ``may_attend``.

    EQ: 50, 74.  Source: Vaswani et al. (2017), eq. (1); Dao et al. (2022) for the kernel.
    Law: tests/laws/test_fused_equals_clear.py.
    """
    # the kernel takes a mask or ``is_causal``, not both
    if causal and may_attend is not None:
        square = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device)
        may_attend, causal = may_attend & square.tril(), False

    # nothing to cast: in a search of one sentence, finding out takes as long as the attention
    if query.device.type != "cpu" or not (
        torch.is_grad_enabled() or torch.is_autocast_enabled("cpu")
    ):
        return functional.scaled_dot_product_attention(
            query, key, value, attn_mask=may_attend, is_causal=causal
        )

    # the cast is explicit, as autocast would cast back to bfloat16
    dtype = query.dtype
    query, key, value = (_wide(each) for each in (query, key, value))
    # entered only where it changes something: it takes as long as attention of a few words
    casts = torch.is_autocast_enabled("cpu")
    with torch.autocast("cpu", enabled=False) if casts else contextlib.nullcontext():
        attended = functional.scaled_dot_product_attention(
            query, key, value, attn_mask=may_attend, is_causal=causal
        )

    return attended.to(dtype)


def for_attention(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """``x`` in the dtype in which ``fused_attention`` computes, where autocast trains on a CPU.

    Casting rows before they are split into heads is faster than casting heads. A model whose
    parameters are half floats has no autocast to bring its rows back to them: its rows keep their
    dtype.
    """
    return _wide(x) if torch.is_autocast_enabled("cpu") else x


def _wide(x: Tensor) -> Tensor:
    """``x`` in float32 while gradients are recorded on a CPU.

    PyTorch 2.13's CPU kernel takes six times as long backwards in bfloat16 as in float32.
    """
    is_half = x.dtype in (torch.bfloat16, torch.float16)
    return x.float() if x.device.type == "cpu" and is_half and torch.is_grad_enabled() else x


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

    # the bias is the kernel's additive mask; -inf hides a key (torch.where broadcasts both)
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
    """``relative_attention`` with a product for each distance, not for each pair.

    Each query is multiplied with each row of the table of keys once, and the weights of all keys at
    one distance are summed before they are multiplied with the table of values. Queries that are
    fewer than the keys are the last of them; ``causal`` hides what comes later.

    EQ: 31.  Source: Shaw et al. (2018), §3.3.
    Law: tests/laws/test_fused_equals_clear.py.
    """
    key_table, value_table = tables
    query_count, key_count = query.shape[-2], key.shape[-2]
    offset, clip = key_count - query_count, key_table.shape[0] // 2
    may_attend = _with_causal(may_attend, query_count, offset, query.device, causal)

    # the row of the tables for each pair: (query, key), the same for all of the batch
    rows = relative_distances(query_count, key_count, clip, offset, query.device)
    rows = rows.expand(*query.shape[:-1], key_count)
    by_distance = (query @ key_table.transpose(0, 1)).gather(-1, rows)  # (*batch, query, key)

    scores = (query @ key.transpose(-2, -1) + by_distance) / math.sqrt(key.shape[-1])
    weights = masked_softmax(scores, may_attend)

    # (*batch, query, distances)
    at_distance = weights.new_zeros(*weights.shape[:-1], key_table.shape[0])
    at_distance = at_distance.scatter_add(-1, rows, weights)

    return weights @ value + at_distance @ value_table


def fused_rotary_positions(
    x: Float[Tensor, "*batch length size"], start: int = 0
) -> Float[Tensor, "*batch length size"]:
    """``rotary_positions`` as one product of complex numbers, forwards and backwards.

    EQ: none.  Source: Su et al. (2021), eq. (12): a pair of features is a complex number, and
    turning it by nθᵢ is multiplying it by exp(i nθᵢ).
    Law: tests/laws/test_fused_equals_clear.py.

    Three times as fast on a CPU as taking every other feature. PyTorch has no complex bfloat16,
    so narrower numbers are cast to float32 and back.
    """
    length, size = x.shape[-2:]
    wide = x.double() if x.dtype is torch.float64 else x.float()
    waves = sinusoidal_positions(length, size, start, wide.dtype, x.device)
    # cosines are the odd columns and sines the even ones: cos + i sin, (length, size / 2)
    turns = torch.complex(waves[:, 1::2].contiguous(), waves[:, ::2].contiguous())
    # slices of the packed projection may start at an odd offset, which complex views do not allow
    pairs = torch.view_as_complex(wide.contiguous().view(*x.shape[:-1], size // 2, 2))
    return torch.view_as_real(pairs * turns).flatten(-2).to(x.dtype)


def fused_gated_recurrence(
    inputs: Float[Tensor, "*batch time size"],
    gates: Float[Tensor, "*batch time size"],
    cell: Float[Tensor, "*batch size"],
) -> Float[Tensor, "*batch time size"]:
    """``gated_recurrence`` with one kernel a word, forwards and backwards.

    With gₜ for the gradient that reaches cₜ from the loss and from all later cells,

        gₜ = ∂L/∂cₜ + fₜ₊₁ ⊙ gₜ₊₁,   ∂L/∂xₜ = (1 − fₜ) ⊙ gₜ,   ∂L/∂fₜ = (cₜ₋₁ − xₜ) ⊙ gₜ

    and only gₜ needs a word after the other. A scan in log₂ n steps reads all words in each of
    them, and took longer on a CPU (benchmarks/recurrence_speed.py).

    EQ: none.  Source: Lei et al. (2018), §3.
    Law: tests/laws/test_fused_equals_clear.py.
    """
    cells: Tensor = _GatedRecurrence.apply(inputs, gates, cell)  # type: ignore[no-untyped-call]
    return cells


class _GatedRecurrence(torch.autograd.Function):
    """The cells, and their gradients from the last word to the first."""

    @staticmethod
    def forward(ctx, inputs, gates, cell):  # type: ignore[no-untyped-def]
        """c₁ … cₙ."""
        cells = torch.empty_like(inputs)
        before = cell
        for time in range(inputs.shape[-2]):
            # x + f (c − x): a mean of the two in one pass
            x, gate = inputs.select(-2, time), gates.select(-2, time)
            before = torch.lerp(x, before, gate, out=cells.select(-2, time))

        ctx.save_for_backward(inputs, gates, cell, cells)
        return cells

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        """The gradients with respect to inputs, gates and the first cell."""
        inputs, gates, cell, cells = ctx.saved_tensors

        reaching = gradient.clone()  # g, filled from the end
        for time in range(inputs.shape[-2] - 2, -1, -1):
            later = gates.select(-2, time + 1), reaching.select(-2, time + 1)
            reaching.select(-2, time).addcmul_(*later)

        # c₀ … cₙ₋₁
        before = torch.cat((cell.unsqueeze(-2), cells[..., :-1, :]), dim=-2)
        of_gates = (before - inputs).mul_(reaching)
        of_cells = reaching * gates  # ∂L/∂cₜ₋₁ through cₜ alone
        of_first = of_cells[..., :1, :].sum(dim=-2)  # zeros if there is no word
        return reaching.sub_(of_cells), of_gates, of_first


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


def fused_orthogonalize(
    matrices: Float[Tensor, "matrix rows columns"],
) -> Float[Tensor, "matrix rows columns"]:
    """``orthogonalize`` with additions inside the products, which autocast makes in fewer bits.

    bfloat16 suffices, as in torch.optim.Muon: the singular values come to lie near 1, not at 1.

    EQ: none.  Source: Amsel et al. (2025), arXiv:2505.16932; Jordan et al. (2024), Muon.
    Law: tests/laws/test_fused_equals_clear.py.
    """
    is_tall = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.mT if is_tall else matrices
    # divided before it is rounded: squares of small gradients would underflow
    x = x / (torch.linalg.matrix_norm(x, keepdim=True) + 1e-7)

    device = x.device.type
    if torch.is_autocast_enabled(device):
        x = x.to(torch.get_autocast_dtype(device))

    for a, b, c in QUINTICS:
        square = torch.bmm(x, x.mT)  # (matrix, rows, rows)
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return (x.mT if is_tall else x).to(matrices.dtype)


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

        ∂L/∂z = softmax(z) − (1 − ε) onehot(y) − ε/|𝒱|

    Only the first of the two results carries a gradient.

    EQ: 112, 113, 118, 120.  Source: Wijmans et al. (2024) and Hsu et al. (2024) for the chunks.
    Law: tests/laws/test_fused_equals_clear.py.
    """
    return apply_loss(_LinearCrossEntropy, hidden, weight, bias, labels, smoothing)


class GradientsInForward(torch.autograd.Function):
    """A loss whose ``forward`` saves its gradients with respect to hidden states, weight and bias.

    Its three other arguments have no gradient, and neither has the second result.
    """

    @staticmethod
    def backward(ctx, loss_gradient, _):  # type: ignore[no-untyped-def]
        """The saved gradients, times the gradient that reaches the loss."""
        hidden, weight, bias = ctx.saved_tensors
        scaled_bias = None if bias is None else bias * loss_gradient
        return hidden * loss_gradient, weight * loss_gradient, scaled_bias, None, None, None


def apply_loss(
    function: type[GradientsInForward], hidden: Tensor, weight: Tensor, *others: object
) -> tuple[Tensor, Tensor]:
    """Apply a loss of the last linear map that casts its matrix products itself.

    ``function`` gets the arguments, with ``hidden`` in the dtype of ``weight``, and then the dtype
    of matrix products under autocast, or the dtype of ``hidden`` without autocast.
    """
    device = hidden.device.type
    dtype = hidden.dtype
    if torch.is_autocast_enabled(device):
        dtype, hidden = torch.get_autocast_dtype(device), hidden.to(weight.dtype)

    # off inside: the function casts its products, and sums in full precision
    with torch.autocast(device, enabled=False):
        loss, negative_log_likelihood = function.apply(  # type: ignore[no-untyped-call]
            hidden, weight, *others, dtype
        )
    return loss, negative_log_likelihood


class _LinearCrossEntropy(GradientsInForward):
    """Computes its gradients in the forward pass, while a chunk of probabilities is in memory.

    Matrix products and probabilities are in ``dtype``, everything else in the dtype of ``hidden``.
    """

    @staticmethod
    def forward(ctx, hidden, weight, bias, labels, smoothing, dtype):  # type: ignore[no-untyped-def]
        """Both sums over the rows; the gradients are kept for ``backward``."""
        # In evaluation the loss alone is computed.
        needs_gradient = any(ctx.needs_input_grad)
        gradients = _Gradients(hidden, weight, bias) if needs_gradient else None
        # the uniform part of the smoothing needs only the mean logit, which is linear in these
        mean_weight = weight.mean(dim=0)
        mean_bias = bias.mean() if bias is not None else 0.0

        is_wide = dtype is hidden.dtype is weight.dtype and torch.finfo(dtype).bits >= 32
        chunks = _in_one_buffer if is_wide and hidden.device.type == "cpu" else _by_softmax
        normalizers, label_logits = chunks(hidden, weight, bias, labels, gradients, dtype)
        likelihood = (normalizers - label_logits).sum()
        uniform = (normalizers - (hidden @ mean_weight + mean_bias)).sum()

        if gradients is not None:
            gradients.subtract_labels(labels, smoothing, mean_weight)
            ctx.save_for_backward(gradients.hidden, gradients.weight, gradients.bias)

        # (1 - ε) CE against the label + ε CE against the uniform distribution
        loss = (1.0 - smoothing) * likelihood + smoothing * uniform
        ctx.mark_non_differentiable(likelihood)
        return loss, likelihood


def _in_one_buffer(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    labels: Tensor,
    gradients: "_Gradients | None",
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor]:
    """log Σ exp(z) and the label's logit of each row, (row) both, by powers of two in one buffer.

    A softmax would read the logits more often and write them twice. Here each row is exp(z), and
    what is made of it by products is small and divided by the row's sum: 3,500 rows and 8,000
    words take 0.94 of the time and half the buffers (float32, one thread of an AMD EPYC).
    """
    del dtype  # that of all
    rows_at_once = min(_CHUNK_ROWS, len(hidden))
    buffer = hidden.new_empty(rows_at_once, len(weight))
    normalizers, label_logits = (hidden.new_empty(len(hidden)) for _ in range(2))
    # exp(z) = 2^(z log₂ e), and a power of two takes two thirds of the time of exp
    scaled_hidden = hidden * _LOG2_E
    scaled_bias = None if bias is None else bias * _LOG2_E
    is_bounded = _largest_logit(hidden, weight, bias) < _LARGEST_EXPONENT

    for first in range(0, len(hidden), _CHUNK_ROWS):
        rows = slice(first, min(first + _CHUNK_ROWS, len(hidden)))
        powers = buffer[: rows.stop - first]  # first the logits, times log₂ e
        torch.mm(scaled_hidden[rows], weight.T, out=powers)
        if scaled_bias is not None:
            powers += scaled_bias
        label_logits[rows] = powers.gather(1, labels[rows, None]).squeeze(1)

        # no power of a bounded row is zero or infinite; others are taken relative to their largest
        largest = None if is_bounded else powers.amax(dim=1)
        if largest is not None:
            powers -= largest.unsqueeze(1)
        sums = powers.exp2_().sum(dim=1)
        normalizers[rows] = sums.log2() if largest is None else sums.log2() + largest
        if gradients is not None:
            gradients.add_powers(rows, powers, sums)

    return normalizers / _LOG2_E, label_logits / _LOG2_E


def _largest_logit(hidden: Tensor, weight: Tensor, bias: Tensor | None) -> float:
    """A bound of |hidden weightᵀ + bias|, by Cauchy and Schwarz; NaN where a number is NaN."""
    if not len(hidden):
        return 0.0
    norms = [torch.linalg.vector_norm(each, dim=1).max() for each in (hidden, weight)]
    most = 0.0 if bias is None else bias.abs().max()
    return float(norms[0] * norms[1] + most)


def _by_softmax(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    labels: Tensor,
    gradients: "_Gradients | None",
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor]:
    """log Σ exp(z) and the label's logit of each row, (row) both, of logits in ``dtype``."""
    narrow_hidden, narrow_weight = rounded_up(hidden, dtype), weight.to(dtype)
    all_normalizers, all_label_logits = (hidden.new_empty(len(hidden)) for _ in range(2))

    for first in range(0, hidden.shape[0], _CHUNK_ROWS):
        # ``rows`` ends with the data, ``filled`` with the rows of zeros that round it up
        rows = slice(first, min(first + _CHUNK_ROWS, hidden.shape[0]))
        filled = slice(first, first + _CHUNK_ROWS)
        all_logits = functional.linear(narrow_hidden[filled], narrow_weight)
        if bias is not None:
            all_logits += bias

        probabilities = all_logits.softmax(dim=1)
        logits = all_logits[: rows.stop - first]

        columns = labels[rows, None]
        all_label_logits[rows] = logits.gather(1, columns).squeeze(1).to(hidden.dtype)
        all_normalizers[rows] = log_normalizers(logits, probabilities, columns, hidden.dtype)
        if gradients is not None:
            # the rounding rows have a softmax too, which must not reach the gradients
            probabilities[len(logits) :] = 0.0
            gradients.add_softmax(rows, probabilities, narrow_hidden[filled], narrow_weight)

    return all_normalizers, all_label_logits


def rounded_up(rows: Tensor, dtype: torch.dtype) -> Tensor:
    """``rows`` in ``dtype``; after a cast, padded with rows of zeros to a multiple of 64."""
    if dtype is rows.dtype:
        return rows
    missing = -rows.shape[-2] % _ROUND_ROWS
    return functional.pad(rows.to(dtype), (0, 0, 0, missing))


def log_normalizers(
    logits: Tensor, probabilities: Tensor, labels: Tensor, dtype: torch.dtype
) -> Tensor:
    """log Σ exp(z) of each row in ``dtype``, by log p = z − log Σ exp(z) at the label (row, 1).

    On a CPU, logsumexp takes several passes over the logits; the softmax that is already computed
    spares most of them. Where the label's probability is close to underflow, its logarithm is not
    exact, and logsumexp is computed after all.
    """
    if logits.device.type != "cpu":
        return logits.to(dtype).logsumexp(dim=1)
    at_label = probabilities.gather(1, labels).squeeze(1).to(dtype)
    # (row): log Σ exp(z) = z_y - log p_y, for whichever word y
    result = logits.gather(1, labels).squeeze(1).to(dtype) - at_label.log()

    # rare, so only these rows are computed again
    is_lost = at_label < _LEAST_PROBABILITY
    if bool(is_lost.any()):
        result[is_lost] = logits[is_lost].to(dtype).logsumexp(dim=1)
    return result


class _Gradients:
    """Gradients of the summed loss with respect to the inputs of the last linear map."""

    def __init__(self, hidden: Tensor, weight: Tensor, bias: Tensor | None) -> None:
        self._input = hidden
        self._weight = weight
        self.hidden = torch.empty_like(hidden)
        self.weight = torch.zeros_like(weight)
        self.bias = torch.zeros_like(bias) if bias is not None else None

    def add_softmax(
        self, rows: slice, probabilities: Tensor, narrow_hidden: Tensor, narrow_weight: Tensor
    ) -> None:
        """Add the part of a chunk's gradient that comes from softmax(z); padding rows are zeros."""
        self.hidden[rows] = (probabilities @ narrow_weight)[: rows.stop - rows.start]
        # addmm_ adds in place, but only in one dtype
        if probabilities.dtype is self.weight.dtype:
            self.weight.addmm_(probabilities.T, narrow_hidden)
        else:
            self.weight += probabilities.T @ narrow_hidden
        if self.bias is not None:
            self.bias += probabilities.sum(dim=0, dtype=self.bias.dtype)

    def add_powers(self, rows: slice, powers: Tensor, sums: Tensor) -> None:
        """Add a chunk's part from softmax(z), given as ``powers`` that are yet to be divided."""
        shares = sums.reciprocal().unsqueeze(1)  # (row, 1)
        torch.mm(powers, self._weight, out=self.hidden[rows]).mul_(shares)
        self.weight.addmm_(powers.T, self._input[rows] * shares)
        if self.bias is not None:
            self.bias.addmv_(powers.T, shares.squeeze(1))

    def subtract_labels(self, labels: Tensor, smoothing: float, mean_weight: Tensor) -> None:
        """Subtract the parts that come from the labels and from the smoothing."""
        kept = 1.0 - smoothing
        # ε / V, the part of every word
        uniform = smoothing / self._weight.shape[0]
        self.hidden -= kept * self._weight[labels] + smoothing * mean_weight
        # in one pass over all rows: a one-hot matrix is never built
        self.weight.index_add_(0, labels, self._input, alpha=-kept)
        self.weight -= uniform * self._input.sum(dim=0)
        if self.bias is not None:
            ones = torch.ones_like(labels, dtype=self.bias.dtype)
            self.bias.index_add_(0, labels, ones, alpha=-kept)
            self.bias -= uniform * labels.shape[0]
