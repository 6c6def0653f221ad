"""Messages of protocol buffers, in which sentencepiece keeps its models, read and written."""

import dataclasses
from collections.abc import Iterable, Iterator

_WIDTHS = {1: 8, 5: 4}
"""Bytes of a number of fixed width, by wire type."""
_VARINT, _BYTES = 0, 2


@dataclasses.dataclass(frozen=True)
class Field:
    """A field of a message: its number, and its value as an integer or as bytes."""

    number: int
    value: int | bytes
    wire: int


def read_fields(message: bytes) -> Iterator[Field]:
    """The fields in their order. Raises IndexError for a message that is damaged."""
    at = 0
    while at < len(message):
        key, at = _read_varint(message, at)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, at = _read_varint(message, at)
            yield Field(number, value, wire)
            continue

        # All other values are bytes, whose size stands before them or follows from the wire type.
        if wire == _BYTES:
            size, at = _read_varint(message, at)
        elif wire in _WIDTHS:
            size = _WIDTHS[wire]
        else:
            raise IndexError(f"wire type {wire} at byte {at}")

        if at + size > len(message):
            raise IndexError(f"a field of {size} bytes at byte {at} goes beyond the end")
        yield Field(number, message[at : at + size], wire)
        at += size


def write_fields(fields: Iterable[Field]) -> bytes:
    """The message that holds these fields."""
    parts = []
    for field in fields:
        parts.append(_varint(field.number << 3 | field.wire))
        if isinstance(field.value, int):
            parts.append(_varint(field.value))
        elif field.wire == _BYTES:
            parts += [_varint(len(field.value)), field.value]
        else:
            parts.append(field.value)
    return b"".join(parts)


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    """Seven bits to a byte, the lowest first."""
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
        if shift > 63:
            raise IndexError(f"a number at byte {at} is too long")


def _varint(value: int) -> bytes:
    # a negative number is written as the 64 bits of its two's complement
    value &= (1 << 64) - 1
    parts = bytearray()
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)
