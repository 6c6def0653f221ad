"""Matrices as a report carries them: rounded, in part if they are large, as base64."""

import base64
import dataclasses
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from torch import Tensor

Scale = Literal["signed", "share", "part"]
"""How a picture colors numbers: around 0, from 0 to 1, or from 0 to the largest of them."""

AxisKind = Literal["words", "key", "value", "model", "inner", "weight", "vocabulary", "single"]
"""What decides how much of an axis is shown where space is short."""

BYTES_PER_NUMBER = 4
"""Three bytes, which base64 writes as four characters."""


@dataclasses.dataclass(frozen=True)
class Axis:
    """What the rows or the columns of a matrix are."""

    name: str
    """A list of words of the report (``source``, ``reads``, ``steps``), or what a number counts."""
    kind: AxisKind


@dataclasses.dataclass(frozen=True)
class Matrix:
    """Real numbers with the names of both axes."""

    values: Tensor
    rows: Axis
    columns: Axis
    scale: Scale = "signed"


Limits = dict[str, int]
"""How many rows or columns of an axis of some kind are kept; a kind that is not listed is whole."""

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
"""From everything to little: weights give way first, attention over words last."""


def encode_matrices(matrices: dict[str, Matrix], budget: int) -> tuple[dict[str, Any], Limits]:
    """Every matrix for JSON, cut alike so that all together take at most ``budget`` bytes.

    Numbers that another matrix has already are written once: ``same_as`` names it.

    Where even the last rung of ``LADDER`` is too large it is taken all the same.
    """
    for limits in LADDER:
        if sum(_size(matrix, limits) for matrix in matrices.values()) <= budget:
            break
    encoded: dict[str, Any] = {}
    first: dict[str, str] = {}
    for name, matrix in matrices.items():
        entry = _encode(matrix, limits)
        twin = first.setdefault(entry["data"], name)
        encoded[name] = entry if twin == name else {**entry, "data": "", "same_as": twin}
    return encoded, limits


def pack_numbers(values: Tensor) -> str:
    """Numbers as base64 of the upper three bytes of each float32, rounded: 16 significant bits.

    The error is below 1 part in 130,000 of each number, so that 4 digits are always true; infinity
    stays infinity.
    """
    bits = values.detach().float().contiguous().cpu().numpy().astype("<f4").view("<u4")
    rounded = (bits.astype(np.uint64) + 0x80).astype("<u4")
    upper = rounded.reshape(-1, 1).view(np.uint8)[:, 1:]
    return base64.b64encode(np.ascontiguousarray(upper).tobytes()).decode("ascii")


def unpack_numbers(text: str) -> Iterator[float]:
    """The numbers that ``pack_numbers`` wrote, one after another."""
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


def _encode(matrix: Matrix, limits: Limits) -> dict[str, Any]:
    rows, columns = _kept(matrix, limits)
    return {
        "shape": [rows, columns],
        "of": list(matrix.values.shape),
        "rows": matrix.rows.name,
        "columns": matrix.columns.name,
        "scale": matrix.scale,
        "data": pack_numbers(matrix.values[:rows, :columns]),
    }
