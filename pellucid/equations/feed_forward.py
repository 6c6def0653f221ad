"""The feed-forward network that every position goes through alone."""

import math
from collections.abc import Callable
from typing import assert_never

import torch
from jaxtyping import Float
from torch import Tensor

from pellucid.equations.choices import Activation


def relu(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """The rectified linear unit: negative numbers become zero.

        ReLU(x) = max(0, x)

    EQ: 99.  Source: Bayesuvius, (19).
    Symbols: x = T.
    """
    return x.clamp(min=0)


def gelu(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """A smooth ReLU: x times the probability that a standard normal number is below it.

        GELU(x) = x Φ(x) = x · (1 + erf(x / √2)) / 2

    EQ: none.  Source: Hendrycks and Gimpel (2016), §2.
    Symbols: x = x.
    Differs: BERT's original code and GPT-2 approximate Φ with tanh.
    """
    # Φ(x) = (1 + erf(x / √2)) / 2
    return x * (1 + torch.erf(x / math.sqrt(2))) / 2


def silu(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """A smooth ReLU: x times its own logistic function; also called swish.

        SiLU(x) = x σ(x) = x / (1 + exp(-x))

    EQ: none.  Source: Elfwing et al. (2017); Ramachandran et al. (2017).
    Symbols: x = x.
    """
    return x * torch.sigmoid(x)


def activate(x: Float[Tensor, "*shape"], kind: Activation) -> Float[Tensor, "*shape"]:
    """The activation function that a config names.

    EQ: 99.  Source: Vaswani et al. (2017), §3.3, has ``relu``; ``swish`` is ``silu``.
    """
    match kind:
        case "relu":
            return relu(x)
        case "gelu":
            return gelu(x)
        case "swish":
            return silu(x)
        case _:
            assert_never(kind)


def feed_forward(
    x: Float[Tensor, "*batch d_model"],
    w_1: Float[Tensor, "d_model d_ff"],
    b_1: Float[Tensor, " d_ff"],
    w_2: Float[Tensor, "d_ff d_model"],
    b_2: Float[Tensor, " d_model"],
    activation: Callable[[Tensor], Tensor] = relu,
) -> Float[Tensor, "*batch d_model"]:
    """Widen each row, set what is negative to zero, and narrow it again.

        FFN(x) = max(0, x W₁ + b₁) W₂ + b₂

    EQ: 100, 101, 102.  Source: Agarwal, Def. 6.5; Vaswani et al. (2017), §3.3, eq. (2).
    Symbols: x = x, w_1 = W₁, b_1 = b₁, w_2 = W₂, b_2 = b₂; activation = max(0, ·).
    Differs: Bayesuvius, (20), mixes positions and repeats b₁; both are misprints (ER-32).
    """
    # (*batch, d_model) → (*batch, d_ff) → (*batch, d_model); the product runs over the last axis
    # alone, so no position sees another
    return activation(x @ w_1 + b_1) @ w_2 + b_2
