"""Proof that a converted model was made by this user's own program and not by a stranger.

A manifest says that files are whole, not who wrote them: whoever packs a run folder can put any
conversion, with a manifest that fits, where ours would lie. So each conversion of ours bears a
proof, an HMAC (RFC 2104) over its manifest and its name under a secret that no stranger has.

The secret lies in the user's own cache folder, for that user alone to read. Without it all
conversions are made again, and nothing else is lost.
"""

import hmac
import logging
import os
import secrets
import stat
from pathlib import Path

from pellucid.core.files import MANIFEST_NAME, read_plain, write_file
from pellucid.engines.locking import locked_folder

_PROOF_NAME = "proof"
_SECRET_NAME = "secret"  # noqa: S105  # a file's name
_SECRET_SIZE = 32
_MOST_BYTES = 1 << 20
_ONLY_OWNER = 0o600

_log = logging.getLogger("pellucid.engines")


def own_folder() -> Path | None:
    """The user's cache folder for Pellucid, ``XDG_CACHE_HOME`` or else ``~/.cache``, if any.

    A relative path counts for nothing, as the XDG Base Directory Specification asks.
    """
    told = Path(os.environ.get("XDG_CACHE_HOME") or "")
    if told.is_absolute():
        return told / "pellucid"
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
            known = _read_secret(path)
            return _new_secret(path) if known is None else known
    except OSError as error:
        _log.info("no secret can be kept in %s: %s", folder, error.strerror)
        return None


def prove(folder: Path, secret: bytes) -> None:
    """Leave in a conversion the proof that it is ours. Raises WriteError."""
    write_file(folder / _PROOF_NAME, _proof(folder, secret))


def is_proven(folder: Path, secret: bytes, files: frozenset[str]) -> bool:
    """Whether a conversion is ours, under its own name, and holds these ``files`` and no others."""
    try:
        given = read_plain(folder / _PROOF_NAME, _MOST_BYTES)
        expected = _proof(folder, secret)
        names = {path.name for path in folder.iterdir()}
    except OSError:
        return False
    known = files | {MANIFEST_NAME, _PROOF_NAME}
    return hmac.compare_digest(given, expected) and names == known


def _proof(folder: Path, secret: bytes) -> bytes:
    manifest = read_plain(folder / MANIFEST_NAME, _MOST_BYTES)
    message = os.fsencode(folder.name) + b"\0" + manifest  # no name holds a NUL
    return hmac.new(secret, message, "sha256").hexdigest().encode()


def _read_secret(path: Path) -> bytes | None:
    """The secret, if it is one that nobody else can have read or put there."""
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
    """Draw a secret and put it in place in one step, for its owner alone. Raises OSError."""
    secret = secrets.token_bytes(_SECRET_SIZE)
    temporary = path.with_name(f".tmp-{secrets.token_hex(16)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    descriptor = os.open(temporary, flags, _ONLY_OWNER)
    try:
        os.fchmod(descriptor, _ONLY_OWNER)
        os.write(descriptor, secret)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    temporary.replace(path)
    return secret
