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
