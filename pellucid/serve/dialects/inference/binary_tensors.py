"""Text tensors of the Open Inference Protocol's binary extension, as JSON and back.

A body begins with JSON, whose length a header gives; the bytes of the tensors follow, each as many
as its parameter ``binary_data_size`` says. A BYTES tensor is a row of texts, each after its length
in four bytes, little endian.

Source: Triton Inference Server, protocol/extension_binary_data.md.
"""

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from pellucid.serve.server.body import Received, parse_json, read_json
from pellucid.serve.server.errors import RefusedError
from pellucid.serve.server.limits import ServerLimits

HEAD_LENGTH = "inference-header-content-length"
"""The header with the length of the JSON; without it the whole body is JSON."""
_SIZE = "binary_data_size"
_LENGTH = struct.Struct("<I")


def read_tensors(received: Received, limits: ServerLimits) -> Any:
    """The JSON of a body, with the texts of binary tensors as the ``data`` of their inputs.

    Triton's clients send no media type. Raises RefusedError unless all bytes belong to a tensor,
    and as ``parse_json`` does.
    """
    body = received.body
    if HEAD_LENGTH not in received.headers:
        return read_json(received, limits) if received.kind else parse_json(body, limits)

    length = received.headers[HEAD_LENGTH]
    if not length.isdecimal() or len(length) > 20 or int(length) > len(body):
        raise RefusedError(400, "Inference-Header-Content-Length must be a part of the body")

    value = parse_json(body[: int(length)], limits)
    rest = memoryview(body)[int(length) :]
    inputs = value.get("inputs") if isinstance(value, dict) else None
    for each in inputs if isinstance(inputs, list) else ():
        size = _take_size(each)
        if size is not None:
            each["data"] = _texts_of(rest[:size], size, limits.max_json_values)
            rest = rest[size:]
    if len(rest):
        raise RefusedError(400, f"{len(rest)} bytes after the JSON belong to no tensor")
    return value


def write_tensors(
    answer: dict[str, Any], binary: Mapping[str, Sequence[str] | Sequence[float]]
) -> tuple[bytes, int]:
    """An answer whose outputs named in ``binary`` are binary, and the length of its JSON.

    Texts become BYTES, numbers FP64.
    """
    pieces: list[bytes] = []
    for output in answer["outputs"]:
        if output["name"] in binary:
            piece = b"".join(map(_bytes_of, binary[output["name"]]))
            output["parameters"] = {_SIZE: len(piece)}
            pieces.append(piece)

    head = json.dumps(answer).encode()
    return head + b"".join(pieces), len(head)


def _bytes_of(value: str | float) -> bytes:
    if isinstance(value, str):
        text = value.encode()
        return _LENGTH.pack(len(text)) + text
    return struct.pack("<d", value)


def _take_size(tensor: Any) -> int | None:
    """The size of a tensor's bytes, taken out of its parameters; None for one in JSON."""
    parameters = tensor.get("parameters") if isinstance(tensor, dict) else None
    if not isinstance(parameters, dict) or _SIZE not in parameters:
        return None
    size = parameters.pop(_SIZE)
    if type(size) is not int or size < 0 or "data" in tensor:
        raise RefusedError(400, f"{_SIZE} must be a number of bytes, of a tensor without data")
    return size


def _texts_of(data: memoryview, size: int, most: int) -> list[str]:
    texts: list[str] = []
    try:
        if len(data) < size:
            raise ValueError

        while len(data):
            if len(texts) == most:
                raise RefusedError(400, f"a tensor must hold at most {most} texts")

            [length] = _LENGTH.unpack_from(data)
            text = bytes(data[_LENGTH.size : _LENGTH.size + length])
            if len(text) < length:
                raise ValueError
            texts.append(text.decode("utf-8"))
            data = data[_LENGTH.size + length :]
    except (ValueError, struct.error):  # UnicodeDecodeError is a ValueError
        raise RefusedError(
            400, "a BYTES tensor must be texts in UTF-8 after their lengths"
        ) from None

    return texts
