"""Processes started again on a store that remembers the dead ones."""

import datetime
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch.distributed as dist

from pellucid.core.world import meet

_SOON = datetime.timedelta(seconds=20)


def met(store: dist.Store, *pauses: float) -> list[str]:
    """What each process reads where the first has left its address; each begins after its pause."""

    def come(rank: int) -> str:
        time.sleep(pauses[rank])
        part = meet(store, rank, len(pauses), _SOON)
        if rank == 0:
            part.set("address", f"{pauses}")
        return str(part.get("address").decode())

    with ThreadPoolExecutor(len(pauses)) as pool:
        return list(pool.map(come, range(len(pauses))))


@pytest.mark.parametrize("pauses", [(0.0, 0.2, 0.0), (0.2, 0.0, 0.1), (0.0, 0.0, 0.0)])
def test_the_living_hear_nothing_of_the_dead(pauses: tuple[float, ...]):
    """Also if the second met the first before, and looks for it before it has come again."""
    store = dist.HashStore()
    assert met(store, 0.1, 0.0, 0.0) == ["(0.1, 0.0, 0.0)"] * 3
    assert met(store, *pauses) == [f"{pauses}"] * 3


def test_who_does_not_come_is_told():
    store = dist.HashStore()
    assert len(met(store, 0.0, 0.0, 0.0)) == 3
    at_once = datetime.timedelta(seconds=0)
    with pytest.raises(RuntimeError, match=r"of 3 processes, these did not come: \[1, 2\]"):
        meet(store, 0, 3, at_once)
    with pytest.raises(RuntimeError, match="the first process did not come"):
        meet(store, 2, 3, at_once)
