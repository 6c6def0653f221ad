"""How a softmax reacts to its scores: its Jacobian, by formula and by differences."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from pellucid.equations.shapes import Number
from pellucid.equations.softmax import softmax


def scaled_softmax(s: Float[Tensor, "*shape"], scale: Number) -> Float[Tensor, "*shape"]:
    """Softmax of scores divided by ``scale``; the larger the scale, the flatter the result.

        p_C(s) = softmax(s / C)

    EQ: 45.  Source: Lee, Scaled Dot-Product Attention.
    Symbols: s = s, scale = C (√dₖ in attention; 1 is the plain softmax).
    """
    return softmax(s / scale)


def softmax_jacobian(
    s: Float[Tensor, "*batch size"], scale: Number = 1.0
) -> Float[Tensor, "*batch size size"]:
    """The derivative of every output of the scaled softmax by every input.

        dp_C / ds = (diag(p_C) - p_C ⊗ p_C) / C:  pᵢ(1 - pᵢ)/C for i = j,  -pᵢ pⱼ/C for i ≠ j

    EQ: 46, 47.  Source: Lee, Scaled Dot-Product Attention and its code ``jacobian``.
    Symbols: s = s, scale = C, entry [i, j] = ∂pᵢ/∂sⱼ.
    """
    p = scaled_softmax(s, scale)
    # (*batch, size, 1) · (*batch, 1, size): the outer product of p with itself
    return (torch.diag_embed(p) - p.unsqueeze(-1) * p.unsqueeze(-2)) / scale


def numeric_jacobian(
    function: Callable[[Tensor], Tensor], s: Float[Tensor, " size"], step: Number = 1e-5
) -> Float[Tensor, "outputs size"]:
    """The Jacobian by finite differences, moving one input at a time.

        ∂pᵢ/∂sⱼ ≈ (pᵢ(s + h eⱼ) - pᵢ(s - h eⱼ)) / 2h

    EQ: 46.  Source: Lee, Scaled Dot-Product Attention (definition of the Jacobian).
    Symbols: function = p, s = s, step = h.
    """
    # row j moves sⱼ alone and gives column j of the Jacobian; central differences have an error of
    # h², one-sided ones of h
    steps = step * torch.eye(s.shape[0], dtype=s.dtype, device=s.device)
    columns = [(function(s + move) - function(s - move)) / (2 * step) for move in steps]
    return torch.stack(columns, dim=-1)


def attention_gradients(
    query: Float[Tensor, "*batch query key_size"],
    key: Float[Tensor, "*batch key key_size"],
    value: Float[Tensor, "*batch key value_size"],
    upstream: Float[Tensor, "*batch query value_size"],
) -> tuple[
    Float[Tensor, "*batch query key_size"],
    Float[Tensor, "*batch key key_size"],
    Float[Tensor, "*batch key value_size"],
]:
    """The gradients of attention by its inputs, through the softmax's Jacobian in each row.

        dV = Aᵀ dO,   dA = dO Vᵀ,   dSᵢ = J(Sᵢ)ᵀ dAᵢ
        dQ = dS K / √dₖ,   dK = dSᵀ Q / √dₖ

    EQ: 46, 47.  Source: derived from EQ-50 and EQ-47 by the chain rule.
    Symbols: query = Q, key = K, value = V, upstream = dO, results = (dQ, dK, dV).

    dX is the derivative of a loss by X; O = A V, with A = softmax(S) and S = Q Kᵀ / √dₖ.
    J is symmetric, and J da = a ⊙ (da - a · da): a score rises, against its gradient, where more
    weight would lower the loss by more than the weights of its row do on average.
    """
    root = math.sqrt(key.shape[-1])
    scores = query @ key.mT / root
    of_weights = upstream @ value.mT  # (*batch, query, key)

    # a Jacobian for each query: (*batch, query, key, key) times (*batch, query, key, 1)
    of_scores = (softmax_jacobian(scores) @ of_weights.unsqueeze(-1)).squeeze(-1)
    of_value = softmax(scores).mT @ upstream
    return of_scores @ key / root, of_scores.mT @ query / root, of_value


def jacobian_pair(
    noise: Float[Tensor, "*batch size"], key_size: Number
) -> tuple[Float[Tensor, "*batch size size"], Float[Tensor, "*batch size size"]]:
    """The softmax Jacobians without and with scaling, for scores as large as dot products are.

        s = √dₖ · noise;   J(s, C = 1)  and  J(s, C = √dₖ)

    EQ: 48.  Source: Lee, code ``generate_jacobian_comparison``.
    Symbols: noise ~ N(0, 1), key_size = dₖ, results = (unscaled, scaled).
    Differs: Lee lets the number of scores stand for dₖ too; give that as ``key_size``
    for its figures (ER-58).
    """
    root = math.sqrt(key_size)
    s = noise * root
    return softmax_jacobian(s), softmax_jacobian(s, scale=root)


@dataclass(frozen=True)
class JacobianStatistics:
    """Statistics of the entries of one Jacobian (EQ-49, ER-57)."""

    mean: float
    """Always 0 up to rounding: every row of a softmax Jacobian sums to zero."""
    standard_deviation: float
    """Population standard deviation; the Frobenius norm divided by the size."""
    range: float
    """Largest entry minus smallest."""
    mean_magnitude: float
    """Mean of the absolute entries."""
    median_magnitude: float
    """Median of the absolute entries: what a typical entry is like."""
    largest_magnitude: float
    """Largest absolute entry; near zero when the softmax is saturated."""
    frobenius_norm: float
    """Root of the sum of squares."""


def jacobian_statistics(jacobian: Float[Tensor, "size size"]) -> JacobianStatistics:
    """The size and spread of a Jacobian's entries in a few numbers.

        mean, SD, range, mean |J|, median |J|, max |J|, ‖J‖_F

    EQ: 49.  Source: Lee, titles of its figures; the medians are what ER-57 asks for.
    Symbols: jacobian = J.
    """
    magnitudes = jacobian.abs()
    return JacobianStatistics(
        mean=jacobian.mean().item(),
        standard_deviation=jacobian.std(correction=0).item(),
        range=(jacobian.max() - jacobian.min()).item(),
        mean_magnitude=magnitudes.mean().item(),
        median_magnitude=magnitudes.quantile(0.5).item(),
        largest_magnitude=magnitudes.max().item(),
        frobenius_norm=jacobian.square().sum().sqrt().item(),
    )
