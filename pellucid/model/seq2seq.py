"""The protocol between a model and everything that trains, searches or opens it."""

import dataclasses
from abc import ABC, abstractmethod
from typing import Protocol, TypeVar, runtime_checkable

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from pellucid.core.special import PAD_ID
from pellucid.equations.fused import fused_linear_cross_entropy
from pellucid.equations.softmax import softmax
from pellucid.model.config import ModelConfig, TranslatorConfig
from pellucid.model.dropout import DropoutSource
from pellucid.model.trace import UNWATCHED, Trace

MemoryT = TypeVar("MemoryT")
"""The type that ``encode`` returns; a search only hands it back to the model."""


@dataclasses.dataclass(frozen=True)
class Memory:
    """The output of the encoder: a hidden state for each source token."""

    states: Float[Tensor, "sentence source d_model"]
    may_attend: Bool[Tensor, "sentence source"]
    """False at padding."""


@dataclasses.dataclass(frozen=True)
class LossSums:
    """Sums over the target tokens of a batch without padding; a mean divides by ``token_count``."""

    loss: Float[Tensor, ""]
    """Cross-entropy against the smoothed labels, in nats."""
    negative_log_likelihood: Float[Tensor, ""]
    """Cross-entropy against the labels themselves, in nats."""
    token_count: int


@dataclasses.dataclass(frozen=True)
class OutputStates:
    """The logits of a batch as factors: hidden weightᵀ + bias."""

    hidden: Float[Tensor, "sentence target d_model"]
    weight: Float[Tensor, "vocabulary d_model"]
    bias: Float[Tensor, " vocabulary"] | None


@runtime_checkable
class State(Protocol):
    """The state of a decoder as a value: a step returns a new state."""

    @property
    def sentence_count(self) -> int:
        """How many source sentences are being translated."""
        ...

    @property
    def beam_count(self) -> int:
        """How many hypotheses each of them has."""
        ...

    @property
    def length(self) -> int:
        """How many tokens have been fed so far."""
        ...

    def select(self, rows: Int[Tensor, "sentence beam"]) -> "State":
        """Keep these rows, numbered ``sentence · beam_count + beam`` in this state.

        All rows that become the beams of one sentence must come from one sentence.
        """
        ...


class SequenceModel(nn.Module, ABC):
    """A model that learns from batches of ids, as training, checkpoints and bundles see it."""

    config: ModelConfig
    dropout_source: DropoutSource
    source_vocabulary_size: int
    target_vocabulary_size: int

    def __init__(
        self, config: ModelConfig, source_vocabulary_size: int, target_vocabulary_size: int
    ) -> None:
        super().__init__()
        self.config = config
        self.source_vocabulary_size = source_vocabulary_size
        self.target_vocabulary_size = target_vocabulary_size
        self.dropout_source = DropoutSource()

    @property
    def max_length(self) -> int | None:
        """The longest sequence it can number, in tokens with the stop; None is no limit."""
        return self.config.max_length

    @abstractmethod
    def loss(
        self,
        source: Int[Tensor, "sentence source"],
        target_input: Int[Tensor, "sentence target"],
        labels: Int[Tensor, "sentence target"],
        smoothing: float,
        non_padding: Int[Tensor, " real"] | None = None,
    ) -> LossSums:
        """The loss of a batch. Models of plain text get the same text on both sides.

        ``non_padding`` are the indices of the flattened labels that are not PAD, where the batch
        brings them; a model that chooses its positions itself does not read them.
        """


class PredictsTokens(SequenceModel):
    """A model that predicts every next token of a known text at once, with or without a source."""

    output_weight: Tensor
    """The matrix before the last softmax, (vocabulary, d_model)."""
    output_bias: Tensor | None

    @abstractmethod
    def hidden_states(
        self,
        source: Int[Tensor, "sentence source"],
        target_input: Int[Tensor, "sentence target"],
        trace: Trace = UNWATCHED,
    ) -> Float[Tensor, "sentence target d_model"]:
        """The last hidden states at every position of a known text (teacher forcing, EQ-121)."""

    def output_states(
        self,
        source: Int[Tensor, "sentence source"],
        target_input: Int[Tensor, "sentence target"],
        trace: Trace = UNWATCHED,
    ) -> OutputStates:
        """The factors of the logits of every next token."""
        hidden = self.hidden_states(source, target_input, trace)
        return OutputStates(hidden, self.output_weight, self.output_bias)

    def loss(
        self,
        source: Int[Tensor, "sentence source"],
        target_input: Int[Tensor, "sentence target"],
        labels: Int[Tensor, "sentence target"],
        smoothing: float,
        non_padding: Int[Tensor, " real"] | None = None,
    ) -> LossSums:
        """The loss against ``labels`` without PAD; the logits never exist all at once."""
        hidden = self.hidden_states(source, target_input)
        return loss_sums(
            hidden, self.output_weight, self.output_bias, labels, smoothing, non_padding
        )


class Seq2Seq(PredictsTokens):
    """A model that reads one sequence of ids and writes another."""

    config: TranslatorConfig

    @abstractmethod
    def encode(self, source: Int[Tensor, "sentence source"], trace: Trace = UNWATCHED) -> Memory:
        """Read source ids, each row ending in EOS and filled up with PAD."""

    def forward(
        self,
        source: Int[Tensor, "sentence source"],
        target_input: Int[Tensor, "sentence target"],
        trace: Trace = UNWATCHED,
    ) -> Float[Tensor, "sentence target vocabulary"]:
        """The logits of every next token given the true prefix (teacher forcing, EQ-121)."""
        hidden = self.hidden_states(source, target_input, trace)

        # (sentence, target, vocabulary), by far the largest tensor: a loss never builds it whole
        logits = functional.linear(hidden, self.output_weight, self.output_bias)
        logits = trace.keep("logits", logits)

        if trace.wants("probabilities"):
            trace.keep("probabilities", softmax(logits))  # EQ-113
        return logits

    @abstractmethod
    def start(self, memory: Memory) -> State:
        """The state before the first target token, with one beam for each sentence."""

    @abstractmethod
    def step(
        self, ids: Int[Tensor, "sentence beam"], state: State
    ) -> tuple[Float[Tensor, "sentence beam vocabulary"], State]:
        """Feed one token to each hypothesis; return the logits of the next and the new state."""


class Searchable(Protocol[MemoryT]):
    """A model that can be searched: any ``Seq2Seq``, or an ensemble of them."""

    @property
    def target_vocabulary_size(self) -> int:
        """The number of tokens that it chooses from."""
        ...

    @property
    def max_length(self) -> int | None:
        """The longest sequence it can number, in tokens with the stop; None is no limit."""
        ...

    def encode(self, source: Int[Tensor, "sentence source"]) -> MemoryT:
        """Read source ids, each row ending in EOS and filled up with PAD."""
        ...

    def start(self, memory: MemoryT) -> State:
        """The state before the first target token, with one beam for each sentence."""
        ...

    def step(
        self, ids: Int[Tensor, "sentence beam"], state: State
    ) -> tuple[Float[Tensor, "sentence beam vocabulary"], State]:
        """Feed one token to each hypothesis; return the logits of the next and the new state."""
        ...


def loss_sums(
    hidden: Float[Tensor, "sentence target d_model"],
    weight: Float[Tensor, "vocabulary d_model"],
    bias: Float[Tensor, " vocabulary"] | None,
    labels: Int[Tensor, "sentence target"],
    smoothing: float,
    non_padding: Int[Tensor, " real"] | None = None,
) -> LossSums:
    """The loss of ``hidden weightᵀ + bias`` against ``labels``, PAD left out (EQ-118, EQ-120).

    ``non_padding`` are the indices of the flattened labels that are not PAD. Without it they are
    computed here, which makes the host wait for an accelerator.
    """
    flat = labels.reshape(-1)
    chosen = flat != PAD_ID if non_padding is None else non_padding

    # padding is left out before the product with the vocabulary, the largest of the model
    real_labels = flat[chosen]
    loss, negative_log_likelihood = fused_linear_cross_entropy(
        hidden.flatten(0, 1)[chosen], weight, bias, real_labels, smoothing
    )

    return LossSums(loss, negative_log_likelihood, real_labels.shape[0])
