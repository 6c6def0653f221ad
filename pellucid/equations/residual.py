"""Residual connections, with the norm after the sum or before the sublayer."""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor

from pellucid.equations.normalization import layer_norm


def residual(
    x: Float[Tensor, "*batch d_model"], sublayer_output: Float[Tensor, "*batch d_model"]
) -> Float[Tensor, "*batch d_model"]:
    """Add a sublayer's output to its input, so that the sublayer learns a change only.

        X_in + X_out

    EQ: 95, 97.  Source: Agarwal, §6.1; Vaswani et al. (2017), §3.1.
    Symbols: x = X_in (for cross attention the queries' side: Agarwal, Remark 6.4),
    sublayer_output = X_out.
    """
    # ∂/∂x = I + ∂Sublayer/∂x: the gradient passes along I whatever the sublayer does. In a pre-norm
    # stack nothing else stands on this way; in a post-norm stack every norm multiplies it.
    return x + sublayer_output


def add_and_norm(
    x: Float[Tensor, "*batch d_model"],
    sublayer_output: Float[Tensor, "*batch d_model"],
    norm: Callable[[Tensor], Tensor] = layer_norm,
) -> Float[Tensor, "*batch d_model"]:
    """Post-norm, as in the paper: add, then normalize.

        LayerNorm(x + Sublayer(x); g, b)

    EQ: 96, 109.  Source: Agarwal, Def. 6.3; Vaswani et al. (2017), §3.1.
    Symbols: x = x, sublayer_output = Sublayer(x), norm = LayerNorm(·; g, b).
    Differs: Agarwal, (5.4), closes its parenthesis too late (ER-08).
    """
    # the norm stands in the residual stream: every row that a block hands on is normalized
    return norm(residual(x, sublayer_output))


def norm_and_add(
    x: Float[Tensor, "*batch d_model"],
    sublayer: Callable[[Tensor], Tensor],
    norm: Callable[[Tensor], Tensor] = layer_norm,
) -> Float[Tensor, "*batch d_model"]:
    """Pre-norm: normalize what goes into the sublayer, and add its output to what came in.

        x + Sublayer(LayerNorm(x; g, b))

    EQ: none.  Source: Xiong et al. (2020), Table 1; the five sources are all post-norm.
    Symbols: x = x, sublayer = Sublayer, norm = LayerNorm(·; g, b).
    """
    # the residual stream itself is never normalized, so the stack needs a norm at its end
    return residual(x, sublayer(norm(x)))
