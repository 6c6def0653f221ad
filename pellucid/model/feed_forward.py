"""The feed-forward network that every position passes through alone."""

from typing import assert_never

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from pellucid.model.config import ModelConfig
from pellucid.model.dropout import Dropout, DropoutSource
from pellucid.model.linear import linear
from pellucid.model.trace import UNWATCHED, Trace


class FeedForward(nn.Module):
    """max(0, x W₁ + b₁) W₂ + b₂, or with another bend than the paper's.

    EQ: 100, 101.  Source: Vaswani et al. (2017), §3.3, eq. (2).
    """

    def __init__(self, config: ModelConfig, source: DropoutSource) -> None:
        super().__init__()
        self.inner = nn.Linear(config.d_model, config.d_ff)
        self.outer = nn.Linear(config.d_ff, config.d_model)
        self.activation = config.activation
        self.dropout = Dropout(config.activation_dropout, source)

    def forward(
        self, x: Float[Tensor, "*batch d_model"], trace: Trace = UNWATCHED
    ) -> Float[Tensor, "*batch d_model"]:
        """Each row through the same two linear maps."""
        preactivation = trace.keep("preactivation", linear(x, self.inner.weight, self.inner.bias))
        hidden = trace.keep("hidden", self._bend(preactivation))
        dropped: Tensor = self.dropout(hidden)
        return trace.keep("output", linear(dropped, self.outer.weight, self.outer.bias))

    def _bend(self, x: Tensor) -> Tensor:
        match self.activation:
            case "relu":
                return functional.relu(x)
            case "gelu":
                return functional.gelu(x)
            case "swish":
                return functional.silu(x)
            case _:
                assert_never(self.activation)
