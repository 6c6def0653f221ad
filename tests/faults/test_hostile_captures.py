"""S: whatever a capture holds, or the header of any file of tensors, reading it stays in bounds."""

import json
import struct
from pathlib import Path

import pytest
import safetensors.torch
import torch
from fuzz import tiny_bundle
from structures import (
    HUGE,
    ODD_FILES,
    check_bounded,
    cut_and_flipped,
    is_refused,
    spoilt_tables,
)

from pellucid.core.tensors import TensorFile, load_tensors, read_metadata, read_shapes
from pellucid.inspection.capture import Capture, inspect

KEY = "pellucid.capture"


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """To be read, never written."""
    path = tmp_path_factory.mktemp("capture") / "whole.safetensors"
    only = ("*.cross_attention.weights", "*.heads.0.weights", "*logits*")
    inspect(tiny_bundle(), "un chat", "un petit", only).save(path)
    use(path)
    return path


def use(path: Path) -> None:
    """What the commands and a notebook do with a capture."""
    capture = Capture.load(path)
    capture._repr_html_()
    for name in capture.names():
        capture.entry(name)._repr_html_()


def header_of(path: Path) -> dict[str, object]:
    header: dict[str, object] = json.loads(safetensors_metadata(path)[KEY])
    return header


def safetensors_metadata(path: Path) -> dict[str, str]:
    with safetensors.safe_open(path, "pt") as file:
        metadata: dict[str, str] = file.metadata()
    return metadata


def with_text(whole: Path, text: str, path: Path) -> Path:
    """The tensors of a capture under another header."""
    metadata = {KEY: text.encode("utf-8", "replace").decode()}
    safetensors.torch.save_file(safetensors.torch.load_file(whole), path, metadata)
    return path


def with_header(header: bytes, path: Path, tensors: bytes = b"") -> Path:
    path.write_bytes(struct.pack("<Q", len(header)) + header + tensors)
    return path


def read_every_way(path: Path) -> None:
    for read in (load_tensors, read_metadata, read_shapes, lambda each: dict(TensorFile(each))):
        is_refused(lambda read=read: read(path))


def test_every_cut_and_changed_byte_of_a_capture_is_answered(capture: Path, tmp_path: Path):
    path = tmp_path / "spoilt.safetensors"
    refused = []
    for content in cut_and_flipped(capture.read_bytes(), 100):
        path.write_bytes(content)
        refused.append(is_refused(lambda: use(path)))
    assert 0 < sum(refused) < len(refused), "a changed number is a number"


def test_captures_of_another_structure_are_answered(capture: Path, tmp_path: Path):
    refused = 0
    for number, table in enumerate(spoilt_tables(header_of(capture), 150)):
        path = with_text(capture, json.dumps(table), tmp_path / f"{number}.safetensors")
        refused += is_refused(lambda path=path: use(path))
    assert 50 < refused < 150


@pytest.mark.parametrize(
    "name",
    [
        "decoder.0.cross_attention.heads.x.weights",
        "decoder.0.cross_attention.heads.-1.weights",
        f"decoder.0.cross_attention.heads.{'9' * 5000}.weights",
        "decoder.0.cross_attention.heads.\u0661.weights",
        "scalar.heads.0.weights",
        "\n\n\n\n\n\x1b[2J",
    ],
)
def test_a_name_that_no_tensor_has_is_refused(name: str, capture: Path, tmp_path: Path):
    header = header_of(capture)
    entries = header["entries"]
    assert isinstance(entries, dict)
    entries[name] = next(iter(entries.values()))
    tensors = {**safetensors.torch.load_file(capture), "scalar.weights": torch.tensor(1.0)}
    path = tmp_path / "named.safetensors"
    safetensors.torch.save_file(tensors, path, {KEY: json.dumps(header)})
    assert is_refused(lambda: use(path))


def test_an_axis_whose_words_are_too_few_is_refused(capture: Path, tmp_path: Path):
    header = header_of(capture)
    sentence = header["sentence"]
    assert isinstance(sentence, dict)
    sentence["source_tokens"] = sentence["source_tokens"][:-1]
    path = with_text(capture, json.dumps(header), tmp_path / "short.safetensors")
    assert is_refused(lambda: use(path))


@pytest.mark.parametrize("name", HUGE)
@pytest.mark.parametrize("key", ["entries", "confidences"])
def test_a_huge_part_of_a_capture_takes_little_time_and_memory(
    key: str, name: str, capture: Path, tmp_path: Path
):
    header = json.dumps({**header_of(capture), key: 0})
    head, tail = header.split(f'"{key}": 0')
    text = f'{head}"{key}": {HUGE[name]().decode()}{tail}'
    path = with_text(capture, text, tmp_path / "huge.safetensors")
    assert check_bounded(lambda: use(path)).is_ours


@pytest.mark.parametrize("name", HUGE)
def test_a_huge_header_takes_little_time_and_memory(name: str, tmp_path: Path):
    header = b'{"a":{"dtype":"F32","data_offsets":[0,0],"shape":' + HUGE[name]() + b"}}"
    path = with_header(header, tmp_path / "huge.safetensors")
    check_bounded(lambda: read_every_way(path))


def test_200_000_empty_tensors_are_refused_however_their_offsets_are_spelled(tmp_path: Path):
    entry = r'"%d":{"dtype":"F32","shape":[0],"data\u005foffsets":[0,0]}'
    header = "{" + ",".join(entry % number for number in range(200_000)) + "}"
    path = with_header(header.encode(), tmp_path / "many.safetensors")
    assert check_bounded(lambda: load_tensors(path)).is_ours
    assert check_bounded(lambda: TensorFile(path)).is_ours


@pytest.mark.parametrize("name", ODD_FILES)
def test_a_capture_that_is_no_plain_file_is_refused(name: str, tmp_path: Path):
    path = tmp_path / "odd.safetensors"
    ODD_FILES[name](path)
    assert check_bounded(lambda: use(path)).is_ours
    for read in (load_tensors, read_metadata, read_shapes, TensorFile):
        assert check_bounded(lambda read=read: read(path)).is_ours
