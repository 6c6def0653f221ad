"""Files and folders that are whole or not there: atomic, synced, hashed, and of the right mode."""

import ctypes
import errno
import json
import os
import shutil
import signal
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pellucid.core import files
from pellucid.core.errors import CorruptError, InputMissingError, OutputExistsError, WriteError
from pellucid.core.files import (
    MANIFEST_NAME,
    manifest_text,
    open_replacement,
    read_manifest,
    refuse_to_overwrite,
    remove_folder,
    remove_leftovers,
    require_model_folder,
    sha256_of,
    temporary_folder,
    verify_folder,
    write_errors,
    write_file,
    write_folder,
    write_user_file,
)


def fill(folder: Path) -> None:
    (folder / "a.txt").write_bytes(b"alpha")
    (folder / "b.bin").write_bytes(bytes(range(256)))


def make(path: Path) -> Path:
    write_folder(path, fill, details={"kind": "test", "score": 0.1 + 0.2})
    return path


def fail_on_fsync(monkeypatch: pytest.MonkeyPatch, code: int, after: int = 0) -> None:
    calls = iter(range(10_000))
    real = os.fsync

    def fsync(descriptor: int) -> None:
        if next(calls) >= after:
            raise OSError(code, os.strerror(code))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0)
    os.umask(before)
    yield
    os.umask(before)


def test_a_file_is_replaced_and_nothing_else_is_left(tmp_path: Path):
    path = tmp_path / "blé 🌾 x.txt"
    write_file(path, b"old")
    write_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        (errno.ENOSPC, "free some disk space and run the command again (train: with --resume)"),
        (errno.EDQUOT, "free some disk space and run the command again (train: with --resume)"),
        (errno.EIO, ""),
    ],
)
def test_a_write_that_fails_leaves_the_old_file(
    code: int, hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "x.txt"
    write_file(path, b"old")
    fail_on_fsync(monkeypatch, code)
    with pytest.raises(WriteError) as caught:
        write_file(path, b"new")
    assert str(caught.value) == f"cannot write {path}: {os.strerror(code)}"
    assert (caught.value.hint, caught.value.exit_code) == (hint, 74)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_while_writing_leaves_the_old_file(tmp_path: Path):
    path = tmp_path / "x.txt"
    write_file(path, b"old")

    def interrupted() -> None:
        with open_replacement(path) as file:
            file.write(b"ne")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_in_a_folder_of_ours_is_replaced(tmp_path: Path):
    """A folder of somebody else may hold a link to a file of the user."""
    precious = tmp_path / "precious"
    precious.write_bytes(b"mine")
    (tmp_path / "link").symlink_to(precious)
    write_file(tmp_path / "link", b"new")
    assert precious.read_bytes() == b"mine"
    assert not (tmp_path / "link").is_symlink()


def test_a_link_is_followed_and_stays(tmp_path: Path):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    link = tmp_path / "link"
    link.symlink_to("elsewhere/file")
    for content in (b"new", b"newer"):
        write_user_file(link, content)
        assert link.is_symlink()
        assert (folder / "file").read_bytes() == content
    assert [path.name for path in folder.iterdir()] == ["file"]

    # One that leads nowhere is replaced.
    (tmp_path / "loop").symlink_to("loop")
    write_user_file(tmp_path / "loop", b"new")
    assert (tmp_path / "loop").read_bytes() == b"new"


def test_a_pipe_is_written_to_and_stays(tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "link").symlink_to(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(pipe, os.O_WRONLY)
    for place in (pipe, tmp_path / "link", Path(f"/dev/fd/{writer}")):
        write_user_file(place, b"new")
        assert os.read(reader, 10) == b"new"
    os.close(writer)
    os.close(reader)
    assert pipe.is_fifo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "pipe"]


def test_an_os_error_without_a_number_is_told_in_its_own_words(tmp_path: Path):
    with pytest.raises(WriteError, match="cannot write x: strange"), write_errors(Path("x")):
        raise OSError("strange")


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o002, 0o664), (0o077, 0o600)])
def test_modes_follow_the_umask(mask: int, mode: int, tmp_path: Path, umask: None):
    """safetensors alone would write 0600, which locks other users out."""
    os.umask(mask)

    def fill_secretly(folder: Path) -> None:
        (folder / "a").touch(mode=0o600)

    write_file(tmp_path / "file", b"")
    write_folder(tmp_path / "folder", fill_secretly, details={})
    for path in (tmp_path / "file", tmp_path / "folder/a", tmp_path / "folder" / MANIFEST_NAME):
        assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_file_of_the_user_keeps_its_mode(tmp_path: Path):
    path = tmp_path / "secret"
    path.touch(mode=0o600)
    write_user_file(path, b"new")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", 0o600)


def test_the_folder_that_one_is_in_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    make(Path())
    assert verify_folder(tmp_path)["kind"] == "test"


def test_names_of_any_language_are_read_again_and_others_are_not_written(tmp_path: Path):
    """Text that is cleaned has the names of the user's files."""

    def named(name: str) -> Callable[[Path], None]:
        return lambda folder: (folder / name).touch()

    write_folder(tmp_path / "folder", named("häuser 家.en"), details={})
    assert list(verify_folder(tmp_path / "folder")["files"]) == ["häuser 家.en"]
    with pytest.raises(WriteError, match=r"a name that can be printed, got 'a\\tb'"):
        write_folder(tmp_path / "other", named("a\tb"), details={})
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_folder_has_a_manifest_of_its_files_and_passes_its_own_check(tmp_path: Path):
    folder = make(tmp_path / "deep" / "folder")
    manifest = verify_folder(folder)
    assert manifest["kind"] == "test"
    assert manifest["score"] == 0.1 + 0.2
    assert manifest["files"] == {
        "a.txt": {"size": 5, "sha256": sha256_of(folder / "a.txt")},
        "b.bin": {"size": 256, "sha256": sha256_of(folder / "b.bin")},
    }
    assert list((tmp_path / "deep").iterdir()) == [folder]


def test_a_folder_takes_the_place_of_an_older_one(tmp_path: Path):
    folder = make(tmp_path / "folder")
    write_folder(folder, lambda inner: (inner / "c").write_bytes(b"c"), details={"kind": "new"})
    assert verify_folder(folder)["kind"] == "new"
    assert sorted(path.name for path in folder.iterdir()) == ["c", MANIFEST_NAME]
    assert list(tmp_path.iterdir()) == [folder]


def test_only_a_free_name_or_an_empty_folder_is_written_to(tmp_path: Path):
    refuse_to_overwrite(tmp_path / "free")
    (tmp_path / "empty").mkdir()
    refuse_to_overwrite(tmp_path / "empty")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "file", tmp_path / "link"):
        with pytest.raises(OutputExistsError) as caught:
            refuse_to_overwrite(path)
        assert str(caught.value) == f"{path} already holds something"


def test_a_name_longer_than_any_is_told_in_a_line():
    long = Path("a" * 300)
    with pytest.raises(InputMissingError, match="there is no folder aaa"):
        require_model_folder(long)
    refuse_to_overwrite(long)
    with pytest.raises(WriteError, match="File name too long"):
        make(long)


def test_a_folder_takes_the_place_of_no_file(tmp_path: Path):
    for path in (tmp_path / "file", tmp_path / "link"):
        path.write_text("kept") if path.name == "file" else path.symlink_to(tmp_path / "nowhere")
        with pytest.raises(WriteError, match=f"cannot write {path}: Not a directory"):
            make(path)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "link"]
    assert (tmp_path / "file").read_text() == "kept"


def test_a_folder_takes_the_place_of_a_link_and_not_of_the_folder_it_names(tmp_path: Path):
    folder, link = make(tmp_path / "folder"), tmp_path / "link"
    link.symlink_to(folder)
    write_folder(link, lambda inner: (inner / "c").write_bytes(b"c"), details={"kind": "new"})
    assert not link.is_symlink()
    assert (verify_folder(link)["kind"], verify_folder(folder)["kind"]) == ("new", "test")
    assert sorted(tmp_path.iterdir()) == [folder, link]


@pytest.mark.parametrize("missing", ["the call", "the library"])
def test_folders_are_swapped_where_the_system_cannot_do_it_in_one_step(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    class Library:
        def __init__(self, *arguments: object, use_errno: bool) -> None:
            if missing == "the call":
                self.renameat2 = lambda *arguments: -1

    monkeypatch.setattr(ctypes, "CDLL", Library)
    folder = make(tmp_path / "folder")
    write_folder(folder, lambda inner: (inner / "c").write_bytes(b"c"), details={"kind": "new"})
    assert verify_folder(folder)["kind"] == "new"
    assert list(tmp_path.iterdir()) == [folder]


@pytest.mark.parametrize("after", range(6))
def test_a_folder_that_cannot_be_written_leaves_the_older_one(
    after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The disk is full at the first sync, the second, and so on."""
    folder = make(tmp_path / "folder")
    before = read_manifest(folder)

    def fill_otherwise(inner: Path) -> None:
        (inner / "a.txt").write_bytes(b"other")
        (inner / "b.bin").write_bytes(b"other")

    with monkeypatch.context() as patch:
        fail_on_fsync(patch, errno.ENOSPC, after)
        with pytest.raises(WriteError, match="No space left on device"):
            write_folder(folder, fill_otherwise, details={"kind": "new"})
    after_failure = verify_folder(folder)
    # The last sync is of the rename itself: by then the new folder is in its place.
    assert after_failure == before or (after == 5 and after_failure["kind"] == "new")
    assert list(tmp_path.iterdir()) == [folder]


def test_what_a_fill_raises_comes_through_and_leaves_nothing(tmp_path: Path):
    def broken(inner: Path) -> None:
        (inner / "half").touch()
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        write_folder(tmp_path / "folder", broken, details={})
    assert list(tmp_path.iterdir()) == []


def change(content: bytes) -> bytes:
    return content[:-1] + bytes([content[-1] ^ 1])


def test_a_changed_byte_is_told_with_the_file_and_both_hashes(tmp_path: Path):
    path = make(tmp_path / "folder") / "a.txt"
    expected = sha256_of(path)
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(CorruptError) as caught:
        verify_folder(path.parent)
    assert str(caught.value) == f"{path} should have SHA-256 {expected}, has {sha256_of(path)}"


def test_a_cut_file_is_told_with_both_sizes(tmp_path: Path):
    path = make(tmp_path / "folder") / "b.bin"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CorruptError) as caught:
        verify_folder(path.parent)
    assert str(caught.value) == f"{path} should have 256 bytes, has 255"


@pytest.mark.parametrize("way", ["deleted", "a link", "a folder"])
def test_a_file_that_is_not_there_or_not_a_file_is_told(way: str, tmp_path: Path):
    path = make(tmp_path / "folder") / "a.txt"
    content = path.read_bytes()
    path.unlink()
    if way == "a link":
        (tmp_path / "elsewhere").write_bytes(content)
        path.symlink_to(tmp_path / "elsewhere")
    elif way == "a folder":
        path.mkdir()
    with pytest.raises(CorruptError) as caught:
        verify_folder(path.parent)
    assert str(caught.value) == f"{path} is missing or not a plain file"


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "inner/file"])
def test_a_manifest_cannot_name_files_outside_its_folder(name: str, tmp_path: Path):
    folder = make(tmp_path / "folder")
    manifest = read_manifest(folder)
    manifest["files"][name] = manifest["files"]["a.txt"]
    (tmp_path / "outside").write_bytes(b"alpha")
    (folder / MANIFEST_NAME).write_bytes(manifest_text(manifest))
    with pytest.raises(CorruptError, match="is missing or not a plain file"):
        verify_folder(folder)


def test_every_changed_bit_of_a_manifest_is_noticed(tmp_path: Path):
    """Sizes, hashes, details, names and spaces alike: the manifest ends with its own hash."""
    folder = make(tmp_path / "folder")
    path = folder / MANIFEST_NAME
    content = path.read_bytes()
    for place in range(len(content)):
        for bit in range(8):
            flipped = bytes([content[place] ^ (1 << bit)])
            path.write_bytes(content[:place] + flipped + content[place + 1 :])
            with pytest.raises(CorruptError, match=r"manifest\.json is damaged"):
                read_manifest(folder)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"3",
        b"null",
        b"{}",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"version": 1}',
        b'{"version": 1, "files": 3}',
        b'{"version": 1, "files": {"a": 3}}',
        b'{"version": 1, "files": {"a": {"size": "5", "sha256": "x"}}}',
        b'{"version": 2, "files": {}}',
        b'{"version": 1, "files": {}}',
    ],
)
def test_what_is_no_manifest_is_told(content: bytes, tmp_path: Path):
    (tmp_path / MANIFEST_NAME).write_bytes(content)
    with pytest.raises(CorruptError, match=r"manifest\.json is damaged"):
        read_manifest(tmp_path)


def test_a_folder_without_a_manifest_is_missing_input(tmp_path: Path):
    with pytest.raises(InputMissingError) as caught:
        read_manifest(tmp_path)
    assert str(caught.value) == f"{tmp_path} has no manifest.json"


def test_a_manifest_that_cannot_be_read_is_missing_input(tmp_path: Path):
    (tmp_path / MANIFEST_NAME).mkdir()
    with pytest.raises(InputMissingError, match=r"cannot read .*manifest\.json: Is a directory"):
        read_manifest(tmp_path)


def test_a_manifest_is_json_that_people_can_read(tmp_path: Path):
    text = (make(tmp_path / "folder") / MANIFEST_NAME).read_text(encoding="utf-8")
    assert list(json.loads(text)) == ["version", "kind", "score", "files", "sha256"]
    assert '\n  "kind": "test",\n' in text


def test_leftovers_of_a_killed_process_are_removed_and_nothing_else(tmp_path: Path):
    (tmp_path / f".tmp-{'0a' * 16}").touch()
    (tmp_path / ".tmp-step-00000010" / "inner").mkdir(parents=True)
    kept = [".tmp-of-the-user", "kept"]
    for name in kept:
        (tmp_path / name).touch()
    assert len(remove_leftovers(tmp_path)) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == kept
    assert remove_leftovers(tmp_path / "no folder") == []


def test_a_leftover_that_cannot_be_removed_stays_and_is_not_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """As in a folder of somebody else."""
    leftover = tmp_path / f".tmp-{'0a' * 16}"
    leftover.touch()

    def refuse(path: Path, missing_ok: bool = False) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "unlink", refuse)
    assert remove_leftovers(tmp_path) == []


def test_what_a_living_process_writes_is_no_leftover_whatever_the_clock_says(tmp_path: Path):
    found: list[Path] = []

    def fill(folder: Path) -> None:
        (folder / "a").write_bytes(b"a")
        for each in (folder, folder / "a"):
            os.utime(each, (0, 0))  # written fifty years ago, by the clock of another process
        found.extend(remove_leftovers(tmp_path, unless_held=True))

    write_folder(tmp_path / "whole", fill, details={})
    with open_replacement(tmp_path / "file") as file:
        file.write(b"b")
        found.extend(remove_leftovers(tmp_path, unless_held=True))
    assert found == []
    assert (tmp_path / "whole" / "a").exists()
    assert (tmp_path / "file").read_bytes() == b"b"

    # A process that is killed holds nothing.
    child = os.fork()
    if child == 0:
        write_folder(tmp_path / "killed", lambda _: os._exit(0), details={})
    os.waitpid(child, 0)
    assert len(remove_leftovers(tmp_path, unless_held=True)) == 1


def test_a_folder_is_removed_whole(tmp_path: Path):
    remove_folder(make(tmp_path / "folder"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (b'"a\xff"', "is damaged: not UTF-8 (byte "),
        (b'"a\\ud800"', "is damaged or of an unknown version"),
        (b'"a\\u0000"', "is damaged or of an unknown version"),
        (b'"a\\u001b[31m"', "is damaged or of an unknown version"),
    ],
)
def test_names_that_no_manifest_of_ours_has_are_refused_in_a_line(
    names: bytes, problem: str, tmp_path: Path
):
    entry = b'{"size": 1, "sha256": ""}'
    content = b'{"version": 1, "files": {' + names + b": " + entry + b"}}" + b" " * 100_000
    (tmp_path / MANIFEST_NAME).write_bytes(content)
    with pytest.raises(CorruptError) as caught:
        verify_folder(tmp_path)
    assert f"{tmp_path / MANIFEST_NAME} {problem}" in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_manifest_that_is_parsed_and_too_deep_to_be_written_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Which depth that is, depends on Python and on who calls."""

    def overflow(manifest: object) -> bytes:
        raise RecursionError("maximum recursion depth exceeded")

    folder = make(tmp_path / "folder")
    monkeypatch.setattr(files, "manifest_text", overflow)
    with pytest.raises(CorruptError, match=r"manifest\.json is damaged: RecursionError"):
        read_manifest(folder)


def test_a_manifest_of_a_million_lists_is_refused_before_it_is_parsed(tmp_path: Path):
    (tmp_path / MANIFEST_NAME).write_bytes(b'{"version": 1, "files": [' + b"[]," * 1_000_000)
    with pytest.raises(CorruptError, match="lists more than 10,000 files"):
        read_manifest(tmp_path)
    (tmp_path / MANIFEST_NAME).write_bytes(b" " * ((1 << 22) + 1))
    with pytest.raises(InputMissingError, match="it has more than 4,194,304 bytes"):
        read_manifest(tmp_path)


@pytest.mark.parametrize("when", ["made", "used", "removed"])
def test_a_temporary_folder_is_gone_whenever_a_signal_comes(
    when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Also between the call that makes the folder and its return, and while it is deleted."""
    mkdir, rmtree = os.mkdir, shutil.rmtree

    def making(*arguments, **options):
        mkdir(*arguments, **options)
        if when == "made":
            signal.raise_signal(signal.SIGTERM)

    def removing(*arguments, **options):
        if when == "removed":
            signal.raise_signal(signal.SIGTERM)
        rmtree(*arguments, **options)

    def leave(*_):
        raise SystemExit(143)

    monkeypatch.setattr(os, "mkdir", making)
    monkeypatch.setattr(shutil, "rmtree", removing)
    former = signal.signal(signal.SIGTERM, leave)
    steps = []

    def use() -> None:
        with temporary_folder(tmp_path, ".try-") as place:
            steps.append("in")
            (place / "file").write_text("text")
            if when == "used":
                signal.raise_signal(signal.SIGTERM)
            steps.append("out")

    try:
        with pytest.raises(SystemExit):
            use()
        assert signal.getsignal(signal.SIGTERM) is leave
    finally:
        signal.signal(signal.SIGTERM, former)
    assert steps == {"made": [], "used": ["in"], "removed": ["in", "out"]}[when]
    assert not list(tmp_path.iterdir())
