"""S: word vectors, token stores and other small tables are read, or refused in bounds."""

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from fuzz import CORPUS, tiny_bundle
from sealing import reseal
from structures import (
    HUGE,
    ODD_FILES,
    check_bounded,
    cut_and_flipped,
    dumped,
    is_refused,
    spoilt_tables,
)

from pellucid.bundle import load_tokenizers, save_bundle
from pellucid.core.errors import DataError
from pellucid.core.files import manifest_text
from pellucid.core.known_files import KnownFiles
from pellucid.decoding.ensemble import load_ensemble
from pellucid.text.config import TokenizerConfig
from pellucid.text.corpus.pairs import PairFiles, iterate_pairs
from pellucid.text.corpus.store import TokenStore
from pellucid.text.corpus.store_building import build_store
from pellucid.text.tokenizers.interface import Tokenizer
from pellucid.text.tokenizers.tokenizer import train_tokenizers
from pellucid.text.vectors import WordVectors, read_vectors, write_vectors
from pellucid.training.vectors import start_from_vectors

WORDS = ("un", "petit", "chat", "noir")


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    path = tmp_path / "vectors.txt"
    write_vectors(path, WordVectors(WORDS, np.arange(12, dtype=np.float32).reshape(4, 3)))
    return path


def test_every_cut_and_changed_byte_of_word_vectors_is_answered(vectors: Path):
    refused = 0
    for content in cut_and_flipped(vectors.read_bytes(), 200):
        vectors.write_bytes(content)
        refused += is_refused(lambda: read_vectors(vectors).nearest("un", 2))
    assert refused > 100


HOSTILE_VECTORS: dict[str, bytes] = {
    "a count of 5,000 digits": b"9" * 5000 + b" 3\n",
    "a terabyte promised": b"1000000000 1000\nun 1 2 3\n",
    "a wide vector promised": b"1 8000000\nun" + b" 1" * 8_000_000 + b"\n",
    "a long line": b"1 3\nun" + b" 1" * 8_000_000 + b"\n",
    "a long first line": b"1 " * 8_000_000,
    "a number beyond float32": b"1 3\nun 1e300 1 2\n",
    "not a number": b"1 3\nun nan 1 2\n",
    "not UTF-8": b"1 3\n\xff\xfe 1 2 3\n",
    "no size": b"1 0\nun\n",
    "negative": b"-1 -3\n",
    "digits of other scripts": "\u0661 \u0663\nun 1 2 3\n".encode(),
}


@pytest.mark.parametrize("name", HOSTILE_VECTORS)
def test_word_vectors_that_are_none_are_refused(name: str, tmp_path: Path):
    path = tmp_path / "vectors.txt"
    path.write_bytes(HOSTILE_VECTORS[name])
    assert check_bounded(lambda: read_vectors(path)).is_ours


def test_word_vectors_take_little_more_memory_than_their_numbers(tmp_path: Path):
    """As lists of Python's numbers they take eight times as much."""
    path, count, size = tmp_path / "vectors.txt", 20_000, 200
    row = " ".join(["0.125"] * size)
    with path.open("w") as file:
        file.write(f"{count} {size}\n")
        file.writelines(f"w{number} {row}\n" for number in range(count))
    outcome = check_bounded(lambda: read_vectors(path))
    assert outcome.error == ""
    assert outcome.bytes < 2.5 * 4 * count * size


@pytest.mark.parametrize("name", ["a link to a device", "a folder"])
def test_word_vectors_that_are_no_file_are_refused(name: str, tmp_path: Path):
    path = tmp_path / "vectors.txt"
    ODD_FILES[name](path)
    assert check_bounded(lambda: read_vectors(path)).is_ours


@pytest.mark.parametrize("value", [3e38, 1e-45, 0.0])
def test_embeddings_that_begin_with_extreme_vectors_are_finite(value: float, tmp_path: Path):
    bundle = tiny_bundle()
    words = tuple(bundle.source_tokenizer.tokens(range(4, 12)))
    matrix = np.full((8, 8), value, dtype=np.float32)
    matrix[::2] *= -1
    write_vectors(tmp_path / "v.txt", WordVectors(words, matrix))
    tokenizers = (bundle.source_tokenizer, bundle.target_tokenizer)
    start_from_vectors(bundle.model, tokenizers, tmp_path / "v.txt")
    for name, parameter in bundle.model.named_parameters():
        assert bool(torch.isfinite(parameter).all()), name


def corpus(folder: Path) -> tuple[PairFiles, tuple[Tokenizer, Tokenizer]]:
    source = folder / "text.fr"
    source.write_text("\n".join(CORPUS[:20]) + "\n")
    wanted = TokenizerConfig(kind="word", vocabulary_size=100)
    return PairFiles((source,), (source,)), train_tokenizers(CORPUS, CORPUS, wanted)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    files, tokenizers = corpus(tmp_path)
    folder = build_store(tmp_path / "cache", files, tokenizers, 50).folder
    assert folder is not None
    return folder


def use_store(folder: Path) -> None:
    opened = TokenStore.open(folder)
    opened.confirm()
    opened.check_files()
    for index in range(min(3, len(opened))):
        opened.pair(index)
    opened.source.gather(range(len(opened)))


@pytest.mark.parametrize("suffix", ["ids", "lengths", "begins"])
def test_every_cut_and_changed_byte_of_a_store_is_answered(suffix: str, store: Path):
    path = store / f"source.{suffix}"
    refused = []
    for content in cut_and_flipped(path.read_bytes(), 25):
        path.write_bytes(content)
        reseal(store)
        refused.append(is_refused(lambda: use_store(store)))
    # Every cut of ids is noticed, but another id is an id; the other files must add up.
    assert sum(refused) >= (25 if suffix == "ids" else len(refused))


@pytest.mark.parametrize("name", ["source.ids", "target.lengths", "source.begins", "store.json"])
def test_a_file_of_a_store_that_the_manifest_does_not_list_is_not_read(name: str, store: Path):
    path = store / "manifest.json"
    manifest = json.loads(path.read_bytes())
    del manifest["files"][name]
    path.write_bytes(manifest_text(manifest))
    assert is_refused(lambda: use_store(store))


def test_a_store_without_a_fingerprint_is_made_again(store: Path, tmp_path: Path):
    path = store / "manifest.json"
    manifest = json.loads(path.read_bytes())
    del manifest["fingerprint"]
    path.write_bytes(manifest_text(manifest))
    files, tokenizers = corpus(tmp_path)
    build_store(tmp_path / "cache", files, tokenizers, 50)
    assert json.loads(path.read_bytes())["fingerprint"]


@pytest.mark.parametrize("content", [b'{"/a": [[1], "x', b"\xff", b""])
def test_a_table_of_known_hashes_that_is_damaged_is_no_error(content: bytes, tmp_path: Path):
    (tmp_path / "inputs.json").write_bytes(content)
    big = tmp_path / "a"
    big.touch()
    os.truncate(big, 70 << 20)
    assert len(KnownFiles(tmp_path).sha256_of(big)) == 64


@pytest.mark.parametrize("name", [name for name in HUGE if "20 MB" in name])
def test_a_huge_line_of_json_pairs_takes_little_time_and_memory(name: str, tmp_path: Path):
    path = tmp_path / "pairs.jsonl.gz"
    line = b'{"source": "a", "target": "b", "c": ' + HUGE[name]()[:12_000_000]
    path.write_bytes(gzip.compress(line + b"\n", 1))
    outcome = check_bounded(lambda: list(iterate_pairs(PairFiles((path,)))))
    assert outcome.error == DataError.__name__


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tables") / "bundle"
    save_bundle(path, tiny_bundle(), card="", details={"step": 1, "score": 1.0})
    return path


def test_ensembles_of_spoilt_folders_are_refused(bundle: Path, tmp_path: Path):
    spoilt: dict[str, Callable[[Path], object]] = {
        "nothing": lambda path: None,
        "a folder": Path.mkdir,
        "a file": Path.touch,
        "a loop": lambda path: path.symlink_to(path),
        "a pipe": ODD_FILES["a pipe"],
    }
    for name, make in spoilt.items():
        make(tmp_path / name)
        for paths in ([bundle, tmp_path / name], [tmp_path / name, bundle]):
            assert is_refused(lambda paths=paths: load_ensemble(paths))
    assert is_refused(lambda: load_ensemble([]))
    assert is_refused(lambda: load_ensemble([bundle, Path(f"{tmp_path}/\udcff\n\n\n\n\n\n")]))


def test_the_tokenizers_of_an_exported_folder_are_read_or_refused(bundle: Path, tmp_path: Path):
    """What the program in the README of an ONNX folder reads through Pellucid."""
    whole = load_tokenizers(bundle)[0].fingerprint
    counts = {}
    for name in ("manifest.json", "shared.spm.json"):
        path = bundle / name
        content = path.read_bytes()
        refused = []
        older = json.loads(content)
        older.pop("normalization", None)
        for table in spoilt_tables(json.loads(content), 60):
            path.write_bytes(manifest_text(table) if _is_table(name, table) else dumped(table))
            # A file without normalization is one that earlier code wrote.
            refused.append(is_refused(lambda: load_tokenizers(bundle)) or table == older)
        counts[name] = sum(refused)
        path.write_bytes(content)
    # Much of a manifest says nothing about tokenizers.
    assert 0 < counts["manifest.json"] < 60
    assert counts["shared.spm.json"] == 60
    assert load_tokenizers(bundle)[0].fingerprint == whole


def _is_table(name: str, table: object) -> bool:
    return name == "manifest.json" and isinstance(table, dict)
