"""Attention of a recurrent decoder over its encoder's states, in the three ways of 2015."""

import dataclasses
from typing import assert_never

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from pellucid.equations.alignment import attentional_state, general_scores
from pellucid.equations.attention import dot_products
from pellucid.equations.masks import masked_softmax
from pellucid.model.config import ModelConfig
from pellucid.model.trace import Trace


@dataclasses.dataclass(frozen=True)
class AttendedMemory:
    """The source as attention sees it, the same for all beams of a sentence."""

    keys: Float[Tensor, "sentence source d_model"]
    values: Float[Tensor, "sentence source d_model"]
    may_attend: Bool[Tensor, "sentence source"]
    """False where a row is padding."""

    def select(self, sentences: Int[Tensor, " chosen"]) -> "AttendedMemory":
        """These sentences alone."""
        return AttendedMemory(
            self.keys[sentences], self.values[sentences], self.may_attend[sentences]
        )


@dataclasses.dataclass(frozen=True)
class Look:
    """One look back at the source, with all that led to it."""

    scores: Float[Tensor, "sentence target source"]
    weights: Float[Tensor, "sentence target source"]
    context: Float[Tensor, "sentence target d_model"]
    output: Float[Tensor, "sentence target d_model"]

    def keep(self, trace: Trace) -> None:
        """Offer everything to ``trace``, as the one head of its attention."""
        trace.keep("scores", self.scores.unsqueeze(1))
        trace.keep("weights", self.weights.unsqueeze(1))
        trace.keep("context", self.context)
        trace.keep("output", self.output)


class RecurrentAttention(nn.Module):
    """h̃ₜ = tanh([cₜ ; hₜ] W_c), where cₜ is the mean of the source by fit to hₜ.

        dot:       score = hₜ · h̄ₛ
        general:   score = hₜᵀ W_a h̄ₛ
        additive:  score = v · tanh(hₜ W_a + h̄ₛ U_a)

    EQ: 135, 136.  Source: Luong et al. (2015), §3 and §3.1; Bahdanau et al. (2015), §3.1.
    Differs: Bahdanau et al. look with the state before the word is read and hand the context to
    the cell; here every kind looks with the state after it, as Luong et al. do.
    Law: tests/laws/test_recurrent_equals_clear.py.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width = config.d_model
        self.scoring = config.attention
        has_query, has_key = self.scoring != "dot", self.scoring == "additive"
        self.w_query = nn.Parameter(torch.empty(width, width)) if has_query else None
        self.w_key = nn.Parameter(torch.empty(width, width)) if has_key else None
        self.v = nn.Parameter(torch.empty(width)) if has_key else None
        self.w_output = nn.Parameter(torch.empty(2 * width, width))

    def remember(
        self,
        states: Float[Tensor, "sentence source d_model"],
        may_attend: Bool[Tensor, "sentence source"],
    ) -> AttendedMemory:
        """The source made ready; what of the scores hangs on it alone is computed here, once."""
        keys = states if self.w_key is None else states @ self.w_key
        return AttendedMemory(keys, states, may_attend)

    def forward(
        self, hidden: Float[Tensor, "sentence target d_model"], memory: AttendedMemory
    ) -> Look:
        """Look back from each of the decoder's states, those of all beams side by side."""
        scores = self._scores(hidden, memory.keys)
        weights = masked_softmax(scores, memory.may_attend.unsqueeze(1))
        context = (weights @ memory.values).to(hidden.dtype)
        output = attentional_state(context, hidden, self.w_output)
        return Look(scores, weights, context, output.to(hidden.dtype))

    def _scores(
        self,
        hidden: Float[Tensor, "sentence target d_model"],
        keys: Float[Tensor, "sentence source d_model"],
    ) -> Float[Tensor, "sentence target source"]:
        match self.scoring:
            case "dot":
                return dot_products(hidden, keys)
            case "general":
                assert self.w_query is not None
                return general_scores(hidden, keys, self.w_query)
            case "additive":
                assert self.w_query is not None
                assert self.v is not None
                query = (hidden @ self.w_query).unsqueeze(2)  # (sentence, target, 1, d_model)
                return torch.tanh(query + keys.unsqueeze(1)) @ self.v
            case _:
                assert_never(self.scoring)
