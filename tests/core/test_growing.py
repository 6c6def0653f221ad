"""A file written block by block: whole or not there, and gone on with after whatever happened."""

from pathlib import Path

import pytest

from pellucid.core.errors import (
    ConfigError,
    CorruptError,
    DataError,
    LockedError,
    OutputExistsError,
)
from pellucid.core.growing import GrowingFile

ORIGIN = {"source": "abc", "beam": 4}


def partial(path: Path) -> Path:
    return path.with_name(f"{path.name}.partial")


def state(path: Path) -> Path:
    return path.with_name(f"{path.name}.partial.json")


def begun(path: Path) -> Path:
    with GrowingFile(path, ORIGIN) as file:
        file.append(b"one\ntwo\n", 2)
    return path


def test_it_is_there_when_it_is_whole_and_nothing_else_stays(tmp_path: Path):
    path = tmp_path / "out"
    with GrowingFile(path, ORIGIN) as file:
        assert file.line_count == 0
        file.append(b"one\ntwo\n", 2)
        assert not path.exists()
        file.append(b"three\n", 1)
        file.finish()
    assert path.read_bytes() == b"one\ntwo\nthree\n"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("tail", [b"", b"tw", b"three\nfour\nfi"])
def test_it_goes_on_after_the_last_certain_block_and_cuts_off_what_a_kill_left(
    tail: bytes, tmp_path: Path
):
    path = begun(tmp_path / "out")
    with partial(path).open("ab") as file:
        file.write(tail)
    with GrowingFile(path, ORIGIN) as grown:
        assert grown.line_count == 2
        grown.append(b"three\n", 1)
        grown.finish()
    assert path.read_bytes() == b"one\ntwo\nthree\n"


def test_a_failure_in_between_keeps_the_blocks_and_one_before_the_first_leaves_nothing(
    tmp_path: Path,
):
    path = tmp_path / "out"
    with GrowingFile(path, ORIGIN):
        pass
    assert list(tmp_path.iterdir()) == []

    def fail() -> None:
        with GrowingFile(path, ORIGIN) as file:
            file.append(b"one\n", 1)
            raise DataError("the text is no text")

    with pytest.raises(DataError):
        fail()
    assert partial(path).read_bytes() == b"one\n"


def test_a_file_that_is_there_is_kept(tmp_path: Path):
    path = tmp_path / "out"
    path.write_bytes(b"precious")
    with pytest.raises(OutputExistsError, match="out is already there"), GrowingFile(path, ORIGIN):
        pass
    assert path.read_bytes() == b"precious"
    assert list(tmp_path.iterdir()) == [path]


def test_a_kill_between_the_last_two_steps_leaves_nothing_that_stays(tmp_path: Path):
    path = begun(tmp_path / "out")
    partial(path).rename(path)
    with pytest.raises(OutputExistsError), GrowingFile(path, ORIGIN):
        pass
    assert list(tmp_path.iterdir()) == [path]


def test_a_strange_file_in_the_way_is_kept(tmp_path: Path):
    path = tmp_path / "out"
    partial(path).write_bytes(b"precious")
    with pytest.raises(OutputExistsError) as caught, GrowingFile(path, ORIGIN):
        pass
    assert str(caught.value) == f"{partial(path)} is in the way, and nothing tells what it is"
    assert partial(path).read_bytes() == b"precious"


def test_going_on_otherwise_is_refused_with_every_difference(tmp_path: Path):
    path = begun(tmp_path / "out")
    other = {"source": "xyz", "beam": 4, "tag": "<bt>"}
    with pytest.raises(ConfigError) as caught, GrowingFile(path, other):
        pass
    assert str(caught.value) == f"{path} was begun otherwise: source: abc -> xyz; tag: None -> <bt>"
    assert caught.value.hint == (
        f"repeat the command it was begun with, or remove {partial(path)} and out.partial.json"
    )
    assert partial(path).read_bytes() == b"one\ntwo\n"


def test_two_cannot_write_it(tmp_path: Path):
    path = tmp_path / "out"
    with GrowingFile(path, ORIGIN) as first:
        first.append(b"one\n", 1)
        with pytest.raises(LockedError) as caught, GrowingFile(path, ORIGIN):
            pass
        assert str(caught.value) == f"another process writes {partial(path)}"
        first.append(b"two\n", 1)
    assert partial(path).read_bytes() == b"one\ntwo\n"


def test_certain_bytes_that_are_gone_are_told_of(tmp_path: Path):
    path = begun(tmp_path / "out")
    partial(path).write_bytes(b"one\n")
    with pytest.raises(CorruptError, match="should have 8 bytes or more, has 4"):
        GrowingFile(path, ORIGIN).__enter__()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"origin": {}, "by', "\xff"])
def test_a_state_that_is_damaged_is_told_of(text: str, tmp_path: Path):
    path = begun(tmp_path / "out")
    state(path).write_bytes(text.encode("latin-1"))
    with pytest.raises(CorruptError, match=r"out\.partial\.json is damaged"):
        GrowingFile(path, ORIGIN).__enter__()
    assert partial(path).read_bytes() == b"one\ntwo\n"


def test_a_file_with_the_longest_name_there_is_can_grow(tmp_path: Path):
    """Two that only differ at the end do not share what they have so far."""
    path, other = (tmp_path / (f"{'é' * 127}{end}") for end in "ab")
    for each in (path, other):
        with GrowingFile(each, {"a": 1}) as file:
            file.append(b"first\n", 1)
    assert len(list(tmp_path.iterdir())) == 4
    with GrowingFile(path, {"a": 1}) as file:
        assert file.line_count == 1
        file.append(b"second\n", 1)
        file.finish()
    assert path.read_bytes() == b"first\nsecond\n"
    assert len(list(tmp_path.iterdir())) == 3


def test_a_state_that_a_kill_left_without_its_file_is_of_nothing(tmp_path: Path):
    """``finish_into`` removes the file, then its state; a kill may fall in between."""
    path = begun(tmp_path / "out")
    partial(path).unlink()
    with GrowingFile(path, ORIGIN) as grown:
        assert grown.line_count == 0
        grown.append(b"one\n", 1)
        grown.finish()
    assert path.read_bytes() == b"one\n"
    assert list(tmp_path.iterdir()) == [path]
