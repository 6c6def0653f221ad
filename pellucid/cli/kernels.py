"""How many compiled kernels a process keeps; to be said before PyTorch is imported."""

import os

KERNEL_BOUNDS = {"LRU_CACHE_CAPACITY": "2048", "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "2048"}
"""Preset ``multi30k`` needs some 1,500 for all shapes of its batches, whose rows come in round
numbers; each takes up to 0.4 MB. The defaults are 1,024 of each."""


def keep_few_kernels() -> None:
    """Bound what bfloat16 training on a CPU remembers, unless the environment says otherwise.

    PyTorch and oneDNN each keep the kernels they compiled for a shape of matrices. Compiling one
    takes some ten times as long as a product of a small model, so all must fit.
    """
    for name, capacity in KERNEL_BOUNDS.items():
        os.environ.setdefault(name, capacity)
