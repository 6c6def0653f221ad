"""The parts of a block beside attention: linear maps, feed-forward network, norm, Add & Norm."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import assert_never

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from pellucid.core.errors import ConfigError
from pellucid.equations.feed_forward import activate
from pellucid.equations.fused import fused_layer_norm
from pellucid.equations.normalization import normalize
from pellucid.equations.residual import add_and_norm, norm_and_add
from pellucid.equations.weights import FeedForwardWeights
from pellucid.model.config import BlockSettings, NetworkSettings
from pellucid.model.dropout import Dropout, DropoutSource
from pellucid.model.state import NoState, Reading, Step, SublayerState
from pellucid.model.trace import UNWATCHED, Trace

_NARROW_NAMES = ("w_qkv", "w_o", "inner.weight", "outer.weight", "gate.weight", "candidate.weight")
"""The matrices of attention, of an SSRU and of the feed-forward network. Embeddings, and with them
the last linear map, stay wide: logits rounded to eight bits would tie."""


def linear(
    x: Float[Tensor, "*batch inputs"],
    weight: Float[Tensor, "outputs inputs"],
    bias: Float[Tensor, " outputs"] | None,
) -> Float[Tensor, "*batch outputs"]:
    """x Wᵀ + b; with a matrix in bfloat16 only the product is computed in bfloat16.

    Law: tests/model/test_linear.py, equal to torch.nn.functional.linear up to that rounding.
    """
    if weight.dtype is x.dtype or weight.dtype is not torch.bfloat16:
        return functional.linear(x, weight, bias)

    # the bias is added after the cast back, so that it is not rounded
    product = functional.linear(x.to(weight.dtype), weight).to(x.dtype)
    return product if bias is None else product + bias


def output_parameters(
    config: NetworkSettings, embedding: nn.Parameter, vocabulary_size: int
) -> tuple[nn.Parameter, nn.Parameter | None]:
    """The matrix and the bias of the last linear map.

    Source: Vaswani et al. (2017), §3.4: tied, the matrix is that of the target embedding.
    """
    weight = (
        embedding
        if config.tie_output
        else nn.Parameter(torch.empty(vocabulary_size, config.d_model))
    )
    return weight, nn.Parameter(torch.zeros(vocabulary_size)) if config.output_bias else None


def narrow(model: nn.Module) -> None:
    """Keep the matrices of a Transformer's blocks in bfloat16 from now on; for inference.

    Norms, residual sums, attention and logits stay as they were, and with ``projection=two_stage``
    the matrices of queries, keys and values. Raises ConfigError if the
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


def store_by_columns(model: nn.Module) -> None:
    """Keep wide matrices column by column in memory from now on; for inference on a CPU.

    Names, shapes and numbers stay as they are. The product with a matrix that has more outputs than
    inputs is then 1.4 to 2.3 times as fast for one row and 1.1 to 1.7 times for up to 128 (float32
    on an AMD EPYC, 128 or 256 inputs); with one that has fewer outputs it would be slower.
    """
    for parameter in model.parameters():
        if parameter.dim() == 2 and parameter.shape[0] > parameter.shape[1]:
            parameter.data = parameter.data.t().contiguous().t()


def stream_dtype(x: Tensor) -> torch.dtype:
    """The dtype of the residual stream: under autocast on a CPU that of the matrix products.

    There a norm reads and writes bfloat16 and computes in float32, so that nothing is cast between
    two products; the casts would take longer than the products. Elsewhere the dtype stays as it is.
    """
    if x.device.type == "cpu" and torch.is_autocast_enabled("cpu"):
        return torch.get_autocast_dtype("cpu")
    return x.dtype


def widened(x: Tensor) -> Tensor:
    """``x`` in float32 if it is in fewer bits: sums of squares need them."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


class SublayerModule(nn.Module, ABC):
    """One sublayer of a block, without the residual connection and norm around it.

    It reads whole sequences, or one token after another with a state of its own; both ways give
    the same (``cached = full`` in docs/laws.md).
    """

    @abstractmethod
    def forward(
        self,
        x: Float[Tensor, "sentence length d_model"],
        reading: Reading,
        trace: Trace = UNWATCHED,
    ) -> Float[Tensor, "sentence length d_model"]:
        """Read whole sequences; ``trace`` keeps the intermediates by the names of its kind."""

    @abstractmethod
    def start(self, memory: Float[Tensor, "sentence source d_model"]) -> SublayerState:
        """The state before the first token, with one beam for each sentence of the encoder."""

    @abstractmethod
    def step(
        self, x: Float[Tensor, "row d_model"], state: SublayerState, step: Step
    ) -> tuple[Float[Tensor, "row d_model"], SublayerState]:
        """Read the newest token of each hypothesis alone; return the state after it (EQ-130)."""

    @abstractmethod
    def clear_weights(self) -> object:
        """The parameters in the shapes of the page of equations (``equations/weights.py``)."""


class FeedForward(SublayerModule):
    """max(0, x W₁ + b₁) W₂ + b₂, or with another activation than the paper's.

    EQ: 100, 101.  Source: Vaswani et al. (2017), §3.3, eq. (2).
    """

    def __init__(self, config: BlockSettings, source: DropoutSource) -> None:
        super().__init__()
        self.inner = nn.Linear(config.d_model, config.d_ff)
        self.outer = nn.Linear(config.d_ff, config.d_model)
        self.activation = config.activation
        self.dropout = Dropout(config.activation_dropout, source)

    def forward(
        self,
        x: Float[Tensor, "sentence length d_model"],
        reading: Reading,  # noqa: ARG002  # every sublayer is asked so
        trace: Trace = UNWATCHED,
    ) -> Float[Tensor, "sentence length d_model"]:
        """Apply the same two linear maps to each position."""
        return self._feed(x, trace)

    def start(self, memory: Float[Tensor, "sentence source d_model"]) -> NoState:  # noqa: ARG002
        """The empty state: no position reads another."""
        return NoState()

    def step(
        self,
        x: Float[Tensor, "row d_model"],
        state: SublayerState,
        step: Step,  # noqa: ARG002
    ) -> tuple[Float[Tensor, "row d_model"], SublayerState]:
        """Apply the two linear maps to the newest token."""
        return self._feed(x, UNWATCHED), state

    def clear_weights(self) -> FeedForwardWeights:
        """W₁, b₁, W₂ and b₂."""
        # torch.nn keeps a matrix as (outputs, inputs), the paper as (inputs, outputs)
        return FeedForwardWeights(
            self.inner.weight.T, self.inner.bias, self.outer.weight.T, self.outer.bias
        )

    def _feed(
        self, x: Float[Tensor, "*batch d_model"], trace: Trace
    ) -> Float[Tensor, "*batch d_model"]:
        preactivation = trace.keep("preactivation", linear(x, self.inner.weight, self.inner.bias))
        hidden = trace.keep("hidden", self.activate(preactivation))
        dropped: Tensor = self.dropout(hidden)
        return trace.keep("output", linear(dropped, self.outer.weight, self.outer.bias))

    def activate(self, x: Float[Tensor, "*batch inner"]) -> Float[Tensor, "*batch inner"]:
        """The activation between the two linear maps."""
        match self.activation:
            # PyTorch's kernels keep one tensor for the backward pass where the equation keeps four.
            case "relu":
                return functional.relu(x)
            case "gelu":
                return functional.gelu(x)
            case "swish":
                return functional.silu(x)
            case _:
                return activate(x, self.activation)


class Norm(nn.Module):
    """g ⊙ (a − μ) / √(σ² + ε) + b for each row, or another norm that the config names.

    EQ: 91, 92, 94, 98.  Source: Ba et al. (2016), eq. (4); Bayesuvius for ``l2`` and
    ``l2_centered``, which learn nothing; Zhang and Sennrich (2019) for ``rms``, which has no bias.
    """

    def __init__(self, config: BlockSettings) -> None:
        super().__init__()
        self.kind = config.norm_kind
        has_gain = config.norm_affine and self.kind in ("layer", "rms")
        has_bias = config.norm_affine and self.kind == "layer"
        self.gain = nn.Parameter(torch.ones(config.d_model)) if has_gain else None
        self.bias = nn.Parameter(torch.zeros(config.d_model)) if has_bias else None
        self.eps = config.norm_eps

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Normalize each row."""
        if self.kind == "layer":
            # for bfloat16 the kernel itself computes in float32
            return fused_layer_norm(x, self.gain, self.bias, self.eps)
        normalized = normalize(widened(x), self.kind, self.gain, self.bias, self.eps)
        return normalized.to(x.dtype)


class AddAndNorm(nn.Module):
    """The residual connection and norm of a sublayer: norm after the sum, or before the sublayer.

        post:  LayerNorm(x + Dropout(Sublayer(x)))
        pre:   x + Dropout(Sublayer(LayerNorm(x)))

    EQ: 95, 96.  Source: Vaswani et al. (2017), §3.1 and §5.4 (post); Xiong et al. (2020) (pre).
    """

    def __init__(self, config: BlockSettings, source: DropoutSource) -> None:
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
        """Apply ``sublayer`` with dropout on its output, the residual connection and the norm."""

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
