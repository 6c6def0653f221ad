"""The sinusoids of positions seen as waves, and why attention needs positions at all."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pellucid.core.errors import ShapeError
from pellucid.equations.positions import BASE
from pellucid.equations.shapes import Number


def wavelength(feature: int, d_model: int) -> float:
    """The number of positions after which a feature of the sinusoidal encoding repeats.

        λ(δ) = 2π · 10^(4δ/d) for even δ,   λ(δ - 1) for odd δ

    EQ: 26, 27.  Source: Bayesuvius, (18).
    Symbols: feature = δ, d_model = d; the unit is one position.

    From 2π up to 2π · 10^(4(d-2)/d), a little short of the 2π · 10⁴ that is often said (ER-31).
    """
    even = feature - feature % 2
    return float(2 * math.pi * 10.0 ** (4 * even / d_model))


def wavelength_positions(
    length: int, d_model: int, start: int = 0, dtype: torch.dtype | None = None
) -> Float[Tensor, "{length} {d_model}"]:
    """The sinusoidal encoding, written with wavelengths.

        E_pos[δ, α] = sin(2π α / λ(δ)) for even δ,   cos(2π α / λ(δ)) for odd δ

    EQ: 26.  Source: Bayesuvius, (18), there in columns and with a wrong index (ER-29).
    Symbols: row α - start = position α, δ = feature, λ = wavelength.
    """
    positions = torch.arange(start, start + length, dtype=torch.float64)
    columns = []
    for feature in range(d_model):
        angles = 2 * math.pi * positions / wavelength(feature, d_model)
        columns.append(angles.cos() if feature % 2 else angles.sin())
    return torch.stack(columns, dim=-1).to(dtype or torch.get_default_dtype())


def position_shift(
    distance: int, d_model: int, dtype: torch.dtype | None = None
) -> Float[Tensor, "{d_model} {d_model}"]:
    """The matrix that turns the encoding of any position n into that of n + k.

        pₙ₊ₖ = pₙ Rₖ,   Rₖ = rotations by k / 10000^(2i/d), one per pair of features

    EQ: 32.  Source: derived; Vaswani et al. (2017), §3.5 ("a linear function of PE_pos").
    Symbols: distance = k, d_model = d.
    Raises: ShapeError if d_model is odd: the last sine would lack its cosine.
    """
    _require_even("d_model", d_model)
    angles = distance / BASE ** (torch.arange(0, d_model, 2).double() / d_model)
    sines, cosines = angles.sin(), angles.cos()
    shift = torch.zeros(d_model, d_model, dtype=torch.float64)
    # each pair (sin nθ, cos nθ) is turned by kθ: a block of 2 × 2 on the diagonal for each pair
    shift[::2, ::2], shift[::2, 1::2] = cosines.diag(), -sines.diag()
    shift[1::2, ::2], shift[1::2, 1::2] = sines.diag(), cosines.diag()
    return shift.to(dtype or torch.get_default_dtype())


def is_permutation_equivariant(
    function: Callable[[Tensor], Tensor],
    x: Float[Tensor, "*batch length d_model"],
    order: Int[Tensor, " length"],
    tolerance: Number = 1e-12,
) -> bool:
    """Whether a function ignores order: permuted rows in give the same rows out, permuted.

        f(Π X) = Π f(X)

    EQ: 20.  Source: Agarwal, §6.3, made precise (ER-59).
    Symbols: function = f, x = X, order = Π as row numbers, tolerance = largest difference.
    """
    # permuted before and permuted after: equal if the function does not know the order
    difference = function(x[..., order, :]) - function(x)[..., order, :]
    return bool(difference.abs().max() <= tolerance)


def _require_even(name: str, size: int) -> None:
    if size % 2:
        raise ShapeError(f"{name} must be even, for features go in pairs, got {size}")
