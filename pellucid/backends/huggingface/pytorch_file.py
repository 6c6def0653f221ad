"""The only module that reads PyTorch's own format, restricted to content that cannot run code.

A ``.bin`` or ``.pt`` file is a pickle, which is a program. ``weights_only=True`` reads tensors,
numbers, strings, lists and dictionaries from it and refuses everything else. No option turns this
off. What the pickle may still do, take memory without end, is checked before and after loading.
"""

import pickletools
import zipfile
from pathlib import Path
from typing import IO

import torch
from torch import Tensor

from pellucid.core.errors import BundleError, InputMissingError, UnsafeFormatError
from pellucid.core.files import POINTER_HINT, is_pointer

_MOST_STEPS = 1_000_000
"""Most instructions of a pickle: a tensor takes about forty, and a model has about a thousand."""
_MOST_CALLS = 50_000
"""Most instructions that create an object. A tensor takes two and, even empty, a kilobyte."""
_MOST_COPIES = 8
"""How many times the file's size its tensors may take: a tied matrix has up to four names, and more
names for the same bytes are an attack."""
_CALLS = {"REDUCE", "BUILD", "NEWOBJ", "NEWOBJ_EX", "OBJ", "INST"}
_OLD_PICKLES = 4
"""Pickles at the start of a file from before PyTorch 1.6: magic, version, machine, tensors."""


def load_torch_tensors(path: Path) -> dict[str, Tensor]:
    """Read a file that holds tensors by name, onto the CPU.

    Raises InputMissingError if it cannot be opened, UnsafeFormatError if it is damaged, holds
    anything but tensors by name, or would expand to more than its size, BundleError for a git-lfs
    pointer.
    """
    if is_pointer(path):
        raise BundleError(f"{path} is a pointer of git-lfs, not the file", hint=POINTER_HINT)

    _refuse_devices_and_bombs(path)

    try:
        with path.open("rb") as file:
            content = torch.load(file, map_location="cpu", weights_only=True)
    except OSError as error:
        raise InputMissingError(f"cannot read {path}: {error.strerror or error}") from error
    except Exception as error:  # a hostile file can provoke any exception
        reason = str(error).strip().partition("\n")[0]
        raise UnsafeFormatError(
            f"{path} must hold tensors and nothing else, got {type(error).__name__}: {reason}",
            hint="convert it to model.safetensors where it comes from",
        ) from error

    if not isinstance(content, dict) or not all(
        isinstance(name, str) and isinstance(value, Tensor) for name, value in content.items()
    ):
        raise UnsafeFormatError(
            f"{path} must hold tensors by name, got {type(content).__name__}",
            hint="export the model's state_dict",
        )
    _refuse_expanded(content, path)
    return content


def _refuse_devices_and_bombs(path: Path) -> None:
    """Refuse devices, and archives that would unpack to more than their size.

    torch.save does not compress, so a compressed entry is no work of PyTorch.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        raise InputMissingError(f"cannot read {path}: it is not a plain file")

    if not zipfile.is_zipfile(path):
        _refuse_long_programs(path)
        return

    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            # Only a stored pickle is read here; a compressed entry is refused below, unread.
            for entry in entries:
                if entry.filename.endswith(".pkl") and entry.compress_type == zipfile.ZIP_STORED:
                    with archive.open(entry) as file:
                        _count_steps(file, path)
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError) as error:
        raise UnsafeFormatError(f"{path} is a damaged archive: {error}") from error

    packed = [entry.filename for entry in entries if entry.compress_type != zipfile.ZIP_STORED]
    if packed or sum(entry.file_size for entry in entries) > path.stat().st_size:
        raise UnsafeFormatError(
            f"{path} must hold its tensors as they are, but would unpack to more than its size",
            hint="convert it to model.safetensors where it comes from",
        )


def _refuse_long_programs(path: Path) -> None:
    """Check the pickles at the start of a file of the old format."""
    try:
        with path.open("rb") as file:
            for _ in range(_OLD_PICKLES):
                _count_steps(file, path)
    except OSError as error:
        raise InputMissingError(f"cannot read {path}: {error.strerror or error}") from error


def _count_steps(file: IO[bytes], path: Path) -> None:
    """Count the instructions of a pickle without executing them.

    A pickle of a few megabytes can build a million empty tensors, which take gigabytes. Raises
    UnsafeFormatError if there are too many instructions.
    """
    calls = 0
    try:
        for step, (instruction, _, _) in enumerate(pickletools.genops(file)):
            calls += instruction.name in _CALLS
            if step > _MOST_STEPS or calls > _MOST_CALLS:
                raise UnsafeFormatError(
                    f"{path} must hold the tensors of a model, and describes more than"
                    f" {_MOST_CALLS // 2:,} tensors",
                    hint="convert it to model.safetensors where it comes from",
                )
    except (ValueError, EOFError, LookupError):
        return  # not a pickle: torch.load reports it


def _refuse_expanded(content: dict[str, Tensor], path: Path) -> None:
    """Refuse tensors that repeat their bytes, by strides of zero or by sharing a storage.

    They are small in the file, but a copy of each takes its full size.
    """
    # The sizes as they would be copied, whatever the strides and shared storages are.
    shown = sum(tensor.numel() * tensor.element_size() for tensor in content.values())
    repeating = [
        name
        for name, tensor in content.items()
        if tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes()
    ]
    if repeating or shown > _MOST_COPIES * path.stat().st_size:
        which = f"{repeating[0]} repeats its own" if repeating else "the tensors repeat their"
        raise UnsafeFormatError(
            f"{path} must hold its tensors as they are, but {which} bytes: {shown:,} bytes of"
            f" tensors in a file of {path.stat().st_size:,}",
            hint="convert it to model.safetensors where it comes from",
        )
