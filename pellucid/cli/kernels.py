"""How many compiled kernels a process keeps; to be said before PyTorch is imported."""

import os

KERNEL_BOUNDS = {"LRU_CACHE_CAPACITY": "64", "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "64"}
"""More than the layers of one model need for one batch. The defaults are 1,024 of each."""


def keep_few_kernels() -> None:
    """Bound what bfloat16 training on a CPU remembers, unless the environment says otherwise.

    PyTorch and oneDNN each keep the kernels they compiled for a shape of matrices, and nearly every
    batch has shapes of its own: a gigabyte and more in an hour. Compiling them anew costs little.
    """
    for name, capacity in KERNEL_BOUNDS.items():
        os.environ.setdefault(name, capacity)
