"""The linear maps of the blocks, whose matrices may be kept in fewer bits than everything else."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from pellucid.core.errors import ConfigError

_NARROW_NAMES = ("w_qkv", "w_o", "inner.weight", "outer.weight")
"""The matrices of attention and of the feed-forward network. Embeddings, and with them the last
linear map, stay wide: logits rounded to eight bits would tie."""


def linear(
    x: Float[Tensor, "*batch inputs"],
    weight: Float[Tensor, "outputs inputs"],
    bias: Float[Tensor, " outputs"] | None,
) -> Float[Tensor, "*batch outputs"]:
    """x Wᵀ + b; with a matrix in bfloat16 the product is made there, and the rest is not.

    Law: tests/model/test_linear.py, equal to torch.nn.functional.linear up to that rounding.
    """
    if weight.dtype is x.dtype or weight.dtype is not torch.bfloat16:
        return functional.linear(x, weight, bias)
    product = functional.linear(x.to(weight.dtype), weight).to(x.dtype)
    return product if bias is None else product + bias


def narrow(model: nn.Module) -> None:
    """Keep the matrices of a Transformer's blocks in bfloat16 from now on; for inference.

    Norms, residual sums, attention and logits stay as they were. Raises ConfigError if the
    model has no such matrix.
    """
    found = [p for name, p in model.named_parameters() if name.endswith(_NARROW_NAMES)]
    if not found:
        raise ConfigError(
            "only the matrices of a Transformer's blocks can be kept in bfloat16, and this model"
            " has none",
            hint="take float32",
        )
    for parameter in found:
        parameter.data = parameter.data.to(torch.bfloat16)
