"""Padding, as the heads of a layer want to be told of it."""

from jaxtyping import Bool
from torch import Tensor


def mask_for_heads(
    may_attend: Bool[Tensor, "sentence source"],
) -> Bool[Tensor, "sentence 1 1 source"] | None:
    """One row for all heads and queries; None on a CPU if nothing is hidden, which is faster."""
    if may_attend.device.type == "cpu" and bool(may_attend.all()):
        return None
    return may_attend[:, None, None, :]
