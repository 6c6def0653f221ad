"""Several batches at a time, each on a thread of its own."""

import functools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import TypeVar

import torch

Task = TypeVar("Task")
Result = TypeVar("Result")

_MOST_WORKERS = 8
"""Python itself runs one thread at a time; how many more would pay was not measured."""


def worker_count() -> int:
    """How many batches are worked on at a time: one for each thread that PyTorch may use.

    A step of a search is many small products. One thread for each batch takes them side by side
    without waiting; two threads for one batch wait for each other after every product.
    """
    return min(torch.get_num_threads(), _MOST_WORKERS)


def run_tasks(
    function: Callable[[Task], Result], tasks: Sequence[Task], workers: int
) -> Iterator[tuple[Task, Result]]:
    """Each task with its result, in the order in which they are ready.

    One worker, or one task, is run by the caller. An error of a task is raised here, and tasks
    that have not begun are left out.
    """
    if min(workers, len(tasks)) < 2:
        for task in tasks:
            yield task, function(task)
        return
    pool = _pool(os.getpid(), workers, max(1, torch.get_num_threads() // workers))
    futures: dict[Future[Result], Task] = {pool.submit(function, task): task for task in tasks}
    try:
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        for future in futures:
            future.cancel()


@functools.lru_cache(maxsize=8)
def _pool(_process: int, workers: int, threads_each: int) -> ThreadPoolExecutor:
    """Threads that are kept, as new ones would have to set up their kernels again.

    A pool does not survive a fork, so it belongs to a process.
    """
    before = torch.get_num_threads()
    are_ready = threading.Barrier(workers + 1)

    def begin() -> None:
        torch.get_num_threads()  # or PyTorch would set the number at the thread's first product
        torch.set_num_threads(threads_each)
        are_ready.wait()

    pool = ThreadPoolExecutor(workers, thread_name_prefix="pellucid-search")
    for _ in range(workers):
        pool.submit(begin)
    are_ready.wait()
    # the number holds for the thread that sets it, but is also what later threads begin with
    torch.set_num_threads(before)
    return pool
