"""One input shared out among the processes of ``torchrun``, and given back in order."""

import contextlib
import dataclasses
import datetime
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import torch
import torch.distributed as dist

from pellucid.core.errors import ConfigError, PellucidError

_LONGEST_WAIT = datetime.timedelta(minutes=30)
"""For the slowest process, at one block of lines; after that the run ends."""
_FAILED = -1

_Item = TypeVar("_Item")


@dataclasses.dataclass(frozen=True)
class Shard:
    """Which of how many processes this one is, from 0."""

    rank: int
    count: int

    @property
    def is_first(self) -> bool:
        """Whether it is the one that writes."""
        return self.rank == 0


def shard_of_environment() -> Shard | None:
    """What torchrun says of this process; None if it is on its own.

    Raises ConfigError if it says something that makes no sense.
    """
    rank, count = os.environ.get("RANK"), os.environ.get("WORLD_SIZE")
    if rank is None or count is None or count == "1":
        return None
    if not (rank.isdecimal() and count.isdecimal() and int(rank) < int(count)):
        raise ConfigError(
            f"RANK must be a number below WORLD_SIZE, got RANK={rank} and WORLD_SIZE={count}",
            hint="torchrun sets both; unset them to run alone",
        )
    return Shard(int(rank), int(count))


@contextlib.contextmanager
def joined() -> Iterator[None]:
    """Meet the other processes, and part from them at the end of the block.

    Raises PellucidError if one of them does not come, or leaves early.
    """
    try:
        with _telling_of_the_lost():
            dist.init_process_group("gloo", timeout=_LONGEST_WAIT)
            dist.barrier()
        yield
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()


@contextlib.contextmanager
def _telling_of_the_lost() -> Iterator[None]:
    try:
        yield
    except (RuntimeError, ValueError) as error:  # what torch.distributed raises
        raise PellucidError(
            f"the processes of this run lost each other: {str(error).partition(chr(10))[0]}",
            hint="look for the message of the one that ended first",
        ) from error


def in_order(
    shard: Shard,
    items: Iterable[_Item],
    block_size: int,
    work: Callable[[int, Sequence[_Item]], bytes],
) -> Iterator[bytes]:
    """What ``work`` makes of each block of ``items``, in order, for the first process alone.

    Every process must be given the same items; of ``count`` blocks each takes one, so no
    more than those are in memory. ``work`` is told the number of the block's first item. If it
    raises anywhere, every process raises: its own error, or PellucidError naming the rank.
    """
    source = iter(items)
    first = 0
    while True:
        blocks = [list(itertools.islice(source, block_size)) for _ in range(shard.count)]
        if not blocks[0]:
            return
        own = b""
        failure: Exception | None = None
        try:
            before = sum(len(block) for block in blocks[: shard.rank])
            if blocks[shard.rank]:
                own = work(first + before, blocks[shard.rank])
        except Exception as error:  # told to the others first, then raised
            failure = error
        yield from _exchange(shard, own, failure)
        first += sum(len(block) for block in blocks)


def _exchange(shard: Shard, own: bytes, failure: Exception | None) -> Iterator[bytes]:
    """Send what this process made to the first one, which gives all of it in order."""
    size = torch.tensor([_FAILED if failure else len(own)])
    sizes = [torch.zeros_like(size) for _ in range(shard.count)]
    with _telling_of_the_lost():
        dist.all_gather(sizes, size)
    if failure:
        raise failure
    failed = [rank for rank, each in enumerate(sizes) if int(each) == _FAILED]
    if failed:
        raise PellucidError(
            f"process {failed[0]} of {shard.count} failed, so nothing was written",
            hint="its own message says why",
        )
    if not shard.is_first:
        if own:
            with _telling_of_the_lost():
                dist.send(torch.frombuffer(bytearray(own), dtype=torch.uint8), dst=0)
        return
    yield own
    for rank in range(1, shard.count):
        if int(sizes[rank]):
            content = torch.empty(int(sizes[rank]), dtype=torch.uint8)
            with _telling_of_the_lost():
                dist.recv(content, src=rank)
            yield content.numpy().tobytes()
