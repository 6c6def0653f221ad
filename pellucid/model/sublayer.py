"""Add & Norm, on whichever side of the sublayer the config puts the norm."""

from collections.abc import Callable
from typing import assert_never

from jaxtyping import Float
from torch import Tensor, nn

from pellucid.equations.residual import add_and_norm, norm_and_add
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

    def forward(
        self,
        x: Float[Tensor, "*batch d_model"],
        sublayer: Callable[[Tensor], Tensor],
        trace: Trace = UNWATCHED,
    ) -> Float[Tensor, "*batch d_model"]:
        """What the next sublayer gets, from what this one reads; dropout is on its output alone."""

        def dropped(rows: Tensor) -> Tensor:
            return self.dropout(sublayer(rows))  # type: ignore[no-any-return]

        def norm(rows: Tensor) -> Tensor:
            return trace.keep("norm", self.norm(rows))

        match self.placement:
            case "post":
                return add_and_norm(x, dropped(x), lambda rows: norm(trace.keep("residual", rows)))
            case "pre":
                return trace.keep("residual", norm_and_add(x, dropped, norm))
            case _:
                assert_never(self.placement)
