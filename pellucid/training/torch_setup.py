"""How PyTorch is set while a model learns; whoever called finds it as it was."""

import contextlib
import gc
from collections.abc import Iterator

import torch

from pellucid.training.allocation import freed_memory_is_kept
from pellucid.training.config import RunConfig


@contextlib.contextmanager
def torch_for_training(config: RunConfig) -> Iterator[None]:
    """Threads, generator, tiny numbers, freed memory and garbage as training wants them."""
    if config.training.threads is not None:
        torch.set_num_threads(config.training.threads)
    torch.manual_seed(config.training.seed)
    torch.set_flush_denormal(True)  # numbers below 1e-38 are zeros that cost a hundred times more
    gc.freeze()  # what has been imported stays: the collector need not look through it each time
    try:
        with freed_memory_is_kept():
            yield
    finally:
        gc.unfreeze()
        torch.set_flush_denormal(False)  # whoever called may need numbers that small
