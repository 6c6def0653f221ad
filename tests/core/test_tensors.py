"""Named tensors on disk: read back to the last bit, and every unreadable file is named."""

import json
from pathlib import Path

import pytest
import safetensors
import safetensors.torch
import torch

from pellucid.core.errors import CorruptError, InputMissingError
from pellucid.core.tensors import TensorFile, fingerprint, load_tensors, read_shapes, save_tensors


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64])
def test_tensors_come_back_to_the_last_bit(dtype: torch.dtype, tmp_path: Path):
    tensors = {
        "matrix": torch.arange(6).view(2, 3).to(dtype),
        "transposed": torch.arange(6).view(2, 3).to(dtype).T,
        "number": torch.tensor(7).to(dtype),
        "nothing": torch.empty(0, 3, dtype=dtype),
    }
    save_tensors(tmp_path / "x.safetensors", tensors)
    for read in (load_tensors, TensorFile):
        loaded = read(tmp_path / "x.safetensors")
        assert loaded.keys() == tensors.keys()
        for name, tensor in tensors.items():
            assert torch.equal(loaded[name], tensor)
            assert loaded[name].dtype == dtype
            assert fingerprint(loaded[name]) == fingerprint(tensor)


def test_tensors_that_share_memory_are_written_once_each(tmp_path: Path):
    weight = torch.ones(3, 3)
    save_tensors(tmp_path / "x.safetensors", {"embedding": weight, "output": weight})
    assert load_tensors(tmp_path / "x.safetensors").keys() == {"embedding", "output"}


def test_one_changed_bit_changes_the_fingerprint():
    tensor = torch.zeros(4)
    assert fingerprint(tensor) != fingerprint(-tensor)  # the signs of zeros


def test_a_missing_file_is_missing_input(tmp_path: Path):
    with pytest.raises(InputMissingError, match=r"cannot read .*none\.safetensors: No such file"):
        load_tensors(tmp_path / "none.safetensors")


def test_a_disk_that_does_not_take_it_is_an_os_error_with_its_number(tmp_path: Path):
    with pytest.raises(OSError, match="No such file or directory") as caught:
        save_tensors(tmp_path / "no folder" / "x.safetensors", {"a": torch.ones(1)})
    assert caught.value.errno == 2


def header(content: bytes, size: int | None = None) -> bytes:
    return (len(content) if size is None else size).to_bytes(8, "little") + content


ONE_FLOAT = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
HOSTILE = {
    "empty": b"",
    "a pickle": b"\x80\x04cos\nsystem\n(S'touch /tmp/owned'\ntR.",
    "a zip, as torch.save writes": b"PK\x03\x04" + bytes(100),
    "a header larger than memory": header(b"{}", size=2**62),
    "a header of 2^64 - 1 bytes": header(b"{}", size=2**64 - 1),
    "a header that is not JSON": header(b"not json"),
    "a header that is not UTF-8": header(b'{"\xff": 1}'),
    "no data behind the header": header(json.dumps({"a": ONE_FLOAT}).encode()),
    "offsets out of the file": header(
        json.dumps({"a": {**ONE_FLOAT, "data_offsets": [0, 2**40]}}).encode()
    ),
    "a shape that overflows": header(
        json.dumps({"a": {**ONE_FLOAT, "shape": [2**62, 2**62]}}).encode()
    ),
    "an unknown type": header(json.dumps({"a": {**ONE_FLOAT, "dtype": "Q7"}}).encode()) + bytes(4),
    "bytes left over": header(json.dumps({"a": ONE_FLOAT}).encode()) + bytes(8),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_named_and_never_run(name: str, tmp_path: Path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(HOSTILE[name])
    with pytest.raises(CorruptError, match=r"model\.safetensors is not a readable safetensors"):
        load_tensors(path)


def test_a_failure_of_safetensors_without_a_number_is_told_in_its_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def fail(tensors: object, path: Path) -> None:
        raise safetensors.SafetensorError("strange")

    monkeypatch.setattr(safetensors.torch, "save_file", fail)
    with pytest.raises(OSError, match="strange"):
        save_tensors(tmp_path / "x.safetensors", {})


ENTRY = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
BROKEN = {
    "a hole": ({"a": ENTRY, "b": {**ENTRY, "data_offsets": [12, 20]}}, "begins at byte 12"),
    "an overlap": ({"a": ENTRY, "b": {**ENTRY, "data_offsets": [4, 12]}}, "begins at byte 4"),
    "bytes left over": ({"a": ENTRY}, "its tensors have 8 bytes"),
    "an unknown type": ({"a": {**ENTRY, "dtype": "F7"}}, "unknown type F7"),
    "a negative size": ({"a": {**ENTRY, "shape": [-1, -2]}}, "at least 0"),
    "a size that is no number": ({"a": {**ENTRY, "shape": [True]}}, "at least 0"),
    "a size beyond all memory": ({"a": {**ENTRY, "shape": [10**4_000]}}, "at least 0"),
    "too many sizes": ({"a": {**ENTRY, "shape": [2] * 9}}, "at most 8 numbers"),
    "another size": ({"a": {**ENTRY, "shape": [3]}}, "12 bytes of a tensor in 8"),
    "no entry": ({"a": 7}, "is not a readable safetensors file"),
}


@pytest.mark.parametrize("problem", BROKEN)
def test_a_header_that_does_not_describe_its_file_is_refused(problem: str, tmp_path: Path):
    header, message = BROKEN[problem]
    path = tmp_path / "x.safetensors"
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(16))
    with pytest.raises(CorruptError, match=message):
        TensorFile(path)


def test_a_file_that_was_cut_short_after_it_was_opened_is_refused(tmp_path: Path):
    path = tmp_path / "x.safetensors"
    save_tensors(path, {"a": torch.ones(4)})
    opened = TensorFile(path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CorruptError, match="it ends within a"):
        opened["a"]


def test_shapes_are_read_from_the_header_alone_and_checked(tmp_path: Path):
    path = tmp_path / "x.safetensors"
    save_tensors(path, {"a": torch.ones(4, 2)})
    assert read_shapes(path) == {"a": (4, 2)}
    for shape in ("[-1]", "[1e999]", "[2.5]", "[true]"):
        text = f'{{"a": {{"shape": {shape}}}}}'.encode()
        path.write_bytes(len(text).to_bytes(8, "little") + text)
        with pytest.raises(CorruptError, match="shapes must be whole numbers, at least 0"):
            read_shapes(path)
