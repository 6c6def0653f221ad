"""A model packed for the kernels is kept in the user's cache, and what is found there is whole."""

import json
import logging
import multiprocessing
import os
import signal
import threading
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from compiled_kernels import compiled_library
from engine_bundles import random_bundle, said, saved, sentences

from pellucid.backends.kernels import kept, opening
from pellucid.backends.kernels.engine import KernelEngine
from pellucid.backends.kernels.kept import MODEL_FILE, kept_folder
from pellucid.backends.kernels.library import Library
from pellucid.backends.user_cache import user_cache
from pellucid.bundle import Bundle, load_bundle, open_bundle
from pellucid.core.errors import CorruptError, WriteError
from pellucid.core.files import manifest_text
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.translator import Translator

LINES = sentences(8)


@pytest.fixture(scope="module")
def library() -> Library:
    """Compiled where a test needs it, not while tests are collected."""
    return Library(compiled_library())


@pytest.fixture(autouse=True)
def _informed(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pellucid.backends")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return saved(tmp_path / "bundle")


def translations(bundle: Bundle, library: Library) -> list[list[tuple[str, ...]]]:
    engine = KernelEngine(bundle, library, "a test")
    return said(Translator(bundle, DecodingConfig(max_length=16), engine).translate(LINES))


def times_packed(caplog: pytest.LogCaptureFixture) -> int:
    return sum("packing the model" in record.getMessage() for record in caplog.records)


def packed_folders() -> list[Path]:
    cache = user_cache()
    assert cache is not None
    return sorted((cache / "kernels").glob("[!.]*"))


def test_the_second_start_takes_what_the_first_packed(folder: Path, library: Library, caplog):
    first = translations(open_bundle(folder), library)
    again = open_bundle(folder)
    second = translations(again, library)
    assert first == second
    assert times_packed(caplog) == 1
    assert packed_folders() == [kept_folder(again)]
    assert sorted(each.name for each in packed_folders()[0].iterdir()) == [
        "manifest.json",
        MODEL_FILE,
    ]
    assert sorted(each.name for each in folder.iterdir()) == sorted(
        [*json.loads((folder / "manifest.json").read_text())["files"], "manifest.json"]
    )


def test_the_second_start_reads_no_tensor(folder: Path, library: Library, monkeypatch):
    expected = translations(open_bundle(folder), library)
    monkeypatch.setattr("pellucid.bundle.StoredModel.tensors", None)
    assert translations(open_bundle(folder), library) == expected


def spoilt_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def other_manifest(path: Path, **changes: object) -> None:
    manifest = path.with_name("manifest.json")
    manifest.write_bytes(manifest_text({**json.loads(manifest.read_text()), **changes}))


DAMAGES = {
    "a byte": spoilt_byte,
    "the end": cut_short,
    "no file": Path.unlink,
    "no manifest": lambda path: path.with_name("manifest.json").unlink(),
    "another manifest": lambda path: path.with_name("manifest.json").write_text("{}"),
    "no sizes": lambda path: other_manifest(path, sizes={}),
    "words": lambda path: other_manifest(
        path, lines=[{"source": "a", "target": [5], "log_probs": [0.0]}]
    ),
    "no lines": lambda path: other_manifest(path, lines=[]),
    "other ids": lambda path: other_manifest(
        path, lines=[{"source": [99_999], "target": [5], "log_probs": [0.0, 0.0]}]
    ),
    "other numbers": lambda path: other_manifest(
        path, lines=[{"source": [5], "target": [5], "log_probs": [-1.0, -1.0]}]
    ),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_damaged_is_packed_again(damage: str, folder: Path, library: Library, caplog):
    expected = translations(open_bundle(folder), library)
    [there] = packed_folders()
    whole = (there / MODEL_FILE).read_bytes()
    DAMAGES[damage](there / MODEL_FILE)
    assert translations(open_bundle(folder), library) == expected
    assert times_packed(caplog) == 2
    assert (there / MODEL_FILE).read_bytes() == whole
    told = "a packed model is damaged and will be made again" in caplog.text
    assert told == (damage != "no manifest")


def test_a_block_of_other_sizes_is_refused(folder: Path, library: Library, caplog):
    """A manifest that fits its file, and neither fits the sizes."""
    translations(open_bundle(folder), library)
    [there] = packed_folders()
    sizes = json.loads((there / "manifest.json").read_text())["sizes"]
    other_manifest(there / MODEL_FILE, sizes={**sizes, "d_ff": sizes["d_ff"] * 2})
    assert kept.open_kept(there, library) is None
    assert "cannot compute a model of these sizes" in caplog.text


def test_another_model_in_the_same_folder_is_packed_too(folder: Path, library: Library):
    before = translations(open_bundle(folder), library)
    saved(folder, seed=1)
    assert translations(open_bundle(folder), library) != before
    assert len(packed_folders()) == 2


def test_another_release_packs_again(folder: Path, library: Library, monkeypatch):
    translations(open_bundle(folder), library)
    for name, value in (("__version__", "99"), ("VERSION", 99)):
        monkeypatch.setattr(kept, name, value)
        translations(open_bundle(folder), library)
    assert len(packed_folders()) == 3


def test_a_model_in_memory_is_neither_taken_from_the_cache_nor_kept(folder: Path, library: Library):
    """It may have been changed after it was read."""
    before = translations(open_bundle(folder), library)
    changed = load_bundle(folder)
    changed.model.get_parameter("decoder.layers.1.cross_attention.w_qkv").data.zero_()
    assert translations(changed, library) != before
    assert translations(open_bundle(folder), library) == before
    assert len(packed_folders()) == 1


def test_a_bundle_changed_in_its_folder_is_neither_used_nor_kept(folder: Path, library: Library):
    bundle = open_bundle(folder)
    with (folder / "model.safetensors").open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\x01")
    with pytest.raises(CorruptError, match=r"model\.safetensors"):
        KernelEngine(bundle, library, "a test")
    assert packed_folders() == []


def test_where_nothing_can_be_written_it_is_packed_for_one_time(
    folder: Path, library: Library, tmp_path: Path, monkeypatch, caplog
):
    expected = translations(open_bundle(folder), library)
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert translations(open_bundle(folder), library) == expected
    assert "for this time alone: nothing can be kept in" in caplog.text

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))

    def refuse(*_: object) -> None:
        raise WriteError("the disk is full")

    monkeypatch.setattr(opening, "keep", refuse)
    assert translations(open_bundle(folder), library) == expected
    assert "the packed model is not kept: the disk is full" in caplog.text


def test_a_cache_that_can_only_be_read_serves(folder: Path, library: Library, monkeypatch, caplog):
    expected = translations(open_bundle(folder), library)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "permission denied")

    monkeypatch.setattr(opening, "locked_folder", refuse)
    monkeypatch.setattr(os, "utime", refuse)
    assert translations(open_bundle(folder), library) == expected
    assert times_packed(caplog) == 1


def test_without_a_home_it_is_packed_each_time(folder: Path, library: Library, monkeypatch):
    monkeypatch.setattr(kept, "user_cache", lambda: None)
    assert kept_folder(open_bundle(folder)) is None
    assert translations(open_bundle(folder), library)


def test_starts_at_the_same_time_pack_once(folder: Path, library: Library, caplog):
    answers: list[object] = []
    barrier = threading.Barrier(4)

    def start() -> None:
        barrier.wait()
        answers.append(translations(open_bundle(folder), library))

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [answers[0]] * 4
    assert times_packed(caplog) == 1


def test_a_process_killed_while_it_writes_leaves_nothing_that_is_taken(
    folder: Path, library: Library, monkeypatch
):
    """The lock goes with the process, and the next start removes what was half written."""
    expected = translations(load_bundle(folder), library)
    written = multiprocessing.get_context("fork").Event()

    def write_half(path: Path, fill: object, **_: object) -> None:
        half = path.with_name(".tmp-" + "0" * 32)
        half.mkdir()
        (half / MODEL_FILE).write_bytes(b"half")
        written.set()
        time.sleep(60)

    with monkeypatch.context() as patched:
        patched.setattr(kept, "write_folder", write_half)
        child = os.fork()
        if child == 0:
            try:
                translations(open_bundle(folder), library)
            finally:
                os._exit(1)
        assert written.wait(60)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    cache = user_cache()
    assert cache is not None
    [half] = (cache / "kernels").glob(".tmp-*")
    assert translations(open_bundle(folder), library) == expected
    assert not half.exists()
    assert len(packed_folders()) == 1


@pytest.fixture
def wide(tmp_path: Path) -> Path:
    """A student whose matrices are larger than everything else: 2.6 MB in float32."""
    return saved(
        tmp_path / "wide", d_model=128, d_ff=512, heads=4, encoder_layers=2, decoder="ssru",
        start_symbol="zero", tie_output=True, share_embeddings=True,
    )  # fmt: skip


def test_a_start_with_a_packed_model_takes_the_memory_of_one_byte_for_each_number(
    wide: Path, library: Library
):
    """By numpy's own count: the block once, and no number of float32."""
    opening.open_model(open_bundle(wide), library)
    bundle = open_bundle(wide)
    [there] = packed_folders()
    size = (there / MODEL_FILE).stat().st_size
    tracemalloc.start()
    try:
        model = opening.open_model(bundle, library)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert model.position_count == 2048
    assert size < 2 * bundle.parameter_count + 2048 * 128 * 4
    assert peak < size + 200_000


def test_shared_and_tied_embeddings_are_packed_once(library: Library):
    """Whatever bias the output has, and though a translation begins with zeros."""
    sizes = {"d_model": 32, "share_embeddings": True, "tie_output": True}
    plain = random_bundle(**sizes, output_bias=False)
    student = random_bundle(**sizes, output_bias=True, start_symbol="zero")
    blocks = []
    for bundle in (plain, student):
        weights = opening.read_weights(opening.arrays_of(bundle), bundle.config)
        blocks.append(library.pack(weights))
    assert blocks[0].block.size == blocks[1].block.size
    assert [each.sizes["target_is_source"] for each in blocks] == [1, 1]
    assert [each.sizes["output_is_target"] for each in blocks] == [1, 1]
    assert [each.sizes["start_is_zero"] for each in blocks] == [0, 1]
    assert not np.shares_memory(blocks[0].block, blocks[1].block)
