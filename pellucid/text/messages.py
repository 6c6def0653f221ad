"""Messages between this process and those that tokenize for it, over pipes: a few byte strings."""

import struct
from collections.abc import Sequence
from typing import IO

_COUNT = struct.Struct("<I")
_SIZE = struct.Struct("<Q")


def send_message(file: IO[bytes], parts: Sequence[bytes]) -> None:
    """Write one message."""
    file.write(_COUNT.pack(len(parts)))
    for part in parts:
        file.write(_SIZE.pack(len(part)))
        file.write(part)
    file.flush()


def receive_message(file: IO[bytes]) -> list[bytes] | None:
    """Read one message; None where the other side has ended."""
    head = file.read(_COUNT.size)
    if len(head) < _COUNT.size:
        return None
    parts = []
    for _ in range(_COUNT.unpack(head)[0]):
        size = file.read(_SIZE.size)
        if len(size) < _SIZE.size:
            return None
        part = file.read(_SIZE.unpack(size)[0])
        if len(part) < _SIZE.unpack(size)[0]:
            return None
        parts.append(part)
    return parts
