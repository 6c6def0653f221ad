"""Add & Norm, on whichever side of the sublayer the config puts the norm."""

from typing import assert_never

from jaxtyping import Float
from torch import Tensor, nn

from pellucid.model.config import ModelConfig
from pellucid.model.dropout import Dropout, DropoutSource
from pellucid.model.normalization import Norm
from pellucid.model.trace import UNWATCHED, Trace


class AddAndNorm(nn.Module):
    """What stands around a sublayer: norm after the residual sum, or before the sublayer.

        post:  LayerNorm(x + Dropout(Sublayer(x)))
        pre:   x + Dropout(Sublayer(LayerNorm(x)))

    EQ: 95, 96.  Source: Vaswani et al. (2017), §3.1 and §5.4 (post); Xiong et al. (2020) (pre).
    """

    def __init__(self, config: ModelConfig, source: DropoutSource) -> None:
        super().__init__()
        self.placement = config.norm
        self.norm = Norm(config)
        self.dropout = Dropout(config.dropout, source)

    def enter(
        self, x: Float[Tensor, "*batch d_model"], trace: Trace = UNWATCHED
    ) -> Float[Tensor, "*batch d_model"]:
        """What the sublayer reads."""
        match self.placement:
            case "post":
                return x
            case "pre":
                return trace.keep("norm", self.norm(x))
            case _:
                assert_never(self.placement)

    def leave(
        self,
        x: Float[Tensor, "*batch d_model"],
        sublayer_output: Float[Tensor, "*batch d_model"],
        trace: Trace = UNWATCHED,
    ) -> Float[Tensor, "*batch d_model"]:
        """What the next sublayer gets, from what this one read and what it said."""
        residual = trace.keep("residual", x + self.dropout(sublayer_output))
        if self.placement == "pre":
            return residual
        return trace.keep("norm", self.norm(residual))
