"""The one place that opens PyTorch's own format, and only what cannot run code.

A ``.bin`` or ``.pt`` file is a pickle: a program. ``weights_only=True`` reads tensors, numbers,
strings, lists and tables from it and refuses everything else; there is no way around that here.
"""

import zipfile
from pathlib import Path

import torch
from torch import Tensor

from pellucid.core.errors import InputMissingError, UnsafeFormatError


def load_torch_tensors(path: Path) -> dict[str, Tensor]:
    """Read a file that holds tensors by name, onto the CPU.

    Raises InputMissingError if it cannot be opened, UnsafeFormatError if it holds anything but
    tensors by name, or is damaged.
    """
    _refuse_devices_and_bombs(path)
    try:
        with path.open("rb") as file:
            content = torch.load(file, map_location="cpu", weights_only=True)
    except OSError as error:
        raise InputMissingError(f"cannot read {path}: {error.strerror or error}") from error
    except Exception as error:  # whatever a file made to deceive can provoke
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
    return content


def _refuse_devices_and_bombs(path: Path) -> None:
    """torch.save packs without compressing: what would unpack to more than the file is a trap."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise InputMissingError(f"cannot read {path}: it is not a plain file")
    if not zipfile.is_zipfile(path):
        return
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError) as error:
        raise UnsafeFormatError(f"{path} is a damaged archive: {error}") from error
    packed = [entry.filename for entry in entries if entry.compress_type != zipfile.ZIP_STORED]
    if packed or sum(entry.file_size for entry in entries) > path.stat().st_size:
        raise UnsafeFormatError(
            f"{path} must hold its tensors as they are, but would unpack to more than its size",
            hint="convert it to model.safetensors where it comes from",
        )
