"""Models converted for CTranslate2, once, and kept beside the bundle.

.ctranslate2/NAME-KEY-TYPE/   the converted model, with a manifest and a proof that it is ours
.ctranslate2/.lock            locked while a process converts or opens

KEY is made of the bundle's hash and of the versions of both programs. Beside a bundle in a folder
that cannot be written, or without a bundle, the user's cache folder is used instead. A conversion
that this user's program did not make is never opened (see ``is_proven``).
"""

import contextlib
import errno
import fcntl
import hashlib
import hmac
import json
import logging
import os
import secrets
import stat
import tempfile
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

from pellucid.backends.ctranslate2 import Quantization
from pellucid.bundle import Bundle
from pellucid.core.errors import CorruptError, InputMissingError, WriteError
from pellucid.core.files import (
    MANIFEST_NAME,
    name_with_room,
    read_plain,
    remove_folder,
    remove_leftovers,
    verify_folder,
    write_file,
)
from pellucid.core.version import __version__

CACHE_FOLDER = ".ctranslate2"
_KEY_LENGTH = 16  # 64 bits: no two models get the same key by chance

_log = logging.getLogger("pellucid.backends")

Convert = Callable[[Bundle, Quantization], contextlib.AbstractContextManager[Path]]
"""Returns a context manager with the folder of a converted model."""


@contextlib.contextmanager
def converted(bundle: Bundle, quantization: Quantization) -> Iterator[Path]:
    """The folder of the converted model, which does not change while the block lasts.

    The model is converted if it was not yet, if the folder is damaged, or if this user's program
    did not make it; other processes wait meanwhile. Where nothing can be written it is converted
    for this block alone.
    Raises WriteError if that cannot be written either, and as ``export_ctranslate2`` does.
    """
    secret = own_secret()
    key = _key(bundle)
    name = "imported" if bundle.path is None else _short_name(bundle.path.resolve())

    with contextlib.ExitStack() as stack:
        # without a secret nothing kept could be proven, so nothing is kept
        for parent in _parents(bundle) if secret is not None else []:
            assert secret is not None
            folder = parent / f"{name}-{key}-{quantization}"
            try:
                stack.enter_context(locked_folder(parent))
            except OSError as error:
                _log.debug("cannot write %s: %s", parent, error.strerror)
                # a folder that cannot be written may still hold a conversion of this user
                if not _is_ours(folder, secret):
                    continue
            else:
                if _is_of_another_user(folder):
                    _log.info("%s is another user's and is left alone", folder)
                    continue
                _fill(folder, bundle, quantization, secret)
            yield folder
            return
        _log.info(
            "converting the model for CTranslate2 (%s), for this time alone: nothing can be kept"
            " (let XDG_CACHE_HOME name a folder that you may write)",
            quantization,
        )
        yield stack.enter_context(converted_for_now(bundle, quantization))


@contextlib.contextmanager
def converted_for_now(bundle: Bundle, quantization: Quantization) -> Iterator[Path]:
    """A conversion that is removed with the block. Raises WriteError."""
    try:
        temporary = tempfile.TemporaryDirectory(prefix="pellucid-", ignore_cleanup_errors=True)
    except OSError as error:
        raise WriteError(
            f"a converted model must be kept somewhere: {error.strerror}",
            hint="let XDG_CACHE_HOME name a folder that you may write, or take the engine torch",
        ) from error
    with temporary:
        from pellucid.backends.ctranslate2.export import export_ctranslate2

        folder = Path(temporary.name) / "model"
        export_ctranslate2(bundle, folder, quantization)
        yield folder


def _fill(folder: Path, bundle: Bundle, quantization: Quantization, secret: bytes) -> None:
    """Convert into ``folder`` unless it is whole and ours. The caller holds the lock."""
    remove_leftovers(folder.parent)
    if _is_ours(folder, secret):
        return

    if folder.exists() or folder.is_symlink():
        remove_folder(folder)
    _remove_outdated(folder, bundle)

    _log.info("converting the model for CTranslate2 (%s), once, into %s", quantization, folder)
    from pellucid.backends.ctranslate2.export import export_ctranslate2

    export_ctranslate2(bundle, folder, quantization)
    # last: a conversion that was interrupted has no proof
    prove(folder, secret)


def _is_ours(folder: Path, secret: bytes) -> bool:
    """Whether a conversion exists, is whole and was made by this user's program; logs if not."""
    try:
        files = verify_folder(folder)["files"]
    except InputMissingError:
        return False
    except CorruptError as error:
        _log.warning("a converted model is damaged and will be made again: %s", error)
        return False
    if is_proven(folder, secret, frozenset(files)):
        return True
    _log.warning("a converted model was not made here and will be made again: %s", folder)
    return False


def _is_of_another_user(folder: Path) -> bool:
    try:
        return folder.lstat().st_uid != os.geteuid()
    except OSError:
        return False


def _remove_outdated(folder: Path, bundle: Bundle) -> None:
    """Remove the conversions beside bundles that no bundle there can use any more."""
    if bundle.path is None or folder.parent.parent != bundle.path.resolve().parent:
        return
    bundle_name, key, _ = folder.name.rsplit("-", 2)
    present = {_short_name(each) for each in folder.parent.parent.iterdir()}
    for other in folder.parent.glob("[!.]*-*-*"):
        name, other_key, _ = other.name.rsplit("-", 2)
        replaced = name == bundle_name and other_key != key
        if replaced or name not in present:
            remove_folder(other)


def _short_name(path: Path) -> str:
    """The name of a bundle, with room for the rest of the name of its conversion."""
    return name_with_room(path.name, len(f"-{'0' * _KEY_LENGTH}-float32"))


def _key(bundle: Bundle) -> str:
    """A key that differs between models, and between versions of the two programs."""
    described = json.dumps(
        [content_of(bundle), __version__, version("ctranslate2")], sort_keys=True
    )
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
        bundle.settings.get("model"),
        bundle.source_tokenizer.fingerprint,
        bundle.target_tokenizer.fingerprint,
        {name: fingerprint(each) for name, each in model_tensors(bundle.model).items()},
    ]


def _parents(bundle: Bundle) -> list[Path]:
    """The folders that may hold a conversion, the best first."""
    parents = [] if bundle.path is None else [bundle.path.resolve().parent]
    own = own_folder()
    return [parent / CACHE_FOLDER for parent in (*parents, *([own] if own else []))]


_LOCK_FILE = ".lock"


@contextlib.contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Make the folder and lock it, waiting for a process that holds the lock.

    Raises OSError if it cannot be made, or if it is a link, whose target another user may have
    chosen.
    """
    if folder.is_symlink():
        raise OSError(errno.ELOOP, "it is a link", str(folder))
    folder.mkdir(parents=True, exist_ok=True)

    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
    descriptor = os.open(folder / _LOCK_FILE, flags, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        # Closing alone would not release it while a fork made meanwhile has the descriptor too.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


_PROOF_NAME = "proof"
_SECRET_NAME = "secret"  # noqa: S105  # a file's name
_SECRET_SIZE = 32
_MOST_BYTES = 1 << 20
_ONLY_OWNER = 0o600

_log = logging.getLogger("pellucid.backends")


def own_folder() -> Path | None:
    """The user's cache folder for Pellucid, ``XDG_CACHE_HOME`` or else ``~/.cache``, if any.

    A relative path is ignored, as the XDG Base Directory Specification requires.
    """
    named = Path(os.environ.get("XDG_CACHE_HOME") or "")
    if named.is_absolute():
        return named / "pellucid"
    try:
        return Path.home() / ".cache" / "pellucid"
    except RuntimeError:  # a user without a home
        return None


def own_secret() -> bytes | None:
    """The user's secret, made on first use; None where it cannot be kept."""
    folder = own_folder()
    if folder is None:
        return None

    path = folder / _SECRET_NAME
    known = _read_secret(path)
    if known is not None:
        return known

    try:
        with locked_folder(folder):
            # again, now locked: another process may have made it meanwhile
            known = _read_secret(path)
            return _new_secret(path) if known is None else known
    except OSError as error:
        _log.info("no secret can be kept in %s: %s", folder, error.strerror)
        return None


def prove(folder: Path, secret: bytes) -> None:
    """Write the proof that a conversion is ours. Raises WriteError."""
    write_file(folder / _PROOF_NAME, _proof(folder, secret))


def is_proven(folder: Path, secret: bytes, files: frozenset[str]) -> bool:
    """Whether a conversion is ours, under its name, and holds exactly these ``files``."""
    try:
        given = read_plain(folder / _PROOF_NAME, _MOST_BYTES)
        expected = _proof(folder, secret)
        names = {path.name for path in folder.iterdir()}
    except OSError:
        return False
    known = files | {MANIFEST_NAME, _PROOF_NAME}
    # constant time; files beside the known ones could be opened by CTranslate2
    return hmac.compare_digest(given, expected) and names == known


def _proof(folder: Path, secret: bytes) -> bytes:
    manifest = read_plain(folder / MANIFEST_NAME, _MOST_BYTES)
    # the manifest holds the hash of each file, so the proof covers them all
    message = os.fsencode(folder.name) + b"\0" + manifest  # no name holds a NUL
    return hmac.new(secret, message, "sha256").hexdigest().encode()


def _read_secret(path: Path) -> bytes | None:
    """The secret, if nobody else can have read it or put it there."""
    try:
        about = path.lstat()
        is_own = (
            stat.S_ISREG(about.st_mode)
            and about.st_uid == os.geteuid()
            and stat.S_IMODE(about.st_mode) & 0o077 == 0
        )
        secret = read_plain(path, _SECRET_SIZE) if is_own else b""
    except OSError:
        return None
    return secret if len(secret) == _SECRET_SIZE else None


def _new_secret(path: Path) -> bytes:
    """Draw a secret and write it atomically, readable by its owner alone. Raises OSError."""
    secret = secrets.token_bytes(_SECRET_SIZE)
    temporary = path.with_name(f".tmp-{secrets.token_hex(16)}")

    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    descriptor = os.open(temporary, flags, _ONLY_OWNER)
    try:
        # the umask may have removed bits of the mode, never added any
        os.fchmod(descriptor, _ONLY_OWNER)
        os.write(descriptor, secret)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    # atomic, and after fsync: no process reads half a secret
    temporary.replace(path)
    return secret
