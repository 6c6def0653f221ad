"""Ways to spoil a file, from a flipped bit to a number no program should believe."""

import re
from collections.abc import Callable

import numpy as np

ABSURD = (
    b"0",
    b"-1",
    b"65",
    b"4294967296",
    b"1000000000000",
    b"9223372036854775807",
    b"1e308",
    b"NaN",
    b"1" * 5000,
    b"[[[[0]]]]",
    b'"../../etc/passwd"',
    b"true",
    b"{}",
)
_NUMBER = re.compile(rb"(?<![A-Za-z0-9_.])\d+")
_WORD = re.compile(rb"[A-Za-z_]{3,}")
_TEXT_SIZE = 1 << 16
"""Numbers and words are looked for in so many first bytes: a header, or a whole table."""

Random = np.random.Generator


def _place(content: bytes, random: Random) -> int:
    return int(random.integers(len(content) + 1))


def flip(content: bytes, random: Random) -> bytes:
    changed = bytearray(content)
    for _ in range(int(random.integers(1, 4))):
        if changed:
            changed[int(random.integers(len(changed)))] ^= 1 << int(random.integers(8))
    return bytes(changed)


def flip_early(content: bytes, random: Random) -> bytes:
    """In the first bytes, where sizes and names stand."""
    return flip(content[:64], random) + content[64:]


def truncate(content: bytes, random: Random) -> bytes:
    return content[: _place(content, random)]


def zero(content: bytes, random: Random) -> bytes:
    begin = _place(content, random)
    return content[:begin] + bytes(min(256, len(content) - begin)) + content[begin + 256 :]


def insert(content: bytes, random: Random) -> bytes:
    place = _place(content, random)
    return content[:place] + random.bytes(int(random.integers(1, 40))) + content[place:]


def repeat(content: bytes, random: Random) -> bytes:
    begin = _place(content, random)
    return content[: begin + 64] + content[begin:]


def lie(content: bytes, random: Random) -> bytes:
    """Another number where one stood; a safetensors header is made to fit again."""
    begin = 8 if content[8:9] == b"{" else 0
    head, rest = content[:_TEXT_SIZE], content[_TEXT_SIZE:]
    found = list(_NUMBER.finditer(head, begin))
    if not found:
        return flip(content, random)
    number = found[int(random.integers(len(found)))]
    absurd = ABSURD[int(random.integers(len(ABSURD)))]
    return _refit(head[: number.start()] + absurd + head[number.end() :] + rest, content, begin)


def rename(content: bytes, random: Random) -> bytes:
    """Another word where one stood: a key, a type, a value."""
    begin = 8 if content[8:9] == b"{" else 0
    head, rest = content[:_TEXT_SIZE], content[_TEXT_SIZE:]
    found = list(_WORD.finditer(head, begin))
    if not found:
        return flip(content, random)
    old, new = (found[int(random.integers(len(found)))] for _ in range(2))
    return _refit(head[: old.start()] + new[0] + head[old.end() :] + rest, content, begin)


def _refit(changed: bytes, content: bytes, begin: int) -> bytes:
    if not begin:
        return changed
    size = int.from_bytes(content[:8], "little") + len(changed) - len(content)
    return max(0, size).to_bytes(8, "little") + changed[8:]


MUTATIONS: tuple[Callable[[bytes, Random], bytes], ...] = (
    flip,
    flip_early,
    lie,
    truncate,
    rename,
    zero,
    insert,
    repeat,
)


def mutate(content: bytes, number: int) -> bytes:
    """The mutation with that number: the same on every machine."""
    random = np.random.Generator(np.random.PCG64(number))
    changed = MUTATIONS[number % len(MUTATIONS)](content, random)
    return changed if changed != content else flip(content, random)
