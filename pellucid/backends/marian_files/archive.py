"""Marian's model archive (``.npz``): arrays by name, and the settings as an array of bytes."""

import io
import zipfile

import numpy as np

from pellucid.backends.marian_files.items import MODEL_YML, Items
from pellucid.core.errors import CorruptError

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
