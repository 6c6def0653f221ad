"""A store gives back what was tokenized, whole or not at all."""

import hashlib
import itertools
import json
import logging
import os

import numpy as np
import pytest

from pellucid.core.errors import (
    CorruptError,
    DataError,
    InputMissingError,
    PellucidError,
    WriteError,
)
from pellucid.text.config import TokenizerConfig
from pellucid.text.known_files import KnownFiles
from pellucid.text.pairs import PairFiles
from pellucid.text.rows import IdRows
from pellucid.text.store import StoreReport, TokenStore
from pellucid.text.store_building import build_store
from pellucid.text.tokenizer import train_tokenizer
from pellucid.text.vocabulary import Vocabulary
from pellucid.text.word_tokenizers import WordTokenizer

SOURCES = ["a b", "", "c", "a a a a a", "b", "c c"]
TARGETS = ["x", "y", "", "y", "x x x x x x", "y x"]
TOKENIZERS = (
    WordTokenizer("word", Vocabulary.of("abc")),
    WordTokenizer("word", Vocabulary.of("xy")),
)


def write_files(folder, sources=SOURCES, targets=TARGETS):
    paths = []
    for name, lines in (("s", sources), ("t", targets)):
        path = folder / name
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        paths.append(path)
    return PairFiles((paths[0],), (paths[1],))


def build(folder, files, max_length=4):
    return build_store(folder / "cache", files, TOKENIZERS, max_length)


def rows(store):
    return [tuple(list(side) for side in store.pair(i)) for i in range(len(store))]


EXPECTED = [([4, 5], [4]), ([6, 6], [5, 4])]


def test_pairs_come_back_and_dropped_ones_are_counted_and_told(tmp_path, caplog):
    files = write_files(tmp_path)
    with caplog.at_level(logging.WARNING, logger="pellucid"):
        store = build(tmp_path, files)
    assert rows(store) == EXPECTED
    assert store.report == StoreReport(read=6, kept=2, empty=2, too_long=2)
    assert list(store.source_lengths) == [2, 2]
    assert list(store.target_lengths) == [1, 2]
    assert caplog.messages == [
        f"{files.sources[0]}: 2 of 6 pairs have a blank side and are left out",
        f"{files.sources[0]}: 2 of 6 pairs have more than 4 tokens on a side and are left out"
        " (data.max_length)",
    ]


def test_what_max_length_allows_is_kept(tmp_path):
    assert rows(build(tmp_path, write_files(tmp_path), max_length=6))[1] == ([4] * 5, [5])


def test_chunks_do_not_show(tmp_path, monkeypatch):
    monkeypatch.setattr("pellucid.text.chunks.CHUNK", 2)
    chunked = build(tmp_path, write_files(tmp_path))
    assert rows(chunked) == EXPECTED
    assert chunked.report == StoreReport(read=6, kept=2, empty=2, too_long=2)


def test_an_unchanged_corpus_is_not_tokenized_again(tmp_path, caplog):
    files = write_files(tmp_path)
    first = build(tmp_path, files)
    stamp = (first.folder / "source.ids").stat().st_mtime_ns
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="pellucid"):
        second = build(tmp_path, files)
    assert second.folder == first.folder
    assert (second.folder / "source.ids").stat().st_mtime_ns == stamp
    assert rows(second) == EXPECTED
    assert caplog.messages[0] == f"reusing the tokenized corpus in {first.folder}"
    assert len(caplog.messages) == 3  # what is left out is said again


def test_whatever_changes_the_store_makes_another_one(tmp_path):
    def folder_of(files, source, target, max_length):
        return build_store(tmp_path / "cache", files, (source, target), max_length).folder

    files = write_files(tmp_path)
    source, target = TOKENIZERS
    folders = {folder_of(files, source, target, 4), folder_of(files, source, target, 5)}
    folders.add(folder_of(files, WordTokenizer("word", Vocabulary.of("cba")), target, 4))
    folders.add(folder_of(files, source, WordTokenizer("word", Vocabulary.of("yx")), 4))
    folders.add(folder_of(PairFiles(files.targets, files.sources), source, target, 4))
    folders.add(folder_of(write_files(tmp_path, ["a b c", *SOURCES[1:]]), source, target, 4))
    assert len(folders) == 6


def test_the_same_corpus_gives_the_same_bytes_wherever_it_lies(tmp_path):
    stores = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        stores.append(build(tmp_path / name, write_files(tmp_path / name)))
    first, second = (
        {path.name: path.read_bytes() for path in store.folder.iterdir()} for store in stores
    )
    assert first == second
    assert sorted(first) == [
        "manifest.json",
        "source.begins",
        "source.ids",
        "source.lengths",
        "store.json",
        "target.begins",
        "target.ids",
        "target.lengths",
    ]


@pytest.fixture(scope="module")
def subwords():
    texts = [f"number {i} of many, {i * i}" for i in range(300)]
    return train_tokenizer(texts, TokenizerConfig(vocabulary_size=300)), texts


def test_the_number_of_processes_and_cores_does_not_change_a_byte(tmp_path, monkeypatch, subwords):
    """D12: in one process with 1 or 5 threads, and in 2 and 3 processes, chunk by chunk."""
    tokenizer, texts = subwords
    sources = [*texts, "", "x " * 200]
    files = write_files(tmp_path, sources, sources[::-1])
    monkeypatch.setattr("pellucid.text.chunks.CHUNK", 500)
    made = []
    for cores, workers in ((1, 1), (5, 1), (2, 2), (2, 3)):
        monkeypatch.setattr("os.cpu_count", lambda cores=cores: cores)
        cache = tmp_path / f"cache-{cores}-{workers}"
        store = build_store(cache, files, (tokenizer, tokenizer), 100, workers=workers)
        made.append({path.name: path.read_bytes() for path in store.folder.iterdir()})
    assert made[0] == made[1] == made[2] == made[3]
    assert store.report == StoreReport(read=302, kept=298, empty=2, too_long=2)
    assert store.parts == (298,)


def test_what_a_process_finds_wrong_is_said_as_if_it_were_found_here(tmp_path, monkeypatch):
    monkeypatch.setattr("pellucid.text.chunks.CHUNK", 10)
    files = write_files(tmp_path, ["a b c"] * 20, ["x y"] * 20)
    files.targets[0].write_bytes(b"x y\n" * 12 + b"x\xff\n" + b"x y\n" * 7)
    with pytest.raises(DataError) as caught:
        build_store(tmp_path / "cache", files, TOKENIZERS, 4, workers=2)
    assert str(caught.value) == (
        f"{files.targets[0]}, line 13, byte 2: not UTF-8 (0xff, invalid start byte)"
    )
    assert caught.value.hint == "convert the file, for example: iconv -f LATIN1 -t UTF-8"
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_process_that_ends_early_is_an_error_and_not_a_wait(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.executable", "/bin/false")
    files = write_files(tmp_path)
    with pytest.raises(PellucidError) as caught:
        build_store(tmp_path / "cache", files, TOKENIZERS, 4, workers=2)
    assert str(caught.value) == "a process that tokenizes ended early (exit code 1)"
    assert caught.value.hint.endswith("data.workers=1 does without such processes")


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("pairs.tsv", ["a b\tx", "", "c\ty x"]),
        ("pairs.jsonl", ['{"source": "a b", "target": "x"}', "", '{"source":"c","target":"y x"}']),
    ],
)
def test_files_of_pairs_are_tokenized_as_well(tmp_path, name, lines):
    path = tmp_path / name
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    files = PairFiles((path, path))
    store = build(tmp_path, files)
    assert rows(store) == [([4, 5], [4]), ([6], [5, 4])] * 2
    assert store.parts == (2, 2)


def test_many_rows_are_found_where_they_are(tmp_path):
    """More than one group of rows that are found by adding up lengths, and more than one chunk."""
    random = np.random.default_rng(3)
    sides = [
        [" ".join(random.choice(list(words), random.integers(1, 5))) for _ in range(100)]
        for words in ("abc", "xy")
    ]
    store = build(tmp_path, write_files(tmp_path, *sides))
    expected = [
        tuple(tokenizer.encode(text) for tokenizer, text in zip(TOKENIZERS, pair, strict=True))
        for pair in zip(*sides, strict=True)
    ]
    assert rows(store) == expected
    flat, lengths = store.source.gather(np.arange(99, -1, -1))
    assert np.split(flat, np.cumsum(lengths)[:-1])[30].tolist() == expected[69][0]


class TestALargeStore:
    """Whose ids are hashed while work on them has begun."""

    @pytest.fixture
    def folder(self, tmp_path, monkeypatch):
        monkeypatch.setattr("pellucid.text.store._VERIFIED_AT_ONCE", 1)
        return build(tmp_path, write_files(tmp_path)).folder

    def test_is_opened_at_once_and_confirmed_later(self, folder):
        store = TokenStore.open(folder)
        store.confirm()
        store.raise_if_damaged()
        assert rows(store) == EXPECTED

    def test_with_damaged_ids_is_opened_and_then_refused(self, folder):
        path = folder / "target.ids"
        path.write_bytes(path.read_bytes()[:-1] + b"\7")
        store = TokenStore.open(folder)
        with pytest.raises(CorruptError) as caught:
            store.confirm()
        assert str(caught.value).startswith(f"{path} should have SHA-256 ")
        assert caught.value.hint == (
            "nothing learned from it was saved; delete its folder and --resume"
        )
        with pytest.raises(CorruptError, match="should have SHA-256"):
            store.raise_if_damaged()

    @pytest.mark.parametrize("name", ["source.lengths", "target.begins", "store.json"])
    def test_is_not_opened_with_anything_else_damaged(self, folder, name):
        content = bytearray((folder / name).read_bytes())
        content[0] ^= 1
        (folder / name).write_bytes(content)
        with pytest.raises(CorruptError, match=f"{name} should have SHA-256"):
            TokenStore.open(folder)


class TestKnownFiles:
    """Large input files are not read again as long as nobody touched them."""

    @pytest.fixture
    def path(self, tmp_path, monkeypatch):
        monkeypatch.setattr("pellucid.text.known_files._WORTH_KNOWING", 1)
        monkeypatch.setattr("pellucid.text.known_files._SETTLED", -1)
        path = tmp_path / "corpus"
        path.write_text("text", encoding="utf-8")
        return path

    def test_an_untouched_file_is_not_read_again(self, path, tmp_path, monkeypatch):
        digest = KnownFiles(tmp_path / "cache").sha256_of(path)
        assert digest == hashlib.sha256(b"text").hexdigest()
        monkeypatch.setattr("pellucid.text.known_files.sha256_of", None)
        assert KnownFiles(tmp_path / "cache").sha256_of(path) == digest

    def test_a_change_is_noticed_even_if_it_is_dated_back(self, path, tmp_path):
        KnownFiles(tmp_path / "cache").sha256_of(path)
        times = path.stat().st_atime_ns, path.stat().st_mtime_ns
        path.write_text("tixt", encoding="utf-8")
        os.utime(path, ns=times)
        digest = KnownFiles(tmp_path / "cache").sha256_of(path)
        assert digest == hashlib.sha256(b"tixt").hexdigest()

    def test_a_file_that_has_just_changed_is_not_trusted(self, path, tmp_path, monkeypatch):
        monkeypatch.setattr("pellucid.text.known_files._SETTLED", 1 << 60)
        KnownFiles(tmp_path / "cache").sha256_of(path)
        assert not (tmp_path / "cache").exists()

    @pytest.mark.parametrize("content", [b"", b"[1]", b'{"a": [1]}', b'{"a": [1, 2]}', b"\xff"])
    def test_a_damaged_memory_is_no_memory(self, path, tmp_path, content):
        (tmp_path / "inputs.json").write_bytes(content)
        assert KnownFiles(tmp_path).sha256_of(path) == hashlib.sha256(b"text").hexdigest()


def test_a_large_vocabulary_takes_32_bits(tmp_path):
    words = [f"w{i}" for i in range(70_000)]
    large = WordTokenizer("word", Vocabulary.of(words))
    files = write_files(tmp_path, ["w69999 w0"], ["x"])
    store = build_store(tmp_path / "cache", files, (large, TOKENIZERS[1]), 10)
    assert list(store.pair(0)[0]) == [70_003, 4]
    assert store.source.ids.dtype == np.dtype("<u4")
    assert store.target.ids.dtype == np.dtype("<u2")


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

    monkeypatch.setattr("pellucid.text.known_files.sha256_of", vanish)
    with pytest.raises(InputMissingError, match=r"cannot read .*s: No such file or directory"):
        build(tmp_path, files)


def test_a_cache_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "cache").write_text("a file stands here", encoding="utf-8")
    with pytest.raises(WriteError, match=r"cannot write .*cache"):
        build(tmp_path, write_files(tmp_path))


def make_shifted(count):
    random = np.random.default_rng(1)
    lengths = random.integers(1, 40, count)
    sources = [" ".join("a" * int(length)) for length in lengths]
    targets = [" ".join("x" * int(length + random.integers(0, 2))) for length in lengths]
    del sources[300], targets[900]
    return sources, targets


def test_shifted_sides_are_told_by_the_lines_of_the_files(tmp_path, caplog):
    sources, targets = make_shifted(3000)
    sources[:100] = [""] * 100  # dropped pairs must not confuse the line numbers
    files = write_files(tmp_path, sources, targets)
    with caplog.at_level(logging.WARNING, logger="pellucid"):
        store = build(tmp_path, files, max_length=100)
    first, last = store.report.slipped
    assert abs(first - 301) <= 5
    assert abs(last - 900) <= 5
    assert caplog.messages[-1] == (
        f"{files.sources[0]}: from pair {first} to {last} the two sides look shifted against"
        " each other; compare them there"
    )
    assert TokenStore.open(store.folder).report == store.report


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
    report = {"read": 6, "kept": 2, "empty": 2, "too_long": 2, "slipped": None}
    return json.dumps({**types, "report": report, **changes}).encode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "is damaged: JSONDecodeError"),
        (b"{}", "is damaged: KeyError"),
        (b'{"report": {"slipped": null}}', "is damaged: KeyError"),
        (described(parts=[2], source_type="<f8"), "types must be <u2 or <u4, got .*<f8"),
        (described(parts=[3]), "parts of 3 pairs, not of 2"),
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
