"""One update of the parameters from their gradient: Adam, and the clipping before it."""

from jaxtyping import Float
from torch import Tensor

from pellucid.equations.shapes import Number


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
