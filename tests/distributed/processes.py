"""Several processes as torchrun would start them, without the seconds that importing torch takes.

They are forked from one server that has imported everything.
"""

import contextlib
import logging
import multiprocessing
import os
import random
import socket
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

PRELOADED = [
    "pellucid.cli.train",
    "pellucid.cli.display",
    "pellucid.training.pair_vectors",
    "pellucid.training.train",
    "pytest",  # and what else the modules of tests import: each process imports its own again
    "numpy.testing",
    "sacrebleu.metrics",
    "torch._dynamo",  # a model whose parameters are only counted lies on the meta device
    "torch.distributed.fsdp",
    "torch.distributed.launcher.api",
    "torch.distributed.tensor",
    "torch.testing",
]


def in_processes(work: Callable[..., Any], *arguments: Any, size: int = 2) -> list[Any]:
    """What ``work(*arguments)`` returns in each of ``size`` processes, by rank.

    An exception is no result but stands in the list, as its type's name and its text.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    port = free_port()
    started = []
    for rank in range(size):
        here, there = context.Pipe()
        call = (rank, size, port, there, work, arguments)
        process = context.Process(target=_be, args=call)
        process.start()
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
