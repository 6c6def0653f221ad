"""Files that are whole or not there at all: synced, renamed into place, and hashed."""

import contextlib
import contextvars
import ctypes
import dataclasses
import errno
import hashlib
import json
import os
import shutil
import stat
import time
import uuid
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from pellucid.core.errors import CorruptError, InputMissingError, WriteError
from pellucid.core.limits import Deadline

MANIFEST_NAME = "manifest.json"
MANIFEST_VERSION = 1
LARGEST_TABLE = 1 << 28
"""Bytes of a vocabulary or a subword model; far more than any has, far less than memory."""
LARGEST_MANIFEST = 1 << 22
"""Bytes: fifty thousand tensors have their fingerprints there."""
_MOST_BRACKETS = 10_000
"""Opening ones in a manifest, one for each file: nested lists are what takes memory to parse."""
_SPARSE_FROM = 1 << 26
_LEAST_STORED = 16
"""A file that large must have a sixteenth of its bytes on the disk. No compression of a file system
makes weights smaller than that; holes do, and thirty gigabytes of nothing take minutes to hash."""
_BLOCK = 512  # of st_blocks, whatever the disk's own
_HASHED_AT_ONCE = 1 << 24
_READ_AT_ONCE = (1 << 31) - (1 << 16)
"""Linux gives a little less than two gigabytes in one call."""
POINTER = b"version https://git-lfs.github.com/spec/"
"""How a file begins that git-lfs left in the place of a large one."""
POINTER_HINT = "the folder was cloned without git-lfs: install it and run git lfs pull there"
TEMPORARY_PREFIX = ".tmp-"

_CURRENT_FOLDER = -100  # AT_FDCWD of <fcntl.h>
_RENAME_EXCHANGE = 2  # of <linux/fs.h>


@dataclasses.dataclass(frozen=True)
class _Expected:
    """What ``read_plain`` must find, inside ``verified_reading``."""

    digests: Mapping[Path, str]
    unread: set[Path]
    deadline: Deadline | None


_expected: contextvars.ContextVar[_Expected | None] = contextvars.ContextVar(
    "expected", default=None
)


def sha256_of(path: Path, deadline: Deadline | None = None) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal. Raises BundleError after the deadline."""
    if deadline is None:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_HASHED_AT_ONCE):
            deadline.check()
            digest.update(block)
    return digest.hexdigest()


def is_sparse(path: Path) -> bool:
    """Whether hardly any bytes of a large file are on the disk."""
    about = path.stat()
    stored = getattr(about, "st_blocks", about.st_size) * _BLOCK
    return about.st_size > max(_SPARSE_FROM, _LEAST_STORED * stored)


def is_pointer(path: Path) -> bool:
    """Whether git-lfs left a pointer in the place of this file."""
    try:
        if not path.is_file():  # to open a pipe waits for its writer
            return False
        with path.open("rb") as file:
            return file.read(len(POINTER)) == POINTER
    except OSError:
        return False


def read_plain(path: Path, most: int | None = None) -> bytes:
    """The bytes of a file that ends: reading a pipe or a device might go on forever.

    Raises OSError if it cannot be read, is no plain file, or has more than ``most`` bytes, and
    CorruptError if it is not what ``verified_reading`` expects.
    """
    about = path.stat()
    if not stat.S_ISREG(about.st_mode) and not stat.S_ISDIR(about.st_mode):
        raise OSError(errno.EINVAL, "it is not a plain file", str(path))
    if most is not None and about.st_size > most:
        raise OSError(errno.EFBIG, f"it has more than {most:,} bytes", str(path))
    expected = _expected.get()
    if expected is not None and expected.deadline is not None:
        expected.deadline.check()
    content = path.read_bytes()
    if expected is not None and path in expected.digests:
        _check_digest(path, expected.digests[path], hashlib.sha256(content).hexdigest())
        expected.unread.discard(path)
    return content


class HeldFile:
    """A file that is opened now and read later, whatever becomes of its folder.

    What is read is what it held when its manifest was read, or an error.
    """

    def __init__(self, path: Path, digest: str) -> None:
        """``digest`` is the SHA-256 of its bytes. Raises InputMissingError."""
        self.path = path
        self._digest = digest
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            self._descriptor = os.open(path, flags)
        except OSError as error:
            raise InputMissingError(f"cannot read {path}: {error.strerror}") from error
        weakref.finalize(self, os.close, self._descriptor)

    def read(self) -> bytes:
        """Its bytes. Raises InputMissingError, CorruptError if they are not those expected, and
        BundleError after the deadline of ``verified_reading``."""
        parts = list(self._parts(_READ_AT_ONCE))
        content = parts[0] if len(parts) == 1 else b"".join(parts)
        self._check(hashlib.sha256(content).hexdigest())
        return content

    def verify(self) -> None:
        """Raise as ``read`` does, without keeping the bytes."""
        digest = hashlib.sha256()
        for part in self._parts(_HASHED_AT_ONCE):
            digest.update(part)
        self._check(digest.hexdigest())

    def _parts(self, most: int) -> Iterator[bytes]:
        expected = _expected.get()
        place = 0
        try:
            size = os.fstat(self._descriptor).st_size
            while place < size:
                if expected is not None and expected.deadline is not None:
                    expected.deadline.check()

                # at a place of its own: a process that was forked shares that of the descriptor
                part = os.pread(self._descriptor, min(most, size - place), place)
                if not part:  # cut short meanwhile
                    return
                yield part
                place += len(part)
        except OSError as error:
            raise InputMissingError(f"cannot read {self.path}: {error.strerror}") from error

    def _check(self, digest: str) -> None:
        _check_digest(self.path, self._digest, digest)
        expected = _expected.get()
        if expected is not None:
            expected.unread.discard(self.path)


def write_file(path: Path, content: bytes) -> None:
    """Replace ``path`` by ``content`` in one step: readers see the old bytes or the new.

    The mode follows the umask. Raises WriteError; the old file is then unharmed.
    """
    with open_replacement(path) as file:
        file.write(content)


@contextlib.contextmanager
def open_replacement(path: Path) -> Iterator[BinaryIO]:
    """A file to write that takes the place of ``path`` when the block ends well.

    Raises WriteError; then, as after any error inside the block, the old file is unharmed.
    """
    temporary = path.with_name(f"{TEMPORARY_PREFIX}{uuid.uuid4().hex}")
    with write_errors(path):
        try:
            with temporary.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)


def write_folder(path: Path, fill: Callable[[Path], None], *, details: dict[str, Any]) -> None:
    """Make ``path`` a folder that ``fill`` has written, complete with manifest, in one step.

    ``fill`` gets an empty temporary folder. Its files are hashed into ``manifest.json`` beside
    ``details``, everything is synced, and the folder is renamed into place; a folder that was
    there before is removed after that. Raises WriteError; an older folder is then unharmed.
    """
    temporary = path.parent / f"{TEMPORARY_PREFIX}{uuid.uuid4().hex}"
    with write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            temporary.mkdir()
            fill(temporary)
            _write_manifest(temporary, details)
            _replace_folder(temporary, path)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a folder made by ``write_folder``.

    Raises InputMissingError if there is none, CorruptError if it cannot be read.
    """
    path = folder / MANIFEST_NAME
    try:
        text = read_plain(path, LARGEST_MANIFEST)
        if text.count(b"[") + text.count(b"{") > _MOST_BRACKETS:
            raise CorruptError(f"{path} is damaged: it lists more than {_MOST_BRACKETS:,} files")
        manifest = json.loads(text)
        files = manifest["files"]
        well_formed = manifest["version"] == MANIFEST_VERSION and all(
            isinstance(entry["size"], int)
            and isinstance(entry["sha256"], str)
            and (name.isascii() and name.isprintable())
            for name, entry in files.items()
        )
    except FileNotFoundError:
        raise InputMissingError(f"{folder} has no {MANIFEST_NAME}") from None
    except OSError as error:
        raise InputMissingError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CorruptError(f"{path} is damaged: not UTF-8 (byte {error.start})") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        hint = POINTER_HINT if is_pointer(path) else ""
        raise CorruptError(f"{path} is damaged: {error!r}", hint=hint) from error

    if not well_formed:
        raise CorruptError(f"{path} is damaged or of an unknown version")
    if text != manifest_text(manifest):
        raise CorruptError(f"{path} is damaged: its SHA-256 is not the one it ends with")

    return dict(manifest)


def manifest_text(manifest: Mapping[str, Any]) -> bytes:
    """A manifest as it stands on disk: its own SHA-256 is its last entry."""
    content = {key: value for key, value in manifest.items() if key != "sha256"}
    digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()
    return json.dumps({**content, "sha256": digest}, indent=2).encode()


def verify_folder(folder: Path, deadline: Deadline | None = None) -> dict[str, Any]:
    """Check every file of a folder against its manifest, which is returned.

    Raises CorruptError naming the file, what was expected and what was got, BundleError after the
    deadline.
    """
    manifest = read_manifest(folder)
    verify_files(folder, manifest["files"], hashed=manifest["files"].keys(), deadline=deadline)
    return manifest


def verify_files(
    folder: Path,
    files: Mapping[str, Mapping[str, Any]],
    *,
    hashed: Collection[str],
    deadline: Deadline | None = None,
) -> None:
    """Check the size of each file of a manifest, and the bytes of those that are to be ``hashed``.

    Raises CorruptError naming the file, what was expected and what was got, BundleError after the
    deadline.
    """
    for name, entry in files.items():  # what costs nothing goes first
        path = folder / name
        if Path(name).name != name or path.is_symlink() or not path.is_file():
            raise CorruptError(f"{path} is missing or not a plain file")
        about = path.stat()
        if about.st_size != entry["size"]:
            if is_pointer(path):
                raise CorruptError(f"{path} is a pointer of git-lfs", hint=POINTER_HINT)
            raise CorruptError(f"{path} should have {entry['size']} bytes, has {about.st_size}")
        if is_sparse(path):
            raise CorruptError(f"{path} must be whole, is {about.st_size:,} bytes mostly of holes")

    for name, entry in files.items():
        if name in hashed:
            _check_digest(folder / name, entry["sha256"], sha256_of(folder / name, deadline))


@contextlib.contextmanager
def verified_reading(folder: Path, deadline: Deadline | None = None) -> Iterator[dict[str, Any]]:
    """Read a folder and check it in one: whatever the block reads is what the manifest lists.

    The manifest is given. Inside the block ``read_plain`` hashes the very bytes that it returns,
    so a file that is exchanged after a separate check cannot slip in; files that the block has not
    read are hashed at its end. Raises as ``verify_folder`` does, at the beginning, at the end or
    where a file is read; BundleError after the deadline.
    """
    manifest = read_manifest(folder)
    files = manifest["files"]
    verify_files(folder, files, hashed=())

    digests = {folder / name: entry["sha256"] for name, entry in files.items()}
    digests[folder / MANIFEST_NAME] = hashlib.sha256(manifest_text(manifest)).hexdigest()
    expected = _Expected(digests, unread=set(digests), deadline=deadline)
    token = _expected.set(expected)
    try:
        yield manifest
    finally:
        _expected.reset(token)
    for path in sorted(expected.unread):
        _check_digest(path, digests[path], sha256_of(path, deadline))


def _check_digest(path: Path, expected: str, digest: str) -> None:
    if digest != expected:
        raise CorruptError(f"{path} should have SHA-256 {expected}, has {digest}")


def remove_leftovers(folder: Path) -> list[Path]:
    """Delete the temporary files and folders that a killed process left behind."""
    leftovers = list(folder.glob(f"{TEMPORARY_PREFIX}*")) if folder.is_dir() else []
    for leftover in leftovers:
        if leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)
    return leftovers


def sync_folder(folder: Path) -> None:
    """Make renames inside ``folder`` durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """Turn an OSError met while writing ``path`` into a WriteError that says what to do."""
    try:
        yield
    except OSError as error:
        hint = ""
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            hint = "free some disk space and run the command again (train: with --resume)"
        raise WriteError(f"cannot write {path}: {error.strerror or error}", hint=hint) from error


def _write_manifest(folder: Path, details: dict[str, Any]) -> None:
    names = sorted(path.name for path in folder.iterdir())
    _sync_files(folder / name for name in names)
    files = {
        name: {"size": (folder / name).stat().st_size, "sha256": sha256_of(folder / name)}
        for name in names
    }
    manifest = {"version": MANIFEST_VERSION, **details, "files": files}
    write_file(folder / MANIFEST_NAME, manifest_text(manifest))


def _sync_files(paths: Iterable[Path]) -> None:
    umask = os.umask(0)
    os.umask(umask)
    for path in paths:
        path.chmod(0o666 & ~umask)  # safetensors writes 0600, which locks out other users
        with path.open("rb") as file:
            os.fsync(file.fileno())


def _replace_folder(temporary: Path, path: Path) -> None:
    sync_folder(temporary)
    if path.exists():
        _exchange(temporary, path)
        sync_folder(path.parent)
        shutil.rmtree(temporary, ignore_errors=True)
    else:
        temporary.rename(path)
        sync_folder(path.parent)


def _exchange(new: Path, old: Path) -> None:
    """Swap two folders in one step, so that a kill leaves one of them whole under ``old``.

    Linux alone can do that (renameat2 with RENAME_EXCHANGE); elsewhere there is an instant in
    which only the temporary name exists.
    """
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        rename = None
    if rename is not None and not rename(
        _CURRENT_FOLDER, os.fsencode(new), _CURRENT_FOLDER, os.fsencode(old), _RENAME_EXCHANGE
    ):
        return
    aside = old.with_name(f"{TEMPORARY_PREFIX}{uuid.uuid4().hex}")
    old.rename(aside)
    new.rename(old)
    aside.rename(new)


def remove_folder(folder: Path) -> None:
    """Delete a folder so that a half-deleted one is never taken for whole."""
    doomed = folder.with_name(f"{TEMPORARY_PREFIX}{uuid.uuid4().hex}")
    folder.rename(doomed)
    shutil.rmtree(doomed, ignore_errors=True)


NAME = "inputs.json"
_WORTH_KNOWING = 1 << 26
"""Bytes; a smaller file is hashed each time, in less than a tenth of a second."""
_SETTLED = 2_000_000_000
"""Nanoseconds without a change before a file's times can be trusted: file systems keep them to two
seconds at worst, so a file may change twice within one of their ticks."""


class KnownFiles:
    """Hashes of files, kept in a folder beside what was made of them.

    A file counts as unchanged while its size, both its times, its inode and its device do. Its
    time of change cannot be set by programs, so a file that was replaced, or written to and dated
    back, is noticed; bytes that rot on the disk are not, and are not looked for: the store made of
    them has hashes of its own.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._known: dict[str, list[object]] = {}
        with contextlib.suppress(OSError, ValueError, RecursionError):
            table = json.loads(read_plain(self._path, LARGEST_TABLE))
            if isinstance(table, dict):
                self._known = {key: entry for key, entry in table.items() if len(entry) == 2}

    def sha256_of(self, path: Path) -> str:
        """The SHA-256 of a file, as ``core.files.sha256_of``, without reading it if it is known."""
        before = _state_of(path)
        if path.stat().st_size < _WORTH_KNOWING:
            return sha256_of(path)
        key = str(path.resolve())
        state, digest = self._known.get(key, [None, None])
        if state == before and isinstance(digest, str):
            return digest
        began = time.time_ns()
        digest = sha256_of(path)
        is_settled = began - max(path.stat().st_mtime_ns, path.stat().st_ctime_ns) > _SETTLED
        if is_settled and _state_of(path) == before:
            self._known[key] = [before, digest]
            self._save()
        return digest

    def _save(self) -> None:
        with contextlib.suppress(WriteError, OSError):  # then it is hashed again next time
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_file(self._path, json.dumps(self._known).encode())


def _state_of(path: Path) -> list[int]:
    about = path.stat()
    return [about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino, about.st_dev]


CONFIG_FILE = "config.toml"
"""The whole config, as it was resolved."""
RECIPE_FILE = "recipe.toml"
"""What was chosen for two text files, with its reasons; absent where a config was named."""
JOURNAL_FILE = "journal.jsonl"
"""What happened."""
LOCK_FILE = ".lock"
"""Held by the process that works here."""
BUNDLES_FOLDER = "bundles"
"""To translate with."""
CHECKPOINTS_FOLDER = "checkpoints"
"""To go on from."""
DATA_FOLDER = "data"
"""Tokenized training text."""
BOARD_FOLDER = "tensorboard"
"""TensorBoard's event files, if asked for."""
TOKENIZER_FOLDER = "tokenizer"
"""The tokenizers."""
