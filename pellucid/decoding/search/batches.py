"""Searches all lines of a call in batches of similar length, each batch on its own thread."""

import functools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import TypeVar

import torch

from pellucid.decoding.batching import token_batches
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.engine import SearchWatcher, Translatable
from pellucid.decoding.ensemble import Ensemble
from pellucid.decoding.requests import ReadLine, continuing_ids, spell_banned
from pellucid.decoding.result import Hypothesis
from pellucid.decoding.search.constraints import Demands
from pellucid.decoding.search.model import inference, is_on_cpu, pad_sources
from pellucid.decoding.search.search import search

Task = TypeVar("Task")
Result = TypeVar("Result")

_MOST_WORKERS = 8
"""The global interpreter lock limits how many threads pay; more than 8 were not measured."""


def search_batches(
    lines: Sequence[ReadLine],
    bundle: Translatable,
    settings: DecodingConfig,
    watcher: SearchWatcher | None = None,
) -> list[list[Hypothesis]]:
    """The hypotheses of each line, best first, in the order of the lines; none is blank.

    The longest lines go first, a batch on each thread that PyTorch may use. A watcher that wants
    the steps gets those of one batch after the other. Raises as the searches do.
    """
    wants_steps = watcher is not None and watcher.wants_steps
    workers = worker_count() if is_on_cpu(bundle.model) and not wants_steps else 1

    # memory grows with the hypotheses of a sentence, so a batch has fewer sentences
    width = max(settings.beam_size, settings.n_best)
    lengths = [len(line.source_ids) for line in lines]
    batches = token_batches(lengths, settings.batch_tokens // width, at_least=workers)

    def search_batch(batch: Sequence[int]) -> list[list[Hypothesis]]:
        with torch.inference_mode():  # the mode belongs to a thread, so every worker enters it
            return search_lines([lines[index] for index in batch], bundle, settings, watcher)

    results: dict[int, list[Hypothesis]] = {}
    with inference(bundle.model):
        for batch, found in run_tasks(search_batch, list(batches), workers):
            results.update(zip(batch, found, strict=True))

    return [results[index] for index in range(len(lines))]


def search_lines(
    lines: Sequence[ReadLine],
    bundle: Translatable,
    settings: DecodingConfig,
    watcher: SearchWatcher | None = None,
) -> list[list[Hypothesis]]:
    """The hypotheses of each line, best first."""
    source = pad_sources([line.source_ids for line in lines], bundle.model)
    demands = make_demands(lines, bundle, settings)
    if isinstance(bundle.model, Ensemble):
        return search(bundle.model, source, settings, demands, watcher)
    return search(bundle.model, source, settings, demands, watcher)


def make_demands(
    lines: Sequence[ReadLine], bundle: Translatable, settings: DecodingConfig
) -> Demands:
    """The constraints on the translations of these lines, in ids."""
    tokenizer = bundle.target_tokenizer
    has_musts = any(line.must_ids for line in lines)
    return Demands(
        banned=spell_banned(settings.banned, tokenizer),
        prefixes=tuple(line.prefix_ids for line in lines),
        musts=tuple(line.must_ids for line in lines),
        continues_word=continuing_ids(tokenizer) if has_musts else frozenset(),
    )


def worker_count() -> int:
    """How many batches are searched at a time: one for each thread that PyTorch may use.

    A step of a search is many small products. With one thread for each batch no thread waits for
    another; two threads on one batch wait for each other after every product.
    """
    return min(torch.get_num_threads(), _MOST_WORKERS)


def run_tasks(
    function: Callable[[Task], Result], tasks: Sequence[Task], workers: int
) -> Iterator[tuple[Task, Result]]:
    """Yield each task with its result, in the order in which they finish.

    One worker, or one task, runs on the thread of the caller. An error of a task is raised here,
    and tasks that have not started are canceled.
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
    """A pool of threads that is kept, as new threads would have to set up their kernels again.

    Threads do not survive a fork, so each process has its own pool.
    """
    before = torch.get_num_threads()
    # no thread can take a second ``begin`` before all have run theirs
    are_ready = threading.Barrier(workers + 1)

    def begin() -> None:
        torch.get_num_threads()  # or PyTorch would set the number at the first product
        torch.set_num_threads(threads_each)
        are_ready.wait()

    pool = ThreadPoolExecutor(workers, thread_name_prefix="pellucid-search")
    for _ in range(workers):
        pool.submit(begin)
    are_ready.wait()

    # the number holds for the thread that sets it, but is also the default of later threads
    torch.set_num_threads(before)
    return pool
