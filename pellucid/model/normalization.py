"""Layer normalization with a gain and a bias of its own."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from pellucid.equations.fused import fused_layer_norm
from pellucid.model.config import ModelConfig


class LayerNorm(nn.Module):
    """g ⊙ (a − μ) / √(σ² + ε) + b, for each row.

    EQ: 91, 92, 94.  Source: Ba et al. (2016), eq. (4).
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(config.d_model))
        self.bias = nn.Parameter(torch.zeros(config.d_model))
        self.eps = config.norm_eps

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Normalize each row."""
        return fused_layer_norm(x, self.gain, self.bias, self.eps)
