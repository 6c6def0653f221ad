"""All that a search knows of a model, and a translator of a bundle."""

from typing import Protocol, TypeVar

from jaxtyping import Float, Int
from torch import Tensor

from pellucid.decoding.ensemble import Ensemble
from pellucid.model.seq2seq import Seq2Seq, State
from pellucid.text.tokenizers.interface import Tokenizer

MemoryT = TypeVar("MemoryT")


class Searchable(Protocol[MemoryT]):
    """What can be searched: any ``Seq2Seq``, and an ensemble of them."""

    @property
    def target_vocabulary_size(self) -> int:
        """How many tokens it chooses from."""
        ...

    @property
    def max_length(self) -> int | None:
        """The longest sequence it can number, in tokens with the stop; None is no limit."""
        ...

    def encode(self, source: Int[Tensor, "sentence source"]) -> MemoryT:
        """Read source ids, each row ending in STOP and filled up with PAD."""
        ...

    def start(self, memory: MemoryT) -> State:
        """A decoder that has said nothing, one beam for each sentence."""
        ...

    def step(
        self, ids: Int[Tensor, "sentence beam"], state: State
    ) -> tuple[Float[Tensor, "sentence beam vocabulary"], State]:
        """Feed one token to each hypothesis; the logits of the next, and the state after it."""
        ...


class Translatable(Protocol):
    """A model with its tokenizers, such as a ``Bundle``."""

    @property
    def model(self) -> Seq2Seq | Ensemble:
        """What translates."""
        ...

    @property
    def source_tokenizer(self) -> Tokenizer:
        """Cuts what it reads."""
        ...

    @property
    def target_tokenizer(self) -> Tokenizer:
        """Joins what it writes."""
        ...
