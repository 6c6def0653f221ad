"""The matrices of a report: rounded, cut if they are large, and encoded as base64."""

import base64
import dataclasses
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from torch import Tensor

Scale = Literal["signed", "share", "part"]
"""How a heat map colors values: around 0, from 0 to 1, or from 0 to the largest value."""

AxisKind = Literal["words", "key", "value", "model", "inner", "weight", "vocabulary", "single"]
"""The kind of an axis, which decides how much of it is kept if space is short."""

BYTES_PER_NUMBER = 4
"""Each value has three bytes, which base64 writes as four characters."""


@dataclasses.dataclass(frozen=True)
class Axis:
    """The meaning of the rows or columns of a matrix."""

    name: str
    """A list of words of the report (``source``, ``reads``, ``steps``), or what a number counts."""
    kind: AxisKind


@dataclasses.dataclass(frozen=True)
class Matrix:
    """Values with the meaning of both axes."""

    values: Tensor
    rows: Axis
    columns: Axis
    scale: Scale = "signed"


Limits = dict[str, int]
"""How many rows or columns are kept of each kind of axis; kinds not listed are kept whole."""

LADDER: tuple[Limits, ...] = (
    {},
    {"weight": 64},
    {"weight": 32},
    {"weight": 32, "inner": 256},
    {"weight": 24, "inner": 128, "model": 128},
    {"weight": 16, "inner": 64, "model": 64, "value": 32},
    {"weight": 8, "inner": 48, "model": 48, "value": 24},
    {"weight": 8, "inner": 32, "model": 32, "value": 16, "key": 32, "words": 64},
    {"weight": 8, "inner": 16, "model": 16, "value": 8, "key": 16, "words": 48},
    {"weight": 4, "inner": 8, "model": 8, "value": 8, "key": 8, "words": 32},
    {"weight": 4, "inner": 4, "model": 4, "value": 4, "key": 4, "words": 24},
)
"""From everything to little: parameters are cut first, words last."""


def encode_matrices(
    matrices: dict[str, Matrix], budget: int, bits: int = 16
) -> tuple[dict[str, Any], Limits]:
    """Every matrix for JSON, cut by the same limits so that all take at most ``budget`` bytes.

    Equal values are written once; the second matrix names the first in ``same_as``. ``bits`` are
    the significant ones of a number: with fewer than 16 it takes as many bytes, which can be packed
    better.

    If even the last limits of ``LADDER`` are too large, they are used nevertheless.
    """
    # All matrices share the limits: a feature that is shown in one is shown in all, and the page
    # can redo products.
    for limits in LADDER:
        if sum(_size(matrix, limits) for matrix in matrices.values()) <= budget:
            break

    encoded: dict[str, Any] = {}
    first: dict[str, str] = {}
    # By their encoded values, so that equal matrices under two names are found without comparing
    # tensors.
    for name, matrix in matrices.items():
        entry = _encode(matrix, limits, bits)
        # In a post-norm model, for example, the output of a block is its last norm.
        twin = first.setdefault(entry["data"], name)
        encoded[name] = entry if twin == name else {**entry, "data": "", "same_as": twin}
    return encoded, limits


def pack_numbers(values: Tensor, significant: int = 16) -> str:
    """Values as base64 of the upper three bytes of each float32, rounded to so many bits.

    With 16 significant bits the relative error is at most 1 / 65,536, so that 4 digits are always
    correct; with 8 it is at most 1 / 256. Infinity stays infinity.
    """
    bits = values.detach().float().contiguous().cpu().numpy().astype("<f4").view("<u4")
    # Adding half of what is dropped rounds to nearest; a carry into the exponent is right.
    unit = 1 << (24 - significant)
    rounded = ((bits.astype(np.uint64) + unit // 2) // unit * unit).astype("<u4")
    # Little-endian: the first of the four bytes is the one to drop.
    upper = rounded.reshape(-1, 1).view(np.uint8)[:, 1:]
    return base64.b64encode(np.ascontiguousarray(upper).tobytes()).decode("ascii")


def unpack_numbers(text: str) -> Iterator[float]:
    """Iterate over the values that ``pack_numbers`` encoded."""
    upper = np.frombuffer(base64.b64decode(text), dtype=np.uint8).reshape(-1, 3)
    whole = np.zeros((len(upper), 4), dtype=np.uint8)
    whole[:, 1:] = upper
    return iter(whole.view("<f4").reshape(-1).tolist())


def _kept(matrix: Matrix, limits: Limits) -> tuple[int, int]:
    rows, columns = matrix.values.shape
    return (
        min(rows, limits.get(matrix.rows.kind, rows)),
        min(columns, limits.get(matrix.columns.kind, columns)),
    )


def _size(matrix: Matrix, limits: Limits) -> int:
    rows, columns = _kept(matrix, limits)
    return rows * columns * BYTES_PER_NUMBER


def _encode(matrix: Matrix, limits: Limits, bits: int) -> dict[str, Any]:
    rows, columns = _kept(matrix, limits)
    return {
        "shape": [rows, columns],
        "of": list(matrix.values.shape),
        "rows": matrix.rows.name,
        "columns": matrix.columns.name,
        "scale": matrix.scale,
        "data": pack_numbers(matrix.values[:rows, :columns], bits),
    }
