"""How processes that were started together, perhaps not for the first time, find each other.

torchrun's store outlives a restart of its processes, and with it the addresses that the dead ones
left there: a process that is quick to look would call one of those, and be refused.
"""

import datetime
import json
import secrets
import time

from torch.distributed.distributed_c10d import PrefixStore, Store

_PAUSE = 0.02  # seconds between two looks


def meet(store: Store, rank: int, size: int, timeout: datetime.timedelta) -> Store:
    """A part of ``store`` that only these ``size`` processes use, whatever it held before.

    Every process writes a word it has just made up. The first answers with a name and all the words
    it has read, until each of the others has seen its own among them, and so knows that this
    answer was written after it began. Raises RuntimeError if one has not come in ``timeout``.
    """
    deadline = time.monotonic() + timeout.total_seconds()
    name = _invite(store, size, deadline) if rank == 0 else _answer(store, rank, deadline)
    return PrefixStore(name, store)


def _invite(store: Store, size: int, deadline: float) -> str:
    """The first process: name the meeting until all have agreed to come."""
    name = secrets.token_hex(16)
    missing = list(range(1, size))
    heard: list[str] = []
    while missing:
        words = [_read(store, f"word of {rank}") for rank in range(1, size)]
        if words != heard:
            heard = words
            store.set("meeting", json.dumps([name, *heard]))
        missing = [rank for rank in missing if not store.check([f"{name}: {rank} comes"])]
        if missing:
            _pause(deadline, f"of {size} processes, these did not come: {missing}")
    return name


def _answer(store: Store, rank: int, deadline: float) -> str:
    """Any other: the name of the meeting that has heard of this very process."""
    word = secrets.token_hex(16)
    store.set(f"word of {rank}", word)
    while True:
        name, *heard = json.loads(_read(store, "meeting") or '[""]')
        if word in heard:
            store.set(f"{name}: {rank} comes", "")
            return str(name)
        _pause(deadline, "the first process did not come")


def _read(store: Store, key: str) -> str:
    """What stands under ``key``; nothing if it was never written."""
    return store.get(key).decode() if store.check([key]) else ""


def _pause(deadline: float, missing: str) -> None:
    """A short while; RuntimeError about what is ``missing`` when it is too late."""
    if time.monotonic() > deadline:
        raise RuntimeError(missing)
    time.sleep(_PAUSE)
