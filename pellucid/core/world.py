"""The processes that ``torchrun`` starts together, and the messages between them."""

import contextlib
import dataclasses
import datetime
import json
import os
import secrets
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeGuard, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from pellucid.core.errors import ConfigError, PellucidError

_PAUSE = 0.02  # seconds between two looks


def meet(store: Store, rank: int, size: int, timeout: datetime.timedelta) -> Store:
    """A part of ``store`` that only these ``size`` processes use, whatever it contained before.

    Every process writes a random word. The first one answers with a name and all the words that it
    has read, until each other process has found its own word among them, and so knows that the
    answer was written after it started. Raises RuntimeError if a process has not come within
    ``timeout``.
    """
    deadline = time.monotonic() + timeout.total_seconds()
    name = _invite(store, size, deadline) if rank == 0 else _answer(store, rank, deadline)
    return PrefixStore(name, store)


def _invite(store: Store, size: int, deadline: float) -> str:
    """The first process: announce the meeting's name until all others have accepted it."""
    # Random, because a store may outlive a run, and what an earlier one left must not be taken for
    # an answer.
    name = secrets.token_hex(16)
    missing = list(range(1, size))
    heard: list[str] = []
    while missing:
        # Read again and again: a process that starts late writes its word late.
        words = [_read(store, f"word of {rank}") for rank in range(1, size)]

        # Written only when something changed: every process polls this key.
        if words != heard:
            heard = words
            store.set("meeting", json.dumps([name, *heard]))
        missing = [rank for rank in missing if not store.check([f"{name}: {rank} comes"])]
        if missing:
            _pause(deadline, f"of {size} processes, these did not come: {missing}")
    return name


def _answer(store: Store, rank: int, deadline: float) -> str:
    """Any other process: the name of the meeting whose announcement contains this one's word."""
    word = secrets.token_hex(16)
    store.set(f"word of {rank}", word)
    while True:
        name, *heard = json.loads(_read(store, "meeting") or '[""]')
        if word in heard:
            store.set(f"{name}: {rank} comes", "")
            return str(name)
        _pause(deadline, "the first process did not come")


def _read(store: Store, key: str) -> str:
    """The value of ``key``; empty if it was never written."""
    return store.get(key).decode() if store.check([key]) else ""


def _pause(deadline: float, missing: str) -> None:
    """Wait a moment. Raises RuntimeError with the message ``missing`` after the deadline."""
    if time.monotonic() > deadline:
        raise RuntimeError(missing)
    time.sleep(_PAUSE)


_LONGEST_SUM = datetime.timedelta(minutes=30)
"""Timeout for the slowest process at one all-reduce or one block of lines; then the run ends."""
_LONGEST_TALK = datetime.timedelta(days=7)
"""Timeout of messages, while one process works and the others wait: tokenizing, validating, saving.
A process that dies is noticed at once by its closed connections; this is for a machine that
freezes."""

_Result = TypeVar("_Result")


@dataclasses.dataclass(frozen=True)
class World:
    """One process among those of a run; a single process unless torchrun started several.

    Every method must be called by all processes, in the same order. A single process does not use
    torch.distributed. Raises PellucidError if another process is gone.
    """

    rank: int = 0
    """The number of this process, from 0."""
    size: int = 1
    """The number of processes."""
    talk: dist.ProcessGroup | None = dataclasses.field(default=None, compare=False)
    """The process group of short messages, on the CPU and with a long timeout."""

    @property
    def is_first(self) -> bool:
        """Whether this is the process that writes files."""
        return self.rank == 0

    @property
    def is_alone(self) -> bool:
        """Whether there is no other process."""
        return self.size == 1

    def gather(self, content: bytes) -> list[bytes]:
        """The contents that all processes passed, by rank."""
        if self.is_alone:
            return [content]

        # all_gather needs equal sizes: the sizes are exchanged first, and contents are padded.
        with lost_process_is_reported():
            size = torch.tensor([len(content)])
            sizes = [torch.zeros_like(size) for _ in range(self.size)]
            dist.all_gather(sizes, size, group=self.talk)
            longest = max(int(each) for each in sizes)

            # One byte more than the longest: ``frombuffer`` refuses an empty buffer.
            own = torch.frombuffer(bytearray(content.ljust(longest + 1)), dtype=torch.uint8)
            all_ = [torch.empty_like(own) for _ in range(self.size)]
            dist.all_gather(all_, own, group=self.talk)
        return [each.numpy().tobytes()[: int(size)] for each, size in zip(all_, sizes, strict=True)]

    def gather_values(self, value: Any) -> list[Any]:
        """The values that all processes passed, by rank; values must be JSON's."""
        return [json.loads(each) for each in self.gather(json.dumps(value).encode())]

    def from_first(self, value: Any) -> Any:
        """The value that the first process passed; the others' are ignored. It must be JSON's."""
        if self.is_alone:
            return value
        gathered = self.gather(json.dumps(value).encode() if self.is_first else b"")
        return json.loads(gathered[0])

    def together(self, work: Callable[[], _Result]) -> _Result:
        """Let every process do ``work``. If it fails in one, all of them raise: that one its own
        error, the others PellucidError.
        """
        if self.is_alone:
            return work()
        failure: Exception | None = None
        try:
            result = work()
        except Exception as error:  # sent to the others first, then raised
            failure = error

        # Nobody returns before all have reported: else one would wait in the next exchange for a
        # process that has ended.
        gathered = self.gather(b"" if failure is None else b"failed")
        if failure is not None:
            raise failure
        failed = [rank for rank, message in enumerate(gathered) if message]
        if failed:
            raise PellucidError(
                f"process {failed[0]} of {self.size} failed", hint="its own message says why"
            )

        return result

    def by_first(self, work: Callable[[], _Result]) -> _Result | None:
        """Let the first process do ``work`` while the others wait; they get None."""
        return self.together(work if self.is_first else _nothing)

    def first_then_others(self, work: Callable[[], _Result]) -> _Result:
        """Let the first process do ``work``, and then the others, which find its files."""
        first = self.by_first(work)
        rest = self.together(_nothing if self.is_first else work)
        result = first if self.is_first else rest
        assert result is not None
        return result

    def sum(self, tensor: Tensor) -> Tensor:
        """Sum ``tensor`` over all processes in place; it must be on the device of ``joined``."""
        if not self.is_alone:
            with lost_process_is_reported():
                dist.all_reduce(tensor)
        return tensor


def _nothing() -> None:
    return None


def world_of_environment() -> World:
    """This process by the environment variables of torchrun.

    Raises ConfigError if they contradict each other, or one of them is missing.
    """
    rank, size = os.environ.get("RANK"), os.environ.get("WORLD_SIZE")
    if not size or size == "1":
        return World()
    if not (_is_number(rank) and _is_number(size) and int(rank) < int(size)):
        raise ConfigError(
            f"RANK must be a number below WORLD_SIZE, got RANK={rank or 'nothing'} and"
            f" WORLD_SIZE={size}",
            hint="torchrun sets both; unset them to run alone",
        )

    own, port = os.environ.get("LOCAL_RANK", "0"), os.environ.get("MASTER_PORT")
    if not _is_number(own):
        raise ConfigError(f"LOCAL_RANK must be a number, got {own}", hint="torchrun sets it")
    if not os.environ.get("MASTER_ADDR") or not (_is_number(port) and int(port) < 1 << 16):
        raise ConfigError(
            "MASTER_ADDR and MASTER_PORT must say where the first process listens, got"
            f" {os.environ.get('MASTER_ADDR') or 'nothing'} and {port or 'nothing'}",
            hint="torchrun sets both",
        )
    return World(int(rank), int(size))


def _is_number(text: str | None) -> TypeGuard[str]:
    return text is not None and text.isascii() and text.isdecimal()


def local_rank() -> int:
    """The number of this process on its own machine, which is that of its accelerator."""
    return int(os.environ.get("LOCAL_RANK", "0"))


@contextlib.contextmanager
def joined(world: World, device: str = "cpu") -> Iterator[World]:
    """Connect to the other processes; disconnect at the end of the block.

    Sums are computed on ``device``. Raises PellucidError if a process does not come, or is lost
    within the block.
    """
    if world.is_alone:
        yield world
        return

    # NCCL sums on GPUs and knows nothing else; numbers, names and errors go through gloo.
    backend = "gloo" if device == "cpu" else "cpu:gloo,cuda:nccl"

    try:
        with lost_process_is_reported():
            store = _store(world)
            dist.init_process_group(
                backend, store=store, rank=world.rank, world_size=world.size, timeout=_LONGEST_SUM
            )
            # A process group of its own, because a timeout belongs to a group.
            talk = dist.new_group(backend="gloo", timeout=_LONGEST_TALK)
            dist.barrier(group=talk)
        try:
            yield dataclasses.replace(world, talk=talk)
        except RuntimeError as error:
            # gloo raises a bare RuntimeError, which only its text tells from one of the model.
            if isinstance(error, dist.DistError) or "gloo" in str(error):
                raise _lost(error) from error
            raise
    finally:
        # Also after an error, or a later run in this process could not connect.
        if dist.is_initialized():
            dist.destroy_process_group()


def _store(world: World) -> Store:
    """The store at MASTER_ADDR and MASTER_PORT, where all processes of this run have met."""
    try:
        return _met(world)
    except dist.DistNetworkError:
        if world.rank == 0:
            raise
        # Without torchrun, the first process opens a store for each run: this was an earlier
        # run's, which is closed now.
        return _met(world)


def _met(world: World) -> Store:
    place = world.rank, world.size
    found = rendezvous("env://", *place, timeout=_LONGEST_SUM)

    # torchrun keeps its store over restarts, so that a new attempt must not read the old one's
    # keys.
    return meet(next(iter(found))[0], *place, _LONGEST_SUM)


@contextlib.contextmanager
def lost_process_is_reported() -> Iterator[None]:
    """Turn what torch.distributed raises, where another process is gone, into PellucidError."""
    try:
        yield
    except (RuntimeError, ValueError) as error:  # what torch.distributed raises
        raise _lost(error) from error


def _lost(error: Exception) -> PellucidError:
    return PellucidError(
        f"the processes of this run lost each other: {str(error).partition(chr(10))[0]}",
        hint="look for the message of the one that ended first",
    )
