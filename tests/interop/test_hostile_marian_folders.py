"""S2, S6: a stranger's Marian folder is data, or it is refused."""

import io
import json
import os
import shutil
import zipfile
from pathlib import Path

import pytest
import torch
from marian_folders import marian_folder

from pellucid.backends.huggingface import pytorch_file
from pellucid.backends.huggingface.import_folder import read_huggingface
from pellucid.backends.huggingface.pytorch_file import load_torch_tensors
from pellucid.core.errors import BundleError, InputMissingError, PellucidError, UnsafeFormatError
from pellucid.core.tensors import load_tensors


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile") / "opus-mt-fr-en"
    marian_folder(folder)
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    """A copy to be harmed."""
    return Path(shutil.copytree(whole, tmp_path / "copy"))


def torch_archive(compression: int) -> bytes:
    """A tensor as torch.save packs it; compressed, 64 MB become 64 kB."""
    memory = io.BytesIO()
    torch.save({"model.shared.weight": torch.zeros(1 << 24)}, memory)
    packed = io.BytesIO()
    with zipfile.ZipFile(memory) as old, zipfile.ZipFile(packed, "w", compression) as new:
        for entry in old.infolist():
            new.writestr(entry.filename, old.read(entry.filename))
    return packed.getvalue()


def test_an_archive_that_unpacks_to_more_than_its_size_is_refused(folder: Path):
    (folder / "model.safetensors").unlink()
    bomb = torch_archive(zipfile.ZIP_DEFLATED)
    assert len(bomb) < 1 << 18
    (folder / "pytorch_model.bin").write_bytes(bomb)
    with pytest.raises(UnsafeFormatError, match="would unpack to more than its size"):
        read_huggingface(folder)


def test_tensors_that_repeat_their_bytes_are_refused(tmp_path: Path):
    """Fifteen kilobytes of file took five gigabytes when they were copied."""
    path = tmp_path / "pytorch_model.bin"
    torch.save({"a": torch.zeros(1).expand(40_000, 30_000)}, path)
    with pytest.raises(UnsafeFormatError, match="but a repeats its own bytes: 4,800,000,000 bytes"):
        load_torch_tensors(path)
    one = torch.zeros(1000)
    torch.save({f"tensor {number}": one for number in range(100)}, path)
    with pytest.raises(UnsafeFormatError, match="but the tensors repeat their bytes: 400,000"):
        load_torch_tensors(path)


@pytest.mark.parametrize("zipped", [True, False])
def test_a_million_empty_tensors_are_refused_before_they_are_made(
    zipped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Each takes more than a kilobyte. Up to 25,000 are allowed: here fewer, so as to write few."""
    assert pytorch_file._MOST_CALLS == 50_000  # two for each tensor
    monkeypatch.setattr(pytorch_file, "_MOST_CALLS", 1000)
    path, empty = tmp_path / "pytorch_model.bin", torch.empty(0)
    many = {str(number): empty[:0] for number in range(600)}
    torch.save(many, path, _use_new_zipfile_serialization=zipped)
    with pytest.raises(UnsafeFormatError, match="describes more than 500 tensors"):
        load_torch_tensors(path)
    torch.save(dict(list(many.items())[:400]), path, _use_new_zipfile_serialization=zipped)
    assert len(load_torch_tensors(path)) == 400


def test_tied_matrices_are_read_whichever_format_they_are_in(tmp_path: Path):
    path, matrix = tmp_path / "pytorch_model.bin", torch.rand(30, 20)
    tied = {"shared": matrix, "encoder": matrix, "decoder": matrix, "lm_head": matrix}
    for zipped in (True, False):
        torch.save(tied, path, _use_new_zipfile_serialization=zipped)
        assert torch.equal(load_torch_tensors(path)["lm_head"], matrix)


def test_a_pointer_of_git_lfs_is_told(tmp_path: Path):
    path = tmp_path / "pytorch_model.bin"
    path.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n")
    for load in (load_torch_tensors, load_tensors):
        with pytest.raises(BundleError, match="is a pointer of git-lfs, not the file") as caught:
            load(path)
        assert "git lfs pull" in caught.value.hint


@pytest.mark.parametrize(
    "name", ["config.json", "vocab.json", "source.spm", "model.safetensors", "pytorch_model.bin"]
)
@pytest.mark.parametrize("kind", ["device", "pipe"])
def test_a_device_or_a_pipe_is_not_read(name: str, kind: str, folder: Path):
    if name == "pytorch_model.bin":
        (folder / "model.safetensors").unlink()
    (folder / name).unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(folder / name)
    else:
        (folder / name).symlink_to("/dev/zero")
    with pytest.raises(InputMissingError, match=f"cannot read .*{name}: it is not a plain file"):
        read_huggingface(folder)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("d_model", 10**12, "d_model: input should be less than or equal to 65536"),
        ("vocab_size", 10**12, "vocab_size: input should be less than or equal to 16777216"),
        ("both", 1 << 24, "must number its pieces from 0 to 16777215"),
        ("decoder_layers", 1000, "and [0-9]+ more"),
        ("encoder_ffn_dim", 10**15, "encoder_ffn_dim: input should be less than or equal"),
        ("max_position_embeddings", 10**15, "max_position_embeddings: input should be less"),
    ],
)
def test_absurd_sizes_in_a_marian_config_are_refused(
    key: str, value: int, message: str, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    path = folder / "config.json"
    table = json.loads(path.read_text())
    keys = ("vocab_size", "decoder_vocab_size") if key == "both" else (key,)
    path.write_text(json.dumps({**table, **dict.fromkeys(keys, value)}))
    monkeypatch.setattr("pellucid.backends.huggingface.import_folder.build_unfilled", None)
    with pytest.raises(BundleError, match=message):
        read_huggingface(folder)


def test_a_header_that_lies_about_its_size_is_refused(folder: Path):
    path = folder / "model.safetensors"
    for size in (10**12, 2**63, len(path.read_bytes()) + 1):
        path.write_bytes(size.to_bytes(8, "little") + path.read_bytes()[8:])
        with pytest.raises(PellucidError, match=r"model\.safetensors is not a readable safeten"):
            read_huggingface(folder)
