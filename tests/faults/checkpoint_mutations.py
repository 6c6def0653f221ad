"""Ways in which a disk spoils a checkpoint, and whether it is noticed each time."""

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np

from pellucid.core.errors import CorruptError, InputMissingError
from pellucid.core.files import verify_folder

Random = np.random.Generator
BLOCK = 4096


def flip_bit(path: Path, random: Random) -> None:
    content = bytearray(path.read_bytes())
    content[int(random.integers(len(content)))] ^= 1 << int(random.integers(8))
    path.write_bytes(content)


def truncate(path: Path, random: Random) -> None:
    path.write_bytes(path.read_bytes()[: int(random.integers(path.stat().st_size))])


def zero_block(path: Path, random: Random) -> None:
    """A block of the disk that reads as zeros; where it did before, at another place."""
    content = path.read_bytes()
    while True:
        begin = int(random.integers(len(content)))
        end = min(begin + BLOCK, len(content))
        if any(content[begin:end]):
            path.write_bytes(content[:begin] + bytes(end - begin) + content[end:])
            return


def swap(path: Path, random: Random) -> None:
    """Two files of the checkpoint change places."""
    others = [each for each in sorted(path.parent.iterdir()) if each != path]
    other = others[int(random.integers(len(others)))]
    aside = path.with_name("aside")
    path.rename(aside)
    other.rename(path)
    aside.rename(other)


def delete(path: Path, random: Random) -> None:
    path.unlink()


MUTATIONS: tuple[Callable[[Path, Random], None], ...] = (
    flip_bit,
    truncate,
    zero_block,
    swap,
    delete,
)


@dataclasses.dataclass
class Tally:
    """How mutations of one kind ended."""

    made: int = 0
    named: int = 0
    """By a CorruptError or InputMissingError that names a file of the checkpoint."""
    silent: int = 0
    other: int = 0
    """Any other error, or one that names nothing."""


def mutate_all(checkpoint: Path, count: int, seed: int = 0) -> dict[str, Tally]:
    """Spoil copies of ``checkpoint`` in ``count`` ways, every file and every kind in turn."""
    random = np.random.Generator(np.random.PCG64(seed))
    names = sorted(path.name for path in checkpoint.iterdir())
    tallies = {mutation.__name__: Tally() for mutation in MUTATIONS}
    copy = checkpoint.with_name("spoiled")
    for number in range(count):
        mutation = MUTATIONS[number % len(MUTATIONS)]
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(checkpoint, copy)
        mutation(copy / names[number // len(MUTATIONS) % len(names)], random)
        tally = tallies[mutation.__name__]
        tally.made += 1
        try:
            verify_folder(copy)
        except (CorruptError, InputMissingError) as error:
            is_named = any(name in str(error) for name in names)
            tally.named += is_named
            tally.other += not is_named
        except Exception:
            tally.other += 1
        else:
            tally.silent += 1
    shutil.rmtree(copy, ignore_errors=True)
    return tallies
