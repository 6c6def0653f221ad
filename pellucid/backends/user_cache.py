"""The user's cache folder, where engines and the hub keep what takes long to make or to fetch."""

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

from pellucid.bundle import Bundle
from pellucid.core import system
from pellucid.core.files import remove_folder

_KEY_LENGTH = 16  # 64 bits: no two models get the same key by chance
_UNUSED_SECONDS = 30 * 24 * 3600.0
"""A conversion that was not opened for so long is removed when another one is made."""


def user_cache() -> Path | None:
    """The cache of this program in ``XDG_CACHE_HOME`` or else ``~/.cache``, if there is a home.

    A relative path is ignored, as the XDG Base Directory Specification requires.
    """
    named = Path(os.environ.get("XDG_CACHE_HOME") or "")
    try:
        above = named if named.is_absolute() else Path.home() / ".cache"
    except RuntimeError:  # a user without a home
        return None
    return above / "pellucid"


@contextlib.contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Make the folder and lock it, waiting for a process that holds the lock.

    Windows and some file systems of a network have no such locks: two processes that fill it at
    once do the work twice there. Raises OSError if it cannot be made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
        stack.callback(os.close, descriptor)
        with contextlib.suppress(OSError):
            system.lock(descriptor, waits=True)
            # Closing alone would not release it while a fork made meanwhile has the descriptor too.
            stack.callback(system.unlock, descriptor)
        yield


def key_of(*parts: object) -> str:
    """The name of a conversion that was made of these parts: hashes, versions."""
    described = json.dumps(parts, sort_keys=True)
    return hashlib.sha256(described.encode()).hexdigest()[:_KEY_LENGTH]


def content_of(bundle: Bundle) -> object:
    """The hash of a bundle's manifest; of an imported model, its parts and their hashes."""
    content = bundle.manifest.get("sha256")
    if content is not None:
        return content

    # an imported model has no manifest: its key is made of its parts
    from pellucid.core.tensors import fingerprint
    from pellucid.model.stored import model_tensors

    return [
        bundle.config.to_table(),
        bundle.source_tokenizer.fingerprint,
        bundle.target_tokenizer.fingerprint,
        {name: fingerprint(each) for name, each in model_tensors(bundle.model).items()},
    ]


def remove_unused(folder: Path) -> None:
    """Remove each conversion in ``folder`` that was not opened for a month."""
    for other in folder.glob("[!.]*"):
        with contextlib.suppress(OSError):  # not ours to remove, or gone by now
            if time.time() - other.lstat().st_mtime > _UNUSED_SECONDS:
                remove_folder(other)
