"""How many compiled kernels a process keeps; to be said before PyTorch is imported."""

import os

KERNEL_BOUNDS = {"LRU_CACHE_CAPACITY": "4096", "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "4096"}
"""A preset of width 128 needs a thousand for all shapes of its batches, whose rows come in round
numbers. The defaults are 1,024 of each."""


def keep_few_kernels() -> None:
    """Bound what bfloat16 training on a CPU remembers, unless the environment says otherwise.

    PyTorch and oneDNN each keep the kernels they compiled for a shape of matrices. Compiling one
    takes some ten times as long as a product of a small model, so all must fit.
    """
    for name, capacity in KERNEL_BOUNDS.items():
        os.environ.setdefault(name, capacity)
