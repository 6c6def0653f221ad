"""A Marian model file: named arrays, some of them in eight bits, read like any stranger's file.

``.npz`` is an archive of NumPy with the settings as an array of bytes. ``.bin`` is little-endian:
the version, the number of items, four numbers for each (length of the name with its NUL, type,
number of axes, bytes of data), all names, all shapes, padding up to a multiple of 256, and the data
of one item after the other. Source: marian-dev, ``src/common/binary.cpp``.
"""

import dataclasses
import io
import math
import struct
import zipfile
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from pellucid.core.errors import CorruptError

Floats = npt.NDArray[np.float32]

LARGEST = 127
"""The largest quantized number; -128 is not used, so that the range is symmetric."""
MODEL_YML = "special:model.yml"
"""The item that holds the settings of the model, as text."""


@dataclasses.dataclass(frozen=True)
class Quantized:
    """A matrix in eight bits, with the factor by which its numbers were multiplied.

    q = round(w · multiplier),   multiplier = 127 / max |w|
    """

    values: npt.NDArray[np.int8]
    """In the orientation of the float32 matrix, whatever the file has."""
    multiplier: float

    def widened(self) -> Floats:
        """The numbers that the quantized ones stand for."""
        return (self.values / np.float32(self.multiplier)).astype(np.float32)


def quantize(matrix: Floats) -> Quantized:
    """A matrix in eight bits; one of zeros stays so."""
    largest = float(np.abs(matrix).max(initial=0.0))
    multiplier = np.float32(LARGEST / largest) if largest > 0.0 else np.float32(1.0)
    values = np.rint(matrix * multiplier).clip(-LARGEST, LARGEST).astype(np.int8)
    return Quantized(values, float(multiplier))


@dataclasses.dataclass(frozen=True)
class Items:
    """The content of a model file: its settings as text, and its arrays by name."""

    settings: str
    arrays: dict[str, Floats | Quantized]

    def floats(self) -> dict[str, Floats]:
        """All arrays in float32, those in eight bits widened."""
        return {
            name: each.widened() if isinstance(each, Quantized) else each
            for name, each in self.arrays.items()
        }


_MOST_ITEMS = 100_000
_MOST_GROWTH = 16
"""An archive may unpack to so many times its size. Numbers of a trained model shrink by a tenth."""


def read_archive(content: bytes, origin: str) -> Items:
    """The items of an ``.npz`` file; ``origin`` names it in errors. Raises CorruptError."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            sizes = [each.file_size for each in archive.infolist()]
        if len(sizes) > _MOST_ITEMS or sum(sizes) > _MOST_GROWTH * len(content):
            raise CorruptError(
                f"{origin} is not a Marian model: it unpacks to {len(sizes)} arrays of"
                f" {sum(sizes)} bytes, from {len(content)}"
            )
        # no pickle: an array of objects is an error
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            found = {name: arrays[name] for name in arrays.files}
    except (ValueError, OSError, EOFError, KeyError, SyntaxError, zipfile.BadZipFile) as error:
        raise CorruptError(f"{origin} is not a Marian model: {error}") from error
    except (NotImplementedError, RuntimeError, MemoryError) as error:  # of zipfile and numpy
        raise CorruptError(f"{origin} cannot be unpacked: {error}") from error

    text = found.pop(MODEL_YML, np.zeros(0, np.int8))
    wrong = [name for name, each in found.items() if each.dtype.kind != "f"]
    if text.dtype.itemsize != 1 or wrong:
        names = [MODEL_YML, *wrong] if text.dtype.itemsize != 1 else wrong
        raise CorruptError(
            f"{origin} is not a Marian model: {', '.join(sorted(names))} must hold numbers of"
            " another type"
        )
    settings = text.tobytes().rstrip(b"\0").decode("utf-8", "replace")
    return Items(settings, {name: each.astype(np.float32) for name, each in found.items()})


def write_archive(items: Items) -> bytes:
    """The content of an ``.npz`` file with these items, those in eight bits widened."""
    text = np.frombuffer(items.settings.encode() + b"\0", np.int8)
    packed = io.BytesIO()
    # as Marian writes it: not compressed
    np.savez(packed, **{**items.floats(), MODEL_YML: text})  # type: ignore[arg-type]
    return packed.getvalue()


_VERSION = 1
_FLOAT32, _INT8, _INTGEMM8 = 0x0404, 0x0101, 0x4101
_ALIGNMENT = 256
"""Bytes. The data of every item are padded to a multiple, so that they can be mapped."""
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


def _array(header: _Header, origin: str) -> Floats | Quantized:
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
    arrays: Mapping[str, Floats | Quantized],
) -> Iterator[tuple[str, int, tuple[int, ...], bytes]]:
    for name, each in arrays.items():
        if isinstance(each, Quantized):
            values = each.values if _TRANSPOSES_NOT in name else each.values.T
            data = values.tobytes() + struct.pack("<f", each.multiplier)
            yield name, _INTGEMM8, each.values.shape, data
        else:
            yield name, _FLOAT32, each.shape, each.astype("<f4").tobytes()
