"""Rows of ids put together for a model, and the model made ready for them."""

import contextlib
from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Int
from torch import Tensor, nn

from pellucid.core.special import PAD_ID, STOP_ID

_FEWEST_TOKENS = 256
"""No smaller batches are made to give every worker one: their products would be too thin."""


def token_batches(
    lengths: Sequence[int], token_budget: int, at_least: int = 1
) -> Iterator[list[int]]:
    """Indices, longest first, in batches of rows · (longest + stop) <= ``token_budget``.

    The longest come first, so that memory runs out at once or not at all. Where that would be
    fewer than ``at_least``, the batches are made smaller, within reason.
    """
    share = -(-sum(length + 1 for length in lengths) // at_least)
    token_budget = min(token_budget, max(share, _FEWEST_TOKENS))
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        if batch and (len(batch) + 1) * (lengths[batch[0]] + 1) > token_budget:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


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
