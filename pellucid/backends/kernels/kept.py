"""Packed models, made once and kept in the user's cache folder.

kernels/KEY/model.packed    the block that products read
kernels/KEY/manifest.json   its SHA-256, the sizes, and the log-probabilities of a few lines
kernels/.lock               locked while a process packs a model

KEY is made of the bundle's hash, the version of this program and the interface of the library. The
lines were compared with the equation when the model was packed; a library that gives their numbers
to the last bit computes what was proven then, on this processor too.
"""

import contextlib
import dataclasses
import hashlib
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pellucid.backends.kernels.library import (
    SIZES,
    VERSION,
    Library,
    Model,
    Packed,
    Search,
    empty_block,
)
from pellucid.backends.user_cache import content_of, key_of, user_cache
from pellucid.bundle import Bundle, StoredModel
from pellucid.core.errors import CorruptError, InputMissingError, PellucidError
from pellucid.core.files import open_plain, read_manifest, verify_files, write_folder
from pellucid.core.version import __version__

MODEL_FILE = "model.packed"
_KIND = "kernels"

_log = logging.getLogger("pellucid.backends")


@dataclasses.dataclass(frozen=True)
class Line:
    """A pair of random ids with the log-probability of each target token and of the stop."""

    source: Sequence[int]
    target: Sequence[int]
    log_probs: Sequence[float]
    """Numbers of float32."""


def search_line(model: Model, source: Sequence[int], target: Sequence[int]) -> list[float]:
    """The log-probability of each token of the target and of its stop, by the library."""
    search = Search(
        sources=[source],
        limits=[len(target)],
        penalties=np.ones(len(target) + 3, np.float32),
        forced=[target],
    )
    [[(_, found)]] = model.search(search)
    return found


def kept_folder(bundle: Bundle) -> Path | None:
    """The folder of a bundle's packed model; None where there is no cache.

    None as well for a model in memory, which may have been changed since it was read.
    """
    cache = user_cache()
    is_stored = isinstance(bundle.held, StoredModel) and not bundle.held.is_read
    if cache is None or not is_stored:
        return None
    return cache / _KIND / key_of(content_of(bundle), __version__, VERSION, sys.byteorder)


def open_kept(folder: Path, library: Library, instructions: str | None = None) -> Model | None:
    """The packed model in ``folder``; None if there is none.

    None as well, with a warning, if it is damaged, or if the library gives other numbers for its
    lines: then it must be packed again.
    """
    try:
        packed, lines = _read(folder)
        model = library.open_packed(packed, instructions)
        for line in lines:
            if search_line(model, line.source, line.target) != list(line.log_probs):
                raise CorruptError(f"{folder} gives other numbers than when it was made")
    except InputMissingError:
        return None
    except (PellucidError, OSError) as error:
        _log.warning("a packed model is damaged and will be made again: %s", error)
        return None

    with contextlib.suppress(OSError):  # a folder that can only be read
        os.utime(folder)  # now in use
    return model


def keep(folder: Path, packed: Packed, lines: Sequence[Line]) -> None:
    """Write a packed model to ``folder`` in one step. Raises WriteError."""

    def fill(temporary: Path) -> None:
        with (temporary / MODEL_FILE).open("wb") as file:
            file.write(packed.block.data)

    details = {
        "kind": _KIND,
        "sizes": dict(packed.sizes),
        "lines": [dataclasses.asdict(line) for line in lines],
    }
    write_folder(folder, fill, details=details)


def _read(folder: Path) -> tuple[Packed, list[Line]]:
    """The block, which is what the manifest lists, and the lines.

    It is read, not mapped, so that truncating the file later cannot kill the process. Raises
    InputMissingError, CorruptError, OSError.
    """
    manifest = read_manifest(folder)
    verify_files(folder, manifest["files"], hashed=())
    try:
        entry = manifest["files"][MODEL_FILE]
        sizes = {name: manifest["sizes"][name] for name in SIZES}
        lines = [Line(**each) for each in manifest["lines"]]
        _check_numbers(sizes.values())
        for each in lines:
            _check_numbers((*each.source, *each.target, *each.log_probs))
        if not lines:
            raise ValueError("there are no lines")
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptError(f"the manifest of {folder} is not that of a packed model") from error

    block = empty_block(entry["size"])
    with open_plain(folder / MODEL_FILE) as file:
        read = file.readinto(block.data)  # type: ignore[attr-defined]  # a buffered file has it
    if read != entry["size"] or hashlib.sha256(block.data).hexdigest() != entry["sha256"]:
        raise CorruptError(f"{folder / MODEL_FILE} is damaged: its SHA-256 is another")
    return Packed(sizes, block), lines


def _check_numbers(values: Any) -> None:
    """Raise TypeError for anything but numbers."""
    if not all(type(each) in (int, float) for each in values):
        raise TypeError("a number is expected")
