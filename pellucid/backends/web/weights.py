"""The parameters of a model as bytes for a page: float32, float16, or rows of int8."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal, assert_never

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pellucid.core.errors import BundleError

WeightsType = Literal["float32", "float16", "int8"]
"""How the matrices of a page are stored; it always computes in float32."""

_Floats = npt.NDArray[np.float32]
_LARGEST = 127.0
"""The largest whole number of a row of int8; -128 is left out, so that both signs reach as far."""


@dataclasses.dataclass(frozen=True)
class PackedTensors:
    """All tensors of a model in one block of bytes, and where each of them begins."""

    entries: list[dict[str, Any]]
    """For each tensor its name, shape and dtype, the byte where it starts and, for int8, the byte
    where the scales of its rows start."""
    content: bytes


def pack_tensors(tensors: Mapping[str, Tensor], weights: WeightsType) -> PackedTensors:
    """The tensors, matrices as ``weights`` says; vectors are small and stay in float32.

    Raises BundleError for a tensor that is not finite, or too large for float16.
    """
    entries, blocks, size = [], list[bytes](), 0

    def put(block: bytes) -> int:
        nonlocal size
        # each block starts at a multiple of four bytes, as its numbers have up to four
        start, padded = size, block + bytes(-len(block) % 4)
        blocks.append(padded)
        size += len(padded)
        return start

    for name, tensor in tensors.items():
        values: _Floats = tensor.detach().float().cpu().numpy()
        if not np.isfinite(values).all():
            raise BundleError(f"a page cannot hold {name}: it has numbers that are not finite")
        dtype: WeightsType = weights if values.ndim > 1 else "float32"
        entry: dict[str, Any] = {"name": name, "shape": list(values.shape), "dtype": dtype}

        match dtype:
            case "float32":
                entry["start"] = put(values.astype("<f4").tobytes())
            case "float16":
                entry["start"] = put(_halves(name, values).tobytes())
            case "int8":
                rows, scales = quantize_rows(values.reshape(-1, values.shape[-1]))
                entry["start"] = put(rows.tobytes())
                entry["scales"] = put(scales.astype("<f4").tobytes())
            case _:
                assert_never(dtype)
        entries.append(entry)

    return PackedTensors(entries, b"".join(blocks))


def quantize_rows(values: _Floats) -> tuple[npt.NDArray[np.int8], _Floats]:
    """Whole numbers from -127 to 127 for each row, and the scale of each row.

    EQ: none.  Source: the symmetric scheme of Jacob et al. (2018), §2.1, for each row alone.
    """
    largest = np.abs(values).max(axis=1, initial=0.0)
    # a row of zeros has no scale to speak of
    scales = np.where(largest > 0, largest / _LARGEST, 1.0).astype(np.float32)
    return np.rint(values / scales[:, None]).astype(np.int8), scales


def as_stored(tensor: Tensor, weights: WeightsType) -> Tensor:
    """The tensor as a page with such weights reads it: a matrix is rounded, a vector is not."""
    if tensor.dim() < 2:
        return tensor
    match weights:
        case "float32":
            return tensor
        case "float16":
            return tensor.half().to(tensor.dtype)
        case "int8":
            values: _Floats = tensor.detach().float().cpu().numpy()
            rows, scales = quantize_rows(values.reshape(-1, values.shape[-1]))
            return torch.from_numpy(rows * scales[:, None]).view_as(tensor).to(tensor.dtype)
        case _:
            assert_never(weights)


def _halves(name: str, values: _Floats) -> npt.NDArray[np.float16]:
    if np.abs(values).max(initial=0.0) > np.finfo(np.float16).max:
        raise BundleError(
            f"{name} has numbers that are too large for float16", hint="take --weights float32"
        )
    return values.astype("<f2")
