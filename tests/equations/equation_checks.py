"""What the tests of the equations share."""

import torch
from torch import Tensor

Q = [[1.0, 0], [0, 1]]
K = [[1.0, 0], [0, 1], [1, 1]]
V = [[1.0, 2], [3, 4], [5, 6]]
"""The catalogue's example for EQ-50, 51, 61 and 74."""


def close(actual: Tensor, expected: object, tolerance: float = 1e-12) -> None:
    """Equal up to an absolute tolerance, shape and dtype included."""
    wanted = expected if isinstance(expected, Tensor) else torch.tensor(expected)
    torch.testing.assert_close(actual, wanted, atol=tolerance, rtol=0)


def self_attention_weights(heads: int = 2, d_model: int = 6) -> list[torch.Tensor]:
    """Projections of every head for queries, keys and values, and of the output."""
    size = d_model // heads
    return [*torch.randn(3, heads, d_model, size).unbind(), torch.randn(d_model, d_model)]
