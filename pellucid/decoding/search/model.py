"""The protocol of a model that can be searched, and how a model is prepared for a search."""

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
        """Read source ids, each row ending in STOP and filled up with PAD."""
        ...

    def start(self, memory: MemoryT) -> State:
        """The state before the first target token, with one beam for each sentence."""
        ...

    def step(
        self, ids: Int[Tensor, "sentence beam"], state: State
    ) -> tuple[Float[Tensor, "sentence beam vocabulary"], State]:
        """Feed one token to each hypothesis; return the logits of the next and the new state."""
        ...


def pad_sources(
    sources: Sequence[Sequence[int]], model: nn.Module
) -> Int[Tensor, "sentence source"]:
    """Each source with its STOP, padded to the longest, on the device of the model."""
    longest = max(len(ids) for ids in sources) + 1
    rows = [[*ids, STOP_ID] + [PAD_ID] * (longest - 1 - len(ids)) for ids in sources]
    return torch.tensor(rows, device=_device(model))


def is_on_cpu(model: nn.Module) -> bool:
    """Whether the model computes on the CPU."""
    return _device(model).type == "cpu"


def _device(model: nn.Module) -> torch.device:
    parameter = next(model.parameters(), None)
    return torch.device("cpu") if parameter is None else parameter.device


@contextlib.contextmanager
def inference(model: nn.Module) -> Iterator[None]:
    """Disable gradients and dropout inside; modules in training mode return to it afterwards."""
    # module by module, as ``model.train()`` would also set those that were in evaluation mode
    training = [module for module in model.modules() if module.training]
    for module in training:
        module.training = False
    try:
        with torch.inference_mode():
            yield
    finally:
        for module in training:
            module.training = True
