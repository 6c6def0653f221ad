"""Several processes as torchrun would start them, without the seconds that importing torch takes.

They are forks of the test's process.
"""

import contextlib
import gc
import logging
import multiprocessing
import os
import random
import socket
import sys
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from typing import Any


def in_processes(work: Callable[..., Any], *arguments: Any, size: int = 2) -> list[Any]:
    """What ``work(*arguments)`` returns in each of ``size`` processes, by rank.

    An exception is no result but stands in the list, as its type's name and its text.
    """
    import torch._dynamo  # or each of them would
    import torch.distributed.fsdp
    import torch.distributed.tensor  # noqa: F401

    port = free_port()
    started = []
    for rank in range(size):
        here, there = multiprocessing.Pipe()
        process = started_fork(_be, rank, size, port, there, work, arguments)
        there.close()
        started.append((process, here))
    results = []
    for process, here in started:
        try:
            results.append(here.recv())
        except EOFError:
            results.append(("killed", ""))
        process.join()
        here.close()
        process.close()
    return results


def started_fork(work: Callable[..., None], *arguments: Any) -> ForkProcess:
    """A fork that does ``work(*arguments)``; warnings are no errors in it."""
    process = multiprocessing.get_context("fork").Process(target=_as_if_new, args=(work, arguments))
    gc.disable()  # in the fork as well, until nothing that the parent has left is collected
    try:
        process.start()
    finally:
        gc.enable()
    return process


def _as_if_new(work: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    gc.freeze()
    gc.enable()
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__  # not what pytest captures
    warnings.resetwarnings()
    work(*arguments)


def free_port() -> int:
    """A port that no program has, below those that systems give to any connection.

    The first process binds it seconds later; one that the system gave was taken meanwhile.
    """
    while True:
        port = random.SystemRandom().randrange(20_000, 30_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def _be(
    rank: int,
    size: int,
    port: int,
    answer: Connection,
    work: Callable[..., Any],
    arguments: tuple[Any, ...],
) -> None:
    os.environ |= {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    logging.getLogger("pellucid").addHandler(logging.NullHandler())
    try:
        result = work(*arguments)
    except Exception as error:
        result = type(error).__name__, str(error)
    answer.send(result)
    answer.close()
