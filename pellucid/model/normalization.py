"""The norm of a row, with the gain and the bias that it learns."""

from typing import assert_never

import torch
from jaxtyping import Float
from torch import Tensor, nn

from pellucid.equations.fused import fused_layer_norm
from pellucid.equations.normalization import l2_centered_norm, l2_norm, rms_norm
from pellucid.model.config import ModelConfig
from pellucid.model.precision import widened


class Norm(nn.Module):
    """g ⊙ (a − μ) / √(σ² + ε) + b for each row, or another norm that the config names.

    EQ: 91, 92, 94, 98.  Source: Ba et al. (2016), eq. (4); Bayesuvius for ``l2`` and
    ``l2_centered``, which learn nothing; Zhang and Sennrich (2019) for ``rms``, which has no bias.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.kind = config.norm_kind
        has_gain = config.norm_affine and self.kind in ("layer", "rms")
        has_bias = config.norm_affine and self.kind == "layer"
        self.gain = nn.Parameter(torch.ones(config.d_model)) if has_gain else None
        self.bias = nn.Parameter(torch.zeros(config.d_model)) if has_bias else None
        self.eps = config.norm_eps

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Normalize each row."""
        match self.kind:
            case "layer":
                return fused_layer_norm(x, self.gain, self.bias, self.eps)
            case "rms":
                return rms_norm(widened(x), self.gain, self.eps).to(x.dtype)
            case "l2":
                return l2_norm(widened(x), self.eps).to(x.dtype)
            case "l2_centered":
                return l2_centered_norm(widened(x), self.eps).to(x.dtype)
            case _:
                assert_never(self.kind)
