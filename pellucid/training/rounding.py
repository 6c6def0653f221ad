"""Quantization-aware training: gradients at the matrices as they will be in eight bits."""

import contextlib
from collections.abc import Iterator

import torch

from pellucid.equations.regularization import rounded_to_int8
from pellucid.model.seq2seq import SequenceModel


@contextlib.contextmanager
def rounded_matrices(model: SequenceModel, rounding: str) -> Iterator[None]:
    """With the rounding ``int8``, a block in which every matrix of ``model`` is rounded.

    Gradients found inside are those at the rounded matrices; the optimizer then changes the exact
    ones, which are there again after the block, whatever happens in it: so small steps add up that
    rounding would lose. Gains and biases are never rounded. With ``none`` nothing happens.

    Source: Courbariaux et al. (2015), algorithm 1, for matrices of one bit; it is the
    straight-through estimator of Bengio et al. (2013), whose derivative of rounding is one.
    Law: tests/training/test_rounding.py.
    """
    if rounding == "none":
        yield
        return

    matrices = [each for each in model.parameters() if each.dim() > 1]
    exact = [each.data for each in matrices]
    with torch.no_grad():
        for matrix in matrices:
            matrix.data = rounded_to_int8(matrix.data)
    try:
        yield
    finally:
        for matrix, numbers in zip(matrices, exact, strict=True):
            matrix.data = numbers
