"""In which numbers the matrix products of training are made."""

import contextlib
import time
from typing import Literal

import torch

Precision = Literal["fp32", "bf16", "fp16"]

_SIDE = 1024
"""Width of the products that are timed: large enough to be what a processor does best."""
_NEEDED_GAIN = 1.5
"""bfloat16 must be this much faster, or casting back and forth eats the gain."""
_ROUNDS = 5


def resolve_precision(wanted: Literal["auto", "fp32", "bf16", "fp16"], device: str) -> Precision:
    """``auto`` as one of the others: bfloat16 where a short measurement says that it pays.

    Parameters and optimizer stay in float32 either way. It never takes float16, whose gradients
    need scaling (``LossScale``): that is for accelerators without bfloat16, by name.
    """
    if wanted != "auto":
        return wanted
    if device == "cuda":
        return "bf16" if torch.cuda.is_bf16_supported() else "fp32"
    gain = _seconds(torch.float32) / _seconds(torch.bfloat16)
    return "bf16" if gain >= _NEEDED_GAIN else "fp32"


def autocast(precision: Precision, device: str) -> contextlib.AbstractContextManager[object]:
    """Within this context matrix products are made in ``precision``."""
    dtype = torch.float16 if precision == "fp16" else torch.bfloat16
    return torch.autocast(device, dtype, enabled=precision != "fp32")


def _seconds(dtype: torch.dtype) -> float:
    """The fastest of a few products of two square matrices."""
    matrix = torch.ones(_SIDE, _SIDE, dtype=dtype)
    best = float("inf")
    for _ in range(_ROUNDS):
        began = time.perf_counter()
        torch.mm(matrix, matrix)
        best = min(best, time.perf_counter() - began)
    return best
