"""Several models with one target vocabulary as one model: the mean of their log-probabilities."""

import dataclasses
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from pellucid.core.errors import ConfigError
from pellucid.model.seq2seq import Memory, Seq2Seq, State
from pellucid.model.trace import UNWATCHED, Trace


@dataclasses.dataclass(frozen=True)
class EnsembleState:
    """The state of each model; all have read the same target tokens."""

    states: tuple[State, ...]

    @property
    def sentence_count(self) -> int:
        """How many source sentences are being translated."""
        return self.states[0].sentence_count

    @property
    def beam_count(self) -> int:
        """How many hypotheses each of them has."""
        return self.states[0].beam_count

    @property
    def length(self) -> int:
        """How many tokens have been fed so far."""
        return self.states[0].length

    def select(self, rows: Int[Tensor, "sentence beam"]) -> "EnsembleState":
        """Keep these rows, in each model."""
        return EnsembleState(tuple(state.select(rows) for state in self.states))


class Ensemble(nn.Module):
    """Several models as one: the mean of their log-probabilities takes the place of logits.

    With the softmax that a search applies to it, it is ``equations.averages.ensemble_log_probs``.
    """

    def __init__(self, models: Sequence[Seq2Seq]) -> None:
        """Raises ConfigError if there is no model or their target vocabularies differ in size."""
        super().__init__()
        sizes = [model.target_vocabulary_size for model in models]
        if not sizes or len(set(sizes)) > 1:
            raise ConfigError(
                f"an ensemble needs models with one target vocabulary, got sizes {sizes}"
            )
        self.models = nn.ModuleList(models)
        # ModuleList forgets the type of its members
        self._members = tuple(models)
        self.target_vocabulary_size = sizes[0]

    @property
    def members(self) -> tuple[Seq2Seq, ...]:
        """The models, in the order given."""
        return self._members

    @property
    def max_length(self) -> int | None:
        """The longest sequence that every model can number; None is no limit."""
        lengths = [model.max_length for model in self._members]
        return min((length for length in lengths if length is not None), default=None)

    def encode(self, source: Int[Tensor, "sentence source"]) -> tuple[Memory, ...]:
        """The memory of each model."""
        return tuple(model.encode(source) for model in self._members)

    def forward(
        self,
        source: Int[Tensor, "sentence source"],
        target_input: Int[Tensor, "sentence target"],
        trace: Trace = UNWATCHED,
    ) -> Float[Tensor, "sentence target vocabulary"]:
        """The mean of the models' log-probabilities given the true prefix; a trace sees each."""
        log_probs = [
            model(source, target_input, trace.under(f"models.{index}")).log_softmax(dim=-1)
            for index, model in enumerate(self._members)
        ]
        # (model, sentence, target, vocabulary) → the mean over models
        return torch.stack(log_probs).mean(dim=0)

    def start(self, memory: tuple[Memory, ...]) -> EnsembleState:
        """The state before the first target token, with one beam for each sentence."""
        pairs = zip(self._members, memory, strict=True)
        return EnsembleState(tuple(model.start(own) for model, own in pairs))

    def step(
        self, ids: Int[Tensor, "sentence beam"], state: State
    ) -> tuple[Float[Tensor, "sentence beam vocabulary"], EnsembleState]:
        """Feed one token to each model; the mean of their log-probabilities."""
        assert isinstance(state, EnsembleState)
        steps = [
            model.step(ids, own) for model, own in zip(self._members, state.states, strict=True)
        ]
        # not logits: a softmax ignores what is added to a whole row, and models differ in it
        log_probs = [logits.log_softmax(dim=-1) for logits, _ in steps]
        # (model, sentence, beam, vocabulary) → the mean over models
        return torch.stack(log_probs).mean(dim=0), EnsembleState(tuple(new for _, new in steps))
