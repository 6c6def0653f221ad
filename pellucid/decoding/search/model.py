"""All that a search knows of a model, and how the model is made ready for it."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from pellucid.core.special import PAD_ID, STOP_ID
from pellucid.model.seq2seq import State

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


def pad_sources(
    sources: Sequence[Sequence[int]], model: nn.Module
) -> Int[Tensor, "sentence source"]:
    """Each source with its STOP, filled up to the longest, where the model is."""
    longest = max(len(ids) for ids in sources) + 1
    rows = [[*ids, STOP_ID] + [PAD_ID] * (longest - 1 - len(ids)) for ids in sources]
    return torch.tensor(rows, device=_device(model))


def is_on_cpu(model: nn.Module) -> bool:
    """Whether the model's products are made by this machine's processor."""
    return _device(model).type == "cpu"


def _device(model: nn.Module) -> torch.device:
    parameter = next(model.parameters(), None)
    return torch.device("cpu") if parameter is None else parameter.device


@contextlib.contextmanager
def inference(model: nn.Module) -> Iterator[None]:
    """No gradients and no dropout inside; a model in training goes back to it as it was."""
    training = [module for module in model.modules() if module.training]
    for module in training:
        module.training = False
    try:
        with torch.inference_mode():
            yield
    finally:
        for module in training:
            module.training = True
