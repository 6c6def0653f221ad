"""Parameters are counted in the header of the file, which may come from a stranger."""

import hashlib
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from pellucid.bundle import StoredModel
from pellucid.core.errors import CorruptError
from pellucid.core.files import HeldFile
from pellucid.model.config import TransformerConfig


def stored(path: Path, header: bytes, size: int | None = None) -> StoredModel:
    content = (len(header) if size is None else size).to_bytes(8, "little") + header
    path.write_bytes(content)
    file = HeldFile(path, hashlib.sha256(content).hexdigest())
    return StoredModel(file, TypeAdapter(TransformerConfig).validate_python({}), (9, 9), "cpu")


def test_the_shapes_of_all_tensors_are_counted_and_the_metadata_is_not(tmp_path: Path):
    header = b'{"__metadata__":{"a":"b"},"x":{"shape":[2,3]},"y":{"shape":[]},"z":{"shape":[0,5]}}'
    assert stored(tmp_path / "file", header).parameter_count() == 7


@pytest.mark.parametrize(
    ("header", "size", "reason"),
    [
        (b"", 1 << 30, "a header of 1,073,741,824 bytes"),
        (b"{" + b"[," * 600_000, None, "a header of more than 1,000,000 values"),
        (b'{"a":' + b"[" * 900_000, None, "recursion"),
        (b"no JSON", None, "Expecting value"),
        (b"[1]", None, "'list' object has no attribute"),
        (b'{"a": 1}', None, "not subscriptable"),
        (b'{"a": {"shape": ["b"]}}', None, "other than a number"),
        (b'{"a": {"shape": [1e999]}}', None, "other than a number"),
        (b'{"a": {"shape": [2.0, true]}}', None, "other than a number"),
        (b'{"a": {"shape": [-5]}}', None, "other than a number"),
        (b'{"a": {"shape": [' + b"9" * 4_000 + b"]}}", None, "other than a number"),
        (b'{"a": {"shape": [' + b",".join([b"2"] * 9) + b"]}}", None, "at most 8 numbers"),
        (b'{"a": {"shape": "22"}}', None, "must be a list"),
    ],
)
def test_a_header_that_is_none_is_refused_before_it_takes_memory(
    tmp_path: Path, header: bytes, size: int | None, reason: str
):
    with pytest.raises(CorruptError, match=f"is not a safetensors file: .*{reason}"):
        stored(tmp_path / "file", header, size).parameter_count()
