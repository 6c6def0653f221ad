"""Marian's binary model file (``.bin``), read like any stranger's file, and written.

Little-endian: the version, the number of items, four numbers for each (length of the name with its
NUL, type, number of axes, bytes of data), all names, all shapes, padding up to a multiple of 256,
and the data of one item after the other. Source: marian-dev, ``src/common/binary.cpp``.
"""

import dataclasses
import math
import struct
from collections.abc import Iterator, Mapping

import numpy as np

from pellucid.backends.marian_files.items import MODEL_YML, Items, Quantized
from pellucid.core.errors import CorruptError

_VERSION = 1
_FLOAT32, _INT8, _INTGEMM8 = 0x0404, 0x0101, 0x4101
_ALIGNMENT = 256
"""Bytes. The data of every item are padded to a multiple, so that they can be mapped."""
_MOST_ITEMS = 100_000
_LONGEST_NAME = 1 << 12
_MOST_AXES = 8
"""Limits beyond any real model: a number in a file must not cause an absurd allocation."""
_TRANSPOSES_NOT = "Wemb"
"""Quantized matrices are stored transposed with the shape of the untransposed one; embeddings,
which are read row by row, are not."""


@dataclasses.dataclass(frozen=True)
class _Header:
    name: str
    type: int
    shape: tuple[int, ...]
    data: memoryview

    @property
    def count(self) -> int:
        return math.prod(self.shape)


class _Reader:
    """The bytes of a file; every read is checked against the end."""

    def __init__(self, content: bytes, origin: str) -> None:
        self._content = memoryview(content)
        self._origin = origin
        self._at = 0

    def take(self, size: int, what: str) -> memoryview:
        """The next ``size`` bytes. Raises CorruptError if the file ends before."""
        if size > len(self._content) - self._at:
            raise self.problem(
                f"{what} takes {size} bytes at {self._at}, and the file has {len(self._content)}"
            )
        taken = self._content[self._at : self._at + size]
        self._at += size
        return taken

    def numbers(self, count: int, what: str) -> tuple[int, ...]:
        """The next 64-bit numbers."""
        return struct.unpack(f"<{count}Q", self.take(8 * count, what))

    def problem(self, text: str) -> CorruptError:
        """An error about this file."""
        return CorruptError(f"{self._origin} is not a Marian model: {text}")


def read_binary(content: bytes, origin: str) -> Items:
    """The items of a ``.bin`` file; ``origin`` names it in errors.

    Raises CorruptError for a file that is damaged or has items of other types than float32, int8
    and intgemm8.
    """
    settings, arrays = None, {}
    for each in _headers(_Reader(content, origin)):
        if each.name in arrays or (each.name == MODEL_YML and settings is not None):
            raise CorruptError(f"{origin} is not a Marian model: it has {each.name} twice")
        if each.name == MODEL_YML:
            settings = bytes(each.data).rstrip(b"\0").decode("utf-8", "replace")
        else:
            arrays[each.name] = _array(each, origin)
    return Items(settings or "", arrays)


def _headers(reader: _Reader) -> Iterator[_Header]:
    version, count = reader.numbers(2, "the head")
    if version != _VERSION:
        raise reader.problem(
            f"it begins as neither .npz nor .bin: version {version}, not {_VERSION}"
        )
    if count > _MOST_ITEMS:
        raise reader.problem(f"it says that it has {count} items")

    heads = [reader.numbers(4, f"the head of item {number}") for number in range(count)]
    for number, (name_size, _, axis_count, _) in enumerate(heads):
        if not 1 <= name_size <= _LONGEST_NAME or axis_count > _MOST_AXES:
            raise reader.problem(
                f"item {number} has a name of {name_size} bytes and {axis_count} axes"
            )

    names = [bytes(reader.take(size, "a name")).rstrip(b"\0") for size, _, _, _ in heads]
    shapes = [
        struct.unpack(f"<{axis_count}i", reader.take(4 * axis_count, "a shape"))
        for _, _, axis_count, _ in heads
    ]

    [padding] = reader.numbers(1, "the padding")
    reader.take(padding, "the padding")
    for (_, kind, _, size), name, shape in zip(heads, names, shapes, strict=True):
        text = name.decode("utf-8", "replace")
        if any(axis < 1 for axis in shape):
            raise reader.problem(f"{text} has the shape {shape}")
        yield _Header(text, kind, shape, reader.take(size, text))


def _array(
    header: _Header, origin: str
) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]] | Quantized:
    width = {_FLOAT32: 4, _INT8: 1, _INTGEMM8: 1}.get(header.type)
    if width is None:
        raise CorruptError(
            f"{origin} is not a Marian model: {header.name} has the type {header.type:#06x}",
            hint="files with packed or intgemm16 matrices cannot be read: write the model again"
            " with marian-conv --gemm-type float32 or intgemm8",
        )
    extra = 4 if header.type == _INTGEMM8 else 0  # the multiplier
    needed = width * header.count + extra
    if needed > len(header.data):
        raise CorruptError(
            f"{origin} is not a Marian model: {header.name} needs {needed} bytes for its shape"
            f" {header.shape}, has {len(header.data)}"
        )

    if header.type == _FLOAT32:
        return np.frombuffer(header.data, "<f4", header.count).reshape(header.shape).copy()

    values = np.frombuffer(header.data, np.int8, header.count).copy()
    if header.type == _INT8:
        return values.reshape(header.shape).astype(np.float32)
    [multiplier] = struct.unpack_from("<f", header.data, header.count)
    if not (math.isfinite(multiplier) and multiplier > 0.0):
        raise CorruptError(
            f"{origin} is not a Marian model: {header.name} has the multiplier {multiplier}"
        )
    if _TRANSPOSES_NOT in header.name or len(header.shape) != 2:
        return Quantized(values.reshape(header.shape), multiplier)
    rows, columns = header.shape
    return Quantized(np.ascontiguousarray(values.reshape(columns, rows).T), multiplier)


def write_binary(items: Items) -> bytes:
    """The content of a ``.bin`` file with these items."""
    stored = [*_stored(items.arrays)]
    text = items.settings.encode() + b"\0"
    stored.append((MODEL_YML, _INT8, (len(text),), text))

    parts = [struct.pack("<2Q", _VERSION, len(stored))]
    padded = [data + bytes(-len(data) % _ALIGNMENT) for _, _, _, data in stored]
    parts += [
        struct.pack("<4Q", len(name.encode()) + 1, kind, len(shape), len(data))
        for (name, kind, shape, _), data in zip(stored, padded, strict=True)
    ]
    parts += [name.encode() + b"\0" for name, _, _, _ in stored]
    parts += [struct.pack(f"<{len(shape)}i", *shape) for _, _, shape, _ in stored]

    # the number of padding bytes stands before them
    size = sum(map(len, parts)) + 8
    padding = -size % _ALIGNMENT
    return b"".join([*parts, struct.pack("<Q", padding), bytes(padding), *padded])


def _stored(
    arrays: Mapping[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]] | Quantized],
) -> Iterator[tuple[str, int, tuple[int, ...], bytes]]:
    for name, each in arrays.items():
        if isinstance(each, Quantized):
            values = each.values if _TRANSPOSES_NOT in name else each.values.T
            data = values.tobytes() + struct.pack("<f", each.multiplier)
            yield name, _INTGEMM8, each.values.shape, data
        else:
            yield name, _FLOAT32, each.shape, each.astype("<f4").tobytes()
