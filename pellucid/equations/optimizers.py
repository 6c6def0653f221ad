"""One update of the parameters from their gradient: Adam, and the clipping before it."""

import torch
from jaxtyping import Float
from torch import Tensor

from pellucid.equations.shapes import Number

QUINTICS = (
    (8.2218, -23.3469, 16.6338),
    (3.9728, -2.8449, 0.5170),
    (3.4735, -2.5057, 0.4810),
    (2.5044, -1.7907, 0.4071),
)
"""a, b and c of each step. Each polynomial is the one with the least |1 - p(s)| over all s that may
reach it, from 0.003 to 1 at first (Remez's algorithm). These intervals end 2% higher than exact
arithmetic needs, because a polynomial rises fast beyond the end of its own, and bfloat16 rounds."""


def adam_update(
    parameter: Float[Tensor, "*shape"],
    gradient: Float[Tensor, "*shape"],
    mean: Float[Tensor, "*shape"],
    square: Float[Tensor, "*shape"],
    step: int,
    rate: Number,
    beta_1: Number = 0.9,
    beta_2: Number = 0.98,
    eps: Number = 1e-9,
    weight_decay: Number = 0.0,
) -> tuple[Float[Tensor, "*shape"], Float[Tensor, "*shape"], Float[Tensor, "*shape"]]:
    """Move each parameter by about the learning rate, against the sign of its recent gradients.

        m ← β₁ m + (1 - β₁) g,   v ← β₂ v + (1 - β₂) g²
        θ ← (1 - ηλ) θ - η · m / (1 - β₁ᵗ) / (√(v / (1 - β₂ᵗ)) + ε)

    EQ: none.  Source: Kingma and Ba (2015), Algorithm 1; Loshchilov and Hutter (2019), Algorithm 2,
    for λ; Vaswani et al. (2017), §5.3, for β₁, β₂ and ε.
    Symbols: parameter = θ, gradient = g, mean = m, square = v, step = t (counts from 1), rate = η,
    eps = ε, weight_decay = λ; results = (θ, m, v); m and v begin at zero; as torch.optim.AdamW.
    Differs: TensorFlow's Adam adds ε before it corrects v, which makes its ε larger at first.
    """
    mean = beta_1 * mean + (1 - beta_1) * gradient
    square = beta_2 * square + (1 - beta_2) * gradient.square()

    # Both means begin at zero; the divisions undo what that takes from them in the first steps.
    unbiased_mean = mean / (1 - beta_1**step)
    unbiased_square = square / (1 - beta_2**step)
    # The decay acts on the parameter itself and not through the gradient, which Adam would divide
    # by √v (Loshchilov and Hutter, 2019).
    decayed = (1 - rate * weight_decay) * parameter
    return decayed - rate * unbiased_mean / (unbiased_square.sqrt() + eps), mean, square


def orthogonalize(
    matrix: Float[Tensor, "*batch rows columns"], eps: Number = 1e-7
) -> Float[Tensor, "*batch rows columns"]:
    """A matrix with the same singular vectors, whose singular values are all near 1.

        X₀ = G / ‖G‖,   Xₖ₊₁ = aₖ Xₖ + (bₖ A + cₖ A²) Xₖ  with A = Xₖ Xₖᵀ,   k = 0 to 3

    EQ: none.  Source: Amsel et al. (2025), The Polar Express, arXiv:2505.16932, §3, for polynomials
    that differ from step to step; Jordan et al. (2024), Muon, for the iteration.
    Symbols: matrix = G; aₖ, bₖ, cₖ = ``QUINTICS``.

    A polynomial in the singular values: 0 stays 0, and those from 0.003 to 1 come to lie between
    0.778 and 1.222. Differs: Jordan et al. (2024) take one polynomial five times, and come to lie
    between 0.681 and 1.203.
    """
    # the smaller of the two products; G and Gᵀ have the same singular values
    is_tall = matrix.shape[-2] > matrix.shape[-1]
    x = matrix.mT if is_tall else matrix
    # no singular value is larger than the norm of all entries: the iteration needs them below 1
    norm: Tensor = torch.linalg.matrix_norm(x, keepdim=True)
    x = x / (norm + eps)

    for a, b, c in QUINTICS:
        square = x @ x.mT  # (*batch, rows, rows)
        x = a * x + (b * square + c * square @ square) @ x
    return x.mT if is_tall else x


def muon_update(
    parameter: Float[Tensor, "*batch rows columns"],
    gradient: Float[Tensor, "*batch rows columns"],
    momentum: Float[Tensor, "*batch rows columns"],
    rate: Number,
    beta: Number = 0.95,
    weight_decay: Number = 0.0,
) -> tuple[Float[Tensor, "*batch rows columns"], Float[Tensor, "*batch rows columns"]]:
    """Move a matrix equally far in every direction in which its gradients point.

        m ← β m + (1 - β) g
        θ ← (1 - ηλ) θ - η · 0.2 √max(rows, columns) · Orthogonalize(β m + (1 - β) g)

    EQ: none.  Source: Jordan et al. (2024), Muon, with Nesterov's momentum; Liu et al. (2025),
    arXiv:2502.16982, §2.2, for λ and the factor.
    Symbols: parameter = θ, gradient = g, momentum = m, rate = η, beta = β, weight_decay = λ;
    results = (θ, m); m begins at zero. For matrices between hidden states; Adam for all else.
    """
    momentum = beta * momentum + (1 - beta) * gradient
    direction = orthogonalize(beta * momentum + (1 - beta) * gradient)
    # the entries of an orthogonal matrix have the mean square 1 / max(rows, columns); Adam's steps
    # about 0.2: so both have one learning rate
    size = 0.2 * max(parameter.shape[-2:]) ** 0.5
    return (1 - rate * weight_decay) * parameter - rate * size * direction, momentum


def clip_gradient(
    gradient: Float[Tensor, "*shape"], norm: Number, longest: Number
) -> Float[Tensor, "*shape"]:
    """Shorten the gradient of all parameters together to the longest allowed, if it is longer.

        g ← g · min(1, c / ‖g‖₂)

    EQ: none.  Source: Pascanu et al. (2013), Algorithm 1.
    Symbols: gradient = the part of g that belongs to one parameter, norm = ‖g‖₂ over all
    parameters, longest = c; c = 0 is no limit.
    """
    if longest == 0 or norm <= longest:
        return gradient
    # one factor for all parameters: their common direction stays
    return gradient * (longest / norm)
