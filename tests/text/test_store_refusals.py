"""What is wrong with a corpus or a store is refused by name, and nothing is left half done."""

import itertools
import json
import logging

import numpy as np
import pytest
from stores import EXPECTED, build, rows, write_files

from pellucid.core.errors import CorruptError, DataError, InputMissingError, WriteError
from pellucid.text.corpus.pairs import PairFiles
from pellucid.text.corpus.rows import IdRows
from pellucid.text.corpus.store import StoreReport, TokenStore


def test_a_corpus_without_usable_pairs_is_refused_and_leaves_nothing(tmp_path):
    files = write_files(tmp_path, ["a b", ""], ["x", "y"])
    with pytest.raises(DataError) as caught:
        build(tmp_path, files, max_length=1)
    assert str(caught.value) == (
        f"none of the 2 pairs in {files.sources[0]} can be used: 1 have a blank side,"
        " 1 have more than 1 tokens (data.max_length)"
    )
    assert list((tmp_path / "cache").iterdir()) == []


def test_an_error_in_the_corpus_leaves_nothing(tmp_path):
    files = write_files(tmp_path, ["a", "b"], ["x"])
    with pytest.raises(DataError, match="both sides must have as many lines, got 2 in"):
        build(tmp_path, files)
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_missing_file_is_named(tmp_path):
    files = PairFiles((tmp_path / "none",), (tmp_path / "nor this",))
    with pytest.raises(InputMissingError) as caught:
        build(tmp_path, files)
    assert str(caught.value) == f"cannot read {tmp_path / 'none'}: not a file"


def test_a_file_that_vanishes_while_it_is_hashed_is_named(tmp_path, monkeypatch):
    files = write_files(tmp_path)

    def vanish(path):
        path.unlink()
        return path.open("rb")

    monkeypatch.setattr("pellucid.core.known_files.sha256_of", vanish)
    with pytest.raises(InputMissingError, match=r"cannot read .*s: No such file or directory"):
        build(tmp_path, files)


def test_a_cache_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "cache").write_text("a file stands here", encoding="utf-8")
    with pytest.raises(WriteError, match=r"cannot write .*cache"):
        build(tmp_path, write_files(tmp_path))


ARRAYS = [
    f"{side}.{kind}" for side in ("source", "target") for kind in ("ids", "lengths", "begins")
]
FILES = [*ARRAYS, "store.json"]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", ["cut", "flip", "gone"])
def test_a_damaged_store_is_refused_by_name(tmp_path, name, damage):
    folder = build(tmp_path, write_files(tmp_path)).folder
    path = folder / name
    content = bytearray(path.read_bytes())
    content[0] ^= 1
    path.write_bytes(content[:-1] if damage == "cut" else content)
    if damage == "gone":
        path.unlink()
    with pytest.raises(CorruptError) as caught:
        TokenStore.open(folder)
    expected = {"cut": "should have ", "flip": "should have SHA-256", "gone": "is missing"}
    assert str(caught.value).startswith(f"{path} {expected[damage]}")


def test_a_damaged_cache_is_made_anew_and_that_is_said(tmp_path, caplog):
    files = write_files(tmp_path)
    folder = build(tmp_path, files).folder
    path = folder / "source.ids"
    path.write_bytes(path.read_bytes()[:-2])
    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="pellucid"):
        assert rows(build(tmp_path, files)) == EXPECTED
    assert caplog.messages[0] == f"{path} should have 8 bytes, has 6; tokenizing again"


def forge(folder, **changes):
    """Change files and the manifest with them, as no accident could."""
    from pellucid.core.files import manifest_text, sha256_of

    for name, content in changes.items():
        (folder / name.replace("_", ".")).write_bytes(content)
    manifest = json.loads((folder / "manifest.json").read_bytes())
    for name in manifest["files"]:
        path = folder / name
        manifest["files"][name] = {"size": path.stat().st_size, "sha256": sha256_of(path)}
    (folder / "manifest.json").write_bytes(manifest_text(manifest))


@pytest.mark.parametrize(
    ("lengths", "begins"),
    [([2], [0]), ([2, 2], [1]), ([2, 4], [0]), ([2, 1], [0]), ([4, 0], [0]), ([2, 2], [0, 2])],
    ids=["few", "late", "beyond", "short", "empty row", "too many begins"],
)
def test_lengths_that_do_not_fit_are_refused_before_anything_is_read(tmp_path, lengths, begins):
    folder = build(tmp_path, write_files(tmp_path)).folder
    source_lengths = np.array(lengths, dtype="<u2").tobytes()
    forge(folder, source_lengths=source_lengths, source_begins=np.array(begins, "<i8").tobytes())
    with pytest.raises(CorruptError) as caught:
        TokenStore.open(folder)
    assert str(caught.value) == (
        f"{folder / 'source'}.lengths does not fit source.ids and store.json"
    )


@pytest.mark.parametrize(("content", "size"), [(b"", 0), (b"abc", 3)])
def test_ids_of_an_odd_size_are_refused(tmp_path, content, size):
    folder = build(tmp_path, write_files(tmp_path)).folder
    forge(folder, target_ids=content)
    with pytest.raises(CorruptError) as caught:
        TokenStore.open(folder)
    assert str(caught.value) == (
        f"{folder / 'target.ids'} should hold numbers of type <u2, has {size} bytes"
    )


def described(**changes):
    types = {"source_type": "<u2", "target_type": "<u2", "length_type": "<u2"}
    report = {"read": 6, "kept": 2, "empty": 2, "too_long": 2}
    return json.dumps({**types, "report": report, **changes}).encode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "is damaged: JSONDecodeError"),
        (b"{}", "is damaged: KeyError"),
        (b'{"report": {}}', "is damaged: TypeError"),
        (described(parts=[2], more=1), "is damaged: TypeError"),
    ],
)
def test_a_forged_description_is_refused(tmp_path, content, message):
    folder = build(tmp_path, write_files(tmp_path)).folder
    forge(folder, store_json=content)
    with pytest.raises(CorruptError, match=message):
        TokenStore.open(folder)


def test_a_store_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputMissingError, match=r"none has no manifest\.json"):
        TokenStore.open(tmp_path / "none")


@pytest.mark.parametrize("name", ARRAYS)
def test_a_file_cut_short_under_a_running_job_is_noticed_before_it_is_read(tmp_path, name):
    store = build(tmp_path, write_files(tmp_path))
    store.check_files()
    path = store.folder / name
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.truncate(size - 2)
    with pytest.raises(CorruptError) as caught:
        store.check_files()
    assert str(caught.value) == f"{path} should have {size} bytes, has {size - 2}"
    assert caught.value.hint == "something changed the cache of a running job; start it again"
    path.unlink()
    with pytest.raises(CorruptError, match=f"should have {size} bytes, has 0"):
        store.check_files()


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_file_cut_short_while_it_is_read_is_an_error_and_no_signal(tmp_path, side):
    """D9: a mapped file would end the process by SIGBUS."""
    store = TokenStore.open(build(tmp_path, write_files(tmp_path)).folder, in_memory=0)
    rows = getattr(store, side)
    path = store.folder / f"{side}.ids"
    size = path.stat().st_size
    path.write_bytes(b"")  # cuts the file itself, not another one under its name
    for read in (lambda: rows.row(0), lambda: rows.gather([0, len(rows) - 1])):
        with pytest.raises(CorruptError) as caught:
            read()
        assert str(caught.value) == f"{path} should have {size} bytes, has 0"
        assert caught.value.hint == "something changed the cache of a running job; start it again"


@pytest.mark.parametrize("in_memory", [0, 1 << 10])
def test_a_file_that_is_exchanged_while_it_is_read_changes_nothing(tmp_path, in_memory):
    store = TokenStore.open(build(tmp_path, write_files(tmp_path)).folder, in_memory=in_memory)
    before = [ids.tolist() for ids in store.pair(0)]
    path = store.folder / "source.ids"
    path.with_name("other").write_bytes(bytes(path.stat().st_size))
    path.with_name("other").rename(path)
    assert [ids.tolist() for ids in store.pair(0)] == before
    assert store.source.gather([])[0].tolist() == []


def test_pairs_in_memory_are_a_store_as_well():
    store = TokenStore.from_pairs([[4, 5], [6]], [[7], [8, 9]])
    store.check_files()
    assert rows(store) == [([4, 5], [7]), ([6], [8, 9])]
    assert store.report == StoreReport(read=2, kept=2, empty=0, too_long=0)
    assert len(TokenStore.from_pairs([], [])) == 0


def test_sides_of_different_counts_are_refused():
    with pytest.raises(DataError) as caught:
        TokenStore.from_pairs([[4]], [])
    assert str(caught.value) == "there must be as many sources as targets, got 1 and 0"


def test_gathered_rows_are_the_rows_one_after_the_other():
    rows_ = IdRows.of([[4, 5], [], [6], [7, 8, 9]])
    flat, lengths = rows_.gather([3, 0, 1, 3])
    assert list(lengths) == [3, 2, 0, 3]
    expected = itertools.chain(*(rows_.row(i) for i in (3, 0, 1, 3)))
    assert list(flat) == list(expected) == [7, 8, 9, 4, 5, 7, 8, 9]
    assert flat.dtype == np.int64
    assert [len(part) for part in rows_.gather([])] == [0, 0]
