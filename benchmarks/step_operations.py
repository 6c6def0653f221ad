"""How many floating-point operations an update needs, and how many a second the machine makes."""

import time

import torch

from pellucid.model.config import ModelConfig

_SIDE = 2048
"""Width of the matrices: large enough that a wider one is no faster."""
_GPU_SIDE = 8192
_SECONDS = 2.0


def update_operations(
    config: ModelConfig, vocabulary_size: int, shape: tuple[int, int, int, int]
) -> float:
    """Multiplications and additions of the matrix products of one update of a Transformer.

    ``shape`` is sentences, source and target length as padded, and real target tokens. A product
    costs as much again for each of its two gradients; the last linear map sees real tokens alone.
    Softmax, norms, dropout and the optimizer are not counted.
    """
    sentences, source, target, real = shape
    d_model, d_ff = config.d_model, config.d_ff
    square = 2.0 * d_model * d_model
    feed_forward = 4.0 * d_model * d_ff
    encoder = source * (4 * square + feed_forward) + 4.0 * source * source * d_model
    decoder = target * (6 * square + feed_forward) + 2 * source * square
    decoder += 4.0 * target * (target + source) * d_model
    blocks = config.encoder_layers * encoder + config.decoder_layers * decoder
    return 3.0 * (sentences * blocks + 2.0 * real * d_model * vocabulary_size)


def matrix_rate(dtype: torch.dtype, device: str) -> float:
    """Floating-point operations a second in products of two large square matrices."""
    side = _SIDE if device == "cpu" else _GPU_SIDE
    left, right = (torch.randn(side, side).to(device, dtype) for _ in range(2))
    out = torch.mm(left, right)
    best, until = float("inf"), time.perf_counter() + _SECONDS
    while time.perf_counter() < until:
        began = time.perf_counter()
        torch.mm(left, right, out=out)
        if device == "cuda":
            torch.cuda.synchronize()
        best = min(best, time.perf_counter() - began)
    return 2.0 * side**3 / best
