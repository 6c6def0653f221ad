"""The SSRU as a sublayer of a decoder, and its state: one vector for each hypothesis."""

import dataclasses

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from pellucid.equations.fused import fused_gated_recurrence
from pellucid.equations.weights import SsruWeights
from pellucid.model.config import BlockSettings
from pellucid.model.layers import SublayerModule, linear, widened
from pellucid.model.state import Kept, Reading, Step, SublayerState
from pellucid.model.trace import UNWATCHED, Trace


@dataclasses.dataclass(frozen=True)
class SsruState:
    """The cell of each hypothesis after its newest token."""

    cell: Float[Tensor, "row d_model"]

    def select(self, kept: Kept) -> "SsruState":
        """Keep these rows."""
        return SsruState(self.cell[kept.rows.flatten()])


class Ssru(SublayerModule):
    """fₜ = σ(xₜ W_f + b_f), cₜ = fₜ ⊙ cₜ₋₁ + (1 − fₜ) ⊙ xₜ W, hₜ = ReLU(cₜ).

    EQ: none.  Source: Kim et al. (2019), §3.1; Lei et al. (2018) for the recurrence.
    """

    def __init__(self, config: BlockSettings) -> None:
        super().__init__()
        self.gate = nn.Linear(config.d_model, config.d_model)
        self.candidate = nn.Linear(config.d_model, config.d_model, bias=False)

    def forward(
        self,
        x: Float[Tensor, "sentence length d_model"],
        reading: Reading,  # noqa: ARG002  # it reads what came before, and padding comes last
        trace: Trace = UNWATCHED,
    ) -> Float[Tensor, "sentence length d_model"]:
        """Read whole sequences, from the left to the right."""
        gates, candidates = self._inputs(x, trace)
        start = candidates.new_zeros(len(x), x.shape[-1])
        cells = fused_gated_recurrence(candidates, gates, start)
        return self._output(trace.keep("cell", cells), x, trace)

    def start(self, memory: Float[Tensor, "sentence source d_model"]) -> SsruState:
        """Cells of zeros: the source is not read."""
        return SsruState(widened(memory.new_zeros(memory.shape[0], memory.shape[2])))

    def step(
        self,
        x: Float[Tensor, "row d_model"],
        state: SublayerState,
        step: Step,  # noqa: ARG002  # no slots: each hypothesis has its own cell
    ) -> tuple[Float[Tensor, "row d_model"], SsruState]:
        """Add the newest token of each hypothesis to its mean."""
        assert isinstance(state, SsruState)
        gates, candidates = self._inputs(x, UNWATCHED)
        cells = torch.lerp(candidates, state.cell, gates)
        return self._output(cells, x, UNWATCHED), SsruState(cells)

    def clear_weights(self) -> SsruWeights:
        """W, W_f and b_f."""
        return SsruWeights(self.candidate.weight.T, self.gate.weight.T, self.gate.bias)

    def _inputs(self, x: Tensor, trace: Trace) -> tuple[Tensor, Tensor]:
        """The gates and candidates of all positions; they do not depend on the cells."""
        # in float32 at least: a mean over many words would lose the last of them in fewer bits
        before = widened(linear(x, self.gate.weight, self.gate.bias))
        gates = trace.keep("gate", trace.keep("preactivation", before).sigmoid())
        candidates = widened(linear(x, self.candidate.weight, None))
        return gates, trace.keep("candidate", candidates)

    def _output(self, cells: Tensor, x: Tensor, trace: Trace) -> Tensor:
        return trace.keep("output", functional.relu(cells).to(x.dtype))
