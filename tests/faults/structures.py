"""Ways to spoil a table of JSON, and what a reader may answer to a spoilt file."""

import copy
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from limited import Outcome, run_limited

from pellucid.core.errors import PellucidError

LONGEST_MESSAGE = 2000
MOST_LINES = 3
ABSURD: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    2**63,
    10**400,
    1e308,
    -1e308,
    float("nan"),
    float("inf"),
    "",
    "\ud800",
    "\x1b[2J\n\n\n\n\n",
    "x" * 5000,
    [],
    [[[[0]]]],
    {},
    {"": {"": None}},
    "../../etc/passwd",
)
Random = np.random.Generator


def spoilt_tables(table: Any, count: int, seed: int = 0) -> Iterator[Any]:
    """Copies of a table: in each some values are replaced, removed, nested or named otherwise."""
    random = np.random.Generator(np.random.PCG64(seed))
    for _ in range(count):
        yield _spoilt(table, random)


def _spoilt(table: Any, random: Random) -> Any:
    changed = copy.deepcopy(table)
    for _ in range(int(random.integers(1, 3))):
        places = list(_places(changed))
        if not places:
            return changed
        inner, key = places[int(random.integers(len(places)))]
        match int(random.integers(6)):
            case 0:
                del inner[key]
            case 1:
                inner[key] = [inner[key]]
            case 2 if isinstance(inner, dict):
                inner[f"{key}x"] = inner.pop(key)
            case 3 if isinstance(inner, list):
                inner.insert(key, inner[key])
            case _:
                inner[key] = ABSURD[int(random.integers(len(ABSURD)))]
    return changed


def _places(table: Any) -> Iterator[tuple[Any, Any]]:
    pairs: list[tuple[Any, Any]] = []
    if isinstance(table, dict):
        pairs = list(table.items())
    elif isinstance(table, list):
        pairs = list(enumerate(table))
    for key, value in pairs:
        yield table, key
        yield from _places(value)


def cut_and_flipped(content: bytes, count: int, seed: int = 0) -> Iterator[bytes]:
    """The content cut short at ``count`` places, and with a byte or a bit changed at as many."""
    random = np.random.Generator(np.random.PCG64(seed))
    ends = {int(each) for each in np.linspace(0, len(content) - 1, count)}
    yield from (content[:end] for end in sorted(ends))
    for place in random.integers(len(content), size=count).tolist():
        changed = bytearray(content)
        if random.integers(2):
            changed[place] ^= 1 << int(random.integers(8))
        else:
            changed[place] = int(random.integers(256))
        yield bytes(changed)


def dumped(table: Any) -> bytes:
    """As bytes; names that are no text become what they are in a file."""
    return json.dumps(table).encode()


def is_refused(case: Callable[[], object]) -> bool:
    """Whether the reader refuses, in a few lines; every foreign error is passed on."""
    try:
        case()
    except PellucidError as error:
        check_message(str(error))
        return True
    return False


def check_message(message: str) -> None:
    assert message
    assert len(message) <= LONGEST_MESSAGE
    assert message.count("\n") <= MOST_LINES


def check_bounded(case: Callable[[], object]) -> Outcome:
    """Run the case in a fork: it ends well or with an error of ours, in time and memory."""
    outcome = run_limited(case)
    assert outcome.error == "" or outcome.is_ours, outcome
    assert outcome.is_bounded, outcome
    if outcome.error:
        check_message(outcome.message)
    return outcome


HUGE: dict[str, Callable[[], bytes]] = {
    "200,000 lists in one another": lambda: b"[" * 200_000,
    "20 MB of empty lists": lambda: b"[" + b"[]," * 6_600_000 + b"[]]",
    "12 MB of empty lists": lambda: b"[" + b"[]," * 4_000_000 + b"[]]",
    "a text of 20 MB": lambda: b'"' + b"x" * 20_000_000 + b'"',
    "a million keys": lambda: b"{" + b",".join(b'"%d":0' % i for i in range(1_000_000)) + b"}",
    "20 MB of numbers": lambda: b"[" + b"0.5," * 5_000_000 + b"0]",
    "a number of a million digits": lambda: b"9" * 1_000_000,
}
"""JSON of several megabytes, by names."""


def make_link(path: Path) -> None:
    path.symlink_to("/dev/zero")


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_hole(path: Path) -> None:
    """A sparse file of thirty gigabytes."""
    path.touch()
    os.truncate(path, 30 << 30)


ODD_FILES: dict[str, Callable[[Path], None]] = {
    "a link to a device": make_link,
    "a pipe": make_pipe,
    "thirty gigabytes of nothing": make_hole,
    "a folder": Path.mkdir,
}
