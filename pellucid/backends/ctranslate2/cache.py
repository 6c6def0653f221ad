"""Models converted for CTranslate2, once, and kept in the user's cache folder.

ctranslate2/KEY-TYPE/   the converted model, with a manifest
ctranslate2/.lock       locked while a process converts or opens

KEY is made of the bundle's hash and of the versions of both programs. Nothing beside a bundle is
opened: whoever made the bundle could have put another model there.
"""

import contextlib
import dataclasses
import logging
import os
import tempfile
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

from pellucid.backends.ctranslate2 import Quantization
from pellucid.backends.user_cache import (
    content_of,
    key_of,
    locked_folder,
    remove_unused,
    user_cache,
)
from pellucid.bundle import Bundle, StoredModel
from pellucid.core.errors import CorruptError, InputMissingError, WriteError
from pellucid.core.files import remove_folder, remove_leftovers, verify_folder
from pellucid.core.version import __version__

_log = logging.getLogger("pellucid.backends")

Convert = Callable[[Bundle, Quantization], contextlib.AbstractContextManager[Path]]
"""Returns a context manager with the folder of a converted model."""


@contextlib.contextmanager
def converted(bundle: Bundle, quantization: Quantization) -> Iterator[Path]:
    """The folder of the converted model, which does not change while the block lasts.

    The model is converted if it was not yet, or if the folder is damaged; other processes wait
    meanwhile. Where nothing can be written it is converted for this block alone. Raises WriteError
    if that cannot be written either, and as ``convert`` does.
    """
    cache = cache_folder()
    folder = None if cache is None else cache / f"{_key(bundle)}-{quantization}"

    with contextlib.ExitStack() as stack:
        try:
            if folder is not None:
                stack.enter_context(locked_folder(folder.parent))
                _fill(folder, bundle, quantization)
                os.utime(folder)  # now in use
        except (OSError, WriteError) as error:
            # A folder that cannot be written may still hold the conversion.
            _log.debug("cannot write %s: %s", folder, error)
            folder = folder if folder is not None and _is_whole(folder) else None

        if folder is None:
            _log.info(
                "converting the model for CTranslate2 (%s), for this time alone: nothing can be"
                " kept (let XDG_CACHE_HOME name a folder that you may write)",
                quantization,
            )
            folder = stack.enter_context(converted_for_now(bundle, quantization))
        yield folder


@contextlib.contextmanager
def converted_for_now(bundle: Bundle, quantization: Quantization) -> Iterator[Path]:
    """A conversion that is removed with the block. Raises WriteError."""
    from pellucid.backends.ctranslate2.export import convert

    try:
        temporary = tempfile.TemporaryDirectory(prefix="pellucid-", ignore_cleanup_errors=True)
    except OSError as error:
        raise WriteError(
            f"a converted model must be kept somewhere: {error.strerror}",
            hint="let XDG_CACHE_HOME name a folder that you may write, or take the engine torch",
        ) from error
    with temporary:
        folder = Path(temporary.name) / "model"
        convert(bundle, folder, quantization)
        yield folder


def _fill(folder: Path, bundle: Bundle, quantization: Quantization) -> None:
    """Convert into ``folder`` unless it is whole. The caller holds the lock."""
    remove_leftovers(folder.parent)
    if _is_whole(folder):
        return

    # Imported only now, as it imports torch, which takes a second and 200 MB.
    from pellucid.backends.ctranslate2.export import convert

    if os.path.lexists(folder):
        remove_folder(folder)
    remove_unused(folder.parent)

    _log.info("converting the model for CTranslate2 (%s), once, into %s", quantization, folder)
    convert(bundle, folder, quantization)


def _is_whole(folder: Path) -> bool:
    """Whether a conversion exists and is whole; logs a damaged one."""
    try:
        verify_folder(folder)
    except InputMissingError:
        return False
    except CorruptError as error:
        _log.warning("a converted model is damaged and will be made again: %s", error)
        return False
    return True


def _key(bundle: Bundle) -> str:
    """A key that differs between models, and between versions of the two programs."""
    # a model in memory may have been changed since it was read: its tensors count
    is_stored = isinstance(bundle.held, StoredModel) and not bundle.held.is_read
    content = content_of(bundle if is_stored else dataclasses.replace(bundle, manifest={}))
    return key_of(content, __version__, version("ctranslate2"))


def cache_folder() -> Path | None:
    """The folder of conversions, if there is a cache."""
    cache = user_cache()
    return None if cache is None else cache / "ctranslate2"
