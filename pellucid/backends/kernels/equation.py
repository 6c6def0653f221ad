"""The computation of the kernels, in numpy: every number that they give is that of these functions.

A product adds whole numbers, whose sums are exact in 32 bits:

    q = round((x − low) · 127 / (high − low)),   low and high of each row
    y = ((q Qᵀ) · step + low · Σᵢ Qⱼᵢ) · s + b,   step = (high − low) / 127

Everything else is float32 in a fixed order: a sum has eight partial sums, which are added as
``ordered_sum`` says, and no product is fused with a sum. So the result is the same to the last bit
on every processor, and tests/engines/test_kernels.py holds the library to it. With matrices that
are ``Exact`` the same functions compute the model as torch does, up to the rounding of float32.

Clear, not fast: nothing is cached, and the whole prefix is read again for every word.
"""

import math

import numpy as np
import numpy.typing as npt

from pellucid.backends.kernels.weights import (
    CrossAttention,
    Exact,
    Layer,
    Matrix,
    Norm,
    Numbers,
    Rounded,
    SelfAttention,
    Ssru,
    Weights,
)
from pellucid.core.special import BOS_ID, EOS_ID, PAD_ID

_WORDS_AT_ONCE = 1024
"""The log of the sum over the vocabulary is taken of so many words after another."""


def ordered_sum(x: Numbers) -> Numbers:
    """The sum over the last axis: number i is added to partial sum i mod 8, in order.

    ((s₀ + s₄) + (s₂ + s₆)) + ((s₁ + s₅) + (s₃ + s₇))
    """
    count = x.shape[-1]
    padded = np.zeros((*x.shape[:-1], count + -count % 8), x.dtype)
    padded[..., :count] = x
    lanes = padded.reshape(*x.shape[:-1], -1, 8)

    sums = np.zeros((*x.shape[:-1], 8), np.float32)
    for index in range(lanes.shape[-2]):
        sums = sums + lanes[..., index, :]
    fours = sums[..., :4] + sums[..., 4:]
    twos = fours[..., :2] + fours[..., 2:]
    return np.asarray(twos[..., 0] + twos[..., 1], np.float32)


def exp(x: Numbers) -> Numbers:
    """eˣ as 2ⁿ times a polynomial, n the whole number next to x / ln 2.

    Source: the constants of the Cephes library. Within 2e-7 of eˣ, relative to it, from -87 to 88,
    to which x is clipped.
    """
    x = np.clip(x, np.float32(-87), np.float32(88))
    # adding and subtracting 1.5 · 2²³ rounds to a whole number
    shifted = x * np.float32(1.44269504) + np.float32(12582912)
    n = shifted - np.float32(12582912)
    # ln 2 in two parts, so that the difference is exact
    r = x - n * np.float32(0.693359375)
    r = r + n * np.float32(2.12194440e-4)

    p = np.full_like(r, 1.9875691500e-4)
    for factor in (1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1):
        p = p * r + np.float32(factor)
    p = p * r + np.float32(5.0000001201e-1)
    p = p * (r * r) + r + np.float32(1)
    return np.asarray(p * np.ldexp(np.float32(1), n.astype(np.int32)))


LEAST_WIDTH = np.float32(1e-36)
"""From it on 127 / width is a number of float32; a narrower row counts as constant."""


def quantize(x: Numbers) -> tuple[npt.NDArray[np.uint8], Numbers, Numbers]:
    """Each row as low + step · q, with q of 7 bits: (q, low, step)."""
    low, high = x.min(axis=-1), x.max(axis=-1)
    width = high - low
    with np.errstate(divide="ignore", over="ignore"):
        inverse = np.where(width > LEAST_WIDTH, np.float32(127) / width, np.float32(0))
    q = np.rint(np.clip((x - low[..., None]) * inverse[..., None], 0, 127))
    return q.astype(np.uint8), low, width / np.float32(127)


_OUTPUTS_AT_ONCE, _INPUTS_AT_ONCE = 4096, 1024
"""float32 holds sums of 1,024 products exactly: 127 · 127 · 1,024 < 2²⁴."""


def exact_sums(q: npt.NDArray[np.uint8], whole: npt.NDArray[np.int8]) -> npt.NDArray[np.int32]:
    """q Qᵀ in whole numbers, (rows, outputs): never beyond 127 · 127 · 2¹⁶ < 2³¹."""
    sums = np.zeros((len(q), len(whole)), np.int32)
    for output in range(0, len(whole), _OUTPUTS_AT_ONCE):
        outputs = slice(output, output + _OUTPUTS_AT_ONCE)
        for first in range(0, whole.shape[1], _INPUTS_AT_ONCE):
            inputs = slice(first, first + _INPUTS_AT_ONCE)
            # numpy multiplies matrices of integers slowly
            part = q[:, inputs].astype(np.float32) @ whole[outputs, inputs].T.astype(np.float32)
            sums[:, outputs] += part.astype(np.int32)
    return sums


def linear(x: Numbers, matrix: Matrix) -> Numbers:
    """x Wᵀ + b for each row, of a matrix that is rounded or exact."""
    match matrix:
        case Exact():
            y = x @ matrix.weight.T
            return np.asarray(y if matrix.bias is None else y + matrix.bias)
        case Rounded():
            q, low, step = quantize(x)
            sums = exact_sums(q, matrix.whole).astype(np.float32)
            of_weights = matrix.whole.sum(axis=1, dtype=np.int32).astype(np.float32)
            y = (sums * step[..., None] + of_weights * low[..., None]) * matrix.scale
            return np.asarray(y if matrix.bias is None else y + matrix.bias)


def look_up(ids: npt.NDArray[np.int32], matrix: Matrix, factor: float) -> Numbers:
    """The rows of an embedding matrix, times a factor."""
    match matrix:
        case Exact():
            return matrix.weight[ids] * np.float32(factor)
        case Rounded():
            scale = matrix.scale[ids] * np.float32(factor)
            return matrix.whole[ids].astype(np.float32) * scale[:, None]


def layer_norm(x: Numbers, norm: Norm, eps: float) -> Numbers:
    """(x − μ) / √(σ² + ε) ⊙ g + b for each row (EQ-91)."""
    size = np.float32(x.shape[-1])
    mean = (ordered_sum(x) / size)[..., None]
    variance = ordered_sum((x - mean) * (x - mean)) / size
    inverse = np.float32(1) / np.sqrt(variance + np.float32(eps))
    return np.asarray((x - mean) * inverse[..., None] * norm.gain + norm.bias)


def rotate(x: Numbers, table: Numbers) -> Numbers:
    """Each pair of features by the angle of its row: (position, heads, size), (position, size)."""
    sine, cosine = table[:, None, ::2], table[:, None, 1::2]
    even, odd = x[..., ::2], x[..., 1::2]
    turned = np.stack((even * cosine - odd * sine, even * sine + odd * cosine), axis=-1)
    return turned.reshape(x.shape)


def attend(q: Numbers, k: Numbers, v: Numbers, *, causal: bool) -> Numbers:
    """softmax(q kᵀ / √dₖ) v of each head (EQ-52); (position, heads, size) each.

    A causal query attends to the keys up to its own position.
    """
    out = np.zeros((len(q), *v.shape[1:]), np.float32)
    for row, query in enumerate(q):
        seen = row + 1 if causal else len(k)
        # (heads, key)
        scores = ordered_sum(query * k[:seen]).T / np.sqrt(np.float32(q.shape[-1]))
        weights = exp(scores - scores.max(axis=-1, keepdims=True))
        weights = weights * (np.float32(1) / ordered_sum(weights))[:, None]
        for key in range(seen):
            out[row] = out[row] + weights[:, key, None] * v[key]
    return out


def self_attention(x: Numbers, layer: SelfAttention, model: Weights, *, causal: bool) -> Numbers:
    """Multi-head attention over one's own sequence (EQ-83)."""
    keys = model.heads * model.key_size
    packed = linear(x, layer.packed)
    q, k, v = (
        part.reshape(len(x), model.heads, -1) for part in np.split(packed, [keys, 2 * keys], axis=1)
    )
    if model.positions == "rotary":
        assert model.table is not None
        q, k = rotate(q, model.table[: len(x)]), rotate(k, model.table[: len(x)])
    return linear(attend(q, k, v, causal=causal).reshape(len(x), -1), layer.out)


def cross_attention(x: Numbers, memory: Numbers, layer: CrossAttention, model: Weights) -> Numbers:
    """Multi-head attention to the encoder's output (EQ-89)."""
    keys = model.heads * model.key_size
    q = linear(x, layer.query).reshape(len(x), model.heads, -1)
    k, v = (
        part.reshape(len(memory), model.heads, -1)
        for part in np.split(linear(memory, layer.memory), [keys], axis=1)
    )
    return linear(attend(q, k, v, causal=False).reshape(len(x), -1), layer.out)


def ssru(x: Numbers, layer: Ssru) -> Numbers:
    """fₜ = σ(xₜ W_f + b_f), cₜ = fₜ ⊙ cₜ₋₁ + (1 − fₜ) ⊙ xₜ W, hₜ = max(0, cₜ).

    Source: Kim et al. (2019), §3.1.
    """
    candidates, gates = np.split(linear(x, layer.both), 2, axis=1)
    gates = np.float32(1) / (exp(-gates) + np.float32(1))
    cell = np.zeros_like(x[0])
    out = np.empty_like(x)
    for t, (candidate, gate) in enumerate(zip(candidates, gates, strict=True)):
        cell = gate * cell + (np.float32(1) - gate) * candidate
        out[t] = np.maximum(cell, np.float32(0))
    return out


def feed_forward(x: Numbers, layer: Layer, model: Weights) -> Numbers:
    """activation(x W₁ + b₁) W₂ + b₂ (EQ-100)."""
    hidden = linear(x, layer.inner)
    if model.activation == "relu":
        hidden = np.maximum(hidden, np.float32(0))
    else:
        hidden = hidden / (exp(-hidden) + np.float32(1))
    return linear(hidden, layer.outer)


def block(x: Numbers, memory: Numbers | None, layer: Layer, model: Weights) -> Numbers:
    """The sublayers of a block, each with its residual sum and norm (EQ-95, EQ-96)."""

    def around(x: Numbers, norm: Norm, sublayer: object) -> Numbers:
        assert callable(sublayer)
        if model.norm == "pre":
            return np.asarray(x + sublayer(layer_norm(x, norm, model.norm_eps)))
        return layer_norm(x + sublayer(x), norm, model.norm_eps)

    match layer.reading:
        case Ssru() as recurrence:
            x = around(x, layer.reading_norm, lambda rows: ssru(rows, recurrence))
        case SelfAttention() as attention:
            causal = memory is not None
            x = around(
                x,
                layer.reading_norm,
                lambda rows: self_attention(rows, attention, model, causal=causal),
            )
    if layer.cross is not None:
        cross, norm = layer.cross, layer.cross_norm
        assert norm is not None
        assert memory is not None
        x = around(x, norm, lambda rows: cross_attention(rows, memory, cross, model))
    return around(x, layer.feed_norm, lambda rows: feed_forward(rows, layer, model))


def encode(model: Weights, source: npt.NDArray[np.int32]) -> Numbers:
    """The hidden states of one source, which ends with its stop."""
    x = _embed(model, look_up(source, model.source, model.embedding_scale))
    for layer in model.encoder:
        x = block(x, None, layer, model)
    norm = model.encoder_norm
    return x if norm is None else layer_norm(x, norm, model.norm_eps)


def decode(model: Weights, memory: Numbers, prefix: npt.NDArray[np.int32]) -> Numbers:
    """The logits of every next word of a prefix that begins with BOS, (word, vocabulary)."""
    x = look_up(prefix, model.target, model.embedding_scale)
    if model.start_is_zero:
        x[prefix == BOS_ID] = 0.0
    x = _embed(model, x)
    for layer in model.decoder:
        x = block(x, memory, layer, model)
    norm = model.decoder_norm
    return linear(x if norm is None else layer_norm(x, norm, model.norm_eps), model.output)


def _embed(model: Weights, x: Numbers) -> Numbers:
    """The vectors of words with those of their positions."""
    if model.positions != "added":
        return x
    assert model.table is not None
    return x + model.table[: len(x)]


def log_probs(logits: Numbers) -> Numbers:
    """The logits less the log of the sum of their exponentials, for each row."""
    largest = np.full(len(logits), -math.inf, np.float32)
    total = np.zeros(len(logits), np.float32)
    for first in range(0, logits.shape[1], _WORDS_AT_ONCE):
        some = logits[:, first : first + _WORDS_AT_ONCE]
        before, largest = largest, np.maximum(largest, some.max(axis=1))
        # the sum so far is of e^(z − the largest so far); the first one is empty
        if first:
            total = total * np.exp((before - largest).astype(np.float64)).astype(np.float32)
        total = total + ordered_sum(exp(some - largest[:, None]))
    log_sum = largest + np.log(total.astype(np.float64)).astype(np.float32)
    return np.asarray(logits - log_sum[:, None])


def forced_log_probs(
    model: Weights, source: npt.NDArray[np.int32], target: npt.NDArray[np.int32]
) -> Numbers:
    """log p of each token of a target and of its stop; neither source nor target has one yet."""
    memory = encode(model, np.append(source, EOS_ID).astype(np.int32))
    prefix = np.concatenate(([BOS_ID], target)).astype(np.int32)
    found = log_probs(decode(model, memory, prefix))
    return found[np.arange(len(prefix)), [*target.tolist(), EOS_ID]]


def greedy(
    model: Weights, source: npt.NDArray[np.int32], limit: int
) -> tuple[list[int], list[float]]:
    """The likeliest word again and again until EOS, which is forced after ``limit`` words.

    Returns the ids with EOS, and log p of each (EQ-123).
    """
    memory = encode(model, np.append(source, EOS_ID).astype(np.int32))
    ids: list[int] = []
    scores: list[float] = []
    while not ids or ids[-1] != EOS_ID:
        prefix = np.array([BOS_ID, *ids], np.int32)
        logits = decode(model, memory, prefix)[-1:]
        found = log_probs(logits)[0]
        allowed = logits[0].copy()
        allowed[[PAD_ID, BOS_ID]] = -math.inf
        word = int(allowed.argmax()) if len(ids) < limit else EOS_ID
        ids.append(word)
        scores.append(float(found[word]))
    return ids, scores
