"""Divides one input among the processes of ``torchrun``, and returns the results in order."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import torch
import torch.distributed as dist

from pellucid.core.errors import PellucidError
from pellucid.core.world import World, lost_process_is_reported

_FAILED = -1

_Item = TypeVar("_Item")


def in_order(
    world: World,
    items: Iterable[_Item],
    block_size: int,
    work: Callable[[int, Sequence[_Item]], bytes],
) -> Iterator[bytes]:
    """The result of ``work`` for each block of ``items``, in order, in the first process alone.

    Every process must get the same items; of ``world.size`` blocks each process takes one, so no
    more than those are in memory. ``work`` gets the number of the block's first item. If it raises
    anywhere, every process raises: its own error, or PellucidError naming the rank.
    """
    source = iter(items)
    first = 0
    while True:
        blocks = [list(itertools.islice(source, block_size)) for _ in range(world.size)]
        if not blocks[0]:
            return

        own = b""
        failure: Exception | None = None
        try:
            before = sum(len(block) for block in blocks[: world.rank])
            if blocks[world.rank]:
                own = work(first + before, blocks[world.rank])
        except Exception as error:  # sent to the others first, then raised
            failure = error

        yield from _exchange(world, own, failure)
        first += sum(len(block) for block in blocks)


def _exchange(world: World, own: bytes, failure: Exception | None) -> Iterator[bytes]:
    """Send the result of this process to the first one, which yields all of them in order."""
    # sizes go first, as a receiver must know how much it gets; -1 stands for an error
    size = torch.tensor([_FAILED if failure else len(own)])
    sizes = [torch.zeros_like(size) for _ in range(world.size)]
    with lost_process_is_reported():
        dist.all_gather(sizes, size)

    if failure:
        raise failure
    failed = [rank for rank, each in enumerate(sizes) if int(each) == _FAILED]
    if failed:
        raise PellucidError(
            f"process {failed[0]} of {world.size} failed, so nothing was written",
            hint="its own message says why",
        )

    if not world.is_first:
        if own:
            with lost_process_is_reported():
                dist.send(torch.frombuffer(bytearray(own), dtype=torch.uint8), dst=0)
        return

    yield own
    for rank in range(1, world.size):
        if int(sizes[rank]):
            content = torch.empty(int(sizes[rank]), dtype=torch.uint8)
            with lost_process_is_reported():
                dist.recv(content, src=rank)
            yield content.numpy().tobytes()
