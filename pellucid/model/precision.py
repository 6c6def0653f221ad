"""In which numbers rows travel from block to block."""

import torch
from torch import Tensor


def stream_dtype(x: Tensor) -> torch.dtype:
    """The dtype of rows between blocks: on a CPU under autocast that of the matrix products.

    There a norm reads and writes bfloat16 and computes in float32, so that nothing is cast between
    two products; casts would take longer than these. Elsewhere rows stay as they are.
    """
    if x.device.type == "cpu" and torch.is_autocast_enabled("cpu"):
        return torch.get_autocast_dtype("cpu")
    return x.dtype


def widened(x: Tensor) -> Tensor:
    """``x`` in float32 if it is in fewer bits: sums of squares need them."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x
