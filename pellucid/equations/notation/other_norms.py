"""Norms as the sources write them: mean and deviation, and Bayesuvius's division by the length."""

from jaxtyping import Float
from torch import Tensor

from pellucid.equations.normalization import l2_centered_norm, l2_norm
from pellucid.equations.residual import residual
from pellucid.equations.shapes import Number


def mean_and_deviation(
    x: Float[Tensor, "*batch size"],
) -> tuple[Float[Tensor, "*batch 1"], Float[Tensor, "*batch 1"]]:
    """Mean and population standard deviation of each row.

        μ = (1/k) Σ aᵢ,   σ = √((1/k) Σ (aᵢ - μ)²)

    EQ: 92.  Source: Agarwal, Def. 6.1; Ba et al. (2016), eq. (3).
    Symbols: x = a, size = k; results = (μ, σ).
    Differs: torch.std and the Annotated Transformer divide by k - 1.
    """
    mean = x.mean(dim=-1, keepdim=True)
    return mean, (x - mean).square().mean(dim=-1, keepdim=True).sqrt()


def skip_connection(
    x: Float[Tensor, "*batch d_model"],
    sublayer_output: Float[Tensor, "*batch d_model"],
    eps: Number = 0.0,
) -> Float[Tensor, "*batch d_model"]:
    """Bayesuvius's Add & Norm: add, then divide by the length, row by row.

        (A + B) / ‖A + B‖₂

    EQ: 98.  Source: Bayesuvius, Skip Connection.
    Symbols: x = A, sublayer_output = B.
    Differs: the paper's norm is LayerNorm (ER-33).
    """
    return l2_norm(residual(x, sublayer_output), eps)


def centered_skip_connection(
    x: Float[Tensor, "*batch d_model"],
    sublayer_output: Float[Tensor, "*batch d_model"],
    eps: Number = 0.0,
) -> Float[Tensor, "*batch d_model"]:
    """Bayesuvius's Add & Norm with the optional centering: LayerNorm / √d_model.

        (A + B - ⟨A + B⟩) / ‖A + B - ⟨A + B⟩‖₂

    EQ: 98.  Source: Bayesuvius, Skip Connection.
    Symbols: x = A, sublayer_output = B.
    """
    return l2_centered_norm(residual(x, sublayer_output), eps)
