"""Named tensors on disk, as safetensors: data that cannot run code."""

import contextlib
import dataclasses
import errno
import hashlib
import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from pellucid.core.errors import CorruptError, InputMissingError
from pellucid.core.files import POINTER, POINTER_HINT, is_pointer, open_plain, read_plain

Shape = tuple[int, ...]
_METADATA = "__metadata__"
_DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
"""The dtypes of models here, by their names in safetensors."""
LONGEST_HEADER = 1 << 24
"""Bytes. A tensor takes about a hundred, the description of a capture a few millions. safetensors
itself allows six times as many, of which a stranger can make gigabytes."""
_MOST_TENSORS = 100_000
"""The most tensors in one file; each takes a kilobyte of memory, even an empty one."""
_MOST_VALUES = 1_000_000
"""The most commas and brackets in a header, which has about eight for each tensor. So many values
take a hundred megabytes at most."""

_MOST_DIMENSIONS, _LARGEST_DIMENSION = 8, 1 << 40


def save_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors under their names; those that share memory are written once each.

    Raises OSError if the disk does not take them.
    """
    written: dict[str, Tensor] = {}
    taken: set[int] = set()
    for name, tensor in tensors.items():
        plain = tensor.detach().cpu().contiguous()
        storage = plain.untyped_storage()

        # safetensors refuses tensors that share memory, or hold a part of it
        is_alone = storage.data_ptr() not in taken and storage.nbytes() == plain.nbytes
        written[name] = plain if is_alone else plain.clone()
        taken.add(storage.data_ptr())
    try:
        safetensors.torch.save_file(written, path)
    except safetensors.SafetensorError as error:
        raise _as_os_error(error) from error


def load_tensors(path: Path) -> dict[str, Tensor]:
    """Read what ``save_tensors`` wrote, onto the CPU.

    The file is read, not mapped, so that truncating it later cannot kill the process.
    Raises InputMissingError if it cannot be read, CorruptError if it is not a safetensors file.
    """
    try:
        content = read_plain(path)
    except OSError as error:
        raise InputMissingError(f"cannot read {path}: {error.strerror}") from error
    return parse_tensors(content, path)


def parse_tensors(content: bytes, path: Path) -> dict[str, Tensor]:
    """The tensors in the bytes of a safetensors file, which were read from ``path``.

    Raises CorruptError if they are not a safetensors file.
    """
    if content.startswith(POINTER):
        raise CorruptError(f"{path} is a pointer of git-lfs, not the file", hint=POINTER_HINT)

    try:
        size = int.from_bytes(content[:8], "little")
        _check_header(size, content[8 : 8 + min(size, LONGEST_HEADER)], path)
        return safetensors.torch.load(content)
    except (safetensors.SafetensorError, ValueError, KeyError, OverflowError) as error:
        raise CorruptError(f"{path} is not a readable safetensors file: {error}") from error


class TensorFile(Mapping[str, Tensor]):
    """The tensors of a safetensors file, each read when it is accessed and not kept.

    The file is read, not mapped, and checked against the rules of safetensors: its tensors fill it
    one after the other, without gaps and overlaps.
    """

    def __init__(self, path: Path) -> None:
        """Raises InputMissingError if it cannot be read, CorruptError if it is no such file."""
        self._path = path
        with _reading(path):
            if path.exists() and not path.is_file():  # a pipe or a device might go on forever
                raise OSError(errno.EINVAL, "it is not a plain file", str(path))
            if is_pointer(path):
                raise CorruptError(
                    f"{path} is a pointer of git-lfs, not the file", hint=POINTER_HINT
                )

            header = _header(path)
            header.pop(_METADATA, None)
            if len(header) > _MOST_TENSORS:
                raise CorruptError(
                    f"{path} must hold at most {_MOST_TENSORS:,} tensors, holds {len(header):,}"
                )
            self._entries = {name: _Entry.parse(each) for name, each in header.items()}

            with path.open("rb") as file:
                self._begin = 8 + int.from_bytes(file.read(8), "little")

            # Sorted by where they begin: gaps could hide bytes, overlaps could multiply memory.
            end = 0
            for name, entry in sorted(self._entries.items(), key=lambda each: each[1].begin):
                if entry.begin != end:
                    raise ValueError(f"{name} begins at byte {entry.begin} and not at {end}")
                end += entry.size

            if self._begin + end != path.stat().st_size:
                raise ValueError(f"its tensors have {end:,} bytes, the file has others")

    def __getitem__(self, name: str) -> Tensor:
        """Raises KeyError, and as the constructor does."""
        # A KeyError for an unknown name, as of any mapping.
        entry = self._entries[name]

        # A bytearray, as PyTorch warns of tensors over memory that cannot be written to.
        content = bytearray(entry.size)
        with _reading(self._path), self._path.open("rb", buffering=0) as file:
            file.seek(self._begin + entry.begin)
            place = 0

            # A read may give less than was asked for.
            while place < entry.size:
                count = file.readinto(memoryview(content)[place:])
                if not count:
                    raise ValueError(f"it ends within {name}")
                place += count

        # ``frombuffer`` refuses an empty buffer.
        if not content:
            return torch.empty(entry.shape, dtype=entry.dtype)
        return torch.frombuffer(content, dtype=entry.dtype).view(entry.shape)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


@dataclasses.dataclass(frozen=True)
class _Entry:
    """A tensor's entry in the header; ``begin`` counts from the end of the header."""

    dtype: torch.dtype
    shape: Shape
    begin: int
    size: int

    @classmethod
    def parse(cls, table: Mapping[str, Any]) -> "_Entry":
        """Raises ValueError, KeyError, TypeError."""
        shape = _shape_of(table)
        begin, end = table["data_offsets"]
        if table["dtype"] not in _DTYPES:
            raise ValueError(f"unknown type {str(table['dtype'])[:20]}")

        # ``type`` and not ``isinstance``: True is an int in Python.
        if not all(type(each) is int and each >= 0 for each in (begin, end)):
            raise ValueError("offsets must be whole numbers, at least 0")
        dtype = _DTYPES[table["dtype"]]

        size = math.prod(shape) * dtype.itemsize
        if end - begin != size:
            raise ValueError(f"{size:,} bytes of a tensor in {end - begin:,}")
        return cls(dtype, shape, begin, size)


def read_metadata(path: Path) -> dict[str, str]:
    """The metadata in a safetensors file's header.

    Raises InputMissingError if it cannot be read, CorruptError if it is not a safetensors file.
    """
    with _reading(path):
        return {str(key): str(value) for key, value in _header(path).get(_METADATA, {}).items()}


def read_shapes(path: Path) -> dict[str, Shape]:
    """The shapes of the tensors in a safetensors file; only its header is read.

    Raises InputMissingError if it cannot be read, CorruptError if it is not a safetensors file.
    """
    with _reading(path):
        header = _header(path).items()
        return {name: _shape_of(each) for name, each in header if name != _METADATA}


def _shape_of(table: Mapping[str, Any]) -> Shape:
    """The shape in a tensor's entry. Raises ValueError, KeyError, TypeError.

    Python's integers do not overflow, and multiplying hundreds of long ones takes half a minute.
    """
    shape = tuple(table["shape"])
    if len(shape) > _MOST_DIMENSIONS:
        raise ValueError(f"shapes must have at most {_MOST_DIMENSIONS} numbers")
    # ``type`` and not ``isinstance``: True is an int in Python.
    if not all(type(each) is int and 0 <= each < _LARGEST_DIMENSION for each in shape):
        raise ValueError("shapes must be whole numbers, at least 0")
    return shape


def _header(path: Path) -> dict[str, Any]:
    with open_plain(path) as file:
        size = int.from_bytes(file.read(8), "little")
        text = file.read(min(size, LONGEST_HEADER))
    _check_header(size, text, path)
    return dict(json.loads(text))


def _check_header(size: int, text: bytes, path: Path) -> None:
    """Raise ValueError or CorruptError for a header that would take much memory to parse.

    The file may come from a stranger, so this is counted in the text.
    """
    if size > LONGEST_HEADER:
        raise ValueError(f"a header of {size:,} bytes")

    braces = text.count(b"{")  # one of each tensor, and those of the header and the metadata
    if braces > _MOST_TENSORS + 2:
        raise CorruptError(f"{path} must hold at most {_MOST_TENSORS:,} tensors, holds {braces:,}")
    if braces + text.count(b"[") + text.count(b",") > _MOST_VALUES:
        raise ValueError(f"a header of more than {_MOST_VALUES:,} values")


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputMissingError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, AttributeError, TypeError, KeyError, RecursionError) as error:
        raise CorruptError(f"{path} is not a readable safetensors file: {error}") from error


def _as_os_error(error: safetensors.SafetensorError) -> OSError:
    """The OSError behind an error of safetensors, which has its number in the message only."""
    number = re.search(r"\(os error (\d+)\)", str(error))
    if number is None:
        return OSError(str(error))
    return OSError(int(number[1]), os.strerror(int(number[1])))


def fingerprint(tensor: Tensor) -> str:
    """The first 16 hexadecimal digits of the SHA-256 of a tensor's bytes."""
    # As bytes, because NumPy has no bfloat16.
    flat = tensor.detach().cpu().contiguous().view(-1).view(torch.uint8)
    return hashlib.sha256(flat.numpy().tobytes()).hexdigest()[:16]
