"""A capture on disk: tensors as safetensors, everything else as JSON in the file's header."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pydantic
import safetensors.torch
from torch import Tensor

from pellucid.core.errors import CorruptError
from pellucid.core.files import write_file
from pellucid.core.tensors import load_tensors, read_metadata
from pellucid.inspection.entries import Entry, locate
from pellucid.inspection.parts import Part
from pellucid.inspection.sentence import Prediction, Sentence

_KEY = "pellucid.capture"
_VERSION = 1


@dataclasses.dataclass(frozen=True)
class CaptureHeader:
    """All of a capture but its tensors."""

    sentence: Sentence
    model: dict[str, Any]
    """The settings of the model."""
    confidences: tuple[float, ...]
    predictions: tuple[tuple[Prediction, ...], ...]
    entries: dict[str, Part]
    version: int = _VERSION


_HEADER = pydantic.TypeAdapter(CaptureHeader)


def make_entry(name: str, tensor: Tensor, part: Part, sentence: Sentence) -> Entry:
    """A tensor with what it is, and the words along its axes."""
    words = tuple(sentence.words(axis) for axis in part.axes)
    return Entry(name, tensor, part, words)


def write_capture(path: Path, header: CaptureHeader, entries: Mapping[str, Entry]) -> None:
    """Write tensors and header; heads that are part of a tensor of all heads, only once.

    Raises WriteError.
    """
    tensors = {
        name: entry.tensor.contiguous().clone()
        for name, entry in entries.items()
        if locate(name)[1] is None or locate(name)[0] not in entries
    }
    metadata = {_KEY: _HEADER.dump_json(header).decode()}
    write_file(path, safetensors.torch.save(tensors, metadata))


def read_capture(path: Path) -> tuple[CaptureHeader, dict[str, Entry]]:
    """What ``write_capture`` wrote, entries in their order.

    Raises InputMissingError if the file cannot be read, CorruptError if it is no capture.
    """
    tensors = load_tensors(path)
    text = read_metadata(path).get(_KEY)
    if text is None:
        raise CorruptError(f"{path} is a safetensors file, but not a capture")
    try:
        header = _HEADER.validate_json(text)
    except pydantic.ValidationError as error:
        fault = error.errors()[0]
        place = ".".join(map(str, fault["loc"]))
        raise CorruptError(f"{path} is not a readable capture: {place}: {fault['msg']}") from error
    if header.version != _VERSION:
        raise CorruptError(f"{path} must be a capture of version {_VERSION}, got {header.version}")
    entries = {}
    for name, part in header.entries.items():
        tensor = _tensor(name, tensors)
        if tensor is None or tensor.dim() != len(part.axes):
            raise CorruptError(f"{path} is not a readable capture: no tensor fits {name}")
        entries[name] = make_entry(name, tensor, part, header.sentence)
    return header, entries


def _tensor(name: str, tensors: Mapping[str, Tensor]) -> Tensor | None:
    if name in tensors:
        return tensors[name]
    stack_name, head = locate(name)
    stack = tensors.get(stack_name)
    if stack is None or head is None or head >= len(stack):
        return None
    return stack[head]
