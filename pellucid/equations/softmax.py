"""Softmax: scores into weights that sum to one; and its derivative."""

from jaxtyping import Float
from torch import Tensor


def softmax(x: Float[Tensor, "*shape"], dim: int = -1) -> Float[Tensor, "*shape"]:
    """Positive numbers that sum to one along ``dim``, in proportion to the exponentials.

        pᵢ = exp(xᵢ) / Σⱼ exp(xⱼ)

    EQ: 38, 39, 113.  Source: Bayesuvius, (22); Vaswani et al. (2017), §3.2.1 and §3.4.
    Symbols: x = x, result = P.

    The maximum is subtracted first; the result is the same, and the exponentials stay finite.
    A row of nothing but -inf has no softmax and gives NaN; ``masked_softmax`` gives zeros.
    Differs: Bayesuvius prints the norm as ‖·‖₀, which does not sum to one; it must be ‖·‖₁ (ER-04).
    """
    if x.shape[dim] == 0:
        return x  # no keys: attention to a source without words
    # The shift cancels, so no gradient has to flow through it.
    exponentials = (x - x.amax(dim, keepdim=True).detach()).exp()
    return exponentials / exponentials.sum(dim, keepdim=True)


def log_softmax(x: Float[Tensor, "*shape"], dim: int = -1) -> Float[Tensor, "*shape"]:
    """The logarithm of ``softmax``, exact where the softmax itself would underflow.

        log pᵢ = xᵢ - log Σⱼ exp(xⱼ)

    EQ: 113, 118.  Source: Single Page, Training Phase; the logarithm of Bayesuvius, (22).
    Symbols: x = x, result = log P.
    """
    # the largest entry becomes 0: the sum of exponentials is at least 1, and its logarithm exact
    shifted = x - x.amax(dim, keepdim=True).detach()
    return shifted - shifted.exp().sum(dim, keepdim=True).log()
