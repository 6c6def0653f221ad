"""A bundle as CTranslate2 wants it, converted once and kept beside the bundle.

.ctranslate2/NAME-KEY-TYPE/   the converted model, with a manifest of its own
.ctranslate2/.lock            held while one process converts or opens

KEY is made of the bundle's hash and of the versions of both programs. A bundle that lies where
nothing can be written, or in no folder of ours, is kept in the user's cache folder instead.
"""

import contextlib
import fcntl
import hashlib
import json
import logging
import os
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from pellucid import __version__
from pellucid.bundle import Bundle, model_tensors
from pellucid.core.errors import CorruptError, InputMissingError, WriteError
from pellucid.core.files import remove_folder, remove_leftovers, verify_folder
from pellucid.core.tensors import fingerprint
from pellucid.interop.ctranslate2_export import export_ctranslate2
from pellucid.interop.quantization import Quantization

CACHE_FOLDER = ".ctranslate2"
_LOCK_FILE = ".lock"
_KEY_LENGTH = 16  # 64 bits: chance hits are out of the question

_log = logging.getLogger("pellucid")


@contextlib.contextmanager
def converted(bundle: Bundle, quantization: Quantization) -> Iterator[Path]:
    """The folder of the converted model, which stays as it is while the block lasts.

    It is made if it is not there, or if it is damaged; others who want it wait meanwhile.
    Raises WriteError if neither place can be written, and as ``export_ctranslate2`` does.
    """
    key = _key(bundle)
    name = "imported" if bundle.path is None else bundle.path.resolve().name
    faults = []
    with contextlib.ExitStack() as stack:
        for place in _places(bundle):
            folder = place / f"{name}-{key}-{quantization}"
            try:
                stack.enter_context(_locked(place))
            except OSError as error:
                if not _is_whole(folder):
                    faults.append(f"cannot write {place}: {error.strerror}")
                    continue
            else:
                _fill(folder, bundle, quantization)
            yield folder
            return
    raise WriteError(
        f"a converted model must be kept somewhere: {'; '.join(faults)}",
        hint="let XDG_CACHE_HOME name a folder that you may write, or take the engine torch",
    )


def _fill(folder: Path, bundle: Bundle, quantization: Quantization) -> None:
    """Make ``folder`` unless it is there and whole. The caller holds the lock."""
    remove_leftovers(folder.parent)
    if _is_whole(folder):
        return
    if folder.exists():
        remove_folder(folder)
    _remove_outdated(folder, bundle)
    _log.info("converting the model for CTranslate2 (%s), once, into %s", quantization, folder)
    export_ctranslate2(bundle, folder, quantization)


def _is_whole(folder: Path) -> bool:
    try:
        verify_folder(folder)
    except InputMissingError:
        return False
    except CorruptError as error:
        _log.warning("a converted model is damaged and will be made again: %s", error)
        return False
    return True


def _remove_outdated(folder: Path, bundle: Bundle) -> None:
    """Of the conversions beside bundles, those that no bundle there can want any more."""
    if bundle.path is None or folder.parent.parent != bundle.path.resolve().parent:
        return
    bundle_name, key, _ = folder.name.rsplit("-", 2)
    for other in folder.parent.glob("[!.]*-*-*"):
        name, other_key, _ = other.name.rsplit("-", 2)
        replaced = name == bundle_name and other_key != key
        if replaced or not (folder.parent.parent / name).exists():
            remove_folder(other)


def _key(bundle: Bundle) -> str:
    """What tells two models, or the same one converted otherwise, apart."""
    content = bundle.manifest.get("sha256")
    if content is None:
        content = [
            bundle.settings.get("model"),
            bundle.source_tokenizer.fingerprint,
            bundle.target_tokenizer.fingerprint,
            {name: fingerprint(each) for name, each in model_tensors(bundle.model).items()},
        ]
    described = json.dumps([content, __version__, version("ctranslate2")], sort_keys=True)
    return hashlib.sha256(described.encode()).hexdigest()[:_KEY_LENGTH]


def _places(bundle: Bundle) -> list[Path]:
    """Where a conversion may be kept, the best place first."""
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    own = Path(home).expanduser() / "pellucid" / CACHE_FOLDER
    return [own] if bundle.path is None else [bundle.path.resolve().parent / CACHE_FOLDER, own]


@contextlib.contextmanager
def _locked(place: Path) -> Iterator[None]:
    """Hold the place alone; waits for whoever holds it. Raises OSError if it cannot be made."""
    place.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(place / _LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
