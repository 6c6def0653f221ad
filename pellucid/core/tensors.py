"""Named tensors on disk, as safetensors: data that cannot run code."""

import contextlib
import hashlib
import json
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
from pellucid.core.files import POINTER, POINTER_HINT, read_plain

Shape = tuple[int, ...]
_METADATA = "__metadata__"
_LONGEST_HEADER = 100_000_000
"""Bytes; the limit of safetensors itself."""
_MOST_TENSORS = 100_000
"""Of one file; each takes a kilobyte in memory, even an empty one."""


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

    Raises CorruptError if these are no such bytes.
    """
    if content.startswith(POINTER):
        raise CorruptError(f"{path} is a pointer of git-lfs, not the file", hint=POINTER_HINT)
    count = content.count(b'"data_offsets"', 0, int.from_bytes(content[:8], "little") + 8)
    if count > _MOST_TENSORS:
        raise CorruptError(f"{path} must hold at most {_MOST_TENSORS:,} tensors, holds {count:,}")
    try:
        return safetensors.torch.load(content)
    except (safetensors.SafetensorError, ValueError, KeyError, OverflowError) as error:
        raise CorruptError(f"{path} is not a readable safetensors file: {error}") from error


def read_metadata(path: Path) -> dict[str, str]:
    """The words that stand in a safetensors file's header beside the tensors.

    Raises InputMissingError if it cannot be read, CorruptError if it is not a safetensors file.
    """
    with _reading(path):
        return {str(key): str(value) for key, value in _header(path).get(_METADATA, {}).items()}


def read_shapes(path: Path) -> dict[str, Shape]:
    """The shapes of the tensors in a safetensors file, which stand in its header.

    Raises InputMissingError if it cannot be read, CorruptError if it is not a safetensors file.
    """
    with _reading(path):
        header = _header(path).items()
        return {name: tuple(map(int, each["shape"])) for name, each in header if name != _METADATA}


def _header(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        if size > _LONGEST_HEADER:
            raise ValueError(f"a header of {size:,} bytes")
        return dict(json.loads(file.read(size)))


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputMissingError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, AttributeError, TypeError, KeyError, RecursionError) as error:
        raise CorruptError(f"{path} is not a readable safetensors file: {error}") from error


def _as_os_error(error: safetensors.SafetensorError) -> OSError:
    """safetensors tells the system's error by number, but only in its text."""
    number = re.search(r"\(os error (\d+)\)", str(error))
    if number is None:
        return OSError(str(error))
    return OSError(int(number[1]), os.strerror(int(number[1])))


def fingerprint(tensor: Tensor) -> str:
    """The first 16 hexadecimal digits of the SHA-256 of a tensor's bytes."""
    flat = tensor.detach().cpu().contiguous().view(-1).view(torch.uint8)
    return hashlib.sha256(flat.numpy().tobytes()).hexdigest()[:16]
