"""Norms: each row is brought to a standard size."""

from typing import assert_never

from jaxtyping import Float
from torch import Tensor

from pellucid.equations.choices import NormKind
from pellucid.equations.shapes import Number


def layer_norm(
    x: Float[Tensor, "*batch size"],
    gain: Float[Tensor, " size"] | None = None,
    bias: Float[Tensor, " size"] | None = None,
    eps: Number = 0.0,
) -> Float[Tensor, "*batch size"]:
    """Give each row mean 0 and deviation 1, then a learned gain and bias.

        LayerNorm(a; g, b) = g ⊙ (a - μ) / √(σ² + ε) + b

    EQ: 91, 93, 94.  Source: Agarwal, Def. 6.1; Ba et al. (2016), eq. (4).
    Symbols: x = a, gain = g, bias = b, eps = ε; μ, σ of ``mean_and_deviation``.

    None of the five sources has an ε (ER-49). Without it a row of equal numbers is 0/0 = NaN.
    Differs: the Annotated Transformer divides by k - 1 and adds ε outside the root.
    """
    # over the features of one row, (*batch, 1): other words and sentences have no part in it, so
    # training and evaluation compute the same
    centered = x - x.mean(dim=-1, keepdim=True)
    variance = centered.square().mean(dim=-1, keepdim=True)
    # ε under the root: a row of equal numbers becomes 0, and its gradient is finite
    return _gain_and_bias(centered / (variance + eps).sqrt(), gain, bias)


def rms_norm(
    x: Float[Tensor, "*batch size"],
    gain: Float[Tensor, " size"] | None = None,
    eps: Number = 0.0,
) -> Float[Tensor, "*batch size"]:
    """Give each row a mean square of 1, without moving its mean.

        RMSNorm(a; g) = g ⊙ a / √((1/k) Σ aᵢ² + ε)

    EQ: none.  Source: Zhang and Sennrich (2019), eq. (4).
    Symbols: x = a, gain = g, size = k, eps = ε.
    """
    # (*batch, 1); no mean is subtracted and no bias added: what helps is the scale, not the
    # centering (§1)
    mean_square = x.square().mean(dim=-1, keepdim=True)
    return _gain_and_bias(x / (mean_square + eps).sqrt(), gain, None)


def l2_norm(x: Float[Tensor, "*batch size"], eps: Number = 0.0) -> Float[Tensor, "*batch size"]:
    """Give each row the length 1.

        a / √(Σ aᵢ² + ε)

    EQ: 98.  Source: Bayesuvius, Skip Connection.
    Symbols: x = a = A + B, eps = ε (not in Bayesuvius).
    """
    return x / (x.square().sum(dim=-1, keepdim=True) + eps).sqrt()


def l2_centered_norm(
    x: Float[Tensor, "*batch size"], eps: Number = 0.0
) -> Float[Tensor, "*batch size"]:
    """Give each row mean 0, then length 1; √k times smaller than ``layer_norm``.

        (a - μ) / √(Σ (aᵢ - μ)² + ε)

    EQ: 93, 98.  Source: Bayesuvius, Skip Connection, with its optional X - ⟨X⟩ (ER-33).
    Symbols: x = a = A + B, μ = ⟨a⟩, eps = ε (not in Bayesuvius).
    """
    # the length is √k times the deviation, hence the factor between this and LayerNorm
    return l2_norm(x - x.mean(dim=-1, keepdim=True), eps)


def normalize(
    x: Float[Tensor, "*batch size"],
    kind: NormKind,
    gain: Float[Tensor, " size"] | None,
    bias: Float[Tensor, " size"] | None,
    eps: Number,
) -> Float[Tensor, "*batch size"]:
    """The norm that a config names; only ``layer`` has a bias, and the ``l2`` norms have no gain.

    EQ: 91, 98.  Source: Vaswani et al. (2017), §3.1, has ``layer``.
    """
    match kind:
        case "layer":
            return layer_norm(x, gain, bias, eps)
        case "rms":
            return rms_norm(x, gain, eps)
        case "l2":
            return l2_norm(x, eps)
        case "l2_centered":
            return l2_centered_norm(x, eps)
        case _:
            assert_never(kind)


def _gain_and_bias(x: Tensor, gain: Tensor | None, bias: Tensor | None) -> Tensor:
    scaled = x if gain is None else gain * x
    return scaled if bias is None else scaled + bias
