"""Searches all lines of a call: in batches of similar length, on threads, by the chosen search."""

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import Any, TypeVar

import torch
from jaxtyping import Int
from torch import Tensor, nn

from pellucid.core.special import BOS_ID, PAD_ID
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.engine import SearchWatcher, token_batches
from pellucid.decoding.requests import ReadLine, Translatable
from pellucid.decoding.result import Hypothesis
from pellucid.decoding.search.beam import beam_search
from pellucid.decoding.search.candidates import Constraints
from pellucid.decoding.search.general_beam import general_beam_search
from pellucid.decoding.search.greedy import greedy_search, sample
from pellucid.decoding.search.recompute import Recomputing, repredict_search
from pellucid.decoding.spelling import continuing_ids, spell_banned
from pellucid.model.dropout import without_dropout
from pellucid.model.seq2seq import MemoryT, Searchable
from pellucid.text.batching import collate_sources

Model = TypeVar("Model")
Task = TypeVar("Task")
Result = TypeVar("Result")

_MOST_WORKERS = 8
"""Python's global lock limits how many threads are worth it; more than 8 were not measured."""


def search_lines(
    lines: Sequence[ReadLine],
    bundle: Translatable,
    settings: DecodingConfig,
    watcher: SearchWatcher | None = None,
) -> list[list[Hypothesis]]:
    """The hypotheses of each line, best first, in the order of the lines; no line may be blank.

    The longest lines go first, a batch on each thread that PyTorch may use. With a watcher that
    needs the steps one batch is searched after the other. Raises as the searches do.
    """
    # each kind of model has a memory of its own, which a search only hands back to it
    model: Searchable[Any] = bundle.model
    needs_steps = watcher is not None and watcher.needs_steps
    workers = worker_count() if is_on_cpu(bundle.model) and not needs_steps else 1

    # memory grows with the hypotheses of a sentence, so a batch has fewer sentences
    width = max(settings.beam_size, settings.n_best)
    lengths = [len(line.source_ids) for line in lines]
    batches = token_batches(lengths, settings.batch_tokens // width, at_least=workers)

    def search_batch(batch: Sequence[int]) -> list[list[Hypothesis]]:
        some = [lines[index] for index in batch]
        source = pad_sources([line.source_ids for line in some], bundle.model)
        constraints = make_constraints(some, bundle, settings)
        with torch.inference_mode():  # the mode belongs to a thread, so every worker enters it
            return search(model, source, settings, constraints, watcher)

    results: dict[int, list[Hypothesis]] = {}
    with inference(bundle.model):
        for batch, found in run_tasks(search_batch, list(batches), workers):
            results.update(zip(batch, found, strict=True))

    return [results[index] for index in range(len(lines))]


def make_constraints(
    lines: Sequence[ReadLine], bundle: Translatable, settings: DecodingConfig
) -> Constraints:
    """The constraints on the translations of these lines, in ids."""
    tokenizer = bundle.target_tokenizer
    has_phrases = any(line.required_ids for line in lines)
    return Constraints(
        banned=spell_banned(settings.banned, tokenizer),
        prefixes=tuple(line.prefix_ids for line in lines),
        required=tuple(line.required_ids for line in lines),
        continues_word=continuing_ids(tokenizer) if has_phrases else frozenset(),
    )


def search(
    model: Searchable[MemoryT],
    source: Int[Tensor, "sentence source"],
    settings: DecodingConfig,
    constraints: Constraints,
    watcher: SearchWatcher | None = None,
) -> list[list[Hypothesis]]:
    """The hypotheses of each sentence, best first. Raises as the searches and the watcher do."""
    if settings.repredict:
        recomputing = Recomputing(model, mask_at_inference=settings.mask_at_inference)
        return [[only] for only in repredict_search(recomputing, source, settings, watcher)]

    # a model that recomputes is searched like one with a cache, so every kind below is open to it
    searched: Searchable[Any] = searched_model(model, settings)
    if settings.sampling is not None:
        return sample(searched, source, settings, settings.sampling, constraints, watcher)
    if settings.diverse_groups > 1 or any(constraints.required):
        return general_beam_search(searched, source, settings, constraints, watcher)
    if settings.beam_size == 1:  # the same result, faster
        return [[best] for best in greedy_search(searched, source, settings, constraints, watcher)]
    return beam_search(searched, source, settings, constraints, watcher)


def searched_model(model: Model, settings: DecodingConfig) -> Model | Recomputing:
    """The model that a search with these settings steps, and by which a translation is scored.

    Without ``use_cache`` it computes each prefix again. Raises ConfigError for a kind of model that
    cannot.
    """
    if settings.use_cache:
        return model
    return Recomputing(model, mask_at_inference=settings.mask_at_inference)


def pad_sources(
    sources: Sequence[Sequence[int]], model: nn.Module
) -> Int[Tensor, "sentence source"]:
    """Each source with its EOS, padded to the longest, on the device of the model."""
    return collate_sources(sources).to(_device(model))


def pad_targets(
    targets: Sequence[Sequence[int]], source: Int[Tensor, "sentence source"]
) -> Int[Tensor, "sentence target"]:
    """BOS and each target, padded: what a decoder reads when the target is known (EQ-121).

    Row t of the decoder's output then predicts token t of the target, and the last row the stop.
    The result is on the device of ``source``.
    """
    longest = max(len(ids) for ids in targets)
    rows = [[BOS_ID, *ids] + [PAD_ID] * (longest - len(ids)) for ids in targets]
    return source.new_tensor(rows)


def is_on_cpu(model: nn.Module) -> bool:
    """Whether the model computes on the CPU."""
    return _device(model).type == "cpu"


def _device(model: nn.Module) -> torch.device:
    parameter = next(model.parameters(), None)
    return torch.device("cpu") if parameter is None else parameter.device


@contextlib.contextmanager
def inference(model: nn.Module) -> Iterator[None]:
    """Disable gradients and dropout inside; modules in training mode return to it afterwards."""
    with torch.inference_mode(), without_dropout(model):
        yield


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
        # if a task has failed or the caller is done, those that have not started are not needed
        for future in futures:
            future.cancel()


@functools.lru_cache(maxsize=8)
def _pool(_process: int, workers: int, threads_each: int) -> ThreadPoolExecutor:
    """A pool of threads that is kept, as new threads would have to set up their kernels again.

    Threads do not survive a fork, so each process has its own pool.
    """
    before = torch.get_num_threads()
    # threads wait for each other, so that none takes a second ``begin`` before all have had theirs
    are_ready = threading.Barrier(workers + 1)

    def begin() -> None:
        torch.get_num_threads()  # else PyTorch would set the number again at the first product
        torch.set_num_threads(threads_each)
        are_ready.wait()

    pool = ThreadPoolExecutor(workers, thread_name_prefix="pellucid-search")
    for _ in range(workers):
        pool.submit(begin)
    are_ready.wait()

    # the number holds for the thread that sets it, but is also the default of later threads
    torch.set_num_threads(before)
    return pool
