"""How PyTorch is set while a model learns; whoever called finds it as it was."""

import contextlib
from collections.abc import Iterator

import torch

from pellucid.training.allocation import freed_memory_is_kept
from pellucid.training.config import RunConfig


@contextlib.contextmanager
def torch_for_training(config: RunConfig) -> Iterator[None]:
    """Threads, generator, tiny numbers and freed memory as training wants them."""
    if config.training.threads is not None:
        torch.set_num_threads(config.training.threads)
    torch.manual_seed(config.training.seed)
    torch.set_flush_denormal(True)  # numbers below 1e-38 are zeros that cost a hundred times more
    try:
        with freed_memory_is_kept():
            yield
    finally:
        torch.set_flush_denormal(False)  # whoever called may need numbers that small
