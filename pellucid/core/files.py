"""Files and folders that are written whole or not at all, and checked when they are read.

``write_file``, ``open_replacement`` and ``write_folder`` write under a temporary name, sync and
rename; a folder gets a manifest with the size and SHA-256 of each file. ``read_plain``,
``HeldFile``, ``verify_folder`` and ``verified_reading`` read and check.
"""

import contextlib
import contextvars
import dataclasses
import errno
import json
import logging
import os
import re
import shlex
import signal
import stat
import threading
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from pellucid.core import system
from pellucid.core.errors import CorruptError, InputMissingError, OutputExistsError, WriteError
from pellucid.core.limits import Deadline

if TYPE_CHECKING:
    import hashlib

_log = logging.getLogger("pellucid")
Opened = TypeVar("Opened")

MANIFEST_NAME = "manifest.json"
MANIFEST_VERSION = 1
LARGEST_TABLE = 1 << 28
"""Bytes of a vocabulary or a subword model; far more than any has, far less than memory."""
LARGEST_MANIFEST = 1 << 22
"""Bytes: enough for the fingerprints of fifty thousand tensors."""
_MOST_BRACKETS = 10_000
"""Opening brackets in a manifest, which has one for each file. Nested lists take most memory to
parse."""
_SPARSE_FROM = 1 << 26
_LEAST_STORED = 16
"""From that size on, a sixteenth of a file's bytes must be on the disk. No file system compresses
weights further than that; less means a sparse file, and thirty gigabytes of holes take minutes to
hash."""
_BLOCK = 512  # of st_blocks, whatever the disk's own
_HASHED_AT_ONCE = 1 << 20
"""Bytes: larger blocks are hashed no faster, and two of them are in memory at a time."""
_READ_AT_ONCE = (1 << 31) - (1 << 16)
"""Linux gives a little less than two gigabytes in one call."""
POINTER = b"version https://git-lfs.github.com/spec/"
"""The beginning of the pointer that git-lfs leaves in the place of a large file."""
POINTER_HINT = "the folder was cloned without git-lfs: install it and run git lfs pull there"
TEMPORARY_PREFIX = ".tmp-"
_LEFTOVER = re.compile(re.escape(TEMPORARY_PREFIX) + r"([0-9a-f]{32}(-.*)?|step-\d+)")


@dataclasses.dataclass(frozen=True)
class _Expected:
    """The digests that ``read_plain`` compares with, inside ``verified_reading``."""

    digests: Mapping[Path, str]
    unread: set[Path]
    deadline: Deadline | None


_expected: contextvars.ContextVar[_Expected | None] = contextvars.ContextVar(
    "expected", default=None
)


# hashlib, shutil and tempfile take as long to import as a command takes to name a missing file, so
# they are imported where they are used.


def _sha256(content: "bytes | memoryview" = b"") -> "hashlib._Hash":
    import hashlib

    return hashlib.sha256(content)


def _remove_tree(folder: Path) -> None:
    """Delete what can be deleted."""
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


def sha256_of(path: Path, deadline: Deadline | None = None) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal. Raises BundleError after the deadline."""
    if deadline is None:
        with path.open("rb") as file:
            import hashlib

            return hashlib.file_digest(file, "sha256").hexdigest()

    # In blocks, so that the deadline is checked between them.
    digest = _sha256()
    with path.open("rb") as file:
        while block := file.read(_HASHED_AT_ONCE):
            deadline.check()
            digest.update(block)
    return digest.hexdigest()


def is_sparse(path: Path) -> bool:
    """Whether hardly any bytes of a large file are on the disk."""
    about = path.stat()
    # Where the system does not count blocks (Windows), every file passes as whole.
    stored = getattr(about, "st_blocks", about.st_size) * _BLOCK
    return about.st_size > max(_SPARSE_FROM, _LEAST_STORED * stored)


def is_pointer(path: Path) -> bool:
    """Whether git-lfs left a pointer in the place of this file."""
    try:
        if not path.is_file():  # opening a pipe would wait for its writer
            return False
        with path.open("rb") as file:
            return file.read(len(POINTER)) == POINTER
    except OSError:
        return False


def open_plain(path: Path) -> BinaryIO:
    """Open a plain file to be read; pipes and devices are refused, as reading them may never end.

    Raises OSError if it cannot be opened, is not a plain file, or is a large file mostly of holes.
    """
    _refuse_endless(path)
    return path.open("rb")


def _refuse_endless(path: Path) -> os.stat_result:
    # A folder passes: opening it raises the usual IsADirectoryError.
    about = path.stat()
    if not stat.S_ISREG(about.st_mode) and not stat.S_ISDIR(about.st_mode):
        raise OSError(errno.EINVAL, "it is not a plain file", str(path))
    if stat.S_ISREG(about.st_mode) and is_sparse(path):
        raise OSError(errno.EINVAL, f"its {about.st_size:,} bytes are mostly holes", str(path))
    return about


def read_plain(path: Path, most: int | None = None) -> bytes:
    """The bytes of a plain file.

    Raises OSError as ``open_plain`` does and for more than ``most`` bytes, CorruptError if it is
    not what ``verified_reading`` expects.
    """
    about = _refuse_endless(path)
    if most is not None and about.st_size > most:
        raise OSError(errno.EFBIG, f"it has more than {most:,} bytes", str(path))

    expected = _expected.get()
    if expected is not None and expected.deadline is not None:
        expected.deadline.check()

    # The hash is of these very bytes: a second read could find others.
    content = path.read_bytes()
    if expected is not None and path in expected.digests:
        _check_digest(path, expected.digests[path], _sha256(content).hexdigest())
        expected.unread.discard(path)

    return content


class HeldFile:
    """A file that is opened now and read later, even if its folder is replaced in between.

    Reading gives the bytes that the manifest lists, or raises.
    """

    def __init__(self, path: Path, digest: str) -> None:
        """``digest`` is the SHA-256 of its bytes. Raises InputMissingError."""
        self.path = path
        self._digest = digest

        try:
            self._descriptor = system.open_to_read(path)
        except OSError as error:
            raise InputMissingError(f"cannot read {path}: {error.strerror}") from error

        weakref.finalize(self, os.close, self._descriptor)

    def read(self) -> bytes:
        """Return the content. Raises InputMissingError, CorruptError if it is not the expected
        content, and BundleError after the deadline of ``verified_reading``."""
        # Joined only if there are several: joining copies the whole file once more.
        parts = list(self._parts(_READ_AT_ONCE))
        content = parts[0] if len(parts) == 1 else b"".join(parts)
        self._check(_sha256(content).hexdigest())
        return content

    def part(self, begin: int, size: int) -> bytes:
        """Return ``size`` bytes from ``begin`` on, fewer where the file ends, without comparing
        them.

        Raises InputMissingError if it cannot be read.
        """
        try:
            content = system.read_at(self._descriptor, size, begin)
            while len(content) < size:  # a call may give less than it was asked for
                more = system.read_at(self._descriptor, size - len(content), begin + len(content))
                if not more:
                    break
                content += more
            return content
        except OSError as error:
            raise InputMissingError(f"cannot read {self.path}: {error.strerror}") from error

    def verify(self) -> None:
        """Raise as ``read`` does, without keeping the bytes."""
        digest = _sha256()
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

                part = system.read_at(self._descriptor, min(most, size - place), place)
                if not part:  # the file was cut short since; its digest then differs
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
    """Yield a file that replaces ``path`` when the block ends without an error.

    A symbolic link is replaced, and not the file that it names: a folder of somebody else may hold
    a link to a file of the user. Raises WriteError; then, as after any error inside the block, the
    old file is unharmed.
    """
    # In the same folder, because a rename is atomic only within one file system.
    temporary = path.with_name(f"{TEMPORARY_PREFIX}{os.urandom(16).hex()}")
    with write_errors(path):
        try:
            with temporary.open("xb") as file:
                with contextlib.suppress(OSError):  # as in _hold, until it is closed
                    system.lock(file.fileno(), shared=True)
                yield file
                # Synced before the rename: else, after a power cut, the new name may belong to a
                # file whose bytes never reached the disk.
                file.flush()
                system.sync(file.fileno())
            temporary.replace(path)
        except BaseException:  # also KeyboardInterrupt
            temporary.unlink(missing_ok=True)
            raise

        system.sync_folder(path.parent)


def write_user_file(path: Path, content: bytes) -> None:
    """Write a file that the user named. As ``open_user_file``."""
    with open_user_file(path) as file:
        file.write(content)


@contextlib.contextmanager
def open_user_file(path: Path) -> Iterator[BinaryIO]:
    """Open a replacement as ``open_replacement`` does, for an output that the user named.

    A symbolic link is followed: the file that it names is replaced. A pipe or a device cannot be
    replaced, and is written to. What replaces a file may be read by those who may read that.
    """
    mode: int | None = None
    with write_errors(path):
        # A folder is refused here, before there is anything to lose.
        if path.exists() and not path.is_file():
            with path.open("wb") as file:
                yield file
            return
        if path.exists():
            mode = path.stat().st_mode & 0o777

    # Not Path.resolve, which raises RuntimeError for a link to itself.
    with open_replacement(Path(os.path.realpath(path))) as file:
        if mode is not None:
            Path(file.name).chmod(mode)
        yield file


_LONGEST_NAME = 255
"""Bytes of a name that Linux and macOS take."""


def name_with_room(name: str, room: int) -> str:
    """``name``, to which ``room`` bytes can still be added.

    Of one that is too long, the end is replaced by a hash of the whole.
    """
    given = os.fsencode(name)
    if len(given) <= _LONGEST_NAME - room:
        return name
    digest = _sha256(given).hexdigest()[:16]
    start = given[: _LONGEST_NAME - room - len(digest) - 1].decode(errors="ignore")
    return f"{start}-{digest}"


def require_model_folder(path: Path) -> None:
    """Raise InputMissingError if there is no folder ``path``, in which a model could be."""
    # By os.path, which raises for no name, however long.
    if os.path.isfile(path):  # noqa: PTH113
        raise InputMissingError(
            f"a model is a folder, and {path} is a file",
            hint="the model comes before the text, as in: pellucid translate runs/demo test.en",
        )
    if path.parts[:1] == ("hf:",):
        address = f"hf://{'/'.join(path.parts[1:])}"
        raise InputMissingError(
            f"{address} is a model of the Hub, and a folder is needed here",
            hint=f"pellucid import huggingface {address} FOLDER",
        )
    require_folder(path)


def require_folder(path: Path, hint: str = "") -> None:
    """Raise InputMissingError if there is no folder ``path``."""
    if not os.path.isdir(path):  # noqa: PTH112
        raise InputMissingError(f"there is no folder {path}", hint=hint)


def refuse_to_overwrite(out: Path) -> None:
    """Raise OutputExistsError unless ``out`` is free or an empty folder."""
    if os.path.lexists(out) and not (out.is_dir() and not any(out.iterdir())):
        raise OutputExistsError(
            f"{out} already holds something", hint="name a new folder, or remove this one first"
        )


def write_folder(path: Path, fill: Callable[[Path], None], *, details: dict[str, Any]) -> None:
    """Write the folder ``path`` with a manifest in one step.

    ``fill`` writes the files into an empty temporary folder. Their hashes go into
    ``manifest.json`` beside ``details``, everything is synced, and the folder is renamed to
    ``path``; a folder that was there before is removed after that, of a link to one the link.
    Raises WriteError, also for a file of that name; what was there before is then unharmed, unless
    it is the last sync that failed, after which ``path`` is the new folder.
    """
    path = path.absolute()  # the folder . has no name, and none above it
    temporary = path.parent / f"{TEMPORARY_PREFIX}{os.urandom(16).hex()}"
    with write_errors(path):
        if not path.is_dir() and (path.exists() or path.is_symlink()):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
        path.parent.mkdir(parents=True, exist_ok=True)

        held: int | None = None
        try:
            temporary.mkdir()
            held = _hold(temporary)
            fill(temporary)

            # The manifest comes last of the files: a folder without one is never taken for whole.
            _write_manifest(temporary, details)
            _replace_folder(temporary, path)
        except BaseException:
            _remove_tree(temporary)
            raise
        finally:
            if held is not None:
                os.close(held)


def open_or_make(
    folder: Path,
    open_: Callable[[], Opened],
    fill: Callable[[Path], None],
    details: dict[str, Any],
    *,
    what: str,
    otherwise: str,
) -> Opened:
    """A folder of a cache as ``open_`` reads it; ``write_folder`` makes it if it is not there.

    It is logged that ``what`` is reused. Damage costs time and not the run: it is logged, with what
    is done ``otherwise``, and the folder is made again. Raises as ``write_folder`` and ``fill``.
    """
    try:
        found = open_()
        _log.info("reusing %s in %s", what, folder)
        return found
    except InputMissingError:
        pass
    except CorruptError as error:
        _log.warning("%s; %s", error, otherwise)
    write_folder(folder, fill, details=details)
    return open_()


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a folder made by ``write_folder``.

    Raises InputMissingError if there is none, CorruptError if it cannot be read.
    """
    path = folder / MANIFEST_NAME

    try:
        # A manifest may come from a stranger: its size and nesting are limited before it is parsed.
        text = read_plain(path, LARGEST_MANIFEST)
        if text.count(b"[") + text.count(b"{") > _MOST_BRACKETS:
            raise CorruptError(f"{path} is damaged: it lists more than {_MOST_BRACKETS:,} files")

        manifest = json.loads(text)
        files = manifest["files"]
        well_formed = manifest["version"] == MANIFEST_VERSION and all(
            isinstance(entry["size"], int)
            and isinstance(entry["sha256"], str)
            and name.isprintable()
            for name, entry in files.items()
        )
        is_whole = text == manifest_text(manifest)

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
    if not is_whole:
        raise CorruptError(f"{path} is damaged: its SHA-256 is not the one it ends with")

    return dict(manifest)


def manifest_text(manifest: Mapping[str, Any]) -> bytes:
    """The bytes of a manifest as written to disk; its last entry is the SHA-256 of the others."""
    content = {key: value for key, value in manifest.items() if key != "sha256"}
    digest = _sha256(json.dumps(content).encode()).hexdigest()
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
    for name, entry in files.items():  # the cheap checks first, for all files
        path = folder / name
        # A name from a manifest must not lead out of the folder, by ../ or by a symbolic link.
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
def verified_reading(
    folder: Path,
    deadline: Deadline | None = None,
    *,
    later: Collection[str] = (),
    unchecked: Collection[str] = (),
) -> Iterator[dict[str, Any]]:
    """Check a folder while it is read: whatever the block reads is what the manifest lists.

    Yields the manifest. Inside the block ``read_plain`` hashes the very bytes that it returns, so
    a file that is replaced between a check and its reading is noticed; files that the block has
    not read are hashed at its end, save those named by ``later``, of which a ``HeldFile`` checks
    the bytes when they are read. Those named by ``unchecked``, which the block must not read, may
    be changed or missing. Raises as ``verify_folder`` does, at the beginning, at the end or where a
    file is read; BundleError after the deadline.
    """
    manifest = read_manifest(folder)
    files = {name: each for name, each in manifest["files"].items() if name not in unchecked}
    verify_files(folder, files, hashed=())

    digests = {folder / name: entry["sha256"] for name, entry in files.items()}

    # The manifest itself too: it may be exchanged between its reading and the end of the block.
    digests[folder / MANIFEST_NAME] = _sha256(manifest_text(manifest)).hexdigest()
    unread = {path for path in digests if path.name not in later}
    expected = _Expected(digests, unread=unread, deadline=deadline)
    token = _expected.set(expected)
    try:
        yield manifest
    finally:
        _expected.reset(token)

    # Not reached if the block raised. Sorted, so that of several damaged files always the same
    # one is named.
    for path in sorted(expected.unread):
        _check_digest(path, digests[path], sha256_of(path, deadline))


def _check_digest(path: Path, expected: str, digest: str) -> None:
    if digest != expected:
        raise CorruptError(f"{path} should have SHA-256 {expected}, has {digest}")


@contextlib.contextmanager
def temporary_folder(above: Path, prefix: str) -> Iterator[Path]:
    """A new folder in ``above`` that is gone after the block, also if a signal ends the block.

    Signals are heard before the folder is made, within the block, and after it is removed: a
    handler that raises between ``mkdir`` and its return, or while the files are deleted, would
    leave it behind. Raises WriteError if the folder cannot be made.
    """
    import tempfile

    place: tempfile.TemporaryDirectory[str] | None = None
    try:
        with write_errors(above), _signals_later():
            place = tempfile.TemporaryDirectory(prefix=prefix, dir=above)
        yield Path(place.name)
    finally:
        try:
            with _signals_later():
                if place is not None:
                    place.cleanup()
        finally:
            # Again, because a signal may have come just before it was held back.
            if place is not None:
                place.cleanup()


@contextlib.contextmanager
def _signals_later() -> Iterator[None]:
    """Hold back signals that end a process until the block is done; other threads have no
    handlers.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    # By handlers and not by a mask, which holds for this thread alone: the threads of a library
    # would take the signal, and Python run its handler here all the same.
    heard: list[int] = []
    former = {
        number: signal.signal(number, lambda number, _: heard.append(number))
        for number in system.END_SIGNALS
        if signal.getsignal(number) is not None  # a handler that is not Python's
    }
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
        for each in heard:
            signal.raise_signal(each)


def remove_leftovers(folder: Path, *, unless_held: bool = False) -> list[Path]:
    """Delete the temporary files and folders that a killed process left behind.

    Only what has a name that this package gives is deleted: others may be the user's. With
    ``unless_held`` what another process is writing stays, whatever the clocks say. Returns what is
    gone.
    """
    found = list(folder.glob(f"{TEMPORARY_PREFIX}*")) if folder.is_dir() else []
    leftovers = [
        path
        for path in found
        if _LEFTOVER.fullmatch(path.name) and not (unless_held and _is_held(path))
    ]
    for leftover in leftovers:
        if leftover.is_dir() and not leftover.is_symlink():
            _remove_tree(leftover)
        else:
            with contextlib.suppress(OSError):  # the folder may be somebody else's
                leftover.unlink()
    return [path for path in leftovers if not os.path.lexists(path)]


def _hold(path: Path) -> int | None:
    """A descriptor that says that this process writes a file or folder, until it is closed or the
    process ends, however it ends; None where the file system has no locks.
    """
    descriptor: int | None = None
    try:
        descriptor = system.open_to_read(path)
        system.lock(descriptor, shared=True)
    except OSError:
        if descriptor is not None:
            os.close(descriptor)
        return None
    return descriptor


def _is_held(path: Path) -> bool:
    """Whether a process writes a file or folder, or may, as the file system cannot tell."""
    try:
        descriptor = system.open_to_read(path)
    except OSError:
        return False  # renamed meanwhile, or a link
    try:
        system.lock(descriptor)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


@contextlib.contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """Turn an OSError met while writing ``path`` into a WriteError that says what to do."""
    try:
        yield
    except OSError as error:
        hint = ""
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            hint = "free some disk space and run the command again (train: with --resume)"
        elif error.errno == errno.ENOENT and not path.parent.exists():
            hint = f"mkdir -p {shlex.quote(str(path.parent))}"
        raise WriteError(f"cannot write {path}: {error.strerror or error}", hint=hint) from error


def _write_manifest(folder: Path, details: dict[str, Any]) -> None:
    """Sync and hash the files of ``folder``, and list them in its manifest."""
    # Sorted, so that equal files give equal manifests.
    names = sorted(path.name for path in folder.iterdir())
    for name in names:
        if not name.isprintable():
            raise WriteError(
                f"a file of a folder must have a name that can be printed, got {name!r}"
            )
    _sync_files(folder / name for name in names)

    files = {
        name: {"size": (folder / name).stat().st_size, "sha256": sha256_of(folder / name)}
        for name in names
    }
    manifest = {"version": MANIFEST_VERSION, **details, "files": files}
    write_file(folder / MANIFEST_NAME, manifest_text(manifest))


def _sync_files(paths: Iterable[Path]) -> None:
    # There is no way to read the umask but to set it.
    umask = os.umask(0)
    os.umask(umask)

    for path in paths:
        path.chmod(0o666 & ~umask)  # safetensors writes 0600, which locks out other users
        with path.open("r+b") as file:  # Windows syncs no file that is only read
            system.sync(file.fileno())


def _replace_folder(temporary: Path, path: Path) -> None:
    # The names inside must be on the disk before the folder gets the name that readers trust.
    system.sync_folder(temporary)

    if path.exists():
        _exchange(temporary, path)
        system.sync_folder(path.parent)  # and the new folder before the old one is removed
        if temporary.is_symlink():
            temporary.unlink()
        else:
            _remove_tree(temporary)
    else:
        temporary.rename(path)
        system.sync_folder(path.parent)


def _exchange(new: Path, old: Path) -> None:
    """Exchange the names of two folders in one step: ``old`` always names one of them, whole.

    Where the system cannot do that, the old folder is renamed first, and a process killed in that
    instant leaves both under temporary names.
    """
    if system.exchange(new, old):
        return

    aside = old.with_name(f"{TEMPORARY_PREFIX}{os.urandom(16).hex()}")
    old.rename(aside)
    new.rename(old)
    aside.rename(new)


def remove_folder(folder: Path) -> None:
    """Delete a folder, renamed first so that a half-deleted one is never taken for whole."""
    doomed = folder.with_name(f"{TEMPORARY_PREFIX}{os.urandom(16).hex()}")
    folder.rename(doomed)
    _remove_tree(doomed)
