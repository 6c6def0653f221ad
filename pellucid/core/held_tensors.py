"""The tensors of a safetensors file that is held open, each read when it is accessed.

By numpy alone: whatever translates without torch reads a model so, one tensor in memory at a time.
"""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from pellucid.core.errors import CorruptError
from pellucid.core.files import HeldFile

LONGEST_HEADER = 1 << 24
"""Bytes, as in ``core.tensors``, which imports torch."""
_MOST_VALUES = 1_000_000
"""Commas and brackets, as in ``core.tensors``."""
_MOST_DIMENSIONS, _LARGEST_DIMENSION = 8, 1 << 40
_METADATA = "__metadata__"
_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4"}
"""Types of numpy by their names in safetensors; it has none for bfloat16."""


def read_header(file: HeldFile) -> dict[str, Any]:
    """The entries of a safetensors file by name, which begins with the size of a JSON.

    Raises CorruptError if there is no such header, or one that would take much memory to parse.
    """
    size = int.from_bytes(file.part(0, 8), "little")
    try:
        if size > LONGEST_HEADER:
            raise ValueError(f"a header of {size:,} bytes")
        text = file.part(8, size)
        # Counted before it is parsed: a small file can describe objects of gigabytes.
        if text.count(b",") + text.count(b"[") + text.count(b"{") > _MOST_VALUES:
            raise ValueError(f"a header of more than {_MOST_VALUES:,} values")
        entries = {name: each for name, each in json.loads(text).items() if name != _METADATA}
        for each in entries.values():
            _size_of(each["shape"])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise CorruptError(f"{file.path} is not a safetensors file: {error}") from None
    return entries


def count_numbers(file: HeldFile) -> int:
    """The numbers in all tensors of a file. Raises as ``read_header`` does."""
    return sum(_size_of(each["shape"]) for each in read_header(file).values())


def _size_of(shape: object) -> int:
    """The product of a shape; ValueError for what is none, before it takes long to multiply."""
    if not isinstance(shape, list) or len(shape) > _MOST_DIMENSIONS:
        raise ValueError(f"a shape must be a list of at most {_MOST_DIMENSIONS} numbers")
    if not all(type(each) is int and 0 <= each < _LARGEST_DIMENSION for each in shape):
        raise ValueError("a shape has something other than a number of rows or columns in it")
    return math.prod(shape)


class HeldTensors(Mapping[str, npt.NDArray[np.generic]]):
    """The tensors by name, each read when it is accessed and not kept.

    The file is read, not mapped, so that truncating it later cannot kill the process.
    """

    def __init__(self, file: HeldFile) -> None:
        """Raises CorruptError as ``read_header`` does, KeyError for a type that numpy lacks."""
        self._file = file
        self._begin = 8 + int.from_bytes(file.part(0, 8), "little")
        self._entries: dict[str, tuple[np.dtype[Any], tuple[int, ...], int]] = {}
        for name, entry in read_header(file).items():
            dtype, shape = np.dtype(_DTYPES[entry["dtype"]]), tuple(entry["shape"])
            try:
                begin, end = (int(each) for each in entry["data_offsets"])
                if begin < 0 or end - begin != math.prod(shape) * dtype.itemsize:
                    raise ValueError(f"the bytes of {name} do not have its shape")
            except (KeyError, TypeError, ValueError) as error:
                raise CorruptError(
                    f"{file.path} is not a readable safetensors file: {error}"
                ) from None
            self._entries[name] = (dtype, shape, begin)

    def __getitem__(self, name: str) -> npt.NDArray[np.generic]:
        """Raises KeyError, CorruptError if the file ends within the tensor."""
        dtype, shape, begin = self._entries[name]
        size = math.prod(shape) * dtype.itemsize
        content = self._file.part(self._begin + begin, size)
        if len(content) != size:
            raise CorruptError(f"{self._file.path} ends within {name}")
        return np.frombuffer(content, dtype).reshape(shape)

    def __contains__(self, name: object) -> bool:
        """Without reading the tensor, as a mapping would."""
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def verify(self) -> None:
        """Compare the whole file with the manifest, after the last tensor was read.

        Raises CorruptError if it was changed in place: what was read may be something else.
        """
        self._file.verify()
