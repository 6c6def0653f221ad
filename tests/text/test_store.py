"""A store gives back what was tokenized, whole or not at all."""

import dataclasses
import hashlib
import logging
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from stores import EXPECTED, SOURCES, TOKENIZERS, build, rows, write_files

from pellucid.core.errors import CorruptError, DataError, PellucidError
from pellucid.core.known_files import KnownFiles
from pellucid.core.texts import TO_UTF_8
from pellucid.text.batching import collate, collate_pairs
from pellucid.text.config import TokenizerConfig
from pellucid.text.corpus.pairs import PairFiles
from pellucid.text.corpus.store import StoreReport, TokenStore
from pellucid.text.corpus.store_building import build_store
from pellucid.text.tokenizers.tokenizer import train_tokenizer
from pellucid.text.tokenizers.vocabulary import Vocabulary
from pellucid.text.tokenizers.word_tokenizers import WordTokenizer


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


def test_lines_without_tokens_are_blank_and_all_files_are_named(tmp_path, caplog):
    files = write_files(tmp_path, ["a", "\u200b", "\u00ad", "a a a"], ["a"] * 4)
    tokenizer = WordTokenizer("word", Vocabulary.of("a"), normalization="nfc")
    both = PairFiles(files.sources * 2, files.targets * 2)
    with caplog.at_level(logging.WARNING, logger="pellucid"):
        store = build_store(tmp_path / "cache", both, (tokenizer, tokenizer), 2)
    assert store.report == StoreReport(read=8, kept=2, empty=4, too_long=2)
    assert caplog.messages[0] == (
        f"{files.sources[0]} and 1 more file: 4 of 8 pairs have a blank side and are left out"
    )


def test_what_max_length_allows_is_kept(tmp_path):
    assert rows(build(tmp_path, write_files(tmp_path), max_length=6))[1] == ([4] * 5, [5])


def test_chunks_do_not_show(tmp_path):
    chunked = build_store(tmp_path / "cache", write_files(tmp_path), TOKENIZERS, 4, chunk_bytes=2)
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
    made = []
    for cores, workers in ((1, 1), (5, 1), (2, 2), (2, 3)):
        monkeypatch.setattr("os.cpu_count", lambda cores=cores: cores)
        cache = tmp_path / f"cache-{cores}-{workers}"
        store = build_store(
            cache, files, (tokenizer, tokenizer), 100, workers=workers, chunk_bytes=500
        )
        made.append({path.name: path.read_bytes() for path in store.folder.iterdir()})
    assert made[0] == made[1] == made[2] == made[3]
    assert store.report == StoreReport(read=302, kept=298, empty=2, too_long=2)
    assert store.parts == (298,)


def test_what_a_process_finds_wrong_is_said_as_if_it_were_found_here(tmp_path):
    """Also of a file whose name is not UTF-8, and before that a later line is missing."""
    files = write_files(tmp_path, ["a b c"] * 20, ["x y"] * 20)
    target = tmp_path / os.fsdecode(b"caf\xe9.txt")
    target.write_bytes(b"x y\n" * 12 + b"x\xff\n" + b"x y\n" * 6)
    files = dataclasses.replace(files, targets=(target,))
    with pytest.raises(DataError) as caught:
        build_store(tmp_path / "cache", files, TOKENIZERS, 4, workers=2, chunk_bytes=10)
    assert str(caught.value) == (
        f"{files.targets[0]}, line 13, byte 2: not UTF-8 (0xff, invalid start byte)"
    )
    assert caught.value.hint == (f"{TO_UTF_8}; pellucid check --fix drops single lines")
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


def test_plain_text_is_held_once_and_is_both_sides_of_a_batch(tmp_path):
    path = tmp_path / "text"
    path.write_text("a b\nc\n", encoding="utf-8")
    files = PairFiles((path,), is_text=True)
    store = build_store(tmp_path / "cache", files, (TOKENIZERS[0], TOKENIZERS[0]), 4)
    assert store.source is store.target
    assert rows(store) == [([4, 5], [4, 5]), ([6], [6])]

    batch, apart = collate(store, [1, 0]), collate_pairs([[6], [4, 5]], [[6], [4, 5]])
    for name in ("source", "target_input", "labels"):
        assert torch.equal(getattr(batch, name), getattr(apart, name))
    assert batch.target_token_count == apart.target_token_count == 5


class TestALargeStore:
    """Whose ids are hashed while work on them has begun."""

    @pytest.fixture
    def folder(self, tmp_path):
        return build(tmp_path, write_files(tmp_path)).folder

    def test_is_opened_at_once_and_confirmed_later(self, folder):
        store = TokenStore.open(folder, verified_at_once=1)
        store.confirm()
        store.raise_if_damaged()
        assert rows(store) == EXPECTED

    def test_with_damaged_ids_is_opened_and_then_refused(self, folder):
        path = folder / "target.ids"
        path.write_bytes(path.read_bytes()[:-1] + b"\7")
        store = TokenStore.open(folder, verified_at_once=1)
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
            TokenStore.open(folder, verified_at_once=1)


def known(folder: Path, settled: int = -1) -> KnownFiles:
    """What knows small files too, and those that have just been written."""
    return KnownFiles(folder, worth_knowing=1, settled=settled)


class TestKnownFiles:
    """Large input files are not read again as long as nobody touched them."""

    @pytest.fixture
    def path(self, tmp_path):
        path = tmp_path / "corpus"
        path.write_text("text", encoding="utf-8")
        return path

    def test_an_untouched_file_is_not_read_again(self, path, tmp_path):
        digest = known(tmp_path / "cache").sha256_of(path)
        assert digest == hashlib.sha256(b"text").hexdigest()
        table = tmp_path / "cache" / "inputs.json"
        table.write_text(table.read_text().replace(digest, "as it was kept"))
        assert known(tmp_path / "cache").sha256_of(path) == "as it was kept"

    def test_a_change_is_noticed_even_if_it_is_dated_back(self, path, tmp_path):
        known(tmp_path / "cache").sha256_of(path)
        times = path.stat().st_atime_ns, path.stat().st_mtime_ns
        path.write_text("tixt", encoding="utf-8")
        os.utime(path, ns=times)
        digest = known(tmp_path / "cache").sha256_of(path)
        assert digest == hashlib.sha256(b"tixt").hexdigest()

    def test_a_file_that_has_just_changed_is_not_trusted(self, path, tmp_path):
        known(tmp_path / "cache", settled=1 << 60).sha256_of(path)
        assert not (tmp_path / "cache").exists()

    @pytest.mark.parametrize("content", [b"", b"[1]", b'{"a": [1]}', b'{"a": [1, 2]}', b"\xff"])
    def test_a_damaged_memory_is_no_memory(self, path, tmp_path, content):
        (tmp_path / "inputs.json").write_bytes(content)
        assert known(tmp_path).sha256_of(path) == hashlib.sha256(b"text").hexdigest()


def test_a_large_vocabulary_takes_32_bits(tmp_path):
    words = [f"w{i}" for i in range(70_000)]
    large = WordTokenizer("word", Vocabulary.of(words))
    files = write_files(tmp_path, ["w69999 w0"], ["x"])
    store = build_store(tmp_path / "cache", files, (large, TOKENIZERS[1]), 10)
    assert list(store.pair(0)[0]) == [70_003, 4]
    assert store.source.ids.dtype == np.dtype("<u4")
    assert store.target.ids.dtype == np.dtype("<u2")
